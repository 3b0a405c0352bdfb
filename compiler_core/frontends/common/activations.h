#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_ACTIVATIONS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_ACTIVATIONS_H_

#include <cstdint>
#include <vector>

#include "compiler_core/frontends/common/term.h"

namespace npuc::frontend {

// Activations and normalisations that no operator of the IR expresses, as formulas for every front
// end. The order of the nodes is part of what a compiled model is: change none without need.

// log(1 + e^x), without overflow.
Term Softplus(const Term& x);
// log(sigmoid(x))
Term LogSigmoid(const Term& x);
// x / (1 + |x|)
Term Softsign(const Term& x);
// x * sigmoid(x), and x * sigmoid(beta * x)
Term Silu(const Term& x);
Term Swish(const Term& x, double beta);
// x * tanh(softplus(x))
Term Mish(const Term& x);
// x - tanh(x)
Term Tanhshrink(const Term& x);
// max(0, min(1, x / 6 + 1 / 2)), and x times that.
Term HardSigmoid(const Term& x);
Term HardSwish(const Term& x);
// max(0, min(1, x)) by the function that the cores have.
Term HardUnit(const Term& x);
// e^x - 1 and log(1 + x)
Term Expm1(const Term& x);
Term Log1p(const Term& x);

// x where it is positive, else slope * x.
Term LeakyRelu(const Term& x, double slope);
Term LeakyRelu(const Term& x, const Term& slope);
// x where it is positive, else scale * (e^(x / width) - 1). Celu has its alpha as both.
Term Elu(const Term& x, double scale, double width);
// PyTorch's: scale * x where it is positive, else scale * alpha * (e^(x * input_scale) - 1). It
// flips the negative part by its product with -input_scale, where Elu uses Neg.
Term ScaledElu(const Term& x, double alpha, double scale, double input_scale);
// max(low, min(x, high)); a bound that is null is left out. Bounds of 0 and 6 are Relu and Relu6.
Term Clip(const Term& x, const ValueRef& low, const ValueRef& high);

// The error function, and 1 minus it, off by at most 3e-7.
Term Erf(const Term& x);
Term Erfc(const Term& x);
// x * P(X <= x) for a standard normal X.
Term Gelu(const Term& x);
// The approximation by tanh. Exporters of the three formats agree on the formula, not on how the
// cubic term is computed.
Term GeluByProducts(const Term& x);  // x * x * x
Term GeluByPower(const Term& x);     // x ^ 3
Term GeluBySquare(const Term& x);    // x * (1 + 0.044715 x ^ 2)

// (x - mean) / sqrt(variance + epsilon) over the axes, with what it was computed by.
struct Normalized {
  Term value;
  Term mean;
  Term scale;  // 1 / sqrt(variance + epsilon)
};
Normalized Normalize(const Term& x, const std::vector<int64_t>& axes, double epsilon);
// 1 / sqrt(mean of squares + epsilon) over the axes, which stay with one element each.
Term InverseDeviation(const Term& centred, const std::vector<int64_t>& axes, double epsilon);
// The sum of sizes (p = 1) or the Euclidean norm (p = 2) over the axes.
Term Norm(const Term& x, int64_t p, const std::vector<int64_t>& axes, bool keep_dims);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_ACTIVATIONS_H_
