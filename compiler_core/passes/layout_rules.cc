#include "compiler_core/passes/layout_rules.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

LayoutRule RuleOf(const Node& node) { return TraitsOf(node.op).layout; }

const std::vector<int64_t>& Ints(const Node& node, absl::string_view name) {
  return std::get<std::vector<int64_t>>(node.attrs.find(name)->second);  // VerifyGraph saw it
}

int64_t AxisOf(const Node& node, size_t rank) {
  const absl::StatusOr<int64_t> axis = AxisAttr(node, "axis", static_cast<int64_t>(rank), -1);
  NPUC_CHECK(axis.ok());  // the node has passed VerifyGraph
  return *axis;
}

// Sets a layout, or says whether it is the one that is known.
bool Agree(std::optional<Layout>& known, const Layout& layout) {
  if (known.has_value()) return *known == layout;
  known = layout;
  return true;
}

// ---- operators that work dimension by dimension -------------------------------------------------

// Such a node sees all of its values as boxes of one rank, which differ in some dimensions. The
// largest of them is the frame: it has every dimension in full.
struct Frame {
  size_t largest = 0;         // index of the value that is the frame
  std::vector<Shape> shapes;  // by value, of the frame's rank
  std::vector<bool> whole;    // by dimension: may not be cut, since the operator counts along it
};

