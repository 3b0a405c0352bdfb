// Contents in an object store, here a folder: what nodes share, what is damaged, away, or left
// behind by a node that died.
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include "absl/strings/str_cat.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "cache/cache_test_util.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/objects/folder_store.h"
#include "server/pg/content.h"
#include "server/pg/pg_test_util.h"
#include "server/pg/shared_inputs.h"
#include "server/pg/shared_results.h"

namespace npuc::pg {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string NewFolder() {
  std::string pattern = ::testing::TempDir() + "/content_objects_XXXXXX";
  return mkdtemp(pattern.data());
}

// Fails at the step that the test names, as a node does that dies there.
class DyingStore : public objects::ObjectStore {
 public:
  enum class Step : uint8_t { kNone, kBeforePut, kAfterPut, kBeforeRemove, kAfterRemove };

  explicit DyingStore(std::string root) : folder_(std::move(root)) {}

  absl::Status Put(absl::string_view name, uint64_t bytes, const base::ByteReader& read) override {
    if (step == Step::kBeforePut) return Death();
    const absl::Status put = folder_.Put(name, bytes, read);
    return step == Step::kAfterPut ? Death() : put;
  }
  absl::StatusOr<std::string> Read(absl::string_view name, uint64_t offset,
                                   size_t max_bytes) override {
    return folder_.Read(name, offset, max_bytes);
  }
  absl::Status Remove(absl::string_view name) override {
    if (step == Step::kBeforeRemove) return Death();
    const absl::Status removed = folder_.Remove(name);
    return step == Step::kAfterRemove ? Death() : removed;
  }
  absl::StatusOr<Listing> List(absl::string_view folder, absl::string_view after) override {
    return folder_.List(folder, after);
  }

  Step step = Step::kNone;

 private:
  static absl::Status Death() { return absl::UnavailableError("died"); }

  objects::FolderStore folder_;
};

struct ObjectNode {
  ObjectNode(const ConnectionOptions& options, const std::string& share)
      : sessions(options), store(share) {
    cache::BlobStoreOptions blob_options;
    blob_options.root = folder + "/blobs";
    blobs = *cache::BlobStore::Open(std::move(blob_options));
    artifacts = *cache::ArtifactCache::Open({.path = folder + "/artifacts", .sync_writes = false});
    inputs.emplace(blobs.get(), &content);
    results.emplace(artifacts.get(), &content, &features);
  }
  ~ObjectNode() {
    artifacts.reset();
    blobs.reset();
    fs::remove_all(folder);
  }

