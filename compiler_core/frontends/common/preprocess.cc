#include "compiler_core/frontends/common/preprocess.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/emitter.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/resize.h"

namespace npuc::frontend {
namespace {

using StepKind = PreprocessStep::Kind;

constexpr int64_t kColors = 3;
// The shares of red, green and blue in a grey value, as Compass's parser has them.
constexpr std::array<double, kColors> kGrayShares = {0.3, 0.59, 0.11};
// Added to a variance, so that a constant image becomes 0.
constexpr double kLeastVariance = 1e-9;

bool MakesGray(StepKind kind) { return kind == StepKind::kRgb2Gray || kind == StepKind::kBgr2Gray; }

size_t ChannelAxis(const Shape& shape) {
  const size_t last = shape.size() - 1;
  return shape.size() >= 3 && shape[1] == kColors && shape[last] != kColors ? 1 : last;
}

// The shape of a step's operand, from its result's, `channels` being where those lie.
absl::StatusOr<Shape> OperandShape(const PreprocessStep& step, Shape result, size_t channels) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(TextOf({step}), " gives ", ShapeToString(result), "; ", what));
  };
  if (step.kind == StepKind::kStandardize) {
    for (const int64_t axis : step.axes) {
      if (axis >= static_cast<int64_t>(result.size())) return wrong("there are fewer axes");
    }
    return result;
  }
  if (result.size() < 3) return wrong("an image has 3 dimensions or more");
  if (step.kind == StepKind::kResize) {
    const bool fits = step.shape.size() == result.size() && step.shape[0] == result[0] &&
                      step.shape[channels] == result[channels];
    if (!fits) return wrong("its image has the same batch and channels");
    return step.shape;
  }
  if (result[channels] != kColors && !(MakesGray(step.kind) && result[channels] == 1)) {
    return wrong(MakesGray(step.kind) ? "it gives 1 or 3 channels" : "it needs 3 channels");
  }
  result[channels] = kColors;
  return result;
}

absl::StatusOr<ValueRef> Resized(Emitter& node, ValueRef x, const PreprocessStep& step,
                                 const Shape& result) {
  ResizeMode mode;
  mode.mode = step.is_linear ? "linear" : "nearest";
  mode.coordinates = "half_pixel";
  mode.nearest = "round_prefer_floor";
  for (size_t axis = 0; axis < result.size(); ++axis) {
    const int64_t from = x->type.shape[axis];
    if (from == result[axis]) continue;
    ResizeAxis sizes{.in = from, .out = result[axis]};
    sizes.scale = static_cast<double>(result[axis]) / static_cast<double>(from);
    ASSIGN_OR_RETURN(x, ResizeAlong(node, std::move(x), axis, mode, sizes));
  }
  return x;
}

// A product with a matrix [3, result channels] whose columns are the shares.
absl::StatusOr<ValueRef> Gray(Emitter& node, ValueRef x, const PreprocessStep& step,
                              const Shape& result, size_t channels) {
  std::vector<double> matrix;
  for (size_t from = 0; from < kColors; ++from) {
    const size_t color = step.kind == StepKind::kRgb2Gray ? from : kColors - 1 - from;
    for (int64_t to = 0; to < result[channels]; ++to) matrix.push_back(kGrayShares[color]);
  }
  std::vector<int64_t> perm(result.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[channels], perm.back());
  ASSIGN_OR_RETURN(x, node.Transposed(x, perm));
  Shape shape = x->type.shape;
  ASSIGN_OR_RETURN(x, node.Reshaped(x, {ElementCount(shape) / kColors, kColors}));
  ASSIGN_OR_RETURN(
      x,
      node.Emit("MatMul", {x, node.Floats({kColors, result[channels]}, matrix, DType::kFloat32)}));
  shape.back() = result[channels];
  ASSIGN_OR_RETURN(x, node.Reshaped(x, std::move(shape)));
  return node.Transposed(x, perm);
}

