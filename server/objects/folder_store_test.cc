#include "server/objects/folder_store.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::objects {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FolderStoreTest : public ::testing::Test {
 protected:
  static std::string NewFolder() {
    std::string pattern = ::testing::TempDir() + "/folder_store_XXXXXX";
    return mkdtemp(pattern.data());
  }
  ~FolderStoreTest() override { std::filesystem::remove_all(root_); }

  static base::ByteReader ReaderOf(const std::string& bytes) {
    return [bytes](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
      return bytes.substr(offset, max_bytes);
    };
  }
  absl::Status Put(const std::string& name, const std::string& bytes) {
    return store_->Put(name, bytes.size(), ReaderOf(bytes));
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
      if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
    }
    return names;
  }

  const std::string root_ = NewFolder();
  std::unique_ptr<FolderStore> store_ = std::make_unique<FolderStore>(root_);
};

TEST_F(FolderStoreTest, ObjectsAreReadInRangesAndRemoved) {
  const std::string bytes(3'000'000, 'x');
  ASSERT_TRUE(Put("c/1/one", bytes).ok());
  ASSERT_TRUE(Put("c/1/empty", "").ok());
  EXPECT_EQ(*store_->Read("c/1/one", 0, ObjectStore::kMaxReadBytes), bytes);
  EXPECT_EQ(*store_->Read("c/1/one", 2'999'990, 100), std::string(10, 'x'));
  EXPECT_EQ(*store_->Read("c/1/one", 3'000'000, 100), "");
  EXPECT_EQ(*store_->Read("c/1/empty", 0, 100), "");
  EXPECT_TRUE(absl::IsNotFound(store_->Read("c/1/two", 0, 1).status()));
  // Once more is once.
  ASSERT_TRUE(Put("c/1/one", "other").ok());
  EXPECT_EQ(*store_->Read("c/1/one", 0, 100), "other");
  EXPECT_TRUE(store_->Remove("c/1/one").ok());
  EXPECT_TRUE(store_->Remove("c/1/one").ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Read("c/1/one", 0, 1).status()));
  EXPECT_TRUE(store_->Remove("c/1/empty").ok());
  EXPECT_FALSE(std::filesystem::exists(root_ + "/c")) << "empty folders go, too";
  EXPECT_TRUE(std::filesystem::exists(root_));
}

TEST_F(FolderStoreTest, APutThatBreaksOffHasNoNameAndIsListedForTheSweep) {
  const absl::Status broken = store_->Put(
      "c/1/one", 2'000'000, [](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
        if (offset > 0) return absl::CancelledError("stop");
        return std::string(max_bytes, 'x');
      });
  EXPECT_EQ(broken.code(), absl::StatusCode::kCancelled) << broken;
  EXPECT_EQ(store_->Put("c/1/two", 10, ReaderOf("short")).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::IsNotFound(store_->Read("c/1/one", 0, 1).status()));
  EXPECT_THAT(store_->List("c", "")->names, ElementsAre("c/1/one.part", "c/1/two.part"));
  EXPECT_TRUE(store_->Remove("c/1/one").ok());
  EXPECT_TRUE(store_->Remove("c/1/two.part").ok());
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(FolderStoreTest, PagesOfAListMeetEachObjectOnce) {
  const size_t count = ObjectStore::kMaxListed + 5;
  for (size_t i = 0; i < 3; ++i) std::filesystem::create_directories(absl::StrCat(root_, "/c/", i));
  // Not by Put, which waits for the disk.
  for (size_t i = 0; i < count; ++i) std::ofstream(absl::StrCat(root_, "/c/", i % 3, "/", i));
  ASSERT_TRUE(Put("c/1-b", "").ok());  // a '-' is less than a '/'
  ASSERT_TRUE(Put("d/0/other", "").ok());
  std::vector<std::string> all;
  std::string after;
  for (int page = 0; page < 3; ++page) {
    const auto listing = store_->List("c", after);
    ASSERT_TRUE(listing.ok()) << listing.status();
    all.insert(all.end(), listing->names.begin(), listing->names.end());
    EXPECT_EQ(listing->is_end, page > 0);
    if (listing->is_end) break;
    after = listing->names.back();
  }
  EXPECT_THAT(all, SizeIs(count + 1));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_THAT(store_->List("none", "")->names, IsEmpty());
}

// A share that is not mounted looks empty, and must not look as if it had lost all.
TEST_F(FolderStoreTest, WithoutItsFolderTheStoreIsAway) {
  ASSERT_TRUE(Put("c/1/one", "x").ok());
  const std::string away = root_ + ".away";
  std::filesystem::rename(root_, away);
  EXPECT_TRUE(absl::IsUnavailable(store_->Read("c/1/one", 0, 1).status()));
  EXPECT_TRUE(absl::IsUnavailable(Put("c/1/two", "x")));
  EXPECT_TRUE(absl::IsUnavailable(store_->Remove("c/1/one")));
  const absl::Status listed = store_->List("c", "").status();
  EXPECT_TRUE(absl::IsUnavailable(listed));
  EXPECT_THAT(std::string(listed.message()), HasSubstr("mount the share"));
  std::filesystem::rename(away, root_);
  EXPECT_EQ(*store_->Read("c/1/one", 0, 1), "x");
}

// To open a FIFO hangs until somebody writes, as a file of a hard mount does whose server is away.
TEST_F(FolderStoreTest, AShareThatHangsCostsTimeAndABoundedNumberOfThreads) {
  ASSERT_TRUE(Put("c/1/one", "x").ok());
  ASSERT_EQ(mkfifo((root_ + "/c/1/hangs").c_str(), 0600), 0);
  FolderStore store(root_, absl::Milliseconds(30));
  for (size_t i = 0; i < BoundedCalls::kMaxThreads; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(store.Read("c/1/hangs", 0, 1).status()));
  }
  const absl::Status full = store.Read("c/1/one", 0, 1).status();
  EXPECT_TRUE(absl::IsUnavailable(full));
  EXPECT_THAT(std::string(full.message()), HasSubstr("16 calls wait"));
  // The server is back.
  std::fstream both(root_ + "/c/1/hangs", std::ios::in | std::ios::out);
  absl::StatusOr<std::string> read = store.Read("c/1/one", 0, 1);
  for (int i = 0; i < 1000 && !read.ok(); ++i) read = store.Read("c/1/one", 0, 1);
  EXPECT_EQ(*read, "x");
}

}  // namespace
}  // namespace npuc::objects
