#include "server/base/percent_encoded.h"

#include "absl/strings/ascii.h"

namespace npuc::base {

std::string PercentEncoded(absl::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~') {
      out.push_back(c);
    } else {
      out.append({'%', kDigits[byte / 16], kDigits[byte % 16]});
    }
  }
  return out;
}

}  // namespace npuc::base
