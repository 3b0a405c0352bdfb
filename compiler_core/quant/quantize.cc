#include "compiler_core/quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/quant/equalize.h"
#include "compiler_core/quant/layer_template.h"
#include "compiler_core/quant/mixed_precision.h"
#include "compiler_core/quant/read_ranges.h"
#include "compiler_core/quant/state.h"
#include "compiler_core/quant/state_samples.h"
#include "compiler_core/quant/table_runs.h"

namespace npuc {
namespace {

class Quantizer {
 public:
  Quantizer(const QuantizeInput& input, Diagnostics& diagnostics)
      : input_(input), diagnostics_(diagnostics) {}

  absl::StatusOr<QuantizeResult> Run() {
    RETURN_IF_ERROR(Prepare());
    RETURN_IF_ERROR(OpenSamples());
    RETURN_IF_ERROR(ReadTemplate());
    RETURN_IF_ERROR(GatherStatistics());
    CutRanges();
    // From here: settings and statistics of every layer. Weights come first, since activations are
    // judged with them in place.
    RETURN_IF_ERROR(QuantizeWeights());
    if (samples() != nullptr && NeedsEvaluators()) {
      RETURN_IF_ERROR(MakeEvaluators());
      RETURN_IF_ERROR(ChooseStrategies(state_, *evaluators_, result_.log));
    }
    RETURN_IF_ERROR(SettleParams());
    if (evaluators_.has_value()) {
      RETURN_IF_ERROR(SearchMixedPrecision(state_, *evaluators_, *samples_, result_.log));
      RETURN_IF_ERROR(CorrectBiases(state_, evaluators_->search));
      evaluators_.reset();
    }
    SettleTables(state_);
    if (samples() != nullptr) RETURN_IF_ERROR(MeasureFidelity());
    ReportBiases(state_, input_.model_name, result_.log, diagnostics_);
    return Assemble();
  }

 private:
  // A weight that several layers read in one way, as the steps of a loop do, is quantized once.
  absl::Status QuantizeWeights() {
    std::map<ValueId, const LayerSettings*> done;
    for (int i = 0; i < layer_count(); ++i) {
      const LayerSettings& settings = state_.settings[i];
      const auto [found, is_new] = done.emplace(state_.layers[i].weight, &settings);
      if (!is_new && SameWeights(*found->second, settings)) continue;
      found->second = &settings;
      RETURN_IF_ERROR(QuantizeWeight(state_, i, samples()));
    }
    return absl::OkStatus();
  }

  static bool SameWeights(const LayerSettings& a, const LayerSettings& b) {
    return a.weight_method == b.weight_method && a.weight_bits == b.weight_bits &&
           a.weight_strategy == b.weight_strategy && a.histc_bins == b.histc_bins &&
           a.in_float == b.in_float;
  }

  // Whether a step compares quantized runs.
  bool NeedsEvaluators() const {
    const std::vector<GlobalCalibration>& global = input_.options.global_calibration;
    return input_.options.mixed_precision_batches > 0 ||
           std::find(global.begin(), global.end(), GlobalCalibration::kBiasCorrection) !=
               global.end() ||
           std::any_of(state_.settings.begin(), state_.settings.end(),
                       [](const LayerSettings& s) { return IsMeasured(s.activation_strategy); });
  }

  absl::Status MakeEvaluators() {
    const SampleSplit split =
        SplitSamples(*state_.graph, samples_->size(), state_.executor->arena_bytes());
    ASSIGN_OR_RETURN(Evaluator search,
                     Evaluator::Create(*state_.executor, *samples_, split.search));
    ASSIGN_OR_RETURN(Evaluator check, Evaluator::Create(*state_.executor, *samples_, split.check));
    evaluators_ = {std::move(search), std::move(check), split.search == split.check};
    result_.log.push_back(absl::StrFormat(
        "calibration compares runs over %d samples to search and %d to check; it holds %d MiB for "
        "them",
        split.search.size(), split.check.size(),
        (evaluators_->search.most_bytes() + evaluators_->check.most_bytes()) >> 20));
    return absl::OkStatus();
  }

