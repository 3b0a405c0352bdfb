#include "compiler_core/base/fp16_span.h"

#include <cstddef>
#include <cstdint>

#include "compiler_core/base/fp16.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace npuc {
namespace {

#if defined(__x86_64__)

constexpr size_t kLanes = 8;

// Not __builtin_cpu_supports: what it reads is gathered at each start of the program, which takes
// 50 us on a virtual machine, and clang 14 does not know "f16c" by name.
__attribute__((target("xsave"))) bool AskForHalves() {
  unsigned int a = 0;
  unsigned int b = 0;
  unsigned int c = 0;
  unsigned int d = 0;
  constexpr unsigned int kNeeded = bit_OSXSAVE | bit_AVX | bit_F16C;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kNeeded) != kNeeded) return false;
  constexpr uint64_t kWideRegisters = 6;  // that the system keeps them, too
  return (_xgetbv(0) & kWideRegisters) == kWideRegisters;
}

// Both return how many values they did: all but those after the last full register.
__attribute__((target("avx,f16c"))) size_t ToHalvesByRegister(absl::Span<const float> values,
                                                              uint16_t* to) {
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    const __m256 lanes = _mm256_loadu_ps(values.data() + i);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  return i;
}

__attribute__((target("avx,f16c"))) size_t RoundByRegister(absl::Span<float> values) {
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    float* at = values.data() + i;
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(at), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_ps(at, _mm256_cvtph_ps(halves));
  }
  return i;
}

#else

bool AskForHalves() { return false; }
size_t ToHalvesByRegister(absl::Span<const float>, uint16_t*) { return 0; }
size_t RoundByRegister(absl::Span<float>) { return 0; }

#endif

}  // namespace

bool HasHalfInstructions() {
  static const bool has = AskForHalves();
  return has;
}

std::vector<uint16_t> FloatsToHalves(absl::Span<const float> values) {
  std::vector<uint16_t> halves(values.size());
  size_t i = HasHalfInstructions() ? ToHalvesByRegister(values, halves.data()) : 0;
  for (; i < values.size(); ++i) halves[i] = FloatToHalf(values[i]);
  return halves;
}

void RoundToHalves(absl::Span<float> values) {
  size_t i = HasHalfInstructions() ? RoundByRegister(values) : 0;
  for (; i < values.size(); ++i) values[i] = RoundToHalf(values[i]);
}

}  // namespace npuc
