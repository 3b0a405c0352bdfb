// What writers may write, readers take, and nothing beyond: artifacts and the fields of commands.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/emit/header_reader.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/emit/small_model_test_util.h"
#include "compiler_core/emit/written_test_util.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/ir/integer/fields.h"
#include "compiler_core/ir/integer/phases.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

bool IsWithinLimits(const CompiledModel& model) {
  Diagnostics diagnostics;
  return CheckArtifactLimits(model, "m", diagnostics).ok();
}

bool IsRead(const std::string& bytes) {
  Diagnostics diagnostics;
  return ReadArtifact(bytes, "m", diagnostics).ok();
}

// Header and model file of a model are read where the writers' check allows it, and else refused.
void ExpectReadersAgree(const CompiledModel& model, bool allowed) {
  EXPECT_EQ(IsWithinLimits(model), allowed);
  Diagnostics diagnostics;
  const absl::StatusOr<std::string> header = HeaderText(model, diagnostics);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(IsRead(*header), allowed);
  EXPECT_EQ(IsRead(ModelFileBytes(model)), allowed);
}

TEST(ArtifactLimits, PortsAreCountedAlike) {
  CompiledModel model = SmallModel();
  const PortTensor input = model.inputs[0];
  while (model.inputs.size() < kMaxPorts) {
    model.inputs.push_back(input);
    model.inputs.back().name = absl::StrCat("x", model.inputs.size());
  }
  const PortTensor output = model.outputs[2];
  while (model.outputs.size() < kMaxPorts) {
    model.outputs.push_back(output);
    model.outputs.back().name = absl::StrCat("y", model.outputs.size());
  }
  ExpectReadersAgree(model, true);
  model.inputs.push_back(input);
  model.inputs.back().name = "one_more";
  ExpectReadersAgree(model, false);
}

TEST(ArtifactLimits, SlotsEndWhereAddressesDo) {
  CompiledModel model = SmallModel();
  model.data_bytes = kSlotSpanBytes;
  ExpectReadersAgree(model, true);
  ++model.data_bytes;
  ExpectReadersAgree(model, false);
  model = SmallModel();
  model.outputs[1].shape = {1, kSlotSpanBytes / 4};
  EXPECT_FALSE(IsWithinLimits(model));
  model = SmallModel();
  model.inputs[0].shape = {1, kSlotSpanBytes / 2};
  EXPECT_FALSE(IsWithinLimits(model));
}

TEST(ArtifactLimits, AHeaderIsNoLongerThanOneThatIsRead) {
  CompiledModel model = SmallModel();
  model.weight_content.resize(static_cast<size_t>(kMaxArtifactBytes / 6));  // "0x00, " a byte
  Diagnostics diagnostics;
  EXPECT_FALSE(HeaderText(model, diagnostics).ok());
  ASSERT_EQ(diagnostics.list().size(), 1u);
  EXPECT_EQ(diagnostics.list()[0].kind, DiagnosticKind::kProgramTooLarge);
}

// Every program that lowering allows has a stream that is decoded.
TEST(CommandLimits, TheLongestProgramIsDecoded) {
  VectorCommand last;
  last.a = {BufferId(3), 0};
  last.d = {BufferId(4), 0};
  ConvolutionForm form;
  form.in_h = form.in_w = form.in_c = form.out_h = form.out_w = form.out_c = 1;
  form.kernel_h = form.kernel_w = form.stride_h = form.stride_w = 1;
  RawCommand convolution = MakeConvolution(form);
  convolution.a = last.a;
  convolution.weights = {BufferId(6), 0};
  convolution.d = last.d;
  FullyConnectedCommand fc;
  fc.a = last.a;
  fc.codes = convolution.weights;
  fc.d = last.d;
  fc.n = fc.k = 1;
  const auto bytes_of = [&](decltype(Command::body) body) {
    Program program;
    program.buffers = SlotBuffers();
    program.commands = {{std::move(body), true, false, "", {}}, {last, true, false, "", {}}};
    const auto both = EncodeCommands(program);
    EXPECT_TRUE(both.ok()) << both.status();
    program.commands.erase(program.commands.begin());
    const auto one = EncodeCommands(program);
    EXPECT_TRUE(one.ok()) << one.status();
    return both.ok() && one.ok() ? static_cast<int64_t>(both->size() - one->size()) : 0;
  };
  for (const int64_t bytes : {bytes_of(last), bytes_of(convolution), bytes_of(fc)}) {
    EXPECT_GT(bytes, 0);
    EXPECT_LE(bytes, kLongestCommandBytes);
  }
  EXPECT_LE(static_cast<int64_t>(kMaxCommands) * kLongestCommandBytes, kMaxCommandBytes);
}

