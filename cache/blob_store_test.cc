#include "cache/blob_store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cache/cache_test_util.h"
#include "compiler_core/base/digest.h"
#include "gtest/gtest.h"

namespace npuc::cache {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;

BlobDigest DigestOf(absl::string_view bytes) { return {Sha256Hex(bytes), bytes.size()}; }

class BlobStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/blobsXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    options_.root = folder_ + "/store";
    options_.now = [this] { return now_; };
    options_.steady_now = [this] { return now_; };
    options_.disk_reserve_bytes = 0;
    Reopen();
  }
  void TearDown() override {
    store_.reset();
    fs::remove_all(folder_);
  }
  void Reopen() {
    store_.reset();
    auto opened = BlobStore::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  std::string ReadAll(const BlobDigest& digest, absl::string_view scope = "default") {
    return store_->ReadAt(scope, digest.sha256, 0, digest.size_bytes).value_or("<unreadable>");
  }
  size_t FilesBelow(const std::string& name) {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(options_.root + "/" + name)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  std::string folder_;
  absl::Time now_ = absl::FromUnixSeconds(1700000000);
  BlobStoreOptions options_;
  std::unique_ptr<BlobStore> store_;
};

TEST_F(BlobStoreTest, RoundTrip) {
  const std::string bytes = RandomBytes(100000, 1);
  const BlobDigest digest = DigestOf(bytes);
  EXPECT_EQ(store_->FindMissing("default", {digest}).value().size(), 1u);
  const auto info = store_->Put("default", bytes);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->sha256, digest.sha256);
  EXPECT_EQ(info->md5, Md5Hex(bytes));
  EXPECT_EQ(info->size_bytes, bytes.size());
  EXPECT_TRUE(store_->FindMissing("default", {digest}).value().empty());
  EXPECT_EQ(ReadAll(digest), bytes);
  EXPECT_EQ(store_->ReadAt("default", digest.sha256, 99990, 100).value(), bytes.substr(99990));
  EXPECT_EQ(store_->ReadAt("default", digest.sha256, 100000, 100).value(), "");
  EXPECT_EQ(store_->ReadAt("default", digest.sha256, 100001, 1).status().code(),
            StatusCode::kOutOfRange);
  Reopen();
  EXPECT_EQ(ReadAll(digest), bytes);
  EXPECT_EQ(store_->Acquire("default", digest.sha256).value().info.md5, Md5Hex(bytes));
  EXPECT_TRUE(store_->Verify("default", digest.sha256).ok());
  EXPECT_EQ(store_->GetStats().blob_bytes, bytes.size());
}

TEST_F(BlobStoreTest, EmptyBlob) {
  ASSERT_TRUE(store_->Put("default", "").ok());
  EXPECT_EQ(ReadAll(DigestOf("")), "");
}

TEST_F(BlobStoreTest, Md5CollisionGivesTwoBlobs) {
  // X. Wang, D. Feng, X. Lai, H. Yu: Collisions for Hash Functions, 2004.
  const std::string a = absl::HexStringToBytes(
      "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f8955ad340609f4b302"
      "83e488832571415a085125e8f7cdc99fd91dbdf280373c5bd8823e3156348f5bae6dacd436c919c6"
      "dd53e2b487da03fd02396306d248cda0e99f33420f577ee8ce54b67080a80d1ec69821bcb6a88393"
      "96f9652b6ff72a70");
  const std::string b = absl::HexStringToBytes(
      "d131dd02c5e6eec4693d9a0698aff95c2fcab50712467eab4004583eb8fb7f8955ad340609f4b302"
      "83e4888325f1415a085125e8f7cdc99fd91dbd7280373c5bd8823e3156348f5bae6dacd436c919c6"
      "dd53e23487da03fd02396306d248cda0e99f33420f577ee8ce54b67080280d1ec69821bcb6a88393"
      "96f965ab6ff72a70");
  ASSERT_NE(a, b);
  EXPECT_EQ(store_->Put("default", a).value().md5, store_->Put("default", b).value().md5);
  EXPECT_EQ(store_->GetStats().blobs, 2u);
  EXPECT_EQ(ReadAll(DigestOf(a)), a);
  EXPECT_EQ(ReadAll(DigestOf(b)), b);
}

