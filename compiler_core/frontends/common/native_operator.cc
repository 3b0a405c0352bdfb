#include "compiler_core/frontends/common/native_operator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/split_mix.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/table.h"

namespace npuc::frontend {
namespace {

// The points of elementwise operators: 13 significant bits, two more than fp16 has, over the sizes
// that activations have. A straight line between two of them is nearer to a smooth function than
// fp16 numbers are to each other.
constexpr TableGrid kGrid = {-20, 20, 12};

// The operands that a library and a formula are compared on: uniform in low..high, and in each
// seventh place a whole number, 0 among them, where functions bend.
struct SeededRange {
  double low;
  double high;
};
constexpr SeededRange kRanges[] = {{-1, 1}, {-8, 8}, {0, 4}};

NativeTensor SeededTensor(const Shape& shape, size_t range, size_t operand) {
  SplitMix64 numbers(range * kMaxPluginNames + operand);
  const SeededRange& within = kRanges[range];
  NativeTensor tensor{shape, std::vector<float>(static_cast<size_t>(ElementCount(shape)))};
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    const double value = within.low + (within.high - within.low) * numbers.NextUniform();
    tensor.values[i] = static_cast<float>(i % 7 == 3 ? std::round(value) : value);
  }
  return tensor;
}

bool IsStated(const ValueRef& value) { return value->constant.has_value(); }

// One node whose operator has a library.
class NativeNode {
 public:
  NativeNode(Emitter* node, const PluginOp& op, absl::Span<const ValueRef> operands,
             absl::Span<const FormulaNumbers> attributes)
      : node_(*node), op_(op), operands_(operands), attributes_(attributes) {}

  absl::StatusOr<std::vector<ValueRef>> Run() {
    RETURN_IF_ERROR(CheckOperands());
    if (op_.has_formula()) {
      ASSIGN_OR_RETURN(std::vector<ValueRef> results,
                       op_.formula.Run(node_, operands_, attributes_));
      RETURN_IF_ERROR(Compare());
      return results;
    }
    if (std::all_of(operands_.begin(), operands_.end(), IsStated)) return Fold();
    if (op_.native->elementwise) return Tabulate();
    return node_.Fail(
        DiagnosticKind::kNativeUnusable,
        absl::StrCat("its operands are known at run time alone, and ", Place(),
                     ", says what it computes, which no core runs"),
        "give a formula beside the library; declare elementwise: true where it is a function of "
        "each element; or end the program before this node by OUTPUT_OPS");
  }

 private:
  std::string Place() const {
    return absl::StrCat("the library '", Printable(op_.native->path), "', named at line ", op_.line,
                        " of ", Printable(op_.file));
  }
  absl::Status FailLibrary(absl::string_view what) {
    return node_.Fail(DiagnosticKind::kNativeFailed,
                      absl::StrCat(Place(), ", cannot be used: ", what),
                      "correct the library; client/PLUGINS.md, 'Native operators', has its rules");
  }

  absl::Status CheckOperands() {
    int64_t elements = 0;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const TensorType& type = operands_[i]->type;
      const bool is_number = IsFloat(type.dtype) || IsStated(operands_[i]);
      const int64_t count = type.element_count();
      if (!is_number || count < 1 || count > kMaxNativeElements) {
        return node_.Fail(DiagnosticKind::kOperandMismatch,
                          absl::StrCat("operand ", i, " is ", TypeToString(type), ", and ", Place(),
                                       ", takes floats of 1 to ", kMaxNativeElements, " elements"),
                          "declare an operator without a library for it");
      }
      elements += count;
    }
    // Each call's operands, and results that may be as large.
    constexpr int64_t kCalls = 2 * std::size(kRanges);
    if (elements > kMaxNativeBytes / static_cast<int64_t>(sizeof(float)) / kCalls) {
      return node_.Fail(DiagnosticKind::kOperandMismatch,
                        absl::StrCat("the operands have ", elements, " elements together, and ",
                                     Place(), ", gets at most ", kMaxNativeBytes, " bytes"),
                        "declare an operator without a library for it");
    }
    return absl::OkStatus();
  }

