#include "compiler_core/backends/integer/integer_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/backends/dead_channels.h"
#include "compiler_core/backends/selection.h"
#include "compiler_core/backends/states.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/quant_config.h"
#include "compiler_core/lowering/integer/channel_facts.h"
#include "compiler_core/ops/interval.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/dead_channels.h"
#include "compiler_core/passes/float_selection.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/quant/finite_constants.h"
#include "compiler_core/quant/kept/float_form.h"
#include "compiler_core/quant/kept/kept_scales.h"
#include "compiler_core/quant/kept/whole_numbers.h"
#include "compiler_core/quant/own_constants.h"
#include "compiler_core/quant/params.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

// The reader of each file has its own, smaller limit and says so; this one bounds memory.
constexpr int64_t kMaxTextBytes = std::numeric_limits<int32_t>::max();

// The bounds of a result of operands within these; nullopt: not known.
std::optional<ValueRange> BoundsOfResult(const Graph& graph, const Node& node,
                                         const std::map<ValueId, ValueRange>& bounds) {
  std::vector<Interval> operands;
  bool is_bounded = false;
  for (const ValueId input : node.inputs) {
    const auto found = bounds.find(input);
    const Tensor* constant = graph.ConstantOf(input);
    if (found == bounds.end() && constant == nullptr) return std::nullopt;
    is_bounded = is_bounded || found != bounds.end();
    operands.push_back(found == bounds.end() ? IntervalOf(*constant)
                                             : Interval{found->second.min, found->second.max});
  }
  if (!is_bounded) return std::nullopt;
  std::optional<Interval> result;
  if (BoolAttrOr(node, kPicksRowsFact, false)) {
    result = operands[1];
  } else if (operands.size() == 2) {
    result = IntervalOfResult(node.op, operands[0], operands[1]);
  } else if (operands.size() == 1) {
    const bool moves = TraitsOf(node.op).keeps_parameters;
    result = moves ? operands[0] : IntervalOfResult(node.op, operands[0]);
  }
  if (!result.has_value() || !std::isfinite(result->least) || !std::isfinite(result->most)) {
    return std::nullopt;
  }
  return ValueRange{result->least, result->most};
}

// The bounds that are stated of whole numbers, and those of what is computed with these alone, as
// the rows of a table that an index picks. Calibration data may not reach them.
std::map<ValueId, ValueRange> StatedBounds(const Graph& graph) {
  std::map<ValueId, ValueRange> bounds;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConst || node.outputs.size() != 1) continue;
    if (node.attrs.contains(kLeastFact) && node.attrs.contains(kMostFact)) {
      bounds[node.outputs[0]] = {static_cast<double>(IntAttrOr(node, kLeastFact, 0)),
                                 static_cast<double>(IntAttrOr(node, kMostFact, 1))};
      continue;
    }
    const std::optional<ValueRange> result = BoundsOfResult(graph, node, bounds);
    if (result.has_value()) bounds[node.outputs[0]] = *result;
  }
  return bounds;
}

class Maker {
 public:
  Maker(const CompileRequest& request, Diagnostics& diagnostics)
      : request_(request), diagnostics_(diagnostics) {}

  absl::StatusOr<IntegerModel> Make(const Graph& graph) {
    absl::StatusOr<KeptScales> kept = KeepScales(graph);
    states_ = StatesOf(graph, request_.options, diagnostics_);
    if (!kept.ok()) return MakeAnew(graph, kept.status());
    if (!ComputesIntegers(*kept)) NoteFloatModel();
    if (!Keeps(*kept)) {
      const absl::StatusOr<FloatForm> form = MakeFloatForm(graph);
      if (!form.ok()) return Refuse(form.status());
      return QuantizeFloat(form->graph, form->ranges);
    }
    NoteUnusedSettings();
    WarnAboutInputs(*kept);
    ASSIGN_OR_RETURN(std::optional<Graph> reference, ReferenceOf(graph));
    return IntegerModel{.graph = std::move(kept->graph),
                        .plan = std::move(kept->plan),
                        .reference = std::move(reference),
                        .state_inputs = states_,
                        .log = std::move(kept->notes)};
  }

