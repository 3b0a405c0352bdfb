#ifndef NPUC_SERVER_HTTP_JSON_H_
#define NPUC_SERVER_HTTP_JSON_H_

#include <google/protobuf/message.h>

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace npuc::http {

// Between the wire's messages and proto3 JSON, by protobuf's own conversion: names in camelCase,
// 64-bit numbers as text, fields of their default value left out. Pure.

std::string ToJson(const google::protobuf::Message& message);

// INVALID_ARGUMENT (INVALID_JSON): it is no JSON of this message; unknown fields included. Empty
// text is an empty message.
absl::Status FromJson(absl::string_view text, google::protobuf::Message* message);

// Query parameters into fields of the same names, in camelCase or snake_case, of `message` or of a
// message in it; scalars, enums by name or number, times as RFC 3339, and repeated ones. `required`
// is the name of one that must be given, "field" or "message.field"; empty: none. INVALID_ARGUMENT
// (INVALID_FIELD): all that is wrong with them.
absl::Status FromQuery(const std::multimap<std::string, std::string>& query,
                       absl::string_view required, google::protobuf::Message* message);

// Sets a string or bytes field, "field" or "message.field", which `message` must have.
void SetText(absl::string_view field, const std::string& text, google::protobuf::Message* message);

// Clears all fields of `message` but this one, which it must have.
void LeaveField(absl::string_view field, google::protobuf::Message* message);

// An error as JSON of google.rpc.Status, details included, and how HTTP says it.
struct HttpError {
  int http_status = 500;
  std::string body;
  std::string retry_after;  // whole seconds; empty: no retry is invited
};
HttpError ToHttpError(const absl::Status& status);

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_JSON_H_
