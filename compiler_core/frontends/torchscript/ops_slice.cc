// Parts of tensors, and tensors put together.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/torchscript/choice.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/frontends/torchscript/truth.h"
#include "compiler_core/frontends/torchscript/views.h"

namespace npuc::pt {
namespace {

constexpr int64_t kMaxParts = 1 << 14;
constexpr int64_t kMaxWritten = 16;  // places computed at run time, or with one value

absl::StatusOr<int64_t> AxisOf(OpCall& call, int arg, const ValueRef& x, int64_t fallback) {
  ASSIGN_OR_RETURN(const int64_t dim, call.IntOr(arg, fallback));
  if (x->type.shape.empty()) return absl::InvalidArgumentError("a single number is indexed");
  return call.Axis(dim, RankOf(x));
}

absl::StatusOr<ScriptValue> ImportSlice(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(call, 1, x, 0));
  const int64_t size = x->type.shape[axis];
  ASSIGN_OR_RETURN(int64_t begin, call.IntOr(2, 0));
  ASSIGN_OR_RETURN(int64_t end, call.IntOr(3, std::numeric_limits<int64_t>::max()));
  ASSIGN_OR_RETURN(const int64_t step, call.IntOr(4, 1));
  if (step < 1) return absl::InvalidArgumentError("the step of a slice must be positive");
  begin = std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
  end = std::clamp<int64_t>(end < 0 ? end + size : end, begin, size);
  const int64_t count = (end - begin + std::min(step, size + 1) - 1) / std::min(step, size + 1);
  return MakeSlice(call, axis, begin, count, count <= 1 ? 1 : step, /*drop=*/false);
}

absl::StatusOr<int64_t> IndexOf(int64_t index, int64_t size) {
  return frontend::IndexFromFront(index, size, /*may_be_negative=*/true);
}

absl::StatusOr<ScriptValue> ImportSelect(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(call, 1, x, 0));
  ASSIGN_OR_RETURN(const int64_t given, call.Int(2));
  ASSIGN_OR_RETURN(const int64_t index, IndexOf(given, x->type.shape[axis]));
  return MakeSlice(call, axis, index, 1, 1, /*drop=*/true);
}

absl::StatusOr<ScriptValue> ImportNarrow(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(call, 1, x, 0));
  ASSIGN_OR_RETURN(int64_t begin, call.Int(2));
  ASSIGN_OR_RETURN(const int64_t count, call.Int(3));
  const int64_t size = x->type.shape[axis];
  if (begin < 0) begin += size;
  if (begin < 0 || count < 0 || begin > size || count > size - begin) {
    return absl::InvalidArgumentError("the part is outside of the tensor");
  }
  return MakeSlice(call, axis, begin, count, 1, /*drop=*/false);
}

// Consecutive parts of these sizes: one Split, whose results are views of the argument.
absl::StatusOr<ScriptValue> Parts(OpCall& call, int64_t axis, const std::vector<int64_t>& sizes,
                                  bool drop) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  if (static_cast<int64_t>(sizes.size()) > kMaxParts) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxParts, " parts"));
  }
  int64_t total = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > x->type.shape[axis]) {
      return absl::InvalidArgumentError(absl::StrCat("a part of ", size));
    }
    total += size;
  }
  if (total != x->type.shape[axis]) {
    return absl::InvalidArgumentError(
        absl::StrCat("the parts add up to ", total, ", the dimension is ", x->type.shape[axis]));
  }
  std::vector<ValueRef> values;
  if (sizes.size() > 1) {
    ASSIGN_OR_RETURN(values, call.EmitAll("Split", {x}, {{"axis", axis}, {"sizes", sizes}}));
  } else {
    values = {x};
  }
  std::vector<ScriptValue> results;
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    // As MakeSlice has it, but with the value that Split gave already.
    ScriptValue part;
    if (call.arg(0).tensor->attribute.empty() && sizes.size() < 64) {
      ASSIGN_OR_RETURN(part, MakeSliceOf(call, axis, begin, sizes[i], drop, values[i]));
    } else {
      ValueRef value = values[i];
      if (drop) {
        Shape shape = value->type.shape;
        shape.erase(shape.begin() + axis);
        ASSIGN_OR_RETURN(value, call.Reshaped(value, std::move(shape)));
      }
      part = call.Result(std::move(value));
      part.tensor->may_share = true;
    }
    results.push_back(part);
    begin += sizes[i];
  }
  return call.state().heap.List(std::move(results));
}

