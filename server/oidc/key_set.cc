#include "server/oidc/key_set.h"

#include <cjose/cjose.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/oidc/json_document.h"

namespace npuc::oidc {
namespace {

constexpr char kRs256[] = "RS256";
constexpr char kEs256[] = "ES256";
constexpr size_t kMaxHeaderChars = 4096;
constexpr size_t kMaxKeyIdBytes = 256;
constexpr size_t kMinRsaBits = 2048;
constexpr size_t kMaxRsaBits = 8192;
constexpr size_t kMaxExponentChars = 11;  // 8 bytes

absl::Status BadToken(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the ID token ", why));
}

bool IsBase64Url(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  });
}

// The parts of a key that cjose reads; nullopt: a kind or a use that is not wanted here.
std::optional<std::string> UsableJson(const JsonNode& key, std::string& algorithm) {
  const std::string kind = TextIn(key, "kty");
  const auto is_absent_or = [&key](const char* name, absl::string_view value) {
    return FindIn(key, name) == nullptr || TextIn(key, name) == value;
  };
  const bool is_rsa = kind == "RSA";
  algorithm = is_rsa ? kRs256 : kEs256;
  if (!is_absent_or("use", "sig") || !is_absent_or("alg", algorithm)) return std::nullopt;
  if (is_rsa) {
    const std::string n = TextIn(key, "n"), e = TextIn(key, "e");
    if (!IsBase64Url(n) || !IsBase64Url(e) || n.size() > kMaxRsaBits / 4 ||
        e.size() > kMaxExponentChars)
      return std::nullopt;
    return absl::StrCat(R"({"kty":"RSA","n":")", n, R"(","e":")", e, R"("})");
  }
  const std::string x = TextIn(key, "x"), y = TextIn(key, "y");
  constexpr size_t kCoordinateChars = 43;  // 32 bytes
  if (kind != "EC" || TextIn(key, "crv") != "P-256" || x.size() != kCoordinateChars ||
      y.size() != kCoordinateChars || !IsBase64Url(x) || !IsBase64Url(y))
    return std::nullopt;
  return absl::StrCat(R"({"kty":"EC","crv":"P-256","x":")", x, R"(","y":")", y, R"("})");
}

struct FreeJws {
  void operator()(cjose_jws_t* jws) const { cjose_jws_release(jws); }
};

// The header of the token; what it asks for that is not known here is an error (RFC 7515, crit).
absl::StatusOr<JsonNode> ReadHeader(absl::string_view token) {
  const std::vector<absl::string_view> parts = absl::StrSplit(token, '.');
  const bool is_compact =
      token.size() <= kMaxTokenBytes && parts.size() == 3 && parts[0].size() <= kMaxHeaderChars &&
      std::all_of(parts.begin(), parts.end(),
                  [](absl::string_view part) { return !part.empty() && IsBase64Url(part); });
  if (!is_compact) {
    // An unsigned token ends with the dot before its signature.
    return BadToken(absl::EndsWith(token, ".") ? "is not signed" : "is no signed token");
  }
  std::string text;
  if (!absl::WebSafeBase64Unescape(parts[0], &text)) return BadToken("has a header of no base64");
  ASSIGN_OR_RETURN(JsonNode header, ParseDocument(text, "the header of the ID token"));
  if (FindIn(header, "crit") != nullptr || FindIn(header, "b64") != nullptr) {
    return BadToken("asks for extensions that are not known here");
  }
  return header;
}

}  // namespace

void KeySet::Free::operator()(_cjose_jwk_int* key) const { cjose_jwk_release(key); }

absl::StatusOr<KeySet> KeySet::Parse(absl::string_view document) {
  ASSIGN_OR_RETURN(const JsonNode root, ParseDocument(document, "the provider's key set"));
  const JsonNode* const list = FindIn(root, "keys");
  if (list == nullptr || list->kind != JsonNode::Kind::kArray || list->items.size() > kMaxKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("the provider's key set has no list of at most ", kMaxKeys, " keys"));
  }
  KeySet keys;
  for (const JsonNode& item : list->items) {
    std::string algorithm;
    const std::string id = TextIn(item, "kid");
    const std::optional<std::string> json = UsableJson(item, algorithm);
    if (!json.has_value() || id.size() > kMaxKeyIdBytes) continue;
    cjose_err error = {};
    std::unique_ptr<cjose_jwk_t, Free> key(cjose_jwk_import(json->data(), json->size(), &error));
    if (key == nullptr) continue;
    const size_t bits = cjose_jwk_get_keysize(key.get(), &error);
    if (algorithm == kRs256 && (bits < kMinRsaBits || bits > kMaxRsaBits)) continue;
    keys.keys_.push_back({id, algorithm, std::move(key)});
  }
  if (!keys.keys_.empty()) return keys;
  return absl::InvalidArgumentError(
      "the provider's key set has no key for RS256 (RSA of 2048 to 8192 bits) or ES256 (P-256)");
}

const KeySet::Key* KeySet::Find(absl::string_view id, absl::string_view algorithm) const {
  const Key* found = nullptr;
  for (const Key& key : keys_) {
    if (key.algorithm != algorithm || (!id.empty() && key.id != id)) continue;
    if (found != nullptr) return nullptr;
    found = &key;
  }
  return found;
}

absl::StatusOr<std::string> KeySet::Verify(absl::string_view token) const {
  ASSIGN_OR_RETURN(const JsonNode header, ReadHeader(token));
  const std::string algorithm = TextIn(header, "alg");
  if (algorithm != kRs256 && algorithm != kEs256) {
    return BadToken(
        absl::StrCat("is signed by '", Printable(algorithm, 32), "'; RS256 and ES256 are taken"));
  }
  const std::string id = TextIn(header, "kid");
  const Key* const key = Find(id, algorithm);
  if (key == nullptr) {
    return absl::NotFoundError(absl::StrCat("the ID token names the key '", Printable(id, 64),
                                            "' for ", algorithm, ", which the provider's key set ",
                                            "does not have, or has twice"));
  }
  cjose_err error = {};
  const std::unique_ptr<cjose_jws_t, FreeJws> jws(
      cjose_jws_import(token.data(), token.size(), &error));
  if (jws == nullptr) return BadToken("is no signed token");
  if (!cjose_jws_verify(jws.get(), key->key.get(), &error)) {
    return BadToken("has a signature that is not the provider's");
  }
  uint8_t* bytes = nullptr;  // stays the token's
  size_t size = 0;
  if (!cjose_jws_get_plaintext(jws.get(), &bytes, &size, &error)) return BadToken("has no content");
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace npuc::oidc
