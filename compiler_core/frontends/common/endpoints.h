#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_ENDPOINTS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_ENDPOINTS_H_

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/frontends/common/import_state.h"

namespace npuc::frontend {

// The one of the first 20,000 names that is nearest to a wrong one; empty where none is near.
std::string NearestName(absl::string_view name, absl::Span<const absl::string_view> known);
// The fix for a wrong name, as npuc::DidYouMean gives it, with NearestName's limits.
std::string SuggestName(absl::string_view name, absl::Span<const absl::string_view> known,
                        absl::string_view otherwise);

// Whether a declared shape contradicts the one that the model states, -1 where that is unknown.
bool Contradicts(absl::Span<const int64_t> stated, absl::Span<const int64_t> declared);

// A node, and how many of its operands had their turn.
using OrderingStep = std::pair<int, size_t>;
// The message for a node that one of those that wait for it needs: the circle, cut after eight
// names.
std::string CircleMessage(absl::Span<const OrderingStep> waiting, int node,
                          absl::FunctionRef<absl::string_view(int node)> name_of);

// What INPUT_OPS, OUTPUT_OPS and FP16_OUT_OPS name, for formats whose tensors have names: checked
// against the model, and every problem reported in the same words.
class Endpoints {
 public:
  // Whether the model has a tensor of this name, and what to do where it has none.
  using Exists = absl::FunctionRef<bool(absl::string_view name)>;
  using Suggest = absl::FunctionRef<std::string(absl::string_view name)>;

  struct Output {
    std::string name;
    size_t index = 0;  // in OUTPUT_OPS, or among the outputs that the model states
    bool fp16 = false;
  };

  // Both outlive it.
  Endpoints(const CompileOptions& options, ImportState* state)
      : options_(options), state_(*state) {}

  // False, and reported: the name of INPUT_OPS, or of another key, is no tensor, or had its turn.
  bool TakeInput(const std::string& name, Exists exists, Suggest suggest,
                 absl::string_view key = "INPUT_OPS");
  // False, and reported: the input's shape is none that the IR can hold.
  bool CheckShapeOf(absl::string_view input, const Shape& shape);
  // An input of INPUT_OPS whose shape is not the model's.
  void ReportConflict(const InputDecl& input, absl::string_view stated);
  // An input of a type that the IR does not have.
  void ReportType(absl::string_view input, absl::string_view type);
  // An input of INPUT_OPS that no output depends on.
  void ReportUnused(absl::string_view name);
  // An output that is an input, so that nothing is computed.
  void ReportInputAsOutput(absl::string_view name);
  // Those of OUTPUT_OPS, or where it is left out, those that the model states; without the ones
  // that were reported.
  std::vector<Output> TakeOutputs(const std::vector<std::string>& stated, Exists exists,
                                  Suggest suggest);

 private:
  void MarkFp16(std::vector<Output>& outputs);

  const CompileOptions& options_;
  ImportState& state_;
  std::set<std::string> inputs_;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_ENDPOINTS_H_