// split(x, size, dim), split(x, [sizes], dim)
absl::StatusOr<ScriptValue> ImportSplit(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(call, 2, x, 0));
  if (call.arg(1).IsSequence()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, call.Ints(1));
    return Parts(call, axis, sizes, /*drop=*/false);
  }
  ASSIGN_OR_RETURN(const int64_t size, call.Int(1));
  const int64_t whole = x->type.shape[axis];
  if (size < 1 || whole / size > kMaxParts) {
    return absl::InvalidArgumentError(absl::StrCat("parts of ", size));
  }
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < whole; at += size) sizes.push_back(std::min(size, whole - at));
  return Parts(call, axis, sizes, /*drop=*/false);
}

absl::StatusOr<ScriptValue> ImportChunk(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t chunks, call.Int(1));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(call, 2, x, 0));
  if (chunks < 1) return absl::InvalidArgumentError(absl::StrCat(chunks, " chunks"));
  const int64_t whole = x->type.shape[axis];
  const int64_t size =
      std::max<int64_t>((whole + std::min(chunks, whole + 1) - 1) / std::min(chunks, whole + 1), 1);
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < whole && sizes.size() <= kMaxParts; at += size) {
    sizes.push_back(std::min(size, whole - at));
  }
  return Parts(call, axis, sizes, /*drop=*/false);
}

// tensor_split(x, parts or borders, dim); hsplit, vsplit and dsplit name the dimension themselves
// and want parts of one size.
absl::StatusOr<ScriptValue> ImportTensorSplit(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  const bool is_plain = call.name() == "tensor_split";
  ASSIGN_OR_RETURN(int64_t axis, AxisOf(call, 2, x, 0));
  if (!is_plain) {
    const int64_t named = call.name() == "vsplit" ? 0 : call.name() == "hsplit" ? 1 : 2;
    const int64_t rank = RankOf(x);
    ASSIGN_OR_RETURN(axis, call.Axis(named == 1 && rank == 1 ? 0 : named, rank));
  }
  const int64_t whole = x->type.shape[axis];
  std::vector<int64_t> sizes;
  if (call.arg(1).IsSequence()) {
    ASSIGN_OR_RETURN(std::vector<int64_t> borders, call.Ints(1));
    borders.push_back(whole);
    int64_t at = 0;
    for (const int64_t border : borders) {
      const int64_t end = std::clamp<int64_t>(border < 0 ? border + whole : border, 0, whole);
      if (end < at) return absl::InvalidArgumentError("the borders of the parts must ascend");
      sizes.push_back(end - at);
      at = end;
    }
  } else {
    ASSIGN_OR_RETURN(const int64_t parts, call.Int(1));
    if (parts < 1 || parts > kMaxParts || (!is_plain && whole % parts != 0)) {
      return absl::InvalidArgumentError(absl::StrCat(parts, " parts of ", whole));
    }
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(whole / parts + (i < whole % parts));
  }
  return Parts(call, axis, sizes, /*drop=*/false);
}

absl::StatusOr<ScriptValue> ImportUnbind(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(call, 1, x, 0));
  if (x->type.shape[axis] > kMaxParts) return absl::InvalidArgumentError("too many parts");
  const std::vector<int64_t> sizes(static_cast<size_t>(x->type.shape[axis]), 1);
  return Parts(call, axis, sizes, /*drop=*/true);
}

absl::StatusOr<ScriptValue> ImportCat(OpCall& call) {
  ASSIGN_OR_RETURN(std::vector<ValueRef> values, call.Tensors(0));
  ASSIGN_OR_RETURN(const int64_t dim, call.IntOr(1, 0));
  // Empty vectors do not count, which is torch's own exception.
  values.erase(std::remove_if(values.begin(), values.end(),
                              [](const ValueRef& v) { return v->type.shape == Shape{0}; }),
               values.end());
  if (values.empty()) return absl::InvalidArgumentError("cat of nothing");
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, RankOf(values[0])));
  return call.Result(call.Joined(values, axis));
}

