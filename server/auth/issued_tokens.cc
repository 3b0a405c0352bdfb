#include "server/auth/issued_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"

namespace npuc::auth {
namespace {

constexpr int64_t kNoEnd = -1;

}  // namespace

// A line a token: SHA-256, end in microseconds since 1970 or -1, tenant and identity, which are
// empty for a token of the tenants file; separated by tabs.
std::string IssuedTokens::Format(const Tokens& tokens) {
  std::string text;
  for (const auto& [sha256, token] : tokens) {
    const Owner owner = token.owner.value_or(Owner());
    const bool ends = token.end != absl::InfiniteFuture();
    absl::StrAppend(&text, sha256, "\t", ends ? absl::ToUnixMicros(token.end) : kNoEnd, "\t",
                    owner.tenant, "\t", owner.identity, "\n");
  }
  return text;
}

absl::StatusOr<IssuedTokens::Tokens> IssuedTokens::Parse(absl::string_view text) {
  Tokens tokens;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    int64_t micros = 0;
    if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &micros) ||
        parts[2].empty() != parts[3].empty()) {
      return absl::FailedPreconditionError(
          "the tokens that an operator rotated (tokens) are damaged; put a backup in their place; "
          "without them tokens that were replaced are valid again, and new ones are not");
    }
    Token& token = tokens[parts[0]];
    if (micros != kNoEnd) token.end = absl::FromUnixMicros(micros);
    if (!parts[2].empty()) token.owner = {parts[2], parts[3]};
  }
  return tokens;
}

absl::Status IssuedTokens::Attach(base::KeptText* text) {
  const MutexLock lock(mutex_);
  return tokens_.Attach(text);
}

absl::StatusOr<bool> IssuedTokens::Refresh() {
  const MutexLock lock(mutex_);
  return tokens_.Read();
}

std::optional<IssuedTokens::Token> IssuedTokens::Find(absl::string_view token_sha256) const {
  const MutexLock lock(mutex_);
  const auto found = tokens_.Get().find(token_sha256);
  if (found == tokens_.Get().end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<std::optional<absl::Time>> IssuedTokens::Rotate(
    const Rotation& rotation, const std::function<bool(absl::string_view)>& is_in_file) {
  std::optional<absl::Time> end;
  const auto rotate = [&](Tokens& tokens) -> absl::Status {
    end.reset();
    const absl::Time now = now_();
    const auto known = tokens.find(rotation.token_sha256);
    const bool is_again = known != tokens.end() && known->second.owner == rotation.owner &&
                          known->second.end == absl::InfiniteFuture();
    if (!is_again && (known != tokens.end() || is_in_file(rotation.token_sha256))) {
      return absl::AlreadyExistsError("the token is known already");
    }
    for (const std::string& sha256 : rotation.file_sha256s) tokens.try_emplace(sha256);
    for (auto& [sha256, token] : tokens) {
      const auto& files = rotation.file_sha256s;
      const bool is_owners = token.owner == rotation.owner ||
                             std::find(files.begin(), files.end(), sha256) != files.end();
      if (!is_owners || sha256 == rotation.token_sha256) continue;
      if (!is_again) {
        token.end =
            token.end == absl::InfiniteFuture() ? now + rotation.grace : std::min(token.end, now);
      }
      if (token.end > now) end = token.end;
    }
    tokens[rotation.token_sha256] = {.owner = rotation.owner};
    // A token of the file that has ended must stay known as such.
    std::erase_if(tokens, [&](const auto& token) {
      return token.second.end <= now && !is_in_file(token.first);
    });
    return absl::OkStatus();
  };
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(tokens_.Change(rotate));
  return end;
}

}  // namespace npuc::auth
