#include "compiler_core/base/process_heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "compiler_core/base/sanitized.h"

#if defined(NPUC_SANITIZED) || !defined(__GLIBC__)

namespace npuc {
void UseProcessHeap() {}
void WarmHeapPage(size_t) {}
void WarmForkedHeap() {}
}  // namespace npuc

#else

namespace npuc {
namespace {

constexpr uintptr_t kHugePageBytes = kHeapPageBytes;
// Ahead of the first huge page, so that no page of it is touched before it may be huge.
constexpr uintptr_t kLeadBytes = 192 << 10;
constexpr size_t kFirstBlockBytes = 160 << 10;
// What the heap grows by at first; more than nets below a million weights use.
constexpr int kGrowBytes = 64 << 20;
constexpr int kGrowLaterBytes = 1 << 20;
// More than is free between the blocks of a process that has just begun: such a block lies behind
// them.
constexpr size_t kBehindBytes = 512 << 10;
constexpr size_t kWarmBytes = kHugePageBytes;

// Small blocks are multiples of a step, and lie in pages of blocks of one size.
constexpr size_t kStepBytes = 16;
constexpr size_t kMaxSmallBytes = 512;
constexpr size_t kSizes = kMaxSmallBytes / kStepBytes + 1;
constexpr size_t kPageBytes = 16 << 10;
constexpr size_t kPagesAtOnce = 16;
constexpr size_t kPages = kGrowBytes / kPageBytes;

// By page from `begin`: which size its blocks have, in steps; 0: a page of malloc's. A page keeps
// its size for good, and is given one before any block of it is handed out.
struct PageMap {
  uintptr_t begin = 0;
  std::array<uint8_t, kPages> steps{};
};
PageMap page_map;
uintptr_t heap_end = 0;  // of what UseProcessHeap took

struct FreeBlock {
  FreeBlock* next;
};

// A thread's blocks to give out. A block goes to the lists of the thread that frees it.
struct SmallBlocks {
  std::array<FreeBlock*, kSizes> free{};
  std::array<char*, kSizes> fresh{};  // never used yet, to the end of its page
  char* pages = nullptr;
  size_t pages_left = 0;
};
thread_local constinit SmallBlocks small_blocks;

uintptr_t AddressOf(const void* block) { return reinterpret_cast<uintptr_t>(block); }

uint8_t StepsOf(const void* block) {
  const uintptr_t page = (AddressOf(block) - page_map.begin) / kPageBytes;
  return page < kPages ? page_map.steps[page] : 0;
}

// A new page for blocks of `steps`; null where malloc's memory does not lie in the map.
char* TakePage(size_t steps) {
  if (page_map.begin == 0) return nullptr;
  SmallBlocks& blocks = small_blocks;
  if (blocks.pages_left == 0) {
    blocks.pages = static_cast<char*>(std::aligned_alloc(kPageBytes, kPagesAtOnce * kPageBytes));
    if (blocks.pages == nullptr) return nullptr;
    blocks.pages_left = kPagesAtOnce;
  }
  char* page = blocks.pages;
  blocks.pages += kPageBytes;
  --blocks.pages_left;
  const uintptr_t index = (AddressOf(page) - page_map.begin) / kPageBytes;
  if (index >= kPages) return nullptr;
  page_map.steps[index] = static_cast<uint8_t>(steps);
  return page;
}

// A block of a page that is not used up; for where the list of free blocks is empty.
void* TakeFresh(size_t steps) {
  char*& fresh = small_blocks.fresh[steps];
  const size_t size = steps * kStepBytes;
  // Behind a page's last block: null at first, the next page's begin, or too near to it.
  const size_t at = AddressOf(fresh) % kPageBytes;
  char* block = at != 0 && at + size <= kPageBytes ? fresh : TakePage(steps);
  if (block == nullptr) return nullptr;
  fresh = block + size;
  return block;
}

void* TakeFromMalloc(size_t size) {
  while (true) {
    void* block = std::malloc(size == 0 ? 1 : size);
    if (block != nullptr) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void* Take(size_t size) {
  if (size > kMaxSmallBytes) return TakeFromMalloc(size);
  const size_t steps = size == 0 ? 1 : (size + kStepBytes - 1) / kStepBytes;
  FreeBlock*& list = small_blocks.free[steps];
  if (list != nullptr) {
    FreeBlock* block = list;
    list = block->next;
    return block;
  }
  void* block = TakeFresh(steps);
  return block != nullptr ? block : TakeFromMalloc(size);
}

void Give(void* block) {
  const uint8_t steps = StepsOf(block);
  if (steps == 0) {
    std::free(block);  // null as well
    return;
  }
  FreeBlock*& list = small_blocks.free[steps];
  auto* freed = static_cast<FreeBlock*>(block);
  freed->next = list;
  list = freed;
}

uintptr_t Break() { return AddressOf(::sbrk(0)); }

}  // namespace

void UseProcessHeap() {
  const uintptr_t begin = Break();
  const uintptr_t edge =
      (begin + kLeadBytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  // The gap makes glibc start a new piece of heap behind it, with the next block that does not fit
  // into the piece it has; that block ends before the edge.
  if (::sbrk(static_cast<intptr_t>(edge - kLeadBytes - begin)) == reinterpret_cast<void*>(-1)) {
    return;
  }
  ::mallopt(M_ARENA_MAX, 1);  // other threads' memory, too, is of huge pages
  ::mallopt(M_TOP_PAD, kGrowBytes);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kGrowBytes);
  ::mallopt(M_MMAP_THRESHOLD, kGrowBytes);
  void* volatile first = std::malloc(kFirstBlockBytes);  // volatile: not to be optimised away
  const uintptr_t end = Break();
  std::free(first);
  // Where that much was not to be had, or is used up, a limit on memory may be near.
  ::mallopt(M_TOP_PAD, kGrowLaterBytes);
  if (end <= edge) return;
  ::madvise(reinterpret_cast<void*>(edge), end - edge, MADV_HUGEPAGE);
  page_map.begin = edge - kLeadBytes;
  heap_end = end;
}

void WarmHeapPage(size_t index) {
  if (page_map.begin == 0 || index >= kGrowBytes / kHugePageBytes) return;
  const uintptr_t page = page_map.begin + kLeadBytes + index * kHugePageBytes;
  if (page + kHugePageBytes > heap_end) return;
  ::madvise(reinterpret_cast<void*>(page), kHugePageBytes, MADV_POPULATE_WRITE);
}

void WarmForkedHeap() {
  if (page_map.begin == 0) return;
  small_blocks = {};
  // Never freed: with them the parent's last huge page is used up, as far as it was not.
  void* volatile behind = std::malloc(kBehindBytes);
  const uintptr_t used = AddressOf(behind) + kBehindBytes;
  const uintptr_t edge = (used + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* volatile rest = std::malloc(edge - used);
  if (behind == nullptr || rest == nullptr || edge + kWarmBytes > Break()) return;
  ::madvise(reinterpret_cast<void*>(edge), kWarmBytes, MADV_POPULATE_WRITE);
}

}  // namespace npuc

void* operator new(size_t size) { return npuc::Take(size); }
void operator delete(void* block) noexcept { npuc::Give(block); }
void operator delete(void* block, size_t) noexcept { npuc::Give(block); }

#endif  // NPUC_SANITIZED
