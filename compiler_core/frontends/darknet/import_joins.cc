// Layers that read others than the one in front.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/darknet/layer_import.h"

namespace npuc::darknet {
namespace {

struct Route {
  int64_t groups = 1;
  int64_t group_id = 0;
};

Route ReadRoute(LayerOptions& options) {
  Route route;
  route.groups = options.Int("groups", 1, 1);
  route.group_id = options.Int("group_id", 0, 0, route.groups - 1);
  return route;
}

// Images of equal sides stay one, with the channels of all; anything else becomes a row.
void PlanRoute(LayerPlanner& planner) {
  const Route route = ReadRoute(planner.options());
  planner.TakeSources("layers", false);
  const Size first = planner.SizeOf(planner.sources()[0]);
  Size sum = Size::Row(0);
  bool is_image = first.is_image();
  for (const int source : planner.sources()) {
    const Size& size = planner.SizeOf(source);
    if (size.count % route.groups != 0 || size.c % route.groups != 0) {
      planner.FailMode("groups", absl::StrCat(route.groups, " groups do not divide ",
                                              ShapeToString(size.Dims())));
    }
    is_image = is_image && size.is_image() && size.SamePlaces(first);
    sum.c += size.c / route.groups;
    sum.count += size.count / route.groups;
  }
  planner.SetOut(is_image ? Size::Image(sum.c, first.h, first.w) : Size::Row(sum.count));
}

absl::Status ImportRoute(LayerImporter& node) {
  const Route route = ReadRoute(node.options());
  std::vector<ValueRef> parts;
  for (int i = 0; i < node.input_count(); ++i) {
    ValueRef x = node.input(i);
    if (!node.out().is_image()) {
      ASSIGN_OR_RETURN(x, node.Row(x));
    }
    const int64_t part = x->type.shape[1] / route.groups;
    ASSIGN_OR_RETURN(parts.emplace_back(), node.Sliced(x, 1, part * route.group_id, part));
  }
  return node.SetOutput(node.Joined(parts, 1));
}

struct Shortcut {
  double alpha = 1;
  double beta = 1;
  std::string activation;
};

Shortcut ReadShortcut(LayerOptions& options) {
  return {.alpha = options.Float("alpha", 1),
          .beta = options.Float("beta", 1),
          .activation = ReadActivation(options, "linear")};
}

// The places of the larger side for one of the smaller; 0: it does not divide.
int64_t StepOf(int64_t a, int64_t b) {
  const auto [small, large] = std::minmax(a, b);
  return small > 0 && large % small == 0 ? large / small : 0;
}

void PlanShortcut(LayerPlanner& planner) {
  LayerOptions& options = planner.options();
  const Shortcut shortcut = ReadShortcut(options);
  if (options.Text("weights_type", "none") != "none") {
    planner.FailMode("weights_type", "sums with trained weights are not computed");
  }
  options.Text("weights_normalization", "none");
  planner.TakeSources("from", true);
  const Size in = planner.ImageIn();
  planner.SetOut(in);
  for (const int source : planner.sources()) {
    const Size& size = planner.SizeOf(source);
    if (size == in) continue;
    const bool grows = size.h > in.h || size.w > in.w;
    const bool shrinks = size.h < in.h || size.w < in.w;
    const int64_t step = StepOf(size.h, in.h);
    if (!size.is_image() || (grows && shrinks) || step == 0 || step > 64 ||
        StepOf(size.w, in.w) != step) {
      planner.FailSize(absl::StrCat("layer ", source, " gives ", ShapeToString(size.Dims()),
                                    ", which is no whole multiple of ", ShapeToString(in.Dims())));
    } else if (shortcut.alpha != 1) {
      planner.FailMode("alpha", "alpha beside a layer of another size");
    }
  }
}

// The addend where sizes differ: every so many places of a larger image, the places of a smaller
// one so many apart, and zeros; the channels that both have.
absl::StatusOr<ValueRef> Fitted(LayerImporter& node, ValueRef x) {
  const Size& out = node.out();
  const int64_t sides[] = {out.h, out.w};
  for (size_t i = 0; i < 2; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t side = x->type.shape[i + 2];
    const int64_t step = StepOf(side, sides[i]);
    if (side > sides[i]) {
      ASSIGN_OR_RETURN(x, node.Sliced(x, axis, 0, sides[i], sides[i] == 1 ? 1 : step));
    } else if (side < sides[i]) {
      ASSIGN_OR_RETURN(x, frontend::Spread(node, std::move(x), axis, step));
    }
  }
  const Shape& shape = x->type.shape;
  return node.Padded(x, {0, 0, 0, out.c - shape[1], 0, out.h - shape[2], 0, out.w - shape[3]}, 0);
}

absl::Status ImportShortcut(LayerImporter& node) {
  const Shortcut shortcut = ReadShortcut(node.options());
  Term sum = Term(node, node.input(0)) * shortcut.alpha;
  for (int i = 1; i < node.input_count(); ++i) {
    const Term added = Term(node, Fitted(node, node.input(i))) * shortcut.beta;
    sum = sum + added;
  }
  RETURN_IF_ERROR(sum.value.status());
  return node.SetOutput(node.Activated(*sum.value, shortcut.activation, 1));
}

// The fork's [scale_channels] and [sam]: the product with the layer that `from` names, of a factor
// a channel, a factor a place (scale_wh), or of two images.
void PlanProduct(LayerPlanner& planner) {
  LayerOptions& options = planner.options();
  ReadActivation(options, "linear");
  planner.TakeSources("from", true);
  const Size in = planner.ImageIn();
  const Size from = planner.SizeOf(planner.sources().back());
  Size factors = from;
  if (options.section().type == "scale_channels") {
    factors = options.Flag("scale_wh") ? Size::Image(1, from.h, from.w) : Size::Image(from.c, 1, 1);
  }
  planner.SetOut(from);
  if (planner.sources().size() == 2 && from.is_image() && in == factors) return;
  planner.FailSize(absl::StrCat("factors ", ShapeToString(in.Dims()), " do not fit ",
                                ShapeToString(from.Dims())));
}

absl::Status ImportProduct(LayerImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef y, node.Emit("Mul", {node.input(0), node.input(1)}));
  return node.SetOutput(node.Activated(y, ReadActivation(node.options(), "linear"), 1));
}

constexpr LayerType kJoinTypes[] = {
    {"route", PlanRoute, ImportRoute},
    {"sam", PlanProduct, ImportProduct},
    {"scale_channels", PlanProduct, ImportProduct},
    {"shortcut", PlanShortcut, ImportShortcut},
};

}  // namespace

absl::Span<const LayerType> JoinTypes() { return kJoinTypes; }

}  // namespace npuc::darknet