  int layer_count() const { return static_cast<int>(state_.layers.size()); }
  const SampleSet* samples() const { return samples_.has_value() ? &*samples_ : nullptr; }

  absl::Status Refuse(DiagnosticKind kind, const absl::Status& status, std::string fix) {
    diagnostics_.Add({.kind = kind,
                      .message = std::string(status.message()),
                      .file = input_.model_name,
                      .fix = std::move(fix)});
    return diagnostics_.ToStatus();
  }

  absl::Status Prepare() {
    state_.options = &input_.options;
    if (input_.fixed_point && input_.options.input_bytes.has_value()) {
      return Refuse(DiagnosticKind::kConfigNotForTarget,
                    absl::InvalidArgumentError("input_bytes of QUANT stores inputs in bytes, and "
                                               "the core stores every value in 16 bits"),
                    "remove the key");
    }
    state_.layers = input_.layers;
    state_.in_ir = input_.in_ir;
    state_.stated = input_.stated;
    state_.fixed_point = input_.fixed_point;
    CheckConstants();
    RETURN_IF_ERROR(diagnostics_.ToStatus());
    result_.graph = *input_.graph;
    const std::vector<GlobalCalibration>& global = input_.options.global_calibration;
    if (std::find(global.begin(), global.end(), GlobalCalibration::kEqualization) != global.end()) {
      int pairs = 0;
      result_.graph = EqualizeWeights(*input_.graph, state_.layers, pairs);
      result_.log.push_back(absl::StrCat("weight equalization: ", pairs, " pairs of layers"));
      if (pairs == 0) {
        diagnostics_.Add({.kind = DiagnosticKind::kConfigNoEffect,
                          .message =
                              "equalization of global_calibration in QUANT changes nothing: "
                              "no layer with weights feeds another one alone, through a Relu "
                              "at most",
                          .file = input_.model_name,
                          .fix = "remove the word"});
      }
    }
    state_.graph = &result_.graph;
    const int values = state_.graph->value_count();
    state_.producer.assign(values, -1);
    state_.consumers.assign(values, {});
    for (int i = 0; i < layer_count(); ++i) {
      for (const ValueId id : state_.layers[i].outputs) state_.producer[id.value()] = i;
      for (const ValueId id : state_.layers[i].inputs) state_.consumers[id.value()].push_back(i);
      const LayerSettings settings = DefaultSettings(input_.options, state_.layers[i], i);
      state_.settings.push_back(input_.fixed_point ? FixedPointSettings(settings) : settings);
    }
    TakeStates();
    CheckNamedLayers();
    RETURN_IF_ERROR(diagnostics_.ToStatus());
    absl::StatusOr<FloatExecutor> executor = FloatExecutor::Create(*state_.graph);
    if (!executor.ok()) {
      return Refuse(DiagnosticKind::kNotQuantizable, executor.status(),
                    "make the model compute in float32 between its inputs and outputs");
    }
    state_.executor = *std::move(executor);
    state_.quantized = state_.executor;
    return absl::OkStatus();
  }

  // Weights and biases must be finite: a scale is made of them.
  void CheckConstants() {
    for (const Layer& layer : state_.layers) {
      for (const ValueId id : {layer.weight, layer.bias}) {
        const Tensor* constant = id.valid() ? input_.graph->ConstantOf(id) : nullptr;
        if (constant == nullptr || constant->dtype() != DType::kFloat32) continue;
        const absl::Span<const float> values = constant->as<float>();
        const auto* const first =
            std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
        if (first == values.end()) continue;
        diagnostics_.Add(
            {.kind = DiagnosticKind::kNotQuantizable,
             .message = absl::StrCat("the ", id == layer.weight ? "weight" : "bias", " of layer '",
                                     Printable(layer.name), "' is not finite at element ",
                                     first - values.begin()),
             .file = input_.model_name,
             .node = layer.name,
             .fix = "replace the value in the model"});
      }
    }
  }

