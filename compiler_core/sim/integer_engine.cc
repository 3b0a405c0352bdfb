#include "compiler_core/sim/integer_engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/load.h"
#include "compiler_core/ir/integer/phases.h"
#include "compiler_core/ir/integer/verify.h"
#include "compiler_core/ir/integer/weight_code.h"
#include "compiler_core/sim/integer_kernels.h"

namespace npuc::integer {
namespace {

using Memory = std::array<std::vector<uint8_t>, kSlotCount>;

// A command and its constants, read once.
struct Task {
  Body body;
  bool descending = false;
  std::shared_ptr<const ConvolveConstants> convolve = {};  // of all commands with the same ones
  std::vector<Factor> factors;
};

class Engine : public FrameEngine {
 public:
  void Run(absl::Span<const uint8_t> input, absl::Span<uint8_t> output) override;

  uint8_t* At(const Operand& operand) {
    if (!operand.present()) return nullptr;
    return memory[static_cast<size_t>(operand.buffer.value())].data() + operand.offset_bytes;
  }

  Memory memory;
  std::vector<Task> tasks;
  int64_t input_offset = -1;  // in data; -1: in slots of their own
  int64_t output_offset = -1;
};

struct IntegerRunner {
  Engine& engine;
  const Task& task;

  void operator()(const Convolve& c) const {
    integer::Run(c, *task.convolve, engine.At(c.a), engine.At(c.result.d), task.descending);
  }
  void operator()(const Pool& c) const {
    integer::Run(c, task.factors, engine.At(c.a), engine.At(c.result.d), task.descending);
  }
  void operator()(const Combine& c) const {
    integer::Run(c, task.factors, engine.At(c.a), engine.At(c.b), engine.At(c.result.d),
                 task.descending);
  }
  void operator()(const Move& c) const {
    integer::Run(c, task.factors, engine.At(c.a), engine.At(c.result.d), task.descending);
  }
  void operator()(const Product& c) const {
    integer::Run(c, task.factors, engine.At(c.a), engine.At(c.b), engine.At(c.result.d),
                 task.descending);
  }
  void operator()(const Fill& c) const { integer::Run(c, engine.At(c.result.d)); }
  void operator()(const Lookup& c) const {
    integer::Run(c, engine.At(c.a), engine.At(c.table), engine.At(c.result.d), task.descending);
  }
  void operator()(const Softmax& c) const {
    integer::Run(c, task.factors, engine.At(c.a), engine.At(c.table), engine.At(c.result.d),
                 task.descending);
  }
};

void Engine::Run(absl::Span<const uint8_t> input, absl::Span<uint8_t> output) {
  std::vector<uint8_t>& data = memory[static_cast<size_t>(Slot::kData)];
  std::fill(data.begin(), data.end(), uint8_t{0});
  std::vector<uint8_t>& own_output = memory[static_cast<size_t>(Slot::kOutput)];
  std::fill(own_output.begin(), own_output.end(), uint8_t{0});
  const bool in_data = input_offset >= 0;
  uint8_t* const in =
      in_data ? data.data() + input_offset : memory[static_cast<size_t>(Slot::kInput)].data();
  const uint8_t* const out = in_data ? data.data() + output_offset : own_output.data();
  std::copy(input.begin(), input.end(), in);
  for (const Task& task : tasks) std::visit(IntegerRunner{*this, task}, task.body);
  std::copy(out, out + output.size(), output.begin());
}

class IntegerLoader {
 public:
  IntegerLoader(const CompiledModel& model, absl::string_view file_name,
                const Simulator::Limits& limits)
      : model_(model), file_name_(file_name), limits_(limits), cores_(CoresOf(model.core)) {
    if (const CoreSpec* core = FindCore(model.core); core != nullptr && core->cycles != nullptr) {
      clock_.emplace(*core->cycles, cores_);
    }
  }

  std::unique_ptr<FrameEngine> Run(Diagnostics& diagnostics) {
    Prepare();
    diagnostics.Append(found_);
    if (found_.has_errors()) return nullptr;
    return std::move(engine_);
  }

 private:
  void Report(DiagnosticKind kind, std::string message, std::string fix = {}) {
    found_.Add(
        {.kind = kind, .message = std::move(message), .file = file_name_, .fix = std::move(fix)});
  }

