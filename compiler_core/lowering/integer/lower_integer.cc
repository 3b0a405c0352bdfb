#include "compiler_core/lowering/integer/lower_integer.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/verify.h"
#include "compiler_core/lowering/integer/context.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

// Only a model that brings its own scales can lack one.
constexpr absl::string_view kQuantizeAnew =
    "let the exporter quantize it, too, or quantize the model anew by force_float_ir: true and "
    "calibration_data in QUANT";

// The function that lowers layers of a rule; null where there is none.
using LowerFn = absl::Status (*)(IntegerContext& context);
LowerFn LoweringOf(IntegerRule rule) {
  switch (rule) {
    case IntegerRule::kNone:
      return nullptr;
    case IntegerRule::kFunction:
      return &LowerFunction;
    case IntegerRule::kActivation:
      return &LowerActivation;
    case IntegerRule::kCombine:
      return &LowerCombine;
    case IntegerRule::kWeighted:
      return &LowerWeighted;
    case IntegerRule::kPool:
      return &LowerPool;
    case IntegerRule::kConcat:
      return &LowerConcat;
    case IntegerRule::kPad:
      return &LowerPad;
    case IntegerRule::kReduction:
      return &LowerReduction;
    case IntegerRule::kReshape:
      return &LowerReshape;
    case IntegerRule::kSlice:
      return &LowerSlice;
    case IntegerRule::kSoftmax:
      return &LowerSoftmaxRows;
    case IntegerRule::kSplit:
      return &LowerSplit;
    case IntegerRule::kTranspose:
      return &LowerTranspose;
  }
  return nullptr;
}

class IntegerLowerer {
 public:
  IntegerLowerer(const Graph& graph, const QuantPlan& plan, const std::string& model_name)
      : graph_(graph),
        plan_(plan),
        model_name_(model_name),
        context_(graph, plan, program_, &found_, model_name) {}

  absl::StatusOr<integer::Program> Run() {
    RefuseFloatLayers();
    if (!found_.has_errors()) CheckBorders();
    RETURN_IF_ERROR(found_.ToStatus());
    context_.DeclarePorts();
    for (size_t i = 0; i < plan_.layers.size(); ++i) {
      const LayerQuant settings = i < plan_.settings.size() ? plan_.settings[i] : LayerQuant();
      LowerLayer(plan_.layers[i], settings);
    }
    RETURN_IF_ERROR(found_.ToStatus());
    RETURN_IF_ERROR(CopyOutputs());
    if (program_.commands.empty()) {
      found_.Add({.kind = DiagnosticKind::kNotLowerable,
                  .message = "the model computes nothing: it has no command",
                  .file = model_name_,
                  .fix = "name outputs with elements that the model computes"});
      return found_.ToStatus();
    }
    RETURN_IF_ERROR(integer::VerifyProgram(program_));
    return std::move(program_);
  }

  const Diagnostics& found() const { return found_; }

 private:
  void Refuse(const Node& node, absl::string_view reason, absl::string_view fix) {
    found_.Add({.kind = DiagnosticKind::kNotLowerable,
                .message = std::string(reason),
                .file = model_name_,
                .node = node.source.name,
                .op = OpNameOf(node),
                .fix = std::string(fix)});
  }

  // Those of the fake-quant options, of the template, and that an automatic search left.
  void RefuseFloatLayers() {
    for (size_t i = 0; i < plan_.settings.size(); ++i) {
      if (!plan_.settings[i].in_float) continue;
      const Layer& layer = plan_.layers[i];
      const Node& root = graph_.node(layer.root);
      found_.Add({.kind = DiagnosticKind::kLayerInFloat,
                  .message = "the layer stays in float; the integer cores have no float arithmetic",
                  .file = model_name_,
                  .node = layer.name,
                  .op = OpNameOf(root),
                  .fix =
                      "measure it with npuc reference or npuc evaluate --quantized, and quantize "
                      "the layer to compile"});
    }
  }

  // The model's own inputs and outputs need parameters before anything is placed.
  void CheckBorders() {
    const auto check = [this](ValueId value) {
      if (!HasScale(value)) return;
      const absl::Status status = context_.ActivationParams(value).status();
      if (!status.ok()) Refuse(graph_.def(value), status.message(), kQuantizeAnew);
    };
    for (const ValueId input : graph_.inputs()) check(input);
    for (const GraphOutput& output : graph_.outputs()) check(output.value);
  }

