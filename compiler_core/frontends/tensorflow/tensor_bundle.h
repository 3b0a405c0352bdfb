#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TENSOR_BUNDLE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TENSOR_BUNDLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::tf {

// A variable's value as a checkpoint holds it.
struct BundleTensor {
  int data_type = 0;  // a DataType's wire number
  std::vector<int64_t> shape;
  absl::string_view bytes;  // as many as the shape and the type say, row-major, little-endian
};

// The variables of a checkpoint of TensorFlow's: variables.index, which is a table of LevelDB's
// with a BundleEntryProto for each, and variables.data-00000-of-00001 and so on. Source of the
// format: tensorflow/core/util/tensor_bundle and LevelDB's doc/table_format.md. Views of the files,
// which must outlive it. Thread-safe once made.
class TensorBundle {
 public:
  // INVALID_ARGUMENT saying what is wrong.
  static absl::StatusOr<TensorBundle> Open(absl::string_view index,
                                           const std::vector<absl::string_view>& shards);

  // NOT_FOUND where there is none of the name; INVALID_ARGUMENT where its type, shape or place is
  // not usable.
  absl::StatusOr<BundleTensor> Find(absl::string_view name) const;

 private:
  std::vector<absl::string_view> shards_;
  absl::flat_hash_map<std::string, std::string> entries_;  // name -> serialized BundleEntryProto
};

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TENSOR_BUNDLE_H_
