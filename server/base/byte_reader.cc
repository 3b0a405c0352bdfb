#include "server/base/byte_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::base {

absl::StatusOr<std::string> ReadNext(const ByteReader& read, uint64_t offset, uint64_t bytes,
                                     size_t max_bytes, absl::string_view content) {
  const size_t wanted = std::min<uint64_t>(max_bytes, bytes - offset);
  ASSIGN_OR_RETURN(std::string part, read(offset, wanted));
  if (!part.empty() && part.size() <= wanted) return part;
  return absl::DataLossError(
      absl::StrCat("content ", content, " ends at byte ", offset, " of ", bytes));
}

}  // namespace npuc::base
