#include "cache/artifact_cache.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>

#include "cache/cache_test_util.h"
#include "cache/packed_artifact.h"
#include "cache/record.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"

namespace npuc::cache {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;

CacheKey KeyOf(int n, const std::string& scope = "default") {
  CacheKeyParts parts;
  parts.scope = scope;
  parts.model_md5 = Md5Hex(std::to_string(n));
  parts.model_sha256 = Sha256Hex(std::to_string(n));
  parts.options_sha256 = Sha256Hex("options");
  parts.compiler_build_id = "build";
  return CacheKey::Make(parts).value();
}

class ArtifactCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/cacheXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    options_.path = folder_ + "/db";
    options_.sync_writes = false;
    options_.now = [this] { return now_; };
    Reopen();
  }
  void TearDown() override {
    cache_.reset();
    fs::remove_all(folder_);
  }
  void Reopen() {
    cache_.reset();
    auto opened = ArtifactCache::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    cache_ = *std::move(opened);
  }
  std::optional<CachedResult> Find(const CacheKey& key,
                                   ArtifactCache::Check check = ArtifactCache::Check::kFull) {
    auto found = cache_->Lookup(key, check);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : std::nullopt;
  }
  // Closes the cache, lets `damage` at its database, and opens it again.
  void Damage(const std::function<void(rocksdb::DB&, rocksdb::ColumnFamilyHandle* entries,
                                       rocksdb::ColumnFamilyHandle* chunks)>& damage) {
    cache_.reset();
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const char* name : {"default", "entries", "chunks", "access"}) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(
        rocksdb::DB::Open(rocksdb::DBOptions(), options_.path, families, &handles, &db).ok());
    damage(*db, handles[1], handles[2]);
    for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
    Reopen();
  }
  // All keys of the chunks family.
  std::vector<std::string> ChunkKeys() {
    std::vector<std::string> keys;
    Damage([&](rocksdb::DB& db, rocksdb::ColumnFamilyHandle*, rocksdb::ColumnFamilyHandle* chunks) {
      const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(rocksdb::ReadOptions(), chunks));
      for (it->SeekToFirst(); it->Valid(); it->Next()) keys.push_back(it->key().ToString());
    });
    return keys;
  }

  // Moves all that is stored out of the log and the memtables into files.
  void WriteFiles() {
    // The first opening flushes the log.
    Damage([](rocksdb::DB&, rocksdb::ColumnFamilyHandle*, rocksdb::ColumnFamilyHandle*) {});
    Damage([](rocksdb::DB& db, rocksdb::ColumnFamilyHandle*, rocksdb::ColumnFamilyHandle* chunks) {
      ASSERT_TRUE(db.SetOptions(chunks, {{"enable_blob_files", "true"}}).ok());
      ASSERT_TRUE(db.Flush(rocksdb::FlushOptions(), chunks).ok());
      rocksdb::CompactRangeOptions all;
      all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
      ASSERT_TRUE(db.CompactRange(all, chunks, nullptr, nullptr).ok());
    });
  }
  // Overwrites some bytes in the one file of more than 100,000.
  void BreakTheBigFile() const {
    size_t broken = 0;
    for (const auto& file : fs::directory_iterator(options_.path)) {
      const bool big = file.is_regular_file() && file.file_size() > 100000;
      if (big && (file.path().extension() == ".blob" || file.path().extension() == ".sst")) {
        std::fstream(file.path(), std::ios::in | std::ios::out | std::ios::binary).seekp(90000)
            << "damage";
        ++broken;
      }
    }
    ASSERT_EQ(broken, 1u);
  }

  std::string folder_;
  absl::Time now_ = absl::FromUnixSeconds(1700000000);
  ArtifactCacheOptions options_;
  std::unique_ptr<ArtifactCache> cache_;
};

// One would end the daemon where the disk is full (cache/rocksdb_log.h).
TEST_F(ArtifactCacheTest, NoTextLogIsWritten) {
  Reopen();
  for (const auto& entry : fs::directory_iterator(options_.path)) {
    EXPECT_NE(entry.path().filename().string().substr(0, 3), "LOG") << entry.path();
  }
}

