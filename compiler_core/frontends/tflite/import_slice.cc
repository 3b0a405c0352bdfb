// Operators that cut, pad or pick.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

// [rank, 2] constant paddings as before, after of each dimension.
absl::StatusOr<std::vector<int64_t>> Paddings(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Tensor tensor, node.Constant(1, "paddings"));
  if (!IsInteger(tensor.dtype()) || tensor.shape() != Shape{node.rank(0), 2}) {
    return absl::InvalidArgumentError(absl::StrCat("paddings are ", TypeToString(tensor.type())));
  }
  std::vector<int64_t> paddings;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    paddings.push_back(tensor.int_at(i));
    if (paddings.back() < 0 || paddings.back() > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("a padding of ", paddings.back()));
    }
  }
  return paddings;
}

absl::Status ImportPad(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  ASSIGN_OR_RETURN(std::vector<int64_t> paddings, Paddings(node));
  double fill = 0;
  if (node.has(2)) {
    ASSIGN_OR_RETURN(const Tensor value, node.Constant(2, "value"));
    if (value.element_count() != 1) return absl::InvalidArgumentError("the value is no scalar");
    fill = value.at(0);
  }
  return node.SetOutput(node.Padded(node.input(0), std::move(paddings), fill));
}

// Mode 0 leaves the border out, 1 repeats it.
absl::Status ImportMirrorPad(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const auto* options, node.Required(node.raw().options_as_MirrorPadOptions()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, Paddings(node));
  return node.SetOutput(
      frontend::MirrorPadded(node, node.input(0), paddings, options->mode() != 0));
}

absl::Status SetParts(NodeImporter& node, int operand, int64_t axis,
                      const std::vector<int64_t>& sizes) {
  if (static_cast<int>(sizes.size()) != node.output_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat(sizes.size(), " parts for ", node.output_count(), " results"));
  }
  if (sizes.size() == 1) return node.SetOutput(node.input(operand));
  ASSIGN_OR_RETURN(std::vector<ValueRef> parts, node.EmitAll("Split", {node.input(operand)},
                                                             {{"axis", axis}, {"sizes", sizes}}));
  return node.SetOutputs(std::move(parts));
}

// Operands: axis, value.
absl::Status ImportSplit(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.ConstantInt(0, "axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(1)));
  const int64_t count = node.output_count();
  const int64_t size = node.shape(1)[static_cast<size_t>(axis)];
  if (size % count != 0) {
    return absl::InvalidArgumentError(absl::StrCat(size, " is split into ", count));
  }
  return SetParts(node, 1, axis, std::vector<int64_t>(static_cast<size_t>(count), size / count));
}

// Operands: value, sizes (one may be -1: the rest), axis.
absl::Status ImportSplitV(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, node.ConstantInts(1, "sizes"));
  ASSIGN_OR_RETURN(int64_t axis, node.ConstantInt(2, "axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  int64_t rest = node.shape(0)[static_cast<size_t>(axis)];
  for (const int64_t size : sizes) {
    if (size < -1 || size > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("a part of size ", size));
    }
    rest -= std::max<int64_t>(size, 0);
  }
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end()) *open = rest;
  return SetParts(node, 0, axis, sizes);
}

absl::Status ImportSlice(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(std::vector<int64_t> begin, node.ConstantInts(1, "begin"));
  ASSIGN_OR_RETURN(std::vector<int64_t> size, node.ConstantInts(2, "size"));
  const size_t rank = node.shape(0).size();
  if (begin.size() != rank || size.size() != rank) {
    return absl::InvalidArgumentError("begin and size need an entry for each dimension");
  }
  for (size_t i = 0; i < rank; ++i) {
    if (size[i] == -1) size[i] = node.shape(0)[i] - std::clamp<int64_t>(begin[i], 0, kMaxElements);
  }
  return node.EmitOutput("Slice", {node.input(0)},
                         {{"begin", std::move(begin)},
                          {"size", std::move(size)},
                          {"strides", std::vector<int64_t>(rank, 1)}});
}

// One dimension of a STRIDED_SLICE.
struct Stride {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
  bool has_begin = true;
  bool has_end = true;
};