  void Prepare() {
    const int64_t total = model_.data_bytes + model_.own_input_bytes() + model_.own_output_bytes();
    if (model_.data_bytes < 0 || total > limits_.max_memory_bytes) {
      return Report(DiagnosticKind::kSimulationTooLarge,
                    absl::StrCat("data, input and output take ", total, " bytes; at most ",
                                 limits_.max_memory_bytes, " are simulated"));
    }
    if (const absl::Status places = CheckPortPlaces(model_); !places.ok()) {
      return Report(DiagnosticKind::kCommandStreamInvalid, std::string(places.message()),
                    kFixOfDamage);
    }
    engine_ = std::make_unique<Engine>();
    engine_->inputs = model_.inputs;
    engine_->outputs = model_.outputs;
    engine_->input_bytes = model_.input_struct_bytes();
    engine_->output_bytes = model_.output_struct_bytes();
    buffers_.resize(kSlotCount);
    for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].slot = static_cast<Slot>(i);
    SetSlot(Slot::kData, std::vector<uint8_t>(static_cast<size_t>(model_.data_bytes)));
    SetSlot(Slot::kInput, std::vector<uint8_t>(static_cast<size_t>(model_.own_input_bytes())));
    SetSlot(Slot::kOutput, std::vector<uint8_t>(static_cast<size_t>(model_.own_output_bytes())));
    engine_->input_offset = model_.input_offset;
    engine_->output_offset = model_.output_offset;
    SetSlot(Slot::kWeight, model_.weight_content);
    Decode();
  }

  void SetSlot(Slot slot, std::vector<uint8_t> bytes) {
    Buffer& buffer = buffers_[static_cast<size_t>(slot)];
    buffer.offset_bytes = 0;
    buffer.size_bytes = static_cast<int64_t>(bytes.size());
    engine_->memory[static_cast<size_t>(slot)] = std::move(bytes);
  }

  void Decode() {
    const int64_t size = static_cast<int64_t>(model_.cmd_content.size());
    int64_t offset = 0;
    bool last = false;
    while (!last && !found_.has_errors()) {
      absl::StatusOr<DecodedCommand> decoded = DecodeCommand(model_.cmd_content, offset);
      if (!decoded.ok()) {
        return Report(DiagnosticKind::kCommandStreamInvalid,
                      std::string(decoded.status().message()), kFixOfDamage);
      }
      TakePhase(offset, *decoded);
      Take(offset, decoded->body, decoded->descending);
      offset += decoded->size_bytes;
      last = decoded->last;
    }
    EndPhase();
    if (!found_.has_errors() && offset != size) {
      Report(DiagnosticKind::kCommandStreamInvalid,
             absl::StrCat("the stream ends at byte ", offset, " of ", size), kFixOfDamage);
    }
  }

  // Which core runs the command, and in which phase.
  void TakePhase(int64_t offset, const DecodedCommand& command) {
    if (command.barrier) {
      EndPhase();
      ++phase_;
      phase_offset_ = offset;
    }
    core_ = command.core;
    std::string problem;
    if (core_ >= cores_) {
      problem = absl::StrCat("it is of core ", core_, "; ", model_.core, " has ", cores_);
    } else if (command.barrier && (cores_ == 1 || offset == 0)) {
      problem = "it has a barrier, and nothing runs before it or beside it";
    }
    if (problem.empty()) return;
    Report(DiagnosticKind::kCommandNotRunnable,
           absl::StrCat("command at byte ", offset, " (", NameOf(command.body), "): ", problem),
           kFixOfDamage);
  }

  // Checks that the cores can run the phase's commands, which have no problems of their own.
  void EndPhase() {
    if (found_.has_errors()) return;
    std::vector<PhaseCommand> phase;
    for (size_t i = phase_begin_; i < engine_->tasks.size(); ++i) {
      phase.push_back({&engine_->tasks[i].body, engine_->infos[i].core});
    }
    phase_begin_ = engine_->tasks.size();
    const std::optional<std::string> problem = PhaseProblem(buffers_, phase);
    if (!problem.has_value()) return;
    Report(DiagnosticKind::kCommandNotRunnable,
           absl::StrCat("phase from byte ", phase_offset_, " on: ", *problem), kFixOfDamage);
  }

  void Take(int64_t offset, const Body& body, bool descending) {
    if (found_.has_errors()) return;
    const std::vector<std::string> problems = CommandProblems(buffers_, body, descending);
    const std::string where = absl::StrCat("command at byte ", offset, " (", NameOf(body), "): ");
    if (!problems.empty()) {
      return Report(DiagnosticKind::kCommandNotRunnable,
                    absl::StrCat(where, absl::StrJoin(problems, "; ")), kFixOfDamage);
    }
    work_ += WorkOf(body);  // each is capped at 2^60, and the sum is refused before it overflows
    if (work_ > limits_.max_work) {
      return Report(DiagnosticKind::kSimulationTooLarge,
                    absl::StrCat(where, "a frame takes ", work_, " steps so far; at most ",
                                 limits_.max_work, " are simulated"));
    }
    Task task;
    if (const auto* c = std::get_if<Convolve>(&body)) {
      absl::StatusOr<std::shared_ptr<const ConvolveConstants>> constants = ConstantsOf(*c);
      if (!constants.ok()) {
        const bool is_large = absl::IsResourceExhausted(constants.status());
        return Report(
            is_large ? DiagnosticKind::kSimulationTooLarge : DiagnosticKind::kCommandNotRunnable,
            absl::StrCat(where, constants.status().message()), is_large ? "" : kFixOfDamage);
      }
      task.convolve = *std::move(constants);
    }
    if (!ReadFactorsOf(body, task)) {
      return Report(DiagnosticKind::kCommandNotRunnable,
                    absl::StrCat(where, "a factor's multiplier is negative or its shift outside ",
                                 Factor::kMinShift, "..", Factor::kMaxShift),
                    kFixOfDamage);
    }
    Describe(offset, body);
    task.body = body;
    task.descending = descending;
    engine_->tasks.push_back(std::move(task));
  }

