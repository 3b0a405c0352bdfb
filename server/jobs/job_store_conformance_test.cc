#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "server/jobs/job_store_conformance_test_util.h"
#include "server/jobs/rocksdb_job_store.h"

namespace npuc::jobs {
namespace conformance {
namespace {

class RocksDbHarness : public StoreHarness {
 public:
  RocksDbHarness() {
    std::string pattern = ::testing::TempDir() + "/job_store_XXXXXX";
    path_ = mkdtemp(pattern.data());
    Restart();
  }
  ~RocksDbHarness() override {
    store_.reset();
    std::filesystem::remove_all(path_);
  }
  JobStore& store() override { return *store_; }
  void Restart() override {
    store_.reset();
    auto opened = RocksDbJobStore::Open(path_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

 private:
  std::string path_;
  std::unique_ptr<RocksDbJobStore> store_;
};

INSTANTIATE_TEST_SUITE_P(
    Stores, JobStoreTest,
    ::testing::Values(Implementation{"Memory", [] { return std::make_unique<MemoryHarness>(); }},
                      Implementation{"RocksDb", [] { return std::make_unique<RocksDbHarness>(); }}),
    [](const auto& info) { return info.param.name; });

TEST(JobCodecTest, DamagedRecordsAreErrors) {
  const std::string good = EncodeJobRecord(FullJob());
  ASSERT_TRUE(DecodeJobRecord(good).ok());
  EXPECT_FALSE(DecodeJobRecord("").ok());
  // Cut anywhere: an error or a shorter record, never a read outside the bytes (ASan watches).
  for (size_t length = 0; length < good.size(); ++length) {
    const std::string cut = good.substr(0, length);
    (void)DecodeJobRecord(cut);
    (void)DecodeEvents(cut);
  }
  EXPECT_EQ(DecodeJobRecord(good.substr(0, 10)).status().code(), absl::StatusCode::kDataLoss);
}

// A newer daemon beside this one, or before it, stores fields that this one does not know.
TEST(JobCodecTest, WhatANewerBuildStoredIsKept) {
  const std::string of_job = "\xfa\x3e\x03new";   // field 1007, bytes
  const std::string of_spec = "\x82\x3f\x03new";  // field 1008, bytes
  Job job = FullJob();
  job.spec.unknown_fields = of_spec;
  absl::StatusOr<Job> read = DecodeJobRecord(EncodeJobRecord(job) + of_job);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->unknown_fields, of_job);
  EXPECT_EQ(read->spec.unknown_fields, of_spec);
  ++read->revision;
  const absl::StatusOr<Job> again = DecodeJobRecord(EncodeJobRecord(*read));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->unknown_fields, of_job);
  EXPECT_EQ(again->spec, read->spec);
  EXPECT_EQ(again->revision, job.revision + 1);
}

}  // namespace
}  // namespace conformance
}  // namespace npuc::jobs
