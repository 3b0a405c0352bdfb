#include "server/executor/event_pump.h"

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::executor {
namespace {

std::string TextOf(const std::vector<jobs::EventBody>& bodies) {
  std::string text;
  for (const jobs::EventBody& body : bodies)
    absl::StrAppend(&text, std::get<jobs::LogEvent>(body).text, " ");
  return text;
}

TEST(EventPumpTest, AShortRunWritesNothingByItself) {
  std::atomic<int> writes = 0;
  EventPump pump(
      [&](const std::vector<jobs::EventBody>&) {
        ++writes;
        return absl::OkStatus();
      },
      absl::Hours(1));
  pump.Push(jobs::LogEvent{"a"});
  pump.Push(jobs::LogEvent{"b"});
  EXPECT_EQ(TextOf(pump.Stop()), "a b ");
  EXPECT_EQ(writes, 0);
  pump.Push(jobs::LogEvent{"late"});
  EXPECT_TRUE(pump.Stop().empty());
}

TEST(EventPumpTest, AnEventThatNoOtherFollowsIsWrittenAfterItsTime) {
  std::promise<std::string> written;
  EventPump pump(
      [&](const std::vector<jobs::EventBody>& bodies) {
        written.set_value(TextOf(bodies));
        return absl::OkStatus();
      },
      absl::Milliseconds(1));
  pump.Tick();
  pump.Push(jobs::LogEvent{"a"});
  std::future<std::string> text = written.get_future();
  while (text.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) pump.Tick();
  EXPECT_EQ(text.get(), "a ");
  EXPECT_TRUE(pump.Stop().empty());
}

TEST(EventPumpTest, EventsGatherWhileAWriteIsUnderWay) {
  std::promise<void> writing;
  std::promise<void> proceed;
  std::vector<std::string> batches;
  std::promise<void> second_done;
  EventPump pump(
      [&](const std::vector<jobs::EventBody>& bodies) {
        batches.push_back(TextOf(bodies));
        if (batches.size() == 1) {
          writing.set_value();
          proceed.get_future().wait();
        } else if (batches.size() == 2) {
          second_done.set_value();
        }
        return absl::OkStatus();
      },
      absl::ZeroDuration());
  pump.Push(jobs::LogEvent{"a"});
  writing.get_future().wait();
  pump.Push(jobs::LogEvent{"b"});
  pump.Push(jobs::LogEvent{"c"});
  proceed.set_value();
  second_done.get_future().wait();
  EXPECT_TRUE(pump.Stop().empty());
  EXPECT_EQ(batches, (std::vector<std::string>{"a ", "b c "}));
}

TEST(EventPumpTest, WhatTheStoreRefusedGoesWithTheResultInOrder) {
  std::promise<void> refused;
  EventPump pump(
      [&](const std::vector<jobs::EventBody>&) {
        refused.set_value();
        return absl::InternalError("disk");
      },
      absl::ZeroDuration());
  pump.Push(jobs::LogEvent{"a"});
  refused.get_future().wait();
  pump.Push(jobs::LogEvent{"b"});
  EXPECT_EQ(TextOf(pump.Stop()), "a b ");
}

TEST(EventPumpTest, AStaleLeaseDropsEverythingAndBlocksNobody) {
  std::promise<void> told;
  EventPump pump(
      [&](const std::vector<jobs::EventBody>&) {
        told.set_value();
        return absl::AbortedError("stale");
      },
      absl::ZeroDuration());
  pump.Push(jobs::LogEvent{"a"});
  told.get_future().wait();
  for (size_t i = 0; i < 3 * EventPump::kMaxPending; ++i) pump.Push(jobs::LogEvent{"x"});
  EXPECT_TRUE(pump.Stop().empty());
}

}  // namespace
}  // namespace npuc::executor
