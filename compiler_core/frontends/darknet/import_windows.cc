// Layers that pick, pool or move the places of an image.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/resize.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/darknet/layer_import.h"

namespace npuc::darknet {
namespace {

struct Pool {
  int64_t size = 1;
  int64_t stride_x = 1;
  int64_t stride_y = 1;
  int64_t padding = 0;  // of both sides together; a half of it, rounded down, is in front

  int64_t ResultSide(int64_t side, int64_t stride) const {
    return side + padding < size ? 0 : (side + padding - size) / stride + 1;
  }
  frontend::WindowAttrs Window(const Size& in, const Size& out) const {
    const int64_t before = padding / 2;
    const auto after = [&](int64_t side, int64_t results, int64_t stride) {
      return std::max<int64_t>((results - 1) * stride + size - side - before, 0);
    };
    return {.kernel = {size, size},
            .strides = {stride_y, stride_x},
            .dilations = {1, 1},
            .before = {before, before},
            .after = {after(in.h, out.h, stride_y), after(in.w, out.w, stride_x)}};
  }
};

Pool ReadPool(LayerOptions& options) {
  Pool pool;
  const int64_t stride = options.Int("stride", 1, 1);
  pool.stride_x = options.Int("stride_x", stride, 1);
  pool.stride_y = options.Int("stride_y", stride, 1);
  pool.size = options.Int("size", stride, 1);
  // More would leave windows without a place of the image.
  pool.padding = options.Int("padding", pool.size - 1, 0, 2 * (pool.size - 1));
  return pool;
}

void PlanPool(LayerPlanner& planner) {
  LayerOptions& options = planner.options();
  const Pool pool = ReadPool(options);
  options.Refuse("antialiasing", "the blur behind the layer is not computed");
  options.Refuse("maxpool_zero_nonmax", "places that are no maxima are not cleared");
  const Size in = planner.ImageIn();
  if (options.Flag("maxpool_depth")) {
    const int64_t channels = options.Int("out_channels", 1, 1);
    if (in.c % channels != 0) {
      planner.FailMode("out_channels", absl::StrCat("out_channels ", channels, " does not divide ",
                                                    in.c, " channels"));
    }
    return planner.SetOut(Size::Image(channels, in.h, in.w));
  }
  planner.SetOut(Size::Image(in.c, pool.ResultSide(in.h, pool.stride_y),
                             pool.ResultSide(in.w, pool.stride_x)));
}

absl::Status ImportMaxPool(LayerImporter& node) {
  const Size& in = node.in();
  if (node.options().Flag("maxpool_depth")) {
    const int64_t channels = node.out().c;
    ASSIGN_OR_RETURN(const ValueRef x, node.Reshaped(node.input(0), {node.batch(), in.c / channels,
                                                                     channels, in.h, in.w}));
    return node.SetOutput(node.Reduced("ReduceMax", x, {1}, false));
  }
  const Pool pool = ReadPool(node.options());
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y, MaxPooled(node, x, pool.Window(in, node.out())));
  return node.SetOutput(ChannelsFirst(node, y));
}

absl::Status ImportLocalAverage(LayerImporter& node) {
  const Pool pool = ReadPool(node.options());
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y, AveragePooled(node, x, pool.Window(node.in(), node.out()),
                                                   {.before = {0, 0}, .after = {0, 0}}));
  return node.SetOutput(ChannelsFirst(node, y));
}

void PlanAverage(LayerPlanner& planner) { planner.SetOut(Size::Image(planner.ImageIn().c, 1, 1)); }

absl::Status ImportAverage(LayerImporter& node) {
  return node.SetOutput(node.Reduced("ReduceMean", node.input(0), {2, 3}, true));
}

// A negative stride sums the places of each block.
void PlanUpsample(LayerPlanner& planner) {
  const int64_t stride = planner.options().Int("stride", 2, -64, 64);
  planner.options().Float("scale", 1);
  const Size in = planner.ImageIn();
  if (stride >= 1) return planner.SetOut(Size::Image(in.c, in.h * stride, in.w * stride));
  const int64_t block = std::max<int64_t>(-stride, 1);
  if (stride == 0 || in.h % block != 0 || in.w % block != 0) {
    planner.FailMode("stride",
                     absl::StrCat("blocks of ", block, " do not divide ", in.h, " x ", in.w));
  }
  planner.SetOut(Size::Image(in.c, in.h / block, in.w / block));
}

absl::Status ImportUpsample(LayerImporter& node) {
  const int64_t stride = node.options().Int("stride", 2, -64, 64);
  const double scale = node.options().Float("scale", 1);
  const Size& in = node.in();
  const Size& out = node.out();
  ValueRef x = node.input(0);
  if (stride < 0) {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {node.batch(), in.c, out.h, -stride, out.w, -stride}));
    ASSIGN_OR_RETURN(x, node.Reduced("ReduceSum", x, {3, 5}, false));
  }
  const frontend::ResizeMode mode{
      .mode = "nearest", .coordinates = "asymmetric", .nearest = "floor"};
  const double factor = static_cast<double>(stride);
  if (stride > 1) {
    ASSIGN_OR_RETURN(
        x, ResizeAlong(node, std::move(x), 2, mode, {.in = in.h, .out = out.h, .scale = factor}));
    ASSIGN_OR_RETURN(
        x, ResizeAlong(node, std::move(x), 3, mode, {.in = in.w, .out = out.w, .scale = factor}));
  }
  return node.SetOutput((Term(node, x) * scale).value);
}

