#ifndef NPUC_SERVER_HTTP_COMPRESS_H_
#define NPUC_SERVER_HTTP_COMPRESS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace npuc::http {

// gzip alone, which every browser and tool reads. Level 1 for what is made for one request: at the
// highest levels a list of jobs would take seconds.
inline constexpr int kQuickGzip = 1;
inline constexpr int kBestGzip = 9;
std::string Gzip(absl::string_view bytes, int level);

// True if an Accept-Encoding header (RFC 9110 section 12.5.3) takes gzip.
bool AcceptsGzip(absl::string_view header);

// True if bytes of this media type get smaller: text, JSON, SVG.
bool IsCompressible(absl::string_view media_type);

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_COMPRESS_H_
