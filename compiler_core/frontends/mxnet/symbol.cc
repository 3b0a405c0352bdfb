#include "compiler_core/frontends/mxnet/symbol.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/sniff.h"

namespace npuc::mxnet {
namespace {

using Kind = JsonNode::Kind;

constexpr JsonLimits kLimits = {kMaxSymbolBytes, 16, int64_t{1} << 20};

// The value of a key of an object; null where it has none, or is no object.
const JsonNode* Member(const JsonNode& object, absl::string_view key) {
  for (size_t i = 0; i < object.keys.size(); ++i) {
    if (object.keys[i].name == key) return &object.items[i];
  }
  return nullptr;
}

const JsonNode* ListOf(const JsonNode& object, absl::string_view key) {
  const JsonNode* const list = Member(object, key);
  return list != nullptr && list->kind == Kind::kArray ? list : nullptr;
}

bool IsText(const JsonNode* node) { return node != nullptr && node->kind == Kind::kString; }

// [node, output] or [node, output, version].
std::optional<Entry> ReadEntry(const JsonNode& json) {
  if (json.kind != Kind::kArray || json.items.size() < 2) return std::nullopt;
  const JsonNode& node = json.items[0];
  const JsonNode& output = json.items[1];
  if (node.kind != Kind::kInteger || output.kind != Kind::kInteger || node.integer < 0 ||
      node.integer >= static_cast<int64_t>(kMaxNodes) || output.integer < 0 ||
      output.integer >= kMaxOutputsPerNode) {
    return std::nullopt;
  }
  return Entry{static_cast<int>(node.integer), static_cast<int>(output.integer)};
}

}  // namespace

// Fills a Symbol from the tree of its file.
class SymbolReader {
 public:
  SymbolReader(Symbol& symbol, absl::string_view file, Diagnostics& diagnostics)
      : symbol_(symbol), file_(file), diagnostics_(diagnostics) {}

  void Read(const JsonNode& root) {
    const JsonNode* const nodes = ListOf(root, "nodes");
    if (nodes == nullptr || ListOf(root, "heads") == nullptr) {
      AddError(DiagnosticKind::kNotAnMxNetSymbol, {}, "the JSON has no lists 'nodes' and 'heads'",
               "name a -symbol.json of MXNet as MODEL_FILE");
      return;
    }
    if (nodes->items.size() > kMaxNodes) {
      AddError(
          DiagnosticKind::kModelLimitExceeded, {},
          absl::StrCat("the symbol has ", nodes->items.size(), " nodes, more than ", kMaxNodes),
          "compile a smaller model");
      return;
    }
    symbol_.nodes_.resize(nodes->items.size());
    for (size_t i = 0; i < nodes->items.size(); ++i) ReadNode(nodes->items[i], i);
    ReadHeads(*ListOf(root, "heads"));
    if (!diagnostics_.has_errors()) {
      AddAuxiliaryStates();
      IndexNames();
    }
    ReadVersion(root);
  }

 private:
  void AddError(DiagnosticKind kind, NodeSource source, std::string message, std::string fix) {
    diagnostics_.Add({.kind = kind,
                      .message = std::move(message),
                      .file = std::string(file_),
                      .node = std::move(source.name),
                      .op = std::move(source.op),
                      .fix = std::move(fix)});
  }
  void Malformed(const NodeView& node, size_t index, absl::string_view what) {
    AddError(DiagnosticKind::kMalformedNode, node.source(),
             absl::StrCat("node ", index, " of the symbol ", what), "save the symbol again");
  }

