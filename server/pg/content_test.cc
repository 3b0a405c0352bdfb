#include "server/pg/content.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "cache/cache_test_util.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/pg/pg_test_util.h"
#include "server/pg/shared_inputs.h"
#include "server/pg/shared_results.h"

namespace npuc::pg {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// The content of a node: local stores in a folder of its own, behind the shared ones.
struct NodeContent {
  explicit NodeContent(const ConnectionOptions& options) : sessions(options) {
    std::string pattern = ::testing::TempDir() + "/content_XXXXXX";
    folder = mkdtemp(pattern.data());
    cache::BlobStoreOptions blob_options;
    blob_options.root = folder + "/blobs";
    blobs = *cache::BlobStore::Open(std::move(blob_options));
    artifacts = *cache::ArtifactCache::Open({.path = folder + "/artifacts", .sync_writes = false});
    inputs.emplace(blobs.get(), &content);
    results.emplace(artifacts.get(), &content, &features);
  }
  ~NodeContent() {
    artifacts.reset();
    blobs.reset();
    std::filesystem::remove_all(folder);
  }

  std::string folder;
  Sessions sessions;
  Content content{&sessions};
  int64_t level = base::kFeatureLevel;
  const base::Features features{[this] { return level; }};
  std::unique_ptr<cache::BlobStore> blobs;
  std::unique_ptr<cache::ArtifactCache> artifacts;
  std::optional<SharedInputs> inputs;
  std::optional<SharedResults> results;
};

class ContentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    const ConnectionOptions options = TestServer::Get()->NewDatabase();
    a_.emplace(options);
    b_.emplace(options);
  }
  cache::BlobDigest Upload(NodeContent& node, const std::string& bytes) {
    const cache::BlobDigest digest{Sha256Hex(bytes), bytes.size()};
    EXPECT_TRUE(node.inputs->BeginUpload("acme", digest).ok());
    EXPECT_TRUE(node.inputs->Append("acme", digest, 0, bytes).ok());
    const auto committed = node.inputs->Commit("acme", digest);
    EXPECT_TRUE(committed.ok()) << committed.status();
    return digest;
  }
  int64_t Count(const std::string& what) { return a_->sessions.Read(what.c_str(), {})->Int(0, 0); }
  void MustRun(const std::string& sql) {
    ASSERT_TRUE(a_->sessions.Read(sql.c_str(), {}).ok()) << sql;
  }

  std::optional<NodeContent> a_, b_;
};

TEST_F(ContentTest, WhatOneNodeTookInAnotherUses) {
  const std::string bytes = cache::RandomBytes(700'000, 1);  // three pieces
  const cache::BlobDigest digest = Upload(*a_, bytes);
  const cache::BlobDigest other{std::string(64, 'a'), 5};
  const cache::BlobDigest longer{digest.sha256, digest.size_bytes + 1};
  EXPECT_THAT(*b_->inputs->FindMissing("acme", {digest, other, longer}),
              ::testing::ElementsAre(other, longer));
  EXPECT_THAT(*b_->inputs->FindMissing("acm", {digest}), SizeIs(1)) << "another tenant's";
  EXPECT_TRUE(b_->inputs->BeginUpload("acme", digest)->complete);
  EXPECT_TRUE(b_->inputs->QueryUpload("acme", digest)->complete);
  const auto held = b_->inputs->Acquire("acme", digest.sha256);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->info.size_bytes, bytes.size());
  EXPECT_EQ(*b_->blobs->ReadAt("acme", digest.sha256, 0, 1 << 20), bytes);
  EXPECT_TRUE(absl::IsNotFound(b_->inputs->Acquire("acm", digest.sha256).status()));
  EXPECT_TRUE(absl::IsNotFound(b_->inputs->Acquire("acme", other.sha256).status()));
}

