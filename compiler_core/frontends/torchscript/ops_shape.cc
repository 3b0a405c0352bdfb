// Shapes: what is asked of them, and views that change them.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/quantized.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/frontends/torchscript/truth.h"
#include "compiler_core/frontends/torchscript/views.h"

namespace npuc::pt {
namespace {

absl::StatusOr<ScriptValue> ImportSize(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  if (!call.Has(1)) return call.state().heap.Ints(x->type.shape);
  ASSIGN_OR_RETURN(const int64_t dim, call.Int(1));
  if (x->type.shape.empty()) return absl::InvalidArgumentError("a number has no dimensions");
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, RankOf(x)));
  return ScriptValue::Int(x->type.shape[axis]);
}
absl::StatusOr<ScriptValue> ImportDim(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  return ScriptValue::Int(RankOf(x));
}
absl::StatusOr<ScriptValue> ImportNumel(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  return ScriptValue::Int(x->type.element_count());
}

// The number of a quantized type, by its integers.
int64_t QuantizedTypeNumber(DType dtype) {
  if (dtype == DType::kInt8) return 12;
  return dtype == DType::kUint8 ? 13 : 14;
}
absl::StatusOr<ScriptValue> ImportDtype(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  const QuantParams* const params = QuantizationOf(x);
  if (params != nullptr) return ScriptValue::Int(QuantizedTypeNumber(params->dtype));
  return ScriptValue::Int(TorchTypeOf(x));
}
absl::StatusOr<ScriptValue> ImportIsFloat(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  return ScriptValue::Bool(IsTorchFloat(TorchTypeOf(x)) && QuantizationOf(x) == nullptr);
}
absl::StatusOr<ScriptValue> ImportDevice(OpCall&) { return ScriptValue::Of(ScriptKind::kDevice); }
absl::StatusOr<ScriptValue> ImportFalse(OpCall&) { return ScriptValue::Bool(false); }
absl::StatusOr<ScriptValue> ImportLayout(OpCall&) { return ScriptValue::Int(0); }
absl::StatusOr<ScriptValue> ImportIsContiguous(OpCall& call) {
  RETURN_IF_ERROR(call.TensorArg(0).status());
  return ScriptValue::Bool(call.arg(0).tensor->is_contiguous);
}

// -1 in a shape stands for what is left.
absl::StatusOr<Shape> Resolved(Shape shape, int64_t elements) {
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && !open.has_value()) {
      open = i;
    } else if (shape[i] < 0 || shape[i] > kMaxElements ||
               __builtin_mul_overflow(known, shape[i], &known)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape ", ShapeToString(shape), " is out of range"));
    }
  }
  if (open.has_value()) {
    if (known == 0 || elements % known != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(elements, " elements do not reshape to ", ShapeToString(shape)));
    }
    shape[*open] = elements / known;
  }
  return shape;
}

// True for operators that give a view of any tensor that they take.
bool IsView(absl::string_view op) {
  return op == "view" || op == "view_as" || op == "_reshape_alias";
}

absl::StatusOr<ScriptValue> ImportReshape(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(std::vector<int64_t> wanted, call.Ints(1));
  ASSIGN_OR_RETURN(Shape shape, Resolved(std::move(wanted), x->type.element_count()));
  return MakeReshape(call, std::move(shape), "Reshape", IsView(call.name()));
}
absl::StatusOr<ScriptValue> ImportViewAs(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef other, call.TensorArg(1));
  return MakeReshape(call, other->type.shape, "Reshape", IsView(call.name()));
}

// Argument 1 as a shape: numbers, or a tensor that has it.
absl::StatusOr<Shape> WantedShape(OpCall& call) {
  if (!call.IsTensor(1)) return call.Ints(1);
  ASSIGN_OR_RETURN(const ValueRef other, call.TensorArg(1));
  return other->type.shape;
}

