#ifndef NPUC_SERVER_AUTH_CALLER_H_
#define NPUC_SERVER_AUTH_CALLER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/trace_context.h"

namespace npuc::auth {

// What an identity may do. kAdmin: read and cancel the jobs of every tenant, too.
enum class Right : uint8_t { kSubmit, kRead, kCancel, kAdmin };
inline constexpr Right kAllRights[] = {Right::kSubmit, Right::kRead, Right::kCancel, Right::kAdmin};

// "submit", "read", "cancel", "admin"
absl::string_view RightName(Right right);

class Rights {
 public:
  void Add(Right right) { bits_ |= Bit(right); }
  bool Has(Right right) const { return (bits_ & Bit(right)) != 0; }
  bool empty() const { return bits_ == 0; }
  static Rights All();

 private:
  static uint32_t Bit(Right right) { return 1u << static_cast<uint32_t>(right); }
  uint32_t bits_ = 0;
};

// The proof of an identity, kept by a session (sessions.h). Rights follow from it by the tenants
// file as it is now.
struct SignIn {
  enum class Way : uint8_t { kToken, kCertificate, kProvider };
  Way way = Way::kToken;
  // kToken: SHA-256 of the token, in hex; kCertificate: the name; kProvider: three lines, which
  // are the provider with the claim, the claim's value, and the person at the provider.
  std::string key;

  friend bool operator==(const SignIn&, const SignIn&) = default;
};

// Who makes a call, once that is known.
struct Caller {
  std::string identity;  // as the tenants file names it
  std::string tenant;
  Rights rights;
  base::TraceContext trace = {};  // what the call says it belongs to
  std::string peer = {};          // the client's address
  SignIn sign_in = {};            // the proof; has no meaning without a tenants file
  std::string session = {};       // of the page: SHA-256 of its name; empty: there is none

  // Whether jobs of `tenant` may be seen at all: its own, or an admin's any.
  bool Sees(absl::string_view other_tenant) const {
    return other_tenant == tenant || rights.Has(Right::kAdmin);
  }
  // OK, or PERMISSION_DENIED (RIGHT_MISSING). An admin's right stands for reading and cancelling.
  absl::Status Require(Right right) const;
};

// What a connection or a call brought along; nothing of it is trusted before Authenticate.
struct Credentials {
  // Of "authorization: Bearer TOKEN"; empty where there was none.
  std::string token;
  // Names in the verified client certificate: URIs and DNS names first, then the common name.
  std::vector<std::string> certificate_names = {};
  // The call has a second authorization header: which one counts is nobody's guess.
  bool has_two_tokens = false;
  std::string peer = {};  // the client's address
  // The proof that the call's session keeps.
  std::optional<SignIn> session = {};
  // A page in a browser makes the call. Its certificate does not count: the browser sends it
  // unasked, also after the person has signed out.
  bool from_page = false;
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_CALLER_H_
