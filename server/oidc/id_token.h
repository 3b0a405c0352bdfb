#ifndef NPUC_SERVER_OIDC_ID_TOKEN_H_
#define NPUC_SERVER_OIDC_ID_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/json_tree.h"

namespace npuc::oidc {

// By so much the provider's clock may differ from this one.
inline constexpr absl::Duration kClockSkew = absl::Seconds(60);
inline constexpr size_t kMaxSubjectBytes = 255;  // OpenID Connect Core, section 2

// The content that an ID token must have to stand for this sign-in.
struct Expected {
  std::string issuer;
  std::string client_id;
  std::string nonce;
};

// Reads the claims of an ID token whose signature is right, and checks them by OpenID Connect Core,
// section 3.1.3.7: iss, aud, azp, exp, iat, nbf, nonce, sub. INVALID_ARGUMENT names the claim.
// Pure.
absl::StatusOr<JsonNode> CheckClaims(absl::string_view payload, const Expected& expected,
                                     absl::Time now);

}  // namespace npuc::oidc

#endif  // NPUC_SERVER_OIDC_ID_TOKEN_H_
