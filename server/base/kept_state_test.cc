#include "server/base/kept_state.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/kept_text_test_util.h"

namespace npuc::base {
namespace {

// A number; 0 is an empty text.
KeptState<int> Number() {
  return {[](const int& number) { return number == 0 ? "" : absl::StrCat(number); },
          [](absl::string_view text) -> absl::StatusOr<int> {
            int number = 0;
            if (text.empty() || absl::SimpleAtoi(text, &number)) return number;
            return absl::FailedPreconditionError("damaged");
          }};
}

absl::Status AddOne(int& number) {
  ++number;
  return absl::OkStatus();
}

// A text that another node changes right before each of the first `times` replacements.
struct BusyText : MemoryText {
  explicit BusyText(int changes) : times(changes) {}
  absl::Status Replace(absl::string_view before, absl::string_view after) override {
    ++replaced;
    if (times-- > 0) text = absl::StrCat(10 + replaced);
    return MemoryText::Replace(before, after);
  }
  int times = 0;
  int replaced = 0;
};

TEST(KeptStateTest, NodesThatShareATextTakeEachOthersChanges) {
  MemoryText text;
  KeptState<int> here = Number();
  KeptState<int> there = Number();
  ASSERT_TRUE(here.Attach(&text).ok());
  ASSERT_TRUE(there.Attach(&text).ok());
  ASSERT_TRUE(here.Change(AddOne).ok());
  ASSERT_TRUE(there.Change(AddOne).ok());  // of what the text has, not of its own
  EXPECT_EQ(there.Get(), 2);
  EXPECT_TRUE(*here.Read());
  EXPECT_FALSE(*here.Read());
  EXPECT_EQ(here.Get(), 2);
}

TEST(KeptStateTest, AChangeRunsAgainWhereAnotherNodeCameBetween) {
  BusyText text(3);
  KeptState<int> state = Number();
  ASSERT_TRUE(state.Attach(&text).ok());
  ASSERT_TRUE(state.Change(AddOne).ok());
  EXPECT_EQ(state.Get(), 14);
  EXPECT_EQ(text.text, "14");
  BusyText busy(100);
  KeptState<int> never = Number();
  ASSERT_TRUE(never.Attach(&busy).ok());
  EXPECT_TRUE(absl::IsAborted(never.Change(AddOne)));
  EXPECT_EQ(busy.replaced, 4);
}

TEST(KeptStateTest, WhatChangesNothingIsNotWritten) {
  BusyText text(0);
  KeptState<int> state = Number();
  ASSERT_TRUE(state.Attach(&text).ok());
  ASSERT_TRUE(state.Change([](int&) { return absl::OkStatus(); }).ok());
  EXPECT_EQ(text.replaced, 0);
}

TEST(KeptStateTest, AnErrorLeavesTheStateAsItWas) {
  MemoryText text;
  KeptState<int> state = Number();
  EXPECT_FALSE(*state.Read());
  EXPECT_EQ(state.Change(AddOne).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(state.Attach(&text).ok());
  ASSERT_TRUE(state.Change(AddOne).ok());
  const auto refuse = [](int& number) {
    number = 99;
    return absl::AlreadyExistsError("no");
  };
  EXPECT_TRUE(absl::IsAlreadyExists(state.Change(refuse)));
  text.error = absl::UnavailableError("away");
  EXPECT_TRUE(absl::IsUnavailable(state.Change(AddOne)));
  EXPECT_TRUE(absl::IsUnavailable(state.Read().status()));
  text.error = absl::OkStatus();
  text.text = "nonsense";
  EXPECT_TRUE(absl::IsFailedPrecondition(state.Read().status()));
  EXPECT_EQ(state.Get(), 1);
}

}  // namespace
}  // namespace npuc::base
