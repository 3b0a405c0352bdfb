#include "server/objects/s3_store.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/http_client/url.h"
#include "server/objects/xml.h"

namespace npuc::objects {
namespace {

constexpr size_t kHashedAtOnce = size_t{1} << 20;
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);

// The text of the first leaf of that name below the root; empty: there is none.
std::string TextOf(const std::vector<XmlLeaf>& leaves, absl::string_view name) {
  for (const XmlLeaf& leaf : leaves) {
    if (absl::EndsWith(leaf.path, absl::StrCat("/", name))) return leaf.text;
  }
  return "";
}

// "NoSuchKey" and the like; empty where the answer does not say.
std::string CodeOf(const http_client::Answer& answer) {
  const auto leaves = ReadXmlLeaves(answer.body);
  return leaves.ok() ? TextOf(*leaves, "Code") : "";
}

// An answer that is no success. NOT_FOUND only where the server itself says that there is no such
// object: a proxy's 404, or a missing bucket, must not look like a lost content.
absl::Status StatusOfAnswer(const http_client::Answer& answer, absl::string_view what) {
  const std::string code = CodeOf(answer);
  const std::string text = absl::StrCat(what, ": S3 answers ", answer.status,
                                        code.empty() ? "" : " ", Printable(code, 64));
  if (answer.status == 404 && code == "NoSuchKey") return absl::NotFoundError(text);
  if (answer.status == 401 || answer.status == 403) return absl::PermissionDeniedError(text);
  if (answer.status == 507 || code == "QuotaExceeded" || code == "EntityTooLarge") {
    return absl::ResourceExhaustedError(text);
  }
  return absl::UnavailableError(text);
}

bool IsWorthATry(const absl::StatusOr<http_client::Answer>& answer) {
  if (!answer.ok()) return absl::IsUnavailable(answer.status());
  return answer->status == 429 ||
         (answer->status >= 500 && answer->status != 501 && answer->status != 507);
}

absl::Duration RandomPause(absl::Duration longest) {
  thread_local std::mt19937 random{std::random_device{}()};
  return longest * std::uniform_real_distribution<double>(0.2, 1)(random);
}

absl::StatusOr<std::string> Sha256Of(absl::string_view name, uint64_t bytes,
                                     const base::ByteReader& read) {
  Sha256Stream digest;
  for (uint64_t offset = 0; offset < bytes;) {
    ASSIGN_OR_RETURN(const std::string part,
                     base::ReadNext(read, offset, bytes, kHashedAtOnce, name));
    digest.Update(part);
    offset += part.size();
  }
  return digest.FinishHex();
}

}  // namespace

S3Store::S3Store(S3Options options)
    : options_(std::move(options)), empty_sha256_(Sha256Hex("")), client_(options_.ca_file) {}

std::string S3Store::KeyOf(absl::string_view name) const {
  NPUC_CHECK(IsObjectName(name));
  return absl::StrCat(options_.location.prefix, name);
}

absl::StatusOr<http_client::Answer> S3Store::SendOnce(const Call& call) {
  absl::StatusOr<Credentials> credentials = options_.credentials();
  // An operator mends the file; what is asked meanwhile is asked again.
  if (!credentials.ok()) return absl::PermissionDeniedError(credentials.status().message());
  const Location& location = options_.location;
  absl::string_view scheme = location.endpoint;
  const absl::string_view authority = http_client::AuthorityOf(location.endpoint);
  scheme.remove_suffix(authority.size());
  const std::string key = absl::StrCat("/", call.key);
  const S3Request request{
      .method = call.method,
      .host = location.is_path_style ? std::string(authority)
                                     : absl::StrCat(location.bucket, ".", authority),
      .path = location.is_path_style ? absl::StrCat("/", location.bucket, key) : key,
      .query = call.query,
      .headers = call.headers,
      .payload_sha256 = call.payload_sha256};
  const absl::Time time = options_.now() + absl::Seconds(clock_offset_s_.load());
  http_client::Request http{.method = call.method,
                            .url = absl::StrCat(scheme, request.host, TargetOf(request)),
                            .headers = {call.headers.begin(), call.headers.end()},
                            .body_bytes = call.body_bytes,
                            .body = call.body,
                            .limits = options_.limits};
  http.limits.answer_bytes = call.max_answer_bytes;
  for (auto& header : SignatureHeaders(request, *credentials, location.region, time)) {
    http.headers.push_back(header);
  }
  absl::StatusOr<http_client::Answer> answer = client_.Send(http);
  const bool is_away =
      absl::IsDeadlineExceeded(answer.status()) || absl::IsInvalidArgument(answer.status());
  if (is_away) return absl::UnavailableError(answer.status().message());
  return answer;
}

