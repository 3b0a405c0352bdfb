// Signs the requests of its standard input, a line each, for the comparison with botocore
// (signature_oracle_test.py): fields in hex between tabs are method, host, path, query, headers,
// payload, key id, secret, session token, region and seconds since 1970. A query and headers are
// name, value, name, value... between commas. Prints the headers `authorization` and the target.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/digest.h"
#include "server/objects/signature.h"

namespace npuc::objects {
namespace {

std::map<std::string, std::string> PairsOf(const std::string& field) {
  std::map<std::string, std::string> pairs;
  const std::vector<std::string> parts = absl::StrSplit(field, ',');
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    pairs[absl::HexStringToBytes(parts[i])] = absl::HexStringToBytes(parts[i + 1]);
  }
  return pairs;
}

bool SignLine(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, '\t');
  if (fields.size() != 11) return false;
  const auto text = [&](size_t i) { return absl::HexStringToBytes(fields[i]); };
  int64_t seconds = 0;
  if (!absl::SimpleAtoi(text(10), &seconds)) return false;
  const S3Request request{.method = text(0),
                          .host = text(1),
                          .path = text(2),
                          .query = PairsOf(fields[3]),
                          .headers = PairsOf(fields[4]),
                          .payload_sha256 = Sha256Hex(text(5))};
  const Credentials credentials{.key_id = text(6), .secret = text(7), .session_token = text(8)};
  const auto headers =
      SignatureHeaders(request, credentials, text(9), absl::FromUnixSeconds(seconds));
  std::cout << headers.at("authorization") << '\t' << TargetOf(request) << '\n';
  return true;
}

}  // namespace
}  // namespace npuc::objects

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    if (!npuc::objects::SignLine(line)) return 1;
  }
  return 0;
}
