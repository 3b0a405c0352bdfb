#ifndef NPUC_SERVER_HTTP_CLIENT_URL_H_
#define NPUC_SERVER_HTTP_CLIENT_URL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace npuc::http_client {

// The longest URL that is taken.
inline constexpr size_t kMaxUrlBytes = 2048;

// OK for "https://..." and "http://...": a host, perhaps a port of 1 to 65535, a path and a query;
// no user and no fragment. INVALID_ARGUMENT says what is wrong.
absl::Status CheckUrl(absl::string_view url);
// The same, where plain HTTP is for this machine alone (127.0.0.1, [::1], localhost): elsewhere
// others could listen.
absl::Status CheckConfidentialUrl(absl::string_view url);

// "HOST[:PORT]" of a URL that was checked.
absl::string_view AuthorityOf(absl::string_view url);
// True for "127.0.0.1:80", "localhost", "[::1]:80".
bool IsLoopback(absl::string_view authority);

}  // namespace npuc::http_client

#endif  // NPUC_SERVER_HTTP_CLIENT_URL_H_
