#ifndef NPUC_COMPILER_CORE_BASE_SPLIT_MIX_H_
#define NPUC_COMPILER_CORE_BASE_SPLIT_MIX_H_

#include <cstdint>

namespace npuc {

// SplitMix64, a random generator whose numbers are the same on every machine. Source: Steele, Lea
// and Flood, "Fast splittable pseudorandom number generators", 2014, figure 16.
class SplitMix64 {
 public:
  // Between one state and the next.
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += kStep);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double NextUniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_SPLIT_MIX_H_
