#include "compiler_core/sim/simulator.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/emit/grus_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;
using testing::HasSubstr;

Operand At(Slot slot, int64_t offset) { return {BufferId(static_cast<int32_t>(slot)), offset}; }

VectorCommand ToFloat(Operand a, uint16_t count) {
  VectorCommand v;
  v.kind = Kind::kFormat;
  v.a = a;
  v.d = At(Slot::kOutput, 0);
  v.extents = {1, 1, count};
  v.a_middle_stride = v.a_outer_stride = v.d_middle_stride = v.d_outer_stride = count;
  return v;
}

CompiledModel Model(std::vector<Command> commands, int64_t inputs, int64_t outputs,
                    std::vector<uint8_t> weights, int64_t data_bytes) {
  Program p;
  p.buffers = SlotBuffers();
  p.commands = std::move(commands);
  CompiledModel m;
  m.inputs = {{"x", {inputs}, DType::kFloat16, 0, -1}};
  m.outputs = {{"y", {outputs}, DType::kFloat32, 0, -1}};
  const absl::StatusOr<std::vector<uint8_t>> bytes = EncodeCommands(p);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (bytes.ok()) m.cmd_content = *bytes;
  m.weight_content = std::move(weights);
  m.data_bytes = data_bytes;
  return m;
}

// x [2] times a compressed 2 x 2 matrix: codes 10 and 20 on the diagonal, the rest masked out.
CompiledModel DiagonalModel() {
  FullyConnectedCommand fc;
  fc.a = At(Slot::kInput, 0);
  fc.mask = At(Slot::kWeight, 0);
  fc.codes = At(Slot::kWeight, 128);
  fc.d = At(Slot::kData, 0);
  fc.n = 2;
  fc.k = 2;
  fc.min = FloatToHalf(-1.0f);
  fc.step = FloatToHalf(0.25f);
  std::vector<uint8_t> weights(130, 0);
  weights[0] = 0x80;
  weights[4] = 0x40;
  weights[128] = 10;
  weights[129] = 20;
  return Model({{fc, true, false, "", {}}, {ToFloat(At(Slot::kData, 0), 2), true, false, "", {}}},
               2, 2, weights, 4);
}

// x [2] times a 2 x 2 matrix whose diagonal has codes 3 and 14 of a book of 16 values: LEO's form.
CompiledModel BookModel() {
  FullyConnectedCommand fc;
  fc.a = At(Slot::kInput, 0);
  fc.mask = At(Slot::kWeight, 0);
  fc.codes = At(Slot::kWeight, 128);
  fc.d = At(Slot::kData, 0);
  fc.n = 2;
  fc.k = 2;
  fc.form.book_bits = 4;
  std::vector<uint8_t> weights(128, 0);
  weights[0] = 0x80;
  weights[4] = 0x40;
  for (int code = 0; code < 16; ++code) {
    const uint16_t value = FloatToHalf(static_cast<float>(code * code) / 4 - 8);
    weights.push_back(static_cast<uint8_t>(value & 0xff));
    weights.push_back(static_cast<uint8_t>(value >> 8));
  }
  weights.push_back(3 << 4 | 14);
  weights.push_back(0);
  CompiledModel model =
      Model({{fc, true, false, "", {}}, {ToFloat(At(Slot::kData, 0), 2), true, false, "", {}}}, 2,
            2, weights, 4);
  model.core = "LEO";
  model.npu_unit = "NPU16";
  return model;
}

std::string Refusal(const CompiledModel& model, const Simulator::Limits& limits = {}) {
  Diagnostics diagnostics;
  EXPECT_FALSE(Simulator::Load(model, "m.h", diagnostics, limits).ok());
  std::string all;
  for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&all, d.ToString(), "\n");
  return all;
}

const std::vector<uint8_t> kOneAndTwo = {0x00, 0x3c, 0x00, 0x40};

