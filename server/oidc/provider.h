#ifndef NPUC_SERVER_OIDC_PROVIDER_H_
#define NPUC_SERVER_OIDC_PROVIDER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/mutex.h"
#include "server/http_client/http_client.h"
#include "server/oidc/key_set.h"
#include "server/oidc/settings.h"

namespace npuc::oidc {

// Sign-ins at once that wait for the provider, each on a thread of the HTTP port (of 16).
inline constexpr int kMaxWaiting = 4;
// All requests of one sign-in together.
inline constexpr absl::Duration kSignInDeadline = absl::Seconds(10);
// Addresses and keys of the provider are read again after this.
inline constexpr absl::Duration kDocumentAge = absl::Hours(1);
// Tokens that name an unknown key make the keys be read again, not more often than this.
inline constexpr absl::Duration kBetweenKeyReads = absl::Seconds(10);
// Values of the claim, a person's groups say, and the bytes of each.
inline constexpr size_t kMaxClaimValues = 512;
inline constexpr size_t kMaxClaimValueBytes = 255;

// A person that signed in, as the provider has it.
struct Person {
  std::string subject;              // never another person's
  std::vector<std::string> values;  // of the claim that names identities
};

// The secrets of one sign-in.
struct Challenge {
  std::string state = {};
  std::string nonce = {};
  std::string verifier = {};  // of PKCE (RFC 7636), 43 to 128 characters
};

// An OpenID Connect provider: its documents, kept for a time, and the exchange of a code for an ID
// token. Calls may wait for the provider, up to kSignInDeadline. Thread-safe.
//
// Errors: UNAVAILABLE (PROVIDER_UNAVAILABLE): it is absent, slow, or its documents are no good;
// RESOURCE_EXHAUSTED (SERVER_BUSY): kMaxWaiting calls wait already; UNAUTHENTICATED
// (SIGN_IN_REFUSED): the provider refuses the code, or its token does not stand for this sign-in.
class Provider {
 public:
  struct Options {
    Settings settings;
    std::function<absl::Time()> now;         // of dates
    std::function<absl::Time()> steady_now;  // of distances
  };
  // `client` must outlive this.
  Provider(Options options, http_client::Client* client)
      : options_(std::move(options)), client_(client) {}

  // The URL at which the person signs in, and from which the browser comes back to `redirect_uri`.
  absl::StatusOr<std::string> AuthorizationUrl(const Challenge& challenge,
                                               absl::string_view redirect_uri);
  // Trades the code for the person. `answering_issuer`: iss of the browser's return (RFC 9207);
  // nullopt: there was none.
  absl::StatusOr<Person> Redeem(absl::string_view code, const Challenge& challenge,
                                absl::string_view redirect_uri,
                                const std::optional<std::string>& answering_issuer);

  const Settings& settings() const { return options_.settings; }

 private:
  // The addresses of the provider (OpenID Connect Discovery, section 3).
  struct Discovered {
    std::string authorization;
    std::string token;
    std::string keys;
    std::string user_info;       // empty: it has none
    bool posts_secret = false;   // in the form, since it takes no Basic authentication
    bool states_issuer = false;  // each return has iss
    absl::Time read = {};
  };
  struct Keys {
    KeySet set;
    absl::Time read;
  };
  class Place;  // among those that may wait
  class Call;   // one sign-in's requests, with one deadline

  absl::StatusOr<std::shared_ptr<const Discovered>> Discover(Call& call);
  absl::StatusOr<Discovered> ReadDiscovery(absl::string_view document) const;
  absl::StatusOr<std::shared_ptr<const Keys>> ReadKeys(Call& call, const Discovered& at);
  absl::StatusOr<std::string> VerifyToken(Call& call, const Discovered& at,
                                          absl::string_view token);
  absl::StatusOr<JsonNode> FetchTokens(Call& call, const Discovered& at, absl::string_view code,
                                       const Challenge& challenge, absl::string_view redirect_uri);
  absl::StatusOr<JsonNode> FetchUserInfo(Call& call, const Discovered& at,
                                         absl::string_view access_token,
                                         const std::string& subject);
  absl::StatusOr<Person> PersonOf(const JsonNode& claims, const std::string& subject) const;

  const Options options_;
  http_client::Client* const client_;
  Mutex mutex_;
  int waiting_ NPUC_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const Discovered> discovered_ NPUC_GUARDED_BY(mutex_);
  std::shared_ptr<const Keys> keys_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::oidc

#endif  // NPUC_SERVER_OIDC_PROVIDER_H_
