#include "server/backup/backup.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/backup/snapshot.h"
#include "server/jobs/rocksdb_job_store.h"

namespace npuc::backup {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kKey[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

std::string Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void Write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// A data directory with an upload, a result and a job, as its daemon left it.
class BackupTest : public ::testing::Test {
 protected:
  struct Stores {
    std::unique_ptr<jobs::RocksDbJobStore> jobs;
    std::unique_ptr<cache::BlobStore> blobs;
    std::unique_ptr<cache::ArtifactCache> artifacts;
    OpenStores view() const { return {jobs.get(), blobs.get(), artifacts.get()}; }
  };

  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "npuc-backup-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    data_ = root_ / "data";
    fs::create_directory(data_);
    const Stores stores = Open(data_);
    const auto blob = stores.blobs->Put("default", "a model");
    ASSERT_TRUE(blob.ok()) << blob.status();
    sha256_ = blob->sha256;
    const auto key = cache::CacheKey::Parse(absl::StrCat("default/", kKey));
    ASSERT_TRUE(stores.artifacts->Store(*key, {{{"model.h", "int x;"}}}, "metadata").ok());
    jobs::JobChange change;
    change.job.id = "job-000000000000000000000000";
    change.job.id.resize(27, '0');
    change.job.revision = 1;
    change.job.spec.inputs = {{.role = "MODEL_FILE", .name = "m", .sha256 = sha256_}};
    change.config_text = "CORENAME: GRUS";
    ASSERT_TRUE(stores.jobs->ApplyAndWait(std::move(change)).ok());
    Write(data_ / "dispatch_paused", "paused");
  }
  void TearDown() override {
    std::error_code error;
    fs::remove_all(root_, error);
  }

  static Stores Open(const fs::path& data) {
    auto jobs = jobs::RocksDbJobStore::Open((data / "jobs").string());
    cache::BlobStoreOptions options;
    options.root = (data / "blobs").string();
    auto blobs = cache::BlobStore::Open(std::move(options));
    auto artifacts = cache::ArtifactCache::Open({.path = (data / "artifacts").string()});
    EXPECT_TRUE(jobs.ok()) << jobs.status();
    EXPECT_TRUE(blobs.ok()) << blobs.status();
    EXPECT_TRUE(artifacts.ok()) << artifacts.status();
    return {*std::move(jobs), *std::move(blobs), *std::move(artifacts)};
  }

  // A snapshot of a running daemon's stores, as `npucd --backup` gets it.
  void BackUpUnderADaemon(const std::string& target) {
    const Stores stores = Open(data_);
    SnapshotDesk desk(stores.view(), data_.string());
    ASSERT_TRUE(desk.Open().ok());
    const std::string folder = SnapshotsFolder(data_.string());
    Write(folder + "/one.request", "");
    const auto answers = desk.Serve(absl::Now());
    ASSERT_EQ(answers.size(), 1u);
    ASSERT_TRUE(answers[0].status.ok()) << answers[0].status;
    fs::rename(folder + "/one", target);
  }

  std::vector<std::string> Check(const fs::path& data, CheckReport* report = nullptr) {
    std::vector<std::string> lines;
    const auto checked =
        CheckData(data.string(), [&](absl::string_view line) { lines.emplace_back(line); });
    EXPECT_TRUE(checked.ok()) << checked.status();
    if (checked.ok() && report != nullptr) *report = *checked;
    return lines;
  }

  BackupOptions Options() const { return {.data_dir = data_.string(), .version = "test"}; }

  fs::path root_;
  fs::path data_;
  std::string sha256_;
};

TEST_F(BackupTest, WhatIsRestoredIsWhatWasThere) {
  const auto written = WriteBackup(Options(), (root_ / "backup").string());
  ASSERT_TRUE(written.ok()) << written.status();
  const fs::path again = root_ / "again";
  const auto restored = RestoreBackup((root_ / "backup").string(), again.string());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->files, written->files);
  EXPECT_EQ(Read(again / "dispatch_paused"), "paused");
  CheckReport report;
  EXPECT_THAT(Check(again, &report), IsEmpty());
  EXPECT_EQ(report.jobs, 1);
  EXPECT_EQ(report.live_jobs, 1);
  EXPECT_EQ(report.blobs, 1);
  EXPECT_EQ(report.results, 1);
  const Stores stores = Open(again);
  EXPECT_TRUE(stores.blobs->Acquire("default", sha256_).ok());
  EXPECT_TRUE(fs::is_empty(SnapshotsFolder(data_.string())));
}