absl::StatusOr<ScriptValue> ImportStack(OpCall& call) {
  ASSIGN_OR_RETURN(std::vector<ValueRef> values, call.Tensors(0));
  if (values.empty()) return absl::InvalidArgumentError("stack of nothing");
  ASSIGN_OR_RETURN(const int64_t dim, call.IntOr(1, 0));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, RankOf(values[0]) + 1));
  for (ValueRef& value : values) {
    Shape shape = value->type.shape;
    if (axis > RankOf(value)) return absl::InvalidArgumentError("tensors of unlike ranks");
    shape.insert(shape.begin() + axis, 1);
    ASSIGN_OR_RETURN(value, call.ReshapedUnder("UnSqueeze", value, std::move(shape)));
  }
  return call.Result(call.Joined(values, axis));
}

// hstack along dimension 1 (0 of vectors), vstack along 0, dstack along 2; what has too few
// dimensions gets them: a vector [n] is a row [1, n] and [1, n, 1], a matrix [m, n, 1].
absl::StatusOr<ScriptValue> ImportHstack(OpCall& call) {
  ASSIGN_OR_RETURN(std::vector<ValueRef> values, call.Tensors(0));
  if (values.empty()) return absl::InvalidArgumentError("a stack of nothing");
  const int64_t wanted = call.name() == "hstack" ? 1 : call.name() == "vstack" ? 2 : 3;
  for (ValueRef& value : values) {
    Shape shape = value->type.shape;
    if (shape.empty()) shape = {1};
    if (wanted > 1 && shape.size() == 1) shape.insert(shape.begin(), 1);
    if (wanted > 2 && shape.size() == 2) shape.push_back(1);
    ASSIGN_OR_RETURN(value, call.Reshaped(value, std::move(shape)));
  }
  const int64_t axis = wanted == 1   ? std::min<int64_t>(RankOf(values[0]) - 1, 1)
                       : wanted == 2 ? 0
                                     : 2;
  return call.Result(call.Joined(values, axis));
}

absl::StatusOr<ScriptValue> ImportFlip(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, call.Ints(1));
  for (const int64_t dim : dims) {
    ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, RankOf(x)));
    if (x->type.shape.empty() || x->type.shape[axis] < 2) continue;
    const int64_t size = x->type.shape[axis];
    ASSIGN_OR_RETURN(x, call.Sliced(x, axis, size - 1, size, -1));
  }
  return call.Result(std::move(x));
}

absl::StatusOr<ScriptValue> ImportRoll(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> shifts, call.Ints(1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, call.IntsOr(2, {}));
  const Shape shape = x->type.shape;
  if (dims.empty()) {
    ASSIGN_OR_RETURN(x, call.Reshaped(x, {x->type.element_count()}));
  }
  const std::vector<int64_t> axes = dims.empty() ? std::vector<int64_t>{0} : dims;
  if (axes.size() != shifts.size()) return absl::InvalidArgumentError("unlike lists of dimensions");
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t axis, call.Axis(axes[i], RankOf(x)));
    const int64_t size = x->type.shape[axis];
    if (size < 1) continue;
    const int64_t shift = ((shifts[i] % size) + size) % size;
    if (shift == 0) continue;
    ASSIGN_OR_RETURN(const ValueRef tail, call.Sliced(x, axis, size - shift, shift));
    ASSIGN_OR_RETURN(const ValueRef head, call.Sliced(x, axis, 0, size - shift));
    ASSIGN_OR_RETURN(x, call.Joined({tail, head}, axis));
  }
  return call.Result(call.Reshaped(x, shape));
}

// Rows by constant indices: runs of neighbours are one slice.
absl::StatusOr<ValueRef> Gathered(OpCall& call, const ValueRef& x, int64_t axis,
                                  const Tensor& indices) {
  if (IsFloat(indices.dtype()) || indices.shape().size() > 1 ||
      indices.element_count() > kMaxParts || indices.element_count() < 1) {
    return absl::InvalidArgumentError("the indices must be a short vector of integers");
  }
  std::vector<ValueRef> parts;
  const int64_t count = indices.element_count();
  for (int64_t i = 0; i < count;) {
    ASSIGN_OR_RETURN(const int64_t first, IndexOf(indices.int_at(i), x->type.shape[axis]));
    int64_t run = 1;
    while (i + run < count && indices.int_at(i + run) == indices.int_at(i) + run &&
           first + run < x->type.shape[axis]) {
      ++run;
    }
    ASSIGN_OR_RETURN(parts.emplace_back(), call.Sliced(x, axis, first, run));
    i += run;
  }
  return call.Joined(parts, axis);
}

