#include "compiler_core/base/process_heap.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "compiler_core/base/sanitized.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// A block that knows what it was filled with.
struct Block {
  explicit Block(size_t block_size, uint8_t block_fill)
      : size(block_size), fill(block_fill), bytes(new uint8_t[block_size]) {
    std::memset(bytes.get(), fill, size);
  }
  bool IsWhole() const {
    for (size_t i = 0; i < size; ++i) {
      if (bytes[i] != fill) return false;
    }
    return true;
  }
  size_t size;
  uint8_t fill;
  std::unique_ptr<uint8_t[]> bytes;
};

// Takes and frees blocks of all sizes; false where one was not what was written to it.
bool Churn(uint32_t seed, std::vector<Block>& blocks) {
  std::mt19937 rng(seed);
  for (int turn = 0; turn < 100'000; ++turn) {
    if (blocks.size() < 500 || rng() % 2 == 0) {
      const size_t size = rng() % 16 == 0 ? rng() % 5000 : rng() % 520;
      blocks.emplace_back(size, static_cast<uint8_t>(rng()));
      if (reinterpret_cast<uintptr_t>(blocks.back().bytes.get()) % 16 != 0) return false;
    } else {
      std::swap(blocks[rng() % blocks.size()], blocks.back());
      if (!blocks.back().IsWhole()) return false;
      blocks.pop_back();
    }
  }
  return true;
}

TEST(ProcessHeap, BlocksOfManyThreadsStayWhole) {
  std::vector<Block> before;  // freed when there is another heap
  EXPECT_TRUE(Churn(1, before));
  UseProcessHeap();
  std::vector<Block> blocks[3];
  bool is_whole[3] = {};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] { is_whole[i] = Churn(i + 2, blocks[i]); });
  }
  EXPECT_TRUE(Churn(9, before));
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < 3; ++i) {  // freed by another thread than took them
    EXPECT_TRUE(is_whole[i]);
    for (const Block& block : blocks[i]) EXPECT_TRUE(block.IsWhole());
    EXPECT_TRUE(Churn(20 + i, blocks[i]));
  }
}

TEST(ProcessHeap, PagesAreWarmedBesideTheirUse) {
  UseProcessHeap();
  std::thread warming([] {
    for (size_t page = 0; page < 100; ++page) WarmHeapPage(page);  // more than there are
    WarmHeapPage(SIZE_MAX);
  });
  std::vector<Block> blocks;
  EXPECT_TRUE(Churn(51, blocks));
  warming.join();
  for (const Block& block : blocks) EXPECT_TRUE(block.IsWhole());
}

TEST(ProcessHeap, ForkedProcessHasBlocksOfItsOwn) {
  UseProcessHeap();
  std::vector<Block> before;
  ASSERT_TRUE(Churn(31, before));
  const pid_t child = fork();
  if (child == 0) {
    WarmForkedHeap();
    std::vector<Block> blocks;
    bool is_whole = Churn(32, blocks) && Churn(33, before);  // frees some of its parent's
    for (const Block& block : before) is_whole = is_whole && block.IsWhole();
    for (const Block& block : blocks) is_whole = is_whole && block.IsWhole();
    raise(is_whole ? SIGKILL : SIGABRT);  // no destructors, no other tests
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  for (const Block& block : before) EXPECT_TRUE(block.IsWhole());
}

#ifndef NPUC_SANITIZED  // whose heap ends the process
TEST(ProcessHeap, WithoutMemoryTheHandlerIsAsked) {
  static int asked = 0;
  std::set_new_handler([] {
    // The second time there is none, as in a program that gives up.
    if (++asked == 2) std::set_new_handler(nullptr);
  });
  EXPECT_THROW(::operator delete(::operator new(PTRDIFF_MAX)), std::bad_alloc);
  EXPECT_EQ(asked, 2);
}
#endif

}  // namespace
}  // namespace npuc