TEST_F(ArtifactCacheTest, RoundTripAcrossARestart) {
  const std::string header = RandomBytes(700000, 1), report = "{}", metadata = RandomBytes(3000, 2);
  EXPECT_FALSE(Find(KeyOf(1)).has_value());
  const auto stored = cache_->Store(
      KeyOf(1), {{"model.h", header}, {"report.json", report}, {"empty", ""}}, metadata);
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_EQ(stored->size(), 3u);
  EXPECT_EQ((*stored)[0], (ArtifactInfo{"model.h", header.size(), Sha256Hex(header)}));
  for (const bool reopen : {false, true}) {
    if (reopen) Reopen();
    const auto found = Find(KeyOf(1));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->artifacts, *stored);
    EXPECT_EQ(found->metadata, metadata);
    EXPECT_EQ(found->stored_at, now_);
    EXPECT_EQ(cache_->GetStats().bytes, header.size() + report.size() + metadata.size());
    EXPECT_EQ(cache_->ReadArtifact(KeyOf(1), "report.json", 0, 100).value(), report);
    EXPECT_EQ(cache_->ReadArtifact(KeyOf(1), "empty", 0, 100).value(), "");
    for (const uint64_t offset : {0u, 1u, 262143u, 262144u, 262145u, 524288u, 699999u, 700000u}) {
      for (const size_t n : {0u, 1u, 1000u, 262144u, 1000000u}) {
        EXPECT_EQ(cache_->ReadArtifact(KeyOf(1), "model.h", offset, n).value(),
                  header.substr(offset, n));
      }
    }
    EXPECT_EQ(cache_->ReadArtifact(KeyOf(1), "model.h", 700001, 1).status().code(),
              StatusCode::kOutOfRange);
    EXPECT_EQ(cache_->ReadArtifact(KeyOf(1), "none", 0, 1).status().code(), StatusCode::kNotFound);
    EXPECT_EQ(cache_->ReadArtifact(KeyOf(1), "", 0, 1).status().code(), StatusCode::kNotFound);
    EXPECT_EQ(cache_->ReadArtifact(KeyOf(2), "model.h", 0, 1).status().code(),
              StatusCode::kNotFound);
    EXPECT_FALSE(Find(KeyOf(1, "other")).has_value());
  }
}

TEST_F(ArtifactCacheTest, OverwritingLeavesNothingOfTheOldEntry) {
  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", RandomBytes(600000, 3)}, {"b", "b"}}, "old").ok());
  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", "new"}}, "").ok());
  EXPECT_EQ(cache_->ReadArtifact(KeyOf(1), "a", 0, 10).value(), "new");
  EXPECT_FALSE(cache_->ReadArtifact(KeyOf(1), "b", 0, 10).ok());
  EXPECT_EQ(cache_->GetStats().bytes, 3u);
  EXPECT_EQ(cache_->GetStats().entries, 1u);
  EXPECT_EQ(ChunkKeys().size(), 1u);
  EXPECT_TRUE(*cache_->Remove(KeyOf(1)));
  EXPECT_FALSE(*cache_->Remove(KeyOf(1)));
  EXPECT_FALSE(Find(KeyOf(1)).has_value());
  EXPECT_EQ(ChunkKeys().size(), 0u);
  EXPECT_EQ(cache_->GetStats().bytes, 0u);
}

TEST_F(ArtifactCacheTest, AReaderOutlivesItsEntry) {
  const std::string header = RandomBytes(600000, 4);
  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", header}}, "").ok());
  auto reader = cache_->OpenArtifact(KeyOf(1), "a").value();
  EXPECT_EQ(reader->Read(0, 1000).value(), header.substr(0, 1000));
  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", "other"}}, "").ok());
  EXPECT_EQ(reader->Read(1000, 1000000).value(), header.substr(1000));
  ASSERT_TRUE(cache_->Remove(KeyOf(1)).ok());
  EXPECT_EQ(reader->Read(300000, 1000000).value(), header.substr(300000));
  EXPECT_EQ(reader->info().size_bytes, header.size());
}

