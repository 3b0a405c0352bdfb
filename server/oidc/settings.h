#ifndef NPUC_SERVER_OIDC_SETTINGS_H_
#define NPUC_SERVER_OIDC_SETTINGS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::oidc {

// The OpenID Connect provider by which people sign in, and this server as its client.
struct Settings {
  std::string issuer = {};         // the URL, to the letter as the provider states it
  std::string client_id = {};      // as the provider knows this server
  std::string client_secret = {};  // empty: a public client
  std::string scopes = "openid email";
  std::string claim = "email";  // the claim whose value the tenants file names
  // "https://HOST[:PORT]", by which browsers reach the page; empty: SignInFlow::SetPageUrl sets it.
  std::string page_url = {};
  std::string ca_file =
      {};  // PEM: authorities that may sign the provider's certificate; empty: as the system has it
  std::string name = {};  // of the provider, for people
};

// OK for a URL that http_client::CheckConfidentialUrl takes and that has no query. INVALID_ARGUMENT
// says what is wrong and what to write.
absl::Status CheckIssuer(absl::string_view url);
// Reads "https://HOST[:PORT]" or "http://..." of this machine; the result has neither a '/' at its
// end nor the scheme's own port, as browsers write an origin.
absl::StatusOr<std::string> ReadPageUrl(absl::string_view url);
// OK for words between single spaces, "openid" among them.
absl::Status CheckScopes(absl::string_view scopes);
// OK for 1 to 64 letters, digits, '-', '_', '.', ':' and '/': claims may have URLs as names.
absl::Status CheckClaimName(absl::string_view claim);

}  // namespace npuc::oidc

#endif  // NPUC_SERVER_OIDC_SETTINGS_H_