  // True where the model's own integers stay.
  bool Keeps(const KeptScales& kept) const {
    return ComputesIntegers(kept) && (!IsFixedPointCore() || HasFixedPointForm(kept)) &&
           !(request_.options.quant.has_value() && request_.options.quant->force_float_ir);
  }

 private:
  // Whether the model brings the integers of what it computes. One whose weights alone are integers
  // computes in float; one that gives quantized constants alone has nothing to calibrate.
  static bool ComputesIntegers(const KeptScales& kept) {
    const std::vector<int> uses = kept.graph.UseCounts();
    const bool has_integers =
        std::any_of(kept.plan.values.begin(), kept.plan.values.end(), [&](const auto& value) {
          return kept.graph.ConstantOf(value.first) == nullptr &&
                 uses[static_cast<size_t>(value.first.value())] > 0;
        });
    const bool computes = std::any_of(
        kept.graph.nodes().begin(), kept.graph.nodes().end(),
        [](const Node& node) { return node.op != Op::kConst && node.op != Op::kPlaceholder; });
    return has_integers || (!computes && !kept.plan.values.empty());
  }

  bool IsFixedPointCore() const {
    const CoreSpec* core = FindCore(request_.options.core);
    return core != nullptr && IsFixedPoint(*core);
  }

  // Whether the model's own integers are a fixed-point core's: 16 bits with a power of two as
  // scale, as IR files that were written for one have them.
  static bool HasFixedPointForm(const KeptScales& kept) {
    return std::all_of(kept.plan.values.begin(), kept.plan.values.end(), [&](const auto& value) {
      const QuantParams& params = value.second;
      const bool is_constant = kept.graph.ConstantOf(value.first) != nullptr;
      const bool is_power = std::all_of(params.scale.begin(), params.scale.end(), [](double scale) {
        int exponent = 0;
        return std::frexp(scale, &exponent) == 0.5;
      });
      const bool is_centred = std::all_of(params.zero_point.begin(), params.zero_point.end(),
                                          [](int64_t zero) { return zero == 0; });
      return is_power && is_centred && (is_constant || params.dtype == DType::kInt16);
    });
  }

  // Quantizes a model whose own scales do not reach every value, for the reason given.
  absl::StatusOr<IntegerModel> MakeAnew(const Graph& graph, const absl::Status& reason) {
    const absl::StatusOr<FloatForm> form = MakeFloatForm(graph);
    if (!form.ok()) return Refuse(reason);
    diagnostics_.Add(
        {.kind = DiagnosticKind::kQuantizedInFloat,
         .message = absl::StrCat("the model's scales cannot all be kept: ",
                                 std::string(reason.message()), "; it is quantized anew"),
         .file = request_.options.model_name,
         .fix = "nothing need be done where QUANT names calibration_data; npuc evaluate "
                "--quantized says what that costs"});
    return QuantizeFloat(form->graph, form->ranges);
  }

  absl::Status Refuse(const absl::Status& status) {
    diagnostics_.Add({.kind = DiagnosticKind::kNotLowerable,
                      .message = std::string(status.message()),
                      .file = request_.options.model_name,
                      .fix = "give the float model and QUANT: calibration_data"});
    return diagnostics_.ToStatus();
  }

  // What is about quantized models, of one in float.
  void NoteFloatModel() {
    if (!request_.options.quant.has_value() || !request_.options.quant->force_float_ir ||
        IsFixedPointCore()) {
      return;
    }
    diagnostics_.Add({.kind = DiagnosticKind::kConfigNoEffect,
                      .message = "force_float_ir in QUANT changes nothing: the model is in float",
                      .file = request_.options.model_name,
                      .fix = "remove the line"});
  }

