#include "server/oidc/flow.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/auth/authenticator.h"
#include "server/base/ascii.h"
#include "server/http_client/url.h"
#include "server/jobs/service_error.h"

namespace npuc::oidc {
namespace {

constexpr size_t kKeyChars = 43;  // 256 bits as base64url
constexpr size_t kMaxCookieBytes = 4096;

absl::StatusOr<std::string> ReadKey(absl::string_view text) {
  if (text.empty() || text.size() == kKeyChars) return std::string(text);
  return absl::FailedPreconditionError(
      "the key of sign-ins (sign_in_key) is damaged; remove it, and sign-ins under way begin anew");
}

absl::Status Unknown(absl::string_view why) {
  return jobs::ServiceError(absl::StatusCode::kUnauthenticated,
                            absl::StrCat(why, "; sign in once more"),
                            {.reason = "SIGN_IN_UNKNOWN"});
}

bool IsSame(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// `random.end.link`.
struct Cookie {
  absl::Time end;
  std::string link;
};

std::optional<Cookie> ReadCookie(absl::string_view text) {
  if (text.size() > kMaxCookieBytes) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  int64_t end = 0;
  Cookie cookie;
  if (parts.size() != 3 || parts[0].size() != kKeyChars || !absl::SimpleAtoi(parts[1], &end) ||
      !absl::WebSafeBase64Unescape(parts[2], &cookie.link) || !SignInFlow::IsLink(cookie.link)) {
    return std::nullopt;
  }
  cookie.end = absl::FromUnixSeconds(end);
  return cookie;
}

}  // namespace

SignInFlow::SignInFlow(Options options, Provider* provider)
    : provider_(provider),
      now_(std::move(options.now)),
      realm_(absl::StrCat(provider->settings().issuer, " ", provider->settings().claim, "\n")),
      page_url_(std::move(options.page_url)),
      key_([](const std::string& key) { return key; }, ReadKey) {}

absl::Status SignInFlow::Attach(base::KeptText* text) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(key_.Attach(text));
  return key_.Change([](std::string& key) {
    if (key.empty()) key = auth::NewToken();
    return absl::OkStatus();
  });
}

void SignInFlow::SetPageUrl(absl::string_view url) {
  const MutexLock lock(mutex_);
  page_url_ = std::string(url);
}

std::string SignInFlow::Mac(absl::string_view purpose, absl::string_view text) const {
  const std::string input = absl::StrCat(purpose, "\n", text);
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const MutexLock lock(mutex_);
  const std::string& key = key_.Get();
  NPUC_CHECK(key.size() == kKeyChars);
  NPUC_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(input.data()), input.size(), mac,
                  &size) != nullptr);
  return absl::WebSafeBase64Escape(absl::string_view(reinterpret_cast<const char*>(mac), size));
}

Challenge SignInFlow::ChallengeOf(absl::string_view cookie) const {
  return {.state = Mac("state", cookie),
          .nonce = Mac("nonce", cookie),
          .verifier = Mac("verifier", cookie)};
}

absl::StatusOr<std::string> SignInFlow::RedirectUri() const {
  const MutexLock lock(mutex_);
  if (!page_url_.empty()) return absl::StrCat(page_url_, "/auth/callback");
  return jobs::ServiceError(absl::StatusCode::kResourceExhausted, "the server is starting",
                            {.reason = "SERVER_BUSY", .retry_delay = absl::Seconds(1)});
}

bool SignInFlow::IsLink(absl::string_view link) {
  return link == "/" || (link.size() <= kMaxLinkBytes && absl::StartsWith(link, "/#") &&
                         base::IsGraphic(link, "\\"));
}

std::string SignInFlow::LinkOf(absl::string_view cookie) {
  const std::optional<Cookie> read = ReadCookie(cookie);
  return read.has_value() ? read->link : "/";
}