// Sets number `target` of a command's fields to an end of its range, or one beyond.
struct FieldSetter {
  int target = 0;
  bool is_high = false;
  bool beyond = false;
  int count = 0;
  bool is_set = false;

  void Place(absl::string_view name, Operand& operand) {}
  void Type(absl::string_view name, DType& type) {}
  template <typename E>
  void Choice(absl::string_view name, E& value, int choices) {}
  void Number(absl::string_view name, int32_t& value, int32_t lo, int32_t hi) {
    if (count++ != target) return;
    if (beyond && (is_high ? hi == INT32_MAX : lo == INT32_MIN)) return;
    value = is_high ? hi + (beyond ? 1 : 0) : lo - (beyond ? 1 : 0);
    is_set = true;
  }
  void Walk(absl::string_view name, integer::Extents& extents, int32_t lo) {
    for (int32_t& extent : extents) Number(name, extent, lo, integer::kMaxNumber);
  }
};

TEST(CommandLimits, FieldsOfIntegerCommandsEndAlikeInEncoderAndDecoder) {
  int tried = 0;
  for (const integer::Opcode& opcode : integer::kOpcodes) {
    for (int target = 0;; ++target) {
      bool is_field = false;
      for (const bool is_high : {false, true}) {
        for (const bool beyond : {false, true}) {
          integer::Program program;
          program.buffers = SlotBuffers();
          program.commands.resize(1);
          integer::Body& body = program.commands[0].body;
          ASSERT_TRUE(integer::MakeBody(opcode.code, body));
          FieldSetter setter{target, is_high, beyond};
          integer::VisitFields(setter, body);
          is_field = is_field || setter.count > target;
          if (!setter.is_set) continue;
          ++tried;
          const auto bytes = integer::EncodeCommands(program);
          EXPECT_EQ(bytes.ok(), !beyond) << opcode.name << " field " << target;
          if (!bytes.ok()) continue;
          const auto decoded = integer::DecodeCommand(*bytes, 0);
          ASSERT_TRUE(decoded.ok()) << decoded.status();
          EXPECT_TRUE(decoded->body == body) << opcode.name << " field " << target;
        }
      }
      if (!is_field) break;
    }
  }
  EXPECT_GT(tried, 400);
}

TEST(CommandLimits, CoresAndBarriersStandInTheHeader) {
  integer::Program program;
  program.buffers = SlotBuffers();
  program.commands.resize(1);
  integer::Convolve convolve;
  convolve.d_pixel = 7;
  program.commands[0].body = convolve;
  for (int32_t core = 0; core <= integer::kMaxCores; ++core) {
    for (const bool barrier : {false, true}) {
      program.commands[0].core = core;
      program.commands[0].barrier = barrier;
      const auto bytes = integer::EncodeCommands(program);
      ASSERT_EQ(bytes.ok(), core < integer::kMaxCores) << bytes.status();
      if (!bytes.ok()) continue;
      const auto decoded = integer::DecodeCommand(*bytes, 0);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(decoded->core, core);
      EXPECT_EQ(decoded->barrier, barrier);
      EXPECT_TRUE(decoded->body == program.commands[0].body);
    }
  }
}

TEST(CommandLimits, AWordOfPixelsIsTheConvolutionsAloneAndNotZero) {
  constexpr uint8_t kPixelBit = 1 << 6;  // of the header's second byte
  for (const integer::Opcode& opcode : integer::kOpcodes) {
    integer::Program program;
    program.buffers = SlotBuffers();
    program.commands.resize(1);
    ASSERT_TRUE(integer::MakeBody(opcode.code, program.commands[0].body));
    std::vector<uint8_t> bytes = *integer::EncodeCommands(program);
    bytes[1] |= kPixelBit;
    EXPECT_FALSE(integer::DecodeCommand(bytes, 0).ok()) << opcode.name;
    ++bytes[2];  // one word more
    bytes.resize(bytes.size() + 4);
    EXPECT_FALSE(integer::DecodeCommand(bytes, 0).ok()) << opcode.name;
    bytes[bytes.size() - 4] = 9;
    EXPECT_EQ(integer::DecodeCommand(bytes, 0).ok(), opcode.name == "convolve") << opcode.name;
    bytes[1] |= 0x80;
    EXPECT_FALSE(integer::DecodeCommand(bytes, 0).ok()) << opcode.name;
  }
}

}  // namespace
}  // namespace npuc