  // Layers that options name must be there. A type may be one that other models have.
  void CheckNamedLayers() {
    std::vector<absl::string_view> names;
    std::vector<absl::string_view> types;
    for (const Layer& layer : state_.layers) {
      names.push_back(layer.name);
      types.push_back(layer.type);
    }
    const QuantOptions& options = input_.options;
    for (const std::string& name : options.fake_quant_scopes) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      ReportUnnamed(DiagnosticKind::kConfigValueNotAllowed,
                    absl::StrCat("QUANT: fake_quant_scopes_for_debug names '", Printable(name),
                                 "', which no layer of the model has"),
                    DidYouMean(name, names, kLayerList));
    }
    for (const LayerIds& ids : options.fake_quant_ids) {
      CheckIds("fake_quant_scopes_for_debug", ids);
    }
    for (const std::string& type : options.fake_quant_operators) {
      CheckType("fake_quant_operators_for_debug", type, types);
    }
    for (const TrimRule& rule : options.trim_rules) {
      constexpr absl::string_view kKey = "trim_infinity_before_statistic";
      rule.type.empty() ? CheckIds(kKey, rule.ids) : CheckType(kKey, rule.type, types);
    }
  }

  static constexpr absl::string_view kLayerList = "opt_template.json and npuc -v list the layers";

  void ReportUnnamed(DiagnosticKind kind, std::string message, std::string fix) {
    diagnostics_.Add({.kind = kind,
                      .message = std::move(message),
                      .file = input_.model_name,
                      .fix = std::move(fix)});
  }

  void CheckIds(absl::string_view key, const LayerIds& ids) {
    if (ids.last < layer_count()) return;
    ReportUnnamed(DiagnosticKind::kConfigValueNotAllowed,
                  absl::StrCat("QUANT: ", key, " names layers ", ids.first, " to ", ids.last,
                               "; the model has 0 to ", layer_count() - 1),
                  std::string(kLayerList));
  }

  void CheckType(absl::string_view key, const std::string& type,
                 absl::Span<const absl::string_view> types) {
    const auto is_it = [&](absl::string_view known) { return absl::EqualsIgnoreCase(known, type); };
    if (std::any_of(types.begin(), types.end(), is_it)) return;
    ReportUnnamed(DiagnosticKind::kConfigNoEffect,
                  absl::StrCat("'", Printable(type), "' of ", key,
                               " in QUANT changes nothing: no layer of the model has this type"),
                  DidYouMean(type, types, kLayerList));
  }

  // What is fed back without its own parameters being a layer's cannot be tied.
  void TakeStates() {
    for (size_t k = 0; k < input_.state_inputs.size(); ++k) {
      const int input = input_.state_inputs[k];
      if (input < 0) continue;
      state_.states.emplace_back(state_.graph->inputs()[input], state_.graph->outputs()[k].value);
    }
  }

  absl::Status OpenSamples() {
    if (input_.calibration.empty()) return absl::OkStatus();
    std::set<size_t> states;
    for (const auto& [input, output] : state_.states) {
      const std::vector<ValueId>& all = state_.graph->inputs();
      if (state_.graph->type(input) != state_.graph->type(output)) continue;
      states.insert(static_cast<size_t>(std::find(all.begin(), all.end(), input) - all.begin()));
    }
    absl::StatusOr<SampleSet> samples = SampleSet::Open(input_.calibration, *state_.graph, states);
    if (!samples.ok()) {
      return Refuse(DiagnosticKind::kCalibrationData, samples.status(),
                    "give NumPy arrays of samples for every input of the model");
    }
    samples_ = *std::move(samples);
    const absl::Status added =
        AddStateSamples(*state_.executor, input_.state_inputs, *samples_, result_.log);
    if (added.ok()) return added;
    return Refuse(DiagnosticKind::kCalibrationData, added,
                  "give fewer samples, or samples for the states, too");
  }

