#include "server/otlp/otlp_json.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/json_tree.h"
#include "server/log/log.h"

namespace npuc::otlp {
namespace {

using log::JsonString;

constexpr int kStatusError = 2;  // STATUS_CODE_ERROR

struct ValueJson {
  std::string operator()(const std::string& text) const {
    return absl::StrCat("{\"stringValue\":", JsonString(text), "}");
  }
  std::string operator()(int64_t number) const {
    return absl::StrCat("{\"intValue\":\"", number, "\"}");
  }
  std::string operator()(double number) const {
    return absl::StrCat("{\"doubleValue\":", JsonNumber(number), "}");
  }
  std::string operator()(bool flag) const {
    return flag ? "{\"boolValue\":true}" : "{\"boolValue\":false}";
  }
};

void AppendAttribute(absl::string_view key, const observe::Span::Value& value, std::string* out) {
  absl::StrAppend(out, out->back() == '[' ? "" : ",", "{\"key\":", JsonString(key),
                  ",\"value\":", std::visit(ValueJson(), value), "}");
}

std::string UnixNanos(absl::Time time) {
  return absl::StrCat(std::max<int64_t>(0, absl::ToUnixMicros(time)), "000");
}

void AppendSpan(const observe::Span& span, std::string* out) {
  absl::StrAppend(out, "{\"traceId\":", JsonString(span.trace_id),
                  ",\"spanId\":", JsonString(span.span_id));
  if (!span.parent_id.empty()) {
    absl::StrAppend(out, ",\"parentSpanId\":", JsonString(span.parent_id));
  }
  absl::StrAppend(out, ",\"name\":", JsonString(span.name),
                  ",\"kind\":", static_cast<int>(span.kind), ",\"startTimeUnixNano\":\"",
                  UnixNanos(span.start), "\",\"endTimeUnixNano\":\"",
                  UnixNanos(std::max(span.start, span.end)), "\",\"attributes\":[");
  for (const auto& [key, value] : span.attributes) AppendAttribute(key, value, out);
  absl::StrAppend(out, "],\"status\":{");
  if (span.is_error) {
    absl::StrAppend(out, "\"message\":", JsonString(span.error), ",\"code\":", kStatusError);
  }
  absl::StrAppend(out, "}}");
}

// The value of a key of an object; null: it has none.
const JsonNode* Find(const JsonNode& node, absl::string_view name) {
  for (size_t i = 0; i < node.keys.size(); ++i) {
    if (node.keys[i].name == name) return &node.items[i];
  }
  return nullptr;
}

}  // namespace

std::string EncodeSpans(const Resource& resource, const std::vector<observe::Span>& spans) {
  std::string out = "{\"resourceSpans\":[{\"resource\":{\"attributes\":[";
  AppendAttribute("service.name", resource.service_name, &out);
  AppendAttribute("service.version", resource.service_version, &out);
  AppendAttribute("service.instance.id", resource.instance_id, &out);
  absl::StrAppend(&out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"npucd\",\"version\":",
                  JsonString(resource.service_version), "},\"spans\":[");
  for (const observe::Span& span : spans) {
    if (&span != spans.data()) out.push_back(',');
    AppendSpan(span, &out);
  }
  absl::StrAppend(&out, "]}]}]}");
  return out;
}

int64_t RejectedSpans(absl::string_view body) {
  JsonNode root;
  JsonError error;
  if (!ParseJsonTree(body, {.bytes = size_t{64} << 10, .depth = 8, .nodes = 10'000}, root, error)) {
    return 0;
  }
  const JsonNode* const partial = Find(root, "partialSuccess");
  const JsonNode* const rejected = partial == nullptr ? nullptr : Find(*partial, "rejectedSpans");
  int64_t count = 0;
  // A number, or its digits as text.
  if (rejected == nullptr || !absl::SimpleAtoi(rejected->text, &count)) return 0;
  return std::max<int64_t>(0, count);
}

}  // namespace npuc::otlp