// The elements in their own order under another shape. Of more or fewer the memory's contents would
// count.
absl::StatusOr<ScriptValue> ImportResize(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const Shape shape, WantedShape(call));
  RETURN_IF_ERROR(CheckShape(shape));
  if (ElementCount(shape) != x->type.element_count() || !call.arg(0).tensor->is_contiguous) {
    return call.FailMode(absl::StrCat("a resize of ", TypeToString(x->type), " to ",
                                      ShapeToString(shape), ", which takes memory as it lies"),
                         "use reshape, a slice or torch.zeros");
  }
  return MakeReshape(call, std::move(shape), "Reshape", /*is_view=*/true);
}

absl::StatusOr<ScriptValue> ImportFlatten(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  const int64_t rank = RankOf(x);
  if (rank == 0) return MakeReshape(call, {1}, "Flatten", /*is_view=*/true);
  ASSIGN_OR_RETURN(const int64_t start, call.IntOr(1, 0));
  ASSIGN_OR_RETURN(const int64_t end, call.IntOr(2, -1));
  ASSIGN_OR_RETURN(const int64_t first, call.Axis(start, rank));
  ASSIGN_OR_RETURN(const int64_t last, call.Axis(end, rank));
  if (first > last) return absl::InvalidArgumentError("flatten begins behind its end");
  Shape shape(x->type.shape.begin(), x->type.shape.begin() + first);
  int64_t product = 1;
  for (int64_t i = first; i <= last; ++i) product *= x->type.shape[i];
  shape.push_back(product);
  shape.insert(shape.end(), x->type.shape.begin() + last + 1, x->type.shape.end());
  const bool one_dim = shape.size() <= 2;
  return MakeReshape(call, std::move(shape), "Flatten", /*is_view=*/false,
                     {{"fact_one_dim_per_item", one_dim}});
}

absl::StatusOr<ScriptValue> ImportUnflatten(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t dim, call.Int(1));
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, call.Ints(2));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, RankOf(x)));
  if (x->type.shape.empty()) return absl::InvalidArgumentError("a number has no dimensions");
  ASSIGN_OR_RETURN(const Shape inner, Resolved(std::move(sizes), x->type.shape[axis]));
  Shape shape = x->type.shape;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, inner.begin(), inner.end());
  return MakeReshape(call, std::move(shape), "Reshape", /*is_view=*/true);
}

// Without a dimension all of size 1 go; one of another size stays.
absl::StatusOr<ScriptValue> ImportSqueeze(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  std::vector<bool> goes(x->type.shape.size(), !call.Has(1));
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> dims, call.Ints(1));
    for (const int64_t dim : dims) {
      ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, RankOf(x)));
      if (!goes.empty()) goes[axis] = true;
    }
  }
  Shape shape;
  for (size_t i = 0; i < goes.size(); ++i) {
    if (!goes[i] || x->type.shape[i] != 1) shape.push_back(x->type.shape[i]);
  }
  return MakeReshape(call, std::move(shape), "Squeeze", /*is_view=*/true);
}

absl::StatusOr<ScriptValue> ImportUnsqueeze(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t dim, call.Int(1));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, RankOf(x) + 1));
  Shape shape = x->type.shape;
  shape.insert(shape.begin() + axis, 1);
  return MakeReshape(call, std::move(shape), "UnSqueeze", /*is_view=*/true);
}

absl::StatusOr<ScriptValue> ImportPermute(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(std::vector<int64_t> perm, call.Ints(1));
  std::vector<bool> seen(x->type.shape.size(), false);
  for (int64_t& axis : perm) {
    ASSIGN_OR_RETURN(axis, call.Axis(axis, RankOf(x)));
    if (perm.size() != seen.size() || seen[axis]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the permutation does not name each of ", RankOf(x), " dimensions once"));
    }
    seen[axis] = true;
  }
  if (perm.size() != seen.size()) return absl::InvalidArgumentError("the permutation is too short");
  return MakePermute(call, std::move(perm));
}