TEST_F(BackupTest, ASnapshotLeavesOutWhatComesLater) {
  BackUpUnderADaemon((root_ / "snapshot").string());
  {
    const Stores stores = Open(data_);
    ASSERT_TRUE(stores.blobs->Put("default", "another model").ok());
  }
  CheckReport report;
  EXPECT_THAT(Check(root_ / "snapshot", &report), IsEmpty());
  EXPECT_EQ(report.jobs, 1);
  EXPECT_EQ(report.blobs, 1);
}

TEST_F(BackupTest, ADeskAnswersWhatCannotBeDone) {
  const Stores stores = Open(data_);
  SnapshotDesk desk(stores.view(), data_.string());
  ASSERT_TRUE(desk.Open().ok());
  const std::string folder = SnapshotsFolder(data_.string());
  Write(folder + "/one.request", "");
  fs::create_directories(folder + "/one.part/jobs");  // in the way
  ASSERT_EQ(desk.Serve(absl::Now()).size(), 1u);
  EXPECT_THAT(Read(folder + "/one.failed"), HasSubstr("checkpoint"));
  Write(folder + "/no good.request", "");
  EXPECT_THAT(desk.Serve(absl::Now()), IsEmpty());
  EXPECT_FALSE(fs::exists(folder + "/no good.request"));
  EXPECT_THAT(desk.Serve(absl::Now() + 2 * SnapshotDesk::kMaxAge), IsEmpty());
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(BackupTest, ADamagedBackupIsRefusedAndLeavesNothing) {
  const fs::path backup = root_ / "backup";
  ASSERT_TRUE(WriteBackup(Options(), backup.string()).ok());
  const fs::path again = root_ / "again";
  const std::string manifest = Read(backup / kManifestName);
  const auto refused = [&](absl::StatusCode code, absl::string_view found) {
    const auto restored = RestoreBackup(backup.string(), again.string());
    EXPECT_EQ(restored.status().code(), code) << restored.status();
    EXPECT_THAT(std::string(restored.status().message()), HasSubstr(std::string(found)));
    EXPECT_TRUE(!fs::exists(again) || fs::is_empty(again));
  };
  Write(backup / "dispatch_paused", "Paused");
  refused(absl::StatusCode::kDataLoss, "dispatch_paused is not what was backed up");
  Write(backup / "dispatch_paused", "paused");
  for (const char* name : {"../out", "/etc/npuc", "a/../../b", "", "."}) {
    Write(backup / kManifestName,
          absl::StrReplaceAll(manifest, {{"\"dispatch_paused\"", absl::StrCat("\"", name, "\"")}}));
    refused(absl::StatusCode::kDataLoss, "is damaged");
  }
  Write(backup / kManifestName, manifest.substr(0, manifest.size() / 2));
  refused(absl::StatusCode::kDataLoss, "is damaged");
  Write(backup / kManifestName,
        absl::StrReplaceAll(manifest, {{"\"format\": 1", "\"format\": 9"}}));
  refused(absl::StatusCode::kDataLoss, "format that this npucd lacks");
  fs::remove(backup / kManifestName);
  refused(absl::StatusCode::kFailedPrecondition, "is no whole backup");
}

TEST_F(BackupTest, FoldersInUseAreRefused) {
  EXPECT_EQ(WriteBackup(Options(), data_.string()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(WriteBackup({.data_dir = root_.string()}, (root_ / "b").string()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RestoreBackup((root_ / "nothing").string(), data_.string()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(BackupTest, ACheckMendsUploadsAndResults) {
  std::string blob;
  for (const auto& entry : fs::recursive_directory_iterator(data_ / "blobs" / "blobs")) {
    if (entry.is_regular_file()) blob = entry.path();
  }
  fs::permissions(blob, fs::perms::owner_all);
  Write(blob, "b model");
  CheckReport report;
  const std::vector<std::string> lines = Check(data_, &report);
  EXPECT_EQ(report.mended, 1);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("was damaged and is removed: clients send it again"),
                                 HasSubstr("its input ")));
  EXPECT_FALSE(fs::exists(blob));
  EXPECT_EQ(report.beyond_repair, 0);
}

}  // namespace
}  // namespace npuc::backup