  void ReadNode(const JsonNode& json, size_t index) {
    NodeView& node = symbol_.nodes_[index];
    const JsonNode* const op = Member(json, "op");
    const JsonNode* const name = Member(json, "name");
    if (!IsText(op) || !IsText(name) || op->text.empty() || name->text.empty() ||
        name->text.size() > kMaxNodeNameBytes || op->text.size() > kMaxNodeNameBytes) {
      return Malformed(node, index, "has no texts 'op' and 'name'");
    }
    node.op_ = op->text;
    node.name_ = name->text;
    ReadAttributes(json, index);
    const JsonNode* const inputs = ListOf(json, "inputs");
    if (inputs == nullptr) return;  // "inputs" of a variable may be left out
    if (inputs->items.size() > kMaxInputsPerNode) {
      return Malformed(node, index, absl::StrCat("has more than ", kMaxInputsPerNode, " inputs"));
    }
    for (const JsonNode& input : inputs->items) {
      const std::optional<Entry> entry = ReadEntry(input);
      if (!entry.has_value())
        return Malformed(node, index, "has an input that is no [node, output]");
      // So no circle can be: MXNet writes what a node reads in front of it.
      if (entry->node >= static_cast<int>(index)) {
        return Malformed(
            node, index,
            absl::StrCat("reads node ", entry->node, "; a node reads those in front of it alone"));
      }
      node.inputs_.push_back(*entry);
    }
  }

  // Before version 0.9 operators have "param", and "attr" is the user's; then "attr", since 1.0
  // "attrs" has both.
  void ReadAttributes(const JsonNode& json, size_t index) {
    NodeView& node = symbol_.nodes_[index];
    for (const absl::string_view key : {"param", "attrs", "attr"}) {
      const JsonNode* const attrs = Member(json, key);
      if (attrs == nullptr) continue;
      if (attrs->kind != Kind::kObject)
        return Malformed(node, index, "has attributes of no object");
      for (size_t i = 0; i < attrs->keys.size(); ++i) {
        const JsonNode& value = attrs->items[i];
        if (value.kind == Kind::kArray || value.kind == Kind::kObject) continue;
        std::string text = value.text;
        if (value.kind == Kind::kBool) text = value.flag ? "True" : "False";
        if (value.kind == Kind::kNull) text = "None";
        node.attrs_.emplace(attrs->keys[i].name, std::move(text));
      }
    }
  }

  void ReadHeads(const JsonNode& heads) {
    for (const JsonNode& json : heads.items) {
      std::optional<Entry> entry = ReadEntry(json);
      // The oldest files name the node alone.
      if (json.kind == Kind::kInteger && json.integer >= 0 &&
          json.integer < static_cast<int64_t>(kMaxNodes)) {
        entry = Entry{static_cast<int>(json.integer), 0};
      }
      if (!entry.has_value() || entry->node >= static_cast<int>(symbol_.nodes_.size()) ||
          symbol_.heads_.size() == kMaxInputsPerNode) {
        AddError(DiagnosticKind::kMalformedNode, {},
                 "'heads' of the symbol has an entry that is no [node, output]",
                 "save the symbol again");
        return;
      }
      symbol_.heads_.push_back(*entry);
    }
  }

  // Before version 0.9 the states of a BatchNorm are not among its inputs.
  void AddAuxiliaryStates() {
    const size_t count = symbol_.nodes_.size();
    for (size_t i = 0; i < count; ++i) {
      const std::string op = symbol_.nodes_[i].op_;
      if ((op != "BatchNorm" && op != "CuDNNBatchNorm") || symbol_.nodes_[i].inputs_.size() != 3) {
        continue;
      }
      for (const absl::string_view state : {"_moving_mean", "_moving_var"}) {
        NodeView variable;
        variable.op_ = "null";
        variable.name_ = absl::StrCat(symbol_.nodes_[i].name_, state);
        symbol_.nodes_[i].inputs_.push_back({static_cast<int>(symbol_.nodes_.size()), 0});
        symbol_.nodes_.push_back(std::move(variable));
      }
    }
  }