TEST_F(ArtifactCacheTest, RefusesBadResults) {
  EXPECT_EQ(cache_->Store(KeyOf(1), {{"../x", ""}}, "").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(cache_->Store(KeyOf(1), {{"x", ""}, {"x", ""}}, "").status().code(),
            StatusCode::kInvalidArgument);
  const std::vector<ArtifactView> many(options_.max_artifacts + 1, ArtifactView{"x", ""});
  EXPECT_EQ(cache_->Store(KeyOf(1), many, "").status().code(), StatusCode::kInvalidArgument);
  options_.max_entry_bytes = 100;
  Reopen();
  EXPECT_EQ(cache_->Store(KeyOf(1), {{"x", std::string(90, 'x')}}, "12345678901").status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(cache_->Store(KeyOf(1), {{"x", std::string(90, 'x')}}, "1234567890").ok());
}

TEST_F(ArtifactCacheTest, EvictsWholeEntriesLeastRecentlyUsedFirst) {
  options_.max_bytes = 10000;
  Reopen();
  for (int i = 0; i < 10; ++i) {
    now_ += absl::Minutes(2);
    ASSERT_TRUE(cache_->Store(KeyOf(i), {{"a", RandomBytes(900, i)}}, std::string(100, 'm')).ok());
  }
  EXPECT_EQ(cache_->GetStats().evicted, 0u);
  now_ += absl::Minutes(2);
  EXPECT_TRUE(Find(KeyOf(0)).has_value());
  Reopen();  // the order of use is stored
  now_ += absl::Minutes(2);
  ASSERT_TRUE(cache_->Store(KeyOf(10), {{"a", std::string(1000, 'x')}}, "").ok());
  EXPECT_EQ(cache_->GetStats().evicted, 2u);  // down to nine tenths
  EXPECT_EQ(cache_->GetStats().bytes, 9000u);
  EXPECT_TRUE(Find(KeyOf(0)).has_value());
  EXPECT_FALSE(Find(KeyOf(1)).has_value());
  EXPECT_FALSE(Find(KeyOf(2)).has_value());
  EXPECT_TRUE(Find(KeyOf(3)).has_value());
  EXPECT_TRUE(Find(KeyOf(10)).has_value());
  ASSERT_TRUE(cache_->Store(KeyOf(11), {{"a", std::string(10000, 'x')}}, "").ok());
  EXPECT_TRUE(Find(KeyOf(11)).has_value());  // what was just stored is not evicted
  EXPECT_EQ(cache_->GetStats().entries, 1u);
  EXPECT_EQ(ChunkKeys().size(), 1u);
}

TEST_F(ArtifactCacheTest, AScopesBoundTakesItsOwnEntriesAlone) {
  options_.scope_limit = [](absl::string_view scope) {
    return scope == "small" ? uint64_t{5000} : std::numeric_limits<uint64_t>::max();
  };
  Reopen();
  const auto key = [](const std::string& scope, int i) {
    return *CacheKey::Parse(absl::StrCat(scope, "/", std::string(63, 'a'), i));
  };
  const auto store = [&](const CacheKey& at, size_t bytes) {
    now_ += absl::Minutes(2);
    ASSERT_TRUE(cache_->Store(at, {{"a", std::string(bytes, 'x')}}, "").ok());
  };
  for (int i = 0; i < 5; ++i) store(key("small-not", i), 1000);
  for (int i = 0; i < 5; ++i) store(key("small", i), 1000);
  EXPECT_EQ(cache_->GetStats().evicted, 0u);
  now_ += absl::Minutes(2);
  EXPECT_TRUE(Find(key("small", 0)).has_value());
  Reopen();  // what each scope has is known again
  store(key("small", 5), 1000);
  EXPECT_EQ(cache_->GetStats().evicted, 2u);  // down to nine tenths
  EXPECT_TRUE(Find(key("small", 0)).has_value());
  EXPECT_FALSE(Find(key("small", 1)).has_value());
  EXPECT_FALSE(Find(key("small", 2)).has_value());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Find(key("small-not", i)).has_value());
  // One that is read stays, and so does the one just stored, although it is over the bound alone.
  const auto reader = cache_->OpenArtifact(key("small", 3), "a").value();
  store(key("small", 6), 6000);
  EXPECT_TRUE(Find(key("small", 3)).has_value());
  EXPECT_TRUE(Find(key("small", 6)).has_value());
  EXPECT_FALSE(Find(key("small", 5)).has_value());
}

TEST_F(ArtifactCacheTest, WhatIsReadIsNotEvictedAndWhatNobodyUsesIs) {
  options_.max_bytes = 10000;
  options_.max_idle = absl::Hours(24);
  Reopen();
  for (int i = 0; i < 10; ++i) {
    now_ += absl::Minutes(2);
    ASSERT_TRUE(cache_->Store(KeyOf(i), {{"a", RandomBytes(1000, i)}}, "").ok());
  }
  {
    const auto oldest = cache_->OpenArtifact(KeyOf(0), "a").value();
    // Used again after it: only the reader keeps it.
    for (int i = 1; i < 10; ++i) EXPECT_TRUE(Find(KeyOf(i)).has_value());
    ASSERT_TRUE(cache_->Store(KeyOf(10), {{"a", std::string(1000, 'x')}}, "").ok());
    EXPECT_FALSE(Find(KeyOf(1)).has_value());
    EXPECT_TRUE(Find(KeyOf(0)).has_value());
  }
  EXPECT_EQ(cache_->GetStats().entries, 9u);
  now_ += absl::Hours(23);
  EXPECT_TRUE(Find(KeyOf(5)).has_value());
  now_ += absl::Hours(2);
  ASSERT_TRUE(cache_->Store(KeyOf(11), {{"a", "new"}}, "").ok());
  EXPECT_EQ(cache_->GetStats().entries, 2u);
  EXPECT_TRUE(Find(KeyOf(5)).has_value());
}

// Every stored value, in turn: damaged, swapped for another's, cut, or gone. Never served.
TEST_F(ArtifactCacheTest, ADamagedEntryIsAMissAndIsRemoved) {
  const std::string big = RandomBytes(600000, 5);
  const std::vector<std::function<void(std::string&)>> kinds = {
      [](std::string& v) { v[v.size() / 2] ^= 1; }, [](std::string& v) { v[0] ^= 0x80; },
      [](std::string& v) { v.pop_back(); }, [](std::string& v) { v.push_back('x'); },
      [](std::string& v) { v.clear(); }};
  for (size_t kind = 0; kind <= kinds.size(); ++kind) {
    for (size_t target = 0; target < 5; ++target) {  // manifest, metadata, 3 chunks
      ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", big}}, "metadata").ok());
      ASSERT_TRUE(cache_->Store(KeyOf(2), {{"a", "good"}}, "").ok());
      Damage([&](rocksdb::DB& db, rocksdb::ColumnFamilyHandle* entries,
                 rocksdb::ColumnFamilyHandle* chunks) {
        std::vector<std::pair<rocksdb::ColumnFamilyHandle*, std::string>> keys = {
            {entries, KeyOf(1).ToString()}};
        const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(rocksdb::ReadOptions(), chunks));
        for (it->Seek(KeyOf(1).ToString()); it->Valid(); it->Next()) {
          if (it->key().starts_with(KeyOf(1).ToString())) {
            keys.emplace_back(chunks, it->key().ToString());
          }
        }
        ASSERT_EQ(keys.size(), 5u);
        const auto& [family, key] = keys[target];
        std::string value;
        ASSERT_TRUE(db.Get(rocksdb::ReadOptions(), family, key, &value).ok());
        if (kind < kinds.size()) {
          kinds[kind](value);
          ASSERT_TRUE(db.Put(rocksdb::WriteOptions(), family, key, value).ok());
        } else {
          ASSERT_TRUE(db.Delete(rocksdb::WriteOptions(), family, key).ok());
        }
      });
      if (target >= 2) {
        // Found by a reader that is under way, too.
        const auto read = cache_->ReadArtifact(KeyOf(1), "a", (target - 2) * 262144, 10);
        EXPECT_EQ(read.status().code(), StatusCode::kDataLoss);
        EXPECT_EQ(cache_->GetStats().damaged, 1u);
      }
      EXPECT_FALSE(Find(KeyOf(1)).has_value()) << kind << " " << target;
      const bool gone = kind == kinds.size() && target == 0;
      EXPECT_EQ(cache_->GetStats().damaged, gone ? 0u : 1u) << kind << " " << target;
      EXPECT_EQ(cache_->GetStats().entries, 1u);
      EXPECT_EQ(cache_->ReadArtifact(KeyOf(2), "a", 0, 10).value(), "good");
    }
  }
}