TEST_F(BlobStoreTest, ScopesDoNotSeeEachOther) {
  const std::string bytes = RandomBytes(100, 4);
  ASSERT_TRUE(store_->Put("a", bytes).ok());
  EXPECT_EQ(store_->FindMissing("b", {DigestOf(bytes)}).value().size(), 1u);
  EXPECT_EQ(store_->Acquire("b", DigestOf(bytes).sha256).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->QueryUpload("b", DigestOf(bytes)).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->ScopeBytes("a"), 100u);
  EXPECT_EQ(store_->ScopeBytes("b"), 0u);
}

TEST_F(BlobStoreTest, ResumesAtEveryOffsetAfterARestart) {
  const std::string bytes = RandomBytes(40, 5);
  const BlobDigest digest = DigestOf(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    ASSERT_EQ(store_->BeginUpload("default", digest).value().committed_bytes, 0u);
    ASSERT_TRUE(store_->Append("default", digest, 0, bytes.substr(0, cut)).ok());
    Reopen();
    const UploadState state = store_->QueryUpload("default", digest).value();
    ASSERT_EQ(state.committed_bytes, cut);
    ASSERT_FALSE(state.complete);
    ASSERT_EQ(store_->BeginUpload("default", digest).value().committed_bytes, cut);
    if (cut < bytes.size()) {
      EXPECT_EQ(store_->Commit("default", digest).status().code(), StatusCode::kFailedPrecondition);
    }
    ASSERT_TRUE(store_->Append("default", digest, cut, bytes.substr(cut)).ok());
    const auto info = store_->Commit("default", digest);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->md5, Md5Hex(bytes));
    EXPECT_EQ(ReadAll(digest), bytes);
    ASSERT_TRUE(store_->Remove("default", digest.sha256).ok());
  }
  EXPECT_EQ(store_->GetStats().upload_bytes, 0u);
  EXPECT_EQ(FilesBelow("uploads"), 0u);
}

// Who asks how far an upload is does not wait for its commit, which hashes and syncs.
TEST_F(BlobStoreTest, AQueryDoesNotWaitForACommit) {
  const std::string bytes = "some bytes";
  const BlobDigest digest = DigestOf(bytes);
  std::atomic<bool> committing = false;
  std::optional<UploadState> seen;
  options_.now = [&] {
    if (committing.exchange(false)) {  // in the middle of the commit
      std::thread([&] { seen = *store_->QueryUpload("default", digest); }).join();
    }
    return now_;
  };
  Reopen();
  ASSERT_TRUE(store_->BeginUpload("default", digest).ok());
  ASSERT_TRUE(store_->Append("default", digest, 0, bytes).ok());
  committing = true;
  ASSERT_TRUE(store_->Commit("default", digest).ok());
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->committed_bytes, bytes.size());
  EXPECT_FALSE(seen->complete);
  EXPECT_TRUE(store_->QueryUpload("default", digest)->complete);
  options_.now = [this] { return now_; };
  Reopen();
}

