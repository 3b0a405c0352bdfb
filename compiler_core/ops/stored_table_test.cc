#include "compiler_core/ops/stored_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/quantize.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

struct Function {
  Graph graph;
  Layer layer;
};

Function FunctionOf(Op op) {
  Function function;
  const ValueId x = function.graph.AddInput("x", {DType::kFloat32, {4}});
  GraphBuilder builder(&function.graph);
  function.graph.AddOutput({"y", *builder.AddOne(op, {x}, {}, {"y", "Y"})});
  function.layer = GroupLayers(function.graph).back();
  return function;
}

QuantParams Params(DType dtype, int bits, double most) {
  QuantParams params;
  params.dtype = dtype;
  const bool is_unsigned = dtype == DType::kUint8 || dtype == DType::kUint16;
  params.qmax = (int64_t{1} << (is_unsigned ? bits : bits - 1)) - 1;
  params.qmin = is_unsigned ? 0 : -params.qmax - 1;
  params.scale = {most / static_cast<double>(params.qmax)};
  params.zero_point = {0};
  return params;
}

StoredTable TableOf(const Function& function, const QuantParams& from, const QuantParams& to,
                    int lut_bits = kChosenLutBits) {
  LayerQuant settings;
  settings.lut_bits = lut_bits;
  return *MakeFunctionTable(function.graph, function.layer, from, to, settings);
}

// The greatest distance from `real` at any number that the operand can be, in steps of the result.
double WorstOf(const StoredTable& table, const QuantParams& from, const QuantParams& to,
               double (*real)(double)) {
  double worst = 0;
  for (int64_t q = from.qmin; q <= from.qmax; ++q) {
    const double x = static_cast<double>(q) * from.scale[0];
    const double wanted = std::clamp(real(x) / to.scale[0], static_cast<double>(to.qmin),
                                     static_cast<double>(to.qmax));
    const auto got = static_cast<double>(table.At(q - LowestOf(from.dtype)));
    worst = std::max(worst, std::fabs(got - wanted));
  }
  return worst;
}

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double ReciprocalOf(double x) { return 1 / x; }
double LogOf(double x) { return std::log(x); }

// A table is as fine as the curve asks for, whichever part of the type the data's bits use.
TEST(StoredTable, KeepsToAStepOrSoAtEveryNumber) {
  const struct {
    Op op;
    double (*real)(double);
    QuantParams from, to;
  } cases[] = {
      {Op::kSigmoid, SigmoidOf, Params(DType::kInt16, 16, 8), Params(DType::kUint16, 16, 1)},
      {Op::kSigmoid, SigmoidOf, Params(DType::kInt16, 16, 60), Params(DType::kInt16, 16, 1)},
      {Op::kSigmoid, SigmoidOf, Params(DType::kInt16, 9, 6), Params(DType::kUint16, 9, 1)},
      {Op::kReciprocal, ReciprocalOf, Params(DType::kUint16, 16, 10),
       Params(DType::kUint16, 16, 50)},
      {Op::kLog, LogOf, Params(DType::kUint16, 16, 100), Params(DType::kInt16, 16, 8)},
      {Op::kSqrt, std::sqrt, Params(DType::kUint16, 12, 100), Params(DType::kUint16, 12, 10)},
  };
  for (const auto& [op, real, from, to] : cases) {
    SCOPED_TRACE(NameOf(op));
    const Function function = FunctionOf(op);
    const StoredTable table = TableOf(function, from, to);
    constexpr double kFloatRounding = 0.01;  // of the reference kernel
    EXPECT_LE(WorstOf(table, from, to, real), kMostTableSteps + kFloatRounding);
    EXPECT_NEAR(WorstOf(table, from, to, real), table.worst_steps, kFloatRounding);
    EXPECT_EQ(table.index_bits, table.needed_bits);
    if (table.index_bits > kMinLutBits) {
      const StoredTable coarser = TableOf(function, from, to, table.index_bits - 1);
      EXPECT_GT(coarser.worst_steps, kMostTableSteps);
    }
  }
}

TEST(StoredTable, StatedBitsAreObeyedAndTheirErrorMeasured) {
  const QuantParams from = Params(DType::kUint16, 16, 10);
  const QuantParams to = Params(DType::kUint16, 16, 50);
  const StoredTable table = TableOf(FunctionOf(Op::kReciprocal), from, to, 8);
  EXPECT_EQ(table.entries.size(), 257U);
  EXPECT_GT(table.worst_steps, 1000);
  EXPECT_GT(table.needed_bits, 12);
  // A function that jumps is right at its entries alone.
  EXPECT_EQ(TableOf(FunctionOf(Op::kRound), from, to).index_bits, 16);
}

TEST(StoredTable, AnEntryForEachNumberOfEightBits) {
  const QuantParams from = Params(DType::kInt8, 8, 6);
  const QuantParams to = Params(DType::kUint8, 8, 1);
  const StoredTable table = TableOf(FunctionOf(Op::kSigmoid), from, to);
  EXPECT_EQ(table.entries.size(), 256U);
  EXPECT_LE(WorstOf(table, from, to, SigmoidOf), 0.5 + 1e-4);
}

// A mask far below the other numbers leaves these few steps of a coarse table.
TEST(StoredTable, ExponentialsAreNearTheRealOnes) {
  for (const auto& [step, most_error] : {std::pair(0x1p-16, 0x1p-12), std::pair(0x1p-8, 0x1p-9)}) {
    for (const double most : {4.0, 50.0, 1000.0}) {
      const QuantParams from = Params(DType::kInt16, 16, most);
      const StoredTable table = MakeExponentialTable(from, step, {});
      EXPECT_LE(table.worst_steps, kMostTableSteps) << most;
      for (int64_t distance = 0; distance < 65536; distance += 7) {
        const double wanted = std::exp(-static_cast<double>(distance) * from.scale[0]);
        const double got = static_cast<double>(table.At(65535 - distance)) / kExponentialOne;
        ASSERT_NEAR(got, wanted, most_error + 1e-9) << most << " " << distance;
      }
    }
  }
}

}  // namespace
}  // namespace npuc
