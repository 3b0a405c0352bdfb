#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_TEXT_FORMAT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_TEXT_FORMAT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/caffe/message.h"

namespace npuc::caffe {

// Reads protobuf's text format without a schema, so that fields of any fork are read: `name:
// value`, `name { ... }`, `name: < ... >`, lists in brackets, `,` or `;` between fields, `#`
// comments, strings in either quotes with C's escapes that concatenate, decimal, octal and
// hexadecimal numbers, inf and nan. Errors: INVALID_ARGUMENT for text that is none, with
// "line:column: "; RESOURCE_EXHAUSTED beyond the limits of message.h. `text` outlives the message.
// Thread-safe.
absl::StatusOr<std::unique_ptr<Message>> ParseTextFormat(absl::string_view text);

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_TEXT_FORMAT_H_
