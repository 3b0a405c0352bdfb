#include "server/pg/pg_audit.h"

#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/log/audit_conformance_test_util.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

using log::AuditEntry;

// A store with sessions of its own.
class OwnPgAudit : public log::AuditStore {
 public:
  OwnPgAudit() : sessions_(TestServer::Get()->NewDatabase()), audit_(&sessions_) {}
  absl::Status Append(uint64_t first_number, absl::Span<const AuditEntry> entries) override {
    return audit_.Append(first_number, entries);
  }
  absl::StatusOr<log::AuditPage> Find(const log::AuditQuery& query) override {
    return audit_.Find(query);
  }

 private:
  Sessions sessions_;
  PgAudit audit_;
};

TEST(PgAuditTest, WhatOneNodeWroteTheOtherFindsOnce) {
  NPUC_SKIP_WITHOUT_POSTGRES();
  Sessions sessions(TestServer::Get()->NewDatabase());
  PgAudit here(&sessions), there(&sessions);
  const std::vector<AuditEntry> entries = {{.node = "a", .action = "submit"},
                                           {.node = "a", .action = "cancel"}};
  ASSERT_TRUE(here.Append(1, entries).ok());
  ASSERT_TRUE(here.Append(1, entries).ok()) << "as after a lost answer";
  ASSERT_TRUE(there.Append(1, {{.node = "b", .action = "submit"}}).ok());
  EXPECT_EQ(there.Find({})->entries.size(), 3u);
  EXPECT_EQ(there.Find({.node = "a"})->entries.size(), 2u);
  EXPECT_EQ(here.Find({.node = "b"})->entries.size(), 1u);
}

TEST(PgAuditTest, TheOldestEntriesGo) {
  NPUC_SKIP_WITHOUT_POSTGRES();
  Sessions sessions(TestServer::Get()->NewDatabase());
  PgAudit audit(&sessions);
  const absl::Time now = absl::Now();
  std::vector<AuditEntry> entries;
  entries.push_back({.time = now - absl::Hours(24) * (kMaxAuditDays + 1), .action = "old"});
  for (int i = 0; i < 5; ++i) {
    entries.push_back({.time = now, .action = absl::StrCat("new", i)});
  }
  ASSERT_TRUE(audit.Append(1, entries).ok());
  ASSERT_TRUE(PgAudit::Prune(sessions).ok());
  EXPECT_EQ(audit.Find({})->entries.size(), 5u);
  ASSERT_TRUE(PgAudit::Prune(sessions, /*max_entries=*/2).ok());
  const auto left = audit.Find({});
  ASSERT_EQ(left->entries.size(), 2u);
  EXPECT_EQ(left->entries[0].action, "new4");
}

}  // namespace
}  // namespace npuc::pg

namespace npuc::log::conformance {
namespace {

INSTANTIATE_TEST_SUITE_P(Stores, AuditStoreTest, ::testing::Values([] {
                           return pg::TestServer::Get() == nullptr
                                      ? nullptr
                                      : std::unique_ptr<AuditStore>(
                                            std::make_unique<pg::OwnPgAudit>());
                         }));

}  // namespace
}  // namespace npuc::log::conformance
