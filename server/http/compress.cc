#include "server/http/compress.h"

#include <libdeflate.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"

namespace npuc::http {

std::string Gzip(absl::string_view bytes, int level) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  NPUC_CHECK(compressor != nullptr);
  std::string out(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()), '\0');
  out.resize(libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), out.data(),
                                      out.size()));
  return out;
}

bool AcceptsGzip(absl::string_view header) {
  for (const absl::string_view part : absl::StrSplit(header, ',')) {
    const std::pair<absl::string_view, absl::string_view> coding =
        absl::StrSplit(part, absl::MaxSplits(';', 1));
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(coding.first), "gzip")) continue;
    absl::string_view weight = absl::StripAsciiWhitespace(coding.second);
    double value = 1;
    if (absl::ConsumePrefix(&weight, "q=") && !absl::SimpleAtod(weight, &value)) return false;
    return value > 0;
  }
  return false;
}

bool IsCompressible(absl::string_view media_type) {
  return absl::StartsWith(media_type, "text/") ||
         absl::StartsWith(media_type, "application/json") ||
         absl::StartsWith(media_type, "image/svg");
}

}  // namespace npuc::http