absl::StatusOr<SignInFlow::Begun> SignInFlow::Begin(absl::string_view link,
                                                    absl::string_view host) {
  ASSIGN_OR_RETURN(const std::string redirect_uri, RedirectUri());
  if (!absl::EqualsIgnoreCase(http_client::AuthorityOf(redirect_uri), host)) {
    const std::string page = redirect_uri.substr(0, redirect_uri.rfind("/auth/"));
    return jobs::ServiceError(absl::StatusCode::kFailedPrecondition,
                              absl::StrCat("people sign in by ", settings().name, " at ", page,
                                           ", not at this address; open the page there"),
                              {.reason = "WRONG_ADDRESS"});
  }
  Begun begun;
  begun.cookie = absl::StrCat(auth::NewToken(), ".", absl::ToUnixSeconds(now_() + kSignInAge), ".",
                              absl::WebSafeBase64Escape(IsLink(link) ? link : "/"));
  ASSIGN_OR_RETURN(begun.location,
                   provider_->AuthorizationUrl(ChallengeOf(begun.cookie), redirect_uri));
  return begun;
}

absl::Status SignInFlow::CheckState(const Return& answer) {
  const std::optional<Cookie> cookie = ReadCookie(answer.cookie);
  if (!cookie.has_value() || !IsSame(answer.state, Mac("state", answer.cookie))) {
    return Unknown("this browser has not begun this sign-in, or has ended it");
  }
  const absl::Time now = now_();
  if (now >= cookie->end) {
    return Unknown(absl::StrCat("the sign-in began more than ", absl::ToInt64Minutes(kSignInAge),
                                " minutes ago"));
  }
  const MutexLock lock(mutex_);
  while (!used_order_.empty() &&
         (used_order_.size() >= kMaxUsedStates || used_order_.front().first <= now)) {
    used_.erase(used_order_.front().second);
    used_order_.pop_front();
  }
  if (!used_.insert(answer.state).second) return Unknown("this sign-in came back before");
  used_order_.emplace_back(now + kSignInAge, answer.state);
  return absl::OkStatus();
}

absl::StatusOr<Person> SignInFlow::End(const Return& answer) {
  // First, so that no other site can have this server ask the provider, or show an error.
  RETURN_IF_ERROR(CheckState(answer));
  if (!answer.error.empty() || answer.code.empty()) {
    const std::string& more = answer.error_description;
    return jobs::ServiceError(
        absl::StatusCode::kUnauthenticated,
        absl::StrCat(settings().name, " has refused the sign-in: ",
                     answer.error.empty() ? "no code" : Printable(answer.error, 64),
                     more.empty() ? "" : " (", Printable(more, 256), more.empty() ? "" : ")"),
        {.reason = "SIGN_IN_REFUSED"});
  }
  ASSIGN_OR_RETURN(const std::string redirect_uri, RedirectUri());
  return provider_->Redeem(answer.code, ChallengeOf(answer.cookie), redirect_uri, answer.issuer);
}

std::string SignInFlow::SealProblem(absl::string_view text) const {
  const std::string part = absl::WebSafeBase64Escape(text.substr(0, kMaxProblemBytes));
  return absl::StrCat(part, ".", Mac("problem", part));
}

std::string SignInFlow::OpenProblem(absl::string_view sealed) const {
  const std::vector<absl::string_view> parts = absl::StrSplit(sealed, '.');
  std::string text;
  if (sealed.size() > 2 * kMaxProblemBytes || parts.size() != 2 ||
      !IsSame(parts[1], Mac("problem", parts[0])) ||
      !absl::WebSafeBase64Unescape(parts[0], &text)) {
    return "";
  }
  return text;
}

bool SignInFlow::TakesLogLine() {
  const MutexLock lock(mutex_);
  return lines_.Takes(now_());
}

std::string SignInFlow::KeyOf(absl::string_view value, absl::string_view subject) const {
  return absl::StrCat(realm_, value, "\n", subject);
}

bool SignInFlow::IsOwnKey(absl::string_view key) const { return absl::StartsWith(key, realm_); }

}  // namespace npuc::oidc
