#include "server/otlp/otlp_json.h"

#include "compiler_core/base/json_tree.h"
#include "gtest/gtest.h"

namespace npuc::otlp {
namespace {

observe::Span ASpan() {
  return {.trace_id = "0af7651916cd43dd8448eb211c80319c",
          .span_id = "b7ad6b7169203331",
          .parent_id = "00f067aa0ba902b7",
          .name = "run",
          .kind = observe::Span::Kind::kServer,
          .start = absl::FromUnixMicros(1'700'000'000'000'001) + absl::Nanoseconds(999),
          .end = absl::FromUnixMicros(1'700'000'000'000'002),
          .attributes = {{"npuc.attempt", int64_t{2}},
                         {"npuc.job.id", std::string("j1")},
                         {"share", 0.5},
                         {"hit", true}}};
}

TEST(OtlpJsonTest, IsTheProtocolsJson) {
  EXPECT_EQ(EncodeSpans({.service_version = "1.2", .instance_id = "node-a"}, {ASpan()}),
            R"({"resourceSpans":[{"resource":{"attributes":[)"
            R"({"key":"service.name","value":{"stringValue":"npucd"}},)"
            R"({"key":"service.version","value":{"stringValue":"1.2"}},)"
            R"({"key":"service.instance.id","value":{"stringValue":"node-a"}}]},)"
            R"("scopeSpans":[{"scope":{"name":"npucd","version":"1.2"},"spans":[)"
            R"({"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331",)"
            R"("parentSpanId":"00f067aa0ba902b7","name":"run","kind":2,)"
            R"("startTimeUnixNano":"1700000000000001000","endTimeUnixNano":"1700000000000002000",)"
            R"("attributes":[{"key":"npuc.attempt","value":{"intValue":"2"}},)"
            R"({"key":"npuc.job.id","value":{"stringValue":"j1"}},)"
            R"({"key":"share","value":{"doubleValue":0.5}},)"
            R"({"key":"hit","value":{"boolValue":true}}],"status":{}}]}]}]})");
}

TEST(OtlpJsonTest, WhateverTextsHoldItIsJson) {
  observe::Span span = ASpan();
  span.name = "a\"b\\c\n\x01\xff";
  span.is_error = true;
  span.error = std::string(10'000, '"');
  span.end = absl::InfinitePast();
  const std::string body = EncodeSpans({}, {span, span});
  JsonNode root;
  JsonError error;
  EXPECT_TRUE(ParseJsonTree(body, {}, root, error)) << error.message;
  EXPECT_LT(body.size(), 4 * 10'000u);
}

TEST(OtlpJsonTest, ReadsWhatWasRejected) {
  EXPECT_EQ(RejectedSpans(R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}})"), 3);
  EXPECT_EQ(RejectedSpans(R"({"partialSuccess":{"rejectedSpans":4}})"), 4);
  EXPECT_EQ(RejectedSpans(R"({"partialSuccess":{"rejectedSpans":"-1"}})"), 0);
  EXPECT_EQ(RejectedSpans(R"({"partialSuccess":{}})"), 0);
  EXPECT_EQ(RejectedSpans("{}"), 0);
  EXPECT_EQ(RejectedSpans("[]"), 0);
  EXPECT_EQ(RejectedSpans("<html>"), 0);
  EXPECT_EQ(RejectedSpans(std::string(50'000, '[')), 0);
}

}  // namespace
}  // namespace npuc::otlp
