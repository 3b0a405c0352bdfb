#ifndef NPUC_COMPILER_CORE_OPS_STORED_TABLE_H_
#define NPUC_COMPILER_CORE_OPS_STORED_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// Tables of functions of stored numbers, as the integer cores have them (target/INTEGER_ISA.md,
// lookup): an entry for each number of 8 bits; 2^index_bits + 1 entries at equal distances over all
// numbers of 16 bits, linear between them.
struct StoredTable {
  int index_bits = 8;
  std::vector<int64_t> entries;
  // The greatest distance from the function at a number that the operand can be, in steps of the
  // result. Rounding alone makes half a step.
  double worst_steps = 0;
  // The least index_bits whose worst_steps is at most kMostTableSteps.
  int needed_bits = 8;

  // The result for the number `place` above the lowest of the operand's type.
  int64_t At(int64_t place) const;
};

// Half a step of the entries' rounding, half a step of the interpolation's, and half a step of the
// curve between two entries. A straight line keeps to it with any table.
inline constexpr double kMostTableSteps = 1.5;

// True where an integer core computes the layer by a table: a function of one value that does more
// than clamp.
bool IsTableFunction(const Graph& graph, const Layer& layer);

// The table of such a layer. settings.lut_bits chooses its size; kChosenLutBits: needed_bits, and
// at least `least_bits`. UNIMPLEMENTED as EvaluateFunction (layer_function.h).
absl::StatusOr<StoredTable> MakeFunctionTable(const Graph& graph, const Layer& layer,
                                              const QuantParams& from, const QuantParams& to,
                                              const LayerQuant& settings,
                                              int least_bits = kMinLutBits);

// The table of 2^30 exp(-scale * distance from the operand's largest number), for a softmax or its
// logarithm with results in steps of `result_step`. worst_steps counts these, but none finer than
// 2^-11, and one for roundings, as a function's does.
StoredTable MakeExponentialTable(const QuantParams& from, double result_step,
                                 const LayerQuant& settings, int least_bits = kMinLutBits);
inline constexpr double kExponentialOne = 1 << 30;

// The tables by which a LogSoftmax takes the logarithm of the largest share of a row, which is one
// by the sum of all e^(x - max x), from a share in 16 bits. The share of a long row can be so small
// that few bits of 16 are left: then max(share, cut) has one logarithm, min(share / cut, 1)
// another, and their sum is that of the share.
struct LargestShare {
  static constexpr double kPart = 0x1p-16;  // a share is stored as so many
  double step = 0;                          // of the logarithms
  double cut = 1;
  StoredTable of_large;
  StoredTable of_small;  // where cut is below 1, else without entries

  // The logarithm of the share in steps.
  int64_t Logarithm(double share) const;
};
LargestShare MakeLargestShare(int64_t row_length);

// The step in which a LogSoftmax has the distances of a row's numbers from the largest, 16 bits.
double DistanceStep(const QuantParams& from);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_STORED_TABLE_H_