absl::StatusOr<ScriptValue> ImportIndexSelect(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(call, 1, x, 0));
  ASSIGN_OR_RETURN(const ValueRef named, call.TensorArg(2));
  if (!named->constant.has_value()) {
    ASSIGN_OR_RETURN(const ValueRef positions, Indices(call, named));
    return call.Result(frontend::LookedUp(call, x, positions, axis, /*may_be_negative=*/false));
  }
  const Tensor& indices = *named->constant;
  return call.Result(Gathered(call, x, axis, indices));
}

absl::StatusOr<ScriptValue> ImportGather(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t axis, AxisOf(call, 1, x, 0));
  ASSIGN_OR_RETURN(const ValueRef named, call.TensorArg(2));
  ASSIGN_OR_RETURN(const ValueRef indices, Indices(call, named));
  return call.Result(frontend::ElementsAt(call, x, indices, axis, /*may_be_negative=*/false));
}

// Positions that tensors of indices name in neighbouring dimensions from `axis` on, as if these
// were one. Negative indices count from the end.
absl::StatusOr<ValueRef> FlatIndices(OpCall& call, const Shape& shape, size_t axis,
                                     const std::vector<ValueRef>& tensors) {
  ValueRef flat;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t size = shape[axis + i];
    ASSIGN_OR_RETURN(ValueRef index, Indices(call, tensors[i]));
    if (index->constant.has_value()) {
      std::vector<int64_t> positions;
      for (int64_t k = 0; k < index->type.element_count(); ++k) {
        ASSIGN_OR_RETURN(positions.emplace_back(), IndexOf(index->constant->int_at(k), size));
      }
      index = call.MakeConstant(Tensor::FromInts(index->type.shape, positions));
    }
    if (flat != nullptr) {
      const ValueRef factor = call.MakeConstant(Tensor::FromInts({}, {size}));
      ASSIGN_OR_RETURN(flat, call.Emit("Mul", {flat, factor}));
      ASSIGN_OR_RETURN(index, call.Emit("Add", {flat, index}));
    }
    flat = index;
  }
  return flat;
}

// x[indices]: tensors of indices for neighbouring dimensions, the other dimensions whole.
absl::StatusOr<ScriptValue> ImportIndex(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  if (!call.arg(1).IsSequence()) return absl::InvalidArgumentError("the indices must be a list");
  const std::vector<ScriptValue>& items = call.arg(1).list->items;
  const Shape& shape = x->type.shape;
  std::vector<ValueRef> tensors;
  size_t first = 0;
  for (size_t axis = 0; axis < items.size() && axis < shape.size(); ++axis) {
    if (items[axis].IsNone()) continue;
    const bool follows = tensors.empty() || axis == first + tensors.size();
    if (!items[axis].Is(ScriptKind::kTensor) || !follows) {
      return call.FailMode("indexing of dimensions that are no neighbours",
                           "permute the tensor first, so that they are");
    }
    if (tensors.empty()) first = axis;
    ASSIGN_OR_RETURN(tensors.emplace_back(), call.Read(items[axis].tensor));
    if (IsTruth(tensors.back())) {
      return call.FailMode("indexing by a mask: the shape of its result depends on data",
                           "multiply by the mask, or use where");
    }
  }
  if (tensors.empty()) return call.Result(x);
  const bool is_known = std::all_of(tensors.begin(), tensors.end(), [](const ValueRef& tensor) {
    return tensor->constant.has_value();
  });
  if (tensors.size() == 1 && is_known && tensors[0]->type.shape.size() == 1) {
    return call.Result(Gathered(call, x, static_cast<int64_t>(first), *tensors[0]->constant));
  }
  ASSIGN_OR_RETURN(const ValueRef flat, FlatIndices(call, shape, first, tensors));
  Shape merged(shape.begin(), shape.begin() + static_cast<int64_t>(first));
  merged.push_back(1);
  for (size_t i = 0; i < tensors.size(); ++i) merged.back() *= shape[first + i];
  merged.insert(merged.end(), shape.begin() + static_cast<int64_t>(first + tensors.size()),
                shape.end());
  ASSIGN_OR_RETURN(const ValueRef table, call.Reshaped(x, merged));
  const int64_t axis = static_cast<int64_t>(first);
  if (!flat->constant.has_value()) {
    return call.Result(frontend::LookedUp(call, table, flat, axis, /*may_be_negative=*/false));
  }
  const Tensor& known = *flat->constant;
  ASSIGN_OR_RETURN(const ValueRef rows,
                   Gathered(call, table, axis, known.WithShape({known.element_count()})));
  Shape result = merged;
  result.erase(result.begin() + axis);
  result.insert(result.begin() + axis, known.shape().begin(), known.shape().end());
  return call.Result(call.Reshaped(rows, std::move(result)));
}

