#include "compiler_core/sim/program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler_core/base/float16.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/ir/cmd/verify.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;

bool BitAt(absl::Span<const uint8_t> mask, int64_t bit) {
  return (mask[static_cast<size_t>(bit / 8)] >> (7 - bit % 8) & 1) != 0;
}

// Code `index` of a stream of codes of 4 to 8 bits, the most significant bit first.
size_t CodeAt(absl::Span<const uint8_t> codes, int64_t index, int code_bits) {
  const int64_t bit = index * code_bits;
  const size_t byte = static_cast<size_t>(bit / 8);
  const uint32_t next = byte + 1 < codes.size() ? codes[byte + 1] : 0;
  const uint32_t both = uint32_t{codes[byte]} << 8 | next;
  return both >> (16 - code_bits - bit % 8) & ((1u << code_bits) - 1);
}

int64_t RoundUp32(int64_t value) { return (value + 31) / 32 * 32; }

// Walks the stored order of a weight matrix: positions of the kernel, K blocks, N blocks, rows of
// a block, columns of a block. The bias of a block's columns is a row of its own behind each block
// of the first K block of the first position. Calls weight(row, column, mask bit) and
// bias(column, mask bit) for what is not padding.
template <typename WeightFunction, typename BiasFunction>
void ForEachWeight(int64_t positions, int64_t k, int64_t n, bool has_bias,
                   const WeightFunction& weight, const BiasFunction& bias) {
  constexpr int64_t kBlock = 32;
  int64_t bit = 0;
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t kb = 0; kb < k; kb += kBlock) {
      for (int64_t nb = 0; nb < n; nb += kBlock) {
        const int64_t columns = std::min(kBlock, n - nb);
        for (int64_t row = 0; row < std::min(kBlock, k - kb); ++row) {
          for (int64_t column = 0; column < columns; ++column) {
            weight(position * k + kb + row, nb + column, bit + row * kBlock + column);
          }
        }
        bit += kBlock * kBlock;
        if (!has_bias || position != 0 || kb != 0) continue;
        for (int64_t column = 0; column < columns; ++column) bias(nb + column, bit + column);
        bit += kBlock;
      }
    }
  }
}

// Turns a model into steps; every operand is checked here once.
class Loader {
 public:
  Loader(const CompiledModel& model, absl::string_view file_name, const Simulator::Limits& limits)
      : model_(model), file_name_(file_name), limits_(limits) {
    const CoreSpec* core = FindCore(model.core);
    if (core == nullptr) return;
    if (const CycleModel* cycles = CyclesOf(*core, model.npu_unit); cycles != nullptr) {
      clock_.emplace(*cycles, 1);
    }
    has_books_ = HasCodeBooks(*core);
  }

  std::unique_ptr<SimulatorState> Run() {
    state_ = std::make_unique<SimulatorState>();
    if (!SetMemory()) return nullptr;
    std::vector<int64_t> offsets;
    absl::StatusOr<Program> program = DecodeCommands(model_.cmd_content, &offsets);
    if (!program.ok()) {
      Report(DiagnosticKind::kCommandStreamInvalid, std::string(program.status().message()));
      return nullptr;
    }
    for (Buffer& buffer : program->buffers) {
      buffer.size_bytes = slot_bytes_[static_cast<size_t>(buffer.slot)];
    }
    CheckLinks(*program, offsets);
    if (CheckCommands(*program, offsets)) MakeSteps(*program, offsets);
    return diagnostics_.has_errors() ? nullptr : std::move(state_);
  }

  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  void Report(DiagnosticKind kind, std::string message) {
    const bool is_too_large = kind == DiagnosticKind::kSimulationTooLarge;
    diagnostics_.Add({.kind = kind,
                      .message = std::move(message),
                      .file = file_name_,
                      .fix = is_too_large ? "" : kFixOfDamage});
  }

  void Refuse(int64_t offset, absl::string_view kind, absl::string_view why) {
    Report(DiagnosticKind::kCommandNotRunnable,
           absl::StrCat("command at byte ", offset, " (", kind, "): ", why));
  }

