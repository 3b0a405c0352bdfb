#ifndef NPUC_COMPILER_CORE_SIM_KERNELS_H_
#define NPUC_COMPILER_CORE_SIM_KERNELS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/cmd/raw_forms.h"

namespace npuc {

// The simulator's arithmetic. Operands are pointers to fp16 elements, whose ranges the caller has
// checked. Where source and destination overlap, results are those of walking the rows in order
// (outer, then middle), each row being read whole before it is written; the matrix, convolution
// and transpose kernels read all of a before they write.

// Float value of every fp16 bit pattern.
const std::array<float, 65536>& HalfValues();

// fp16 result for every fp16 argument of a function of one value.
using UnaryTable = std::vector<uint16_t>;
UnaryTable MakeActivationTable(Activation activation);
UnaryTable MakeExpTable();
UnaryTable MakeLogTable();

// The operands of a vector command; nullptr where absent.
struct VectorOperands {
  const uint16_t* a = nullptr;
  const uint16_t* b = nullptr;
  const uint16_t* c = nullptr;
  uint16_t* d = nullptr;
};
// `table` belongs to activations, exp and log; nullptr for the others.
void RunVector(const VectorCommand& command, const VectorOperands& operands,
               const UnaryTable* table);

// A matrix [rows, columns] in panels of kPanel columns: panel by panel, row by row; missing columns
// are zero.
inline constexpr int64_t kPanel = 32;
struct PanelMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values;
  std::vector<float> bias;  // `columns` values, or empty
  void Resize(int64_t row_count, int64_t column_count);
  float& at(int64_t row, int64_t column) {
    return values[static_cast<size_t>((column / kPanel * rows + row) * kPanel + column % kPanel)];
  }
};

// d [columns] = fp16(sum over rows in order of a * m, in float32, then + bias)
void MultiplyRow(const float* a, const PanelMatrix& matrix, uint16_t* d);

void RunFullyConnected(const PanelMatrix& weights, const uint16_t* a, uint16_t* d);
void RunConvolution(const ConvolutionForm& form, const PanelMatrix& weights, const uint16_t* a,
                    uint16_t* d);
// `weights` as stored: per output channel the taps, then the bias where there is one.
void RunDepthwise(const DepthwiseForm& form, absl::Span<const float> weights, const uint16_t* a,
                  uint16_t* d);
void RunTranspose(const TransposeForm& form, const uint16_t* a, uint16_t* d);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_SIM_KERNELS_H_
