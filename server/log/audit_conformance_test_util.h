#ifndef NPUC_SERVER_LOG_AUDIT_CONFORMANCE_TEST_UTIL_H_
#define NPUC_SERVER_LOG_AUDIT_CONFORMANCE_TEST_UTIL_H_

// Promises of every AuditStore. A test program includes this and instantiates AuditStoreTest with
// its stores.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/audit_store.h"

namespace npuc::log {
namespace conformance {

// Null: something that the store needs is missing on this machine.
using MakeStore = std::function<std::unique_ptr<AuditStore>()>;

class AuditStoreTest : public ::testing::TestWithParam<MakeStore> {
 protected:
  void SetUp() override {
    store_ = GetParam()();
    if (store_ == nullptr) GTEST_SKIP() << "the store's server is not installed";
  }
  static absl::Time At(int64_t second) { return absl::FromUnixMicros(second * 1'000'000 + 7); }
  void Append(const std::vector<AuditEntry>& entries) {
    const absl::Status appended = store_->Append(next_number_, entries);
    ASSERT_TRUE(appended.ok()) << appended;
    next_number_ += entries.size();
  }
  // All pages of a query; the newest entries first.
  std::vector<AuditEntry> FindAll(AuditQuery query) {
    std::vector<AuditEntry> all;
    do {
      const absl::StatusOr<AuditPage> page = store_->Find(query);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      EXPECT_LE(page->entries.size(), query.limit);
      all.insert(all.end(), page->entries.begin(), page->entries.end());
      query.page_token = page->next_page_token;
    } while (!query.page_token.empty());
    return all;
  }

  std::unique_ptr<AuditStore> store_;
  uint64_t next_number_ = 1;
};

TEST_P(AuditStoreTest, EntriesComeBackAsTheyWereTheNewestFirst) {
  EXPECT_TRUE(FindAll({}).empty());
  const AuditEntry full = {.time = At(5),
                           .node = "rack-1.a",
                           .action = "cancel",
                           .identity = "ci",
                           .tenant = "audio",
                           .peer = "10.0.0.1",
                           .object = "j1",
                           .result = "OK",
                           .detail = "too \"slow\" \\x0a {ä}, NULL",
                           .left_out = 8};
  const AuditEntry bare = {.time = At(6), .node = "rack-1.a", .action = "submit"};
  Append({full});
  Append({bare});
  EXPECT_EQ(FindAll({}), (std::vector<AuditEntry>{bare, full}));
}

TEST_P(AuditStoreTest, AFilterTakesByEachFieldAndByTime) {
  const AuditEntry base = {.time = At(1000),
                           .node = "n",
                           .action = "a",
                           .identity = "i",
                           .tenant = "t",
                           .object = "o",
                           .result = "OK"};
  std::vector<AuditEntry> entries(7, base);
  for (size_t i = 0; i < entries.size(); ++i) entries[i].time += absl::Seconds(i);
  entries[0].node = "x";
  entries[1].action = "x";
  entries[2].identity = "x";
  entries[3].tenant = "x";
  entries[4].object = "x";
  entries[5].result = "x";
  Append(entries);
  const AuditQuery queries[] = {{.node = "x"},   {.action = "x"}, {.identity = "x"},
                                {.tenant = "x"}, {.object = "x"}, {.result = "x"}};
  for (size_t i = 0; i < std::size(queries); ++i) {
    EXPECT_EQ(FindAll(queries[i]), (std::vector<AuditEntry>{entries[i]})) << i;
  }
  EXPECT_TRUE(FindAll({.action = "x", .identity = "x"}).empty());
  EXPECT_EQ(FindAll({.from = entries[2].time, .to = entries[4].time}),
            (std::vector<AuditEntry>{entries[3], entries[2]}));
}

TEST_P(AuditStoreTest, PagesHaveEachEntryOnceWhileMoreCome) {
  std::vector<AuditEntry> entries;
  for (int i = 0; i < 25; ++i) {
    entries.push_back({.time = At(i / 4), .node = "n", .action = i % 2 == 0 ? "even" : "odd"});
    entries.back().object = absl::StrCat("job-", i);
  }
  Append(entries);
  AuditQuery query{.action = "even", .limit = 4};
  std::vector<std::string> found;
  do {
    const absl::StatusOr<AuditPage> page = store_->Find(query);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const AuditEntry& entry : page->entries) found.push_back(entry.object);
    query.page_token = page->next_page_token;
    Append({{.time = At(1000), .node = "n", .action = "even", .object = "new"}});
  } while (!query.page_token.empty());
  ASSERT_EQ(found.size(), 13u);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], absl::StrCat("job-", 24 - 2 * i));
  EXPECT_EQ(store_->Find({.page_token = "x"}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace conformance
}  // namespace npuc::log

#endif  // NPUC_SERVER_LOG_AUDIT_CONFORMANCE_TEST_UTIL_H_
