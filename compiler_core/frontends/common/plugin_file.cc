// Reads the files that PLUGINS names; plugins.h says what they hold.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/framework.h"
#include "compiler_core/base/mapping_reader.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/frontends/common/formula_functions.h"
#include "compiler_core/frontends/common/plugins.h"

namespace npuc::frontend {
namespace {

using NodeKind = ConfigNode::Kind;
using Type = PluginAttribute::Type;

constexpr absl::string_view kWhat = "the declarations of operators";
constexpr absl::string_view kTypeNames[] = {"bool", "int", "float", "ints", "floats"};
constexpr int kMaxPort = 1023;

bool IsList(Type type) { return type == Type::kInts || type == Type::kFloats; }

// A name that a formula can use.
bool IsFormulaName(absl::string_view text) {
  if (text.empty() || text.size() > 64 || absl::ascii_isdigit(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// Reads one declared operator.
class OpReader {
 public:
  OpReader(MappingReader& reader, const ConfigNode& at, absl::string_view file)
      : reader_(reader), at_(at) {
    op_.file = std::string(file);
    op_.line = at.line;
  }

  PluginOp Read() {
    reader_.Text("op", op_.op);
    ReadFrameworks();
    reader_.Flag("overrides", op_.overrides);
    ReadSubgraph();
    ReadOperands();
    ReadAttributes();
    ReadResults();
    return std::move(op_);
  }

  // The text of the formula, and the line of the file that its first line is behind. Empty where a
  // library takes its place.
  std::string ReadFormula(int& line) {
    std::string text;
    const bool is_needed = !reader_.Has("library");
    const ConfigNode* const value = is_needed ? reader_.Needed("formula") : reader_.Find("formula");
    if (value == nullptr) return text;
    if (value->kind != NodeKind::kScalar) {
      reader_.WrongType("formula", *value, "lines of text, behind '|'");
      return text;
    }
    line = value->line - (value->text.find('\n') == std::string::npos ? 1 : 0);
    return value->text;
  }

  // The library that `op`, as Read() gave it, names; nullopt: it names none, or there was an error.
  // `natives` opens it; null: libraries are refused.
  std::optional<PluginLibrary> ReadLibrary(const PluginOp& op, NativeOperators* natives,
                                           bool has_formula) {
    const ConfigNode* const path = reader_.Find("library");
    PluginLibrary library;
    reader_.Flag("elementwise", library.elementwise);
    reader_.Number("tolerance", 0, 1, library.tolerance);
    CheckLibraryKeys(op, path != nullptr, has_formula);
    if (path == nullptr) return std::nullopt;
    reader_.Text("library", library.path);
    if (library.path.empty()) return std::nullopt;  // reported
    if (natives == nullptr) {
      reader_.Report(DiagnosticKind::kNativeUnusable, *path,
                     absl::StrCat("operator '", Printable(op.op), "' names the library '",
                                  Printable(library.path),
                                  "', which is code; a service runs none, and npuc alone may"),
                     "compile by npuc; or give a formula and remove the line library");
      return std::nullopt;
    }
    auto opened = natives->Open(op.file, library.path);
    if (!opened.ok()) {
      reader_.Report(DiagnosticKind::kNativeFailed, *path, std::string(opened.status().message()),
                     "name a shared library by its path from the folder of this file");
      return std::nullopt;
    }
    library.library = *std::move(opened);
    return library;
  }

 private:
  // Reports keys that say something about a library or a formula that is not there.
  void CheckLibraryKeys(const PluginOp& op, bool has_library, bool has_formula) {
    const ConfigNode* const elementwise = reader_.Find("elementwise");
    if (elementwise != nullptr && (!has_library || has_formula)) {
      reader_.Report(DiagnosticKind::kConfigConflict, *elementwise,
                     "elementwise speaks of an operator that a library alone computes",
                     "remove the line elementwise");
    }
    const ConfigNode* const tolerance = reader_.Find("tolerance");
    if (tolerance != nullptr && (!has_library || !has_formula)) {
      reader_.Report(DiagnosticKind::kConfigConflict, *tolerance,
                     "tolerance is between a formula and a library, and one of them is not there",
                     "remove the line tolerance");
    }
    if (elementwise != nullptr && op.operands.size() != 1) {
      reader_.Report(DiagnosticKind::kConfigConflict, *elementwise,
                     absl::StrCat("an elementwise operator is a function of one operand; this one "
                                  "has ",
                                  op.operands.size()),
                     "remove the line elementwise, or give a formula");
    }
  }

  // Reports a name that another thing of the formula has.
  void AddName(absl::string_view key, const ConfigNode& at, const std::string& name) {
    if (!IsFormulaName(name)) {
      return reader_.NotAllowed(key, at, "names of letters, digits and _");
    }
    if (FindFormulaFunction(name) == nullptr && names_.insert(name).second) return;
    reader_.Report(DiagnosticKind::kConfigDuplicate, at,
                   absl::StrCat("'", name,
                                "' has a meaning in formulas already, and no name may "
                                "have two"),
                   "write another name");
  }

  // Calls `take` for each text of a list of 1 to kMaxPluginNames.
  template <typename Take>
  void Texts(absl::string_view key, const ConfigNode& list, Take take) {
    if (list.kind != NodeKind::kSequence || list.items.empty() ||
        list.items.size() > kMaxPluginNames) {
      return reader_.WrongType(key, list,
                               absl::StrCat("a list of 1 to ", kMaxPluginNames, " names"));
    }
    for (const ConfigNode& item : list.items) {
      if (item.kind != NodeKind::kScalar || item.text.empty() || item.text.size() > 1024) {
        reader_.WrongType(key, item, "names");
        continue;
      }
      take(item.text, item);
    }
  }

  void ReadFrameworks() {
    const ConfigNode* const list = reader_.Find("frameworks");
    if (list == nullptr) return;
    Texts("frameworks", *list, [&](const std::string& name, const ConfigNode& at) {
      if (!FrameworkNamed(name).has_value()) {
        return reader_.NotAllowed("frameworks", at, FrameworkNames(", "));
      }
      op_.frameworks.push_back(name);
    });
  }

  void ReadSubgraph() {
    const bool by_name = reader_.Has("start_nodes") || reader_.Has("end_nodes");
    const bool by_pattern = reader_.Has("pattern_nodes") || reader_.Has("pattern_edges");
    if (!by_name && !by_pattern) return;
    if (by_name && by_pattern) {
      reader_.Report(DiagnosticKind::kConfigConflict, at_,
                     "a subgraph has start_nodes and end_nodes, or pattern_nodes and "
                     "pattern_edges, and this one has both",
                     "remove one of the two pairs");
    }
    if (op_.overrides) {
      reader_.Report(DiagnosticKind::kConfigConflict, at_,
                     "a subgraph takes the place of nodes, so overrides says nothing",
                     "remove the line overrides");
    }
    op_.subgraph.emplace();
    if (by_name) {
      ReadEnds();
    } else {
      ReadPattern();
    }
  }

  void ReadEnds() {
    PluginSubgraph& graph = *op_.subgraph;
    if (const ConfigNode* const list = reader_.Needed("start_nodes")) {
      Texts("start_nodes", *list,
            [&](const std::string& name, const ConfigNode&) { graph.start_nodes.push_back(name); });
    }
    if (const ConfigNode* const list = reader_.Needed("end_nodes")) {
      if (list->kind == NodeKind::kSequence && list->items.size() > 1) {
        return reader_.NotAllowed("end_nodes", *list, "a list of one node");
      }
      Texts("end_nodes", *list,
            [&](const std::string& name, const ConfigNode&) { graph.end_node = name; });
    }
  }

  int PatternNodeNamed(absl::string_view nickname) const {
    const auto& pattern = op_.subgraph->pattern;
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i].nickname == nickname) return static_cast<int>(i);
    }
    return -1;
  }

  void ReadPattern() {
    PluginSubgraph& graph = *op_.subgraph;
    const ConfigNode* const nodes = reader_.Needed("pattern_nodes");
    if (nodes == nullptr) return;
    const auto is_pair = [](const ConfigNode& pair) {
      return pair.kind == NodeKind::kSequence && pair.items.size() == 2 &&
             pair.items[0].kind == NodeKind::kScalar && pair.items[1].kind == NodeKind::kScalar;
    };
    if (nodes->kind != NodeKind::kSequence || nodes->items.empty() ||
        nodes->items.size() > kMaxPluginNames ||
        !std::all_of(nodes->items.begin(), nodes->items.end(), is_pair)) {
      return reader_.WrongType(
          "pattern_nodes", *nodes,
          absl::StrCat("a list of 1 to ", kMaxPluginNames, " pairs [nickname, operator]"));
    }
    for (const ConfigNode& pair : nodes->items) {
      if (PatternNodeNamed(pair.items[0].text) >= 0) {
        reader_.Report(DiagnosticKind::kConfigDuplicate, pair,
                       absl::StrCat("two pattern nodes are '", Printable(pair.items[0].text), "'"),
                       "write another nickname");
      }
      graph.pattern.push_back({pair.items[0].text, pair.items[1].text});
    }
    graph.edges.resize(graph.pattern.size());
    if (const ConfigNode* const edges = reader_.Find("pattern_edges")) ReadEdges(*edges);
    FindEnd(*nodes);
  }

  void ReadEdges(const ConfigNode& edges) {
    constexpr size_t kMost = kMaxPluginNames * 4;
    if (edges.kind != NodeKind::kSequence || edges.items.size() > kMost) {
      return reader_.WrongType("pattern_edges", edges,
                               absl::StrCat("a list of at most ", kMost, " edges"));
    }
    for (const ConfigNode& item : edges.items) {
      PluginSubgraph::Edge edge;
      int to = -1;
      const bool has_ends =
          item.kind == NodeKind::kSequence && (item.items.size() == 2 || item.items.size() == 3) &&
          item.items[0].kind == NodeKind::kScalar && item.items[1].kind == NodeKind::kScalar;
      if (has_ends) {
        edge.from = PatternNodeNamed(item.items[0].text);
        to = PatternNodeNamed(item.items[1].text);
      }
      const bool has_ports = has_ends && (item.items.size() == 2 || ReadPorts(item.items[2], edge));
      if (!has_ports || edge.from < 0 || to < 0) {
        reader_.WrongType("pattern_edges", item,
                          "[nickname, nickname, {src_out_port: 0, dst_in_port: 0}] of two pattern "
                          "nodes");
        continue;
      }
      op_.subgraph->edges[static_cast<size_t>(to)].push_back(edge);
    }
  }

  static bool ReadPorts(const ConfigNode& ports, PluginSubgraph::Edge& edge) {
    if (ports.kind != NodeKind::kMapping) return false;
    for (size_t i = 0; i + 1 < ports.items.size(); i += 2) {
      int port = 0;
      if (!absl::SimpleAtoi(ports.items[i + 1].text, &port) || port < 0 || port > kMaxPort) {
        return false;
      }
      if (ports.items[i].text == "src_out_port") {
        edge.result = port;
      } else if (ports.items[i].text == "dst_in_port") {
        edge.operand = port;
      } else {
        return false;
      }
    }
    return true;
  }

  // The one node that no edge leaves; every node must lead to it, without a circle.
  void FindEnd(const ConfigNode& at) {
    PluginSubgraph& graph = *op_.subgraph;
    std::vector<int> leaving(graph.pattern.size(), 0);
    for (const std::vector<PluginSubgraph::Edge>& edges : graph.edges) {
      for (const PluginSubgraph::Edge& edge : edges) ++leaving[static_cast<size_t>(edge.from)];
    }
    if (std::count(leaving.begin(), leaving.end(), 0) != 1) {
      return reader_.Report(DiagnosticKind::kConfigConflict, at,
                            "a pattern has one node that no edge leaves, and nodes of it make a "
                            "circle or end apart",
                            "let all nodes lead to one");
    }
    graph.end = static_cast<int>(std::find(leaving.begin(), leaving.end(), 0) - leaving.begin());
    // Takes nodes away from the end; those that are left make a circle.
    std::vector<int> done = {graph.end};
    for (size_t i = 0; i < done.size(); ++i) {
      for (const PluginSubgraph::Edge& edge : graph.edges[static_cast<size_t>(done[i])]) {
        if (--leaving[static_cast<size_t>(edge.from)] == 0) done.push_back(edge.from);
      }
    }
    if (done.size() == graph.pattern.size()) return;
    reader_.Report(DiagnosticKind::kConfigConflict, at, "nodes of the pattern make a circle",
                   "let all nodes lead to one");
  }

  void ReadOperands() {
    const ConfigNode* const value = reader_.Needed("operands");
    if (value == nullptr) return;
    if (!op_.subgraph.has_value()) {
      return Texts("operands", *value, [&](const std::string& name, const ConfigNode& at) {
        AddName("operands", at, name);
        op_.operands.push_back(name);
      });
    }
    if (value->kind != NodeKind::kMapping || value->items.empty() ||
        value->items.size() > 2 * kMaxPluginNames) {
      return reader_.WrongType("operands", *value,
                               "a mapping of names to the places NODE:K that read them, as the "
                               "operator is a subgraph");
    }
    for (size_t i = 0; i + 1 < value->items.size(); i += 2) {
      if (value->items[i].kind != NodeKind::kScalar) continue;  // reported with the syntax
      AddName("operands", value->items[i], value->items[i].text);
      op_.operands.push_back(value->items[i].text);
      op_.subgraph->places.push_back(PlacesOf(value->items[i + 1]));
    }
  }

  std::vector<PluginPlace> PlacesOf(const ConfigNode& value) {
    std::vector<PluginPlace> places;
    const std::vector<ConfigNode> one = {value};
    const std::vector<ConfigNode>& items = value.kind == NodeKind::kSequence ? value.items : one;
    if (items.size() > kMaxPluginNames) reader_.WrongType("operands", value, "fewer places");
    for (const ConfigNode& item : items) {
      const size_t colon = item.text.rfind(':');
      PluginPlace place{item.text.substr(0, colon), 0};
      const bool is_place = item.kind == NodeKind::kScalar && colon != std::string::npos &&
                            !place.node.empty() &&
                            absl::SimpleAtoi(item.text.substr(colon + 1), &place.operand) &&
                            place.operand >= 0 && place.operand <= kMaxPort;
      if (!is_place) {
        reader_.WrongType("operands", item, "places NODE:K, operand K of a node");
      } else if (!IsKnownNode(place.node)) {
        reader_.NotAllowed("operands", item, "places of nodes of the pattern");
      } else {
        places.push_back(std::move(place));
      }
    }
    return places;
  }

  // Names of nodes are checked against the model; those of a pattern here.
  bool IsKnownNode(absl::string_view node) const {
    return op_.subgraph->pattern.empty() || PatternNodeNamed(node) >= 0;
  }

  void ReadAttributes() {
    const ConfigNode* const value = reader_.Find("attributes");
    if (value == nullptr) return;
    if (value->kind != NodeKind::kMapping || value->items.size() > 2 * kMaxPluginNames) {
      return reader_.WrongType("attributes", *value,
                               absl::StrCat("a mapping of at most ", kMaxPluginNames,
                                            " names to {type: ..., default: ...}"));
    }
    for (size_t i = 0; i + 1 < value->items.size(); i += 2) {
      const ConfigNode& key = value->items[i];
      if (key.kind != NodeKind::kScalar) continue;  // reported with the syntax
      AddName("attributes", key, key.text);
      ReadAttribute(key, value->items[i + 1]);
    }
  }

  void ReadAttribute(const ConfigNode& key, const ConfigNode& value) {
    PluginAttribute attribute{.name = key.text, .source = key.text};
    const auto text = [&](absl::string_view name) -> const ConfigNode* {
      for (size_t i = 0; value.kind == NodeKind::kMapping && i + 1 < value.items.size(); i += 2) {
        if (value.items[i].text == name) return &value.items[i + 1];
      }
      return nullptr;
    };
    const ConfigNode* const type = text("type");
    const auto* const name =
        type == nullptr ? std::end(kTypeNames)
                        : std::find(std::begin(kTypeNames), std::end(kTypeNames), type->text);
    if (name == std::end(kTypeNames)) {
      return reader_.WrongType(
          "attributes", value,
          absl::StrCat("{type: T, default: V}, T one of ", absl::StrJoin(kTypeNames, ", ")));
    }
    attribute.type = static_cast<Type>(name - std::begin(kTypeNames));
    if (const ConfigNode* const source = text("name")) attribute.source = source->text;
    const ConfigNode* const node = text("node");
    if (node != nullptr) attribute.of_node = node->text;
    const bool has_node = node != nullptr;
    if (has_node != op_.subgraph.has_value() || (has_node && !IsKnownNode(attribute.of_node))) {
      reader_.NotAllowed("attributes", key,
                         op_.subgraph.has_value() ? "attributes with a line node: one of the nodes"
                                                  : "attributes without a line node");
    }
    if (const ConfigNode* const fallback = text("default")) {
      attribute.fallback = Numbers(attribute.type, *fallback);
      if (!attribute.fallback.has_value()) {
        reader_.WrongType("default", *fallback, *name);
      }
    }
    ReportUnknown(value);
    op_.attributes.push_back(std::move(attribute));
  }

  void ReportUnknown(const ConfigNode& attribute) {
    for (size_t i = 0; i + 1 < attribute.items.size(); i += 2) {
      const std::string& key = attribute.items[i].text;
      if (key == "type" || key == "name" || key == "node" || key == "default") continue;
      reader_.Report(DiagnosticKind::kConfigUnknownKey, attribute.items[i],
                     absl::StrCat("unknown key '", Printable(key, 80), "' of an attribute"),
                     "write type, default, name or node");
    }
  }

  static std::optional<double> NumberOf(Type type, const ConfigNode& value) {
    if (value.kind != NodeKind::kScalar || !value.plain) return std::nullopt;
    if (type == Type::kBool) {
      if (value.text != "true" && value.text != "false") return std::nullopt;
      return value.text == "true" ? 1 : 0;
    }
    double number = 0;
    if (!absl::SimpleAtod(value.text, &number) || !(std::fabs(number) <= 1e30)) return std::nullopt;
    const bool is_whole = type == Type::kInt || type == Type::kInts;
    if (is_whole && (number != std::floor(number) || std::fabs(number) > 0x1p31)) {
      return std::nullopt;
    }
    return number;
  }

  static std::optional<FormulaNumbers> Numbers(Type type, const ConfigNode& value) {
    FormulaNumbers numbers{{}, IsList(type)};
    if (IsList(type) != (value.kind == NodeKind::kSequence)) return std::nullopt;
    const std::vector<ConfigNode> one = {value};
    const std::vector<ConfigNode>& items = IsList(type) ? value.items : one;
    if (items.size() > kMaxPluginNames) return std::nullopt;
    for (const ConfigNode& item : items) {
      const std::optional<double> number = NumberOf(type, item);
      if (!number.has_value()) return std::nullopt;
      numbers.numbers.push_back(*number);
    }
    return numbers;
  }

  void ReadResults() {
    const ConfigNode* const list = reader_.Needed("results");
    if (list == nullptr) return;
    Texts("results", *list, [&](const std::string& name, const ConfigNode& at) {
      if (!IsFormulaName(name)) {
        return reader_.NotAllowed("results", at, "names of letters, digits and _");
      }
      op_.results.push_back(name);
    });
  }

  MappingReader& reader_;
  const ConfigNode& at_;
  PluginOp op_;
  std::set<std::string> names_;
};

// The formula with what it may call: the operators declared so far that are no subgraphs.
bool ParseFormula(PluginOp& op, const std::string& text, int line,
                  const std::vector<std::shared_ptr<const PluginOp>>& before,
                  Diagnostics& diagnostics) {
  Formula::Names names{.operands = op.operands, .results = op.results};
  for (const PluginAttribute& attribute : op.attributes) {
    names.attributes.push_back({attribute.name, IsList(attribute.type)});
  }
  for (const std::shared_ptr<const PluginOp>& other : before) {
    if (other->subgraph.has_value() || !other->has_formula()) continue;
    Formula::Callee callee{other->op, &other->formula, {}};
    for (const PluginAttribute& attribute : other->attributes) {
      callee.defaults.push_back(attribute.fallback.has_value() ? &*attribute.fallback : nullptr);
    }
    names.callees.push_back(std::move(callee));
  }
  return op.formula.Parse(text, names, [&](int at, const std::string& message, std::string fix) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigValueNotAllowed,
                     .message = absl::StrCat("operator '", Printable(op.op), "': ", message),
                     .file = op.file,
                     .line = line + at,
                     .fix = std::move(fix)});
  });
}

