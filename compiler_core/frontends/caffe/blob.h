#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_BLOB_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_BLOB_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::caffe {

// The dimensions that a BlobProto states: those of `shape`, or the four of the old form.
// Errors: INVALID_ARGUMENT for bytes that are no BlobProto, or dimensions that none may have.
absl::StatusOr<std::vector<int64_t>> BlobDims(absl::string_view bytes);

// The floats of a BlobProto, under the dimensions that it states. RESOURCE_EXHAUSTED where they
// take more than max_bytes; INVALID_ARGUMENT where their number is not the shape's, or where the
// data are of a type that Caffe itself does not have (forks keep float16 or raw bytes).
// Thread-safe.
absl::StatusOr<Tensor> DecodeBlob(absl::string_view bytes, int64_t max_bytes);

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_BLOB_H_