  // The float model that outputs of a model with integers of its own are measured by: a Quantize
  // saturates there, too. None where nothing is measured, or some integers have no form in floats.
  absl::StatusOr<std::optional<Graph>> ReferenceOf(const Graph& graph) const {
    if (!request_.options.quant.has_value() || request_.options.quant->data_inputs.empty()) {
      return std::nullopt;
    }
    absl::StatusOr<FloatForm> form = MakeFloatForm(graph);
    if (absl::IsUnimplemented(form.status())) return std::nullopt;
    if (!form.ok()) return form.status();
    return std::move(form->graph);
  }

  void WarnAboutInputs(const KeptScales& kept) {
    for (const KeptScales::CoarseInput& input : kept.coarse_inputs) {
      diagnostics_.Add(
          {.kind = DiagnosticKind::kCoarseInput,
           .message = absl::StrFormat("input '%s' is quantized by scales too far apart: the widest "
                                      "range in 16 bits has steps of %g, the finest scale is %g",
                                      Printable(input.name), input.step, input.finest),
           .file = request_.options.model_name,
           .fix = absl::StrFormat("quantize it with no scale below %g, or give the model an input "
                                  "for each scale",
                                  input.step * 0.51)});
    }
  }

  // What says how to quantize, of a model that is quantized.
  void NoteUnusedSettings() {
    const auto note = [&](absl::string_view what) {
      diagnostics_.Add({.kind = DiagnosticKind::kConfigNoEffect,
                        .message = absl::StrCat(what,
                                                " changes nothing: the model is quantized, "
                                                "and its own scales are kept"),
                        .file = request_.options.model_name,
                        .fix = "set force_float_ir: true in QUANT, or remove the lines"});
    };
    if (request_.options.quant.has_value()) {
      QuantOptions rest = *request_.options.quant;  // but for what measures, imports and compiles
      const QuantOptions usual;
      rest.data_inputs.clear();
      rest.metrics.clear();
      rest.resize_degrade_to_nearest = usual.resize_degrade_to_nearest;
      rest.featuremap_tiling.clear();
      rest.featuremap_rows = usual.featuremap_rows;
      rest.featuremap_columns = usual.featuremap_columns;
      rest.featuremap_overlap_percent = usual.featuremap_overlap_percent;
      if (rest != usual) return note("QUANT");
    }
    if (request_.side_inputs.contains(kTemplateRole)) note(kTemplateRole);
  }

  const CompileRequest::SideInput* Find(const std::string& role) const {
    const auto found = request_.side_inputs.find(role);
    return found == request_.side_inputs.end() ? nullptr : &found->second;
  }

  // The text of a side input, held in `text`; "" where there is none.
  absl::StatusOr<std::string> ReadText(absl::string_view role, std::string& text) {
    const CompileRequest::SideInput* file = Find(std::string(role));
    if (file == nullptr) return std::string();
    ASSIGN_OR_RETURN(text, ReadAll(*file->bytes, kMaxTextBytes));
    return file->name;
  }

  // The SQNR of the worst output of quantized runs.
  static double LeastSqnr(const QuantizeResult& result) {
    double least = std::numeric_limits<double>::infinity();
    for (const OutputError& output : result.outputs) least = std::min(least, output.sqnr_db());
    return least;
  }