TEST_F(BlobStoreTest, ResendIsHarmlessAndAGapIsRefused) {
  const std::string bytes = RandomBytes(100, 6);
  const BlobDigest digest = DigestOf(bytes);
  EXPECT_EQ(store_->Append("default", digest, 0, "x").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(store_->BeginUpload("default", digest).ok());
  ASSERT_TRUE(store_->Append("default", digest, 0, bytes.substr(0, 60)).ok());
  EXPECT_EQ(store_->Append("default", digest, 61, "x").status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(store_->Append("default", digest, 60, bytes.substr(0, 41)).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Append("default", digest, ~uint64_t{0}, "xy").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Append("default", digest, 20, bytes.substr(20, 60)).value().committed_bytes,
            80u);
  EXPECT_EQ(store_->Append("default", digest, 0, bytes.substr(0, 10)).value().committed_bytes, 80u);
  EXPECT_EQ(store_->Append("default", digest, 0, bytes).value().committed_bytes, 100u);
  ASSERT_TRUE(store_->Commit("default", digest).ok());
  ASSERT_TRUE(store_->Commit("default", digest).ok());
  EXPECT_TRUE(store_->Append("default", digest, 0, bytes).value().complete);
  EXPECT_TRUE(store_->BeginUpload("default", digest).value().complete);
  EXPECT_EQ(ReadAll(digest), bytes);
}

TEST_F(BlobStoreTest, WrongDigestIsDroppedAlsoAfterARestart) {
  for (const bool reopen : {false, true}) {
    const std::string bytes = RandomBytes(1000, 7);
    const BlobDigest digest = DigestOf(bytes);
    std::string wrong = bytes;
    wrong[500] ^= 1;
    ASSERT_TRUE(store_->BeginUpload("default", digest).ok());
    ASSERT_TRUE(store_->Append("default", digest, 0, wrong).ok());
    if (reopen) Reopen();
    EXPECT_EQ(store_->Commit("default", digest).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(store_->QueryUpload("default", digest).status().code(), StatusCode::kNotFound);
    EXPECT_EQ(store_->FindMissing("default", {digest}).value().size(), 1u);
    EXPECT_EQ(FilesBelow("uploads"), 0u);
    EXPECT_EQ(FilesBelow("blobs"), 0u);
    ASSERT_TRUE(store_->Put("default", bytes).ok());
    ASSERT_TRUE(store_->Remove("default", digest.sha256).ok());
  }
}

TEST_F(BlobStoreTest, WrongSizeIsAnotherBlob) {
  const std::string bytes = RandomBytes(10, 8);
  BlobDigest digest = DigestOf(bytes);
  digest.size_bytes = 11;
  ASSERT_TRUE(store_->BeginUpload("default", digest).ok());
  ASSERT_TRUE(store_->Append("default", digest, 0, bytes + "x").ok());
  EXPECT_EQ(store_->Commit("default", digest).status().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(store_->Put("default", bytes).ok());
  EXPECT_EQ(store_->FindMissing("default", {digest}).value().size(), 1u);
}

TEST_F(BlobStoreTest, RefusesMalformedNames) {
  const BlobDigest good = DigestOf("x");
  for (const char* scope : {"", ".", "..", "a/b", "../../etc"}) {
    EXPECT_EQ(store_->BeginUpload(scope, good).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(store_->FindMissing(scope, {good}).status().code(), StatusCode::kInvalidArgument);
  }
  for (const std::string& sha : {std::string("../x"), std::string(64, 'G'), std::string(63, 'a')}) {
    EXPECT_EQ(store_->BeginUpload("a", {sha, 1}).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(store_->Acquire("a", sha).status().code(), StatusCode::kInvalidArgument);
  }
  const std::vector<BlobDigest> many(BlobStore::kMaxDigests + 1, good);
  EXPECT_EQ(store_->FindMissing("a", many).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(BlobStoreTest, ReadsWhatAnUploadHasBrought) {
  const std::string bytes = RandomBytes(1000, 8);
  const BlobDigest digest = DigestOf(bytes);
  EXPECT_EQ(store_->ReadUpload("default", digest, 0, 10).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(store_->BeginUpload("default", digest).ok());
  EXPECT_EQ(*store_->ReadUpload("default", digest, 0, 10), "");
  ASSERT_TRUE(store_->Append("default", digest, 0, bytes.substr(0, 700)).ok());
  EXPECT_EQ(*store_->ReadUpload("default", digest, 600, 200), bytes.substr(600, 100));
  EXPECT_EQ(*store_->ReadUpload("default", digest, 701, 200), "");
  EXPECT_EQ(store_->ReadUpload("other", digest, 0, 10).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(store_->Append("default", digest, 700, bytes.substr(700)).ok());
  ASSERT_TRUE(store_->Commit("default", digest).ok());
  EXPECT_EQ(*store_->ReadUpload("default", digest, 600, 2000), bytes.substr(600));
}

TEST_F(BlobStoreTest, ConcurrentUploadsOfOneBlob) {
  const std::string bytes = RandomBytes(300000, 9);
  const BlobDigest digest = DigestOf(bytes);
  std::vector<std::thread> clients;
  std::vector<absl::Status> results(8);
  for (size_t c = 0; c < results.size(); ++c) {
    clients.emplace_back([&, c] {
      results[c] = [&]() -> absl::Status {
        auto state = store_->BeginUpload("default", digest);
        while (state.ok() && !state->complete && state->committed_bytes < bytes.size()) {
          const uint64_t at = state->committed_bytes;
          state = store_->Append("default", digest, at, bytes.substr(at, 1000 + 777 * c));
        }
        if (!state.ok()) return state.status();
        return store_->Commit("default", digest).status();
      }();
    });
  }
  for (std::thread& client : clients) client.join();
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(ReadAll(digest), bytes);
  EXPECT_EQ(store_->GetStats().blobs, 1u);
  EXPECT_EQ(store_->GetStats().upload_bytes, 0u);
}

TEST_F(BlobStoreTest, FileSizeLimitGivesResourceExhaustedAndHarmsNothing) {
  signal(SIGXFSZ, SIG_IGN);
  const std::string old_bytes = RandomBytes(50000, 10), bytes = RandomBytes(100000, 11);
  ASSERT_TRUE(store_->Put("default", old_bytes).ok());
  const BlobDigest digest = DigestOf(bytes);
  ASSERT_TRUE(store_->BeginUpload("default", digest).ok());
  ASSERT_TRUE(store_->Append("default", digest, 0, bytes.substr(0, 30000)).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 65536;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto full = store_->Append("default", digest, 30000, bytes.substr(30000));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(full.status().code(), StatusCode::kResourceExhausted) << full.status();
  EXPECT_EQ(store_->QueryUpload("default", digest).value().committed_bytes, 30000u);
  EXPECT_EQ(ReadAll(DigestOf(old_bytes)), old_bytes);
  ASSERT_TRUE(store_->Append("default", digest, 30000, bytes.substr(30000)).ok());
  ASSERT_TRUE(store_->Commit("default", digest).ok());
  EXPECT_EQ(ReadAll(digest), bytes);
}

TEST_F(BlobStoreTest, FullDisk) {
  const std::string mounted = folder_ + "/disk";
  fs::create_directory(mounted);
  if (mount("tmpfs", mounted.c_str(), "tmpfs", 0, "size=512k") != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs here";
  }
  options_.root = mounted + "/store";
  Reopen();
  const std::string old_bytes = RandomBytes(200000, 12), bytes = RandomBytes(200000, 13);
  ASSERT_TRUE(store_->Put("default", old_bytes).ok());
  const BlobDigest digest = DigestOf(bytes);
  ASSERT_TRUE(store_->BeginUpload("default", digest).ok());
  ASSERT_TRUE(store_->Append("default", digest, 0, bytes.substr(0, 50000)).ok());
  std::ofstream(mounted + "/filler") << std::string(150000, 'f') << std::flush;
  {
    const BlobRef held = store_->Acquire("default", DigestOf(old_bytes).sha256).value();
    EXPECT_EQ(store_->Append("default", digest, 50000, bytes.substr(50000)).status().code(),
              StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(store_->BeginUpload("default", DigestOf(std::string(400000, 'x'))).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(store_->QueryUpload("default", digest).value().committed_bytes, 50000u);
  EXPECT_EQ(ReadAll(DigestOf(old_bytes)), old_bytes);  // what was refused evicted nothing
  fs::remove(mounted + "/filler");
  EXPECT_TRUE(store_->Append("default", digest, 50000, bytes.substr(50000)).ok());
  EXPECT_TRUE(store_->Commit("default", digest).ok());
  EXPECT_EQ(ReadAll(digest), bytes);
  store_.reset();
  EXPECT_EQ(umount(mounted.c_str()), 0);
}

TEST_F(BlobStoreTest, LimitsAndEviction) {
  options_.soft_limit_bytes = 3000;
  options_.hard_limit_bytes = 4000;
  options_.max_blob_bytes = 5000;
  options_.max_open_uploads = 2;
  Reopen();
  std::vector<BlobDigest> digests;
  for (unsigned i = 0; i < 3; ++i) {
    const std::string bytes = RandomBytes(1000, 20 + i);
    digests.push_back(DigestOf(bytes));
    now_ += absl::Minutes(2);
    ASSERT_TRUE(store_->Put("default", bytes).ok());
  }
  EXPECT_EQ(store_->GetStats().evicted_blobs, 0u);
  now_ += absl::Minutes(2);
  ASSERT_TRUE(store_->Acquire("default", digests[0].sha256).ok());  // used last
  Reopen();                                                         // the order survives
  ASSERT_TRUE(store_->Put("default", RandomBytes(1000, 30)).ok());
  EXPECT_EQ(store_->FindMissing("default", digests).value(), std::vector<BlobDigest>{digests[1]});

  // Held blobs stay; the hard limit refuses and evicts nothing.
  const BlobRef a = store_->Acquire("default", digests[0].sha256).value();
  const BlobRef b = store_->Acquire("default", digests[2].sha256).value();
  const uint64_t evicted = store_->GetStats().evicted_blobs;
  EXPECT_EQ(store_->BeginUpload("default", DigestOf(std::string(2001, 'x'))).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(store_->GetStats().evicted_blobs, evicted);
  EXPECT_EQ(store_->Remove("default", digests[0].sha256).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(store_->Put("default", std::string(2000, 'x')).ok());
  EXPECT_TRUE(store_->FindMissing("default", {digests[0], digests[2]}).value().empty());

  EXPECT_EQ(store_->BeginUpload("default", DigestOf(std::string(5001, 'x'))).status().code(),
            StatusCode::kInvalidArgument);
  ASSERT_TRUE(store_->BeginUpload("default", DigestOf("1")).ok());
  ASSERT_TRUE(store_->BeginUpload("default", DigestOf("2")).ok());
  EXPECT_EQ(store_->BeginUpload("default", DigestOf("3")).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(store_->DropIdleUploads(absl::Minutes(1)), 0u);
  now_ += absl::Minutes(2);
  EXPECT_EQ(store_->DropIdleUploads(absl::Minutes(1)), 2u);
  EXPECT_EQ(store_->GetStats().upload_bytes, 0u);
  EXPECT_TRUE(store_->BeginUpload("default", DigestOf("3")).ok());
  EXPECT_TRUE(store_->AbortUpload("default", DigestOf("3")).ok());
  EXPECT_EQ(store_->GetStats().open_uploads, 0u);
}

TEST_F(BlobStoreTest, UploadsOfAScopeOrOfAllButTheOwnAreDropped) {
  options_.own_scope = "0own";
  Reopen();
  for (const char* scope : {"a", "b", "0own"}) {
    ASSERT_TRUE(store_->BeginUpload(scope, DigestOf("12")).ok());
    ASSERT_TRUE(store_->Append(scope, DigestOf("12"), 0, "1").ok());
  }
  EXPECT_EQ(store_->ScopeUploads("a"), 1u);
  EXPECT_EQ(store_->DropUploads("a", absl::Minutes(1)).uploads, 0u);
  const BlobStore::Dropped dropped = store_->DropUploads("a", absl::ZeroDuration());
  EXPECT_EQ(dropped.uploads, 1u);
  EXPECT_EQ(dropped.bytes, 1u);
  EXPECT_EQ(store_->ScopeUploads("a"), 0u);
  EXPECT_EQ(store_->Append("a", DigestOf("12"), 1, "2").status().code(), StatusCode::kNotFound);
  now_ += absl::Minutes(2);
  ASSERT_TRUE(store_->BeginUpload("a", DigestOf("12")).ok());  // anew, and not idle
  EXPECT_EQ(store_->DropUploads("", absl::Minutes(1)).uploads, 1u);
  EXPECT_EQ(store_->ScopeUploads("b"), 0u);
  EXPECT_EQ(store_->ScopeUploads("0own"), 1u);
  EXPECT_EQ(store_->GetStats().upload_bytes, 1u);
}

TEST_F(BlobStoreTest, AScopesLimitIsMadeRoomInByItsOwnBlobs) {
  uint64_t limit = 3000;
  options_.scope_limit = [&](absl::string_view scope) {
    return scope == "a" ? limit : BlobStore::kNoLimit;
  };
  Reopen();
  const std::string other = RandomBytes(1000, 50);
  ASSERT_TRUE(store_->Put("b", other).ok());
  std::vector<BlobDigest> digests;
  for (unsigned i = 0; i < 3; ++i) {
    const std::string bytes = RandomBytes(1000, 51 + i);
    digests.push_back(DigestOf(bytes));
    ASSERT_TRUE(store_->Put("a", bytes).ok());
  }
  const auto put = [&](const std::string& bytes) {
    return ScopeLimitOf(store_->Put("a", bytes).status());
  };
  EXPECT_EQ(put(std::string(3001, 'x')), ScopeLimit::kBytes);
  EXPECT_EQ(store_->ScopeBytes("a"), 3000u);
  limit = 4000;
  EXPECT_EQ(put(std::string(1000, 'x')), ScopeLimit::kNone);
  EXPECT_EQ(store_->ScopeBytes("a"), 4000u);
  std::optional<BlobRef> held = store_->Acquire("a", digests[0].sha256).value();
  EXPECT_EQ(put(std::string(3001, 'y')), ScopeLimit::kBytes);
  EXPECT_EQ(store_->ScopeBytes("a"), 4000u);
  // The other ones of the scope go as they must, the other scope's stays.
  EXPECT_EQ(put(std::string(2000, 'y')), ScopeLimit::kNone);
  EXPECT_EQ(store_->ScopeBytes("a"), 4000u);
  EXPECT_EQ(store_->FindMissing("a", digests).value().size(), 2u);
  EXPECT_TRUE(store_->FindMissing("b", {DigestOf(other)}).value().empty());
  // A blob that is there already needs no room.
  limit = 1;
  EXPECT_TRUE(store_->BeginUpload("a", digests[0])->complete);
}

// Forty clients that declare a gigabyte each and send a byte take forty bytes.
TEST_F(BlobStoreTest, WhatIsDeclaredAndNotSentTakesNoRoom) {
  const std::string idle = RandomBytes(1000, 60);
  ASSERT_TRUE(store_->Put("victim", idle).ok());
  for (int i = 0; i < 40; ++i) {
    const BlobDigest digest{Sha256Hex(absl::StrCat(i)), uint64_t{1} << 30};
    ASSERT_TRUE(store_->BeginUpload("attacker", digest).ok());
    ASSERT_TRUE(store_->Append("attacker", digest, 0, "x").ok());
  }
  EXPECT_EQ(store_->GetStats().upload_bytes, 40u);
  EXPECT_EQ(store_->GetStats().evicted_blobs, 0u);
  ASSERT_TRUE(store_->Put("victim", RandomBytes(1000, 61)).ok());
  Reopen();
  EXPECT_EQ(store_->GetStats().upload_bytes, 40u);
  ASSERT_TRUE(store_->Put("victim", RandomBytes(1000, 62)).ok());
  EXPECT_EQ(ReadAll(DigestOf(idle), "victim"), idle);
  now_ += absl::Minutes(5);
  EXPECT_EQ(store_->DropIdleUploads(absl::Minutes(5)), 40u);
  EXPECT_EQ(store_->GetStats().upload_bytes, 0u);
  EXPECT_EQ(FilesBelow("uploads"), 0u);
}

TEST_F(BlobStoreTest, AScopeHasSoManyUploadsAndTheOwnScopeIsNeverRefused) {
  options_.max_open_uploads_of_scope = 2;
  options_.max_open_uploads = 3;
  options_.hard_limit_bytes = 100;
  options_.own_scope = "0own";
  Reopen();
  for (const char* name : {"1", "2"}) ASSERT_TRUE(store_->BeginUpload("a", DigestOf(name)).ok());
  EXPECT_EQ(ScopeLimitOf(store_->BeginUpload("a", DigestOf("3")).status()),
            ScopeLimit::kOpenUploads);
  EXPECT_TRUE(store_->BeginUpload("a", DigestOf("2")).ok());  // it is under way
  ASSERT_TRUE(store_->BeginUpload("b", DigestOf("1")).ok());
  const absl::Status full = store_->BeginUpload("c", DigestOf("1")).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ScopeLimitOf(full), ScopeLimit::kNone);
  EXPECT_TRUE(store_->Put("0own", std::string(101, 'x')).ok());
}

// Room for one that is refused in the end is not made at the others' cost.
TEST_F(BlobStoreTest, ARefusedUploadEvictsNothing) {
  options_.soft_limit_bytes = 3000;
  options_.hard_limit_bytes = 3000;
  options_.scope_limit = [](absl::string_view) { return uint64_t{2500}; };
  Reopen();
  const std::string old_bytes = RandomBytes(1000, 70), held_bytes = RandomBytes(2000, 71);
  ASSERT_TRUE(store_->Put("a", old_bytes).ok());
  ASSERT_TRUE(store_->Put("b", held_bytes).ok());
  const BlobRef held = store_->Acquire("b", DigestOf(held_bytes).sha256).value();
  // Within the scope's limit by its own old blob's going, but over the hard limit.
  EXPECT_EQ(store_->Put("a", RandomBytes(2000, 72)).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadAll(DigestOf(old_bytes), "a"), old_bytes);
}

TEST_F(BlobStoreTest, ADamagedBlobIsMissingWhileItIsHeldAndCountedOnce) {
  const std::string bytes = RandomBytes(5000, 80);
  const BlobDigest digest = DigestOf(bytes);
  ASSERT_TRUE(store_->Put("default", bytes).ok());
  {
    const BlobRef blob = store_->Acquire("default", digest.sha256).value();
    const BlobRef another = blob;
    fs::permissions(blob.path, fs::perms::owner_write, fs::perm_options::add);
    std::fstream(blob.path, std::ios::in | std::ios::out | std::ios::binary).seekp(7) << "x";
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(store_->Verify("default", digest.sha256).ok());
    EXPECT_EQ(store_->GetStats().damaged_blobs, 1u);
    EXPECT_EQ(store_->FindMissing("default", {digest}).value().size(), 1u);
    EXPECT_EQ(store_->Acquire("default", digest.sha256).status().code(), StatusCode::kNotFound);
    EXPECT_EQ(FilesBelow("blobs"), 1u);
  }
  EXPECT_EQ(FilesBelow("blobs"), 0u);
  // Sent again while somebody holds the damaged one: it stays.
  ASSERT_TRUE(store_->Put("default", bytes).ok());
  {
    const BlobRef blob = store_->Acquire("default", digest.sha256).value();
    fs::remove(blob.path);
    EXPECT_EQ(store_->Verify("default", digest.sha256).code(), StatusCode::kDataLoss);
    ASSERT_TRUE(store_->Put("default", bytes).ok());
  }
  EXPECT_EQ(ReadAll(digest), bytes);
  EXPECT_EQ(store_->GetStats().blob_bytes, bytes.size());
}

TEST_F(BlobStoreTest, DamageIsFoundAndCanBeRepairedByAnUpload) {
  const std::string bytes = RandomBytes(5000, 40);
  const BlobDigest digest = DigestOf(bytes);
  for (const bool cut : {false, true}) {
    ASSERT_TRUE(store_->Put("default", bytes).ok());
    std::string path;
    {
      const BlobRef blob = store_->Acquire("default", digest.sha256).value();
      path = blob.path;
      struct stat info;
      ASSERT_EQ(stat(path.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0777, 0444u);
    }
    fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
    if (cut) {
      ASSERT_EQ(truncate(path.c_str(), 100), 0);
      EXPECT_EQ(store_->ReadAt("default", digest.sha256, 0, 5000).status().code(),
                StatusCode::kDataLoss);
      Reopen();  // counts the real length now: the blob is missing
      EXPECT_EQ(store_->FindMissing("default", {digest}).value().size(), 1u);
    } else {
      std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(77) << "damage";
      EXPECT_EQ(store_->Verify("default", digest.sha256).code(), StatusCode::kDataLoss);
      EXPECT_EQ(store_->GetStats().damaged_blobs, 1u);
    }
    ASSERT_TRUE(store_->Put("default", bytes).ok());
    EXPECT_EQ(ReadAll(digest), bytes);
    EXPECT_EQ(store_->GetStats().blob_bytes, bytes.size());
    ASSERT_TRUE(store_->Remove("default", digest.sha256).ok());
    EXPECT_EQ(store_->GetStats().blob_bytes, 0u);
  }
}

TEST_F(BlobStoreTest, OpenRefusesASecondUserAndANewerFormat) {
  EXPECT_EQ(BlobStore::Open(options_).status().code(), StatusCode::kFailedPrecondition);
  store_.reset();
  std::ofstream(options_.root + "/format") << "2";
  EXPECT_EQ(BlobStore::Open(options_).status().code(), StatusCode::kFailedPrecondition);
  options_.root = "relative";
  EXPECT_EQ(BlobStore::Open(options_).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(BlobStoreTest, CrashBetweenSyncAndRenameLosesNothing) {
  const std::string bytes = RandomBytes(100, 50);
  const BlobDigest digest = DigestOf(bytes);
  ASSERT_TRUE(store_->BeginUpload("default", digest).ok());
  ASSERT_TRUE(store_->Append("default", digest, 0, bytes).ok());
  for (const auto& file : fs::directory_iterator(options_.root + "/uploads/default")) {
    fs::permissions(file.path(), static_cast<fs::perms>(0444));
  }
  std::ofstream(options_.root + "/uploads/default/strange") << "x";
  Reopen();
  EXPECT_EQ(store_->BeginUpload("default", digest).value().committed_bytes, 100u);
  EXPECT_TRUE(store_->Commit("default", digest).ok());
  EXPECT_EQ(ReadAll(digest), bytes);
}

}  // namespace
}  // namespace npuc::cache
