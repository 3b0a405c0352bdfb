// Support vector machines of domain ai.onnx.ml: products of the rows with the vectors, a function
// of each, and sums of these. Source: onnx/docs/Operators-ml.md; order of coefficients, labels and
// scores as onnxruntime has them.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/onnx/import_ml.h"

namespace npuc::onnx {
namespace {

constexpr int64_t kMostClasses = 1 << 10;
constexpr int64_t kMostProducts = int64_t{1} << 24;

// The function of a row and a support vector.
struct Kernel {
  std::string type;
  double gamma = 0, offset = 0, degree = 0;
};

absl::StatusOr<Kernel> ReadKernel(NodeImporter& node) {
  Kernel kernel;
  ASSIGN_OR_RETURN(kernel.type, node.StringOr("kernel_type", "LINEAR"));
  ASSIGN_OR_RETURN(std::vector<double> params, node.FloatsOr("kernel_params", {}));
  params.resize(3, 0.0);
  kernel.gamma = params[0];
  kernel.offset = params[1];
  kernel.degree = params[2];
  const std::string& type = kernel.type;
  if (type == "LINEAR" || type == "POLY" || type == "RBF" || type == "SIGMOID") return kernel;
  return node.BadAttribute(
      absl::InvalidArgumentError(absl::StrCat("kernel_type ", Printable(type))));
}

absl::Status Mismatch(NodeImporter& node, absl::string_view what, size_t count, int64_t wanted) {
  return node.BadAttribute(absl::InvalidArgumentError(
      absl::StrCat("attribute '", what, "' has ", count, " numbers; it must have ", wanted)));
}

// The kernel's value of each row with each vector, [rows, vectors].
absl::StatusOr<ValueRef> Kernels(NodeImporter& node, const ValueRef& x, const Kernel& kernel,
                                 const std::vector<double>& vectors) {
  const int64_t rows = x->type.shape[0];
  const int64_t columns = x->type.shape[1];
  const int64_t count = static_cast<int64_t>(vectors.size()) / columns;
  if (kernel.type == "RBF") {
    // Differences first: their squares would be lost among those of the rows in 16 bits.
    ASSIGN_OR_RETURN(const ValueRef wide, node.Reshaped(x, {rows, 1, columns}));
    const Term row(node, wide);
    const Term vector(node, node.Floats({1, count, columns}, vectors, DType::kFloat32));
    const Term difference = row - vector;
    const Term distance =
        frontend::Reduced("ReduceSum", frontend::Apply("Square", difference), {2}, false);
    return frontend::Exp(distance * -kernel.gamma).value;
  }
  ASSIGN_OR_RETURN(
      const ValueRef turned,
      node.Transposed(node.Floats({count, columns}, vectors, DType::kFloat32), {1, 0}));
  const Term product(node, node.Emit("MatMul", {x, turned}));
  if (kernel.type == "LINEAR") return product.value;
  const Term scaled = product * kernel.gamma;
  const Term shifted = scaled + kernel.offset;
  if (kernel.type == "SIGMOID") return frontend::Tanh(shifted).value;
  return frontend::Pow(shifted, kernel.degree).value;
}

// Sums [rows, sums] of the kernels by coefficients [vectors, sums], and one more number for each.
absl::StatusOr<ValueRef> Decisions(NodeImporter& node, const ValueRef& x, const Kernel& kernel,
                                   const std::vector<double>& vectors,
                                   const std::vector<double>& coefficients,
                                   const std::vector<double>& rho) {
  const int64_t columns = x->type.shape[1];
  const auto sums = static_cast<int64_t>(rho.size());
  const int64_t count = static_cast<int64_t>(vectors.size()) / columns;
  ValueRef y;
  if (kernel.type == "LINEAR") {  // one vector for each sum
    if (columns * count * sums > kMostProducts) {
      return node.Fail(
          DiagnosticKind::kModelLimitExceeded,
          absl::StrCat(count, " support vectors of ", columns, " columns for ", sums, " decisions"),
          "export a linear model (LinearSVC)");
    }
    std::vector<double> weights(static_cast<size_t>(columns * sums), 0.0);
    for (int64_t v = 0; v < count; ++v) {
      for (int64_t c = 0; c < columns; ++c) {
        const double element = vectors[static_cast<size_t>(v * columns + c)];
        for (int64_t s = 0; s < sums; ++s) {
          weights[static_cast<size_t>(c * sums + s)] +=
              element * coefficients[static_cast<size_t>(v * sums + s)];
        }
      }
    }
    ASSIGN_OR_RETURN(
        y, node.Emit("MatMul", {x, node.Floats({columns, sums}, weights, DType::kFloat32)}));
  } else {
    ASSIGN_OR_RETURN(const ValueRef kernels, Kernels(node, x, kernel, vectors));
    ASSIGN_OR_RETURN(
        y,
        node.Emit("MatMul", {kernels, node.Floats({count, sums}, coefficients, DType::kFloat32)}));
  }
  return node.Emit("Add", {y, node.Floats({sums}, rho, DType::kFloat32)});
}

// The rows of the operand, and the support vectors, which must have as many columns.
struct Operands {
  ValueRef x;
  std::vector<double> vectors;
};
absl::StatusOr<Operands> ReadOperands(NodeImporter& node) {
  Operands operands;
  ASSIGN_OR_RETURN(operands.x, FeatureRows(node));
  ASSIGN_OR_RETURN(operands.vectors, node.FloatsOr("support_vectors", {}));
  const int64_t columns = operands.x->type.shape[1];
  if (operands.vectors.empty() || columns < 1 ||
      static_cast<int64_t>(operands.vectors.size()) % columns != 0) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("support vectors of ", operands.vectors.size(), " numbers for rows of ",
                     TypeToString(operands.x->type))));
  }
  return operands;
}

