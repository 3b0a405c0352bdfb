#include "compiler_core/frontends/torchscript/layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pt {

absl::StatusOr<ValueRef> ToImage(OpCall& call, const ValueRef& x, int dims, ImageLayout& layout) {
  const auto rank = static_cast<int>(x->type.shape.size());
  if (rank != dims + 1 && rank != dims + 2) {
    return absl::InvalidArgumentError(absl::StrCat("the input is ", TypeToString(x->type),
                                                   "; it must have rank ", dims + 2, " or ",
                                                   dims + 1));
  }
  layout = {dims, rank == dims + 2};
  Shape shape = x->type.shape;
  if (!layout.has_batch) shape.insert(shape.begin(), 1);
  ASSIGN_OR_RETURN(ValueRef y, call.Reshaped(x, shape));
  if (dims == 2) return call.Transposed(y, {0, 2, 3, 1});
  ASSIGN_OR_RETURN(y, call.Transposed(y, {0, 2, 1}));
  return call.Reshaped(y, {shape[0], 1, shape[2], shape[1]});
}

absl::StatusOr<ValueRef> FromImage(OpCall& call, const ValueRef& y, const ImageLayout& layout) {
  ValueRef x = y;
  const Shape image = y->type.shape;
  if (layout.dims == 2) {
    ASSIGN_OR_RETURN(x, call.Transposed(x, {0, 3, 1, 2}));
  } else {
    ASSIGN_OR_RETURN(x, call.Reshaped(x, {image[0], image[2], image[3]}));
    ASSIGN_OR_RETURN(x, call.Transposed(x, {0, 2, 1}));
  }
  if (layout.has_batch) return x;
  return call.Reshaped(x, Shape(x->type.shape.begin() + 1, x->type.shape.end()));
}

absl::StatusOr<ValueRef> ChannelsToLast(OpCall& call, const ValueRef& x) {
  std::vector<int64_t> perm = {0};
  for (size_t i = 2; i < x->type.shape.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  return call.Transposed(x, std::move(perm));
}

absl::StatusOr<ValueRef> ChannelsFromLast(OpCall& call, const ValueRef& x) {
  const auto last = static_cast<int64_t>(x->type.shape.size()) - 1;
  std::vector<int64_t> perm = {0, last};
  for (int64_t i = 1; i < last; ++i) perm.push_back(i);
  return call.Transposed(x, std::move(perm));
}

}  // namespace npuc::pt
