#ifndef NPUC_COMPILER_CORE_QUANT_TABLE_RUNS_H_
#define NPUC_COMPILER_CORE_QUANT_TABLE_RUNS_H_

#include <map>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/ops/stored_table.h"
#include "compiler_core/quant/state.h"

namespace npuc {

// Settles lut_bits of the layers whose function or softmax reads a table of a 16-bit operand, where
// the settings leave it to the compiler. Needs state.values.
void SettleTables(QuantState& state);

// Gives a quantized run the results that the core's tables give, in place of the functions' own.
// Layers whose tables have an entry for each number need none of it: their results differ by the
// rounding alone. Needs state.values and settled tables; the state must outlive it.
class TableRuns {
 public:
  explicit TableRuns(const QuantState& state);

  // Before `node` runs: computes the results of the layer that begins with it.
  void Before(NodeId node, const FloatExecutor& executor, const FloatExecutor::Arena& arena);
  // When `value` is there: puts in those results, if a table gives them.
  void Replace(ValueId id, absl::Span<float> value);

 private:
  struct Entry {
    int layer = 0;
    StoredTable table;
  };
  std::vector<float> FunctionOf(const Entry& entry, absl::Span<const float> operand) const;
  std::vector<float> SoftmaxOf(const Entry& entry,
                               absl::Span<const float> operand) const;  // or its logarithm

  const QuantState* state_;
  std::map<NodeId, Entry> tables_;                 // by the first node of the layer
  std::map<ValueId, std::vector<float>> results_;  // of layers that have begun
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_TABLE_RUNS_H_
