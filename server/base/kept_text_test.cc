#include "server/base/kept_text.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::base {
namespace {

class FileTextTest : public ::testing::Test {
 protected:
  FileTextTest() { std::filesystem::create_directories(dir_); }
  ~FileTextTest() override { std::filesystem::remove_all(dir_); }

  const std::string dir_ = absl::StrCat(::testing::TempDir(), "/kept_text.", getpid());
};

TEST_F(FileTextTest, OutlivesItsObjectAndGoesWhenItIsEmpty) {
  EXPECT_EQ(*FileText(dir_ + "/a").Read(), "");
  ASSERT_TRUE(FileText(dir_ + "/a").Replace("", "one\ntwo\n").ok());
  ASSERT_TRUE(FileText(dir_ + "/a").Replace("one\ntwo\n", "three").ok());
  EXPECT_EQ(*FileText(dir_ + "/a").Read(), "three");
  EXPECT_EQ(*FileText(dir_ + "/b").Read(), "");
  ASSERT_TRUE(FileText(dir_ + "/a").Replace("three", "").ok());
  ASSERT_TRUE(FileText(dir_ + "/a").Replace("", "").ok());  // again
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
}

TEST_F(FileTextTest, WhatCannotBeKeptIsAnErrorAndChangesNothing) {
  FileText text(dir_ + "/a");
  ASSERT_TRUE(text.Replace("", "one").ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(text.Replace("one", std::string(KeptText::kMaxBytes + 1, 'x'))));
  EXPECT_EQ(*text.Read(), "one");
  EXPECT_FALSE(FileText(dir_ + "/not/there").Replace("", "one").ok());
  // A link would lead to a file elsewhere.
  std::filesystem::create_symlink(dir_ + "/a", dir_ + "/link");
  EXPECT_FALSE(FileText(dir_ + "/link").Read().ok());
}

}  // namespace
}  // namespace npuc::base
