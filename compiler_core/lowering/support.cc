#include "compiler_core/lowering/support.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/lowering/graph_cuts.h"

namespace npuc {
namespace {

const Fact* Find(const FactMap& facts, absl::string_view name) {
  const auto it = facts.find(name);
  return it == facts.end() ? nullptr : &it->second;
}

std::optional<int64_t> IntFact(const FactMap& facts, absl::string_view name) {
  const Fact* fact = Find(facts, name);
  if (fact == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<int64_t>(fact)) return *value;
  return std::nullopt;
}

bool ConditionsHold(const SupportRule& rule, const FactMap& facts) {
  return std::all_of(rule.when.begin(), rule.when.end(), [&](const FactCondition& condition) {
    const auto value = IntFact(facts, condition.fact);
    return value.has_value() && (*value == condition.value) == condition.equal;
  });
}

bool FlagHolds(const SupportRule& rule, const FactMap& facts, std::string* found) {
  const Fact* fact = Find(facts, rule.facts[0]);
  const bool* flag = fact == nullptr ? nullptr : std::get_if<bool>(fact);
  if (flag == nullptr || *flag) return true;
  *found = "it is not";
  return false;
}

bool TextHolds(const SupportRule& rule, const FactMap& facts, std::string* found) {
  const Fact* fact = Find(facts, rule.facts[0]);
  const std::string* text = fact == nullptr ? nullptr : std::get_if<std::string>(fact);
  if (text == nullptr || absl::string_view(*text) == rule.text) return true;
  *found = absl::StrCat("found ", *text);
  return false;
}

bool BoundsHold(const SupportRule& rule, const FactMap& facts, std::string* found) {
  const auto value = IntFact(facts, rule.facts[0]);
  if (!value || (*value >= rule.lo && *value <= rule.hi)) return true;
  *found = absl::StrCat("found ", rule.facts[0], " = ", *value);
  return false;
}

bool ProductHolds(const SupportRule& rule, const FactMap& facts, std::string* found) {
  int64_t product = 1;
  std::string text;
  for (const absl::string_view name : rule.facts) {
    const auto value = IntFact(facts, name);
    if (!value) return true;
    const int64_t rounded = (*value + rule.round_up_to - 1) / rule.round_up_to * rule.round_up_to;
    if (__builtin_mul_overflow(product, rounded, &product)) product = INT64_MAX;
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " = ", *value);
  }
  if (product <= rule.hi) return true;
  *found = absl::StrCat("found ", text, ", product ", product);
  return false;
}

bool PairHolds(const SupportRule& rule, const FactMap& facts, std::string* found) {
  const auto a = IntFact(facts, rule.facts[0]);
  const auto b = IntFact(facts, rule.facts[1]);
  if (!a || !b) return true;
  bool holds = true;
  if (rule.kind == RuleKind::kEqual) holds = *a == *b;
  if (rule.kind == RuleKind::kNotBothOne) holds = *a != 1 || *b != 1;
  if (rule.kind == RuleKind::kDivisible) holds = *b != 0 && *a % *b == 0;
  if (!holds) {
    *found = absl::StrCat("found ", rule.facts[0], " = ", *a, ", ", rule.facts[1], " = ", *b);
  }
  return holds;
}

std::vector<absl::string_view> ListedNames(const CoreSpec& core, Framework framework) {
  std::vector<absl::string_view> names;
  for (const OpSupport& support : OpsOf(core, framework)) names.push_back(support.op);
  return names;
}

void AddGeneralFacts(const Graph& graph, const Node& node, FactMap& facts) {
  int64_t rank = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorType& type = graph.type(node.inputs[i]);
    rank = std::max<int64_t>(rank, static_cast<int64_t>(type.shape.size()));
    const Tensor* constant = graph.ConstantOf(node.inputs[i]);
    facts[absl::StrCat("input_", i, "_is_const")] = constant != nullptr;
    if (constant != nullptr) {
      bool positive = true;
      const int64_t count = constant->element_count();
      for (int64_t k = 0; positive && k < count; ++k) positive = constant->at(k) > 0;
      facts[absl::StrCat("input_", i, "_is_positive")] = positive;
    }
  }
  if (node.inputs.size() >= 2) {
    facts["inputs_0_1_same_shape"] =
        graph.type(node.inputs[0]).shape == graph.type(node.inputs[1]).shape;
  }
  facts["rank"] = rank;
  facts["static_shape"] = true;  // by construction of the graph
}

