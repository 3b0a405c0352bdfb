#include "compiler_core/passes/random_graphs_test_util.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ops/graph_builder.h"

namespace npuc {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed), builder_(&graph_, /*fold=*/false) {}

  Graph Make() {
    const Shape shapes[] = {{2, 3, 4}, {1, 4, 3, 2}, {6, 4}, {2, 3, 4}};
    for (int i = 0; i < 4; ++i) {
      values_.push_back(graph_.AddInput(absl::StrCat("x", i), {DType::kFloat32, shapes[i]}));
    }
    for (int i = 0; i < 28; ++i) AddNode(absl::StrCat("n", i));
    for (int i = 0; i < 3; ++i) {
      graph_.AddOutput({absl::StrCat("o", i), values_[values_.size() - 1 - Below(6)]});
    }
    return std::move(graph_);
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }
  ValueId Recent() {
    return values_[values_.size() - 1 - Below(std::min<size_t>(8, values_.size()))];
  }
  const Shape& shape(ValueId value) { return graph_.type(value).shape; }

  ValueId RandomConst(Shape shape) {
    std::vector<float> values(ElementCount(shape));
    for (float& value : values) value = 0.25f * static_cast<float>(static_cast<int>(Below(9)) - 4);
    return graph_.AddConst(Tensor::FromFloats(std::move(shape), values), {"c", "Const"});
  }

  void Add(Op op, std::vector<ValueId> inputs, AttrMap attrs, const std::string& name) {
    const auto results = builder_.Add(op, std::move(inputs), std::move(attrs), {name, ""});
    if (!results.ok()) return;  // shapes that do not fit
    for (const ValueId value : *results) {
      const int64_t count = graph_.type(value).element_count();
      if (count > 0 && count <= 400) values_.push_back(value);
    }
  }

  std::vector<int64_t> RandomPerm(size_t rank) {
    std::vector<int64_t> perm(rank);
    for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
    std::shuffle(perm.begin(), perm.end(), random_);
    return perm;
  }

  void AddTranspose(const std::string& name) {
    const ValueId x = Recent();
    const size_t rank = shape(x).size();
    std::vector<int64_t> perm = perms_[rank].empty() || Below(3) == 0
                                    ? RandomPerm(rank)
                                    : perms_[rank][Below(perms_[rank].size())];
    std::vector<int64_t> inverse(rank);
    for (size_t i = 0; i < rank; ++i) inverse[perm[i]] = static_cast<int64_t>(i);
    perms_[rank].push_back(inverse);
    Add(Op::kTranspose, {x}, {{"perm", std::move(perm)}}, name);
  }

  void AddReshape(const std::string& name) {
    const ValueId x = Recent();
    Shape to = shape(x);
    const size_t at = Below(to.size());
    if (Below(3) == 0) {
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(at), 1);
    } else if (Below(2) == 0 && at + 1 < to.size()) {
      to[at] *= to[at + 1];
      to.erase(to.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    } else if (to[at] % 2 == 0) {
      to[at] /= 2;
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(at) + Below(2), 2);
    }
    if (to.size() <= 5) Add(Op::kReshape, {x}, {{"shape", std::move(to)}}, name);
  }

  void AddBinary(const std::string& name) {
    const ValueId a = Recent();
    ValueId b = Recent();
    if (Below(2) == 0) {
      Shape part = shape(a);
      for (int64_t& dim : part) dim = Below(2) == 0 ? 1 : dim;
      part.erase(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(Below(part.size())));
      b = RandomConst(std::move(part));
    }
    const Op ops[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMaximum};
    const bool swap = Below(2) == 0;
    Add(ops[Below(4)], {swap ? b : a, swap ? a : b}, {}, name);
  }

  void AddPadOrSlice(const std::string& name) {
    const ValueId x = Recent();
    const size_t rank = shape(x).size();
    const size_t at = Below(rank);
    if (Below(2) == 0) {
      std::vector<int64_t> paddings(2 * rank, 0);
      paddings[2 * at] = static_cast<int64_t>(Below(3));
      paddings[2 * at + 1] = static_cast<int64_t>(Below(2));
      Add(Op::kPad, {x}, {{"paddings", std::move(paddings)}, {"value", 0.5}}, name);
      return;
    }
    std::vector<int64_t> begin(rank, 0), size = shape(x), strides(rank, 1);
    const int64_t dim = size[at];
    begin[at] = static_cast<int64_t>(Below(dim));
    strides[at] = Below(3) == 0 ? -1 : 1;
    size[at] = strides[at] < 0 ? begin[at] + 1 : dim - begin[at];
    Add(Op::kSlice, {x}, {{"begin", begin}, {"size", size}, {"strides", strides}}, name);
  }

  void AddReduceOrSoftmax(const std::string& name) {
    const ValueId x = Recent();
    const int64_t axis = static_cast<int64_t>(Below(shape(x).size()));
    if (Below(3) == 0) {
      Add(Op::kSoftmax, {x}, {{"axis", axis}}, name);
      return;
    }
    const Op ops[] = {Op::kReduceSum, Op::kReduceMean, Op::kReduceMax};
    if (shape(x).size() == 1) return;
    Add(ops[Below(3)], {x}, {{"axes", std::vector<int64_t>{axis}}, {"keep_dims", Below(2) == 0}},
        name);
  }

  void AddMatMul(const std::string& name) {
    const ValueId x = Recent();
    if (shape(x).size() < 2) return;
    const bool transpose_a = Below(3) == 0;
    const bool transpose_b = Below(2) == 0;
    const int64_t inner = shape(x)[shape(x).size() - (transpose_a ? 2 : 1)];
    const int64_t columns = 1 + static_cast<int64_t>(Below(6));
    const ValueId weight = RandomConst(transpose_b ? Shape{columns, inner} : Shape{inner, columns});
    Add(Op::kMatMul, {x, weight}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
        name);
  }

  void AddNode(const std::string& name) {
    const Op unary[] = {Op::kRelu, Op::kTanh, Op::kNeg, Op::kIdentity};
    switch (Below(12)) {
      case 0:
      case 1:
      case 2:
        return AddTranspose(name);
      case 3:
        return AddReshape(name);
      case 4:
      case 5:
        return AddBinary(name);
      case 6:
        return AddPadOrSlice(name);
      case 7:
        return AddReduceOrSoftmax(name);
      case 8:
        return AddMatMul(name);
      case 9: {
        const ValueId a = Recent();
        const int64_t axis = static_cast<int64_t>(Below(shape(a).size()));
        return Add(Op::kConcat, {a, Recent()}, {{"axis", axis}}, name);
      }
      case 10: {
        const ValueId a = Recent();
        const size_t axis = Below(shape(a).size());
        const int64_t dim = shape(a)[axis];
        return Add(Op::kSplit, {a},
                   {{"axis", static_cast<int64_t>(axis)},
                    {"sizes", std::vector<int64_t>{dim / 2, dim - dim / 2}}},
                   name);
      }
      default:
        return Add(unary[Below(4)], {Recent()}, {}, name);
    }
  }

  std::mt19937 random_;
  Graph graph_;
  GraphBuilder builder_;
  std::vector<ValueId> values_;
  std::vector<std::vector<int64_t>> perms_[kMaxRank + 1];  // by rank: inverses of those made
};

}  // namespace

Graph RandomTransposeGraph(uint32_t seed) { return RandomGraph(seed).Make(); }

}  // namespace npuc