  // Parameters go by name, so variables need names of their own. Operators do not: a Gluon block
  // that calls one layer twice gives two nodes its name. The later ones become NAME_1, NAME_2, ...
  void IndexNames() {
    std::vector<int> repeated;
    for (const bool is_variable : {true, false}) {
      for (int i = 0; i < static_cast<int>(symbol_.nodes_.size()); ++i) {
        const NodeView& node = symbol_.node(i);
        if (node.is_variable() != is_variable) continue;
        if (symbol_.by_name_.emplace(node.name(), i).second) continue;
        if (!is_variable) {
          repeated.push_back(i);
          continue;
        }
        AddError(DiagnosticKind::kDuplicateNodeName, node.source(),
                 "two variables of the symbol have this name",
                 "give every parameter a name of its own");
      }
    }
    absl::flat_hash_map<std::string, int> counts;  // so that each number is tried once
    for (const int i : repeated) {
      NodeView& node = symbol_.nodes_[static_cast<size_t>(i)];
      int& count = counts[node.name_];
      std::string name;
      do {
        name = absl::StrCat(node.name_, "_", ++count);
      } while (symbol_.by_name_.contains(name));
      node.name_ = std::move(name);
      symbol_.by_name_.emplace(node.name(), i);
    }
  }

  // "attrs": {"mxnet_version": ["int", 10500]}
  void ReadVersion(const JsonNode& root) {
    const JsonNode* const attrs = Member(root, "attrs");
    const JsonNode* const version = attrs == nullptr ? nullptr : ListOf(*attrs, "mxnet_version");
    if (version == nullptr || version->items.size() != 2) return;
    const int64_t number = version->items[1].integer;
    if (number <= 0 || number > 1000000) return;
    symbol_.version_ = absl::StrCat(number / 10000, ".", number / 100 % 100, ".", number % 100);
  }

  Symbol& symbol_;
  absl::string_view file_;
  Diagnostics& diagnostics_;
};

std::unique_ptr<Symbol> Symbol::Parse(absl::string_view bytes, absl::string_view file,
                                      Diagnostics& diagnostics) {
  if (bytes.empty()) {
    return RefuseFile(DiagnosticKind::kEmptyModel, file, "the model file is empty",
                      "name a -symbol.json of MXNet as MODEL_FILE", diagnostics);
  }
  JsonNode root;
  JsonError error;
  if (!ParseJsonTree(bytes, kLimits, root, error)) {
    return RefuseFile(
        DiagnosticKind::kNotAnMxNetSymbol, file,
        absl::StrCat("the model file is no symbol of MXNet: ",
                     error.place.line > 0 ? absl::StrCat("line ", error.place.line, ": ") : "",
                     error.message),
        "name a -symbol.json of MXNet as MODEL_FILE, and the .params as WEIGHTS_FILE", diagnostics);
  }
  Diagnostics found;
  auto symbol = std::make_unique<Symbol>();
  SymbolReader(*symbol, file, found).Read(root);
  diagnostics.Append(found);
  if (found.has_errors()) return nullptr;
  return symbol;
}

std::optional<Entry> Symbol::FindTensor(absl::string_view name) const {
  const auto plain = by_name_.find(name);
  if (plain != by_name_.end()) return Entry{plain->second, 0};
  const size_t at = name.rfind("_output");
  if (at == absl::string_view::npos) return std::nullopt;
  const auto node = by_name_.find(name.substr(0, at));
  const absl::string_view digits = name.substr(at + absl::string_view("_output").size());
  int output = 0;
  if (node == by_name_.end() ||
      (!digits.empty() && (!absl::ascii_isdigit(digits[0]) || !absl::SimpleAtoi(digits, &output) ||
                           output >= kMaxOutputsPerNode))) {
    return std::nullopt;
  }
  return Entry{node->second, output};
}

std::string Symbol::NameOf(const Entry& entry) const {
  const std::string name(node(entry.node).name());
  return entry.output == 0 ? name : absl::StrCat(name, "_output", entry.output);
}

std::vector<absl::string_view> Symbol::NodeNames() const {
  std::vector<absl::string_view> names;
  for (const NodeView& node : nodes_) names.push_back(node.name());
  return names;
}

}  // namespace npuc::mxnet