Shape LeftPadded(const Shape& shape, size_t rank) {
  Shape result(rank - shape.size(), 1);
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

// Whether a slice takes all of a dimension as it is.
bool TakesWhole(const Node& node, const Shape& shape, size_t d) {
  return Ints(node, "size")[d] == shape[d] && (Ints(node, "strides")[d] == 1 || shape[d] == 1);
}

// Whether the node computes each element from the operand's element in the same place.
bool IsElementwise(const Node& node) {
  if (RuleOf(node) == LayoutRule::kConversion) return IntAttrOr(node, "axis", -1) < 0;
  return RuleOf(node) == LayoutRule::kElementwise;
}

// The dimension that a node counts along; -1 where it treats all of them alike.
int64_t AxisCounted(const Node& node, size_t rank) {
  if (RuleOf(node) == LayoutRule::kConversion) return IntAttrOr(node, "axis", -1);
  const bool counts = RuleOf(node) == LayoutRule::kAxis || RuleOf(node) == LayoutRule::kJoin;
  return counts ? AxisOf(node, rank) : -1;
}

// The frame of a node that counts along one dimension; none where there is nothing to count.
std::optional<Frame> AlongAxis(Frame frame, int64_t axis) {
  const Shape& box = frame.shapes[frame.largest];
  if (axis < 0 || box[axis] == 1) return std::nullopt;
  frame.whole.assign(box.size(), false);
  frame.whole[axis] = true;
  return frame;
}

std::optional<Frame> FrameOf(const LayoutNode& n) {
  const Node& node = n.node;
  Frame frame;
  const size_t result = node.inputs.size();
  for (size_t i = 0; i < n.value_count(); ++i) frame.shapes.push_back(n.shape(i));
  const Shape box = n.shape(RuleOf(node) == LayoutRule::kPad ? result : 0);
  frame.whole.assign(box.size(), false);
  switch (RuleOf(node)) {
    case LayoutRule::kBroadcast:
      frame.largest = result;
      for (Shape& shape : frame.shapes) shape = LeftPadded(shape, n.shape(result).size());
      frame.whole.assign(n.shape(result).size(), false);
      return frame;
    case LayoutRule::kReduction:
      frame.shapes[result] = box;
      for (const int64_t axis : Ints(node, "axes")) frame.shapes[result][axis] = 1;
      return frame;
    case LayoutRule::kPad:
      frame.largest = result;
      for (size_t d = 0; d < box.size(); ++d) frame.whole[d] = box[d] != frame.shapes[0][d];
      return frame;
    case LayoutRule::kSlice:
      for (size_t d = 0; d < box.size(); ++d) frame.whole[d] = !TakesWhole(node, box, d);
      return frame;
    case LayoutRule::kJoin:
      frame.largest = result;
      return AlongAxis(std::move(frame), AxisCounted(node, box.size()));
    case LayoutRule::kConversion:
    case LayoutRule::kAxis:
      return AlongAxis(std::move(frame), AxisCounted(node, box.size()));
    case LayoutRule::kFixed:
    case LayoutRule::kElementwise:
    case LayoutRule::kReshape:
    case LayoutRule::kBatchNorm:
    case LayoutRule::kProduct:
      return std::nullopt;
  }
  return std::nullopt;
}

// Factors of the frame's layout, refined to its shape, with the dimensions that they belong to.
struct FrameLayout {
  Layout layout;
  Layout::Factors<int> dimensions;
};

std::optional<FrameLayout> RefinedFrame(const Frame& frame, const Layout& layout) {
  const Shape& box = frame.shapes[frame.largest];
  std::optional<Layout> refined = Refined(layout, box);
  if (!refined.has_value()) return std::nullopt;
  Layout::Factors<int> dimensions = DimensionsOf(*refined, box);
  for (size_t f = 1; f < dimensions.size(); ++f) {
    if (dimensions[f] == dimensions[f - 1] && frame.whole[dimensions[f]]) return std::nullopt;
  }
  return FrameLayout{*std::move(refined), std::move(dimensions)};
}

// What a value has in place of a factor of the frame.
int64_t PartOf(const Frame& frame, const FrameLayout& layout, size_t value, int factor) {
  const int d = layout.dimensions[factor];
  const int64_t dim = frame.shapes[value][d];
  return dim == frame.shapes[frame.largest][d] ? layout.layout.sizes[factor] : dim;
}

Layout LayoutInFrame(const Frame& frame, const FrameLayout& layout, size_t value) {
  Layout result;
  Layout::Factors<int> renamed(layout.layout.sizes.size(), -1);
  for (size_t f = 0; f < renamed.size(); ++f) {
    const int64_t part = PartOf(frame, layout, value, static_cast<int>(f));
    if (part == 1) continue;
    renamed[f] = static_cast<int>(result.sizes.size());
    result.sizes.push_back(part);
  }
  for (const int factor : layout.layout.order) {
    if (renamed[factor] >= 0) result.order.push_back(renamed[factor]);
  }
  return Canonical(result);
}

// The frame's layout from that of one value, where it has all of the frame's dimensions.
std::optional<Layout> Lifted(const Frame& frame, size_t value, const Layout& layout) {
  const Shape& box = frame.shapes[frame.largest];
  const Shape& shape = frame.shapes[value];
  std::optional<Layout> refined = Refined(layout, shape);
  if (!refined.has_value()) return std::nullopt;
  const Layout::Factors<int> dimensions = DimensionsOf(*refined, shape);
  for (size_t d = 0; d < box.size(); ++d) {
    if (shape[d] == box[d]) continue;
    if (shape[d] == 1) return std::nullopt;  // nobody knows where the dimension would be stored
    const auto factors = std::count(dimensions.begin(), dimensions.end(), static_cast<int>(d));
    if (factors != 1) return std::nullopt;
  }
  for (size_t f = 0; f < dimensions.size(); ++f) {
    const int d = dimensions[f];
    if (shape[d] != box[d]) refined->sizes[f] = box[d];
  }
  return Canonical(*refined);
}

bool CompleteFrame(const LayoutNode& n, NodeLayouts& layouts) {
  const std::optional<Frame> frame = FrameOf(n);
  if (!frame.has_value()) return false;
  std::optional<Layout> largest = layouts[frame->largest];
  for (size_t i = 0; i < layouts.size() && !largest.has_value(); ++i) {
    if (layouts[i].has_value()) largest = Lifted(*frame, i, *layouts[i]);
  }
  if (!largest.has_value()) return false;
  const std::optional<FrameLayout> layout = RefinedFrame(*frame, *largest);
  if (!layout.has_value() || layout->layout.sizes.size() > static_cast<size_t>(kMaxRank)) {
    return false;
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (!Agree(layouts[i], LayoutInFrame(*frame, *layout, i))) return false;
  }
  return true;
}

// The dimensions of the frame as it is stored: where no dimension is cut, those of the operator,
// with those of 1 in their places; else the factors alone.
struct StoredDimension {
  int dimension = 0;  // of the frame
  int factor = -1;    // -1: a dimension of 1
};

std::vector<StoredDimension> StoredDimensions(const Shape& box, const FrameLayout& layout) {
  std::vector<StoredDimension> stored;
  const auto wide = std::count_if(box.begin(), box.end(), [](int64_t dim) { return dim != 1; });
  const Layout::Factors<int>& order = layout.layout.order;
  if (wide == static_cast<int64_t>(order.size())) {
    size_t next = 0;
    for (size_t d = 0; d < box.size(); ++d) {
      if (box[d] == 1) {
        stored.push_back({static_cast<int>(d), -1});
      } else {
        stored.push_back({layout.dimensions[order[next]], order[next]});
        ++next;
      }
    }
    return stored;
  }
  for (const int factor : order) stored.push_back({layout.dimensions[factor], factor});
  return stored;
}

// A node of the frame kind, ready to be written.
class FrameWriter {
 public:
  FrameWriter(const LayoutNode& n, const NodeLayouts& layouts)
      : n_(n),
        frame_(*FrameOf(n)),
        layout_(*RefinedFrame(frame_, *layouts[frame_.largest])),
        stored_(StoredDimensions(frame_.shapes[frame_.largest], layout_)) {}

  std::vector<ValueId> Write(LayoutEmitter& emitter) const {
    const size_t operands = n_.node.inputs.size();
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < operands; ++i) inputs.push_back(emitter.Operand(i, OperandShape(i)));
    std::vector<TensorType> types;
    for (size_t i = operands; i < n_.value_count(); ++i) {
      types.push_back({n_.graph.type(n_.value(i)).dtype, ResultShape(i)});
    }
    Graph& graph = emitter.graph();
    return graph
        .node(
            graph.AddNode(n_.node.op, std::move(inputs), Attrs(), std::move(types), n_.node.source))
        .outputs;
  }

 private:
  int64_t SizeOf(size_t value, const StoredDimension& stored) const {
    return stored.factor < 0 ? 1 : PartOf(frame_, layout_, value, stored.factor);
  }

  Shape ShapeOf(size_t value) const {
    Shape shape;
    for (const StoredDimension& stored : stored_) shape.push_back(SizeOf(value, stored));
    return shape;
  }

  Shape OperandShape(size_t value) const {
    Shape shape = ShapeOf(value);
    // Broadcasting adds leading dimensions by itself.
    if (RuleOf(n_.node) == LayoutRule::kBroadcast) {
      const auto wide = std::find_if(shape.begin(), shape.end(), [](int64_t d) { return d != 1; });
      const auto spare =
          static_cast<std::ptrdiff_t>(shape.size()) -
          static_cast<std::ptrdiff_t>(std::min(n_.shape(value).size(), shape.size()));
      shape.erase(shape.begin(), shape.begin() + std::min(spare, wide - shape.begin()));
    }
    return shape;
  }

  bool IsReduced(const StoredDimension& stored) const {
    if (RuleOf(n_.node) != LayoutRule::kReduction) return false;
    const std::vector<int64_t>& axes = Ints(n_.node, "axes");
    return std::find(axes.begin(), axes.end(), stored.dimension) != axes.end();
  }

  Shape ResultShape(size_t value) const {
    Shape shape;
    for (const StoredDimension& stored : stored_) {
      if (!IsReduced(stored)) shape.push_back(SizeOf(value, stored));
    }
    return shape;
  }

  AttrMap Attrs() const {
    const Node& node = n_.node;
    AttrMap attrs = node.attrs;
    const int64_t axis = AxisCounted(node, frame_.shapes[frame_.largest].size());
    if (axis >= 0) {
      for (size_t j = 0; j < stored_.size(); ++j) {
        if (stored_[j].dimension == axis) attrs["axis"] = static_cast<int64_t>(j);
      }
    } else if (RuleOf(node) == LayoutRule::kReduction) {
      std::vector<int64_t> axes;
      for (size_t j = 0; j < stored_.size(); ++j) {
        if (IsReduced(stored_[j])) axes.push_back(static_cast<int64_t>(j));
      }
      attrs["axes"] = std::move(axes);
      attrs["keep_dims"] = false;
    } else if (node.op == Op::kPad) {
      std::vector<int64_t> paddings;
      for (const StoredDimension& stored : stored_) {
        paddings.push_back(Ints(node, "paddings")[2 * stored.dimension]);
        paddings.push_back(Ints(node, "paddings")[2 * stored.dimension + 1]);
      }
      attrs["paddings"] = std::move(paddings);
    } else if (node.op == Op::kSlice) {
      std::vector<int64_t> begin, size, strides;
      for (const StoredDimension& stored : stored_) {
        const bool whole = frame_.whole[stored.dimension];
        begin.push_back(whole ? Ints(node, "begin")[stored.dimension] : 0);
        size.push_back(SizeOf(1, stored));
        strides.push_back(whole ? Ints(node, "strides")[stored.dimension] : 1);
      }
      attrs["begin"] = std::move(begin);
      attrs["size"] = std::move(size);
      attrs["strides"] = std::move(strides);
    }
    return attrs;
  }

  const LayoutNode& n_;
  const Frame frame_;
  const FrameLayout layout_;
  const std::vector<StoredDimension> stored_;
};

