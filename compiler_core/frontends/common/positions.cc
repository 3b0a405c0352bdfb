#include "compiler_core/frontends/common/positions.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace npuc {

absl::StatusOr<Tensor> EvaluateNonZero(const Tensor& x) {
  if (x.element_count() > kMaxEvaluatedElements) {
    return absl::ResourceExhaustedError(
        absl::StrCat("positions of ", x.element_count(), " elements"));
  }
  const size_t rank = x.shape().size();
  std::vector<int64_t> positions;
  std::vector<int64_t> at(rank, 0);
  int64_t count = 0;
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const bool is_set = x.at(i) != 0;
    if (is_set) {
      positions.insert(positions.end(), at.begin(), at.end());
      ++count;
    }
    for (size_t d = rank; d-- > 0 && ++at[d] == x.shape()[d];) at[d] = 0;
  }
  return Tensor::FromInts({count, static_cast<int64_t>(rank)}, positions);
}

absl::StatusOr<Tensor> EvaluateSparseToDense(const Tensor& positions, const Shape& shape,
                                             const Tensor& values, const Tensor& otherwise) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t count = positions.shape().empty() ? 1 : positions.shape()[0];
  if (!IsInteger(positions.dtype()) || positions.element_count() != count * rank) {
    return absl::InvalidArgumentError(absl::StrCat("positions are ", TypeToString(positions.type()),
                                                   " of a shape of rank ", rank));
  }
  if (values.dtype() != otherwise.dtype() || otherwise.element_count() != 1 ||
      (values.element_count() != 1 && values.element_count() != count)) {
    return absl::InvalidArgumentError(absl::StrCat("values are ", TypeToString(values.type()),
                                                   " and ", TypeToString(otherwise.type())));
  }
  ASSIGN_OR_RETURN(const Tensor filled, EvaluateBroadcast(otherwise.WithShape({}), shape));
  std::vector<uint8_t> bytes(filled.bytes().begin(), filled.bytes().end());
  const auto size = static_cast<size_t>(SizeOf(values.dtype()));
  for (int64_t i = 0; i < count; ++i) {
    int64_t to = 0;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t position = positions.int_at(i * rank + d);
      const int64_t limit = shape[static_cast<size_t>(d)];
      if (position < 0 || position >= limit) {
        return absl::InvalidArgumentError(
            absl::StrCat("position ", position, " is outside a dimension of ", limit));
      }
      to = to * limit + position;
    }
    const size_t from = values.element_count() == 1 ? 0 : static_cast<size_t>(i);
    std::memcpy(bytes.data() + static_cast<size_t>(to) * size, values.bytes().data() + from * size,
                size);
  }
  return Tensor({values.dtype(), shape}, std::move(bytes));
}

}  // namespace npuc
