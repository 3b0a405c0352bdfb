#ifndef NPUC_COMPILER_CORE_BASE_PROCESS_HEAP_H_
#define NPUC_COMPILER_CORE_BASE_PROCESS_HEAP_H_

#include <cstddef>

namespace npuc {

// Gives a program that lives for one compile a heap made for that; its time falls by a third.
// - Huge pages, and what is freed is kept: a small page costs 2 us on first touch (measured on a
//   virtual machine), and a compile touches thousands.
// - Small blocks from lists by size (a program that links this has its operator new): a compile
//   takes and frees some hundred thousand, and malloc's own merging of neighbours is for programs
//   that live longer.
// Call once, first in main(), before there are threads; what was allocated before may be freed
// after. Does nothing under sanitizers and where the system's allocator is another; never fails.
// Costs address space, and less than 2 MiB of memory.
void UseProcessHeap();

// Gets ready the heap's huge page `index`, counted from the first, so that nobody waits for the
// system to clear it; for another thread that has nothing better to do. Nothing where it is ready,
// or there is no such page. Thread-safe after UseProcessHeap; never fails.
void WarmHeapPage(size_t index);
inline constexpr size_t kHeapPageBytes = 2 << 20;

// In a process forked from one that called UseProcessHeap: leaves its blocks alone and gets ready
// huge pages for new ones, so that neither the parent's pages are copied as they are written nor
// new ones are waited for. Enough for the compile of a small net. Before there are threads; never
// fails.
void WarmForkedHeap();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_PROCESS_HEAP_H_
