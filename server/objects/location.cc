#include "server/objects/location.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/http_client/url.h"
#include "server/objects/object_store.h"

namespace npuc::objects {
namespace {

constexpr size_t kMaxPrefixBytes = 100;  // beside an object's name

absl::Status BadLocation(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", Printable(text, 256), "': ", why));
}

bool IsBucket(absl::string_view name) {
  return name.size() >= 3 && name.size() <= 63 && absl::ascii_isalnum(name.front()) &&
         absl::ascii_isalnum(name.back()) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '.';
         });
}

bool IsRegion(absl::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
         });
}

absl::Status SetParameter(absl::string_view name, absl::string_view value, std::string* style,
                          Location* to) {
  if (name == "region" && IsRegion(value)) {
    to->region = std::string(value);
  } else if (name == "style" && (value == "path" || value == "virtual")) {
    *style = std::string(value);
  } else if (name == "endpoint") {
    RETURN_IF_ERROR(http_client::CheckConfidentialUrl(value));
    const absl::string_view authority = http_client::AuthorityOf(value);
    if (!absl::EndsWith(value, absl::StrCat("://", authority))) {
      return absl::InvalidArgumentError("an endpoint is https://HOST[:PORT], with nothing behind");
    }
    to->endpoint = std::string(value);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", Printable(name, 64), "=", Printable(value, 64),
        "' is none of region=NAME, endpoint=https://HOST[:PORT], style=path and style=virtual"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Location> ParseS3(absl::string_view text, absl::string_view rest) {
  Location location{.kind = Location::Kind::kS3};
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(rest, absl::MaxSplits('?', 1));
  const std::pair<absl::string_view, absl::string_view> names =
      absl::StrSplit(halves.first, absl::MaxSplits('/', 1));
  location.bucket = std::string(names.first);
  if (!IsBucket(location.bucket)) {
    return BadLocation(text, "a bucket's name is 3 to 63 lower-case letters, digits, '-' and '.'");
  }
  const absl::string_view prefix = absl::StripSuffix(names.second, "/");
  if (!prefix.empty()) {
    if (prefix.size() > kMaxPrefixBytes || !IsObjectName(prefix)) {
      return BadLocation(text, absl::StrCat("a prefix is up to ", kMaxPrefixBytes,
                                            " lower-case letters, digits, '-', '_' and '.', in "
                                            "parts between '/'"));
    }
    location.prefix = absl::StrCat(prefix, "/");
  }
  std::string style;
  for (const absl::string_view one : absl::StrSplit(halves.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parameter =
        absl::StrSplit(one, absl::MaxSplits('=', 1));
    const absl::Status set = SetParameter(parameter.first, parameter.second, &style, &location);
    if (!set.ok()) return BadLocation(text, set.message());
  }
  if (location.region.empty()) {
    return BadLocation(text, "write ?region=NAME behind it; us-east-1 where the store has none");
  }
  location.is_path_style = style.empty() ? !location.endpoint.empty() : style == "path";
  if (location.endpoint.empty()) {
    location.endpoint = absl::StrCat("https://s3.", location.region, ".amazonaws.com");
  }
  return location;
}

}  // namespace

absl::StatusOr<Location> ParseLocation(absl::string_view text) {
  if (text == "pg") return Location();
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "s3://")) return ParseS3(text, rest);
  if (absl::ConsumePrefix(&rest, "file://")) {
    if (absl::StartsWith(rest, "/") && rest.size() > 1 && rest.find('\0') == rest.npos) {
      return Location{.kind = Location::Kind::kFolder,
                      .folder = std::string(absl::StripSuffix(rest, "/"))};
    }
    return BadLocation(text, "write file:///FOLDER with the folder's absolute path");
  }
  return BadLocation(text, "it is none of pg, s3://BUCKET/PREFIX?region=NAME and file:///FOLDER");
}

}  // namespace npuc::objects
