#include "server/log/audit_file.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "server/log/audit_conformance_test_util.h"

namespace npuc::log {
namespace {

std::unique_ptr<AuditFile> MakeFile(AuditFileOptions options) {
  std::string pattern = ::testing::TempDir() + "/audit_file_XXXXXX";
  options.dir = mkdtemp(pattern.data());
  auto file = AuditFile::Open(std::move(options));
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

TEST(AuditFileTest, PagesGoOnWhereAFileWasPutAside) {
  const auto file = MakeFile({.max_bytes = 300, .files = 4});
  const auto append = [&](int number) {
    const AuditEntry entry{.action = "submit", .object = absl::StrCat("job-", number)};
    ASSERT_TRUE(file->Append(0, {entry}).ok());
  };
  for (int i = 0; i < 8; ++i) append(i);
  AuditQuery query{.limit = 1};
  int expected = 7;
  while (true) {
    const auto page = file->Find(query);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const AuditEntry& entry : page->entries) {
      EXPECT_EQ(entry.object, absl::StrCat("job-", expected--));
    }
    query.page_token = page->next_page_token;
    if (query.page_token.empty()) break;
    if (expected == 5) append(8);
  }
  EXPECT_LE(expected, 1);
}

TEST(AuditFileTest, OneCallLooksAtABoundedPart) {
  const auto file = MakeFile({.max_look_bytes = uint64_t{64} << 10});
  const AuditEntry wanted{.action = "cancel"};
  const AuditEntry other{.action = "submit", .detail = std::string(1000, 'x')};
  ASSERT_TRUE(file->Append(0, {wanted}).ok());
  ASSERT_TRUE(file->Append(0, std::vector<AuditEntry>(1000, other)).ok());
  const auto first = file->Find({.action = "cancel"});
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->entries.empty());
  std::string token = first->next_page_token;
  ASSERT_FALSE(token.empty());
  size_t found = 0;
  while (!token.empty()) {
    const auto page = file->Find({.action = "cancel", .page_token = token});
    ASSERT_TRUE(page.ok());
    found += page->entries.size();
    token = page->next_page_token;
  }
  EXPECT_EQ(found, 1u);
}

TEST(AuditFileTest, ALineThatAPowerCutLeftIsSkipped) {
  std::string pattern = ::testing::TempDir() + "/audit_file_XXXXXX";
  const std::string dir = mkdtemp(pattern.data());
  std::ofstream(dir + "/audit.log") << "{\"time\":\"2026-\n";
  const auto file = AuditFile::Open({.dir = dir});
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(0, {{.action = "submit"}}).ok());
  EXPECT_EQ((*file)->Find({})->entries.size(), 1u);
}

}  // namespace

namespace conformance {
namespace {

INSTANTIATE_TEST_SUITE_P(Stores, AuditStoreTest, ::testing::Values([] {
                           return std::unique_ptr<AuditStore>(MakeFile({.node = "n"}));
                         }));

}  // namespace
}  // namespace conformance
}  // namespace npuc::log
