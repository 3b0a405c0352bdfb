#ifndef NPUC_SERVER_OTLP_COLLECTOR_H_
#define NPUC_SERVER_OTLP_COLLECTOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http_client/http_client.h"

namespace npuc::otlp {

// Where a collector takes traces: reads "https://HOST[:PORT][/PATH]" or "http://...", and adds the
// default port (4318) and "/v1/traces". INVALID_ARGUMENT says what is wrong.
absl::StatusOr<std::string> TracesUrl(absl::string_view url);

// Lines "NAME: VALUE"; empty lines and those that begin with '#' are none. INVALID_ARGUMENT names
// the line, never the value, which may be a secret.
absl::StatusOr<http_client::Headers> ParseHeaders(absl::string_view text);

}  // namespace npuc::otlp

#endif  // NPUC_SERVER_OTLP_COLLECTOR_H_
