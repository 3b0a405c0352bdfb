#ifndef NPUC_SERVER_OIDC_FLOW_H_
#define NPUC_SERVER_OIDC_FLOW_H_

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/base/kept_state.h"
#include "server/log/line_rate.h"
#include "server/oidc/provider.h"

namespace npuc::oidc {

// A person has so long at the provider.
inline constexpr absl::Duration kSignInAge = absl::Minutes(10);
inline constexpr size_t kMaxLinkBytes = 2048;
// States that came back, each remembered for kSignInAge; beyond, the oldest is forgotten, and a
// replay of it is refused by the provider alone, which takes no code twice.
inline constexpr size_t kMaxUsedStates = 4096;
// A message that the next page shows.
inline constexpr size_t kMaxProblemBytes = 1024;

// Sign-ins by the provider, from the page's button to the return of the browser. A sign-in under
// way is kept by the browser alone, in a cookie: `random.end.link`. State, nonce and PKCE verifier
// are HMACs of it by a key that all nodes of a cluster share. So the state proves that the cookie
// is this server's own and this browser's, nobody can fill a table here, and the browser may come
// back to another node (decisions/0015-sign-ins-kept-by-the-browser.md). Thread-safe.
class SignInFlow {
 public:
  struct Options {
    std::string page_url;             // as Settings has it
    std::function<absl::Time()> now;  // the same at all nodes
  };
  // `provider` must outlive this.
  SignInFlow(Options options, Provider* provider);

  // Reads the key, or makes one; `text` must outlive this. FAILED_PRECONDITION: it is damaged.
  absl::Status Attach(base::KeptText* text);
  // The URL of the page where the settings have none.
  void SetPageUrl(absl::string_view url);

  // The way of the browser to the provider.
  struct Begun {
    std::string location;
    std::string cookie;
  };
  // Errors as of Provider; FAILED_PRECONDITION (WRONG_ADDRESS): `host`, the request's Host, is not
  // the page's, so that the browser would come back without its cookie; `link` that IsLink refuses
  // leads to "/".
  absl::StatusOr<Begun> Begin(absl::string_view link, absl::string_view host);

  // The return of the browser: parameters of the request, by name.
  struct Return {
    std::string cookie = {};  // empty: none
    std::string state = {};
    std::string code = {};
    std::string error = {};
    std::string error_description = {};
    std::optional<std::string> issuer = std::nullopt;
  };
  // Errors as of Provider; UNAUTHENTICATED (SIGN_IN_UNKNOWN): the state is not this browser's, is
  // too old or came back before; (SIGN_IN_REFUSED): the provider says so, or the person did.
  absl::StatusOr<Person> End(const Return& answer);

  // The link of a cookie; "/" where the cookie is none.
  static std::string LinkOf(absl::string_view cookie);
  // True for "/" and "/#...": the page is one, and its addresses differ behind '#'. Nothing else
  // can be redirected to.
  static bool IsLink(absl::string_view link);

  // A message on its way through the browser, so that no other site can have this page show a text.
  std::string SealProblem(absl::string_view text) const;
  // Empty: nobody sealed it here.
  std::string OpenProblem(absl::string_view sealed) const;

  // True once a second at most: a failure, which strangers can cause, may be logged now.
  bool TakesLogLine();

  // The key of a session's proof (auth::SignIn) by this value of the claim. A session that began
  // with another issuer or claim has ended.
  std::string KeyOf(absl::string_view value, absl::string_view subject) const;
  bool IsOwnKey(absl::string_view key) const;

  const Settings& settings() const { return provider_->settings(); }

 private:
  std::string Mac(absl::string_view purpose, absl::string_view text) const;
  Challenge ChallengeOf(absl::string_view cookie) const;
  absl::Status CheckState(const Return& answer);
  absl::StatusOr<std::string> RedirectUri() const;

  Provider* const provider_;
  const std::function<absl::Time()> now_;
  const std::string realm_;
  mutable Mutex mutex_;
  std::string page_url_ NPUC_GUARDED_BY(mutex_);
  base::KeptState<std::string> key_ NPUC_GUARDED_BY(mutex_);
  log::LineRate lines_ NPUC_GUARDED_BY(mutex_){1};
  std::set<std::string, std::less<>> used_ NPUC_GUARDED_BY(mutex_);
  std::deque<std::pair<absl::Time, std::string>> used_order_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::oidc

#endif  // NPUC_SERVER_OIDC_FLOW_H_