absl::Status ImportSvmRegressor(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const Kernel kernel, ReadKernel(node));
  ASSIGN_OR_RETURN(const Operands operands, ReadOperands(node));
  ASSIGN_OR_RETURN(const std::vector<double> coefficients, node.FloatsOr("coefficients", {}));
  ASSIGN_OR_RETURN(const std::vector<double> rho, node.FloatsOr("rho", {}));
  const int64_t count = static_cast<int64_t>(operands.vectors.size()) / operands.x->type.shape[1];
  if (static_cast<int64_t>(coefficients.size()) != count) {
    return Mismatch(node, "coefficients", coefficients.size(), count);
  }
  if (rho.size() != 1) return Mismatch(node, "rho", rho.size(), 1);
  ASSIGN_OR_RETURN(ValueRef y,
                   Decisions(node, operands.x, kernel, operands.vectors, coefficients, rho));
  ASSIGN_OR_RETURN(const bool is_one_class, node.BoolOr("one_class", false));
  if (is_one_class) {  // 1 inside, -1 outside
    ASSIGN_OR_RETURN(y, node.Emit("Greater", {y, node.ScalarLike(y, 0)}));
    const Term inside(node, CastTo(node, y, DType::kFloat32));
    const Term doubled = inside * 2.0;
    return node.SetOutput((doubled - 1.0).value);
  }
  return node.SetOutput(TransformedScores(node, y));
}

// Which vectors decide between two classes, and how: [vectors, pairs].
std::vector<double> PairCoefficients(const std::vector<double>& coefficients,
                                     const std::vector<int64_t>& per_class, int64_t count) {
  const auto classes = static_cast<int64_t>(per_class.size());
  const int64_t pairs = classes * (classes - 1) / 2;
  std::vector<int64_t> first(per_class.size(), 0);
  std::partial_sum(per_class.begin(), per_class.end() - 1, first.begin() + 1);
  std::vector<double> by_pair(static_cast<size_t>(count * pairs), 0.0);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      const auto take = [&](int64_t of, int64_t row) {
        const int64_t begin = first[static_cast<size_t>(of)];
        for (int64_t v = begin; v < begin + per_class[static_cast<size_t>(of)]; ++v) {
          by_pair[static_cast<size_t>(v * pairs + pair)] =
              coefficients[static_cast<size_t>(row * count + v)];
        }
      };
      take(i, j - 1);
      take(j, i);
    }
  }
  return by_pair;
}

// The class that wins most of the pairs, the first of equal ones.
absl::StatusOr<ValueRef> Winner(NodeImporter& node, const ValueRef& decisions, int64_t classes,
                                const std::vector<int64_t>& labels) {
  const int64_t pairs = decisions->type.shape[1];
  std::vector<double> votes(static_cast<size_t>(pairs * classes), 0.0);
  std::vector<double> otherwise(static_cast<size_t>(classes), 0.0);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      votes[static_cast<size_t>(pair * classes + i)] = 1;
      votes[static_cast<size_t>(pair * classes + j)] = -1;
      otherwise[static_cast<size_t>(j)] += 1;
    }
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("Greater", {decisions, node.ScalarLike(decisions, 0)}));
  ASSIGN_OR_RETURN(y, CastTo(node, y, DType::kFloat32));
  ASSIGN_OR_RETURN(y,
                   node.Emit("MatMul", {y, node.Floats({pairs, classes}, votes, DType::kFloat32)}));
  ASSIGN_OR_RETURN(y, node.Emit("Add", {y, node.Floats({classes}, otherwise, DType::kFloat32)}));
  return LabelsOfLargest(node, y, labels);
}