// Checks nodes against the core's list.
class Checker {
 public:
  // The core's documents list the operators of some frameworks. Those of others are judged as the
  // operators that they became here, by TensorFlow's list.
  Checker(const Graph& graph, const CoreSpec& core, const CompileOptions& options)
      : graph_(graph),
        core_(core),
        options_(options),
        is_listed_(!OpsOf(core, options.framework).empty()),
        framework_(is_listed_ ? options.framework : Framework::kTensorFlow),
        cuts_(graph, options.framework) {}

  void Check(const Node& node, Diagnostics& diagnostics) const {
    if (node.source.op.empty() || node.op == Op::kPlaceholder || node.op == Op::kConst) return;
    if (node.op == Op::kTable) return AddTable(node, diagnostics);
    const absl::string_view op = ListedName(node);
    const OpSupport* support = FindOp(core_, framework_, op);
    std::string becomes(support != nullptr && support->is_rewrite ? support->note : "");
    if (support == nullptr) {
      // What the list lacks is judged as the operator that it became.
      support = FindOp(core_, Framework::kTensorFlow, ListedAs(node.op));
      if (support != nullptr) becomes = std::string(support->op);
    }
    if (support == nullptr || (!becomes.empty() && options_.strict_ops)) {
      AddNotAccepted(node, op, becomes, diagnostics);
      return;
    }
    if (!becomes.empty()) AddRewritten(node, op, becomes, diagnostics);
    if (support->rules.empty()) return;
    const FactMap facts = FactsOf(graph_, node);
    for (const SupportRule& rule : support->rules) {
      std::string found;
      if (!RuleHolds(rule, facts, &found)) AddBroken(node, rule, found, diagnostics);
    }
  }

 private:
  // Nodes that a TensorFlow rule rewrote have the IR's names, too.
  absl::string_view ListedName(const Node& node) const {
    if (!is_listed_) return ListedAs(node.op);
    if (framework_ != Framework::kTensorFlow) return node.source.op;
    const std::optional<Op> op = OpNamed(node.source.op);
    return op.has_value() ? ListedAs(*op) : node.source.op;
  }

  // The operator's name says nothing here: a declaration with a library took its place.
  void AddTable(const Node& node, Diagnostics& diagnostics) const {
    diagnostics.Add(
        {.kind = DiagnosticKind::kOperatorNotAccepted,
         .message = absl::StrCat("a library computes it (elementwise: true in PLUGINS), and ",
                                 core_.name, " has no command that looks values up"),
         .file = options_.model_name,
         .node = node.source.name,
         .op = node.source.op,
         .fix = absl::StrCat("give a formula in its declaration, compile for an integer core, or ",
                             cuts_.FixFor(node))});
  }

  void AddRewritten(const Node& node, absl::string_view op, const std::string& becomes,
                    Diagnostics& diagnostics) const {
    diagnostics.Add(
        {.kind = DiagnosticKind::kOperatorRewritten,
         .message = absl::StrCat("the vendor does not list ", Printable(op), " for ", core_.name,
                                 "; it becomes: ", becomes),
         .file = options_.model_name,
         .node = node.source.name,
         .op = node.source.op,
         .fix = "report.json has its commands and cycles; STRICT_OPS: true refuses it"});
  }

