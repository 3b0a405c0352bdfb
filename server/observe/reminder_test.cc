#include "server/observe/reminder.h"

#include "gtest/gtest.h"

namespace npuc::observe {
namespace {

TEST(ReminderTest, IsDueAtOnceAndThenRarely) {
  Reminder reminder;
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  int due = 0;
  for (int i = 0; i < 60 * 60; ++i) {  // an hour, a look a second
    if (reminder.IsDue(now)) ++due;
    now += absl::Seconds(1);
  }
  EXPECT_EQ(due, 6);
  reminder.Reset();
  EXPECT_TRUE(reminder.IsDue(now)) << "another thing";
  reminder.Reset();
  reminder.Said(now);
  EXPECT_FALSE(reminder.IsDue(now + absl::Seconds(1)));
  EXPECT_TRUE(reminder.IsDue(now + Reminder::kPeriod));
}

}  // namespace
}  // namespace npuc::observe
