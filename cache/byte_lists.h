#ifndef NPUC_CACHE_BYTE_LISTS_H_
#define NPUC_CACHE_BYTE_LISTS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc::cache {

// Text whose greatest part is lists of bytes as a C header has them, six characters a byte:
//
//   \t0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, \n
//
// The short form holds the bytes themselves. It is a row of sections: length of a text (4 bytes,
// little endian), the text as it is, length of a list (4 bytes), the list. A list stands for
// "0xNN, " of each byte, with "\n\t" behind each tenth that is not its last. General compressors
// see no bytes in such text: LZ4 leaves three times as much and takes twice as long.

// nullopt: it would not be much shorter. Text of 4 GiB or more is left as it is.
std::optional<std::string> ShortenByteLists(absl::string_view text);

// The text of `size` bytes. nullopt: `shortened` is not the short form of so many.
std::optional<std::string> RestoreByteLists(absl::string_view shortened, size_t size);

}  // namespace npuc::cache

#endif  // NPUC_CACHE_BYTE_LISTS_H_
