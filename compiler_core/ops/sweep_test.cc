// Every operator against values that numpy computed (make_golden.py), and inference against the
// reference kernels on mutations of those cases.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

struct GoldenCase {
  std::string name;
  Graph graph;
};

std::vector<GoldenCase> LoadGolden(absl::string_view op) {
  const char* root = std::getenv("NPUC_SOURCE_DIR");
  const std::filesystem::path folder = std::filesystem::path(root == nullptr ? "." : root) /
                                       "compiler_core/ops" / absl::AsciiStrToLower(op) / "golden";
  std::vector<GoldenCase> cases;
  if (!std::filesystem::exists(folder)) return cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(entry.path());
    const std::string text((std::istreambuf_iterator<char>(stream)),
                           std::istreambuf_iterator<char>());
    absl::StatusOr<Graph> graph = ParseGraph(text);
    EXPECT_TRUE(graph.ok()) << entry.path() << ": " << graph.status();
    if (graph.ok()) cases.push_back({entry.path().string(), *std::move(graph)});
  }
  std::sort(cases.begin(), cases.end(),
            [](const GoldenCase& a, const GoldenCase& b) { return a.name < b.name; });
  return cases;
}

// Integers exactly; floats to one unit in the last place of their own type, since numpy's
// functions and libm's may round a double's last bit differently.
void ExpectNear(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(TypeToString(got.type()), TypeToString(want.type()));
  const double ulp = got.dtype() == DType::kFloat16   ? 0x1p-10
                     : got.dtype() == DType::kFloat64 ? 0x1p-50
                                                      : 0x1p-23;
  for (int64_t i = 0; i < got.element_count(); ++i) {
    if (!IsFloat(got.dtype())) {
      EXPECT_EQ(got.int_at(i), want.int_at(i)) << "element " << i;
    } else if (std::isnan(want.at(i)) || std::isinf(want.at(i))) {
      EXPECT_TRUE(std::isnan(want.at(i)) ? std::isnan(got.at(i)) : got.at(i) == want.at(i))
          << "element " << i << ": " << got.at(i) << ", expected " << want.at(i);
    } else {
      // Sums of signed terms may cancel: 1e-6 of the terms' size covers their last places.
      EXPECT_NEAR(got.at(i), want.at(i), std::fabs(want.at(i)) * ulp + ulp * 1e-6)
          << "element " << i;
    }
  }
}

class OperatorSweep : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(OperatorSweep, MatchesNumpy) {
  const OpDef& def = *GetParam();
  // These two have no operands to compute from; op_test.cc covers them.
  if (def.op == Op::kPlaceholder || def.op == Op::kConst) return;
  const std::vector<GoldenCase> cases = LoadGolden(NameOf(def.op));
  ASSERT_FALSE(cases.empty()) << "no golden case for " << def.op;
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name);
    EXPECT_TRUE(VerifyGraph(golden.graph).ok()) << VerifyGraph(golden.graph);
    const absl::StatusOr<std::vector<Tensor>> values = RunReference(golden.graph, {});
    ASSERT_TRUE(values.ok()) << values.status();
    ASSERT_GE(values->size(), 2);
    for (size_t i = 0; i + 1 < values->size(); i += 2) ExpectNear((*values)[i], (*values)[i + 1]);
  }
}

// A random change of attributes and operand types; most are refused, the rest must run.
class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  int Below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }

  void MutateAttrs(AttrMap& attrs) {
    for (auto& [name, value] : attrs) {
      if (Below(3) != 0) continue;
      if (bool* flag = std::get_if<bool>(&value)) *flag = !*flag;
      if (int64_t* integer = std::get_if<int64_t>(&value)) *integer += Below(5) - 2;
      auto* list = std::get_if<std::vector<int64_t>>(&value);
      if (list == nullptr) continue;
      if (Below(4) == 0) list->push_back(Below(3));
      if (list->empty()) continue;
      int64_t& item = (*list)[Below(static_cast<int>(list->size()))];
      constexpr int64_t kExtremes[] = {std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max(), kMaxElements, -1};
      item = Below(8) == 0 ? kExtremes[Below(4)] : item + Below(5) - 2;
    }
  }
  void MutateTypes(std::vector<TensorType>& types) {
    constexpr DType kDTypes[] = {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt8,
                                 DType::kInt32,   DType::kInt64,   DType::kUint8,   DType::kBool};
    if (Below(3) == 0) {
      const DType dtype = kDTypes[Below(8)];
      for (TensorType& type : types) type.dtype = dtype;
    }
    if (Below(2) == 0) return;
    for (TensorType& type : types) {
      if (Below(4) == 0 && !type.shape.empty()) type.shape.erase(type.shape.begin());
      if (Below(4) == 0 && type.shape.size() < 5) type.shape.insert(type.shape.begin(), Below(3));
      if (Below(3) == 0 && !type.shape.empty()) {
        type.shape[Below(static_cast<int>(type.shape.size()))] = Below(6);
      }
    }
  }

 private:
  std::mt19937 random_;
};