  bool SetMemory() {
    SimulatorState& s = *state_;
    s.inputs = model_.inputs;
    s.outputs = model_.outputs;
    s.input_bytes = model_.input_struct_bytes();
    s.output_bytes = model_.output_struct_bytes();
    const int64_t total = model_.data_bytes + s.input_bytes + s.output_bytes;
    if (model_.data_bytes < 0 || model_.data_bytes > limits_.max_memory_bytes ||
        total > limits_.max_memory_bytes ||
        static_cast<int64_t>(model_.weight_content.size()) > kSlotSpanBytes) {
      Report(DiagnosticKind::kSimulationTooLarge,
             absl::StrCat("data, input and output take ", total, " bytes, weights ",
                          model_.weight_content.size(), "; the simulator allows ",
                          limits_.max_memory_bytes, " and ", kSlotSpanBytes));
      return false;
    }
    slot_bytes_.fill(0);
    SetSlot(Slot::kData, model_.data_bytes, {});
    SetSlot(Slot::kInput, s.input_bytes, {});
    SetSlot(Slot::kOutput, s.output_bytes, {});
    const int64_t weight_bytes = static_cast<int64_t>(model_.weight_content.size());
    SetSlot(Slot::kWeight, weight_bytes, model_.weight_content);
    return true;
  }

  void SetSlot(Slot slot, int64_t bytes, absl::Span<const uint8_t> contents) {
    slot_bytes_[static_cast<size_t>(slot)] = bytes;
    SlotMemory& memory = state_->memory[static_cast<size_t>(slot)];
    memory.assign(static_cast<size_t>((bytes + 1) / 2), 0);
    if (!contents.empty()) std::memcpy(memory.data(), contents.data(), contents.size());
  }

  // A link in the middle must lead to the command behind it: only such streams have been seen.
  void CheckLinks(const Program& program, const std::vector<int64_t>& offsets) {
    for (size_t i = 0; i + 1 < program.commands.size(); ++i) {
      const std::optional<uint32_t>& link = program.commands[i].link;
      const uint32_t next =
          static_cast<uint32_t>(Slot::kCmd) << 28 | static_cast<uint32_t>(offsets[i + 1]);
      if (!link.has_value() || *link == next) continue;
      Refuse(offsets[i], NameOf(program.commands[i]),
             absl::StrCat("its link word 0x", absl::Hex(*link, absl::kZeroPad8),
                          " leads elsewhere than to the next command"));
    }
  }

  bool CheckCommands(const Program& program, const std::vector<int64_t>& offsets) {
    for (size_t i = 0; i < program.commands.size(); ++i) {
      const Command& command = program.commands[i];
      const std::string kind(NameOf(command));
      for (const std::string& problem : CommandProblems(program.buffers, command)) {
        Refuse(offsets[i], kind, problem);
      }
      const int64_t work = WorkOf(command);
      work_ = work > limits_.max_work - work_ ? limits_.max_work + 1 : work_ + work;
      if (work_ > limits_.max_work) {
        Report(DiagnosticKind::kSimulationTooLarge,
               absl::StrCat("up to byte ", offsets[i], " a frame takes more than ",
                            limits_.max_work, " operations"));
        return false;
      }
    }
    return !diagnostics_.has_errors();
  }

  void MakeSteps(const Program& program, const std::vector<int64_t>& offsets) {
    for (size_t i = 0; i < program.commands.size(); ++i) {
      const Command& command = program.commands[i];
      stored_weight_bytes_ = -1;
      absl::StatusOr<Step> step = MakeStep(command);
      if (!step.ok()) {
        const bool too_large = step.status().code() == absl::StatusCode::kResourceExhausted;
        if (too_large) {
          Report(DiagnosticKind::kSimulationTooLarge, std::string(step.status().message()));
          return;
        }
        Refuse(offsets[i], NameOf(command), step.status().message());
        continue;
      }
      state_->steps.push_back(*std::move(step));
      Simulator::CommandInfo info;
      info.offset_bytes = offsets[i];
      info.kind = std::string(NameOf(command));
      info.load = LoadOf(command, stored_weight_bytes_);
      if (clock_.has_value()) info.cycles = clock_->Run(0, 0, info.load);
      state_->infos.push_back(std::move(info));
    }
  }

