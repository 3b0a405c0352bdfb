#include "compiler_core/report/profile_data.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/ir/cmd/load.h"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

// Names of the guide's report (figure 4-5, table 4-3).
constexpr char kName[] = "Layer Name";
constexpr char kCore[] = "Core ID";
constexpr char kLevel[] = "Level";
constexpr char kCycles[] = "Cycles";
constexpr char kTime[] = "Cost Time (ms)";
constexpr char kRead[] = "AIPU Read Bytes";
constexpr char kWritten[] = "AIPU Write Bytes";
constexpr char kOps[] = "Algorithm Ops";
constexpr char kShapes[] = "Input Shapes";
constexpr char kUtilization[] = " Utilization";

struct Unit {
  const char* name;
  int64_t ProfileRecord::*busy;
};
constexpr Unit kUnits[] = {{"AIFF", &ProfileRecord::aiff_busy_cycles},
                           {"TPC", &ProfileRecord::tpc_busy_cycles},
                           {"DMA", &ProfileRecord::dma_busy_cycles}};

// The parts of graph.json that are read here.
struct GraphNode {
  std::string name;
  int64_t level = 0;
  std::vector<std::string> inputs;  // tensors
};

struct ProfileGraph {
  std::string name;
  int64_t frequency_mhz = 0;
  std::string commands_md5;
  std::vector<int64_t> node_of_command;
  std::vector<GraphNode> nodes;
  std::map<std::string, std::string> shapes;  // "[1,2]" by tensor
  Json graph;                                 // as the file has it
};

using Kind = JsonNode::Kind;

// Reads graph.json; the first problem ends it.
class GraphReader {
 public:
  GraphReader(const JsonNode& root, std::string& problem) : root_(root), problem_(problem) {}

  bool Read(ProfileGraph& out) {
    const JsonNode* name = Member(root_, "graph_name", Kind::kString);
    const JsonNode* frequency = Member(root_, "frequency", Kind::kInteger);
    const JsonNode* md5 = Member(root_, "commands_md5", Kind::kString);
    const JsonNode* commands = Member(root_, "node_of_command", Kind::kArray);
    const JsonNode* graph = Member(root_, "graph", Kind::kObject);
    if (name == nullptr || frequency == nullptr || md5 == nullptr || commands == nullptr ||
        graph == nullptr) {
      return false;
    }
    out.name = name->text;
    out.commands_md5 = md5->text;
    out.frequency_mhz = frequency->integer;
    if (out.frequency_mhz < 1 || out.frequency_mhz > kMaxFrequencyMhz) {
      return Refuse(*frequency, absl::StrCat("frequency is ", out.frequency_mhz,
                                             " MHz; allowed: 1..", kMaxFrequencyMhz));
    }
    return ReadTensors(*graph, out) && ReadNodes(*graph, out) && ReadCommands(*commands, out);
  }

 private:
  bool Refuse(const JsonNode& at, const std::string& message) {
    problem_ = absl::StrCat(at.place.line, ":", at.place.column, ": ", message);
    return false;
  }

  const JsonNode* Member(const JsonNode& of, const char* key, Kind kind) {
    for (size_t i = 0; i < of.keys.size(); ++i) {
      if (of.keys[i].name != key) continue;
      if (of.items[i].kind == kind) return &of.items[i];
      Refuse(of.items[i], absl::StrCat(key, " is ", DescribeJson(of.items[i])));
      return nullptr;
    }
    Refuse(of, absl::StrCat(key, " is missing"));
    return nullptr;
  }

  bool ReadTensors(const JsonNode& graph, ProfileGraph& out) {
    const JsonNode* tensors = Member(graph, "tensors", Kind::kArray);
    if (tensors == nullptr) return false;
    for (const JsonNode& tensor : tensors->items) {
      const JsonNode* name = Member(tensor, "name", Kind::kString);
      if (name == nullptr) return false;
      const JsonNode* shape = Member(tensor, "shape", Kind::kArray);
      if (shape == nullptr) return false;
      out.shapes[name->text] = absl::StrCat(
          "[",
          absl::StrJoin(
              shape->items, ",",
              [](std::string* text, const JsonNode& dim) { absl::StrAppend(text, dim.integer); }),
          "]");
    }
    return true;
  }

