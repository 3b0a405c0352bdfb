#ifndef NPUC_COMPILER_CORE_LOWERING_SUPPORT_H_
#define NPUC_COMPILER_CORE_LOWERING_SUPPORT_H_

#include <string>

#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// Holds every node of a legalised graph against the core's operator list: nodes that came from the
// model (source.op set) must be listed for `framework` and keep every rule; nodes made by rewriting
// are free. Reports all offences, each with the rule, what was found, and the rule's place in the
// core's data file. Operators that this compiler rewrites into listed ones get a note, or with
// options.strict_ops are refused. Reads framework, model_name and strict_ops of the options.
void CheckSupport(const Graph& graph, const CoreSpec& core, const CompileOptions& options,
                  Diagnostics& diagnostics);

// The facts of a node that rules may speak of: the operator's own and the general ones
// (input_N_is_const, inputs_A_B_same_shape, rank, static_shape ...).
FactMap FactsOf(const Graph& graph, const Node& node);

// TensorFlow's name of an operator, by which a list judges it (OpTraits::listed_as).
absl::string_view ListedAs(Op op);

// Whether `rule` holds for `facts`; a fact that is not known at compile time keeps a rule. On false
// `found` says what was there instead.
bool RuleHolds(const SupportRule& rule, const FactMap& facts, std::string* found);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_SUPPORT_H_