  NativeCall MakeCall() const {
    NativeCall call{op_.op, {}, {}, op_.results.size()};
    for (size_t i = 0; i < op_.attributes.size(); ++i) {
      call.attributes.push_back({op_.attributes[i].name,
                                 static_cast<NativeAttribute::Type>(op_.attributes[i].type),
                                 attributes_[i].numbers});
    }
    return call;
  }

  absl::StatusOr<std::vector<std::vector<NativeTensor>>> RunCalls(
      absl::Span<const NativeCall> calls) {
    auto results = op_.native->library->Run(calls);
    if (results.ok()) return results;
    if (!absl::IsFailedPrecondition(results.status())) {
      return FailLibrary(results.status().message());
    }
    return node_.Fail(DiagnosticKind::kNativeUnusable,
                      absl::StrCat(Place(), ", cannot be run: ", results.status().message()),
                      "give a formula, and remove the line library");
  }

  // --- All operands are known --------------------------------------------------------------------

  absl::StatusOr<std::vector<ValueRef>> Fold() {
    NativeCall call = MakeCall();
    for (const ValueRef& operand : operands_) {
      call.operands.push_back({operand->type.shape, operand->constant->ToFloats()});
    }
    ASSIGN_OR_RETURN(std::vector<std::vector<NativeTensor>> results, RunCalls({call}));
    std::vector<ValueRef> values;
    for (NativeTensor& result : results[0]) {
      RETURN_IF_ERROR(CheckFinite(result));
      values.push_back(
          node_.MakeConstant(Tensor::FromFloats(std::move(result.shape), result.values)));
    }
    return values;
  }

  absl::Status CheckFinite(const NativeTensor& result) {
    for (size_t i = 0; i < result.values.size(); ++i) {
      if (std::isfinite(result.values[i])) continue;
      return FailLibrary(absl::StrCat("it gave ", result.values[i], " at ",
                                      IndexText(result.shape, i),
                                      ", or nothing; results must be finite"));
    }
    return absl::OkStatus();
  }

  static std::string IndexText(const Shape& shape, size_t flat) {
    std::vector<int64_t> index(shape.size());
    auto left = static_cast<int64_t>(flat);
    for (size_t axis = shape.size(); axis-- > 0; left /= shape[axis]) {
      index[axis] = left % shape[axis];
    }
    return absl::StrCat("[", absl::StrJoin(index, ","), "]");
  }

  // --- A function of each element ----------------------------------------------------------------