  // Reports values without parameters, once for each node of the model that gives some.
  bool HasScale(ValueId value) {
    if (context_.FindParams(value) != nullptr) return true;
    const Node& def = graph_.def(value);
    if (!without_scale_.insert(def.source.name).second) return false;
    const bool is_inside =
        std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& user) {
          return user.source.name == def.source.name &&
                 std::find(user.inputs.begin(), user.inputs.end(), value) != user.inputs.end();
        });
    Refuse(def,
           is_inside ? "the operator becomes several here, and the model has no scales for the "
                       "values between them"
           : def.op == Op::kPlaceholder ? "the model does not quantize the input"
                                        : "the model does not quantize the node's result",
           kQuantizeAnew);
    return false;
  }

  void LowerLayer(const Layer& layer, const LayerQuant& settings) {
    const Node& root = graph_.node(layer.root);
    if (root.op == Op::kPlaceholder) return;
    if (ReadsConstantsAlone(layer)) {
      return Refuse(root, "the layer reads constants alone, and is too large to be computed here",
                    "export the model with its constants folded");
    }
    context_.Begin(layer, settings);
    // A function of several nodes is an Activation layer, whatever its last node is.
    const bool is_function = layer.type == "Activation";
    const LowerFn lower =
        LoweringOf(is_function ? IntegerRule::kActivation : TraitsOf(root.op).integer);
    if (lower == nullptr) {
      return Refuse(root, absl::StrCat("the integer cores have no command for ", NameOf(root.op)),
                    "replace the operator, or end the model before it");
    }
    if (std::any_of(layer.inputs.begin(), layer.inputs.end(),
                    [this](ValueId input) { return !context_.has_place(input); })) {
      return;  // what it reads was refused, which has been said
    }
    bool has_scales = true;
    for (const ValueId output : layer.outputs) has_scales = HasScale(output) && has_scales;
    if (!has_scales) return;
    const size_t before = program_.commands.size();
    const absl::Status status = lower(context_);
    if (!status.ok()) Refuse(root, status.message(), "change the operator or its quantization");
    CheckFields(root, before);
    if (program_.commands.size() > kMaxCommands) {
      found_.Add({.kind = DiagnosticKind::kProgramTooLarge,
                  .message = absl::StrCat("the model needs more than ", kMaxCommands, " commands"),
                  .file = model_name_});
    }
  }

  // What is too large for the fields of a command, of those from `first` on.
  void CheckFields(const Node& root, size_t first) {
    for (size_t i = first; i < program_.commands.size(); ++i) {
      const integer::Body& body = program_.commands[i].body;
      const std::vector<std::string> problems = integer::FieldProblems(body);
      if (problems.empty()) continue;
      return Refuse(root,
                    absl::StrCat("the operator is too large for command ", integer::NameOf(body),
                                 ": ", problems.front()),
                    "compute it in parts");
    }
  }

  // Outputs whose values lie elsewhere: inputs, constants, reshapes, a value that is output twice.
  absl::Status CopyOutputs() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId value = graph_.outputs()[i].value;
      const Operand wanted = {BufferId(1), program_.outputs[i].offset_bytes};
      ASSIGN_OR_RETURN(const QuantParams params, context_.ActivationParams(value));
      Layer output;
      output.name = graph_.outputs()[i].name;
      output.type = "Output";
      const LayerQuant settings;
      context_.Begin(output, settings);
      ASSIGN_OR_RETURN(const Operand place, PlaceOf(value, params));
      if (place == wanted) continue;
      const int64_t count = graph_.type(value).element_count();
      if (count == 0) continue;
      ASSIGN_OR_RETURN(const StridedWalk walk, MakeWalk({count}, {{1}, {1}}));
      EmitMove(context_, place, params, context_.ResultFor(params, wanted), params, walk);
    }
    return absl::OkStatus();
  }

  // Where a model output's integers lie; a constant's are placed now.
  absl::StatusOr<Operand> PlaceOf(ValueId value, const QuantParams& params) {
    if (graph_.ConstantOf(value) == nullptr) return context_.Input(value);
    ASSIGN_OR_RETURN(const Tensor stored, context_.Integers(value, params));
    return context_.Constant({stored.bytes().begin(), stored.bytes().end()});
  }

  const Graph& graph_;
  const QuantPlan& plan_;
  const std::string& model_name_;
  Diagnostics found_;
  integer::Program program_;
  IntegerContext context_;
  std::set<std::string> without_scale_;  // names of nodes
};

}  // namespace

absl::StatusOr<integer::Program> LowerInteger(const Graph& graph, const QuantPlan& plan,
                                              const std::string& model_name,
                                              Diagnostics& diagnostics) {
  IntegerLowerer lowerer(graph, plan, model_name);
  absl::StatusOr<integer::Program> program = lowerer.Run();
  diagnostics.Append(lowerer.found());
  return program;
}

}  // namespace npuc
