// Layers that keep the form of what they read.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/darknet/layer_import.h"

namespace npuc::darknet {
namespace {

void PlanAsIs(LayerPlanner& planner) { planner.SetOut(planner.in()); }

absl::Status ImportAsIs(LayerImporter& node) { return node.SetOutput(node.input(0)); }

void PlanActivation(LayerPlanner& planner) { ReadActivation(planner.options(), "linear"); }

absl::Status ImportActivation(LayerImporter& node) {
  return node.SetOutput(node.Activated(node.input(0), ReadActivation(node.options(), "linear"), 1));
}

absl::Status ImportLogistic(LayerImporter& node) {
  return node.EmitOutput("Sigmoid", {node.input(0)});
}

// Over all values, or over each of `groups` parts of them, whatever the image's form.
void PlanSoftmax(LayerPlanner& planner) {
  LayerOptions& options = planner.options();
  const int64_t groups = options.Int("groups", 1, 1);
  if (options.Float("temperature", 1) <= 0) planner.FailMode("temperature", "a temperature of 0");
  if (options.Has("tree")) planner.FailMode("tree", "a tree of classes lies in another file");
  options.Refuse("spatial", "Darknet computes it on its GPU alone");
  if (planner.in().count % groups != 0) {
    planner.FailSize(absl::StrCat(groups, " groups do not divide ", planner.in().count, " values"));
  }
  planner.SetOut(Size::Row(planner.in().count));
}

absl::Status ImportSoftmax(LayerImporter& node) {
  const int64_t groups = node.options().Int("groups", 1, 1);
  const double temperature = node.options().Float("temperature", 1);
  const int64_t size = node.in().count / groups;
  ASSIGN_OR_RETURN(const ValueRef x, node.Reshaped(node.input(0), {node.batch() * groups, size}));
  const Term cooled = Term(node, x) * (1 / temperature);
  RETURN_IF_ERROR(cooled.value.status());
  ASSIGN_OR_RETURN(const ValueRef y,
                   node.Emit("Softmax", {*cooled.value}, {{"axis", int64_t{-1}}}));
  return node.SetOutput(node.AsOut(y));
}

// x / (kappa + alpha * sum of squares of neighbouring channels) ^ beta, where the sum is not the
// window's: see LrnFactors().
struct Lrn {
  double alpha = 1e-4;
  double beta = 0.75;
  double kappa = 1;
  int64_t size = 5;
};

Lrn ReadLrn(LayerOptions& options) {
  return {.alpha = options.Float("alpha", 1e-4),
          .beta = options.Float("beta", 0.75),
          .kappa = options.Float("kappa", 1),
          .size = options.Int("size", 5, 1, 4096)};
}

void PlanLrn(LayerPlanner& planner) {
  ReadLrn(planner.options());
  const Size in = planner.ImageIn();
  if (in.c > 4096) planner.FailMode("", "more than 4096 channels");
  planner.SetOut(in);
}

// Counts how often each channel's square is in each channel's sum, [from, to]. Darknet moves a
// window along the channels: the first sum has squares 0 to size/2 - 1, each further one gains the
// square at size/2 behind it and loses the one that left. So square size/2 is never gained, but
// lost later. Source: normalization_layer.c, forward_normalization_layer.
std::vector<double> LrnFactors(int64_t channels, int64_t size) {
  std::vector<double> factors(static_cast<size_t>(channels * channels), 0);
  const auto at = [&](int64_t from, int64_t to) -> double& {
    return factors[static_cast<size_t>(from * channels + to)];
  };
  for (int64_t from = 0; from < std::min(size / 2, channels); ++from) at(from, 0) = 1;
  for (int64_t to = 1; to < channels; ++to) {
    for (int64_t from = 0; from < channels; ++from) at(from, to) = at(from, to - 1);
    const int64_t lost = to - (size - 1) / 2 - 1;
    const int64_t gained = to + size / 2;
    if (lost >= 0) at(lost, to) -= 1;
    if (gained < channels) at(gained, to) += 1;
  }
  return factors;
}

absl::Status ImportLrn(LayerImporter& node) {
  const Lrn lrn = ReadLrn(node.options());
  const int64_t c = node.in().c;
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef squares, node.Emit("Square", {x}));
  const ValueRef factors = node.Floats({1, 1, c, c}, LrnFactors(c, lrn.size), DType::kFloat32);
  ASSIGN_OR_RETURN(const ValueRef sums, node.Emit("Conv2D", {squares, factors},
                                                  {{"strides", Shape{1, 1}},
                                                   {"dilations", Shape{1, 1}},
                                                   {"pads", Shape{0, 0, 0, 0}}}));
  const Term divisor = Pow(Term(node, sums) * lrn.alpha + lrn.kappa, lrn.beta);
  const Term y = Term(node, x) / divisor;
  RETURN_IF_ERROR(y.value.status());
  return node.SetOutput(ChannelsFirst(node, *y.value));
}

void PlanL2Norm(LayerPlanner& planner) { planner.SetOut(planner.ImageIn()); }

// Each place's channels as a vector of length 1.
absl::Status ImportL2Norm(LayerImporter& node) {
  const Term x(node, node.input(0));
  const Term length = frontend::Norm(x, 2, {1}, true);
  return node.SetOutput((x / length).value);
}

constexpr LayerType kElementTypes[] = {
    {"activation", PlanActivation, ImportActivation},
    {"dropout", PlanAsIs, ImportAsIs},
    {"empty", PlanAsIs, ImportAsIs},
    {"l2norm", PlanL2Norm, ImportL2Norm},
    {"logistic", PlanAsIs, ImportLogistic},
    {"normalization", PlanLrn, ImportLrn},
    {"softmax", PlanSoftmax, ImportSoftmax},
};

}  // namespace

absl::Span<const LayerType> ElementTypes() { return kElementTypes; }

}  // namespace npuc::darknet
