#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_TENSOR_PROTO_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_TENSOR_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::fe::onnx {
class TensorProto;
}  // namespace npuc::fe::onnx

namespace npuc::onnx {

// The file beside a model that holds data of its tensors.
struct ExternalFile {
  std::string name;                   // base name, as tensors state it
  const ByteSource* bytes = nullptr;  // null: there is none
};

// Decodes a TensorProto: raw_data, the value list of its type, or a part of `external`. All floats
// become f32, UINT64 i64 where its values fit. `max_bytes` bounds the result and is
// checked before anything is allocated. Errors: INVALID_ARGUMENT for a shape, a size or a list that
// does not fit; UNIMPLEMENTED for a type that the IR lacks (strings, complex numbers, 8- and 4-bit
// floats); NOT_FOUND for data in another file than `external`; RESOURCE_EXHAUSTED above max_bytes.
absl::StatusOr<Tensor> DecodeTensor(const fe::onnx::TensorProto& proto, int64_t max_bytes,
                                    const ExternalFile& external = {});
// The bytes that an element of that type has in the file, of those types that DTypeFromWire knows.
int64_t WireSize(int data_type);
// The file that holds the tensor's data, as the tensor states it; empty: the model file itself.
std::string LocationOf(const fe::onnx::TensorProto& proto);

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_TENSOR_PROTO_H_
