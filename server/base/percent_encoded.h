#ifndef NPUC_SERVER_BASE_PERCENT_ENCODED_H_
#define NPUC_SERVER_BASE_PERCENT_ENCODED_H_

#include <string>

#include "absl/strings/string_view.h"

namespace npuc::base {

// `text` with all but letters, digits, '-', '.', '_' and '~' as %XX (RFC 3986); also a value of
// Content-Disposition's filename* (RFC 8187).
std::string PercentEncoded(absl::string_view text);

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_PERCENT_ENCODED_H_
