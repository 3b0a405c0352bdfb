#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TENSOR_PROTO_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TENSOR_PROTO_H_

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::fe::tf {
class TensorProto;
}  // namespace npuc::fe::tf

namespace npuc::tf {

// Decodes a TensorProto in any of TensorFlow's encodings: tensor_content, or the value list of its
// type, whose last value fills what is missing (an empty list is zeros). DT_DOUBLE stays f64 here;
// DT_BFLOAT16 becomes f32. `max_bytes` bounds the result and is checked before anything is
// allocated.
// Errors: INVALID_ARGUMENT for a shape, a size or a list that does not fit; UNIMPLEMENTED for a
// type that the IR lacks (strings, complex numbers, resources); RESOURCE_EXHAUSTED above max_bytes.
absl::StatusOr<Tensor> DecodeTensor(const fe::tf::TensorProto& proto, int64_t max_bytes);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TENSOR_PROTO_H_
