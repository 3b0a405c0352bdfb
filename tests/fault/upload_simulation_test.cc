// Uploads of three tenants and of the daemon itself against the real blob store, in simulated time:
// one tenant declares much and sends little, or sends all it can. What must hold for the others
// holds at each step; and each planted mistake is found.
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "cache/blob_store.h"
#include "compiler_core/base/digest.h"
#include "gtest/gtest.h"
#include "tests/fault/sim_store.h"

namespace npuc {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kHardLimit = 8000;
constexpr uint64_t kShare = 2000;  // of a tenant; four fit
constexpr uint64_t kChunk = 500;
constexpr absl::Duration kIdle = absl::Minutes(5);
constexpr char kOwn[] = "0own";
constexpr uint64_t kSeeds = 40;
constexpr int kSteps = 60;

// As a wrong daemon would set the store up.
enum class UploadPlant : uint8_t {
  kNone,
  kNoShares,         // no tenant has a bound
  kNoIdleEnd,        // uploads without a byte never end
  kDeclaredIsTaken,  // a file of the declared size is made at the beginning
};
constexpr UploadPlant kUploadPlants[] = {UploadPlant::kNoShares, UploadPlant::kNoIdleEnd,
                                         UploadPlant::kDeclaredIsTaken};

class UploadWorld {
 public:
  UploadWorld(uint64_t seed, UploadPlant plant) : random_(seed), plant_(plant) {
    std::string pattern = ::testing::TempDir() + "/uploads_XXXXXX";
    options_.root = mkdtemp(pattern.data());
    options_.soft_limit_bytes = kHardLimit;
    options_.hard_limit_bytes = kHardLimit;
    options_.disk_reserve_bytes = 0;
    if (plant != UploadPlant::kNoShares) {
      options_.scope_limit = [](absl::string_view) { return kShare; };
    }
    options_.own_scope = kOwn;
    options_.now = options_.steady_now = [this] { return now_; };
    Open();
  }
  ~UploadWorld() {
    store_.reset();
    fs::remove_all(options_.root);
  }

  // The rule that was broken, if any.
  std::optional<std::string> Live() {
    for (int i = 0; i < kSteps && !broken_.has_value(); ++i) Step();
    return broken_;
  }

 private:
  void Open() {
    store_.reset();
    auto opened = cache::BlobStore::Open(options_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void Break(std::string rule) {
    if (!broken_.has_value()) broken_ = std::move(rule);
  }

  void Step() {
    const int64_t dice = random_.Below(100);
    if (dice < 60) {
      Attack();
    } else if (dice < 80) {
      PutOfAnother();
    } else if (dice < 90) {
      PutOwn();
    } else if (dice < 95) {
      PassTime();
    } else {
      Open();  // a restart
    }
  }

  // A new upload, or some bytes more of an old one; the greedy tenant commits nothing.
  void Attack() {
    const int number = static_cast<int>(random_.Below(20));
    const cache::BlobDigest digest{Sha256Hex(absl::StrCat("attack", number)), 1000};
    const auto begun = store_->BeginUpload("greedy", digest);
    if (!begun.ok()) return;
    if (plant_ == UploadPlant::kDeclaredIsTaken) {
      store_->Append("greedy", digest, 0, std::string(digest.size_bytes, '0'))
          .status()
          .IgnoreError();
    }
    const uint64_t at = begun->committed_bytes;
    if (at + kChunk > digest.size_bytes) return;
    const auto sent = store_->Append("greedy", digest, at, std::string(kChunk, 'x'));
    if (sent.ok()) sent_bytes_ += kChunk;
    if (store_->GetStats().upload_bytes > sent_bytes_) Break("an upload takes what was sent of it");
  }

  // Within its share, beside whatever the others do.
  void PutOfAnother() {
    const char* const tenant = random_.Percent(50) ? "ann" : "bob";
    const std::string bytes = absl::StrCat("model", random_.Below(1000), std::string(900, 'm'));
    const uint64_t evicted = store_->GetStats().evicted_blobs;
    const auto put = store_->Put(tenant, bytes);
    if (!put.ok()) {
      Break(absl::StrCat("a tenant within its share is refused: ", put.status().ToString()));
      if (store_->GetStats().evicted_blobs != evicted) Break("what is refused evicts nothing");
    }
  }

  void PutOwn() {
    const auto put = store_->Put(kOwn, "the canary's model");
    if (!put.ok()) Break(absl::StrCat("the daemon's own is refused: ", put.status().ToString()));
    store_->Remove(kOwn, Sha256Hex("the canary's model")).IgnoreError();
  }

  void PassTime() {
    now_ += kIdle;
    if (plant_ != UploadPlant::kNoIdleEnd) store_->DropIdleUploads(kIdle);
    if (store_->GetStats().upload_bytes > 0) Break("an idle upload keeps its room");
  }

  SimRandom random_;
  const UploadPlant plant_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  cache::BlobStoreOptions options_;
  std::unique_ptr<cache::BlobStore> store_;
  uint64_t sent_bytes_ = 0;  // by the greedy tenant
  std::optional<std::string> broken_;
};

TEST(UploadSimulationTest, NothingIsFoundWithoutAMistake) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_EQ(UploadWorld(seed, UploadPlant::kNone).Live(), std::nullopt) << seed;
  }
}

TEST(UploadSimulationTest, EachPlantedMistakeIsFound) {
  for (const UploadPlant plant : kUploadPlants) {
    bool found = false;
    for (uint64_t seed = 1; seed <= kSeeds && !found; ++seed) {
      found = UploadWorld(seed, plant).Live().has_value();
    }
    EXPECT_TRUE(found) << static_cast<int>(plant);
  }
}

}  // namespace
}  // namespace npuc
