#include "server/worker/protocol.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::worker {
namespace {

std::vector<WorkerEvent> Events() {
  std::vector<WorkerEvent> events(6);
  for (size_t i = 0; i < events.size(); ++i) {
    events[i].type = static_cast<WorkerEvent::Type>(i + 1);
    events[i].text = "text";
  }
  events[2].fraction = 0.25;
  events[3].diagnostic = {DiagnosticKind::kCompileCancelled, "m", "f", 1, 2, "n", "o", "l", "x"};
  events[4].size_bytes = 12345678901;
  events[5].end = WorkerEvent::End::kOurFault;
  events[5].code = absl::StatusCode::kDataLoss;
  events[5].dropped_diagnostics = 3;
  return events;
}

TEST(Protocol, EventsRoundTripInPiecesOfAnySize) {
  std::string stream;
  for (const WorkerEvent& event : Events()) stream += EncodeEvent(event);
  for (size_t piece = 1; piece < stream.size(); piece += 7) {
    EventDecoder decoder;
    std::string again;
    size_t count = 0;
    for (size_t at = 0; at < stream.size(); at += piece) {
      decoder.Feed(absl::string_view(stream).substr(at, piece));
      WorkerEvent event;
      while (true) {
        const auto more = decoder.Next(event);
        ASSERT_TRUE(more.ok()) << more.status();
        if (!*more) break;
        ++count;
        again += EncodeEvent(event);
      }
    }
    EXPECT_EQ(count, 6u);
    EXPECT_EQ(again, stream);
  }
}

TEST(Protocol, AWorkerOfAnotherBuildIsNamed) {
  const auto found = [](absl::string_view greeting, absl::string_view build) {
    const absl::Status status = CheckGreeting(greeting, build);
    EXPECT_EQ(status.code(),
              status.ok() ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_EQ(found(EncodeGreeting("a1"), "a1"), "");
  EXPECT_EQ(found(EncodeGreeting("a1"), ""), "");
  EXPECT_EQ(found(EncodeGreeting("b2"), "a1"), "its compiler is build 'b2', npucd's is 'a1'");
  EXPECT_EQ(found("npuc-worker 999 a1", "a1"),
            absl::StrCat("it speaks version 999 of the worker protocol, npucd ", kProtocolVersion));
  // What a build sent first that had no greeting yet.
  EXPECT_EQ(found(EncodeControl({}), "a1"), "it is of an older build, which does not say which");
  EXPECT_NE(found("npuc-worker ", "a1"), "");
}

TEST(Protocol, LongTextsAreCut) {
  WorkerEvent event;
  event.type = WorkerEvent::Type::kLog;
  event.text = std::string(1 << 20, 'x');
  EventDecoder decoder;
  decoder.Feed(EncodeEvent(event));
  ASSERT_TRUE(decoder.Next(event).value());
  EXPECT_EQ(event.text.size(), kMaxWorkerLineBytes);
}

TEST(Protocol, ControlAndJobRoundTrip) {
  ControlMessage message;
  message.type = ControlMessage::Type::kExited;
  message.run = ~uint64_t{0};
  message.wait_status = -5;
  message.inputs = kMaxInputs;
  const std::string bytes = EncodeControl(message);
  EXPECT_LE(bytes.size(), kMaxControlBytes);
  EXPECT_EQ(EncodeControl(DecodeControl(bytes).value()), bytes);
  message.inputs = kMaxInputs + 1;
  EXPECT_FALSE(DecodeControl(EncodeControl(message)).ok());

  const WorkOrder order{
      "text", "name", -7, {{"role", "model", "sha", "md"}, {"r", "", "", ""}}, std::nullopt};
  const std::string record = EncodeOrder(order);
  const WorkOrder again = DecodeOrder(record).value();
  EXPECT_EQ(again.config_text, "text");
  EXPECT_EQ(again.timestamp_seconds, -7);
  EXPECT_EQ(again.inputs, order.inputs);
  EXPECT_FALSE(again.inspection.has_value());
  EXPECT_FALSE(DecodeOrder(record.substr(0, record.size() - 1)).ok());
  EXPECT_FALSE(DecodeOrder(record + "x").ok());
}

TEST(ProtocolTest, AnInspectionKeepsWhatIsStated) {
  WorkOrder order;
  order.inspection = StatedOfModel{.shapes = {"1,2", "x=3"}, .dims = {"t=4"}, .constants = {"c=5"}};
  const WorkOrder again = DecodeOrder(EncodeOrder(order)).value();
  ASSERT_TRUE(again.inspection.has_value());
  EXPECT_EQ(again.inspection->shapes, order.inspection->shapes);
  EXPECT_EQ(again.inspection->dims, order.inspection->dims);
  EXPECT_EQ(again.inspection->constants, order.inspection->constants);
}

TEST(Protocol, WhatIsTooMuchIsRefused) {
  // So many empty walls: small as bytes, and more than there are.
  std::string walls;
  for (int i = 0; i < 1000; ++i) walls += std::string("\x7a\x00", 2);
  const std::string ready = EncodeControl(ControlMessage());
  EXPECT_TRUE(DecodeControl(ready).ok());
  EXPECT_FALSE(DecodeControl(ready + walls).ok());
  // Unknown fields, which a parser keeps: up to the bound, and no further.
  std::string unknown = EncodeWatch(WatchMessage());
  while (unknown.size() + 4 <= kMaxControlBytes) unknown += std::string("\xfa\x3e\x01x", 4);
  EXPECT_TRUE(DecodeWatch(unknown).ok());
  EXPECT_FALSE(DecodeWatch(unknown + std::string(8, '\x08')).ok());
  EXPECT_FALSE(DecodeOrder(std::string(kMaxJobBytes + 2, '\x08')).ok());
}

// Hostile bytes: whatever comes, decoding ends and stays within bounds (the sanitizers look on).
TEST(Protocol, DamagedAndRandomStreams) {
  std::string stream;
  for (const WorkerEvent& event : Events()) stream += EncodeEvent(event);
  std::mt19937 random(7);
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = stream;
    if (round % 2 == 0) {
      for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    } else {
      for (char& c : bytes) c = static_cast<char>(random() % (round % 4 == 1 ? 256 : 8));
    }
    EventDecoder decoder;
    decoder.Feed(bytes);
    WorkerEvent event;
    while (true) {
      const auto more = decoder.Next(event);
      refused += more.ok() ? 0 : 1;
      if (!more.ok() || !*more) break;
      EXPECT_LE(event.text.size(), kMaxWorkerLineBytes + 3);
    }
    DecodeControl(bytes.substr(0, 200)).status().IgnoreError();
    DecodeOrder(bytes).status().IgnoreError();
  }
  EXPECT_GT(refused, 5000u);
}

}  // namespace
}  // namespace npuc::worker
