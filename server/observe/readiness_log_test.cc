#include "server/observe/readiness_log.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::observe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReadinessLogTest : public ::testing::Test {
 protected:
  ReadinessLogTest()
      : out_(std::tmpfile()),
        logger_(out_, [this] { return now_; }),
        log_(&logger_, [this] { return now_; }) {}
  ~ReadinessLogTest() override { std::fclose(out_); }
  // Those that came since the last call.
  std::vector<std::string> Lines() {
    std::fseek(out_, read_, SEEK_SET);
    std::string text(1 << 16, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), out_));
    read_ += static_cast<long>(text.size());
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::FILE* const out_;
  long read_ = 0;
  const log::Logger logger_;
  ReadinessLog log_;
};

TEST_F(ReadinessLogTest, AFullDiskIsToldOnceThenRarelyThenThatItIsOver) {
  log_.OnChange("disk", absl::ResourceExhaustedError("0 MiB are free"), /*serving=*/true);
  EXPECT_THAT(Lines(), ElementsAre(AllOf(HasSubstr("\"ERROR\",\"message\":\"not ready\""),
                                         HasSubstr("\"condition\":\"disk\""),
                                         HasSubstr("\"why\":\"0 MiB are free\""))));
  int reminders = 0;
  for (int i = 0; i < 4 * 60 * 60; ++i) {  // an hour of looks
    now_ += absl::Milliseconds(250);
    log_.Remind("disk: 0 MiB are free");
  }
  for (const std::string& line : Lines()) {
    EXPECT_THAT(line, HasSubstr("\"ERROR\",\"message\":\"still not ready\""));
    EXPECT_THAT(line, HasSubstr("\"why\":\"disk: 0 MiB are free\""));
    ++reminders;
  }
  EXPECT_EQ(reminders, 6);
  log_.OnChange("disk", absl::OkStatus(), true);
  EXPECT_THAT(Lines(), ElementsAre(AllOf(HasSubstr("\"INFO\",\"message\":\"condition holds\""),
                                         HasSubstr("\"condition\":\"disk\""))));
  now_ += absl::Hours(1);
  log_.Remind("");
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(ReadinessLogTest, WhatPassesByItselfIsNoError) {
  log_.OnChange("recovery", absl::UnavailableError("jobs are recovered"), /*serving=*/false);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("\"INFO\",\"message\":\"not ready\"")));
  log_.OnChange("watchdog", absl::UnavailableError("stuck: store"), /*serving=*/true);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("\"ERROR\",\"message\":\"not ready\"")));
  log_.OnChange("canary", absl::InternalError("no compile"), /*serving=*/false);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("\"ERROR\",\"message\":\"not ready\"")));
}

}  // namespace
}  // namespace npuc::observe