// ---- element by element, and reshapes -----------------------------------------------------------

bool CompleteSame(NodeLayouts& layouts) {
  const Layout layout = layouts[0].has_value() ? *layouts[0] : *layouts[1];
  return Agree(layouts[0], layout) && Agree(layouts[1], layout);
}

std::vector<ValueId> EmitElementwise(const LayoutNode& n, const NodeLayouts& layouts,
                                     LayoutEmitter& emitter) {
  const Shape shape = *StorageShape(*layouts[0], n.shape(0));
  return {emitter.graph().AddValue(n.node.op, {emitter.Operand(0, shape)}, n.node.attrs,
                                   {n.graph.type(n.value(1)).dtype, shape}, n.node.source)};
}

std::vector<ValueId> EmitReshape(const LayoutNode& n, const NodeLayouts& layouts,
                                 LayoutEmitter& emitter) {
  const Shape shape = *StorageShape(*layouts[1], n.shape(1));
  return {emitter.graph().AddValue(
      Op::kReshape, {emitter.Operand(0, *StorageShape(*layouts[0], n.shape(0)))},
      {{"shape", shape}}, {n.graph.type(n.value(0)).dtype, shape}, n.node.source)};
}

// ---- batch normalisation: the channels stay last ------------------------------------------------

bool CompleteBatchNorm(const LayoutNode& n, NodeLayouts& layouts) {
  const size_t result = n.node.inputs.size();
  if (!layouts[0].has_value() && !layouts[result].has_value()) return false;
  const Layout layout = layouts[0].has_value() ? *layouts[0] : *layouts[result];
  const std::optional<Layout> refined = Refined(layout, n.shape(0));
  const int64_t channels = n.shape(0).back();
  if (!refined.has_value() || channels == 1 || refined->sizes.back() != channels ||
      refined->order.back() != static_cast<int>(refined->sizes.size()) - 1) {
    return false;
  }
  for (size_t i = 1; i < result; ++i) {
    if (!Agree(layouts[i], NaturalLayout(channels))) return false;
  }
  return Agree(layouts[0], layout) && Agree(layouts[result], layout);
}

