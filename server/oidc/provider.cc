#include "server/oidc/provider.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/base/ascii.h"
#include "server/base/percent_encoded.h"
#include "server/http_client/url.h"
#include "server/jobs/service_error.h"
#include "server/oidc/id_token.h"
#include "server/oidc/json_document.h"

namespace npuc::oidc {
namespace {

constexpr char kDiscoveryPath[] = "/.well-known/openid-configuration";
constexpr size_t kMaxAccessTokenBytes = size_t{16} << 10;
constexpr int kOk = 200;

absl::Status Unavailable(absl::string_view what, absl::string_view why) {
  return jobs::ServiceError(absl::StatusCode::kUnavailable, absl::StrCat(what, ": ", why),
                            {.reason = "PROVIDER_UNAVAILABLE", .retry_delay = absl::Seconds(5)});
}

absl::Status Refused(absl::string_view why) {
  return jobs::ServiceError(absl::StatusCode::kUnauthenticated, why, {.reason = "SIGN_IN_REFUSED"});
}

// "error (description)" of an answer that is an OAuth error, else its HTTP status.
std::string ErrorOf(const http_client::Answer& answer) {
  const absl::StatusOr<JsonNode> document = ParseDocument(answer.body, "the answer");
  const std::string error = document.ok() ? TextIn(*document, "error") : "";
  if (error.empty()) return absl::StrCat("HTTP status ", answer.status);
  const std::string more = TextIn(*document, "error_description");
  return absl::StrCat(Printable(error, 64), more.empty() ? "" : " (", Printable(more, 256),
                      more.empty() ? "" : ")");
}

// The claims of both documents; those of the token come first.
std::vector<std::string> ValuesIn(const JsonNode& claims, const std::string& claim) {
  std::vector<std::string> values = TextsIn(claims, claim);
  std::erase_if(values, [](const std::string& value) {
    return value.empty() || value.size() > kMaxClaimValueBytes ||
           std::any_of(value.begin(), value.end(),
                       [](unsigned char c) { return absl::ascii_iscntrl(c); });
  });
  return values;
}

}  // namespace

class Provider::Place {
 public:
  explicit Place(Provider* provider) : provider_(provider) {
    const MutexLock lock(provider_->mutex_);
    has_ = provider_->waiting_ < kMaxWaiting;
    if (has_) ++provider_->waiting_;
  }
  ~Place() {
    const MutexLock lock(provider_->mutex_);
    if (has_) --provider_->waiting_;
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  absl::Status status() const {
    if (has_) return absl::OkStatus();
    return jobs::ServiceError(
        absl::StatusCode::kResourceExhausted,
        "several people wait for the sign-in provider already; try again in a moment",
        {.reason = "SERVER_BUSY", .retry_delay = absl::Seconds(1)});
  }

 private:
  Provider* const provider_;
  bool has_ = false;
};

class Provider::Call {
 public:
  explicit Call(Provider* provider)
      : provider_(provider), end_(provider->options_.steady_now() + kSignInDeadline) {}

  // Asks for a document; `what` names it in errors. The answer may have any HTTP status.
  absl::StatusOr<http_client::Answer> Fetch(absl::string_view what, http_client::Request request) {
    request.headers.emplace_back("Accept", "application/json");
    request.limits.whole = end_ - provider_->options_.steady_now();
    request.limits.answer_bytes = kMaxDocumentBytes;
    if (request.limits.whole <= absl::ZeroDuration()) return Unavailable(what, "no answer in time");
    absl::StatusOr<http_client::Answer> answer = provider_->client_->Send(request);
    if (!answer.ok()) return Unavailable(what, answer.status().message());
    return answer;
  }
  // The same, where any other status than 200 is an error.
  absl::StatusOr<std::string> Get(absl::string_view what, http_client::Request request) {
    ASSIGN_OR_RETURN(http_client::Answer answer, Fetch(what, std::move(request)));
    if (answer.status == kOk) return std::move(answer.body);
    return Unavailable(what, ErrorOf(answer));
  }

