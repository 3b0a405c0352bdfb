#include "compiler_core/frontends/common/subgraphs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace npuc::frontend {

void Subgraphs::AddNode(int number, absl::string_view name, absl::string_view op,
                        std::vector<std::string> operands, std::map<int, std::string> results) {
  if (is_empty()) return;
  const int position = static_cast<int>(nodes_.size());
  Node node{number, std::string(name), std::string(op), std::move(operands), std::move(results)};
  for (const std::string& operand : node.operands) {
    node.is_run_time = node.is_run_time || ReadsRunTime(operand);
    if (!operand.empty()) readers_[operand].push_back(position);
  }
  for (const auto& [number, result] : node.results) {
    if (!result.empty() && !inputs_.contains(result)) {
      sources_.emplace(result, Source{position, number});
    }
  }
  names_.emplace(node.name, position);
  nodes_.push_back(std::move(node));
}

Subgraphs::Source Subgraphs::SourceOf(const std::string& tensor) const {
  const auto found = sources_.find(tensor);
  return found == sources_.end() ? Source() : found->second;
}

int Subgraphs::FindNode(absl::string_view name) const {
  const auto found = names_.find(std::string(name));
  return found == names_.end() ? -1 : found->second;
}

bool Subgraphs::ReadsRunTime(const std::string& tensor) const {
  if (inputs_.contains(tensor)) return true;
  const Source source = SourceOf(tensor);
  return source.node >= 0 && nodes_[static_cast<size_t>(source.node)].is_run_time;
}

void Subgraphs::Match(Diagnostics& diagnostics) {
  for (const auto& op : plugins_.subgraphs()) {
    if (op->subgraph->pattern.empty()) {
      MatchNamed(*op, diagnostics);
      continue;
    }
    for (size_t end = nodes_.size(); end-- > 0;) MatchPattern(*op, static_cast<int>(end));
  }
}

void Subgraphs::MatchNamed(const PluginOp& op, Diagnostics& diagnostics) {
  const PluginSubgraph& graph = *op.subgraph;
  std::string problem;
  for (const std::string& name : graph.start_nodes) {
    if (FindNode(name) < 0) {
      problem = absl::StrCat("start_nodes names '", Printable(name),
                             "', which is no node that the outputs need");
    }
  }
  const int end = FindNode(graph.end_node);
  if (end < 0) {
    problem = absl::StrCat("end_nodes names '", Printable(graph.end_node),
                           "', which is no node that the outputs need");
  }
  if (problem.empty()) problem = Replace(op, Between(graph), end, names_);
  if (problem.empty()) return;
  diagnostics.Add({.kind = DiagnosticKind::kConfigConflict,
                   .message = absl::StrCat("operator '", Printable(op.op), "': ", problem),
                   .file = op.file,
                   .line = op.line,
                   .fix = "correct the names, or the places of the operands"});
}

void Subgraphs::MatchPattern(const PluginOp& op, int end) {
  const PluginSubgraph& graph = *op.subgraph;
  const std::vector<int> nodes = Bind(graph, end);
  if (nodes.empty()) return;
  absl::flat_hash_map<std::string, int> by_name;
  for (size_t i = 0; i < nodes.size(); ++i) by_name.emplace(graph.pattern[i].nickname, nodes[i]);
  (void)Replace(op, nodes, end, by_name);  // what cannot be replaced stays as it is
}

// Every node leads to the end, so each edge whose end is bound binds its beginning.
std::vector<int> Subgraphs::Bind(const PluginSubgraph& graph, int end) const {
  std::vector<int> nodes(graph.pattern.size(), -1);
  nodes[static_cast<size_t>(graph.end)] = end;
  std::vector<int> open = {graph.end};
  for (size_t i = 0; i < open.size(); ++i) {
    const auto at = static_cast<size_t>(open[i]);
    const Node& node = nodes_[static_cast<size_t>(nodes[at])];
    if (node.op != graph.pattern[at].op) return {};
    for (const PluginSubgraph::Edge& edge : graph.edges[at]) {
      if (static_cast<size_t>(edge.operand) >= node.operands.size()) return {};
      const Source source = SourceOf(node.operands[static_cast<size_t>(edge.operand)]);
      if (source.node < 0 || source.result != edge.result) return {};
      int& from = nodes[static_cast<size_t>(edge.from)];
      if (from >= 0 && from != source.node) return {};
      if (from < 0) open.push_back(edge.from);
      from = source.node;
    }
  }
  std::vector<int> sorted = nodes;
  std::sort(sorted.begin(), sorted.end());
  const bool is_twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  return is_twice ? std::vector<int>() : nodes;
}

// The nodes on all ways from a start node to the end node, in order.
std::vector<int> Subgraphs::Between(const PluginSubgraph& graph) const {
  const size_t end = static_cast<size_t>(FindNode(graph.end_node));
  std::vector<bool> follows(nodes_.size(), false);
  for (const std::string& name : graph.start_nodes) {
    follows[static_cast<size_t>(FindNode(name))] = true;
  }
  const auto source_of = [this](const std::string& operand) {
    return static_cast<size_t>(SourceOf(operand).node);
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::string& operand : nodes_[i].operands) {
      if (SourceOf(operand).node >= 0 && follows[source_of(operand)]) follows[i] = true;
    }
  }
  std::vector<bool> leads(nodes_.size(), false);
  leads[end] = true;
  std::vector<int> between;
  for (size_t i = end + 1; i-- > 0;) {
    if (!leads[i] || !follows[i]) continue;
    between.push_back(static_cast<int>(i));
    for (const std::string& operand : nodes_[i].operands) {
      if (SourceOf(operand).node >= 0) leads[source_of(operand)] = true;
    }
  }
  std::reverse(between.begin(), between.end());
  return between;
}

