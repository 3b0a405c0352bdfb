#ifndef NPUC_SERVER_OBJECTS_SIGNATURE_H_
#define NPUC_SERVER_OBJECTS_SIGNATURE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace npuc::objects {

struct Credentials {
  std::string key_id = {};
  std::string secret = {};
  std::string session_token = {};  // of temporary credentials; else empty
};

// Reads lines `aws_access_key_id = ID`, `aws_secret_access_key = SECRET` and, of temporary ones,
// `aws_session_token = TOKEN`, as in the files of Amazon's tools; a line [default], empty lines and
// those that begin with '#' are skipped. INVALID_ARGUMENT names the line; no error has its text.
absl::StatusOr<Credentials> ParseCredentials(absl::string_view text);

// A request to S3 as its signature covers it.
struct S3Request {
  std::string method = "GET";
  std::string host = {};                            // as the header Host has it
  std::string path = {};                            // "/a b", not encoded
  std::map<std::string, std::string> query = {};    // not encoded
  std::map<std::string, std::string> headers = {};  // further ones to sign, in lower case
  std::string payload_sha256 = {};                  // of the body, in hex
};

// "/a%20b?x=%2F", as the request's line has them.
std::string TargetOf(const S3Request& request);

// The headers of the signature to send beside those of the request, in lower case: host,
// authorization, x-amz-date, x-amz-content-sha256 and, where there is one, x-amz-security-token
// (AWS Signature Version 4, for the service s3).
std::map<std::string, std::string> SignatureHeaders(const S3Request& request,
                                                    const Credentials& credentials,
                                                    absl::string_view region, absl::Time time);

}  // namespace npuc::objects

#endif  // NPUC_SERVER_OBJECTS_SIGNATURE_H_