  // As least_sqnr asks: where 8 bits do not suffice, once more with 16 for activations, and once
  // more with 16 for weights, too. Keeps the best of these. Other bits than 8 are the config's
  // choice.
  absl::StatusOr<QuantizeResult> QuantizeWell(QuantizeInput& input) {
    ASSIGN_OR_RETURN(QuantizeResult best, Quantize(input, diagnostics_));
    const double first = LeastSqnr(best);
    const double wanted = input.options.least_sqnr_db;
    if (input.fixed_point || wanted <= 0 || !input.template_name.empty()) return best;
    constexpr int kUsualBits = 8;
    constexpr int kBits = 16;
    std::string chosen;
    for (const bool widens_weights : {false, true}) {
      if (LeastSqnr(best) >= wanted) break;
      const QuantOptions before = input.options;
      int& activations = input.options.activation_bits;
      if (activations == kUsualBits) activations = kBits;
      int& weights = input.options.weight_bits;
      if (widens_weights && weights == kUsualBits) weights = kBits;
      if (input.options == before) continue;
      Diagnostics again;  // says what the first run has said
      ASSIGN_OR_RETURN(QuantizeResult wider, Quantize(input, again));
      if (LeastSqnr(wider) <= LeastSqnr(best)) continue;
      wider.log.insert(wider.log.begin(), best.log.begin(), best.log.end());
      best = std::move(wider);
      chosen = widens_weights ? "activations and weights" : "activations";
    }
    if (chosen.empty()) return best;
    diagnostics_.Add(
        {.kind = DiagnosticKind::kQuantBitsWidened,
         .message = absl::StrFormat("the worst output is %.1f dB above its quantization noise, and "
                                    "least_sqnr is %g; with 16 bits for %s it is %.1f dB",
                                    first, wanted, chosen, LeastSqnr(best)),
         .file = request_.options.model_name,
         .fix = "nothing need be done; for a smaller and faster model set least_sqnr: 0 in QUANT"});
    return best;
  }

  absl::StatusOr<IntegerModel> QuantizeFloat(const Graph& graph,
                                             const std::map<ValueId, ValueRange>& ranges) {
    const OwnConstants own = GiveOwnConstants(graph);
    QuantizeInput input;
    input.graph = &own.graph;
    input.layers = GroupLayers(own.graph);
    input.options = request_.options.quant.value_or(QuantOptions());
    input.model_name = request_.options.model_name;
    input.fixed_point = IsFixedPointCore();
    input.state_inputs = states_;
    for (const auto& [id, range] : ranges) {
      input.in_ir[own.value[static_cast<size_t>(id.value())]] = range;
    }
    input.calibration = CalibrationFilesOf(request_);
    for (const auto& [id, range] : StatedBounds(graph)) {
      const ValueId now = own.value[static_cast<size_t>(id.value())];
      input.stated[now] = input.in_ir[now] = range;
    }
    std::string statistics;
    ASSIGN_OR_RETURN(input.statistics_name, ReadText(kStatisticsRole, statistics));
    input.statistics = statistics;
    std::string opt_template;
    ASSIGN_OR_RETURN(input.template_name, ReadText(kTemplateRole, opt_template));
    input.opt_template = opt_template;
    ASSIGN_OR_RETURN(QuantizeResult result, QuantizeWell(input));
    return IntegerModel{.graph = std::move(result.graph),
                        .plan = std::move(result.plan),
                        .state_inputs = states_,
                        .quantized_here = true,
                        .settings = std::move(result.settings),
                        .fidelity = std::move(result.fidelity),
                        .output_errors = std::move(result.outputs),
                        .compared_samples = result.compared_samples,
                        .opt_template = std::move(result.opt_template),
                        .statistics = std::move(result.statistics),
                        .numpy_statistics = std::move(result.numpy_statistics),
                        .log = std::move(result.log)};
  }

  const CompileRequest& request_;
  Diagnostics& diagnostics_;
  std::vector<int> states_;
};

// Parameters for constants that are model outputs and that nothing quantizes. They have 16 bits: a
// constant costs no computation.
void QuantizeConstantOutputs(bool is_fixed_point, IntegerModel& model) {
  constexpr int kBits = 16;
  for (const GraphOutput& output : model.graph.outputs()) {
    const Tensor* values = model.graph.ConstantOf(output.value);
    if (values == nullptr || model.plan.values.contains(output.value)) continue;
    ValueRange range;  // holds 0
    for (const float value : values->ToFloats()) {
      range.min = std::min(range.min, double{value});
      range.max = std::max(range.max, double{value});
    }
    QuantParams params = ActivationParams(QuantMethod::kPerTensorSymmetricFull, kBits, range, true);
    if (is_fixed_point) RoundScalesUp(params);
    model.plan.values.emplace(output.value, std::move(params));
  }
}

}  // namespace

