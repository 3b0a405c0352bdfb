#include "compiler_core/tools/run_items.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/emit/grus_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

VectorCommand Row(VectorCommand::Kind kind, Slot from, int64_t from_offset, Slot to,
                  int64_t to_offset) {
  VectorCommand v;
  v.kind = kind;
  v.a = {BufferId(static_cast<int32_t>(from)), from_offset};
  v.d = {BufferId(static_cast<int32_t>(to)), to_offset};
  v.extents = {1, 1, 2};
  v.a_middle_stride = v.a_outer_stride = v.d_middle_stride = v.d_outer_stride = 2;
  return v;
}

// state_out = state + x; y = float(state_out): a running sum.
CompiledModel RunningSum() {
  Program p;
  p.buffers = SlotBuffers();
  VectorCommand add = Row(VectorCommand::Kind::kTensorTensor, Slot::kInput, 0, Slot::kData, 0);
  add.b = {BufferId(static_cast<int32_t>(Slot::kInput)), 4};
  p.commands = {
      {add, true, false, "", {}},
      {Row(VectorCommand::Kind::kCopy, Slot::kData, 0, Slot::kOutput, 0), true, false, "", {}},
      {Row(VectorCommand::Kind::kFormat, Slot::kData, 0, Slot::kOutput, 4), true, false, "", {}}};
  CompiledModel m;
  m.inputs = {{"net/x", {1, 2}, DType::kFloat16, 0, -1}, {"s", {1, 2}, DType::kFloat16, 4, -1}};
  m.outputs = {{"s_out", {1, 2}, DType::kFloat16, 0, 1}, {"y", {1, 2}, DType::kFloat32, 4, -1}};
  m.cmd_content = *EncodeCommands(p);
  m.data_bytes = 4;
  return m;
}

NpyArray Floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  NpyArray array;
  array.dtype = DType::kFloat32;
  array.shape = std::move(shape);
  array.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return array;
}

class RunItemsTest : public testing::Test {
 protected:
  RunItemsTest() : simulator_(*Simulator::Load(RunningSum(), "m.h", diagnostics_)) {}

  absl::StatusOr<RunItemsResult> Run(const std::vector<NamedArray>& inputs, int64_t items = 0) {
    diagnostics_ = Diagnostics();
    SimulatorRunner runner(*simulator_);
    return RunItems(runner, inputs, items, diagnostics_);
  }
  std::string Problems() const {
    std::string all;
    for (const Diagnostic& d : diagnostics_.list()) absl::StrAppend(&all, d.ToString(), "\n");
    return all;
  }

  Diagnostics diagnostics_;
  std::unique_ptr<Simulator> simulator_;
};