struct Reorg {
  int64_t stride = 1;
  bool reverse = false;
  bool flatten = false;
  int64_t extra = 0;
};

Reorg ReadReorg(LayerOptions& options) {
  return {.stride = options.Int("stride", 1, 1, 1024),
          .reverse = options.Flag("reverse"),
          .flatten = options.Flag("flatten"),
          .extra = options.Int("extra", 0)};
}

void PlanReorg(LayerPlanner& planner) {
  const Reorg reorg = ReadReorg(planner.options());
  const Size in = planner.ImageIn();
  if (reorg.extra > 0) {
    if (reorg.flatten) planner.FailMode("extra", "extra beside flatten");
    return planner.SetOut(Size::Row(in.count + reorg.extra));
  }
  const int64_t s = reorg.stride;
  const bool is_3d = planner.options().section().type == "reorg3d";
  const bool has_blocks = reorg.reverse || (in.h % s == 0 && in.w % s == 0);
  const bool has_channels = is_3d || in.c % (s * s) == 0;
  if (!has_blocks || !has_channels || (is_3d && reorg.reverse)) {
    planner.FailMode("stride", absl::StrCat("stride ", s, reorg.reverse ? " in reverse" : "",
                                            " does not divide the channels and sides of ",
                                            ShapeToString(in.Dims())));
    return;
  }
  planner.SetOut(reorg.reverse ? Size::Image(in.c / (s * s), in.h * s, in.w * s)
                               : Size::Image(in.c * s * s, in.h / s, in.w / s));
}

// Follows [reorg] exactly: Darknet runs the loops of its inverse over the operand's own sizes. So
// an operand [c,h,w] is taken as [c/s/s, h*s, w*s]; the blocks of s x s places of that become
// channels [s*s, c/s/s, h, w], and those bytes count as [c*s*s, h/s, w/s]. Source: blas.c,
// reorg_cpu; reorg_layer.c (in the fork reorg_old_layer.c) calls it with the layer's w, h and c.
absl::Status ImportReorg(LayerImporter& node) {
  const Reorg reorg = ReadReorg(node.options());
  const Size& in = node.in();
  const int64_t s = reorg.stride;
  const int64_t n = node.batch();
  ValueRef x = node.input(0);
  if (reorg.flatten) {  // channels last, or back
    const int64_t places = in.h * in.w;
    ASSIGN_OR_RETURN(
        x, node.Reshaped(x, reorg.reverse ? Shape{n, places, in.c} : Shape{n, in.c, places}));
    ASSIGN_OR_RETURN(x, node.Transposed(x, {0, 2, 1}));
  } else if (reorg.extra > 0) {
    ASSIGN_OR_RETURN(x, node.Row(x));
    ASSIGN_OR_RETURN(x, node.Padded(x, {0, 0, 0, reorg.extra}, 0));
  } else if (reorg.reverse) {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {n, s, s, in.c / (s * s), in.h, in.w}));
    ASSIGN_OR_RETURN(x, node.Transposed(x, {0, 3, 4, 1, 5, 2}));
  } else {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {n, in.c / (s * s), in.h, s, in.w, s}));
    ASSIGN_OR_RETURN(x, node.Transposed(x, {0, 3, 5, 1, 2, 4}));
  }
  return node.SetOutput(node.AsOut(x));
}

// The fork's [reorg3d]: blocks of s x s places become channels, those of one place in a block
// together.
absl::Status ImportReorg3d(LayerImporter& node) {
  const Size& in = node.in();
  const int64_t s = ReadReorg(node.options()).stride;
  ASSIGN_OR_RETURN(ValueRef x,
                   node.Reshaped(node.input(0), {node.batch(), in.c, in.h / s, s, in.w / s, s}));
  ASSIGN_OR_RETURN(x, node.Transposed(x, {0, 3, 5, 1, 2, 4}));
  return node.SetOutput(node.AsOut(x));
}

// The middle of the image; values of 0..1 become -1..1.
void PlanCrop(LayerPlanner& planner) {
  const int64_t h = planner.options().Int("crop_height", 1, 1);
  const int64_t w = planner.options().Int("crop_width", 1, 1);
  planner.options().Flag("noadjust");
  const Size in = planner.ImageIn();
  if (h > in.h || w > in.w) {
    planner.FailSize(absl::StrCat("a crop of ", h, " x ", w, " from ", in.h, " x ", in.w));
  }
  planner.SetOut(Size::Image(in.c, h, w));
}

absl::Status ImportCrop(LayerImporter& node) {
  const Size& in = node.in();
  const Size& out = node.out();
  ASSIGN_OR_RETURN(ValueRef x, node.Sliced(node.input(0), 2, (in.h - out.h) / 2, out.h));
  ASSIGN_OR_RETURN(x, node.Sliced(x, 3, (in.w - out.w) / 2, out.w));
  if (node.options().Flag("noadjust")) return node.SetOutput(std::move(x));
  return node.SetOutput((Term(node, x) * 2.0 - 1.0).value);
}

constexpr LayerType kWindowTypes[] = {
    {"avgpool", PlanAverage, ImportAverage},
    {"crop", PlanCrop, ImportCrop},
    {"local_avgpool", PlanPool, ImportLocalAverage},
    {"maxpool", PlanPool, ImportMaxPool},
    {"reorg", PlanReorg, ImportReorg},
    {"reorg3d", PlanReorg, ImportReorg3d},
    {"upsample", PlanUpsample, ImportUpsample},
};

}  // namespace

absl::Span<const LayerType> WindowTypes() { return kWindowTypes; }

}  // namespace npuc::darknet