TEST_P(OperatorSweep, InferredTypesAreThoseOfTheReference) {
  const OpDef& def = *GetParam();
  constexpr uint32_t kSeedsPerCase = 60;
  int ran = 0;
  int refused = 0;
  uint32_t first_seed = 0;
  for (const GoldenCase& golden : LoadGolden(NameOf(def.op))) {
    const auto found = std::find_if(golden.graph.nodes().begin(), golden.graph.nodes().end(),
                                    [&](const Node& node) { return node.op == def.op; });
    ASSERT_NE(found, golden.graph.nodes().end());
    first_seed += kSeedsPerCase;  // every case has its own mutations
    for (uint32_t seed = 0; seed < kSeedsPerCase; ++seed) {
      Mutator mutator(first_seed + seed);
      std::vector<TensorType> types;
      for (const ValueId input : found->inputs) types.push_back(golden.graph.type(input));
      Node node = *found;
      mutator.MutateAttrs(node.attrs);
      mutator.MutateTypes(types);
      Graph graph;
      node.inputs.clear();
      for (const TensorType& type : types) {
        node.inputs.push_back(graph.AddConst(Tensor::Zeros(type), {}));
      }
      node.outputs.clear();
      const absl::StatusOr<std::vector<TensorType>> inferred = InferNode(graph, node);
      const bool large = inferred.ok() && (*inferred)[0].element_count() > 100000;
      if (!inferred.ok()) {
        EXPECT_EQ(inferred.status().code(), absl::StatusCode::kInvalidArgument);
        EXPECT_FALSE(inferred.status().message().empty());
      }
      refused += inferred.ok() ? 0 : 1;
      if (!inferred.ok() || large) continue;
      std::vector<Tensor> operands;
      for (const TensorType& type : types) operands.push_back(Tensor::Zeros(type));
      const absl::StatusOr<std::vector<Tensor>> results = def.reference(node, operands);
      if (!results.ok()) {  // no kernel for the dtype, or an integer operation without a result
        EXPECT_FALSE(IsFloat(types[0].dtype)) << results.status();
        continue;
      }
      ASSERT_EQ(results->size(), inferred->size());
      for (size_t i = 0; i < results->size(); ++i) {
        EXPECT_EQ(TypeToString((*results)[i].type()), TypeToString((*inferred)[i]));
      }
      FactMap facts;
      const NodeId id = graph.AddNode(node.op, node.inputs, node.attrs, *inferred, {});
      CollectFacts(graph, graph.node(id), facts);
      ++ran;
    }
  }
  if (def.op == Op::kPlaceholder || def.op == Op::kConst) return;
  EXPECT_GT(ran, 5);
  EXPECT_TRUE(refused > 0 || def.op == Op::kIdentity || def.op == Op::kCast);
}

// True where results differ by more than a hundredth between points that are next to each other,
// with numbers for all operands but the first. The widest step of many is searched again in parts.
bool FindJump(const OpDef& def, const Node& node) {
  constexpr int kParts = 256;
  float low = -4.3f;
  float high = 4.1f;
  for (int pass = 0; pass < 4; ++pass) {
    std::vector<float> points;
    for (int i = 0; i <= kParts; ++i) points.push_back(low + (high - low) * i / kParts);
    std::vector<Tensor> operands(node.inputs.size(), Tensor::ScalarFloat(0.75));
    operands[0] = Tensor::FromFloats({kParts + 1}, points);
    const absl::StatusOr<std::vector<Tensor>> results = def.reference(node, operands);
    if (!results.ok()) return false;
    const Tensor& y = (*results)[0];
    double widest = 0.01;
    int at = -1;
    for (int i = 0; i < kParts; ++i) {
      const double step = std::fabs(y.at(i + 1) - y.at(i));
      if (!(step > widest) || !(std::fabs(y.at(i)) + std::fabs(y.at(i + 1)) < 1e3)) continue;
      widest = step;
      at = i;
    }
    if (at < 0) return false;
    low = points[static_cast<size_t>(at)];
    high = points[static_cast<size_t>(at) + 1];
  }
  return true;
}

TEST_P(OperatorSweep, AJumpIsKnownToThoseThatFollowFunctionsByPoints) {
  const OpDef& def = *GetParam();
  if (!def.traits.is_pointwise) GTEST_SKIP() << "no function of single elements";
  const bool is_known = def.op == Op::kFloor || def.op == Op::kGreater || def.op == Op::kRound;
  bool jumps = false;
  for (const GoldenCase& golden : LoadGolden(NameOf(def.op))) {
    for (const Node& node : golden.graph.nodes()) {
      const bool is_float =
          node.op == def.op && golden.graph.type(node.inputs[0]).dtype == DType::kFloat32;
      jumps = jumps || (is_float && FindJump(def, node));
    }
  }
  EXPECT_EQ(jumps, is_known) << "here, in IsContinuous() of quant/read_ranges.cc and, for a table "
                                "of all integers, in Jumps() of lowering/integer/elementwise.cc";
}

INSTANTIATE_TEST_SUITE_P(AllOps, OperatorSweep,
                         ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& info) { return std::string(NameOf(info.param->op)); });

}  // namespace
}  // namespace npuc