  absl::StatusOr<Step> MakeStep(const Command& command) {
    if (const auto* v = std::get_if<VectorCommand>(&command.body)) {
      return VectorStep{*v, TableOf(*v)};
    }
    if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
      const Weights weights = {1,        fc->k,   fc->n,    false,   fc->codes,
                               fc->mask, fc->min, fc->step, fc->form};
      ASSIGN_OR_RETURN(auto matrix, MatrixOf(weights));
      return MatrixStep{fc->a, fc->d, std::nullopt, std::move(matrix)};
    }
    const RawCommand& raw = std::get<RawCommand>(command.body);
    if (raw.opcode == 0x41) {
      ASSIGN_OR_RETURN(ConvolutionForm form, ParseConvolution(raw));
      const Weights weights = {form.kernel_h * form.kernel_w,
                               form.in_c,
                               form.out_c,
                               form.bias,
                               raw.weights,
                               raw.mask,
                               form.min,
                               form.step,
                               form.weights};
      ASSIGN_OR_RETURN(auto matrix, MatrixOf(weights));
      return MatrixStep{raw.a, raw.d, form, std::move(matrix)};
    }
    if (raw.opcode == 0x42) {
      ASSIGN_OR_RETURN(DepthwiseForm form, ParseDepthwise(raw));
      ASSIGN_OR_RETURN(auto values, DepthwiseOf(form, raw.weights));
      return DepthwiseStep{raw.a, raw.d, form, std::move(values)};
    }
    ASSIGN_OR_RETURN(TransposeForm form, ParseTranspose(raw));
    return TransposeStep{raw.a, raw.d, form};
  }

  // The bytes of weight_content from `operand` on; `size` of them must be there.
  absl::StatusOr<absl::Span<const uint8_t>> WeightBytes(const Operand& operand, int64_t size,
                                                        absl::string_view what) {
    if (operand.buffer.value() != static_cast<int32_t>(Slot::kWeight)) {
      return absl::InvalidArgumentError(absl::StrCat(what, " are not in weight_content"));
    }
    const int64_t all = static_cast<int64_t>(model_.weight_content.size());
    if (operand.offset_bytes > all || size > all - operand.offset_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(what, " take ", size, " bytes at weight+",
                                                     operand.offset_bytes, " of ", all));
    }
    return absl::MakeConstSpan(model_.weight_content)
        .subspan(static_cast<size_t>(operand.offset_bytes), static_cast<size_t>(size));
  }

  absl::Status Reserve(int64_t values) {
    weight_values_ += values;
    if (weight_values_ <= limits_.max_weight_values) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "the weights hold more than ", limits_.max_weight_values, " values when decompressed"));
  }

  struct Weights {
    int64_t positions;  // of the convolution kernel; 1 for fully connected
    int64_t k;
    int64_t n;
    bool bias;
    Operand codes;
    Operand mask;  // absent: plain fp16
    uint16_t min;
    uint16_t step;
    WeightForm form;

    std::array<int64_t, 11> Key() const {
      return {positions,
              k,
              n,
              bias ? 1 : 0,
              codes.buffer.value(),
              codes.offset_bytes,
              mask.buffer.value(),
              mask.offset_bytes,
              min,
              step,
              WordOf(form)};
    }
  };

  // The matrix, which further commands with the same weights share.
  absl::StatusOr<std::shared_ptr<const PanelMatrix>> MatrixOf(const Weights& weights) {
    const auto known = matrices_.find(weights.Key());
    if (known != matrices_.end()) {
      stored_weight_bytes_ = known->second.stored_bytes;
      return known->second.values;
    }
    ASSIGN_OR_RETURN(PanelMatrix matrix, TakeMatrix(weights));
    auto shared = std::make_shared<const PanelMatrix>(std::move(matrix));
    matrices_.emplace(weights.Key(), Shared<PanelMatrix>{shared, stored_weight_bytes_});
    return shared;
  }

  absl::StatusOr<std::shared_ptr<const std::vector<float>>> DepthwiseOf(const DepthwiseForm& form,
                                                                        const Operand& weights) {
    const std::array<int64_t, 3> key = {weights.buffer.value(), weights.offset_bytes,
                                        DepthwiseCount(form)};
    const auto known = depthwise_.find(key);
    if (known != depthwise_.end()) return known->second;
    ASSIGN_OR_RETURN(std::vector<float> values, TakeDepthwise(form, weights));
    return depthwise_.emplace(key, std::make_shared<const std::vector<float>>(std::move(values)))
        .first->second;
  }

  static int64_t DepthwiseCount(const DepthwiseForm& form) {
    const int64_t taps = int64_t{1} * form.kernel_h * form.kernel_w + (form.bias ? 1 : 0);
    return taps * form.channels * form.multiplier;
  }

  absl::StatusOr<PanelMatrix> TakeMatrix(const Weights& w) {
    if (!has_books_ && w.form != WeightForm()) {
      return absl::InvalidArgumentError(absl::StrCat("its weight form is LEO's, and the model is ",
                                                     "for core ", Printable(model_.core)));
    }
    PanelMatrix matrix;
    const int64_t rows = w.positions * w.k;
    RETURN_IF_ERROR(Reserve(rows * RoundUp32(w.n)));
    if (w.mask.present()) {
      RETURN_IF_ERROR(Decompress(w, matrix));
      return matrix;
    }
    const int64_t count = rows * w.n + (w.bias ? w.n : 0);
    ASSIGN_OR_RETURN(absl::Span<const uint8_t> bytes, WeightBytes(w.codes, 2 * count, "weights"));
    stored_weight_bytes_ = 2 * count;
    matrix.Resize(rows, w.n);
    const uint8_t* at = bytes.data();
    const int exponent_bits = w.form.exponent_bits;
    const auto next = [&at, exponent_bits] {
      const uint16_t half = static_cast<uint16_t>(at[0] | at[1] << 8);
      at += 2;
      return exponent_bits == 0 ? HalfToFloat(half) : Float16ToFloat(half, exponent_bits);
    };
    if (w.bias) matrix.bias.resize(static_cast<size_t>(w.n));
    ForEachWeight(
        w.positions, w.k, w.n, w.bias,
        [&](int64_t row, int64_t column, int64_t) { matrix.at(row, column) = next(); },
        [&](int64_t column, int64_t) { matrix.bias[static_cast<size_t>(column)] = next(); });
    return matrix;
  }

  absl::Status Decompress(const Weights& w, PanelMatrix& matrix) {
    const int64_t weight_bits = w.positions * RoundUp32(w.k) * RoundUp32(w.n);
    const int64_t bits = weight_bits + (w.bias ? RoundUp32(w.n) : 0);
    ASSIGN_OR_RETURN(absl::Span<const uint8_t> mask, WeightBytes(w.mask, bits / 8, "mask bits"));
    int64_t code_count = 0;
    for (const uint8_t byte : mask) code_count += std::popcount(byte);
    const int code_bits = w.form.book_bits == 0 ? 8 : w.form.book_bits;
    const int64_t code_bytes = (code_count * code_bits + 7) / 8;
    stored_weight_bytes_ = w.form.book_bytes() + code_bytes;
    ASSIGN_OR_RETURN(const absl::Span<const uint8_t> stored,
                     WeightBytes(w.codes, stored_weight_bytes_, "weight codes"));
    const std::vector<float> values = ValuesOfCodes(w, stored);
    const absl::Span<const uint8_t> codes = stored.last(static_cast<size_t>(code_bytes));
    matrix.Resize(w.positions * w.k, w.n);
    int64_t used = 0;
    const auto next = [&](int64_t bit) {
      if (!BitAt(mask, bit)) return 0.0f;
      return values[CodeAt(codes, used++, code_bits)];
    };
    if (w.bias) matrix.bias.resize(static_cast<size_t>(w.n));
    ForEachWeight(
        w.positions, w.k, w.n, w.bias,
        [&](int64_t row, int64_t column, int64_t bit) { matrix.at(row, column) = next(bit); },
        [&](int64_t column, int64_t bit) { matrix.bias[static_cast<size_t>(column)] = next(bit); });
    if (used != code_count) {
      return absl::InvalidArgumentError(
          absl::StrCat(code_count - used, " mask bits are set outside the matrix"));
    }
    return absl::OkStatus();
  }

  // The value of each code of compressed weights. `stored` begins with the book, if there is
  // one.
  static std::vector<float> ValuesOfCodes(const Weights& w, absl::Span<const uint8_t> stored) {
    std::vector<float> values(size_t{1} << (w.form.book_bits == 0 ? 8 : w.form.book_bits));
    for (size_t code = 0; code < values.size(); ++code) {
      values[code] =
          w.form.book_bits == 0
              ? RoundToHalf(HalfToFloat(w.min) +
                            RoundToHalf(static_cast<float>(code) * HalfToFloat(w.step)))
              : HalfToFloat(static_cast<uint16_t>(stored[2 * code] | stored[2 * code + 1] << 8));
    }
    return values;
  }

  absl::StatusOr<std::vector<float>> TakeDepthwise(const DepthwiseForm& form,
                                                   const Operand& operand) {
    const int64_t count = DepthwiseCount(form);
    RETURN_IF_ERROR(Reserve(count));
    ASSIGN_OR_RETURN(absl::Span<const uint8_t> bytes, WeightBytes(operand, 2 * count, "weights"));
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = HalfToFloat(static_cast<uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8));
    }
    return values;
  }

  const UnaryTable* TableOf(const VectorCommand& v) {
    const bool activation = v.kind == Kind::kActivation;
    const bool function = v.kind == Kind::kTensorScalar &&
                          (v.arithmetic == Arithmetic::kExp || v.arithmetic == Arithmetic::kLog);
    if (!activation && !function) return nullptr;
    const std::pair<int, int> key = {
        static_cast<int>(v.kind),
        static_cast<int>(activation ? static_cast<uint8_t>(v.activation)
                                    : static_cast<uint8_t>(v.arithmetic))};
    const auto it = state_->tables.find(key);
    if (it != state_->tables.end()) return &it->second;
    UnaryTable table;
    if (activation) {
      table = MakeActivationTable(v.activation);
    } else {
      table = v.arithmetic == Arithmetic::kExp ? MakeExpTable() : MakeLogTable();
    }
    return &state_->tables.emplace(key, std::move(table)).first->second;
  }

  template <typename T>
  struct Shared {
    std::shared_ptr<const T> values;
    int64_t stored_bytes = 0;
  };

  const CompiledModel& model_;
  std::string file_name_;
  Simulator::Limits limits_;
  Diagnostics diagnostics_;
  std::unique_ptr<SimulatorState> state_;
  std::map<std::array<int64_t, 11>, Shared<PanelMatrix>> matrices_;
  std::map<std::array<int64_t, 3>, std::shared_ptr<const std::vector<float>>> depthwise_;
  std::array<int64_t, kSlotCount> slot_bytes_ = {};
  int64_t weight_values_ = 0;
  int64_t work_ = 0;
  int64_t stored_weight_bytes_ = 0;  // of the step being made
  std::optional<StreamClock> clock_;
  bool has_books_ = false;
};

}  // namespace

std::unique_ptr<SimulatorState> PrepareProgram(const CompiledModel& model,
                                               absl::string_view file_name,
                                               const Simulator::Limits& limits,
                                               Diagnostics& diagnostics) {
  Loader loader(model, file_name, limits);
  std::unique_ptr<SimulatorState> state = loader.Run();
  diagnostics.Append(loader.diagnostics());
  return state;
}

}  // namespace npuc
