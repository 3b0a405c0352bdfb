#include <algorithm>
#include <random>
#include <set>
#include <variant>
#include <vector>

#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/parts.h"
#include "compiler_core/ir/integer/phases.h"
#include "compiler_core/ir/integer/verify.h"
#include "compiler_core/sim/integer_kernels.h"
#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kMemoryBytes = 1 << 16;
constexpr int64_t kResultOffset = 1 << 15;
// Places of constants.
constexpr int64_t kWeightOffset = 0;
constexpr int64_t kBiasOffset = 1 << 14;
constexpr int64_t kFactorOffset = 1 << 15;
constexpr int64_t kTableOffset = 3 << 14;

class PartsTest : public testing::Test {
 protected:
  int32_t Below(int32_t end) {
    return static_cast<int32_t>(random_() % static_cast<uint32_t>(end));
  }
  DType Type() { return Below(2) == 0 ? DType::kInt8 : DType::kInt16; }

  Result RandomResult(DType type) {
    Result result;
    result.d = {BufferId(0), kResultOffset + 2 * Below(8)};
    result.type = type;
    if (type == DType::kInt16) result.min = -30000, result.max = 30000;
    return result;
  }

  template <typename Windowed>
  void SetSides(Windowed& c) {
    c.a = {BufferId(0), 2 * Below(8)};
    c.a_type = Type();
    c.n = 1 + Below(4) / 2;
    c.in_w = c.out_w = 1 + Below(3);
    c.in_h = 4 + Below(12);
    c.window.kernel_h = 1 + Below(3);
    c.window.stride_h = 1 + Below(2);
    c.window.pad_top = Below(c.window.kernel_h);
    c.out_h = 1 + (c.in_h - 1) / c.window.stride_h;
    c.result = RandomResult(Type());
  }

  Body RandomConvolve() {
    Convolve c;
    SetSides(c);
    const int kind = Below(3);
    c.groups = kind == 0 ? 1 + Below(3) : 1;
    c.in_c = c.groups * (1 + Below(4));
    c.out_c = kind == 0 ? c.in_c : 1 + Below(20);
    if (kind == 2) c.n = c.in_h = c.out_h = c.in_w = c.out_w = 1, c.window = {};
    c.weight_type = Type();
    c.weights = {BufferId(1), kWeightOffset};
    c.bias = {BufferId(1), kBiasOffset};
    c.factors = {BufferId(1), kFactorOffset};
    c.factor_count = Below(2) == 0 ? 1 : c.out_c;
    return c;
  }
  Body RandomPool() {
    Pool c;
    SetSides(c);
    c.c = 1 + Below(5);
    c.kind = Below(2) == 0 ? Pool::Kind::kMax : Pool::Kind::kMean;
    return c;
  }
  Extents RandomExtents(int32_t end) {
    Extents extents = {1, 1, 1, 1, 1, 1};
    for (int i = Below(4); i < kMaxExtents; ++i) extents[i] = 1 + Below(end);
    return extents;
  }
  static Extents Dense(const Extents& extents) {
    Extents strides = {};
    int32_t stride = 1;
    for (int i = kMaxExtents - 1; i >= 0; --i) {
      strides[i] = stride;
      stride *= extents[i];
    }
    return strides;
  }
  Extents MaybeRepeated(Extents strides) {
    for (int32_t& stride : strides) stride *= Below(4) == 0 ? 0 : 1;
    return strides;
  }
  Body RandomCombine() {
    Combine c;
    c.a = {BufferId(0), 0};
    c.b = {BufferId(0), 8192};
    c.a_type = c.b_type = DType::kInt8;
    c.factors = {BufferId(1), kFactorOffset};
    c.extents = RandomExtents(4);
    c.a_strides = MaybeRepeated(Dense(c.extents));
    c.b_strides = MaybeRepeated(Dense(c.extents));
    c.d_strides = Dense(c.extents);
    c.result = RandomResult(DType::kInt8);
    return c;
  }
  Body RandomMove() {
    Move c;
    c.a = {BufferId(0), 0};
    c.extents = RandomExtents(4);
    c.a_strides = Dense(c.extents);
    c.d_strides = Dense(c.extents);
    std::shuffle(c.a_strides.begin(), c.a_strides.end(), random_);
    c.result = RandomResult(DType::kInt8);
    return c;
  }
  Body RandomProduct() {
    Product c;
    c.a = {BufferId(0), 0};
    c.b = {BufferId(0), 8192};
    c.factors = {BufferId(1), kFactorOffset};
    c.extents = RandomExtents(4);
    c.a_strides = MaybeRepeated(Dense(c.extents));
    c.b_strides = MaybeRepeated(Dense(c.extents));
    c.result = RandomResult(DType::kInt8);
    return c;
  }
  Body RandomOther() {
    switch (Below(3)) {
      case 0: {
        Fill c;
        c.count = 1 + Below(100);
        c.result = RandomResult(Type());
        return c;
      }
      case 1: {
        Lookup c;
        c.a = {BufferId(0), 0};
        c.table = {BufferId(1), kTableOffset};
        c.count = 1 + Below(100);
        c.result = RandomResult(DType::kInt8);
        return c;
      }
      default: {
        Softmax c;
        c.kind = Softmax::Kind::kTable;
        c.a = {BufferId(0), 0};
        c.table = {BufferId(1), kTableOffset};
        c.factors = {BufferId(1), kFactorOffset};
        c.rows = 1 + Below(9);
        c.length = 1 + Below(9);
        c.result = RandomResult(DType::kInt8);
        return c;
      }
    }
  }
  Body RandomBody() {
    switch (Below(6)) {
      case 0:
      case 1:
        return RandomConvolve();
      case 2:
        return RandomPool();
      case 3:
        return Below(2) == 0 ? RandomCombine() : RandomMove();
      case 4:
        return RandomProduct();
      default:
        return RandomOther();
    }
  }

