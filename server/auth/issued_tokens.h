#ifndef NPUC_SERVER_AUTH_ISSUED_TOKENS_H_
#define NPUC_SERVER_AUTH_ISSUED_TOKENS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/base/kept_state.h"

namespace npuc::auth {

// Tokens that identities of the tenants file got beside those that stand there, and when tokens
// end that were replaced: what an operator rotates without a change of the file. Tokens are known
// by their SHA-256 alone. Kept in a text, so that it holds over restarts. Thread-safe.
class IssuedTokens {
 public:
  struct Owner {
    std::string tenant;
    std::string identity;
    friend bool operator==(const Owner&, const Owner&) = default;
  };
  // Facts about one token. Without an owner it stands in the tenants file.
  struct Token {
    std::optional<Owner> owner = std::nullopt;
    absl::Time end = absl::InfiniteFuture();
  };

  // None, until Attach.
  explicit IssuedTokens(std::function<absl::Time()> now) : now_(std::move(now)) {}

  // Takes what the text has, which must outlive this. FAILED_PRECONDITION: it is damaged.
  absl::Status Attach(base::KeptText* text);
  // Takes what another node has set. True: something is another.
  absl::StatusOr<bool> Refresh();

  // nullopt: nothing is known of it, so the tenants file decides alone.
  std::optional<Token> Find(absl::string_view token_sha256) const;

  struct Rotation {
    Owner owner;
    std::string token_sha256;                     // the new one
    std::vector<std::string> file_sha256s = {};   // the owner's tokens in the tenants file
    absl::Duration grace = absl::ZeroDuration();  // the old ones are valid for so long yet
  };
  // Gives the owner a token; those that it had end after the grace, and those that were about to
  // end do so now. The same token again changes nothing. Returns when the old ones end; nullopt:
  // there were none. `is_in_file`: whether a token stands in the tenants file; what is known of
  // others that have ended is forgotten. ALREADY_EXISTS: the token is another's.
  // RESOURCE_EXHAUSTED: the text is full.
  absl::StatusOr<std::optional<absl::Time>> Rotate(
      const Rotation& rotation, const std::function<bool(absl::string_view)>& is_in_file);

 private:
  using Tokens = std::map<std::string, Token, std::less<>>;  // by SHA-256

  static std::string Format(const Tokens& tokens);
  static absl::StatusOr<Tokens> Parse(absl::string_view text);

  const std::function<absl::Time()> now_;
  mutable Mutex mutex_;
  base::KeptState<Tokens> tokens_ NPUC_GUARDED_BY(mutex_){Format, Parse};
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_ISSUED_TOKENS_H_