TEST_F(RunItemsTest, StatesStartAtZeroAndAreFedBack) {
  const auto result = Run({{"net/x", Floats({3, 2}, {1, 10, 2, 20, 3, 30})}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->items, 3);
  EXPECT_THAT(FloatsOf(result->outputs[1].array), ElementsAre(1, 10, 3, 30, 6, 60));
  EXPECT_THAT(result->outputs[1].array.shape, ElementsAre(3, 2));
  EXPECT_THAT(FloatsOf(result->outputs[0].array), ElementsAre(1, 10, 3, 30, 6, 60));
  EXPECT_EQ(result->outputs[0].array.dtype, DType::kFloat16);
}

TEST_F(RunItemsTest, AStateCanBeGivenAndNamesMayBeWrittenAsInC) {
  const auto result =
      Run({{"net_x", Floats({2, 1, 2}, {1, 1, 1, 1})}, {"s", Floats({1, 2}, {100, 200})}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(FloatsOf(result->outputs[1].array), ElementsAre(101, 201, 102, 202));
}

TEST_F(RunItemsTest, FramesCutOrRepeat) {
  const auto cut = Run({{"net/x", Floats({3, 2}, {1, 10, 2, 20, 3, 30})}}, 2);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->items, 2);
  const auto repeated = Run({{"net/x", Floats({1, 2}, {1, 2})}}, 3);
  ASSERT_TRUE(repeated.ok());
  EXPECT_THAT(FloatsOf(repeated->outputs[1].array), ElementsAre(1, 2, 2, 4, 3, 6));
}

TEST_F(RunItemsTest, NativeBitsAreTakenAsTheyAre) {
  NpyArray bits;
  bits.dtype = DType::kUint16;
  bits.shape = {1, 2};
  bits.bytes = std::string("\x00\x3c\x00\xc0", 4);  // 1, -2
  const auto result = Run({{"net/x", bits}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(FloatsOf(result->outputs[1].array), ElementsAre(1, -2));
}

TEST_F(RunItemsTest, ReportsEveryProblemAtOnce) {
  NpyArray integers;
  integers.dtype = DType::kInt8;
  integers.shape = {1, 2};
  integers.bytes = std::string(2, '\0');
  EXPECT_FALSE(Run({{"nonsense", Floats({1}, {0})}, {"s", integers}}).ok());
  EXPECT_THAT(Problems(),
              HasSubstr("input 'nonsense' is none of the model's: net/x [1,2], s [1,2]"));
  EXPECT_THAT(Problems(), HasSubstr("input 's' is i8, and the model's is f16; float32"));
  EXPECT_THAT(Problems(), HasSubstr("input 'net/x' [1,2] is not given; add --input net/x="));
  EXPECT_FALSE(Run({{"net/x", Floats({2, 3}, {0, 0, 0, 0, 0, 0})}}).ok());
  EXPECT_THAT(Problems(), HasSubstr("has shape [2,3]; the tensor is [1,2]"));
  EXPECT_FALSE(Run({{"net/x", Floats({1, 2}, {0, 0})}, {"s", Floats({2, 2}, {0, 0, 0, 0})}}).ok());
  EXPECT_THAT(Problems(), HasSubstr("is a state and has 2 items"));
}

// y = x in float32, whatever type the model states for x.
class CopyRunner : public FrameRunner {
 public:
  explicit CopyRunner(DType stated) : stated_(stated) {}
  const std::vector<PortTensor>& inputs() const override { return x_; }
  const std::vector<PortTensor>& outputs() const override { return y_; }
  DType StatedType(size_t i) const override { return stated_; }
  absl::Status Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) override {
    output.assign(input.begin(), input.end());
    return absl::OkStatus();
  }

 private:
  const DType stated_;
  const std::vector<PortTensor> x_ = {{"x", {1, 2}, DType::kFloat32, 0, -1}};
  const std::vector<PortTensor> y_ = {{"y", {1, 2}, DType::kFloat32, 0, -1}};
};

// What the inputs become; a text of the problems where there are any.
std::pair<std::vector<float>, std::string> Copied(DType stated, const NpyArray& array) {
  CopyRunner runner(stated);
  Diagnostics diagnostics;
  const auto result = RunItems(runner, {{"x", array}}, 0, diagnostics);
  std::string problems;
  for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&problems, d.ToString(), "\n");
  return {result.ok() ? FloatsOf(result->outputs[0].array) : std::vector<float>(), problems};
}

TEST(StatedTypes, DecideWhatIntegersOfAFileAre) {
  NpyArray array;
  array.dtype = DType::kUint16;
  array.shape = {1, 2};
  array.bytes = std::string("\x00\x3c\x00\xc0", 4);  // 15360 and 49152; 1 and -2 as bits
  EXPECT_THAT(Copied(DType::kUint16, array).first, ElementsAre(15360, 49152));
  EXPECT_THAT(Copied(DType::kFloat16, array).first, ElementsAre(1, -2));
  EXPECT_THAT(Copied(DType::kFloat32, array).second,
              HasSubstr("is u16, and the model's is f32; float32, float64 or float16 is needed"));
  EXPECT_THAT(Copied(DType::kInt16, array).second, HasSubstr("or float16, or i16 is needed"));
  array.dtype = DType::kInt16;
  EXPECT_THAT(Copied(DType::kInt16, array).first, ElementsAre(15360, -16384));
  EXPECT_THAT(Copied(DType::kFloat16, array).second, HasSubstr("or uint16 (fp16 bits) is needed"));
  EXPECT_THAT(Copied(DType::kUint16, Floats({1, 2}, {3, 65535})).first, ElementsAre(3, 65535));
}

// Real values for a model that takes stored integers would else give other results without a word.
TEST(StatedTypes, FloatsForAnIntegerInputAreItsIntegers) {
  EXPECT_THAT(Copied(DType::kUint8, Floats({1, 2}, {0, -6.5f})).second,
              HasSubstr("holds -6.5 at element 1; the model's input is u8, which takes whole "
                        "numbers from 0 to 255, as npuc run --raw does"));
  EXPECT_THAT(Copied(DType::kUint8, Floats({1, 2}, {256, 0})).second, HasSubstr("holds 256"));
  EXPECT_THAT(Copied(DType::kInt64, Floats({1, 2}, {0.5f, 0})).second, HasSubstr("holds 0.5"));
  EXPECT_THAT(Copied(DType::kInt64, Floats({1, 2}, {-7, 1e9f})).first, ElementsAre(-7, 1e9f));
}

TEST(StatedTypes, WholeNumbersAreTakenWhereTheyAreExact) {
  NpyArray array;
  array.dtype = DType::kInt32;
  array.shape = {1, 2};
  const auto numbers = [&](int32_t a, int32_t b) {
    const int32_t both[] = {a, b};
    array.bytes.assign(reinterpret_cast<const char*>(both), sizeof(both));
    return array;
  };
  EXPECT_THAT(Copied(DType::kFloat32, numbers(-3, 1 << 24)).first, ElementsAre(-3, 1 << 24));
  EXPECT_THAT(Copied(DType::kFloat32, numbers(3, (1 << 24) + 1)).second,
              HasSubstr("holds 16777217 at element 1"));
}

TEST_F(RunItemsTest, WholeNumbersBeyondElevenBitsAreNoFp16) {
  NpyArray array;
  array.dtype = DType::kInt32;
  array.shape = {1, 2};
  const int32_t both[] = {2048, 2049};
  array.bytes.assign(reinterpret_cast<const char*>(both), sizeof(both));
  EXPECT_FALSE(Run({{"net/x", array}}).ok());
  EXPECT_THAT(Problems(), HasSubstr("holds 2049 at element 1; whole numbers to 2048"));
}

TEST_F(RunItemsTest, StatesNeedNotBeGiven) {
  const SimulatorRunner runner(*simulator_);
  const std::vector<const PortTensor*> inputs = InputsToGive(runner);
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0]->name, "net/x");
}