  bool ReadNodes(const JsonNode& graph, ProfileGraph& out) {
    const JsonNode* nodes = Member(graph, "nodes", Kind::kArray);
    if (nodes == nullptr) return false;
    for (const JsonNode& node : nodes->items) {
      const JsonNode* name = Member(node, "name", Kind::kString);
      if (name == nullptr) return false;
      const JsonNode* level = Member(node, "level", Kind::kInteger);
      if (level == nullptr) return false;
      const JsonNode* inputs = Member(node, "input", Kind::kArray);
      if (inputs == nullptr) return false;
      GraphNode& read = out.nodes.emplace_back();
      read.name = name->text;
      read.level = level->integer;
      for (const JsonNode& input : inputs->items) read.inputs.push_back(input.text);
    }
    return true;
  }

  bool ReadCommands(const JsonNode& commands, ProfileGraph& out) {
    for (const JsonNode& command : commands.items) {
      const bool is_node = command.kind == Kind::kInteger && command.integer >= -1 &&
                           command.integer < static_cast<int64_t>(out.nodes.size());
      if (!is_node) {
        return Refuse(command,
                      absl::StrCat("node_of_command has ", DescribeJson(command),
                                   "; allowed: -1 and positions of ", out.nodes.size(), " nodes"));
      }
      out.node_of_command.push_back(command.integer);
    }
    return true;
  }

  const JsonNode& root_;
  std::string& problem_;
};

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The counters of several commands.
struct Sums {
  ProfileRecord counters;  // cycles: of all cores together
  PhaseClock clock;
  size_t first_command = SIZE_MAX;

  void Add(const ProfileRecord& record, size_t command, int64_t phase) {
    clock.Add(phase, static_cast<int32_t>(record.core), record.cycles);
    first_command = std::min(first_command, command);
    counters.cycles += record.cycles;
    for (const Unit& unit : kUnits) counters.*unit.busy += record.*unit.busy;
    counters.read_bytes += record.read_bytes;
    counters.written_bytes += record.written_bytes;
    counters.macs += record.macs;
  }

  void AddTo(Json& out, int64_t frequency_mhz) const {
    out[kCycles] = clock.cycles();
    out[kTime] =
        static_cast<double>(clock.cycles()) / (1000.0 * static_cast<double>(frequency_mhz));
    for (const Unit& unit : kUnits) {
      out[absl::StrCat(unit.name, " Busy Cycles")] = counters.*unit.busy;
      out[absl::StrCat(unit.name, kUtilization)] = Share(counters.*unit.busy, counters.cycles);
    }
    out[kRead] = counters.read_bytes;
    out[kWritten] = counters.written_bytes;
    out[kOps] = 2 * counters.macs;
  }
};

// The core that works on a layer; "0,1,2" of several.
Json CoreIdOf(const Sums& sums) {
  const std::map<int32_t, int64_t>& busy = sums.clock.busy();
  if (busy.size() == 1) return busy.begin()->first;
  return absl::StrJoin(busy, ",", [](std::string* text, const std::pair<int32_t, int64_t>& core) {
    absl::StrAppend(text, core.first);
  });
}

std::string InputShapes(const ProfileGraph& graph, const GraphNode& node) {
  std::vector<std::string> shapes;
  for (const std::string& input : node.inputs) {
    const auto found = graph.shapes.find(input);
    if (found != graph.shapes.end()) shapes.push_back(found->second);
  }
  return absl::StrJoin(shapes, ",");
}