void S3Store::TakeTimeOf(const http_client::Answer& answer) {
  const auto date = answer.headers.find("date");
  if (date == answer.headers.end()) return;
  absl::Time time;
  std::string error;
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", date->second, &time, &error)) return;
  clock_offset_s_ = absl::ToInt64Seconds(time - options_.now());
}

absl::StatusOr<http_client::Answer> S3Store::Send(const Call& call) {
  absl::StatusOr<http_client::Answer> answer = SendOnce(call);
  absl::Duration pause = kFirstPause;
  for (int tries = 1; tries < kMaxTries; ++tries, pause *= 3) {
    if (answer.ok() && answer->status == 403 && CodeOf(*answer) == "RequestTimeTooSkewed") {
      TakeTimeOf(*answer);
    } else if (IsWorthATry(answer)) {
      options_.sleep(RandomPause(pause));
    } else {
      break;
    }
    answer = SendOnce(call);
  }
  return answer;
}

absl::Status S3Store::Put(absl::string_view name, uint64_t bytes, const base::ByteReader& read) {
  ASSIGN_OR_RETURN(const std::string sha256, Sha256Of(name, bytes, read));
  ASSIGN_OR_RETURN(const http_client::Answer answer, Send({.method = "PUT",
                                                           .key = KeyOf(name),
                                                           .payload_sha256 = sha256,
                                                           .body_bytes = bytes,
                                                           .body = read}));
  if (answer.status == 200) return absl::OkStatus();
  return StatusOfAnswer(answer, absl::StrCat("cannot put ", name));
}

absl::StatusOr<std::string> S3Store::Read(absl::string_view name, uint64_t offset,
                                          size_t max_bytes) {
  NPUC_CHECK(max_bytes > 0 && max_bytes <= kMaxReadBytes);
  const std::string range = absl::StrCat("bytes=", offset, "-", offset + max_bytes - 1);
  // An error's text may be longer than the bytes asked for.
  ASSIGN_OR_RETURN(http_client::Answer answer,
                   Send({.key = KeyOf(name),
                         .headers = {{"range", range}},
                         .payload_sha256 = empty_sha256_,
                         .max_answer_bytes = std::max(max_bytes, kMaxAnswerBytes)}));
  const bool is_whole = answer.status == 200 && offset == 0;
  if ((answer.status == 206 || is_whole) && answer.body.size() <= max_bytes) {
    return std::move(answer.body);
  }
  if (answer.status == 416) return std::string();  // behind the end
  return StatusOfAnswer(answer, absl::StrCat("cannot read ", name));
}

absl::Status S3Store::Remove(absl::string_view name) {
  ASSIGN_OR_RETURN(const http_client::Answer answer,
                   Send({.method = "DELETE", .key = KeyOf(name), .payload_sha256 = empty_sha256_}));
  if (answer.status == 204 || answer.status == 200) return absl::OkStatus();
  const absl::Status status = StatusOfAnswer(answer, absl::StrCat("cannot remove ", name));
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<ObjectStore::Listing> S3Store::List(absl::string_view folder,
                                                   absl::string_view after) {
  Call call{.query = {{"list-type", "2"},
                      {"max-keys", absl::StrCat(kMaxListed)},
                      {"prefix", absl::StrCat(KeyOf(folder), "/")}},
            .payload_sha256 = empty_sha256_};
  if (!after.empty()) call.query["start-after"] = KeyOf(after);
  ASSIGN_OR_RETURN(const http_client::Answer answer, Send(call));
  if (answer.status != 200) return StatusOfAnswer(answer, absl::StrCat("cannot list ", folder));
  const auto leaves = ReadXmlLeaves(answer.body);
  if (!leaves.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the list of S3 is none: ", leaves.status().message()));
  }
  Listing listing;
  for (const XmlLeaf& leaf : *leaves) {
    if (leaf.path == "ListBucketResult/IsTruncated") listing.is_end = leaf.text != "true";
    if (leaf.path != "ListBucketResult/Contents/Key") continue;
    absl::string_view name = leaf.text;
    // Objects of others are none of this store's.
    if (!absl::ConsumePrefix(&name, options_.location.prefix) || !IsObjectName(name) ||
        !absl::StartsWith(name, absl::StrCat(folder, "/"))) {
      continue;
    }
    listing.names.emplace_back(name);
  }
  // Without a name to go on behind, the same page would come for ever.
  if (listing.names.empty()) listing.is_end = true;
  return listing;
}

}  // namespace npuc::objects