absl::StatusOr<ScriptValue> SwapAxes(OpCall& call, int64_t a, int64_t b) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < RankOf(x); ++i) perm.push_back(i);
  if (perm.size() > 1) std::swap(perm[a], perm[b]);
  return MakePermute(call, std::move(perm));
}
absl::StatusOr<ScriptValue> ImportTranspose(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t first, call.Int(1));
  ASSIGN_OR_RETURN(const int64_t second, call.Int(2));
  ASSIGN_OR_RETURN(const int64_t a, call.Axis(first, RankOf(x)));
  ASSIGN_OR_RETURN(const int64_t b, call.Axis(second, RankOf(x)));
  return SwapAxes(call, a, b);
}
// t of up to two dimensions, mT of the last two, numpy_T of all.
absl::StatusOr<ScriptValue> ImportT(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  const int64_t rank = RankOf(x);
  if (call.name() == "numpy_T") {
    std::vector<int64_t> perm;
    for (int64_t i = rank - 1; i >= 0; --i) perm.push_back(i);
    return MakePermute(call, std::move(perm));
  }
  if (rank < 2) return SwapAxes(call, 0, 0);
  if (call.name() == "t" && rank > 2)
    return absl::InvalidArgumentError("t() of more than a matrix");
  return SwapAxes(call, rank - 2, rank - 1);
}

absl::StatusOr<ScriptValue> ImportMovedim(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> sources, call.Ints(1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> targets, call.Ints(2));
  const int64_t rank = RankOf(x);
  std::vector<int64_t> perm(static_cast<size_t>(rank), -1);
  std::vector<bool> moved(static_cast<size_t>(rank), false);
  if (sources.size() != targets.size()) return absl::InvalidArgumentError("unlike lists of axes");
  for (size_t i = 0; i < sources.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t from, call.Axis(sources[i], rank));
    ASSIGN_OR_RETURN(const int64_t to, call.Axis(targets[i], rank));
    if (rank == 0 || moved[from] || perm[to] >= 0) {
      return absl::InvalidArgumentError("an axis is moved twice");
    }
    perm[to] = from;
    moved[from] = true;
  }
  int64_t next = 0;
  for (int64_t& axis : perm) {
    if (axis >= 0) continue;
    while (moved[next]) ++next;
    axis = next++;
  }
  return MakePermute(call, std::move(perm));
}

// -1 keeps a dimension.
absl::StatusOr<ScriptValue> ImportExpand(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(Shape shape, WantedShape(call));
  const Shape& from = x->type.shape;
  for (size_t i = 0; i < shape.size() && i < from.size(); ++i) {
    int64_t& size = shape[shape.size() - 1 - i];
    if (size == -1) size = from[from.size() - 1 - i];
  }
  if (shape == from) return call.arg(0);
  const auto view = [shape](OpCall& c, const ValueRef& base) { return c.Expanded(base, shape); };
  return MakeView(call, view, nullptr, false);
}

absl::StatusOr<ScriptValue> ImportRepeat(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(std::vector<int64_t> times, call.Ints(1));
  Shape shape = x->type.shape;
  if (call.name() == "tile" && times.size() < shape.size()) {
    times.insert(times.begin(), shape.size() - times.size(), 1);
  }
  if (times.size() < shape.size()) return absl::InvalidArgumentError("too few counts to repeat by");
  shape.insert(shape.begin(), times.size() - shape.size(), 1);
  ASSIGN_OR_RETURN(ValueRef y, call.Reshaped(x, shape));
  for (size_t axis = 0; axis < times.size(); ++axis) {
    if (times[axis] < 1 || times[axis] > frontend::kMaxGraphNodes) {
      return absl::InvalidArgumentError(absl::StrCat("repeats ", times[axis], " times"));
    }
    const std::vector<ValueRef> copies(static_cast<size_t>(times[axis]), y);
    ASSIGN_OR_RETURN(y, call.Joined(copies, static_cast<int64_t>(axis)));
  }
  return call.Result(std::move(y));
}