std::string Subgraphs::CheckReaders(const Members& members, int end) const {
  for (const auto& [position, listed] : members) {
    if (position == end) continue;
    for (const auto& [number, result] : nodes_[static_cast<size_t>(position)].results) {
      const auto readers = readers_.find(result);
      const bool is_read = outputs_.contains(result) ||
                           (readers != readers_.end() &&
                            std::any_of(readers->second.begin(), readers->second.end(),
                                        [&](int reader) { return !members.contains(reader); }));
      if (is_read) {
        return absl::StrCat("'", Printable(result),
                            "', a result inside of the subgraph, is read outside of it");
      }
    }
  }
  return "";
}

std::string Subgraphs::CheckOperands(const PluginSubgraph& graph, const std::vector<int>& nodes,
                                     const Members& members) const {
  const auto has_edge = [&](size_t at, size_t operand) {
    return std::any_of(graph.edges[at].begin(), graph.edges[at].end(), [&](const auto& edge) {
      return static_cast<size_t>(edge.operand) == operand;
    });
  };
  for (size_t at = 0; at < nodes.size(); ++at) {
    const Node& node = nodes_[static_cast<size_t>(nodes[at])];
    const std::vector<bool>& listed = members.at(nodes[at]);
    for (size_t operand = 0; operand < node.operands.size(); ++operand) {
      const std::string& tensor = node.operands[operand];
      if (tensor.empty() || listed[operand]) continue;
      const bool is_inside = graph.pattern.empty()
                                 ? !ReadsRunTime(tensor) || members.contains(SourceOf(tensor).node)
                                 : has_edge(at, operand);
      if (!is_inside) {
        return absl::StrCat("operand ", operand, " of '", Printable(node.name), "', '",
                            Printable(tensor), "', is none of the formula's");
      }
    }
  }
  return "";
}

std::string Subgraphs::TakePlaces(const PluginOp& op,
                                  const absl::flat_hash_map<std::string, int>& by_name,
                                  Members& members, SubgraphMatch& match) const {
  const auto member_of = [&](const std::string& name) {
    const auto named = by_name.find(name);
    return named == by_name.end() ? members.end() : members.find(named->second);
  };
  const auto no_node = [](const std::string& name) {
    return absl::StrCat("'", Printable(name), "' is no node of the subgraph");
  };
  for (size_t i = 0; i < op.subgraph->places.size(); ++i) {
    std::string tensor;
    for (const PluginPlace& place : op.subgraph->places[i]) {
      const auto member = member_of(place.node);
      if (member == members.end()) return no_node(place.node);
      const Node& node = nodes_[static_cast<size_t>(member->first)];
      const auto operand = static_cast<size_t>(place.operand);
      if (operand >= node.operands.size() || node.operands[operand].empty() ||
          (!tensor.empty() && node.operands[operand] != tensor)) {
        return absl::StrCat("operand ", place.operand, " of '", Printable(node.name),
                            "' is not there, or another tensor than '", op.operands[i], "'");
      }
      if (tensor.empty()) match.operands.push_back({node.number, place.operand});
      tensor = node.operands[operand];
      member->second[operand] = true;
    }
  }
  for (const PluginAttribute& attribute : op.attributes) {
    const auto member = member_of(attribute.of_node);
    if (member == members.end()) return no_node(attribute.of_node);
    match.attribute_nodes.push_back(nodes_[static_cast<size_t>(member->first)].number);
  }
  return "";
}

std::string Subgraphs::Replace(const PluginOp& op, const std::vector<int>& nodes, int end,
                               const absl::flat_hash_map<std::string, int>& by_name) {
  if (nodes.empty()) return "no way leads from a start node to the end node";
  Members members;
  for (const int position : nodes) {
    const Node& node = nodes_[static_cast<size_t>(position)];
    if (node.is_taken) return "another subgraph has its nodes";
    members.emplace(position, std::vector<bool>(node.operands.size(), false));
  }
  SubgraphMatch match{&op, nodes_[static_cast<size_t>(end)].number, {}, {}};
  std::string problem = TakePlaces(op, by_name, members, match);
  if (problem.empty()) problem = CheckReaders(members, end);
  if (problem.empty()) problem = CheckOperands(*op.subgraph, nodes, members);
  if (!problem.empty()) return problem;
  for (const int position : nodes) {
    Node& node = nodes_[static_cast<size_t>(position)];
    node.is_taken = true;
    if (position != end) inside_.insert(node.number);
  }
  matches_.emplace(match.end, std::move(match));
  return "";
}

const SubgraphMatch* Subgraphs::FindEnd(int number) const {
  const auto found = matches_.find(number);
  return found == matches_.end() ? nullptr : &found->second;
}

}  // namespace npuc::frontend