  // False where a factor has no meaning.
  bool ReadFactorsOf(const Body& body, Task& task) {
    for (const Access& access : AccessesOf(body)) {
      if (access.role != OperandRole::kFactors) continue;
      task.factors = ReadFactors(engine_->At(access.operand), access.size_bytes / kFactorBytes);
    }
    for (const Factor& factor : task.factors) {
      if (factor.multiplier < 0 || factor.shift < Factor::kMinShift ||
          factor.shift > Factor::kMaxShift) {
        return false;
      }
    }
    return true;
  }

  // The constants of a convolution, read once. RESOURCE_EXHAUSTED where they are too
  // much, INVALID_ARGUMENT where the weights are no code.
  absl::StatusOr<std::shared_ptr<const ConvolveConstants>> ConstantsOf(const Convolve& c) {
    const ConvolveKey key = {c.weights.offset_bytes,
                             c.coded_bytes,
                             c.table.offset_bytes,
                             c.bias.offset_bytes,
                             c.factors.offset_bytes,
                             c.factor_count,
                             c.out_c,
                             WeightCount(c),
                             static_cast<int64_t>(c.weight_type),
                             BiasBytes(c),
                             c.pad_value};
    const auto known = convolves_.find(key);
    if (known != convolves_.end()) return known->second;
    weight_values_ += c.out_c + WeightCount(c);
    if (weight_values_ > limits_.max_weight_values) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the weights hold more than ", limits_.max_weight_values, " values"));
    }
    const uint8_t* weights = engine_->At(c.weights);
    std::vector<uint8_t> decoded;
    if (c.coded_bytes > 0) {
      ASSIGN_OR_RETURN(
          decoded, DecodeWeights(absl::MakeConstSpan(weights, static_cast<size_t>(c.coded_bytes)),
                                 WeightCount(c),
                                 absl::MakeConstSpan(engine_->At(c.table), kCodeTableBytes)));
      weights = decoded.data();
    }
    auto constants = std::make_shared<const ConvolveConstants>(
        ReadConstants(c, weights, engine_->At(c.bias), engine_->At(c.factors)));
    convolves_.emplace(key, constants);
    return constants;
  }

  void Describe(int64_t offset, const Body& body) {
    Simulator::CommandInfo info;
    info.offset_bytes = offset;
    info.kind = std::string(NameOf(body));
    info.core = core_;
    info.phase = phase_;
    const CoreSpec* core = FindCore(model_.core);
    info.load = LoadOf(body, core == nullptr ? nullptr : MacArrayOf(*core));
    if (clock_.has_value()) info.cycles = clock_->Run(phase_, core_, info.load);
    engine_->infos.push_back(std::move(info));
  }

  using ConvolveKey = std::array<int64_t, 11>;

  const CompiledModel& model_;
  const std::string file_name_;
  const Simulator::Limits& limits_;
  const int64_t cores_;
  Diagnostics found_;
  std::unique_ptr<Engine> engine_;
  std::map<ConvolveKey, std::shared_ptr<const ConvolveConstants>> convolves_;
  std::vector<Buffer> buffers_;  // one a slot, as decoded operands name them
  int64_t work_ = 0;
  int64_t weight_values_ = 0;
  std::optional<StreamClock> clock_;
  int32_t core_ = 0;          // of the command that is being taken
  int64_t phase_ = 0;         // its number,
  int64_t phase_offset_ = 0;  // the offset of its first command,
  size_t phase_begin_ = 0;    // and that one's task
};

}  // namespace

std::unique_ptr<FrameEngine> PrepareEngine(const CompiledModel& model, absl::string_view file_name,
                                           const Simulator::Limits& limits,
                                           Diagnostics& diagnostics) {
  return IntegerLoader(model, file_name, limits).Run(diagnostics);
}

}  // namespace npuc::integer