  const std::string folder = NewFolder();
  Sessions sessions;
  DyingStore store;
  Content content{&sessions, &store};
  int64_t level = base::kFeatureLevel;
  const base::Features features{[this] { return level; }};
  std::unique_ptr<cache::BlobStore> blobs;
  std::unique_ptr<cache::ArtifactCache> artifacts;
  std::optional<SharedInputs> inputs;
  std::optional<SharedResults> results;
};

class ContentObjectsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    options_ = TestServer::Get()->NewDatabase();
    a_.emplace(options_, share_);
    b_.emplace(options_, share_);
    ASSERT_TRUE(a_->content.OpenObjects().ok());
    ASSERT_TRUE(b_->content.OpenObjects().ok());
  }
  ~ContentObjectsTest() override { fs::remove_all(share_); }

  static cache::BlobDigest Upload(ObjectNode& node, const std::string& bytes) {
    const cache::BlobDigest digest{Sha256Hex(bytes), bytes.size()};
    EXPECT_TRUE(node.inputs->BeginUpload("acme", digest).ok());
    EXPECT_TRUE(node.inputs->Append("acme", digest, 0, bytes).ok());
    const auto committed = node.inputs->Commit("acme", digest);
    EXPECT_TRUE(committed.ok()) << committed.status();
    return digest;
  }
  void MustRun(const std::string& sql) {
    const auto done = a_->sessions.Read(sql.c_str(), {});
    ASSERT_TRUE(done.ok()) << sql << ": " << done.status();
  }
  int64_t Count(const std::string& what) { return a_->sessions.Read(what.c_str(), {})->Int(0, 0); }
  // The files of the share but for the marker.
  std::vector<std::string> Objects() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(share_)) {
      if (entry.is_regular_file() && entry.path().filename() != "marker") {
        files.push_back(entry.path().string());
      }
    }
    return files;
  }
  std::string ObjectOf(const std::string& name) {
    const auto rows = a_->sessions.Read("SELECT object FROM content WHERE name = $1", {name});
    return rows->empty() ? "" : absl::StrCat(share_, "/", rows->Text(0, 0));
  }
  // PostgreSQL's clock, by which all ages are, runs so far ahead.
  void Pass(absl::Duration time) {
    passed_ += time;
    MustRun(
        absl::StrCat("DO $do$ BEGIN CREATE OR REPLACE FUNCTION npuc.server_us() RETURNS bigint "
                     "LANGUAGE sql VOLATILE AS $$ SELECT (extract(epoch FROM clock_timestamp()) "
                     "* 1000000)::bigint + ",
                     absl::ToInt64Microseconds(passed_), " $$; END $do$"));
  }
  // The rule: where a row is, all bytes are.
  void CheckRows() {
    const auto rows = a_->sessions.Read("SELECT object, bytes FROM content", {});
    for (size_t row = 0; row < rows->size(); ++row) {
      const std::string path = absl::StrCat(share_, "/", rows->Text(row, 0));
      ASSERT_TRUE(fs::exists(path)) << path;
      EXPECT_EQ(fs::file_size(path), static_cast<uint64_t>(rows->Int(row, 1)));
    }
  }

  const std::string share_ = NewFolder();
  ConnectionOptions options_;
  std::optional<ObjectNode> a_, b_;
  absl::Duration passed_ = absl::ZeroDuration();
};

const char kKey[] = "acme/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

TEST_F(ContentObjectsTest, WhatOneNodePutAnotherUses) {
  const std::string bytes = cache::RandomBytes(9'000'000, 1);  // more than a read of the store
  const cache::BlobDigest digest = Upload(*a_, bytes);
  EXPECT_EQ(Count("SELECT count(*) FROM piece"), 0);
  ASSERT_TRUE(b_->inputs->Acquire("acme", digest.sha256).ok());
  EXPECT_EQ(*b_->blobs->ReadAt("acme", digest.sha256, 8'999'000, 1000), bytes.substr(8'999'000));
  const cache::CacheKey key = *cache::CacheKey::Parse(kKey);
  const cache::ArtifactView view{.name = "m.h", .bytes = bytes};
  ASSERT_TRUE(a_->results->Store(key, {view}, "meta", nullptr).ok());
  ASSERT_TRUE(a_->results->Store(key, {view}, "", nullptr).ok());  // replaces the first
  ASSERT_TRUE((*b_->results->Lookup(key)).has_value());
  EXPECT_THAT(Objects(), SizeIs(3 + 1)) << "the part, too, is there until it is swept";
  Pass(absl::Minutes(2));
  EXPECT_EQ(*a_->content.SweepObjects(100), 2u);
  EXPECT_EQ(*b_->content.SweepObjects(100), 0u);
  EXPECT_THAT(Objects(), SizeIs(2));
  EXPECT_EQ(Count("SELECT count(*) FROM piece_set"), 0);
  CheckRows();
}