  void FillMemories() {
    for (Bytes* memory : {&data_, &weights_}) {
      memory->resize(kMemoryBytes);
      for (uint8_t& byte : *memory) byte = static_cast<uint8_t>(random_());
    }
    for (int64_t i = 0; i < 64; ++i) {  // factors of 2^-9 or so
      const uint64_t bits = (uint64_t{36} << 31) | (random_() & 0x7fffffff);
      for (int64_t k = 0; k < kFactorBytes; ++k) {
        weights_[static_cast<size_t>(kFactorOffset + i * kFactorBytes + k)] =
            static_cast<uint8_t>(bits >> (8 * k));
      }
    }
    buffers_.resize(2);
    buffers_[0].slot = Slot::kData;
    buffers_[1].slot = Slot::kWeight;
    for (Buffer& buffer : buffers_) buffer.offset_bytes = 0, buffer.size_bytes = kMemoryBytes;
  }

  void Run(const Body& body, Bytes& data) const {
    const auto at = [&](const Operand& operand) {
      const Bytes& memory = operand.buffer == BufferId(1) ? weights_ : data;
      return const_cast<uint8_t*>(memory.data()) + operand.offset_bytes;
    };
    std::visit(
        [&](const auto& c) {
          using Kind = std::decay_t<decltype(c)>;
          uint8_t* d = at(c.result.d);
          if constexpr (std::is_same_v<Kind, Convolve>) {
            integer::Run(c, ReadConstants(c, at(c.weights), at(c.bias), at(c.factors)), at(c.a), d,
                         false);
          } else if constexpr (std::is_same_v<Kind, Fill>) {
            integer::Run(c, d);
          } else if constexpr (std::is_same_v<Kind, Lookup>) {
            integer::Run(c, at(c.a), at(c.table), d, false);
          } else {
            std::vector<Factor> factors;
            if (c.factors.present()) factors = ReadFactors(at(c.factors), 3);
            if constexpr (std::is_same_v<Kind, Softmax>) {
              integer::Run(c, factors, at(c.a), at(c.table), d, false);
            } else if constexpr (requires { c.b; }) {
              integer::Run(c, factors, at(c.a), at(c.b), d, false);
            } else {
              integer::Run(c, factors, at(c.a), d, false);
            }
          }
        },
        body);
  }

  std::mt19937 random_{20261127};
  Bytes data_;
  Bytes weights_;
  std::vector<Buffer> buffers_;
};

// All parts, in any order, give the bits of the whole command, each part is a valid command, and no
// part stores what another one stores or reads.
TEST_F(PartsTest, GiveTheSameBytesInAnyOrder) {
  FillMemories();
  std::set<size_t> kinds;
  int cut = 0;
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(round);
    const Body whole = RandomBody();
    ASSERT_TRUE(CommandProblems(buffers_, whole).empty()) << CommandProblems(buffers_, whole)[0];
    const Sharing sharing = {Below(2) == 0 ? Sharing::Axis::kRows : Sharing::Axis::kChannels,
                             2 + Below(3)};
    std::vector<Body> parts = PartsOf(whole, sharing);
    if (parts.empty()) continue;
    ++cut;
    kinds.insert(whole.index());
    ASSERT_EQ(parts.size(), static_cast<size_t>(sharing.parts));
    std::vector<PhaseCommand> phase;
    for (const Body& part : parts) {
      ASSERT_TRUE(CommandProblems(buffers_, part).empty()) << CommandProblems(buffers_, part)[0];
      phase.push_back({&part, static_cast<int32_t>(phase.size())});
    }
    EXPECT_EQ(PhaseProblem(buffers_, phase), std::nullopt);
    Bytes expected = data_;
    Run(whole, expected);
    std::shuffle(parts.begin(), parts.end(), random_);
    Bytes found = data_;
    for (const Body& part : parts) Run(part, found);
    ASSERT_TRUE(found == expected) << NameOf(whole);
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Body>);
  EXPECT_GT(cut, 1500);
}

TEST_F(PartsTest, AreNoneWhereThereAreTooFewUnitsOrWeightsAreCoded) {
  Convolve c;
  c.out_c = 12;
  EXPECT_TRUE(PartsOf(c, {Sharing::Axis::kRows, 2}).empty());
  EXPECT_TRUE(PartsOf(c, {Sharing::Axis::kChannels, 4}).empty());
  EXPECT_EQ(PartsOf(c, {Sharing::Axis::kChannels, 3}).size(), 3u);
  EXPECT_TRUE(PartsOf(c, {Sharing::Axis::kChannels, 1}).empty());
  c.coded_bytes = 9;
  EXPECT_TRUE(PartsOf(c, {Sharing::Axis::kChannels, 3}).empty());
  c.coded_bytes = 0;
  c.groups = 3;
  EXPECT_TRUE(PartsOf(c, {Sharing::Axis::kChannels, 3}).empty());
}

}  // namespace
}  // namespace npuc::integer