TEST(RandomInputTest, FollowsTheSeedAndThePort) {
  const PortTensor real{"x", {2, 50}, DType::kFloat16, 0, -1};
  const NpyArray array = RandomInput(real, DType::kFloat16, 1);
  EXPECT_THAT(array.shape, ElementsAre(2, 50));
  EXPECT_EQ(array.bytes, RandomInput(real, DType::kFloat16, 1).bytes);
  EXPECT_NE(array.bytes, RandomInput(real, DType::kFloat16, 2).bytes);
  const std::vector<float> values = FloatsOf(array);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 1);
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -0.5);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 0.5);
  PortTensor stored{"x", {100}, DType::kInt8, 0, -1};
  stored.scale = 0.5;
  EXPECT_EQ(RandomInput(stored, DType::kFloat32, 1).dtype, DType::kInt8);
  EXPECT_EQ(RandomInput(stored, DType::kFloat32, 1).bytes.size(), 100u);
  EXPECT_EQ(RandomInput(real, DType::kUint8, 1).dtype, DType::kUint8);
  EXPECT_THAT(FloatsOf(RandomInput(real, DType::kInt64, 1)), Each(AnyOf(0.0f, 1.0f)));
}

TEST(ArrayValues, AreReadInTheirOwnType) {
  NpyArray array;
  array.shape = {2};
  array.dtype = DType::kInt8;
  array.bytes = std::string("\x7f\x80", 2);
  EXPECT_THAT(FloatsOf(array), ElementsAre(127, -128));
  array.dtype = DType::kUint8;
  EXPECT_THAT(FloatsOf(array), ElementsAre(127, 128));
  array.dtype = DType::kInt16;
  array.bytes = std::string("\xff\x7f\x00\x80", 4);
  EXPECT_THAT(FloatsOf(array), ElementsAre(32767, -32768));
  array.dtype = DType::kFloat16;
  array.bytes = std::string("\x00\x3c\x00\xc0", 4);
  EXPECT_THAT(FloatsOf(array), ElementsAre(1, -2));
}

}  // namespace
}  // namespace npuc