TEST_F(ArtifactCacheTest, AnEntryCopiedToAnotherKeyIsAMiss) {
  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", "1"}}, "").ok());
  Damage([&](rocksdb::DB& db, rocksdb::ColumnFamilyHandle* entries, rocksdb::ColumnFamilyHandle*) {
    std::string value;
    ASSERT_TRUE(db.Get(rocksdb::ReadOptions(), entries, KeyOf(1).ToString(), &value).ok());
    ASSERT_TRUE(db.Put(rocksdb::WriteOptions(), entries, KeyOf(2).ToString(), value).ok());
  });
  EXPECT_FALSE(Find(KeyOf(2)).has_value());
  EXPECT_TRUE(Find(KeyOf(1)).has_value());
}

// The write-ahead log cut at many places, as a power cut leaves it: every entry is whole or absent,
// and those before the last are there.
TEST_F(ArtifactCacheTest, AStoreIsAtomicUnderATornLog) {
  const auto store = [&](int i) {
    return cache_->Store(KeyOf(i), {{"a", RandomBytes(5000, i)}, {"b", RandomBytes(300000, i + 9)}},
                         std::to_string(i));
  };
  ASSERT_TRUE(store(1).ok());
  ASSERT_TRUE(store(2).ok());
  std::string log;
  uintmax_t log_size = 0;
  cache_.reset();
  for (const auto& file : fs::directory_iterator(options_.path)) {
    if (file.path().extension() == ".log") log = file.path().filename();
  }
  ASSERT_NE(log, "");
  const std::string intact = folder_ + "/intact";
  fs::copy(options_.path, intact);
  log_size = fs::file_size(intact + "/" + log);
  ASSERT_GT(log_size, 600000u);
  size_t whole = 0, absent = 0;
  for (uintmax_t cut = log_size - 300000; cut <= log_size; cut += 6000) {
    fs::remove_all(options_.path);
    fs::copy(intact, options_.path);
    fs::resize_file(options_.path + "/" + log, cut);
    Reopen();
    const auto first = Find(KeyOf(1)), second = Find(KeyOf(2));
    ASSERT_TRUE(first.has_value()) << cut;
    EXPECT_EQ(first->metadata, "1");
    ++(second.has_value() ? whole : absent);
    EXPECT_EQ(cache_->GetStats().damaged, 0u) << cut;
    cache_.reset();
  }
  EXPECT_GT(whole, 0u);
  EXPECT_GT(absent, 10u);
  Reopen();
}

