#ifndef NPUC_CACHE_CACHE_TEST_UTIL_H_
#define NPUC_CACHE_CACHE_TEST_UTIL_H_

// For tests alone.

#include <cstddef>
#include <random>
#include <string>

namespace npuc::cache {

// Bytes that no compression makes shorter, the same for the same seed.
inline std::string RandomBytes(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(n, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

}  // namespace npuc::cache

#endif  // NPUC_CACHE_CACHE_TEST_UTIL_H_