// x with the value at one position of a dimension; `along`: that dimension and those behind it, as
// ones.
absl::StatusOr<ValueRef> WrittenAt(OpCall& call, const ValueRef& place, const Shape& along,
                                   const ValueRef& value, const ValueRef& x) {
  std::vector<int64_t> positions(static_cast<size_t>(along[0]));
  if (place->constant.has_value()) {
    positions[static_cast<size_t>(place->constant->int_at(0))] = 1;
    return Chosen(call, call.MakeConstant(Tensor::FromInts(along, positions)), value, x);
  }
  std::iota(positions.begin(), positions.end(), 0);
  ASSIGN_OR_RETURN(const ValueRef index, call.Reshaped(place, {}));
  const ValueRef places =
      call.MakeConstant(CastTensor(Tensor::FromInts(along, positions), place->type.dtype));
  ASSIGN_OR_RETURN(const ValueRef is_there, call.Emit("Equal", {index, places}));
  return Chosen(call, is_there, value, x);
}

// x[mask] = value: the mask stands for x's dimensions from `axis` on.
absl::StatusOr<ValueRef> WrittenWhere(OpCall& call, const ValueRef& mask, size_t axis,
                                      const ValueRef& value, const ValueRef& x) {
  const Shape& shape = x->type.shape;
  const Shape& masked = mask->type.shape;
  const size_t end = axis + masked.size();
  if (end > shape.size() || !std::equal(masked.begin(), masked.end(), shape.begin() + axis)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a mask ", TypeToString(mask->type), " of ", TypeToString(x->type)));
  }
  Shape along = masked;
  along.resize(shape.size() - axis, 1);
  ASSIGN_OR_RETURN(const ValueRef condition, call.Reshaped(mask, std::move(along)));
  return Chosen(call, condition, value, x);
}

// x[indices] = values: known indices along one dimension, the other dimensions whole.
absl::StatusOr<ValueRef> WrittenAtKnown(OpCall& call, const ValueRef& indices, int64_t axis,
                                        const ValueRef& values, const ValueRef& x) {
  const Shape& shape = x->type.shape;
  const Tensor& known = *indices->constant;
  Shape written = shape;
  written.erase(written.begin() + axis);
  written.insert(written.begin() + axis, known.shape().begin(), known.shape().end());
  ASSIGN_OR_RETURN(ValueRef slices, frontend::BroadcastTo(call, values, written));
  written = shape;
  written[static_cast<size_t>(axis)] = known.element_count();
  ASSIGN_OR_RETURN(slices, call.Reshaped(slices, std::move(written)));
  std::vector<int64_t> sources(static_cast<size_t>(shape[static_cast<size_t>(axis)]));
  std::iota(sources.begin(), sources.end(), 0);
  const int64_t size = static_cast<int64_t>(sources.size());
  for (int64_t i = 0; i < known.element_count(); ++i) {
    sources[static_cast<size_t>(known.int_at(i))] = size + i;
  }
  ASSIGN_OR_RETURN(const ValueRef both, call.Joined({x, slices}, axis));
  return frontend::GatherAxis(call, both, axis, sources);
}