// Each element of an axis so many times in a row; of all elements where no axis is given.
absl::StatusOr<ScriptValue> ImportRepeatInterleave(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t times, call.Int(1));
  if (times < 1 || times > frontend::kMaxGraphNodes) {
    return absl::InvalidArgumentError(absl::StrCat("repeats ", times, " times"));
  }
  if (!call.Has(2)) {
    ASSIGN_OR_RETURN(x, call.Reshaped(x, {x->type.element_count()}));
  }
  Shape shape = x->type.shape;
  ASSIGN_OR_RETURN(const int64_t dim, call.IntOr(2, 0));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, static_cast<int64_t>(shape.size())));
  Shape split = shape;
  split.insert(split.begin() + axis + 1, 1);
  ASSIGN_OR_RETURN(x, call.Reshaped(x, split));
  split[axis + 1] = times;
  ASSIGN_OR_RETURN(x, call.Expanded(x, split));
  shape[axis] *= times;
  return call.Result(call.Reshaped(x, std::move(shape)));
}

// What gives the tensor itself: moves between devices, types and memory that the NPU does not have.
absl::StatusOr<ScriptValue> ImportSame(OpCall& call) {
  RETURN_IF_ERROR(call.TensorArg(0).status());
  return call.arg(0);
}
absl::StatusOr<ScriptValue> ImportCopied(OpCall& call) { return call.Result(call.TensorArg(0)); }
absl::StatusOr<ScriptValue> ImportContiguous(OpCall& call) {
  RETURN_IF_ERROR(call.TensorArg(0).status());
  if (call.arg(0).tensor->is_contiguous) return call.arg(0);
  return ImportCopied(call);
}

// The tensor itself where it has the type, else a new one.
absl::StatusOr<ScriptValue> Converted(OpCall& call, int64_t type) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef y, ConvertedTo(call, x, type));
  return y == x ? call.arg(0) : call.Result(y);
}

// to(self, type or tensor, ...), to(self, device, type, ...), and all by their names.
constexpr absl::string_view kTo =
    "self a b c d e dtype layout device pin_memory non_blocking copy memory_format";
constexpr int kToType = 6;

absl::StatusOr<ScriptValue> ImportTo(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  if (call.IsTensor(1)) {
    ASSIGN_OR_RETURN(const ValueRef other, call.TensorArg(1));
    return Converted(call, TorchTypeOf(other));
  }
  // The type by name, as the first argument, or behind the device. Other numbers are layouts.
  for (const int i : {kToType, 1, 2}) {
    if (call.arg(i).Is(ScriptKind::kInt)) return Converted(call, call.arg(i).integer);
  }
  return call.arg(0);
}
absl::StatusOr<ScriptValue> ImportTypeAs(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef other, call.TensorArg(1));
  return Converted(call, TorchTypeOf(other));
}
absl::StatusOr<ScriptValue> ImportFloat(OpCall& call) {
  if (call.name() == "half") return Converted(call, kTorchHalf);
  return Converted(call, call.name() == "double" ? kTorchDouble : kTorchFloat);
}
absl::StatusOr<ScriptValue> ImportCast(OpCall& call) {
  if (call.name() == "_cast_Int" || call.name() == "int") return Converted(call, 3);
  if (call.name() == "_cast_Long" || call.name() == "long") return Converted(call, kTorchLong);
  return Converted(call, kTorchFloat);
}

// A constant of one element as a number.
absl::StatusOr<ScriptValue> ImportItem(OpCall& call) {
  ASSIGN_OR_RETURN(const Tensor x, call.ConstantArg(0));
  if (x.element_count() != 1) return absl::InvalidArgumentError("item() of several elements");
  if (x.dtype() == DType::kBool) return ScriptValue::Bool(x.int_at(0) != 0);
  return IsFloat(x.dtype()) ? ScriptValue::Float(x.at(0)) : ScriptValue::Int(x.int_at(0));
}

absl::StatusOr<ScriptValue> ImportShapeTensor(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  const Shape shape = x->type.shape;
  return call.Result(
      call.MakeConstant(Tensor::FromInts({static_cast<int64_t>(shape.size())}, shape)));
}

// x.copy_(y): y, converted and repeated, in place of x.
absl::StatusOr<ScriptValue> ImportCopy(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef y, call.TensorOrNumber(1, x));
  ASSIGN_OR_RETURN(y, ConvertedTo(call, y, TorchTypeOf(x)));
  return call.Result(call.Expanded(y, x->type.shape));
}

