#include "compiler_core/pipeline/profile_graph.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/report/json_writer.h"

namespace npuc {
namespace {

// The values that the nodes of a report pass to one another.
struct Links {
  std::vector<std::vector<ValueId>> inputs;   // of each node, each once, in operand order
  std::vector<std::vector<ValueId>> outputs;  // that another node or the caller reads
  std::vector<int64_t> levels;                // 1 + the largest of the nodes that it reads; from 0
};

class LinkFinder {
 public:
  explicit LinkFinder(const ReportData& data) : data_(data), graph_(data.graph) {}

  Links Find() {
    links_.inputs.resize(data_.nodes.size());
    links_.outputs.resize(data_.nodes.size());
    links_.levels.assign(data_.nodes.size(), 0);
    for (int i = 0; i < graph_.node_count(); ++i) {
      const int32_t user = data_.node_of_graph_node[static_cast<size_t>(i)];
      if (user == kOfNoNode) continue;
      for (const ValueId input : graph_.node(NodeId(i)).inputs) AddInput(user, input);
    }
    for (const GraphOutput& output : graph_.outputs()) {
      const int32_t maker = MakerOf(output.value);
      if (maker != kOfNoNode) AddOnce(output.value, links_.outputs[static_cast<size_t>(maker)]);
    }
    return std::move(links_);
  }

 private:
  int32_t MakerOf(ValueId value) const {
    return data_.node_of_graph_node[static_cast<size_t>(graph_.value(value).def.value())];
  }

  static void AddOnce(ValueId value, std::vector<ValueId>& list) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  }

  void AddInput(int32_t user, ValueId value) {
    const int32_t maker = MakerOf(value);
    if (graph_.ConstantOf(value) != nullptr || maker == user) return;
    AddOnce(value, links_.inputs[static_cast<size_t>(user)]);
    if (maker == kOfNoNode) return;
    AddOnce(value, links_.outputs[static_cast<size_t>(maker)]);
    int64_t& level = links_.levels[static_cast<size_t>(user)];
    level = std::max(level, links_.levels[static_cast<size_t>(maker)] + 1);
  }

  const ReportData& data_;
  const Graph& graph_;
  Links links_;
};

// "conv", "split:1".
std::string TensorName(const Graph& graph, ValueId value) {
  const std::string name = Printable(graph.def(value).source.name);
  const int index = graph.value(value).index;
  return index == 0 ? name : absl::StrCat(name, ":", index);
}

void WriteNames(const Graph& graph, const char* key, const std::vector<ValueId>& values,
                JsonWriter& out) {
  out.Key(key);
  out.BeginArray();
  for (const ValueId value : values) out.Value(TensorName(graph, value));
  out.EndArray();
}

void WriteNodes(const ReportData& data, const Links& links, JsonWriter& out) {
  out.Key("nodes");
  out.BeginArray();
  for (size_t i = 0; i < data.nodes.size(); ++i) {
    const NodeFigures& node = data.nodes[i];
    out.BeginObject();
    out.Members("name", Printable(node.name), "op_type",
                Printable(node.layer_type.value_or(node.op)), "level", links.levels[i], "core_id",
                0, "commands", node.use.commands);
    WriteNames(data.graph, "input", links.inputs[i], out);
    WriteNames(data.graph, "output", links.outputs[i], out);
    out.EndObject();
  }
  out.EndArray();
}

void WriteTensors(const ReportData& data, const Links& links, JsonWriter& out) {
  std::set<ValueId> values;
  for (const auto& list : links.inputs) values.insert(list.begin(), list.end());
  for (const auto& list : links.outputs) values.insert(list.begin(), list.end());
  out.Key("tensors");
  out.BeginArray();
  for (const ValueId value : values) {
    const TensorType& type = data.graph.type(value);
    out.BeginObject();
    out.Members("name", TensorName(data.graph, value), "shape", type.shape, "dtype",
                NameOf(type.dtype));
    out.EndObject();
  }
  out.EndArray();
}

}  // namespace

std::string ProfileGraphJson(const CompiledModel& model, const ReportData& data,
                             absl::string_view graph_name) {
  const Links links = LinkFinder(data).Find();
  const auto& commands = model.cmd_content;
  JsonWriter out;
  out.BeginObject();
  out.Members("graph_name", Printable(graph_name), "frequency", kDefaultFrequencyMhz, "target",
              model.core, "commands_md5",
              Md5Hex({reinterpret_cast<const char*>(commands.data()), commands.size()}));
  out.Key("node_of_command");
  out.Value(std::vector<int64_t>(data.node_of_command.begin(), data.node_of_command.end()));
  out.Key("graph");
  out.BeginObject();
  WriteNodes(data, links, out);
  WriteTensors(data, links, out);
  out.EndObject();
  out.EndObject();
  return out.Take() + "\n";
}

}  // namespace npuc