  // Three calls: all points; all in the other order; as many as the operand has, in its shape. A
  // function of each element gives one value for one point in all of them.
  absl::StatusOr<std::vector<ValueRef>> Tabulate() {
    const std::vector<float> points = TablePoints(kGrid);
    const std::vector<float> reversed(points.rbegin(), points.rend());
    const auto count = static_cast<int64_t>(points.size());
    const Shape& shape = operands_[0]->type.shape;
    std::vector<float> some(static_cast<size_t>(ElementCount(shape)));
    // A prime stride visits points of all sizes.
    const auto point_of = [&](size_t i) { return (i * 7919) % points.size(); };
    for (size_t i = 0; i < some.size(); ++i) some[i] = points[point_of(i)];
    std::vector<NativeCall> calls(3, MakeCall());
    calls[0].operands = {{{count}, points}};
    calls[1].operands = {{{count}, reversed}};
    calls[2].operands = {{shape, some}};
    ASSIGN_OR_RETURN(const std::vector<std::vector<NativeTensor>> results, RunCalls(calls));
    if (op_.results.size() != 1) {
      return FailLibrary("an elementwise operator has one result");
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      if (results[i][0].shape == calls[i].operands[0].shape) continue;
      return FailLibrary(absl::StrCat("it is declared elementwise, and of ",
                                      ShapeToString(calls[i].operands[0].shape), " makes ",
                                      ShapeToString(results[i][0].shape)));
    }
    std::vector<float> values = results[0][0].values;
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        return FailLibrary(absl::StrCat("it gave NaN for ", points[i],
                                        ", or nothing; an elementwise operator gives a number "
                                        "for each number"));
      }
    }
    RETURN_IF_ERROR(CheckElementwise(points, values, results[1][0].values,
                                     [&](size_t i) { return points.size() - 1 - i; }));
    RETURN_IF_ERROR(CheckElementwise(points, values, results[2][0].values, point_of));
    // A straight line to infinity has no points: the largest number stands for it.
    constexpr float kMost = std::numeric_limits<float>::max();
    for (float& value : values) value = std::clamp(value, -kMost, kMost);
    return node_.EmitAll("Table", operands_,
                         {{"values", Tensor::FromFloats({count}, values)},
                          {"lowest", kGrid.lowest},
                          {"highest", kGrid.highest},
                          {"bits", kGrid.bits}});
  }

  // Element i of `again` must be that of point_of(i).
  template <typename PointOf>
  absl::Status CheckElementwise(const std::vector<float>& points, const std::vector<float>& values,
                                const std::vector<float>& again, const PointOf& point_of) {
    for (size_t i = 0; i < again.size(); ++i) {
      const size_t point = point_of(i);
      if (again[i] == values[point]) continue;
      return FailLibrary(absl::StrCat("it is declared elementwise, and gave ", values[point],
                                      " and ", again[i], " for ", points[point],
                                      " in two places of a tensor"));
    }
    return absl::OkStatus();
  }

  // --- A formula, and the library as its reference -----------------------------------------------

  // The most that a result is off, in tolerances.
  struct Difference {
    double size = 0;
    size_t call = 0;
    size_t result = 0;
    size_t element = 0;
  };

  absl::Status Compare() {
    std::vector<NativeCall> calls;
    for (size_t range = 0; range < std::size(kRanges); ++range) {
      NativeCall call = MakeCall();
      for (size_t i = 0; i < operands_.size(); ++i) {
        const ValueRef& operand = operands_[i];
        call.operands.push_back(
            IsStated(operand) ? NativeTensor{operand->type.shape, operand->constant->ToFloats()}
                              : SeededTensor(operand->type.shape, range, i));
      }
      calls.push_back(std::move(call));
    }
    ASSIGN_OR_RETURN(const Graph graph, GraphOfFormula());
    ASSIGN_OR_RETURN(const std::vector<std::vector<NativeTensor>> results, RunCalls(calls));
    Difference worst;
    std::vector<std::vector<Tensor>> wanted;
    for (size_t i = 0; i < calls.size(); ++i) {
      std::vector<Tensor> inputs;
      for (size_t k = 0; k < operands_.size(); ++k) {
        if (IsStated(operands_[k])) continue;
        inputs.push_back(
            Tensor::FromFloats(calls[i].operands[k].shape, calls[i].operands[k].values));
      }
      ASSIGN_OR_RETURN(std::vector<Tensor> formula, RunReference(graph, inputs));
      RETURN_IF_ERROR(CompareShapes(formula, results[i]));
      TakeWorst(formula, results[i], i, worst);
      wanted.push_back(std::move(formula));
    }
    if (worst.size <= 1) return absl::OkStatus();
    return Report(worst, wanted[worst.call][worst.result], results[worst.call][worst.result],
                  calls[worst.call]);
  }

  // The formula as a graph whose inputs are the operands that are not known.
  absl::StatusOr<Graph> GraphOfFormula() {
    Graph graph;
    Diagnostics found;
    CompileOptions options;
    options.model_name = node_.state().file;
    ImportState state(&graph, &found, options, "");
    Emitter emitter(&state, node_.source());
    std::vector<ValueRef> operands;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const ValueRef& operand = operands_[i];
      const TensorType type = {DType::kFloat32, operand->type.shape};
      operands.push_back(IsStated(operand) ? operand
                                           : state.AddInput(absl::StrCat("operand", i), type));
    }
    const auto results = op_.formula.Run(emitter, operands, attributes_);
    if (results.ok()) {
      for (size_t i = 0; i < results->size(); ++i) {
        state.AddOutput(absl::StrCat("result", i), (*results)[i], false);
      }
    }
    if (results.ok() && !found.has_errors()) return graph;
    const absl::Status why = results.ok() ? found.ToStatus() : results.status();
    return node_.Fail(DiagnosticKind::kOperandMismatch,
                      absl::StrCat("the formula at line ", op_.line, " of ", Printable(op_.file),
                                   " cannot be compared with its library: ", why.message()),
                      "remove the line library, or correct the formula");
  }

  absl::Status CompareShapes(const std::vector<Tensor>& formula,
                             const std::vector<NativeTensor>& library) {
    for (size_t i = 0; i < formula.size(); ++i) {
      if (formula[i].shape() == library[i].shape) continue;
      return node_.Fail(
          DiagnosticKind::kNativeDiffers,
          absl::StrCat("result '", op_.results[i], "' is ", ShapeToString(formula[i].shape()),
                       " by the formula and ", ShapeToString(library[i].shape), " by ", Place()),
          "correct the one that is wrong");
    }
    return absl::OkStatus();
  }

  void TakeWorst(const std::vector<Tensor>& formula, const std::vector<NativeTensor>& library,
                 size_t call, Difference& worst) const {
    for (size_t k = 0; k < formula.size(); ++k) {
      for (size_t i = 0; i < library[k].values.size(); ++i) {
        const double a = formula[k].at(static_cast<int64_t>(i));
        const double b = library[k].values[i];
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        double size = std::fabs(a - b) / (op_.native->tolerance * std::max(1.0, std::fabs(a)));
        if (!std::isfinite(size)) size = std::numeric_limits<double>::infinity();
        if (size > worst.size) worst = {size, call, k, i};
      }
    }
  }

  // The difference with the operands in the same place, where they have the result's shape.
  absl::Status Report(const Difference& worst, const Tensor& formula, const NativeTensor& library,
                      const NativeCall& call) {
    std::vector<std::string> beside;
    for (size_t k = 0; k < call.operands.size(); ++k) {
      if (call.operands[k].shape != library.shape) continue;
      beside.push_back(
          absl::StrCat(op_.operands[k], " = ", call.operands[k].values[worst.element]));
    }
    const SeededRange& range = kRanges[worst.call];
    const std::string where =
        beside.empty() ? absl::StrCat("operands drawn from ", range.low, " to ", range.high)
                       : absl::StrJoin(beside, ", ");
    return node_.Fail(DiagnosticKind::kNativeDiffers,
                      absl::StrCat("result '", op_.results[worst.result], "' at ",
                                   IndexText(library.shape, worst.element), " is ",
                                   formula.at(static_cast<int64_t>(worst.element)),
                                   " by the formula and ", library.values[worst.element], " by ",
                                   Place(), ", for ", where, "; allowed is a difference of ",
                                   op_.native->tolerance, ", relative where values are above 1"),
                      "correct the one that is wrong, or set tolerance in the declaration");
  }

  Emitter& node_;
  const PluginOp& op_;
  const absl::Span<const ValueRef> operands_;
  const absl::Span<const FormulaNumbers> attributes_;
};

}  // namespace

absl::StatusOr<std::vector<ValueRef>> RunNative(Emitter& node, const PluginOp& op,
                                                absl::Span<const ValueRef> operands,
                                                absl::Span<const FormulaNumbers> attributes) {
  return NativeNode(&node, op, operands, attributes).Run();
}

}  // namespace npuc::frontend
