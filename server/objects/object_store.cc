#include "server/objects/object_store.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace npuc::objects {

bool IsObjectName(absl::string_view name) {
  if (name.size() > ObjectStore::kMaxNameBytes) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  return std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return !part.empty() && part[0] != '.' &&
           std::all_of(part.begin(), part.end(), [](unsigned char c) {
             return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '_' ||
                    c == '.';
           });
  });
}

}  // namespace npuc::objects