// Where it begins and how many there are, by Python's rules.
std::pair<int64_t, int64_t> Resolved(const Stride& s, int64_t dim) {
  const int64_t low = s.step > 0 ? 0 : -1;
  const int64_t high = s.step > 0 ? dim : dim - 1;
  const auto place = [&](int64_t index) {
    return std::clamp(index < 0 ? index + dim : index, low, high);
  };
  const int64_t begin = s.has_begin ? place(s.begin) : (s.step > 0 ? low : high);
  const int64_t end = s.has_end ? place(s.end) : (s.step > 0 ? high : low);
  const int64_t span = s.step > 0 ? end - begin : begin - end;
  const int64_t step = s.step > 0 ? s.step : -s.step;
  return {begin, span <= 0 ? 0 : (span - 1) / step + 1};
}

struct StridedSlice {
  std::vector<int64_t> begin, size, strides;  // by dimension of the operand
  Shape shape;                                // of the result
};

// Walks the masks along the entries of begin, end and strides.
absl::StatusOr<StridedSlice> ReadStrides(NodeImporter& node,
                                         const fe::tflite::StridedSliceOptions& masks,
                                         const std::vector<int64_t>& begin,
                                         const std::vector<int64_t>& end,
                                         const std::vector<int64_t>& strides) {
  StridedSlice slice;
  const Shape& from = node.shape(0);
  const auto is_set = [](int32_t mask, size_t i) { return (mask >> i & 1) != 0; };
  size_t added = 0;
  for (size_t i = 0; i < begin.size(); ++i) added += is_set(masks.new_axis_mask(), i) ? 1 : 0;
  const auto keep = [&](size_t count) {
    for (size_t k = 0; k < count && slice.begin.size() < from.size(); ++k) {
      const int64_t dim = from[slice.begin.size()];
      slice.begin.push_back(0);
      slice.size.push_back(dim);
      slice.strides.push_back(1);
      slice.shape.push_back(dim);
    }
  };
  for (size_t i = 0; i < begin.size(); ++i) {
    if (is_set(masks.ellipsis_mask(), i)) {
      const size_t named = begin.size() - 1 - added;
      keep(from.size() - std::min(from.size(), named));
      continue;
    }
    if (is_set(masks.new_axis_mask(), i)) {
      slice.shape.push_back(1);
      continue;
    }
    if (slice.begin.size() == from.size()) {
      return absl::InvalidArgumentError("more entries than dimensions");
    }
    if (strides[i] == 0 || strides[i] < -kMaxElements || strides[i] > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("a stride of ", strides[i]));
    }
    const int64_t dim = from[slice.begin.size()];
    Stride s{begin[i], masks.offset() ? begin[i] + end[i] : end[i], strides[i],
             !is_set(masks.begin_mask(), i), !is_set(masks.end_mask(), i)};
    auto [first, count] = Resolved(s, dim);
    if (is_set(masks.shrink_axis_mask(), i)) {
      first = begin[i] < 0 ? begin[i] + dim : begin[i];
      count = 1;
    } else {
      slice.shape.push_back(count);
    }
    slice.begin.push_back(count == 0 ? 0 : first);
    slice.size.push_back(count);
    slice.strides.push_back(count <= 1 ? 1 : s.step);
  }
  keep(from.size());
  return slice;
}

absl::Status ImportStridedSlice(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(4, 4));
  ASSIGN_OR_RETURN(const auto* masks, node.Required(node.raw().options_as_StridedSliceOptions()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> begin, node.ConstantInts(1, "begin"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> end, node.ConstantInts(2, "end"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> strides, node.ConstantInts(3, "strides"));
  if (begin.size() != end.size() || begin.size() != strides.size() || begin.size() > 16) {
    return absl::InvalidArgumentError("begin, end and strides of unlike lengths, or beyond 16");
  }
  const auto is_huge = [](int64_t v) { return v < INT32_MIN || v > INT32_MAX; };
  if (std::any_of(begin.begin(), begin.end(), is_huge) ||
      std::any_of(end.begin(), end.end(), is_huge)) {
    return absl::InvalidArgumentError("an index beyond 32 bits");
  }
  ASSIGN_OR_RETURN(StridedSlice slice, ReadStrides(node, *masks, begin, end, strides));
  ASSIGN_OR_RETURN(const ValueRef cut, node.Emit("Slice", {node.input(0)},
                                                 {{"begin", std::move(slice.begin)},
                                                  {"size", std::move(slice.size)},
                                                  {"strides", std::move(slice.strides)}}));
  return node.SetOutput(node.Reshaped(cut, std::move(slice.shape)));
}

absl::Status ImportGather(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const auto* options = node.raw().options_as_GatherOptions();
  if (options != nullptr && options->batch_dims() != 0) {
    return node.FailMode("batch_dims", "gather with batch_dims = 0");
  }
  ASSIGN_OR_RETURN(const int64_t axis,
                   node.Axis(options == nullptr ? 0 : options->axis(), node.rank(0)));
  if (!node.IsConstant(1)) {
    return node.SetOutput(frontend::LookedUp(node, node.input(0), node.input(1), axis,
                                             /*may_be_negative=*/false));
  }
  ASSIGN_OR_RETURN(const Tensor tensor, node.Constant(1, "indices"));
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    if (!IsInteger(tensor.dtype()) || tensor.int_at(i) < 0 || tensor.int_at(i) >= dim) {
      return absl::InvalidArgumentError(absl::StrCat("an index outside a dimension of ", dim));
    }
    indices.push_back(tensor.int_at(i));
  }
  ASSIGN_OR_RETURN(const ValueRef picked, frontend::GatherAxis(node, node.input(0), axis, indices));
  Shape shape = node.shape(0);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, tensor.shape().begin(), tensor.shape().end());
  return node.SetOutput(node.Reshaped(picked, std::move(shape)));
}

