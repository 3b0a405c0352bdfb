#include "server/objects/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/base/ascii.h"
#include "server/base/percent_encoded.h"

namespace npuc::objects {
namespace {

constexpr size_t kMaxCredentialBytes = 4096;
constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

std::string Hmac(absl::string_view key, absl::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  NPUC_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest,
                  &size) != nullptr);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

// Each part between slashes is encoded once, as S3 has it; other services encode twice.
std::string EncodedPath(absl::string_view path) {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    parts.push_back(base::PercentEncoded(part));
  }
  return absl::StrJoin(parts, "/");
}

// Sorted by the encoded names: with the '=' behind them "a" would come after "a%20".
std::string EncodedQuery(const std::map<std::string, std::string>& query) {
  std::map<std::string, std::string> encoded;
  for (const auto& [name, value] : query) {
    encoded[base::PercentEncoded(name)] = base::PercentEncoded(value);
  }
  return absl::StrJoin(encoded, "&", absl::PairFormatter("="));
}

absl::Status BadCredentials(size_t line, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, " ", why));
}

}  // namespace

absl::StatusOr<Credentials> ParseCredentials(absl::string_view text) {
  Credentials read;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line == "[default]") continue;
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(halves.first);
    const absl::string_view value = absl::StripAsciiWhitespace(halves.second);
    std::string* const to = name == "aws_access_key_id"       ? &read.key_id
                            : name == "aws_secret_access_key" ? &read.secret
                            : name == "aws_session_token"     ? &read.session_token
                                                              : nullptr;
    if (to == nullptr) {
      return BadCredentials(number,
                            "is none of [default], aws_access_key_id = ID, aws_secret_access_key = "
                            "SECRET and aws_session_token = TOKEN");
    }
    const bool is_good = !value.empty() && value.size() <= kMaxCredentialBytes && to->empty() &&
                         base::IsGraphic(value);
    if (!is_good) {
      return BadCredentials(number, absl::StrCat("has no value of 1 to ", kMaxCredentialBytes,
                                                 " characters without spaces, or a second one"));
    }
    *to = std::string(value);
  }
  if (read.key_id.empty() || read.secret.empty()) {
    return absl::InvalidArgumentError(
        "it lacks aws_access_key_id = ID or aws_secret_access_key = SECRET");
  }
  return read;
}

std::string TargetOf(const S3Request& request) {
  const std::string query = EncodedQuery(request.query);
  return absl::StrCat(EncodedPath(request.path), query.empty() ? "" : "?", query);
}

std::map<std::string, std::string> SignatureHeaders(const S3Request& request,
                                                    const Credentials& credentials,
                                                    absl::string_view region, absl::Time time) {
  const std::string when = absl::FormatTime("%Y%m%dT%H%M%SZ", time, absl::UTCTimeZone());
  const std::string day = when.substr(0, 8);
  std::map<std::string, std::string> added = {{"host", request.host},
                                              {"x-amz-content-sha256", request.payload_sha256},
                                              {"x-amz-date", when}};
  if (!credentials.session_token.empty()) {
    added["x-amz-security-token"] = credentials.session_token;
  }
  std::map<std::string, std::string> all = added;
  all.insert(request.headers.begin(), request.headers.end());
  std::string lines;
  std::vector<std::string> names;
  for (auto& [name, value] : all) {
    absl::RemoveExtraAsciiWhitespace(&value);
    absl::StrAppend(&lines, name, ":", value, "\n");
    names.push_back(name);
  }
  const std::string signed_names = absl::StrJoin(names, ";");
  const std::string canonical = absl::StrCat(request.method, "\n", EncodedPath(request.path), "\n",
                                             EncodedQuery(request.query), "\n", lines, "\n",
                                             signed_names, "\n", request.payload_sha256);
  const std::string scope = absl::StrCat(day, "/", region, "/s3/aws4_request");
  const std::string to_sign =
      absl::StrCat(kAlgorithm, "\n", when, "\n", scope, "\n", Sha256Hex(canonical));
  std::string key = absl::StrCat("AWS4", credentials.secret);
  for (const absl::string_view part : {absl::string_view(day), region, absl::string_view("s3"),
                                       absl::string_view("aws4_request")}) {
    key = Hmac(key, part);
  }
  added["authorization"] = absl::StrCat(kAlgorithm, " Credential=", credentials.key_id, "/", scope,
                                        ", SignedHeaders=", signed_names,
                                        ", Signature=", absl::BytesToHexString(Hmac(key, to_sign)));
  return added;
}

}  // namespace npuc::objects