bool SharesFramework(const PluginOp& a, const PluginOp& b) {
  if (a.frameworks.empty() || b.frameworks.empty()) return true;
  return std::any_of(a.frameworks.begin(), a.frameworks.end(),
                     [&](const std::string& framework) { return b.IsFor(framework); });
}

}  // namespace

bool ReadPluginFile(absl::string_view text, absl::string_view file,
                    std::vector<std::shared_ptr<const PluginOp>>& ops, Diagnostics& diagnostics,
                    NativeOperators* natives) {
  Diagnostics found;
  std::optional<ConfigNode> root;
  if (text.size() > kMaxPluginFileBytes) {
    found.Add({.kind = DiagnosticKind::kConfigUnreadable,
               .message = absl::StrCat("the file has ", text.size(), " bytes; at most ",
                                       kMaxPluginFileBytes, " are allowed"),
               .file = std::string(file),
               .fix = "name several files in PLUGINS"});
  } else if (CheckConfigText(text, file, found)) {
    root = ParseConfigYaml(text, file, found);
  }
  if (root.has_value() && root->kind == NodeKind::kMapping) {
    MappingReader reader(*root, kWhat, file, found);
    reader.Mappings("operators", kMaxPluginOps, [&](MappingReader& one, const ConfigNode& at) {
      const size_t before = found.list().size();
      auto op = std::make_shared<PluginOp>();
      OpReader declared(one, at, file);
      *op = declared.Read();
      int line = 0;
      const std::string formula = declared.ReadFormula(line);
      op->native = declared.ReadLibrary(*op, natives, !formula.empty());
      const bool is_native = one.Has("library") && formula.empty();
      if (found.list().size() == before && !is_native) {
        (void)ParseFormula(*op, formula, line, ops, found);
      }
      for (const std::shared_ptr<const PluginOp>& other : ops) {
        if (other->op != op->op || !SharesFramework(*other, *op)) continue;
        one.Report(DiagnosticKind::kConfigDuplicate, at,
                   absl::StrCat("operator '", Printable(op->op), "' is declared at line ",
                                other->line, " of ", Printable(other->file), " already"),
                   "remove one of the two");
      }
      if (ops.size() >= kMaxPluginOps) {
        one.Report(
            DiagnosticKind::kConfigValueNotAllowed, at,
            absl::StrCat("the files of PLUGINS declare more than ", kMaxPluginOps, " operators"),
            "declare those that the model has");
      } else {
        ops.push_back(std::move(op));
      }
    });
    reader.Finish();
  } else if (!found.has_errors()) {
    found.Add({.kind = DiagnosticKind::kConfigSyntax,
               .message = "the declarations of operators are no mapping",
               .file = std::string(file),
               .fix = "write a line operators: and a list behind it"});
  }
  diagnostics.Append(found);
  return !found.has_errors();
}

}  // namespace npuc::frontend