TEST_F(ContentObjectsTest, PiecesStayReadableWhereAStoreIsTurnedOn) {
  Content pieces(&a_->sessions);
  const std::string bytes = "in pieces";
  const std::string name = BlobName("acme", Sha256Hex(bytes));
  ASSERT_TRUE(pieces.OpenObjects().ok());
  ASSERT_TRUE(pieces
                  .Put(Content::Kind::kBlob, "acme", name, bytes.size(), "",
                       [&](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
                         return bytes.substr(offset, max_bytes);
                       })
                  .ok());
  ASSERT_TRUE(b_->inputs->Acquire("acme", Sha256Hex(bytes)).ok());
  // The other way round it waits: the node that does not have the store is to be started with it.
  const cache::BlobDigest object = Upload(*a_, "an object");
  const auto info = pieces.Find(BlobName("acme", object.sha256));
  const auto ignore = [](uint64_t, absl::string_view) { return absl::OkStatus(); };
  EXPECT_TRUE(absl::IsUnavailable(pieces.Read(**info, ignore)));
  const absl::Status refused = pieces.OpenObjects();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("1 contents lie in an object store"));
  ASSERT_TRUE(pieces.Remove(BlobName("acme", object.sha256)).ok());
  EXPECT_TRUE(pieces.OpenObjects().ok());
  EXPECT_EQ(Count("SELECT min_node_version FROM cluster"), 6) << "older nodes know no objects";
}

TEST_F(ContentObjectsTest, AStoreThatIsNotThatOfTheContentsIsRefused) {
  Upload(*a_, "an object");
  const std::string other = NewFolder();
  objects::FolderStore wrong(other);
  Content content(&a_->sessions, &wrong);
  const absl::Status refused = content.OpenObjects();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("lie in another store"));
  // A copy will do.
  fs::copy(share_, other, fs::copy_options::recursive);
  EXPECT_TRUE(content.OpenObjects().ok());
  fs::remove_all(other);
}

// Nothing is lost while the store is away, mounted empty, or refuses: callers wait.
TEST_F(ContentObjectsTest, AStoreThatIsAwayLosesNothing) {
  const cache::BlobDigest digest = Upload(*a_, "a model");
  const cache::CacheKey key = *cache::CacheKey::Parse(kKey);
  ASSERT_TRUE(a_->results->Store(key, {}, "meta", nullptr).ok());
  const std::string away = share_ + ".away";
  fs::rename(share_, away);
  // First as an empty folder, before any probe has found that out.
  fs::create_directory(share_);
  for (int i = 0; i < 2; ++i) {
    if (i == 1) fs::remove(share_);
    EXPECT_TRUE(absl::IsUnavailable(b_->inputs->Acquire("acme", digest.sha256).status()));
    EXPECT_TRUE(absl::IsUnavailable(b_->results->Lookup(key).status()));
    EXPECT_TRUE(absl::IsUnavailable(b_->content.ProbeObjects()));
  }
  EXPECT_TRUE(absl::IsUnavailable(
      b_->results->Store(*cache::CacheKey::Parse("acme/" + std::string(64, 'c')), {}, "", nullptr)
          .status()));
  EXPECT_TRUE(absl::IsUnavailable(b_->content.SweepObjects(100).status()));
  fs::rename(away, share_);
  EXPECT_TRUE(absl::IsUnavailable(b_->results->Lookup(key).status())) << "until it is probed";
  EXPECT_TRUE(b_->content.ProbeObjects().ok());
  EXPECT_TRUE(b_->inputs->Acquire("acme", digest.sha256).ok());
  EXPECT_TRUE((*b_->results->Lookup(key)).has_value());
}

