#include "cache/keys.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"

namespace npuc::cache {
namespace {

bool IsLowerHex(absl::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool IsFileWord(absl::string_view text, size_t max_bytes, absl::string_view also) {
  return !text.empty() && text.size() <= max_bytes && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(also, c);
         });
}

absl::Status Malformed(absl::string_view what, absl::string_view value, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("cache key: ", what, " '", Printable(value), "' is not ", wanted));
}

}  // namespace

std::string Sha256OfParts(absl::Span<const std::string> parts) {
  std::string text;
  for (const std::string& part : parts) absl::StrAppend(&text, part.size(), ":", part, "\n");
  return Sha256Hex(text);
}

bool IsValidScope(absl::string_view scope) { return IsFileWord(scope, kMaxScopeBytes, "_-."); }
bool IsValidSha256(absl::string_view hex) { return IsLowerHex(hex, 64); }
bool IsValidMd5(absl::string_view hex) { return IsLowerHex(hex, 32); }

absl::StatusOr<CacheKey> CacheKey::Make(const CacheKeyParts& parts) {
  if (!IsValidScope(parts.scope)) return Malformed("scope", parts.scope, "a scope's name");
  if (!IsValidMd5(parts.model_md5)) return Malformed("model MD5", parts.model_md5, "32 hex digits");
  if (!IsValidSha256(parts.model_sha256)) {
    return Malformed("model SHA-256", parts.model_sha256, "64 hex digits");
  }
  if (!IsValidSha256(parts.options_sha256)) {
    return Malformed("options hash", parts.options_sha256, "64 hex digits");
  }
  if (parts.compiler_build_id.empty()) return Malformed("build id", "", "given");
  std::vector<CacheKeyParts::SideInput> sides = parts.side_inputs;
  std::sort(sides.begin(), sides.end(),
            [](const auto& a, const auto& b) { return a.role < b.role; });
  std::vector<std::string> text = {"npuc artifact key 1",   parts.scope,
                                   parts.model_md5,         absl::StrCat(parts.model_bytes),
                                   parts.model_sha256,      parts.options_sha256,
                                   parts.compiler_build_id, absl::StrCat(sides.size())};
  for (size_t i = 0; i < sides.size(); ++i) {
    if (i > 0 && sides[i].role == sides[i - 1].role) {
      return Malformed("side input role", sides[i].role, "given once");
    }
    if (!IsValidSha256(sides[i].sha256)) {
      return Malformed("side input SHA-256", sides[i].sha256, "64 hex digits");
    }
    text.push_back(sides[i].role);
    text.push_back(sides[i].sha256);
  }
  return CacheKey(parts.scope, Sha256OfParts(text));
}

absl::StatusOr<CacheKey> CacheKey::Parse(absl::string_view text) {
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos || !IsValidScope(text.substr(0, slash)) ||
      !IsValidSha256(text.substr(slash + 1))) {
    return Malformed("text", text, "<scope>/<64 hex digits>");
  }
  return CacheKey(std::string(text.substr(0, slash)), std::string(text.substr(slash + 1)));
}

}  // namespace npuc::cache