std::vector<ValueId> EmitBatchNorm(const LayoutNode& n, const NodeLayouts& layouts,
                                   LayoutEmitter& emitter) {
  const Shape shape = *StorageShape(*layouts[0], n.shape(0));
  std::vector<ValueId> inputs = {emitter.Operand(0, shape)};
  for (size_t i = 1; i < n.node.inputs.size(); ++i) {
    inputs.push_back(emitter.Operand(i, n.shape(i)));
  }
  return {emitter.graph().AddValue(Op::kBatchNorm, std::move(inputs), n.node.attrs,
                                   {n.graph.type(n.value(0)).dtype, shape}, n.node.source)};
}

// ---- products with a constant matrix ------------------------------------------------------------

// a [..., rows, inner] (or [..., inner, rows] where transposed) x a constant [inner, columns]: rows
// may be stored in any order, and inner and columns in any order of their own, which the constant
// follows, as long as they come last.
struct MatrixProduct {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t inner = 1;
  int64_t columns = 1;
  int64_t rows = 1;  // all of them
};

std::optional<MatrixProduct> ProductOf(const LayoutNode& n) {
  if (n.node.op != Op::kMatMul || n.graph.ConstantOf(n.node.inputs[1]) == nullptr ||
      n.shape(1).size() != 2) {
    return std::nullopt;
  }
  MatrixProduct product;
  product.transpose_a = BoolAttrOr(n.node, "transpose_a", false);
  product.transpose_b = BoolAttrOr(n.node, "transpose_b", false);
  product.inner = n.shape(1)[product.transpose_b ? 1 : 0];
  product.columns = n.shape(1)[product.transpose_b ? 0 : 1];
  product.rows = ElementCount(n.shape(2)) / product.columns;
  return product;
}