// The two outputs on the inputs 1 and 2.
std::array<float, 2> RunOnOneAndTwo(Simulator& simulator) {
  std::vector<uint8_t> output;
  std::array<float, 2> y = {};
  EXPECT_TRUE(simulator.Run(kOneAndTwo, output).ok());
  EXPECT_EQ(output.size(), sizeof(y));
  if (output.size() == sizeof(y)) std::memcpy(y.data(), output.data(), sizeof(y));
  return y;
}

TEST(Simulator, MultipliesCompressedWeights) {
  Diagnostics diagnostics;
  const auto simulator = Simulator::Load(DiagonalModel(), "m.h", diagnostics);
  ASSERT_TRUE(simulator.ok()) << simulator.status();
  const std::array<float, 2> y = RunOnOneAndTwo(**simulator);
  EXPECT_EQ(y[0], 1.5f);  // -1 + 10 * 0.25
  EXPECT_EQ(y[1], 8.0f);  // 2 * (-1 + 20 * 0.25)
  std::vector<uint8_t> output;
  EXPECT_FALSE((*simulator)->Run(absl::MakeConstSpan(kOneAndTwo).subspan(1), output).ok());
  ASSERT_EQ((*simulator)->commands().size(), 2u);
  EXPECT_EQ((*simulator)->commands()[0].load.read_bytes, 4 + 128 + 2);
  EXPECT_EQ((*simulator)->commands()[0].load.macs, 4);
}

TEST(Simulator, LooksWeightsUpInTheirBook) {
  Diagnostics diagnostics;
  const auto simulator = Simulator::Load(BookModel(), "m.h", diagnostics);
  ASSERT_TRUE(simulator.ok()) << simulator.status();
  const std::array<float, 2> y = RunOnOneAndTwo(**simulator);
  EXPECT_EQ(y[0], 3 * 3 / 4.0f - 8);
  EXPECT_EQ(y[1], 2 * (14 * 14 / 4.0f - 8));
  // Operand, mask, book, and two codes of four bits in a pair of bytes.
  EXPECT_EQ((*simulator)->commands()[0].load.read_bytes, 4 + 128 + 32 + 2);
  CompiledModel cut = BookModel();
  cut.weight_content.resize(128 + 32);
  EXPECT_THAT(Refusal(cut), HasSubstr("weight codes take 33 bytes at weight+128 of 160"));
  CompiledModel grus = BookModel();
  grus.core = "GRUS";
  EXPECT_THAT(Refusal(grus), HasSubstr("its weight form is LEO's, and the model is for core GRUS"));
}

TEST(Simulator, ReadsPlainWeightsOfOtherWidths) {
  FullyConnectedCommand fc;
  fc.a = At(Slot::kInput, 0);
  fc.codes = At(Slot::kWeight, 0);
  fc.d = At(Slot::kData, 0);
  fc.n = fc.k = 1;
  fc.form.exponent_bits = 3;
  CompiledModel model =
      Model({{fc, true, false, "", {}}, {ToFloat(At(Slot::kData, 0), 1), true, false, "", {}}}, 1,
            1, {0x01, 0x30}, 2);  // 0x3001: 1 + 2^-12, which fp16 cannot hold
  model.core = "LEO";
  Diagnostics diagnostics;
  const auto simulator = Simulator::Load(model, "m.h", diagnostics);
  ASSERT_TRUE(simulator.ok()) << simulator.status();
  std::vector<uint8_t> output;
  // (1 + 2^-10) x (1 + 2^-12) lies beyond the middle of 1 + 2^-10 and 1 + 2 x 2^-10 only by the
  // weight's last bit: 1.00122 against 1.00098 and 1.00195 rounds down, 3 times as much up.
  ASSERT_TRUE((*simulator)->Run(std::vector<uint8_t>{0x01, 0x66}, output).ok());  // 1537
  float y = 0;
  std::memcpy(&y, output.data(), sizeof(y));
  EXPECT_EQ(y, HalfToFloat(FloatToHalf(1537.0f * (1 + 0x1p-12f))));
}