// The probabilities of two classes by their decision, fitted by Platt's function.
absl::StatusOr<ValueRef> Probabilities(NodeImporter& node, const ValueRef& decisions, double slope,
                                       double offset) {
  const Term decision(node, decisions);
  const Term exponent = decision * slope;
  const Term second = frontend::Sigmoid(exponent + offset);
  const Term first = 1.0 - second;
  RETURN_IF_ERROR(first.value.status());
  return node.Joined({*first.value, *second.value}, 1);
}

// Results: labels [rows], the decisions between each two classes [rows, pairs], or the
// probabilities of two classes.
absl::Status ImportSvmClassifier(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const Kernel kernel, ReadKernel(node));
  ASSIGN_OR_RETURN(const std::vector<int64_t> labels, node.IntsOr("classlabels_ints", {}));
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, node.StringsOr("classlabels_strings", {}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> per_class, node.IntsOr("vectors_per_class", {}));
  ASSIGN_OR_RETURN(const std::vector<double> coefficients, node.FloatsOr("coefficients", {}));
  ASSIGN_OR_RETURN(const std::vector<double> rho, node.FloatsOr("rho", {}));
  ASSIGN_OR_RETURN(const std::vector<double> prob, node.FloatsOr("prob_a", {}));
  ASSIGN_OR_RETURN(const std::vector<double> prob_b, node.FloatsOr("prob_b", {}));
  const auto classes = static_cast<int64_t>(labels.empty() ? texts.size() : labels.size());
  const bool has_probabilities = prob.size() == 1 && prob_b.size() == 1 && classes == 2;
  if (!prob.empty() && !has_probabilities) {
    return node.FailMode("probabilities that are fitted to pairs of more than two classes",
                         "train with probability=False, and export again");
  }
  if ((classes < 3 && !has_probabilities) || classes > kMostClasses) {
    return node.FailMode(
        absl::StrCat(classes, " classes without probabilities; read are 3 to ", kMostClasses),
        "train with probability=True, or export a regressor (SVR)");
  }
  ASSIGN_OR_RETURN(const Operands operands, ReadOperands(node));
  const int64_t count = static_cast<int64_t>(operands.vectors.size()) / operands.x->type.shape[1];
  const bool fits = static_cast<int64_t>(per_class.size()) == classes &&
                    std::all_of(per_class.begin(), per_class.end(),
                                [&](int64_t n) { return n >= 0 && n <= count; }) &&
                    std::accumulate(per_class.begin(), per_class.end(), int64_t{0}) == count;
  if (!fits) return Mismatch(node, "vectors_per_class", per_class.size(), classes);
  const int64_t pairs = classes * (classes - 1) / 2;
  if (static_cast<int64_t>(coefficients.size()) != (classes - 1) * count) {
    return Mismatch(node, "coefficients", coefficients.size(), (classes - 1) * count);
  }
  if (static_cast<int64_t>(rho.size()) != pairs) return Mismatch(node, "rho", rho.size(), pairs);
  if (count * pairs > kMostProducts) {
    return node.Fail(DiagnosticKind::kModelLimitExceeded,
                     absl::StrCat(count, " support vectors for ", pairs, " pairs of classes"),
                     "train on fewer classes, or with fewer support vectors");
  }
  ASSIGN_OR_RETURN(const ValueRef decisions,
                   Decisions(node, operands.x, kernel, operands.vectors,
                             PairCoefficients(coefficients, per_class, count), rho));
  std::vector<ValueRef> outputs(2);
  if (node.WantsOutput(0)) {
    ASSIGN_OR_RETURN(outputs[0], Winner(node, decisions, classes, labels));
  }
  if (has_probabilities) {
    ASSIGN_OR_RETURN(outputs[1], Probabilities(node, decisions, prob[0], prob_b[0]));
  } else {
    ASSIGN_OR_RETURN(outputs[1], TransformedScores(node, decisions));
  }
  return node.SetOutputs(std::move(outputs));
}

constexpr ImportRule kSvmRules[] = {{"ai.onnx.ml.SVMClassifier", ImportSvmClassifier},
                                    {"ai.onnx.ml.SVMRegressor", ImportSvmRegressor}};

}  // namespace

absl::Span<const ImportRule> SvmRules() { return kSvmRules; }

}  // namespace npuc::onnx