// A layout cut into the part that is stored first and the dimension `last`, all of whose factors
// are stored behind the others.
struct TailCut {
  Layout rows;
  Layout tail;
};

std::optional<TailCut> CutTail(const Layout& layout, const Shape& shape, int last) {
  const std::optional<Layout> refined = Refined(layout, shape);
  if (!refined.has_value()) return std::nullopt;
  const Layout::Factors<int> dimensions = DimensionsOf(*refined, shape);
  TailCut cut;
  Layout::Factors<int> renamed;
  for (size_t f = 0; f < dimensions.size(); ++f) {
    Layout& side = dimensions[f] == last ? cut.tail : cut.rows;
    renamed.push_back(static_cast<int>(side.sizes.size()));
    side.sizes.push_back(refined->sizes[f]);
  }
  for (const int factor : refined->order) {
    const bool in_tail = dimensions[factor] == last;
    if (!in_tail && !cut.tail.order.empty()) return std::nullopt;
    (in_tail ? cut.tail : cut.rows).order.push_back(renamed[factor]);
  }
  cut.rows = Canonical(cut.rows);
  cut.tail = Canonical(cut.tail);
  return cut;
}

// The layout of the matrix [a, b], or of [b, a] where b's elements come first in its own order but
// are stored last all the same.
Layout Joined(const Layout& a, const Layout& b, const Shape& a_dims, bool b_before_last) {
  Layout result;
  if (!b_before_last) {
    result = a;
    for (const int factor : b.order) {
      result.order.push_back(factor + static_cast<int>(a.sizes.size()));
    }
    result.sizes.insert(result.sizes.end(), b.sizes.begin(), b.sizes.end());
    return Canonical(result);
  }
  // b stands between a's leading dimensions and its last one.
  const std::optional<Layout> cut = Refined(a, a_dims);
  if (!cut.has_value()) return {};
  const Layout::Factors<int> dimensions = DimensionsOf(*cut, a_dims);
  const int last = static_cast<int>(a_dims.size()) - 1;
  const int leading = static_cast<int>(
      std::count_if(dimensions.begin(), dimensions.end(), [&](int d) { return d != last; }));
  const int between = static_cast<int>(b.sizes.size());
  result.sizes.assign(cut->sizes.begin(), cut->sizes.begin() + leading);
  result.sizes.insert(result.sizes.end(), b.sizes.begin(), b.sizes.end());
  result.sizes.insert(result.sizes.end(), cut->sizes.begin() + leading, cut->sizes.end());
  for (const int f : cut->order) result.order.push_back(f < leading ? f : f + between);
  for (const int f : b.order) result.order.push_back(f + leading);
  return Canonical(result);
}

// a's dimensions without inner: those of the result without columns, as far as a has them.
Shape RowDims(const LayoutNode& n, const MatrixProduct& product) {
  Shape dims = n.shape(0);
  dims.erase(dims.end() - (product.transpose_a ? 2 : 1));
  return dims;
}

