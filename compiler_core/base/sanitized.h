#ifndef NPUC_COMPILER_CORE_BASE_SANITIZED_H_
#define NPUC_COMPILER_CORE_BASE_SANITIZED_H_

// Defines NPUC_SANITIZED where the build has AddressSanitizer, ThreadSanitizer or MemorySanitizer,
// whose runtimes bring a heap, threads and system calls of their own. gcc and clang say it in
// different ways.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NPUC_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define NPUC_SANITIZED 1
#endif
#endif

#endif  // NPUC_COMPILER_CORE_BASE_SANITIZED_H_
