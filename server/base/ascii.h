#ifndef NPUC_SERVER_BASE_ASCII_H_
#define NPUC_SERVER_BASE_ASCII_H_

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace npuc::base {

// True where `text` has only printable ASCII characters, without spaces and without those of
// `except`.
inline bool IsGraphic(absl::string_view text, absl::string_view except = "") {
  return std::all_of(text.begin(), text.end(), [except](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && !absl::StrContains(except, c);
  });
}

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_ASCII_H_