absl::StatusOr<ValueRef> Standardized(Emitter& node, const ValueRef& x,
                                      const PreprocessStep& step) {
  std::vector<int64_t> axes = step.axes;
  if (axes.empty()) {
    axes.resize(x->type.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  ASSIGN_OR_RETURN(const ValueRef mean, node.Reduced("ReduceMean", x, axes, /*keep_dims=*/true));
  ASSIGN_OR_RETURN(const ValueRef centred, node.Emit("Sub", {x, mean}));
  ASSIGN_OR_RETURN(const ValueRef squares, node.Emit("Square", {centred}));
  ASSIGN_OR_RETURN(ValueRef variance, node.Reduced("ReduceMean", squares, axes, true));
  ASSIGN_OR_RETURN(variance, node.Emit("Add", {variance, node.Scalar(kLeastVariance)}));
  ASSIGN_OR_RETURN(const ValueRef factor, node.Emit("Rsqrt", {variance}));
  return node.Emit("Mul", {centred, factor});
}

absl::StatusOr<ValueRef> Applied(Emitter& node, ValueRef x, const PreprocessStep& step,
                                 const Shape& result, size_t channels) {
  if (step.kind == StepKind::kResize) return Resized(node, std::move(x), step, result);
  if (step.kind == StepKind::kStandardize) return Standardized(node, x, step);
  if (MakesGray(step.kind)) return Gray(node, std::move(x), step, result, channels);
  return GatherAxis(node, x, static_cast<int64_t>(channels), {2, 1, 0});
}

// The nodes of `model` in `graph`, which has `input` in the place of its only one.
void Splice(const Graph& model, ValueId input, Graph& graph) {
  std::vector<ValueId> place(static_cast<size_t>(model.value_count()));
  for (const Node& node : model.nodes()) {
    if (node.op == Op::kPlaceholder) {
      place[static_cast<size_t>(node.outputs[0].value())] = input;
      continue;
    }
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(place[static_cast<size_t>(id.value())]);
    std::vector<TensorType> types;
    for (const ValueId id : node.outputs) types.push_back(model.type(id));
    const NodeId made =
        graph.AddNode(node.op, std::move(inputs), node.attrs, std::move(types), node.source);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      place[static_cast<size_t>(node.outputs[i].value())] = graph.node(made).outputs[i];
    }
  }
  for (GraphOutput output : model.outputs()) {
    output.value = place[static_cast<size_t>(output.value.value())];
    graph.AddOutput(std::move(output));
  }
  graph.set_name(model.name());
}

class Maker {
 public:
  Maker(const Graph& model, const CompileOptions& options, Diagnostics& diagnostics)
      : model_(model), options_(options), diagnostics_(diagnostics) {}

  absl::StatusOr<Graph> Make() {
    if (model_.inputs().size() != 1) {
      return Refuse(absl::StrCat("the model has ", model_.inputs().size(),
                                 " inputs; preprocessing takes one"));
    }
    const TensorType& type = model_.type(model_.inputs()[0]);
    if (type.dtype != DType::kFloat32 || type.shape.empty()) {
      return Refuse(absl::StrCat("the model's input is ", TypeToString(type),
                                 "; preprocessing takes one of float32"));
    }
    const absl::Status shapes = FindShapes(type.shape);
    if (!shapes.ok()) return Refuse(std::string(shapes.message()));
    Graph graph;
    ImportState state(&graph, &diagnostics_, options_, "");
    const std::string name = model_.def(model_.inputs()[0]).source.name;
    ValueRef x = state.AddInput(name, {DType::kFloat32, shapes_.front()});
    for (size_t i = 0; i < options_.preprocess.size(); ++i) {
      Emitter node(&state, {absl::StrCat(name, "/preprocess_", i), "Preprocess"});
      absl::StatusOr<ValueRef> result =
          Applied(node, std::move(x), options_.preprocess[i], shapes_[i + 1], channels_);
      if (!result.ok()) node.ReportMismatch(result.status(), "change the step");
      RETURN_IF_ERROR(result.status());
      x = *std::move(result);
    }
    Emitter last(&state, {name, ""});
    ASSIGN_OR_RETURN(const ValueId input, last.Place(*x));
    Splice(model_, input, graph);
    RETURN_IF_ERROR(VerifyStructure(graph));
    return graph;
  }

 private:
  absl::Status Refuse(const std::string& message) {
    diagnostics_.Add({.kind = DiagnosticKind::kConfigConflict,
                      .message = absl::StrCat("PREPROCESS: ", message),
                      .file = options_.model_name,
                      .fix = "change the steps, or prepare the inputs before the model"});
    return diagnostics_.ToStatus();
  }

  // The operand's shape of every step, and the model's input's behind them.
  absl::Status FindShapes(const Shape& input) {
    channels_ = ChannelAxis(input);
    shapes_ = {input};
    for (size_t i = options_.preprocess.size(); i-- > 0;) {
      ASSIGN_OR_RETURN(Shape shape,
                       OperandShape(options_.preprocess[i], shapes_.front(), channels_));
      shapes_.insert(shapes_.begin(), std::move(shape));
    }
    return absl::OkStatus();
  }

  const Graph& model_;
  const CompileOptions& options_;
  Diagnostics& diagnostics_;
  size_t channels_ = 0;
  std::vector<Shape> shapes_;
};

}  // namespace

absl::StatusOr<Graph> Preprocessed(const Graph& model, const CompileOptions& options,
                                   Diagnostics& diagnostics) {
  return Maker(model, options, diagnostics).Make();
}

}  // namespace npuc::frontend