 private:
  Provider* const provider_;
  const absl::Time end_;
};

absl::StatusOr<Provider::Discovered> Provider::ReadDiscovery(absl::string_view document) const {
  ASSIGN_OR_RETURN(const JsonNode root, ParseDocument(document, "the discovery document"));
  const std::string issuer = TextIn(root, "issuer");
  if (issuer != settings().issuer) {
    return absl::InvalidArgumentError(absl::StrCat("the provider calls itself '",
                                                   Printable(issuer, 128), "', --oidc-issuer is '",
                                                   settings().issuer, "'; write it to the letter"));
  }
  Discovered found{.authorization = TextIn(root, "authorization_endpoint"),
                   .token = TextIn(root, "token_endpoint"),
                   .keys = TextIn(root, "jwks_uri"),
                   .user_info = TextIn(root, "userinfo_endpoint")};
  for (const std::string& url : {found.authorization, found.token, found.keys}) {
    RETURN_IF_ERROR(http_client::CheckConfidentialUrl(url));
  }
  if (!found.user_info.empty()) RETURN_IF_ERROR(http_client::CheckConfidentialUrl(found.user_info));
  const std::vector<std::string> ways = TextsIn(root, "token_endpoint_auth_methods_supported");
  const auto has = [&ways](const char* way) {
    return std::find(ways.begin(), ways.end(), way) != ways.end();
  };
  // Basic is the default of the protocol.
  found.posts_secret = !ways.empty() && !has("client_secret_basic") && has("client_secret_post");
  const JsonNode* const states = FindIn(root, "authorization_response_iss_parameter_supported");
  found.states_issuer = states != nullptr && states->kind == JsonNode::Kind::kBool && states->flag;
  found.read = options_.steady_now();
  return found;
}

absl::StatusOr<std::shared_ptr<const Provider::Discovered>> Provider::Discover(Call& call) {
  {
    const MutexLock lock(mutex_);
    const bool is_fresh =
        discovered_ != nullptr && options_.steady_now() < discovered_->read + kDocumentAge;
    if (is_fresh) return discovered_;
  }
  constexpr absl::string_view kWhat = "the sign-in provider's discovery document";
  absl::string_view issuer = settings().issuer;
  while (absl::EndsWith(issuer, "/")) issuer.remove_suffix(1);
  ASSIGN_OR_RETURN(const std::string document,
                   call.Get(kWhat, {.url = absl::StrCat(issuer, kDiscoveryPath)}));
  absl::StatusOr<Discovered> read = ReadDiscovery(document);
  if (!read.ok()) return Unavailable(kWhat, read.status().message());
  auto found = std::make_shared<const Discovered>(*std::move(read));
  const MutexLock lock(mutex_);
  discovered_ = found;
  return found;
}

absl::StatusOr<std::shared_ptr<const Provider::Keys>> Provider::ReadKeys(Call& call,
                                                                         const Discovered& at) {
  constexpr absl::string_view kWhat = "the sign-in provider's keys";
  ASSIGN_OR_RETURN(const std::string document, call.Get(kWhat, {.url = at.keys}));
  absl::StatusOr<KeySet> set = KeySet::Parse(document);
  if (!set.ok()) return Unavailable(kWhat, set.status().message());
  auto keys = std::make_shared<const Keys>(Keys{*std::move(set), options_.steady_now()});
  const MutexLock lock(mutex_);
  keys_ = keys;
  return keys;
}

absl::StatusOr<std::string> Provider::VerifyToken(Call& call, const Discovered& at,
                                                  absl::string_view token) {
  std::shared_ptr<const Keys> keys;
  {
    const MutexLock lock(mutex_);
    keys = keys_;
  }
  const absl::Time now = options_.steady_now();
  if (keys == nullptr || now >= keys->read + kDocumentAge) {
    ASSIGN_OR_RETURN(keys, ReadKeys(call, at));
  }
  absl::StatusOr<std::string> payload = keys->set.Verify(token);
  // The provider may have a new key, which it signs with at once.
  if (absl::IsNotFound(payload.status()) && now >= keys->read + kBetweenKeyReads) {
    ASSIGN_OR_RETURN(keys, ReadKeys(call, at));
    payload = keys->set.Verify(token);
  }
  if (!payload.ok()) return Refused(payload.status().message());
  return payload;
}

absl::StatusOr<std::string> Provider::AuthorizationUrl(const Challenge& challenge,
                                                       absl::string_view redirect_uri) {
  std::shared_ptr<const Discovered> at;
  {
    const MutexLock lock(mutex_);
    const bool is_fresh =
        discovered_ != nullptr && options_.steady_now() < discovered_->read + kDocumentAge;
    if (is_fresh) at = discovered_;
  }
  if (at == nullptr) {
    const Place place(this);
    RETURN_IF_ERROR(place.status());
    Call call(this);
    ASSIGN_OR_RETURN(at, Discover(call));
  }
  const std::string hash =
      absl::WebSafeBase64Escape(absl::HexStringToBytes(Sha256Hex(challenge.verifier)));
  return absl::StrCat(at->authorization, absl::StrContains(at->authorization, '?') ? "&" : "?",
                      "response_type=code&client_id=", base::PercentEncoded(settings().client_id),
                      "&redirect_uri=", base::PercentEncoded(redirect_uri),
                      "&scope=", base::PercentEncoded(settings().scopes),
                      "&state=", challenge.state, "&nonce=", challenge.nonce,
                      "&code_challenge=", hash, "&code_challenge_method=S256");
}

absl::StatusOr<JsonNode> Provider::FetchTokens(Call& call, const Discovered& at,
                                               absl::string_view code, const Challenge& challenge,
                                               absl::string_view redirect_uri) {
  const std::string id = base::PercentEncoded(settings().client_id);
  const std::string secret = base::PercentEncoded(settings().client_secret);
  http_client::Request request{.method = "POST",
                               .url = at.token,
                               .headers = {{"Content-Type", "application/x-www-form-urlencoded"}}};
  std::string form = absl::StrCat("grant_type=authorization_code&code=", base::PercentEncoded(code),
                                  "&redirect_uri=", base::PercentEncoded(redirect_uri),
                                  "&code_verifier=", challenge.verifier);
  if (secret.empty() || at.posts_secret) absl::StrAppend(&form, "&client_id=", id);
  if (!secret.empty() && at.posts_secret) {
    absl::StrAppend(&form, "&client_secret=", secret);
  } else if (!secret.empty()) {
    request.headers.emplace_back(
        "Authorization", absl::StrCat("Basic ", absl::Base64Escape(absl::StrCat(id, ":", secret))));
  }
  http_client::SetBody(std::move(form), request);
  constexpr absl::string_view kWhat = "the sign-in provider's token endpoint";
  ASSIGN_OR_RETURN(const http_client::Answer answer, call.Fetch(kWhat, std::move(request)));
  if (answer.status == 400) {
    return Refused(absl::StrCat("the sign-in provider refuses the code: ", ErrorOf(answer)));
  }
  // 401: it refuses this client, which an operator has to mend.
  if (answer.status != kOk) return Unavailable(kWhat, ErrorOf(answer));
  absl::StatusOr<JsonNode> tokens = ParseDocument(answer.body, "its answer");
  if (!tokens.ok()) return Unavailable(kWhat, tokens.status().message());
  if (TextIn(*tokens, "id_token").empty()) {
    return Unavailable(kWhat, "its answer has no id_token; the scopes must have openid");
  }
  return tokens;
}

absl::StatusOr<JsonNode> Provider::FetchUserInfo(Call& call, const Discovered& at,
                                                 absl::string_view access_token,
                                                 const std::string& subject) {
  constexpr absl::string_view kWhat = "the sign-in provider's user info";
  const bool is_token =
      access_token.size() <= kMaxAccessTokenBytes && base::IsGraphic(access_token);
  if (!is_token) return Unavailable(kWhat, "its access token is none");
  ASSIGN_OR_RETURN(
      const std::string document,
      call.Get(kWhat, {.url = at.user_info,
                       .headers = {{"Authorization", absl::StrCat("Bearer ", access_token)}}}));
  absl::StatusOr<JsonNode> claims = ParseDocument(document, "the document");
  if (!claims.ok()) return Unavailable(kWhat, claims.status().message());
  if (TextIn(*claims, "sub") != subject) return Refused("the user info is another person's");
  return claims;
}

absl::StatusOr<Person> Provider::PersonOf(const JsonNode& claims,
                                          const std::string& subject) const {
  const std::string& claim = settings().claim;
  Person person{.subject = subject, .values = ValuesIn(claims, claim)};
  if (person.values.empty()) {
    return Refused(absl::StrCat(
        "the sign-in provider says nothing of the claim '", claim,
        "'; an operator of this server can have it sent, or choose another by --oidc-claim and "
        "--oidc-scopes"));
  }
  if (person.values.size() > kMaxClaimValues) {
    return Refused(absl::StrCat("the claim '", claim, "' has ", person.values.size(),
                                " values; at most ", kMaxClaimValues, " are taken"));
  }
  if (claim != "email") return person;
  // Some providers let people write any address.
  const JsonNode* const verified = FindIn(claims, "email_verified");
  const bool is_verified =
      verified != nullptr &&
      (verified->kind == JsonNode::Kind::kBool ? verified->flag : verified->text == "true");
  if (is_verified) return person;
  return Refused(
      absl::StrCat("the sign-in provider does not say that it has verified the address '",
                   Printable(person.values[0], 64),
                   "' (email_verified); an operator can have it verified, or choose the "
                   "claim sub by --oidc-claim"));
}

absl::StatusOr<Person> Provider::Redeem(absl::string_view code, const Challenge& challenge,
                                        absl::string_view redirect_uri,
                                        const std::optional<std::string>& answering_issuer) {
  const Place place(this);
  RETURN_IF_ERROR(place.status());
  Call call(this);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Discovered> at, Discover(call));
  if (answering_issuer.has_value() ? *answering_issuer != settings().issuer : at->states_issuer) {
    return Refused("the answer came from another sign-in provider");
  }
  ASSIGN_OR_RETURN(const JsonNode tokens, FetchTokens(call, *at, code, challenge, redirect_uri));
  ASSIGN_OR_RETURN(const std::string payload, VerifyToken(call, *at, TextIn(tokens, "id_token")));
  const absl::StatusOr<JsonNode> claims = CheckClaims(
      payload,
      {.issuer = settings().issuer, .client_id = settings().client_id, .nonce = challenge.nonce},
      options_.now());
  if (!claims.ok()) return Refused(claims.status().message());
  const std::string subject = TextIn(*claims, "sub");
  const std::string access_token = TextIn(tokens, "access_token");
  // Many providers put no more than the subject into the token.
  const bool asks_user_info = ValuesIn(*claims, settings().claim).empty() &&
                              !at->user_info.empty() && !access_token.empty();
  if (!asks_user_info) return PersonOf(*claims, subject);
  ASSIGN_OR_RETURN(const JsonNode info, FetchUserInfo(call, *at, access_token, subject));
  return PersonOf(info, subject);
}

}  // namespace npuc::oidc