constexpr OpRule kShapeRules[] = {
    {"FloatImplicit", "self", ImportItem},
    {"IntImplicit", "self", ImportItem},
    {"ScalarImplicit", "self", ImportItem},
    {"_cast_Float", "self non_blocking", ImportCast},
    {"_cast_Int", "self non_blocking", ImportCast},
    {"_cast_Long", "self non_blocking", ImportCast},
    {"_reshape_alias", "self size stride", ImportReshape},
    {"_shape_as_tensor", "self", ImportShapeTensor},
    {"alias", "self", ImportSame},
    {"broadcast_to", "self size", ImportExpand},
    {"clone", "self memory_format", ImportCopied},
    {"contiguous", "self memory_format", ImportContiguous},
    {"copy", "self src non_blocking", ImportCopy},
    {"cpu", "self", ImportSame},
    {"cuda", "self", ImportSame},
    {"data", "self", ImportSame},
    {"detach", "self", ImportSame},
    {"device", "self", ImportDevice},
    {"dim", "self", ImportDim},
    {"double", "self", ImportFloat},
    {"dtype", "self", ImportDtype},
    {"expand", "self size implicit", ImportExpand},
    {"expand_as", "self other", ImportExpand},
    {"flatten", "self start_dim end_dim", ImportFlatten},
    {"float", "self", ImportFloat},
    {"get_device", "self", ImportLayout},
    {"half", "self", ImportFloat},
    {"int", "self", ImportCast},
    {"is_complex", "self", ImportFalse},
    {"is_contiguous", "self", ImportIsContiguous},
    {"is_cuda", "self", ImportFalse},
    {"is_floating_point", "self", ImportIsFloat},
    {"is_mkldnn", "self", ImportFalse},
    {"is_nested", "self", ImportFalse},
    {"is_sparse", "self", ImportFalse},
    {"item", "self", ImportItem},
    {"layout", "self", ImportLayout},
    {"lift_fresh", "self", ImportSame},
    {"long", "self", ImportCast},
    {"mT", "self", ImportT},
    {"movedim", "self source destination", ImportMovedim},
    {"moveaxis", "self source destination", ImportMovedim},
    {"ndim", "self", ImportDim},
    {"numel", "self", ImportNumel},
    {"numpy_T", "self", ImportT},
    {"permute", "self dims", ImportPermute},
    {"ravel", "self", ImportFlatten},
    {"repeat", "self repeats", ImportRepeat},
    {"repeat_interleave", "self repeats dim output_size", ImportRepeatInterleave},
    {"requires_grad", "self", ImportFalse},
    {"requires_grad_", "self requires_grad", ImportSame},
    {"reshape", "self shape", ImportReshape},
    {"reshape_as", "self other", ImportViewAs},
    {"resize", "self size memory_format", ImportResize},
    {"resize_as", "self the_template memory_format", ImportResize},
    {"resolve_conj", "self", ImportSame},
    {"shape", "self", ImportSize},
    {"size", "self dim", ImportSize},
    {"squeeze", "self dim", ImportSqueeze},
    {"swapaxes", "self axis0 axis1", ImportTranspose},
    {"swapdims", "self dim0 dim1", ImportTranspose},
    {"t", "self", ImportT},
    {"tile", "self dims", ImportRepeat},
    {"to", kTo, ImportTo},
    {"transpose", "self dim0 dim1", ImportTranspose},
    {"type_as", "self other", ImportTypeAs},
    {"unflatten", "self dim sizes names", ImportUnflatten},
    {"unsafe_view", "self size", ImportReshape},
    {"_unsafe_view", "self size", ImportReshape},
    {"unsqueeze", "self dim", ImportUnsqueeze},
    {"view", "self size", ImportReshape},
    {"view_as", "self other", ImportViewAs},
};

}  // namespace

absl::Span<const OpRule> ShapeRules() { return kShapeRules; }

}  // namespace npuc::pt
