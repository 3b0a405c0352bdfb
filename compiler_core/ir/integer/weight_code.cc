#include "compiler_core/ir/integer/weight_code.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace npuc::integer {
namespace {

constexpr int kTotalBits = 12;
constexpr uint32_t kTotal = 1u << kTotalBits;
// A state is kLeast or more, and below 256 times that.
constexpr uint32_t kLeast = 1u << 23;
constexpr size_t kStateBytes = 4;

// Where each value's interval of 0..kTotal begins; the last entry is kTotal, or 0 of a table
// without shares.
using Borders = std::array<uint32_t, 257>;

// Shares are scaled to kTotal so that each value with a share keeps at least one of it.
Borders BordersOf(absl::Span<const uint8_t> table) {
  std::array<uint32_t, 256> shares;
  uint32_t sum = 0;
  uint32_t present = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i] = static_cast<uint32_t>(kCodeShares[table[i / 2] >> (i % 2 * 4) & 15]);
    sum += shares[i];
    present += shares[i] > 0 ? 1 : 0;
  }
  Borders borders = {};
  if (sum == 0) return borders;
  uint32_t below = 0;
  uint32_t present_below = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    below += shares[i];
    present_below += shares[i] > 0 ? 1 : 0;
    borders[i + 1] = below * (kTotal - present) / sum + present_below;
  }
  return borders;
}

size_t PlaceOf(uint8_t weight) { return weight ^ 0x80u; }  // -128 is 0

}  // namespace

Counts CountsOf(absl::Span<const uint8_t> weights) {
  Counts counts = {};
  for (const uint8_t weight : weights) ++counts[PlaceOf(weight)];
  return counts;
}

CodeTable TableFor(const Counts& counts) {
  const int64_t most = std::max<int64_t>(1, *std::max_element(counts.begin(), counts.end()));
  CodeTable table = {};
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    // The share whose ratio to the wanted one is nearest to 1.
    const double wanted =
        static_cast<double>(counts[i]) * kCodeShares.back() / static_cast<double>(most);
    uint8_t best = 1;
    while (best + 1u < kCodeShares.size() &&
           wanted * wanted > static_cast<double>(kCodeShares[best]) * kCodeShares[best + 1]) {
      ++best;
    }
    table[i / 2] = static_cast<uint8_t>(table[i / 2] | best << (i % 2 * 4));
  }
  return table;
}

int64_t CodedBytes(const Counts& counts, const CodeTable& table) {
  const Borders borders = BordersOf(table);
  double bits = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const uint32_t width = borders[i + 1] - borders[i];
    if (width == 0) return -1;
    bits += static_cast<double>(counts[i]) * (kTotalBits - std::log2(width));
  }
  return static_cast<int64_t>(std::ceil(bits / 8)) + static_cast<int64_t>(kStateBytes);
}

absl::StatusOr<std::vector<uint8_t>> EncodeWeights(absl::Span<const uint8_t> weights,
                                                   const CodeTable& table) {
  const Borders borders = BordersOf(table);
  std::vector<uint8_t> reversed;
  uint32_t state = kLeast;
  for (size_t i = weights.size(); i-- > 0;) {
    const size_t place = PlaceOf(weights[i]);
    const uint32_t width = borders[place + 1] - borders[place];
    if (width == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the table has no share for weight ", static_cast<int8_t>(weights[i])));
    }
    const uint64_t limit = (uint64_t{kLeast} >> kTotalBits << 8) * width;
    for (; state >= limit; state >>= 8) reversed.push_back(static_cast<uint8_t>(state));
    state = state / width << kTotalBits | (state % width + borders[place]);
  }
  for (size_t i = 0; i < kStateBytes; ++i) {
    reversed.push_back(static_cast<uint8_t>(state >> (8 * i)));
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

absl::StatusOr<std::vector<uint8_t>> DecodeWeights(absl::Span<const uint8_t> coded, int64_t count,
                                                   absl::Span<const uint8_t> table) {
  const Borders borders = BordersOf(table);
  if (borders.back() == 0) return absl::InvalidArgumentError("its table has no shares");
  std::array<uint8_t, kTotal> places;
  for (size_t i = 0; i < 256; ++i) {
    std::fill(places.begin() + borders[i], places.begin() + borders[i + 1],
              static_cast<uint8_t>(i));
  }
  uint64_t state = 0;
  size_t at = 0;
  for (; at < kStateBytes && at < coded.size(); ++at) state = state << 8 | coded[at];
  std::vector<uint8_t> weights(static_cast<size_t>(count));
  for (uint8_t& weight : weights) {
    if (state < kLeast || state >> 31 != 0) break;  // no state: the check behind finds it, too
    const uint32_t rest = static_cast<uint32_t>(state) & (kTotal - 1);
    const uint8_t place = places[rest];
    weight = place ^ 0x80u;
    state = (state >> kTotalBits) * (borders[place + 1u] - borders[place]) + rest - borders[place];
    for (; state < kLeast && at < coded.size(); ++at) state = state << 8 | coded[at];
  }
  if (state != kLeast || at != coded.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("its ", coded.size(), " bytes are no code of ", count, " weights"));
  }
  return weights;
}

}  // namespace npuc::integer