// An upload at b broke off with bytes that are not the file's.
TEST_F(ContentTest, AWrongUploadDoesNotHarmTheSharedFile) {
  const std::string bytes = cache::RandomBytes(700'000, 1);
  const cache::BlobDigest digest{Sha256Hex(bytes), bytes.size()};
  ASSERT_TRUE(b_->inputs->BeginUpload("acme", digest).ok());
  ASSERT_TRUE(b_->inputs->Append("acme", digest, 0, std::string(1000, 'x')).ok());
  Upload(*a_, bytes);
  const auto held = b_->inputs->Acquire("acme", digest.sha256);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(*b_->blobs->ReadAt("acme", digest.sha256, 0, 1 << 20), bytes);
  EXPECT_EQ(Count("SELECT count(*) FROM content"), 1);
}

// The job waits; it must not fail.
TEST_F(ContentTest, ANodeWithoutRoomCannotTakeAFileNow) {
  const cache::BlobDigest digest = Upload(*a_, "model");
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(b_->inputs->BeginUpload("acme", {Sha256Hex(absl::StrCat(i)), 10}).ok());
  }
  const absl::Status full = b_->inputs->Acquire("acme", digest.sha256).status();
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
}

TEST_F(ContentTest, AnUploadGoesOnAtAnotherNodeBehindItsLastWholePart) {
  constexpr uint64_t kPart = SharedInputs::kPartBytes;
  const std::string bytes = cache::RandomBytes(3 * kPart, 3);
  const cache::BlobDigest digest{Sha256Hex(bytes), bytes.size()};
  const auto append = [&](NodeContent& node, uint64_t begin, uint64_t end) {
    return node.inputs->Append("acme", digest, begin,
                               absl::string_view(bytes).substr(begin, end - begin));
  };
  ASSERT_TRUE(a_->inputs->BeginUpload("acme", digest).ok());
  ASSERT_TRUE(append(*a_, 0, kPart - 1).ok());
  EXPECT_TRUE(absl::IsNotFound(b_->inputs->QueryUpload("acme", digest).status()));
  ASSERT_TRUE(append(*a_, kPart - 1, 2 * kPart + 5).ok());
  // A repeat after a lost answer shares nothing twice.
  ASSERT_TRUE(append(*a_, kPart - 1, 2 * kPart + 5).ok());
  EXPECT_EQ(Count("SELECT count(*) FROM content"), 2);
  EXPECT_EQ(Count("SELECT count(*) FROM piece"), 2 * int64_t{kPart / Content::kPieceBytes});

  EXPECT_EQ(b_->inputs->QueryUpload("acme", digest)->committed_bytes, 2 * kPart);
  EXPECT_TRUE(absl::IsNotFound(b_->inputs->QueryUpload("acm", digest).status())) << "of another";
  EXPECT_EQ(b_->inputs->BeginUpload("acme", digest)->committed_bytes, 2 * kPart);
  ASSERT_TRUE(append(*b_, 2 * kPart, 3 * kPart).ok());
  ASSERT_TRUE(b_->inputs->Commit("acme", digest).ok());
  EXPECT_EQ(*b_->blobs->ReadAt("acme", digest.sha256, 2 * kPart - 9, 18),
            bytes.substr(2 * kPart - 9, 18));
  EXPECT_TRUE(a_->inputs->QueryUpload("acme", digest)->complete);
  EXPECT_EQ(Count("SELECT count(*) FROM content"), 1) << "the blob alone";
}

