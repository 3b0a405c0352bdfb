#include "compiler_core/frontends/torchscript/checksum.h"

#include <zlib.h>

#include <cstddef>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace npuc::pt {
namespace {

uint32_t Continue(uint32_t checksum, absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(checksum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

#if defined(__x86_64__)

constexpr size_t kBlock = 16;
constexpr size_t kBlocksAtOnce = 4;
// Less is not worth asking the processor, which takes some microseconds on a virtual machine.
constexpr size_t kWorthProducts = 16 << 10;

bool AskForProducts() {
  unsigned int a = 0;
  unsigned int b = 0;
  unsigned int c = 0;
  unsigned int d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_PCLMUL) != 0;
}

__m128i BlockAt(const char* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

// `folded` moved on by as many bits as `powers` stands for, and `next` added.
__attribute__((target("pclmul"))) __m128i Fold(__m128i folded, __m128i powers, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(folded, powers, 0x00);
  const __m128i high = _mm_clmulepi64_si128(folded, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// One block that has the checksum of `bytes`, which are whole blocks, kBlocksAtOnce at least.
// Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel
// 2009, with its powers of x for zip's polynomial, bits reflected: x^(512 + 32) and x^(512 - 32),
// x^(128 + 32) and x^(128 - 32), each modulo the polynomial.
__attribute__((target("pclmul"))) __m128i FoldAll(absl::string_view bytes) {
  const __m128i by_four = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i by_one = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  const char* at = bytes.data();
  size_t blocks = bytes.size() / kBlock;
  __m128i folded[kBlocksAtOnce];
  for (__m128i& lane : folded) {
    lane = BlockAt(at);
    at += kBlock;
  }
  folded[0] = _mm_xor_si128(folded[0], _mm_cvtsi32_si128(-1));  // what a checksum begins with
  for (blocks -= kBlocksAtOnce; blocks >= kBlocksAtOnce; blocks -= kBlocksAtOnce) {
    for (__m128i& lane : folded) {
      lane = Fold(lane, by_four, BlockAt(at));
      at += kBlock;
    }
  }
  __m128i all = folded[0];
  for (size_t i = 1; i < kBlocksAtOnce; ++i) all = Fold(all, by_one, folded[i]);
  for (; blocks > 0; --blocks, at += kBlock) all = Fold(all, by_one, BlockAt(at));
  return all;
}

uint32_t ChecksumByProducts(absl::string_view bytes) {
  const size_t whole = bytes.size() / kBlock * kBlock;
  char block[kBlock];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(block), FoldAll(bytes.substr(0, whole)));
  // The block already has the ones that a checksum begins with: zlib adds its own to what it is
  // given, so that all ones are none.
  const uint32_t checksum = Continue(0xffffffff, {block, kBlock});
  return Continue(checksum, bytes.substr(whole));
}

#endif

}  // namespace

uint32_t ZipChecksum(absl::string_view bytes) {
#if defined(__x86_64__)
  if (bytes.size() >= kWorthProducts) {
    static const bool has_products = AskForProducts();
    if (has_products) return ChecksumByProducts(bytes);
  }
#endif
  return Continue(0, bytes);
}

}  // namespace npuc::pt
