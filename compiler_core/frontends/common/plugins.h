#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_PLUGINS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_PLUGINS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/native_operators.h"
#include "compiler_core/frontends/common/formula.h"

namespace npuc::frontend {

// Limits on the files that PLUGINS names; more is an error.
inline constexpr size_t kMaxPluginFileBytes = size_t{1} << 16;
inline constexpr size_t kMaxPluginOps = 64;    // of all files together
inline constexpr size_t kMaxPluginNames = 32;  // operands, attributes, results, nodes; each

// An attribute of a node that a formula reads.
struct PluginAttribute {
  enum class Type : uint8_t { kBool, kInt, kFloat, kInts, kFloats };
  std::string name;  // in the formula
  Type type = Type::kFloat;
  std::string of_node = {};  // of a subgraph: the node's name, or its nickname in the pattern
  std::string source = {};   // the name that the model has for it
  std::optional<FormulaNumbers> fallback = {};  // where the node does not state it
};

// Operand K of a node, written NODE:K.
struct PluginPlace {
  std::string node;
  int operand = 0;
};

// The nodes that an operator of the user's stands in the place of: all on a way from a start node
// to the end node; or where `pattern` is not empty those that match it, wherever they do.
struct PluginSubgraph {
  struct PatternNode {
    std::string nickname;
    std::string op;
  };
  struct Edge {
    int from = 0;  // a pattern node
    int result = 0;
    int operand = 0;  // of the node that the edge goes to
  };
  std::vector<std::string> start_nodes;
  std::string end_node;
  std::vector<PatternNode> pattern;
  std::vector<std::vector<Edge>> edges;  // by the pattern node that they go to
  int end = 0;                           // the pattern node that no edge leaves
  // The places in the model of each operand of the formula, which read one tensor.
  std::vector<std::vector<PluginPlace>> places;
};

// A library that computes an operator (client/PLUGINS.md, "Native operators").
struct PluginLibrary {
  std::string path;  // as written
  std::shared_ptr<const NativeLibrary> library;
  bool elementwise = false;  // declared: result i depends on element i of the one operand alone
  // The largest difference from the formula, absolute of values below 1 and relative above.
  double tolerance = 0x1p-10;
};

// One declared operator. Immutable.
struct PluginOp {
  std::string op;                       // as the model has it; of other domains of ONNX DOMAIN.NAME
  std::vector<std::string> frameworks;  // as FRAMEWORK has them; empty: all
  bool overrides = false;               // npuc's own operator of the name
  std::string file;                     // where it stands
  int line = 0;
  std::vector<std::string> operands;
  std::vector<PluginAttribute> attributes;
  std::vector<std::string> results;
  Formula formula;  // without results where the library alone says what the operator computes
  std::optional<PluginSubgraph> subgraph;
  std::optional<PluginLibrary> native;

  bool has_formula() const { return formula.result_count() > 0; }
  bool IsFor(absl::string_view framework) const;
};

// The operators that a config's PLUGINS declare for one framework. Immutable once made.
class Plugins {
 public:
  // `built_in`: the operators of the framework's front end, sorted; one that is declared must say
  // that it overrides. Problems go to `diagnostics`.
  static Plugins For(absl::string_view framework, std::vector<std::shared_ptr<const PluginOp>> ops,
                     absl::Span<const std::string> built_in, Diagnostics& diagnostics);

  bool empty() const { return by_name_.empty() && subgraphs_.empty(); }
  // The operator in the place of a node; null where none is declared.
  const PluginOp* Find(absl::string_view op) const;
  const std::vector<std::shared_ptr<const PluginOp>>& subgraphs() const { return subgraphs_; }

 private:
  absl::flat_hash_map<std::string, std::shared_ptr<const PluginOp>> by_name_;
  std::vector<std::shared_ptr<const PluginOp>> subgraphs_;
};

// Adds the operators that a file declares to `ops`; those that are there already may be called by
// its formulas. `file` names it in diagnostics. `natives` opens the libraries that it names; null
// where none may be run, and each is an error. False where there was an error.
bool ReadPluginFile(absl::string_view text, absl::string_view file,
                    std::vector<std::shared_ptr<const PluginOp>>& ops, Diagnostics& diagnostics,
                    NativeOperators* natives = nullptr);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_PLUGINS_H_