absl::StatusOr<Graph> IntegerGraph(const CompileRequest& request, Graph imported,
                                   Diagnostics& diagnostics) {
  const CoreSpec* core = FindCore(request.options.core);
  const int steps = CountWholeNumberSteps(imported);
  if (steps > 0 && core != nullptr && IsFixedPoint(*core)) {
    // Its 16 bits would show that fractions are not dropped.
    diagnostics.Add({.kind = DiagnosticKind::kNotQuantizable,
                     .message = absl::StrCat("the model requantizes whole numbers in ", steps,
                                             steps == 1 ? " place" : " places",
                                             ", by casts to integers and divisions that "
                                             "drop fractions; ",
                                             core->name, " has neither"),
                     .file = request.options.model_name,
                     .fix = "set CORENAME: X2_1204, which quantizes it anew, or give the float "
                            "model"});
    return diagnostics.ToStatus();
  }
  if (core != nullptr && core->integer != nullptr) {
    WholeNumbersForm floats = FloatWholeNumbers(std::move(imported));
    imported = std::move(floats.graph);
    if (floats.steps > 0) {
      diagnostics.Add(
          {.kind = DiagnosticKind::kQuantizedInFloat,
           .message = absl::StrCat("the model requantizes whole numbers in ", floats.steps,
                                   floats.steps == 1 ? " place; " : " places; ", core->name,
                                   " quantizes it anew: each becomes a "
                                   "product and a sum, and fractions stay"),
           .file = request.options.model_name,
           .fix = "nothing need be done; npuc evaluate --quantized says what that costs"});
    }
  }
  if (core != nullptr) {
    ASSIGN_OR_RETURN(imported,
                     ComputedInFloats(std::move(imported), *core, request.options, diagnostics));
  }
  PassOptions passes;
  passes.fuse_batch_norm = true;   // its own multiplication would round once more
  passes.rewrite_softmax = false;  // a command of its own
  passes.log_of_squares = core != nullptr && IsFixedPoint(*core);
  ASSIGN_OR_RETURN(Graph graph, RunPasses(std::move(imported), passes));
  return WithFiniteConstants(std::move(graph));
}

std::vector<SampleFile> CalibrationFilesOf(const CompileRequest& request) {
  std::vector<SampleFile> files;
  if (!request.options.quant.has_value()) return files;
  const std::vector<std::string>& inputs = request.options.quant->calibration_inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto file =
        request.side_inputs.find(inputs[i].empty() ? std::string(kCalibrationRole)
                                                   : absl::StrCat(kCalibrationRole, "[", i, "]"));
    if (file == request.side_inputs.end()) continue;
    files.push_back({inputs[i], file->second.name, file->second.bytes});
  }
  return files;
}

bool KeepsIntegers(const CompileRequest& request, const Graph& graph) {
  Diagnostics unused;
  const absl::StatusOr<KeptScales> kept = KeepScales(graph);
  return kept.ok() && Maker(request, unused).Keeps(*kept);
}

absl::StatusOr<IntegerModel> MakeIntegerModel(const CompileRequest& request, const Graph& graph,
                                              Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(IntegerModel model, Maker(request, diagnostics).Make(graph));
  const CoreSpec* core = FindCore(request.options.core);
  QuantizeConstantOutputs(core != nullptr && IsFixedPoint(*core), model);
  return model;
}

absl::StatusOr<IntegerModel> DropDeadChannels(IntegerModel model) {
  const ChannelFacts facts = IntegerChannelFacts(model.graph, model.plan);
  const KeptChannels kept = FindDeadChannels(model.graph, facts);
  if (kept.removed == 0) return model;
  ASSIGN_OR_RETURN(KeptIntegers integers, KeepIntegers(model.graph, model.plan, facts, kept));
  Graph graph = KeepChannels(model.graph, kept, integers.biases);
  RETURN_IF_ERROR(VerifyGraph(graph));
  model.log.push_back(DeadChannelsNote(kept, model.graph, graph));
  model.graph = std::move(graph);
  model.plan = std::move(integers.plan);
  return model;
}

}  // namespace npuc