// Operands: indices, table.
absl::Status ImportEmbeddingLookup(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (node.rank(1) < 1) return absl::InvalidArgumentError("the table is a scalar");
  return node.SetOutput(frontend::LookedUp(node, node.input(1), node.input(0), 0,
                                           /*may_be_negative=*/false));
}

absl::Status ImportGatherNd(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  return node.SetOutput(frontend::LookedUpByTuples(node, node.input(0), node.input(1),
                                                   /*may_be_negative=*/false));
}

// Operands: value, update, the position where the update begins. TensorFlow Lite moves an update
// that ends outside of the value into it.
absl::Status ImportDynamicUpdateSlice(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(std::vector<int64_t> begin, node.ConstantInts(2, "begin"));
  const Shape& whole = node.shape(0);
  const Shape& part = node.shape(1);
  const auto fits = [](int64_t inner, int64_t outer) { return inner <= outer; };
  if (begin.size() != whole.size() || part.size() != whole.size() ||
      !std::equal(part.begin(), part.end(), whole.begin(), fits)) {
    return absl::InvalidArgumentError(absl::StrCat("an update of ", TypeToString(node.type(1)),
                                                   " at ", begin.size(), " positions of ",
                                                   TypeToString(node.type(0))));
  }
  for (size_t k = 0; k < begin.size(); ++k) {
    begin[k] = std::clamp<int64_t>(begin[k], 0, whole[k] - part[k]);
  }
  // Grows the update dimension by dimension, the last one first, by what the value has around it.
  ValueRef grown = node.input(1);
  for (size_t axis = begin.size(); axis-- > 0;) {
    const auto slab = [&](int64_t from, int64_t to) {
      std::vector<int64_t> first(begin.begin(), begin.end());
      std::vector<int64_t> size(part.begin(), part.end());
      for (size_t k = axis + 1; k < begin.size(); ++k) {
        first[k] = 0;
        size[k] = whole[k];
      }
      first[axis] = from;
      size[axis] = to - from;
      return node.Emit("Slice", {node.input(0)},
                       {{"begin", std::move(first)},
                        {"size", std::move(size)},
                        {"strides", std::vector<int64_t>(begin.size(), 1)}});
    };
    std::vector<ValueRef> parts;
    const int64_t end = begin[axis] + part[axis];
    if (begin[axis] > 0) {
      ASSIGN_OR_RETURN(parts.emplace_back(), slab(0, begin[axis]));
    }
    parts.push_back(std::move(grown));
    if (end < whole[axis]) {
      ASSIGN_OR_RETURN(parts.emplace_back(), slab(end, whole[axis]));
    }
    ASSIGN_OR_RETURN(grown, node.Joined(parts, static_cast<int64_t>(axis)));
  }
  return node.SetOutput(std::move(grown));
}

