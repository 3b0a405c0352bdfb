#ifndef NPUC_COMPILER_CORE_FRONTENDS_MXNET_SYMBOL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_MXNET_SYMBOL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::mxnet {

// Limits on a symbol; more is a diagnostic.
inline constexpr size_t kMaxSymbolBytes = size_t{32} << 20;
inline constexpr size_t kMaxNodes = 1 << 17;
inline constexpr size_t kMaxInputsPerNode = 1 << 12;
inline constexpr int kMaxOutputsPerNode = 1 << 12;

// Result `output` of a node of a symbol.
struct Entry {
  int node = -1;
  int output = 0;
  bool operator==(const Entry&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Entry& e) {
    return H::combine(std::move(h), e.node, e.output);
  }
};

// One node of a symbol. Attributes are texts; each function reads one as such a value, and returns
// NOT_FOUND where it is absent or "None", INVALID_ARGUMENT where it is no such value.
class NodeView {
 public:
  absl::string_view op() const { return op_; }  // "null": a variable
  absl::string_view name() const { return name_; }
  NodeSource source() const { return {name_, op_}; }
  bool is_variable() const { return op_ == "null"; }
  const std::vector<Entry>& inputs() const { return inputs_; }

  bool HasAttr(absl::string_view name) const { return Find(name) != nullptr; }
  absl::StatusOr<bool> Bool(absl::string_view name) const;
  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<double> Float(absl::string_view name) const;
  absl::StatusOr<std::string> String(absl::string_view name) const;
  // "(3, 3)", "[3L,3L]" or "3". An empty list is one.
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name) const;
  // A list of which some may be "None".
  absl::StatusOr<std::vector<std::optional<int64_t>>> OptionalInts(absl::string_view name) const;

 private:
  friend class SymbolReader;
  const std::string* Find(absl::string_view name) const;

  std::string op_;
  std::string name_;
  std::vector<Entry> inputs_;
  absl::flat_hash_map<std::string, std::string> attrs_;
};

// The nodes of a -symbol.json, of any age. Immutable, so thread-safe. They stand behind those that
// they read, but for variables, which may stand anywhere.
class Symbol {
 public:
  // Null: what is wrong with the file is in the diagnostics.
  static std::unique_ptr<Symbol> Parse(absl::string_view bytes, absl::string_view file,
                                       Diagnostics& diagnostics);

  const std::vector<NodeView>& nodes() const { return nodes_; }
  const NodeView& node(int i) const { return nodes_[static_cast<size_t>(i)]; }
  const std::vector<Entry>& heads() const { return heads_; }
  const std::string& version() const { return version_; }  // "1.5.0"; empty: not stated

  // The tensor of a name: a node's first result has the node's name, result K NAME_outputK; MXNet's
  // own NAME_output is the first one, too. nullopt where there is none.
  std::optional<Entry> FindTensor(absl::string_view name) const;
  std::string NameOf(const Entry& entry) const;
  std::vector<absl::string_view> NodeNames() const;

 private:
  friend class SymbolReader;

  std::vector<NodeView> nodes_;
  std::vector<Entry> heads_;
  std::string version_;
  absl::flat_hash_map<absl::string_view, int> by_name_;
};

}  // namespace npuc::mxnet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_MXNET_SYMBOL_H_
