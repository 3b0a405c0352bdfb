#ifndef NPUC_SERVER_OIDC_KEY_SET_H_
#define NPUC_SERVER_OIDC_KEY_SET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct _cjose_jwk_int;  // cjose's key

namespace npuc::oidc {

inline constexpr size_t kMaxTokenBytes = size_t{64} << 10;
inline constexpr size_t kMaxKeys = 64;

// The public keys by which a provider signs (RFC 7517): RSA of 2048 to 8192 bits for RS256 and the
// curve P-256 for ES256. Keys of other kinds and uses are left out, above all shared secrets.
// Immutable; thread-safe.
class KeySet {
 public:
  // INVALID_ARGUMENT: the document is no key set, or has no key that can be used.
  static absl::StatusOr<KeySet> Parse(absl::string_view document);

  // The payload of a compact JWS (RFC 7515) with a right signature by one of the keys.
  // NOT_FOUND: the key that it names is not among them. INVALID_ARGUMENT: it is no such token, is
  // signed by another algorithm (or `none`), or the signature is wrong.
  absl::StatusOr<std::string> Verify(absl::string_view token) const;

  size_t size() const { return keys_.size(); }

 private:
  struct Free {
    void operator()(_cjose_jwk_int* key) const;
  };
  struct Key {
    std::string id;         // kid; empty: it has none
    std::string algorithm;  // "RS256" or "ES256"
    std::unique_ptr<_cjose_jwk_int, Free> key;
  };

  // Null where several keys fit, or none.
  const Key* Find(absl::string_view id, absl::string_view algorithm) const;

  std::vector<Key> keys_;
};

}  // namespace npuc::oidc

#endif  // NPUC_SERVER_OIDC_KEY_SET_H_
