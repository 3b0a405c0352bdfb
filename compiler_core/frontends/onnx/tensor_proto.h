#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_TENSOR_PROTO_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_TENSOR_PROTO_H_

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::fe::onnx {
class TensorProto;
}  // namespace npuc::fe::onnx

namespace npuc::onnx {

// Decodes a TensorProto: raw_data, or the value list of its type. DOUBLE and BFLOAT16 become f32,
// UINT64 i64 where its values fit. `max_bytes` bounds the result and is checked before anything is
// allocated.
// Errors: INVALID_ARGUMENT for a shape, a size or a list that does not fit; UNIMPLEMENTED for a
// type that the IR lacks (strings, complex numbers, 8- and 4-bit floats); NOT_FOUND for data
// outside of the file; RESOURCE_EXHAUSTED above max_bytes.
absl::StatusOr<Tensor> DecodeTensor(const fe::onnx::TensorProto& proto, int64_t max_bytes);

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_TENSOR_PROTO_H_