bool CompleteProduct(const LayoutNode& n, NodeLayouts& layouts) {
  const std::optional<MatrixProduct> product = ProductOf(n);
  if (!product.has_value()) return false;
  const int a_last = static_cast<int>(n.shape(0).size()) - (product->transpose_a ? 2 : 1);
  const int d_last = static_cast<int>(n.shape(2).size()) - 1;
  std::optional<TailCut> a, d;
  if (layouts[0].has_value()) {
    a = CutTail(*layouts[0], n.shape(0), a_last);
    if (!a.has_value()) return false;
  }
  if (layouts[2].has_value()) {
    d = CutTail(*layouts[2], n.shape(2), d_last);
    if (!d.has_value()) return false;
  }
  if (!a.has_value() && !d.has_value()) return false;
  if (!a.has_value()) a = TailCut{d->rows, NaturalLayout(product->inner)};
  if (!d.has_value()) d = TailCut{a->rows, NaturalLayout(product->columns)};
  if (!(a->rows == d->rows)) return false;
  if (!(a->tail.natural() && d->tail.natural()) && !n.sole_weight) return false;
  const Shape rows = RowDims(n, *product);
  if (!Refined(a->rows, rows).has_value()) return false;
  return Agree(layouts[0], Joined(a->rows, a->tail, rows, product->transpose_a)) &&
         Agree(layouts[2], Joined(d->rows, d->tail, rows, false)) &&
         Agree(layouts[1], product->transpose_b ? Joined(d->tail, a->tail, {}, false)
                                                : Joined(a->tail, d->tail, {}, false));
}

std::vector<ValueId> EmitProduct(const LayoutNode& n, const NodeLayouts& layouts,
                                 LayoutEmitter& emitter) {
  const std::optional<MatrixProduct> product = ProductOf(n);
  Shape shape = *StorageShape(*layouts[0], n.shape(0));
  if (shape.size() < 2 || shape.back() != product->inner) shape = {product->rows, product->inner};
  const ValueId a = emitter.Operand(0, shape);
  shape.back() = product->columns;
  AttrMap attrs = n.node.attrs;
  attrs["transpose_a"] = false;
  return {emitter.graph().AddValue(Op::kMatMul, {a, emitter.PermutedWeight(1)}, std::move(attrs),
                                   {n.graph.type(n.value(2)).dtype, shape}, n.node.source)};
}

}  // namespace

bool CompleteLayouts(const LayoutNode& n, NodeLayouts& layouts) {
  const Op op = n.node.op;
  for (size_t i = 0; i < n.value_count(); ++i) {
    if (ElementCount(n.shape(i)) == 0) return false;
  }
  bool complete = false;
  if (IsElementwise(n.node) || op == Op::kReshape) {
    complete = CompleteSame(layouts);
  } else if (op == Op::kBatchNorm) {
    complete = CompleteBatchNorm(n, layouts);
  } else if (op == Op::kMatMul) {
    complete = CompleteProduct(n, layouts);
  } else {
    complete = CompleteFrame(n, layouts);
  }
  for (size_t i = 0; complete && i < n.value_count(); ++i) {
    complete = StorageShape(*layouts[i], n.shape(i)).has_value();
  }
  return complete;
}

std::vector<ValueId> EmitRelaid(const LayoutNode& n, const NodeLayouts& layouts,
                                LayoutEmitter& emitter) {
  if (n.node.op == Op::kReshape) return EmitReshape(n, layouts, emitter);
  if (n.node.op == Op::kBatchNorm) return EmitBatchNorm(n, layouts, emitter);
  if (n.node.op == Op::kMatMul) return EmitProduct(n, layouts, emitter);
  if (IsElementwise(n.node)) return EmitElementwise(n, layouts, emitter);
  return FrameWriter(n, layouts).Write(emitter);
}

int64_t HiddenTransposeElements(const Graph& graph, const Node& node) {
  if (node.op != Op::kMatMul || !BoolAttrOr(node, "transpose_a", false)) return 0;
  const Shape& shape = graph.type(node.inputs[0]).shape;
  if (graph.ConstantOf(node.inputs[0]) != nullptr) return 0;
  const bool vector = shape[shape.size() - 1] == 1 || shape[shape.size() - 2] == 1;
  return vector ? 0 : ElementCount(shape);
}

}  // namespace npuc
