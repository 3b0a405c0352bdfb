#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_SCHEMA_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_SCHEMA_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/caffe/message.h"

namespace npuc::caffe {

// Reads the binary form of a NetParameter, as ParseTextFormat reads its text, by the field numbers
// of BVLC/caffe (src/caffe/proto/caffe.proto, 9b89154) and of SSD's branch. Blobs stay bytes.
// Numbers that are in neither become fields of kind kUnknown, since forks give one number to
// several messages; so do numbers whose bytes are of another type than the message says. Errors:
// INVALID_ARGUMENT where the bytes are no message; RESOURCE_EXHAUSTED beyond the limits of
// message.h. `bytes` outlive the message. Thread-safe.
absl::StatusOr<std::unique_ptr<Message>> ParseBinary(absl::string_view bytes);

// The type of a layer of the old form (V1LayerParameter) by its number or by its enumerator's name,
// as layers name it today: "Convolution". Empty where there is none.
absl::string_view TypeOfV1(int64_t number);
absl::string_view TypeOfV1(absl::string_view enumerator);

// The field that holds the parameters of a layer of this type: "convolution_param"; empty where the
// type has none.
absl::string_view ParameterOf(absl::string_view type);
// True: the type is of a fork, so that its parameters in the binary form may be under any number.
bool IsOfAFork(absl::string_view type);

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_SCHEMA_H_