TEST_F(ContentTest, DamagedPartsOfAnUploadAreSentAgain) {
  constexpr uint64_t kPart = SharedInputs::kPartBytes;
  const std::string bytes = cache::RandomBytes(2 * kPart + 1, 4);
  const cache::BlobDigest digest{Sha256Hex(bytes), bytes.size()};
  ASSERT_TRUE(a_->inputs->BeginUpload("acme", digest).ok());
  ASSERT_TRUE(a_->inputs->Append("acme", digest, 0, bytes.substr(0, 2 * kPart)).ok());
  // A piece of the second part is missing, and one of the first has other bytes.
  MustRun("DELETE FROM piece WHERE no = 3 AND piece_set = (SELECT max(piece_set) FROM piece)");
  MustRun(
      "UPDATE piece SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE no = 1 AND "
      "piece_set = (SELECT min(piece_set) FROM piece)");
  const uint64_t known = b_->inputs->BeginUpload("acme", digest)->committed_bytes;
  EXPECT_EQ(known, kPart + 3 * Content::kPieceBytes);
  EXPECT_EQ(b_->inputs->QueryUpload("acme", digest)->committed_bytes, known);
  ASSERT_TRUE(b_->inputs->Append("acme", digest, known, bytes.substr(known)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(b_->inputs->Commit("acme", digest).status()));
  EXPECT_EQ(Count("SELECT count(*) FROM content"), 0);
  EXPECT_EQ(b_->inputs->BeginUpload("acme", digest)->committed_bytes, 0u);
  ASSERT_TRUE(b_->inputs->Append("acme", digest, 0, bytes).ok());
  EXPECT_TRUE(b_->inputs->Commit("acme", digest).ok());
}

// A tenant that declares, sends and leaves has no more room than its blobs may have.
TEST_F(ContentTest, PartsCountAsWhatATenantStores) {
  constexpr uint64_t kPart = SharedInputs::kPartBytes;
  SharedInputs bounded(
      a_->blobs.get(), &a_->content,
      {.scope_limit = [](absl::string_view /*scope*/) -> uint64_t { return 3 * kPart; }});
  for (int i = 0; i < 5; ++i) {
    const cache::BlobDigest digest{Sha256Hex(absl::StrCat(i)), 2 * kPart};
    if (!bounded.BeginUpload("acme", digest).ok()) continue;
    ASSERT_TRUE(bounded.Append("acme", digest, 0, std::string(kPart, 'x')).ok());
  }
  EXPECT_EQ(Count("SELECT sum(bytes)::bigint FROM content"), int64_t{2 * kPart});
}

TEST_F(ContentTest, ABlobThatWentIsSharedAgainByANodeThatHasIt) {
  const cache::BlobDigest digest = Upload(*a_, "a model");
  ASSERT_TRUE(a_->content.Remove("blob/acme/" + digest.sha256).ok());
  EXPECT_TRUE(absl::IsNotFound(b_->inputs->Acquire("acme", digest.sha256).status()));
  ASSERT_TRUE(a_->inputs->Acquire("acme", digest.sha256).ok());
  EXPECT_TRUE(b_->inputs->Acquire("acme", digest.sha256).ok());
}

// No wrong byte leaves the shared store, whatever is damaged in it.
TEST_F(ContentTest, DamageOfTheSharedStoreIsAMiss) {
  const cache::CacheKey key = *cache::CacheKey::Parse("acme/" + std::string(64, 'b'));
  const char* const damages[] = {
      "UPDATE piece SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE no = 0",
      "UPDATE piece SET body = substr(body, 2) WHERE no = 1",
      "UPDATE piece SET body = body || body WHERE no = 1",
      "DELETE FROM piece WHERE no = 1",
      "UPDATE content SET bytes = bytes - 1",
      "UPDATE content SET facts = substr(facts, 2)",
  };
  // Packed results and those of before.
  for (size_t i = 0; i < 2 * std::size(damages); ++i) {
    const char* const damage = damages[i / 2];
    a_->level = base::kFeatureLevel - static_cast<int64_t>(i % 2);
    const std::string bytes = cache::RandomBytes(300'000, 7);
    const bool is_of_facts = std::string(damage).find("facts") != std::string::npos;
    const cache::BlobDigest digest = Upload(*a_, bytes);
    const cache::ArtifactView view{.name = "m.h", .bytes = bytes};
    ASSERT_TRUE(a_->results->Store(key, {view}, "meta", nullptr).ok());
    MustRun(damage);
    if (!is_of_facts) {
      EXPECT_TRUE(absl::IsNotFound(b_->inputs->Acquire("acme", digest.sha256).status())) << damage;
    }
    const auto looked = b_->results->Lookup(key);
    ASSERT_TRUE(looked.ok()) << looked.status();
    EXPECT_FALSE(looked->has_value()) << damage;
    MustRun("DELETE FROM content");
    MustRun("DELETE FROM piece");
  }
}

TEST_F(ContentTest, AResultOfOneNodeIsReadAtAnother) {
  const cache::CacheKey key = *cache::CacheKey::Parse("acme/" + std::string(64, 'c'));
  const std::string large = cache::RandomBytes(600'000, 2);
  const std::vector<cache::ArtifactView> views = {{.name = "m.h", .bytes = large},
                                                  {.name = "empty", .bytes = ""}};
  EXPECT_FALSE(b_->results->Lookup(key)->has_value());
  ASSERT_TRUE(a_->results->Store(key, views, "meta\0data", nullptr).ok());
  const auto reader = b_->results->OpenArtifact(key, "m.h");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(*(*reader)->Read(0, 1 << 20), large);
  const auto looked = b_->results->Lookup(key);
  ASSERT_TRUE(looked.ok() && looked->has_value());
  EXPECT_THAT((*looked)->artifacts, SizeIs(2));
  EXPECT_EQ((*looked)->metadata, "meta");
  EXPECT_TRUE(absl::IsNotFound(b_->results->OpenArtifact(key, "other").status()));
  // A later compile replaces it, and leaves nothing of the old one.
  const int64_t pieces = Count("SELECT count(*) FROM piece");
  ASSERT_TRUE(a_->results->Store(key, views, "later", nullptr).ok());
  EXPECT_EQ(Count("SELECT count(*) FROM piece"), pieces);
  // A node that uses a result shares it again where that is missing.
  ASSERT_TRUE(a_->content.Remove("result/" + key.ToString()).ok());
  ASSERT_TRUE((*a_->results->Lookup(key)).has_value());
  EXPECT_EQ(Count("SELECT count(*) FROM content"), 1);
}

TEST_F(ContentTest, ResultsArePackedOnceAllNodesCanReadThem) {
  std::string header;
  for (int64_t i = 0; i < 50'000; ++i) {
    absl::StrAppend(&header, "0x", absl::Hex(i * i % 256), ", ");
  }
  const std::vector<cache::ArtifactView> views = {{.name = "m.h", .bytes = header}};
  const auto stored_bytes = [&](char name, int64_t level) {
    a_->level = level;
    const cache::CacheKey key = *cache::CacheKey::Parse("acme/" + std::string(64, name));
    EXPECT_TRUE(a_->results->Store(key, views, "meta", nullptr).ok());
    const auto looked = b_->results->Lookup(key);
    EXPECT_TRUE(looked.ok() && looked->has_value());
    const auto reader = b_->results->OpenArtifact(key, "m.h");
    EXPECT_TRUE(reader.ok() && *(*reader)->Read(0, 1 << 20) == header);
    return Count(
        absl::StrCat("SELECT bytes FROM content WHERE name = 'result/", key.ToString(), "'"));
  };
  const auto plain_bytes = static_cast<int64_t>(header.size() + 4);
  const auto level = static_cast<int64_t>(base::Feature::kPackedResults);
  EXPECT_EQ(stored_bytes('c', level - 1), plain_bytes);
  EXPECT_LT(stored_bytes('d', level), plain_bytes / 5);
}

TEST_F(ContentTest, TheSweepTakesWhatNobodyKeepsAndWhatBrokeOff) {
  const cache::BlobDigest kept = Upload(*a_, "kept");
  const cache::BlobDigest used = Upload(*a_, "used");
  Upload(*a_, "unused");
  // As if this was long ago; one of them is used again.
  MustRun("UPDATE content SET keep_until_us = server_us() - 1 WHERE name <> 'blob/acme/" +
          kept.sha256 + "'");
  EXPECT_THAT(*b_->inputs->FindMissing("acme", {used}), IsEmpty());
  // A node died in the middle of a put, a day ago.
  EXPECT_FALSE(a_->content
                   .Put(Content::Kind::kBlob, "acme", "blob/half", 600'000, "",
                        [](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
                          if (offset > 0) return absl::InternalError("the disk");
                          return std::string(max_bytes, 'x');
                        })
                   .ok());
  EXPECT_FALSE(a_->content.Find("blob/half")->has_value());
  EXPECT_EQ(*a_->content.Sweep(100), 1u);
  MustRun("UPDATE piece_set SET begun_us = 0");
  EXPECT_EQ(*a_->content.Sweep(100), 1u);
  EXPECT_EQ(Count("SELECT count(*) FROM content"), 2);
  EXPECT_EQ(Count("SELECT count(*) FROM piece"), 2);
  EXPECT_EQ(Count("SELECT count(*) FROM piece_set"), 0);
}

TEST_F(ContentTest, RoomIsMadeOfTheLongestUnusedButNotOfWhatJobsNeed) {
  const cache::BlobDigest needed = Upload(*a_, "1234567890");
  const cache::BlobDigest oldest = Upload(*a_, "2234567890");
  const cache::BlobDigest old = Upload(*a_, "3234567890");
  const cache::BlobDigest recent = Upload(*a_, "4234567890");
  const auto used_before = [&](const cache::BlobDigest& blob, int hours) {
    MustRun(absl::StrCat("UPDATE content SET keep_until_us = keep_until_us - ", hours,
                         " * 3600000000 WHERE name = '", BlobName("acme", blob.sha256), "'"));
  };
  used_before(needed, 9);
  used_before(oldest, 8);
  used_before(old, 7);
  MustRun(absl::StrCat("INSERT INTO job_input VALUES ('", BlobName("acme", needed.sha256),
                       "', 'job')"));
  EXPECT_EQ(*a_->content.MakeRoom(40), 40u);
  EXPECT_EQ(*a_->content.MakeRoomIn("acme", 30), 30u);
  EXPECT_FALSE(a_->content.Find(BlobName("acme", oldest.sha256))->has_value());
  EXPECT_TRUE(a_->content.Find(BlobName("acme", old.sha256))->has_value());
  EXPECT_EQ(*a_->content.MakeRoomIn("other", 0), 0u);
  // That look was a use.
  EXPECT_EQ(*a_->content.MakeRoom(0), 30u);
  used_before(old, 7);
  EXPECT_EQ(*a_->content.MakeRoom(0), 20u);
  EXPECT_TRUE(a_->content.Find(BlobName("acme", needed.sha256))->has_value());
  EXPECT_TRUE(a_->content.Find(BlobName("acme", recent.sha256))->has_value());
  EXPECT_EQ(Count("SELECT count(*) FROM piece"), 2);
  MustRun("DELETE FROM job_input");
  used_before(needed, 9);
  EXPECT_EQ(*a_->content.MakeRoom(0), 10u);
}

TEST_F(ContentTest, WhatAnOperatorEvictsGoesButNotWhatJobsNeed) {
  const cache::BlobDigest needed = Upload(*a_, "needed");
  const cache::BlobDigest idle = Upload(*a_, "idle");
  MustRun(absl::StrCat("INSERT INTO job_input VALUES ('", BlobName("acme", needed.sha256),
                       "', 'job')"));
  EXPECT_TRUE(absl::IsFailedPrecondition(b_->inputs->Remove("acme", needed.sha256)));
  EXPECT_TRUE(a_->inputs->Acquire("acme", needed.sha256).ok());
  ASSERT_TRUE(a_->inputs->Remove("acme", idle.sha256).ok());
  EXPECT_TRUE(absl::IsNotFound(a_->inputs->Remove("acme", idle.sha256)));
  EXPECT_TRUE(absl::IsNotFound(b_->inputs->Acquire("acme", idle.sha256).status()));
  const cache::CacheKey key = *cache::CacheKey::Parse("acme/" + std::string(64, 'c'));
  ASSERT_TRUE(a_->results->Store(key, {}, "meta", nullptr).ok());
  EXPECT_TRUE(*b_->results->Remove(key));  // which has no copy
  EXPECT_TRUE(*a_->results->Remove(key));
  EXPECT_FALSE(*a_->results->Remove(key));
  EXPECT_FALSE(b_->results->Lookup(key)->has_value());
}

TEST_F(ContentTest, AnUploadThatDoesNotFitIsRefused) {
  SharedInputs bounded(a_->blobs.get(), &a_->content,
                       {.max_bytes = 100,
                        .scope_limit = [](absl::string_view scope) -> uint64_t {
                          return scope == "small" ? 10 : 1000;
                        },
                        .own_scope = "own"});
  const auto begin = [&](absl::string_view scope, uint64_t size) {
    return bounded.BeginUpload(scope, {Sha256Hex(absl::StrCat(size)), size}).status();
  };
  EXPECT_TRUE(begin("acme", 100).ok());
  EXPECT_EQ(begin("acme", 101).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(cache::ScopeLimitOf(begin("acme", 101)), cache::ScopeLimit::kNone);
  EXPECT_EQ(cache::ScopeLimitOf(begin("small", 11)), cache::ScopeLimit::kBytes);
  Upload(*b_, std::string(90, 'x'));
  EXPECT_EQ(begin("acme", 11).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(begin("own", 11).ok());
  MustRun("UPDATE content SET keep_until_us = keep_until_us - 9 * 3600000000");
  EXPECT_TRUE(begin("acme", 11).ok());
}

}  // namespace
}  // namespace npuc::pg