  // becomes: empty where nothing that the core takes is known for the operator.
  void AddNotAccepted(const Node& node, absl::string_view op, const std::string& becomes,
                      Diagnostics& diagnostics) const {
    if (!becomes.empty()) {
      diagnostics.Add({.kind = DiagnosticKind::kOperatorNotAccepted,
                       .message = absl::StrCat("the vendor does not list ", Printable(op), " for ",
                                               core_.name, ", and STRICT_OPS is true"),
                       .file = options_.model_name,
                       .node = node.source.name,
                       .op = node.source.op,
                       .fix = absl::StrCat("remove STRICT_OPS, and it becomes: ", becomes)});
      return;
    }
    const std::string nearest = NearestMatch(op, ListedNames(core_, framework_));
    diagnostics.Add(
        {.kind = DiagnosticKind::kOperatorNotAccepted,
         .message = absl::StrCat("operator ", Printable(op), " is not accepted by ", core_.name,
                                 "/", FrameworkName(framework_)),
         .file = options_.model_name,
         .node = node.source.name,
         .op = node.source.op,
         .fix = absl::StrCat(nearest.empty() ? "" : absl::StrCat("use ", nearest, ", or "),
                             cuts_.FixFor(node), "; npuc --list -c ", core_.name,
                             " shows what is accepted")});
  }

  void AddBroken(const Node& node, const SupportRule& rule, const std::string& found,
                 Diagnostics& diagnostics) const {
    DiagnosticKind kind = DiagnosticKind::kRestrictionBroken;
    std::string fix =
        rule.kind == RuleKind::kConstInput
            ? "freeze the graph so that this operand is a constant"
            : absl::StrCat("change the layer to keep the rule, or ", cuts_.FixFor(node));
    if (rule.advisory) kind = DiagnosticKind::kRestrictionAdvice;
    if (!rule.rewrite.empty()) {
      kind = DiagnosticKind::kRestrictionRewritten;
      fix = std::string(rule.rewrite);
    }
    diagnostics.Add({.kind = kind,
                     .message = absl::StrCat(Describe(rule), "; ", found),
                     .file = options_.model_name,
                     .node = node.source.name,
                     .op = node.source.op,
                     .limit_source = absl::StrCat(rule.id, ", ", rule.source),
                     .fix = std::move(fix)});
  }

  const Graph& graph_;
  const CoreSpec& core_;
  const CompileOptions& options_;
  const bool is_listed_;
  const Framework framework_;
  const GraphCuts cuts_;
};

}  // namespace

absl::string_view ListedAs(Op op) {
  const absl::string_view name = TraitsOf(op).listed_as;
  return name.empty() ? NameOf(op) : name;
}

FactMap FactsOf(const Graph& graph, const Node& node) {
  FactMap facts;
  AddGeneralFacts(graph, node, facts);
  CollectFacts(graph, node, facts);
  return facts;
}

bool RuleHolds(const SupportRule& rule, const FactMap& facts, std::string* found) {
  if (!ConditionsHold(rule, facts)) return true;
  switch (rule.kind) {
    case RuleKind::kConstInput:
    case RuleKind::kStaticShape:
    case RuleKind::kCompileTimeOnly:
    case RuleKind::kOnlyInPattern:
    case RuleKind::kPositiveInput:
    case RuleKind::kSameShape:
    case RuleKind::kTranspose2d:
    case RuleKind::kRequiresAttr:
    case RuleKind::kOneDimPerItem:
      return FlagHolds(rule, facts, found);
    case RuleKind::kLayout:
    case RuleKind::kPadding:
      return TextHolds(rule, facts, found);
    case RuleKind::kRange:
    case RuleKind::kRank:
    case RuleKind::kMaxRank:
    case RuleKind::kEqualConst:
      return BoundsHold(rule, facts, found);
    case RuleKind::kProductMax:
      return ProductHolds(rule, facts, found);
    case RuleKind::kEqual:
    case RuleKind::kNotBothOne:
    case RuleKind::kDivisible:
      return PairHolds(rule, facts, found);
    case RuleKind::kOdd: {
      const auto value = IntFact(facts, rule.facts[0]);
      if (!value || *value % 2 != 0) return true;
      *found = absl::StrCat("found ", rule.facts[0], " = ", *value);
      return false;
    }
  }
  return true;
}

void CheckSupport(const Graph& graph, const CoreSpec& core, const CompileOptions& options,
                  Diagnostics& diagnostics) {
  const Checker checker(graph, core, options);
  for (const Node& node : graph.nodes()) checker.Check(node, diagnostics);
}

}  // namespace npuc