  absl::Status ReadTemplate() {
    if (input_.template_name.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(ReadLayerTemplate(input_.opt_template, input_.template_name, state_.layers,
                                      state_.settings, diagnostics_));
    if (!input_.fixed_point) return absl::OkStatus();
    for (int i = 0; i < layer_count(); ++i) {
      const std::string problem = FixedPointProblem(state_.settings[i]);
      if (problem.empty()) continue;
      diagnostics_.Add(
          {.kind = DiagnosticKind::kTemplateValueNotAllowed,
           .message = absl::StrCat("layer '", Printable(state_.layers[i].name), "': ", problem),
           .file = input_.template_name,
           .fix = "leave these keys as npuc writes them"});
    }
    return diagnostics_.ToStatus();
  }

  absl::Status GatherStatistics() {
    const std::map<ValueId, std::string> names = NamesOfValues(state_);
    if (samples() != nullptr) {
      const absl::StatusOr<std::optional<NotFinite>> result = Calibrate(state_, *samples_);
      if (!result.ok()) {
        return Refuse(DiagnosticKind::kCalibrationData, result.status(), "mend the data");
      }
      if (result->has_value()) return RefuseNotFinite(**result);
      WarnAboutSamples();
    } else if (!input_.statistics_name.empty()) {
      RETURN_IF_ERROR(LoadStatistics(names));
    } else {
      return Refuse(DiagnosticKind::kCalibrationData,
                    absl::InvalidArgumentError("there is no calibration data: the ranges of the "
                                               "model's values are not known"),
                    "name a NumPy file in QUANT: calibration_data, or a statistic_file");
    }
    if (input_.options.save_statistic_info) {
      StatisticsByName all;
      for (const auto& [id, statistics] : state_.statistics) all[names.at(id)] = statistics;
      result_.statistics = WriteStatistics(all);
      result_.numpy_statistics = WriteNumpyStatistics(ByNode(), input_.options.histc_bins);
    }
    return CheckStrategies();
  }

  void CutRanges() {
    state_.read_ranges = FindReadRanges(state_);
    if (state_.read_ranges.empty()) return;
    result_.log.push_back(absl::StrCat(
        state_.read_ranges.size(),
        " values are stored without the ends of their ranges: what reads them, flat functions and "
        "Softmax, makes nothing of those"));
  }

  std::vector<NodeStatistics> ByNode() const {
    std::vector<NodeStatistics> nodes;
    for (const Layer& layer : state_.layers) {
      NodeStatistics node{layer.name, {}};
      for (const ValueId id : layer.outputs) {
        node.results.push_back(&state_.statistics.at(state_.SourceOf(id)));
      }
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  // Samples that are not what the model sees in use: all alike, or far beyond the range that a
  // quantized model gives the input.
  void WarnAboutSamples() {
    constexpr double kFarBeyond = 2;  // times the model's own range
    for (const ValueId input : state_.graph->inputs()) {
      const auto found = state_.statistics.find(state_.SourceOf(input));
      if (found == state_.statistics.end()) continue;
      const double min = found->second.extrema_min;
      const double max = found->second.extrema_max;
      const auto own = state_.in_ir.find(input);
      std::string problem;
      if (min == max) {
        problem = absl::StrCat("is ", min, " throughout");
      } else if (own != state_.in_ir.end() &&
                 (min < kFarBeyond * own->second.min || max > kFarBeyond * own->second.max)) {
        problem = absl::StrCat("goes from ", min, " to ", max, "; the model states ",
                               own->second.min, " to ", own->second.max);
      }
      if (problem.empty()) continue;
      const std::string& name = state_.graph->node(state_.graph->value(input).def).source.name;
      diagnostics_.Add(
          {.kind = DiagnosticKind::kCalibrationDoubtful,
           .message = absl::StrCat("calibration_data for input '", Printable(name), "' ", problem),
           .file = input_.model_name,
           .fix = "give samples of what the model gets in use, prepared as in "
                  "training"});
    }
  }

  absl::Status RefuseNotFinite(const NotFinite& found) {
    const Layer& layer = state_.layers[found.layer];
    const Node& root = state_.root(found.layer);
    const std::string value = std::isnan(found.value) ? "NaN" : found.value > 0 ? "inf" : "-inf";
    diagnostics_.Add(
        {.kind = DiagnosticKind::kCalibrationData,
         .message = absl::StrCat("sample ", found.sample, " of calibration_data makes the layer '",
                                 Printable(layer.name), "' give ", value,
                                 ", which no integer can stand for"),
         .file = input_.model_name,
         .node = layer.name,
         .op = OpNameOf(root),
         .fix = std::isnan(found.value)
                    ? "leave the sample out, or keep the operand within what the operator is "
                      "defined for, by a Maximum in front of it say"
                    : "leave the sample out, or limit the operand in the model; or set "
                      "trim_infinity_before_statistic, '(-65504, 65504):clip' say"});
    return diagnostics_.ToStatus();
  }

  absl::Status LoadStatistics(const std::map<ValueId, std::string>& names) {
    absl::StatusOr<StatisticsByName> all = ReadStatistics(input_.statistics);
    if (!all.ok()) {
      diagnostics_.Add({.kind = DiagnosticKind::kStatisticsFile,
                        .message = std::string(all.status().message()),
                        .file = input_.statistics_name,
                        .fix = "use the file that a compile with save_statistic_info wrote"});
      return diagnostics_.ToStatus();
    }
    for (const auto& [id, name] : names) {
      if (state_.SourceOf(id) != id) continue;
      const auto found = all->find(name);
      if (found == all->end()) {
        diagnostics_.Add({.kind = DiagnosticKind::kStatisticsFile,
                          .message = absl::StrCat("has nothing about '", Printable(name), "'"),
                          .file = input_.statistics_name,
                          .fix = "use the file that a compile of this model wrote"});
        continue;
      }
      const QuantStrategy& strategy =
          state_.settings[state_.producer[id.value()]].activation_strategy;
      const absl::string_view missing = MissingFor(strategy, found->second);
      if (!missing.empty()) {
        diagnostics_.Add(
            {.kind = DiagnosticKind::kStatisticsFile,
             .message = absl::StrCat("has no ", missing, " of '", Printable(name),
                                     "', which the strategy ", NameOf(strategy), " reads"),
             .file = input_.statistics_name,
             .fix = "add them, or name another strategy"});
      }
      state_.statistics[id] = found->second;
    }
    return diagnostics_.ToStatus();
  }

  // Strategies that cannot be followed, all of them at once.
  absl::Status CheckStrategies() {
    for (int i = 0; i < layer_count(); ++i) {
      const QuantStrategy& strategy = state_.settings[i].activation_strategy;
      if (IsMeasured(strategy) && samples() == nullptr) {
        return Refuse(DiagnosticKind::kStrategyWithoutData,
                      absl::InvalidArgumentError(
                          absl::StrCat("the strategy ", NameOf(strategy),
                                       " measures on calibration data, and there is none")),
                      "give calibration_data, or name another strategy");
      }
      if (IsMeasured(strategy)) continue;
      for (const ValueId id : state_.layers[i].outputs) {
        if (state_.SourceOf(id) != id) continue;
        const absl::Status status = RangeOfValue(state_, id, strategy).status();
        if (status.ok()) continue;
        (void)Refuse(DiagnosticKind::kStrategyWithoutData, status, "name another strategy");
      }
    }
    return diagnostics_.ToStatus();
  }

  absl::Status SettleParams() {
    ASSIGN_OR_RETURN(const auto activations, ChooseActivationParams(state_));
    for (const auto& [id, params] : activations) state_.values[id] = params;
    for (int i = 0; i < layer_count(); ++i) RETURN_IF_ERROR(QuantizeBias(state_, i));
    return absl::OkStatus();
  }

  // A value of the float model, but for the ends of its range that nothing reads.
  std::vector<float> WithinReadRange(ValueId id, const FloatExecutor::Arena& arena) const {
    const absl::Span<const float> value = state_.executor->ValueOf(arena, id);
    std::vector<float> within(value.begin(), value.end());
    const auto read = state_.read_ranges.find(state_.SourceOf(id));
    if (read == state_.read_ranges.end()) return within;
    const auto low = static_cast<float>(read->second.min);
    const auto high = static_cast<float>(read->second.max);
    for (float& x : within) x = std::clamp(x, low, high);
    return within;
  }

  // Float and quantized runs side by side, layer by layer.
  absl::Status MeasureFidelity() {
    std::vector<OutputError> errors(layer_count());
    std::vector<int64_t> counts(layer_count(), 0);
    const std::vector<GraphOutput>& outputs = state_.graph->outputs();
    result_.outputs.resize(outputs.size());
    const FakeQuants quants = QuantsOf(state_, state_.values);
    TableRuns tables(state_);
    const FloatExecutor::Hook round = HookOf(quants);
    const FloatExecutor::Hook apply = [&](ValueId id, absl::Span<float> value) {
      tables.Replace(id, value);
      round(id, value);
    };
    FloatExecutor::Arena float_arena = state_.executor->MakeArena();
    FloatExecutor::Arena arena = state_.quantized->MakeArena();
    std::vector<std::vector<float>> inputs;
    constexpr int64_t kMostSamples = 32;
    const int64_t count = std::min(samples_->size(), kMostSamples);
    for (int64_t s = 0; s < count; ++s) {
      RETURN_IF_ERROR(samples_->Read(s * samples_->size() / count, inputs));
      for (size_t k = 0; k < inputs.size(); ++k) {
        state_.executor->SetInput(float_arena, k, inputs[k]);
        state_.quantized->SetInput(arena, k, inputs[k]);
      }
      for (int node = 0; node < state_.graph->node_count(); ++node) {
        RETURN_IF_ERROR(state_.executor->Run(float_arena, node, node + 1, nullptr));
        tables.Before(NodeId(node), *state_.quantized, arena);
        RETURN_IF_ERROR(state_.quantized->Run(arena, node, node + 1, apply));
        for (const ValueId id : state_.graph->nodes()[node].outputs) {
          const int layer = state_.producer[id.value()];
          if (layer < 0) continue;
          const std::vector<float> wanted = WithinReadRange(id, float_arena);
          errors[layer].Add(wanted, state_.quantized->ValueOf(arena, id));
          counts[layer] += static_cast<int64_t>(wanted.size());
        }
      }
      for (size_t k = 0; k < outputs.size(); ++k) {
        result_.outputs[k].Add(state_.executor->ValueOf(float_arena, outputs[k].value),
                               state_.quantized->ValueOf(arena, outputs[k].value));
      }
    }
    for (int i = 0; i < layer_count(); ++i) {
      const double elements = static_cast<double>(std::max<int64_t>(counts[i], 1));
      result_.fidelity.push_back({errors[i].cosine(), errors[i].mse(elements)});
    }
    result_.compared_samples = count;
    for (size_t k = 0; k < result_.outputs.size(); ++k) {
      result_.log.push_back(
          absl::StrFormat("output '%s': cosine %.6f, SQNR %.1f dB", state_.graph->outputs()[k].name,
                          result_.outputs[k].cosine(), result_.outputs[k].sqnr_db()));
    }
    return absl::OkStatus();
  }

  QuantizeResult Assemble() {
    result_.settings = state_.settings;
    for (const LayerSettings& settings : state_.settings) {
      result_.plan.settings.push_back({settings.in_float, settings.lut_bits,
                                       settings.multiplier_bits, settings.bias_effective_bits});
    }
    result_.plan.layers = state_.layers;
    result_.plan.values = state_.values;
    result_.plan.constants = state_.constants;
    result_.opt_template =
        WriteLayerTemplate(*state_.graph, result_.plan, state_.settings, result_.fidelity);
    // What stays in float on both sides is no integer; the template shows what it would be.
    for (const auto& [id, params] : state_.values) {
      if (state_.producer[id.value()] >= 0 && !state_.IsQuantized(id)) {
        result_.plan.values.erase(id);
      }
    }
    return std::move(result_);
  }

  const QuantizeInput& input_;
  Diagnostics& diagnostics_;
  QuantState state_;
  std::optional<SampleSet> samples_;
  std::optional<Evaluators> evaluators_;
  QuantizeResult result_;
};

}  // namespace

absl::StatusOr<QuantizeResult> Quantize(const QuantizeInput& input, Diagnostics& diagnostics) {
  return Quantizer(input, diagnostics).Run();
}

}  // namespace npuc