TEST_F(ArtifactCacheTest, ABrokenBlobFileIsAMiss) {
  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", RandomBytes(200000, 6)}}, "").ok());
  ASSERT_TRUE(cache_->Store(KeyOf(2), {{"a", "small"}}, "").ok());
  WriteFiles();
  cache_.reset();
  BreakTheBigFile();
  Reopen();
  EXPECT_FALSE(Find(KeyOf(1)).has_value());
  EXPECT_EQ(cache_->GetStats().damaged, 1u);
  EXPECT_TRUE(Find(KeyOf(2)).has_value());
  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", "again"}}, "").ok());
  EXPECT_TRUE(Find(KeyOf(1)).has_value());
}

// Damage that comes between two full checks: a look-up may not see it, but no reader gives it out.
TEST_F(ArtifactCacheTest, AFullCheckIsGoodForAWhileAndAReadIsCheckedAlways) {
  options_.block_cache_bytes = 0;
  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", RandomBytes(200000, 6)}}, "").ok());
  WriteFiles();
  EXPECT_TRUE(Find(KeyOf(1)).has_value());
  BreakTheBigFile();
  now_ += absl::Seconds(59);
  EXPECT_TRUE(Find(KeyOf(1)).has_value());
  EXPECT_EQ(cache_->GetStats().damaged, 0u);
  now_ += absl::Seconds(1);
  EXPECT_FALSE(Find(KeyOf(1)).has_value());
  EXPECT_EQ(cache_->GetStats().damaged, 1u);

  ASSERT_TRUE(cache_->Store(KeyOf(1), {{"a", RandomBytes(200000, 7)}}, "").ok());
  WriteFiles();
  EXPECT_TRUE(Find(KeyOf(1)).has_value());
  BreakTheBigFile();
  EXPECT_EQ(cache_->ReadArtifact(KeyOf(1), "a", 0, 10).status().code(), StatusCode::kDataLoss);
  EXPECT_FALSE(Find(KeyOf(1)).has_value());
  EXPECT_EQ(cache_->GetStats().damaged, 1u);  // since the opening in WriteFiles
}

