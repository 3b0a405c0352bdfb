#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_PLUGIN_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_PLUGIN_IMPORT_H_

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/native_operator.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/subgraphs.h"

namespace npuc::frontend {

// The front ends' part of Plugins: a node, or a subgraph, becomes what its formula says.

// An attribute of a node by the view that the front end has of it, a function for each kind; null
// where a kind is one that the format does not have. NOT_FOUND where the node does not state it.
template <typename View>
absl::StatusOr<FormulaNumbers> AttributeOf(const View& view, const PluginAttribute& attribute) {
  using Type = PluginAttribute::Type;
  const auto one = [](auto value) -> absl::StatusOr<FormulaNumbers> {
    RETURN_IF_ERROR(value.status());
    return FormulaNumbers{{static_cast<double>(*value)}, false};
  };
  const auto list = [](auto values) -> absl::StatusOr<FormulaNumbers> {
    RETURN_IF_ERROR(values.status());
    return FormulaNumbers{{values->begin(), values->end()}, true};
  };
  switch (attribute.type) {
    case Type::kBool:
      if constexpr (requires { view.Bool(attribute.source); }) {
        return one(view.Bool(attribute.source));
      }
      break;
    case Type::kInt:
      if constexpr (requires { view.Int(attribute.source); }) {
        return one(view.Int(attribute.source));
      }
      break;
    case Type::kFloat:
      if constexpr (requires { view.Float(attribute.source); }) {
        return one(view.Float(attribute.source));
      }
      break;
    case Type::kInts:
      if constexpr (requires { view.Ints(attribute.source); }) {
        return list(view.Ints(attribute.source));
      }
      break;
    case Type::kFloats:
      if constexpr (requires { view.Floats(attribute.source); }) {
        return list(view.Floats(attribute.source));
      }
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "attribute '", attribute.source, "' is declared of a type that the format does not have"));
}

// Sets the node's results by the formula. node: an OperandNode whose operands are the formula's;
// read(i): attribute i as the model states it, by AttributeOf.
template <typename Node>
absl::Status RunPlugin(Node& node, const PluginOp& op,
                       const std::function<absl::StatusOr<FormulaNumbers>(size_t i)>& read) {
  const int count = static_cast<int>(op.operands.size());
  RETURN_IF_ERROR(node.ExpectInputs(count, count));
  std::vector<ValueRef> operands;
  for (int i = 0; i < count; ++i) {
    if (!node.has(i)) {
      return node.Fail(DiagnosticKind::kOperandCount,
                       absl::StrCat("operand ", i, " is left out, and the declaration at line ",
                                    op.line, " of ", Printable(op.file), " has it"),
                       "declare an operator without it");
    }
    operands.push_back(node.input(i));
  }
  std::vector<FormulaNumbers> attributes;
  for (size_t i = 0; i < op.attributes.size(); ++i) {
    absl::StatusOr<FormulaNumbers> value = read(i);
    if (absl::IsNotFound(value.status()) && op.attributes[i].fallback.has_value()) {
      value = *op.attributes[i].fallback;
    }
    if (!value.ok()) {
      return node.Fail(DiagnosticKind::kBadAttribute,
                       absl::StrCat(value.status().message(), "; the declaration at line ", op.line,
                                    " of ", Printable(op.file), " reads it"),
                       "correct the declaration, or give the attribute a default");
    }
    attributes.push_back(*std::move(value));
  }
  if constexpr (requires { node.SetRewritten(); }) node.SetRewritten();
  if (!op.native.has_value()) {
    ASSIGN_OR_RETURN(std::vector<ValueRef> results, op.formula.Run(node, operands, attributes));
    return node.SetOutputs(std::move(results));
  }
  ASSIGN_OR_RETURN(std::vector<ValueRef> results, RunNative(node, op, operands, attributes));
  return node.SetOutputs(std::move(results));
}

// RunPlugin for a single node; its view has the attributes.
template <typename Node, typename View>
absl::Status RunPluginOp(Node& node, const PluginOp& op, const View& view) {
  return RunPlugin(node, op, [&](size_t i) { return AttributeOf(view, op.attributes[i]); });
}

// RunPlugin for a subgraph; view(i) has the attributes of the model's node i.
template <typename Node, typename ViewOf>
absl::Status RunPluginSubgraph(Node& node, const SubgraphMatch& match, const ViewOf& view) {
  return RunPlugin(node, *match.op, [&](size_t i) {
    return AttributeOf(view(match.attribute_nodes[i]), match.op->attributes[i]);
  });
}

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_PLUGIN_IMPORT_H_