TEST(Simulator, RefusesOperandsOutsideTheirSlot) {
  CompiledModel m = DiagonalModel();
  m.data_bytes = 2;
  EXPECT_THAT(Refusal(m), HasSubstr("m.h: command at byte 0 (fully_connected): operand d takes 4 "
                                    "bytes at data+0 of a buffer of 2 bytes; compile the model"));
  m = DiagonalModel();
  m.weight_content.resize(129);
  EXPECT_THAT(Refusal(m), HasSubstr("weight codes take 2 bytes at weight+128 of 129"));
  m = DiagonalModel();
  m.weight_content[8] = 1;  // row 2, column 7: outside the matrix; needs a third code
  m.weight_content.push_back(0);
  EXPECT_THAT(Refusal(m), HasSubstr("1 mask bits are set outside the matrix"));
  m = DiagonalModel();
  m.outputs[0].shape = {1};
  EXPECT_THAT(Refusal(m), HasSubstr("command at byte 48 (format): operand d takes 8 bytes"));
}

TEST(Simulator, RefusesWhatHasNoDefinedMeaning) {
  RawCommand transpose{0x43, At(Slot::kInput, 0), {},
                       {},   At(Slot::kData, 0),  {0, 0, 1, 0x01010202, 0x00020002}};
  const Command last = {ToFloat(At(Slot::kData, 0), 4), true, false, "", {}};
  Diagnostics diagnostics;
  EXPECT_TRUE(Simulator::Load(Model({{transpose, true, false, "", {}}, last}, 4, 4, {}, 8), "m.h",
                              diagnostics)
                  .ok());
  transpose.words[2] = 2;
  EXPECT_THAT(
      Refusal(Model({{transpose, true, false, "", {}}, last}, 4, 4, {}, 8)),
      HasSubstr("command at byte 0 (transpose): opcode 0x43: payload word +8 is 0x00000002; "
                "known is 0x00000001"));
  Command linked = last;
  linked.link = 0x20000000;
  EXPECT_THAT(Refusal(Model({linked, last}, 4, 4, {}, 8)), HasSubstr("leads elsewhere"));
  CompiledModel garbage = DiagonalModel();
  garbage.cmd_content[0] = 0x77;
  EXPECT_THAT(Refusal(garbage), HasSubstr("unknown opcode 0x77"));
}

// An unrolled layer reads the same weights in every command.
TEST(Simulator, CountsWeightsOnceForAllCommandsThatReadThem) {
  const auto product = [](int64_t codes) {
    FullyConnectedCommand fc;
    fc.a = At(Slot::kInput, 0);
    fc.codes = At(Slot::kWeight, codes);
    fc.d = At(Slot::kData, 0);
    fc.n = fc.k = 2;
    return Command{fc, true, false, "", {}};
  };
  const Command last = {ToFloat(At(Slot::kData, 0), 2), true, false, "", {}};
  Simulator::Limits limits;
  limits.max_weight_values = 64;  // one matrix of 2 x 2, whose columns are stored by 32
  const std::vector<uint8_t> weights(16, 0);
  const CompiledModel same = Model({product(0), product(0), product(0), last}, 2, 2, weights, 4);
  Diagnostics diagnostics;
  const auto simulator = Simulator::Load(same, "m.h", diagnostics, limits);
  ASSERT_TRUE(simulator.ok()) << simulator.status();
  EXPECT_EQ((*simulator)->commands()[0].load.read_bytes,
            (*simulator)->commands()[2].load.read_bytes);
  const CompiledModel other = Model({product(0), product(8), last}, 2, 2, weights, 4);
  EXPECT_THAT(Refusal(other, limits), HasSubstr("more than 64 values"));
}

TEST(Simulator, BoundsWorkAndMemory) {
  Simulator::Limits limits;
  limits.max_work = 5;
  EXPECT_THAT(Refusal(DiagonalModel(), limits), HasSubstr("more than 5 operations [NPUC1511]"));
  limits = {};
  limits.max_weight_values = 3;
  EXPECT_THAT(Refusal(DiagonalModel(), limits), HasSubstr("more than 3 values"));
  limits = {};
  limits.max_memory_bytes = 10;
  EXPECT_THAT(Refusal(DiagonalModel(), limits), HasSubstr("the simulator allows 10"));
}

}  // namespace
}  // namespace npuc
