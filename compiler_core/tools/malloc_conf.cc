// What jemalloc, npuc's allocator, reads at its start. npuc lives for one compile: what is freed is
// kept and not given back to the system, and the memory is of huge pages, since each page's first
// touch costs as much as some hundred allocations (tests/bench/RESULTS.md).
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf =
    "narenas:1,thp:always,metadata_thp:always,retain:true,oversize_threshold:0,"
    "dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