// Operands: indices, updates, shape. The result is 0 where no index points: of a quantized one the
// stored integer, whatever its zero point (reference_ops::ScatterNd clears the result's bytes).
absl::Status ImportScatterNd(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const Tensor indices, node.Constant(0, "indices"));
  ASSIGN_OR_RETURN(const Shape shape, node.ResultShape(2));
  RETURN_IF_ERROR(CheckShape(shape));
  const Shape& listed = indices.shape();
  const int64_t depth = listed.empty() ? 0 : listed.back();
  const int64_t count = ElementCount(shape);
  if (!IsInteger(indices.dtype()) || depth < 1 || depth > static_cast<int64_t>(shape.size()) ||
      count > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError(absl::StrCat("the indices are ", TypeToString(indices.type()),
                                                   " for a result ", ShapeToString(shape)));
  }
  Shape wanted(listed.begin(), listed.end() - 1);
  wanted.insert(wanted.end(), shape.begin() + depth, shape.end());
  if (wanted != node.shape(1)) {
    return absl::InvalidArgumentError(absl::StrCat("the updates are ", TypeToString(node.type(1)),
                                                   "; the indices name ", ShapeToString(wanted)));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                   frontend::StartsOfTuples(indices, shape, /*batch_dims=*/0,
                                            /*may_be_negative=*/false));
  const int64_t updated = node.type(1).element_count();
  const int64_t size = starts.empty() ? 0 : updated / static_cast<int64_t>(starts.size());
  // Each element by its place in the zeros, which the updates follow.
  std::vector<int64_t> sources(static_cast<size_t>(count));
  std::iota(sources.begin(), sources.end(), int64_t{0});
  int64_t next = count;
  for (const int64_t start : starts) {
    for (int64_t j = 0; j < size; ++j) {
      int64_t& source = sources[static_cast<size_t>(start + j)];
      if (source >= count) {
        return node.FailMode("indices that name one place twice", "add the updates before");
      }
      source = next++;
    }
  }
  Tensor zeros = Tensor::Zeros({node.type(1).dtype, {count}});
  const std::optional<QuantParams>& to = node.output(0).quant;
  if (to.has_value() && IsFloat(node.type(1).dtype)) {
    const double zero = -static_cast<double>(to->zero_point[0]) * to->scale[0];
    zeros = Tensor::FromFloats(
        {count}, std::vector<float>(static_cast<size_t>(count), static_cast<float>(zero)));
  }
  ASSIGN_OR_RETURN(const ValueRef updates, node.Reshaped(node.input(1), {updated}));
  ASSIGN_OR_RETURN(const ValueRef both,
                   node.Joined({node.MakeConstant(std::move(zeros)), updates}, 0));
  return node.SetOutput(frontend::GatherFlat(node, both, sources, shape));
}

// Operands: indices, depth, the values on and off.
absl::Status ImportOneHot(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(4, 4));
  ASSIGN_OR_RETURN(const int64_t depth, node.ConstantInt(1, "depth"));
  const auto* options = node.raw().options_as_OneHotOptions();
  ASSIGN_OR_RETURN(const int64_t axis,
                   node.Axis(options == nullptr ? -1 : options->axis(), node.rank(0) + 1));
  return node.SetOutput(frontend::OneHotOf(node, node.input(0), depth, node.input(3), node.input(2),
                                           axis, /*may_be_negative=*/false));
}

// Elements along the named axes from last to first.
absl::Status ImportReverse(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.ConstantInts(1, "axes"));
  ASSIGN_OR_RETURN(axes, node.Axes(std::move(axes), node.rank(0)));
  ValueRef x = node.input(0);
  for (const int64_t axis : axes) {
    const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
    if (dim < 2) continue;
    ASSIGN_OR_RETURN(x, node.Sliced(x, axis, dim - 1, dim, -1));
  }
  return node.SetOutput(std::move(x));
}

constexpr ImportRule kSliceRules[] = {
    {"DYNAMIC_UPDATE_SLICE", ImportDynamicUpdateSlice},
    {"EMBEDDING_LOOKUP", ImportEmbeddingLookup},
    {"GATHER", ImportGather},
    {"GATHER_ND", ImportGatherNd},
    {"MIRROR_PAD", ImportMirrorPad},
    {"ONE_HOT", ImportOneHot},
    {"PAD", ImportPad},
    {"PADV2", ImportPad},
    {"REVERSE_V2", ImportReverse},
    {"SCATTER_ND", ImportScatterNd},
    {"SLICE", ImportSlice},
    {"SPLIT", ImportSplit},
    {"SPLIT_V", ImportSplitV},
    {"STRIDED_SLICE", ImportStridedSlice},
};

}  // namespace

absl::Span<const ImportRule> SliceRules() { return kSliceRules; }

}  // namespace npuc::tflite