// A damaged object is served nowhere, and its content is put again. NPUC_DAMAGES=10000 for many.
TEST_F(ContentObjectsTest, DamagedObjectsAreMisses) {
  const char* const wanted = std::getenv("NPUC_DAMAGES");
  const int damages = wanted == nullptr ? 60 : std::atoi(wanted);
  std::mt19937 random(5);
  int kinds[5] = {};
  for (int i = 0; i < damages; ++i) {
    const std::string bytes = cache::RandomBytes(100 + random() % 3000, i);
    const cache::BlobDigest digest = Upload(*a_, bytes);
    const cache::CacheKey key = *cache::CacheKey::Parse("acme/" + Sha256Hex(absl::StrCat(i)));
    const cache::ArtifactView view{.name = "m.h", .bytes = bytes};
    ASSERT_TRUE(a_->results->Store(key, {view}, "meta", nullptr).ok());
    const int kind = i % 5;
    ++kinds[kind];
    for (const std::string& name : {BlobName("acme", digest.sha256), "result/" + key.ToString()}) {
      const std::string path = ObjectOf(name);
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      const auto at = static_cast<std::streamoff>(random() % bytes.size());
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      if (kind == 0) file.put(static_cast<char>(byte ^ (1 << random() % 8)));
      file.close();
      if (kind == 1) fs::resize_file(path, random() % bytes.size());
      if (kind == 2) fs::remove(path);
      if (kind == 3) fs::resize_file(path, 0);
      if (kind == 4) {  // another content's bytes
        fs::resize_file(path, 0);
        std::ofstream(path) << cache::RandomBytes(bytes.size() + 4, 1'000'000 + i);
      }
    }
    const auto held = b_->inputs->Acquire("acme", digest.sha256);
    ASSERT_TRUE(absl::IsNotFound(held.status())) << "kind " << kind << ": " << held.status();
    const auto looked = b_->results->Lookup(key);
    ASSERT_TRUE(looked.ok()) << looked.status();
    ASSERT_FALSE(looked->has_value()) << "kind " << kind;
    // The client sends it again, or a node that has it shares it again.
    EXPECT_THAT(*b_->inputs->FindMissing("acme", {digest}), SizeIs(1)) << "kind " << kind;
    ASSERT_TRUE(a_->inputs->BeginUpload("acme", digest).ok());
    ASSERT_TRUE(a_->inputs->Commit("acme", digest).ok());
    ASSERT_TRUE((*a_->results->Lookup(key)).has_value());
    ASSERT_TRUE(b_->inputs->Acquire("acme", digest.sha256).ok());
    ASSERT_TRUE((*b_->results->Lookup(key)).has_value());
  }
  EXPECT_THAT(kinds, ::testing::Each(::testing::Gt(0)));
  std::cout << "FIGURE: " << damages << " damages of a blob and a result each, none served\n";
}

// A content that took the name of a damaged one meanwhile stays.
TEST_F(ContentObjectsTest, OnlyTheDamagedContentIsRemoved) {
  const cache::CacheKey key = *cache::CacheKey::Parse(kKey);
  const std::string name = "result/" + key.ToString();
  ASSERT_TRUE(a_->results->Store(key, {}, "old", nullptr).ok());
  const Content::Info old = **a_->content.Find(name);
  ASSERT_TRUE(a_->results->Store(key, {}, "new", nullptr).ok());
  ASSERT_TRUE(b_->content.RemoveDamaged(name, old).ok());
  EXPECT_EQ((*b_->results->Lookup(key))->metadata, "new");
  ASSERT_TRUE(b_->content.RemoveDamaged(name, **b_->content.Find(name)).ok());
  EXPECT_FALSE(b_->content.Find(name)->has_value());
}

// A node may die between any two steps of a put and of a removal: no row is without its bytes, and
// in the end no bytes are without their row.
TEST_F(ContentObjectsTest, WhateverANodeLeavesBehindIsSwept) {
  using Step = DyingStore::Step;
  for (const Step step : {Step::kBeforePut, Step::kAfterPut}) {
    a_->store.step = step;
    const std::string bytes = absl::StrCat("model ", static_cast<int>(step));
    const cache::BlobDigest digest{Sha256Hex(bytes), bytes.size()};
    ASSERT_TRUE(a_->inputs->BeginUpload("acme", digest).ok());
    ASSERT_TRUE(a_->inputs->Append("acme", digest, 0, bytes).ok());
    EXPECT_TRUE(absl::IsUnavailable(a_->inputs->Commit("acme", digest).status()));
    EXPECT_TRUE(absl::IsNotFound(b_->inputs->Acquire("acme", digest.sha256).status()));
    CheckRows();
  }
  EXPECT_THAT(Objects(), SizeIs(1)) << "bytes without a row";
  a_->store.step = Step::kNone;
  const cache::BlobDigest kept = Upload(*a_, "kept");
  const cache::BlobDigest gone = Upload(*a_, "gone");
  EXPECT_EQ(*b_->content.SweepObjects(100), 0u) << "it may still get its row";
  // The row goes first.
  ASSERT_TRUE(a_->inputs->Remove("acme", gone.sha256).ok());
  EXPECT_EQ(*b_->content.SweepObjects(100), 0u) << "somebody may still read it";
  Pass(absl::Minutes(2));
  for (const Step step : {Step::kBeforeRemove, Step::kAfterRemove}) {
    a_->store.step = step;
    EXPECT_TRUE(absl::IsUnavailable(a_->content.SweepObjects(100).status()));
    CheckRows();
    EXPECT_EQ(Count("SELECT count(*) FROM piece_set"), 1) << "another node goes on with it";
  }
  EXPECT_EQ(*b_->content.SweepObjects(100), 1u);
  EXPECT_EQ(Count("SELECT count(*) FROM piece_set"), 0);
  EXPECT_THAT(Objects(), SizeIs(2));
  // Bytes that nothing knows go when they are old.
  Pass(absl::Hours(47));
  EXPECT_EQ(*b_->content.SweepObjects(100), 0u);
  Pass(absl::Hours(2));
  EXPECT_EQ(*b_->content.SweepObjects(100), 1u);
  EXPECT_THAT(Objects(), SizeIs(1));
  CheckRows();
  EXPECT_TRUE(b_->inputs->Acquire("acme", kept.sha256).ok());
  EXPECT_TRUE(b_->content.ProbeObjects().ok()) << "the marker stays";
}