// x[index] = value: indices along one dimension, the other dimensions whole; or a mask.
absl::StatusOr<ScriptValue> ImportIndexPut(OpCall& call) {
  constexpr absl::string_view kFix = "write it with where, or by slices";
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const bool adds, call.BoolOr(3, false));
  if (!call.arg(1).IsSequence()) return absl::InvalidArgumentError("the indices must be a list");
  const std::vector<ScriptValue>& items = call.arg(1).list->items;
  const auto is_index = [](const ScriptValue& item) { return !item.IsNone(); };
  const auto named = std::find_if(items.begin(), items.end(), is_index);
  if (adds || std::count_if(items.begin(), items.end(), is_index) != 1 ||
      !named->Is(ScriptKind::kTensor)) {
    return call.FailMode("adding to elements, or writing by indices of several dimensions",
                         std::string(kFix));
  }
  const int64_t axis = named - items.begin();
  ASSIGN_OR_RETURN(const ValueRef index, call.Read(named->tensor));
  ASSIGN_OR_RETURN(ValueRef value, call.TensorOrNumber(2, x));
  if (value->constant.has_value()) {
    ASSIGN_OR_RETURN(value, ConvertedTo(call, value, TorchTypeOf(x)));
  }
  if (IsTruth(index) && value->type.element_count() == 1) {
    ASSIGN_OR_RETURN(value, call.Reshaped(value, {}));
    return call.Result(WrittenWhere(call, index, static_cast<size_t>(axis), value, x));
  }
  const int64_t count = index->type.element_count();
  const bool is_few = count <= kMaxWritten && value->type.element_count() == 1;
  const bool is_known =
      index->constant.has_value() && x->type.element_count() <= kMaxEvaluatedElements;
  if (axis >= RankOf(x) || IsTruth(index) || count < 1 || !(is_few || is_known)) {
    return call.FailMode(
        absl::StrCat("writing ", TypeToString(value->type), " by indices ",
                     TypeToString(index->type), " into ", TypeToString(x->type),
                     "; allowed are one value and ", kMaxWritten, " indices, or known indices"),
        std::string(kFix));
  }
  const int64_t size = x->type.shape[axis];
  ASSIGN_OR_RETURN(ValueRef flat,
                   FlatIndices(call, x->type.shape, static_cast<size_t>(axis), {index}));
  if (!is_few) return call.Result(WrittenAtKnown(call, flat, axis, value, x));
  ASSIGN_OR_RETURN(flat, call.Reshaped(flat, {count}));
  ASSIGN_OR_RETURN(value, call.Reshaped(value, {}));
  Shape along(x->type.shape.size() - static_cast<size_t>(axis), 1);
  along[0] = size;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const ValueRef place, call.Sliced(flat, 0, i, 1));
    ASSIGN_OR_RETURN(x, WrittenAt(call, place, along, value, x));
  }
  return call.Result(std::move(x));
}

constexpr OpRule kSliceRules[] = {
    {"cat", "tensors dim", ImportCat},
    {"chunk", "self chunks dim", ImportChunk},
    {"concat", "tensors dim", ImportCat},
    {"concatenate", "tensors dim", ImportCat},
    {"dsplit", "self indices_or_sections", ImportTensorSplit},
    {"dstack", "tensors", ImportHstack},
    {"flip", "self dims", ImportFlip},
    {"hsplit", "self indices_or_sections", ImportTensorSplit},
    {"hstack", "tensors", ImportHstack},
    {"gather", "self dim index sparse_grad", ImportGather},
    {"index", "self indices", ImportIndex},
    {"index_put", "self indices values accumulate", ImportIndexPut},
    {"index_select", "self dim index", ImportIndexSelect},
    {"narrow", "self dim start length", ImportNarrow},
    {"roll", "self shifts dims", ImportRoll},
    {"select", "self dim index", ImportSelect},
    {"slice", "self dim start end step", ImportSlice},
    {"split", "self split_size dim", ImportSplit},
    {"split_with_sizes", "self split_sizes dim", ImportSplit},
    {"stack", "tensors dim", ImportStack},
    {"tensor_split", "self indices_or_sections dim", ImportTensorSplit},
    {"unbind", "self dim", ImportUnbind},
    {"unsafe_chunk", "self chunks dim", ImportChunk},
    {"unsafe_split", "self split_size dim", ImportSplit},
    {"vsplit", "self indices_or_sections", ImportTensorSplit},
    {"vstack", "tensors", ImportHstack},
};

}  // namespace

absl::Span<const OpRule> SliceRules() { return kSliceRules; }

}  // namespace npuc::pt
