#ifndef NPUC_COMPILER_CORE_BASE_UTF8_H_
#define NPUC_COMPILER_CORE_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace npuc {

// Length in bytes of the valid UTF-8 sequence at text[i] (1..4), 0 where it is not one: overlong
// forms, surrogates and code points over U+10FFFF are not. i must be below text.size().
size_t Utf8SequenceLength(absl::string_view text, size_t i);

// Offset of the first byte that is not part of a valid sequence; npos where all is valid.
size_t FirstInvalidUtf8(absl::string_view text);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_UTF8_H_