// Names that a node brings so late that the sweep may have passed are refused.
TEST_F(ContentObjectsTest, AnObjectThatMayBeGoneGetsNoName) {
  const auto name = [&](const std::string& object, const char* content) {
    return a_->sessions
        .Read("SELECT name_object($1, 'acme', 1, 1, '', $2, 1000000000, false)",
              {absl::string_view(content), absl::string_view(object)})
        .status();
  };
  const std::string object(a_->sessions.Read("SELECT new_object()", {})->Text(0, 0));
  ASSERT_TRUE(name(object, "blob/one").ok());
  EXPECT_TRUE(name(object, "blob/one").ok()) << "its answer was lost";
  EXPECT_EQ(Count("SELECT count(*) FROM content"), 1);
  ASSERT_TRUE(a_->content.Remove("blob/one").ok());
  EXPECT_EQ(SqlStateOf(name(object, "blob/one")), "NP001") << "it is being removed";
  // The one that came first stays, and the other's bytes go.
  const std::string first(a_->sessions.Read("SELECT new_object()", {})->Text(0, 0));
  const std::string second(a_->sessions.Read("SELECT new_object()", {})->Text(0, 0));
  ASSERT_TRUE(name(first, "blob/two").ok());
  ASSERT_TRUE(name(second, "blob/two").ok());
  EXPECT_EQ((*a_->content.Find("blob/two"))->object, first);
  EXPECT_EQ(Count("SELECT count(*) FROM piece_set"), 2);
  const std::string old(a_->sessions.Read("SELECT new_object()", {})->Text(0, 0));
  Pass(absl::Hours(25));
  EXPECT_EQ(SqlStateOf(name(old, "blob/three")), "NP001");
  EXPECT_FALSE(a_->content.Find("blob/three")->has_value());
}

TEST_F(ContentObjectsTest, RoomIsMadeOfObjectsAsOfPieces) {
  Upload(*a_, "1234567890");
  Upload(*a_, "2234567890");
  MustRun("UPDATE content SET keep_until_us = keep_until_us - 9 * 3600000000");
  const cache::BlobDigest kept = Upload(*a_, "3234567890");
  EXPECT_EQ(*a_->content.MakeRoom(10), 10u);
  EXPECT_TRUE(a_->content.Find(BlobName("acme", kept.sha256))->has_value());
  MustRun("UPDATE content SET keep_until_us = 0");
  EXPECT_EQ(*a_->content.Sweep(100), 1u);
  Pass(absl::Minutes(2));
  EXPECT_EQ(*a_->content.SweepObjects(2), 2u);
  EXPECT_EQ(*a_->content.SweepObjects(2), 1u);
  EXPECT_THAT(Objects(), IsEmpty());
}

}  // namespace
}  // namespace npuc::pg