TEST_F(ArtifactCacheTest, ReadersAndWritersOfOneKey) {
  options_.max_bytes = 2000000;
  Reopen();
  std::vector<std::string> versions;
  for (unsigned i = 0; i < 4; ++i) versions.push_back(RandomBytes(300000 + i * 1000, 60 + i));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        if (t < 2) {
          EXPECT_TRUE(cache_->Store(KeyOf(i % 3), {{"a", versions[(i + t) % 4]}}, "").ok());
        } else {
          const auto found = cache_->Lookup(KeyOf(i % 3));
          ASSERT_TRUE(found.ok());
          const auto bytes = cache_->ReadArtifact(KeyOf(i % 3), "a", 0, 1000000);
          if (bytes.ok()) {
            EXPECT_THAT(versions, ::testing::Contains(*bytes));
          } else {
            EXPECT_EQ(bytes.status().code(), StatusCode::kNotFound);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache_->GetStats().damaged, 0u);
  EXPECT_EQ(cache_->GetStats().entries, 3u);
}

TEST_F(ArtifactCacheTest, OpenRefusesASecondUserAndANewerFormat) {
  EXPECT_EQ(ArtifactCache::Open(options_).status().code(), StatusCode::kFailedPrecondition);
  cache_.reset();
  {
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const char* name : {"default", "entries", "chunks", "access"}) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(
        rocksdb::DB::Open(rocksdb::DBOptions(), options_.path, families, &handles, &db).ok());
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), "format", "4").ok());
    for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
  }
  EXPECT_EQ(ArtifactCache::Open(options_).status().code(), StatusCode::kFailedPrecondition);
}

TEST(Manifest, NoChangedRecordDecodes) {
  Manifest manifest;
  manifest.stored_at = absl::FromUnixSeconds(5);
  manifest.items = {PackArtifact("", "m")->item,
                    PackArtifact("a.h", std::string(300000, 'x'))->item};
  const std::string record = EncodeManifest("k", manifest);
  const auto decoded = DecodeManifest("k", record);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->items[1].info, manifest.items[1].info);
  EXPECT_EQ(decoded->items[1].chunk_sha256, manifest.items[1].chunk_sha256);
  for (size_t i = 0; i < record.size(); ++i) {
    std::string changed = record;
    changed[i] ^= 1;
    EXPECT_FALSE(DecodeManifest("k", changed).ok()) << i;
    EXPECT_FALSE(DecodeManifest("k", record.substr(0, i)).ok()) << i;
  }
  EXPECT_FALSE(DecodeManifest("l", record).ok());
}

}  // namespace
}  // namespace npuc::cache