Json Combine(ProfileGraph graph, const ProfileBuffer& buffer) {
  std::vector<Sums> sums(graph.nodes.size());
  Sums all;
  int64_t phase = 0;
  for (size_t i = 0; i < buffer.records.size(); ++i) {
    if (buffer.records[i].barrier) ++phase;
    all.Add(buffer.records[i], i, phase);
    const int64_t node = graph.node_of_command[i];
    if (node >= 0) sums[static_cast<size_t>(node)].Add(buffer.records[i], i, phase);
  }
  std::vector<size_t> order;  // the nodes that have commands, by the first of them
  for (size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].first_command != SIZE_MAX) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return sums[a].first_command < sums[b].first_command; });
  Json list = Json::array();
  for (const size_t i : order) {
    Json figures = {{kCore, CoreIdOf(sums[i])}, {kLevel, graph.nodes[i].level}};
    sums[i].AddTo(figures, graph.frequency_mhz);
    figures[kShapes] = InputShapes(graph, graph.nodes[i]);
    list.push_back({{"name", graph.nodes[i].name}, {"runtime_information", std::move(figures)}});
  }
  Json summary = {{"Layers", order.size()}};
  all.AddTo(summary, graph.frequency_mhz);
  return Json{{"graph_name", graph.name},
              {"frequency", graph.frequency_mhz},
              {"graph", std::move(graph.graph)},
              {"profile_data", std::move(list)},
              {"summary", std::move(summary)}};
}

TableCell CellOf(const std::string& name, const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  if (value.is_number_integer()) return {value.get<int64_t>()};
  const bool is_share = absl::EndsWith(name, kUtilization);
  return {value.get<double>(), is_share ? TableCell::Form::kPercent : TableCell::Form::kPlain};
}

}  // namespace

std::optional<Json> MakeProfileData(absl::string_view graph_json, const ProfileBuffer& buffer,
                                    std::optional<int64_t> frequency_mhz, ProfileProblem& problem) {
  JsonNode root;
  JsonError error;
  const JsonLimits limits{.bytes = static_cast<size_t>(kMaxProfileBytes), .nodes = 1 << 23};
  problem.in_graph = true;
  if (!ParseJsonTree(graph_json, limits, root, error)) {
    problem.message = absl::StrCat(error.place.line, ":", error.place.column, ": ", error.message);
    return std::nullopt;
  }
  ProfileGraph graph;
  if (!GraphReader(root, problem.message).Read(graph)) return std::nullopt;
  problem.in_graph = false;
  if (graph.commands_md5 != buffer.commands_md5 ||
      graph.node_of_command.size() != buffer.records.size()) {
    problem.message =
        absl::StrCat("is the profile of another build than graph.json: ", buffer.records.size(),
                     " commands with MD5 ", buffer.commands_md5, ", not ",
                     graph.node_of_command.size(), " with ", graph.commands_md5);
    return std::nullopt;
  }
  if (frequency_mhz.has_value()) graph.frequency_mhz = *frequency_mhz;
  Json whole = Json::parse(graph_json, nullptr, /*allow_exceptions=*/false);
  if (whole.is_discarded()) {
    problem = {true, "holds a number that is too large"};
    return std::nullopt;
  }
  graph.graph = std::move(whole["graph"]);
  return Combine(std::move(graph), buffer);
}

std::vector<Table> ProfileTables(const Json& data) {
  Table detailed{.name = "DETAILED DATA", .columns = {kName}, .rows = {}};
  for (const Json& entry : data["profile_data"]) {
    const Json& figures = entry["runtime_information"];
    std::vector<TableCell> row = {{entry["name"].get<std::string>()}};
    for (const auto& [name, value] : figures.items()) {
      if (detailed.rows.empty()) detailed.columns.push_back(name);
      row.push_back(CellOf(name, value));
    }
    detailed.rows.push_back(std::move(row));
  }
  Table summary{.name = "SUMMARY", .columns = {"Item", "Value"}, .rows = {}};
  summary.rows.push_back({{std::string("Graph Name")}, {data["graph_name"].get<std::string>()}});
  summary.rows.push_back({{std::string("Frequency (MHz)")}, CellOf("", data["frequency"])});
  for (const auto& [name, value] : data["summary"].items()) {
    summary.rows.push_back({{std::string(name)}, CellOf(name, value)});
  }
  return {std::move(detailed), std::move(summary)};
}

}  // namespace npuc
