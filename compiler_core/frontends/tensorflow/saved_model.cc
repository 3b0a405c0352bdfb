#include "compiler_core/frontends/tensorflow/saved_model.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/archive.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tensorflow/function_control.h"
#include "compiler_core/frontends/tensorflow/function_graph.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/frontends/tensorflow/tensor_bundle.h"
#include "google/protobuf/io/coded_stream.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

using fe::tf::GraphDef;
using fe::tf::MetaGraphDef;
using fe::tf::NodeDef;
using fe::tf::SignatureDef;

constexpr absl::string_view kModelFile = "saved_model.pb";
constexpr absl::string_view kIndexFile = "variables/variables.index";
constexpr absl::string_view kDataFile = "variables/variables.data-";
constexpr int kMaxMessageNesting = 32;

absl::Status Refused(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the SavedModel ", what));
}

// The files of a SavedModel's folder, which may lie in a folder of the archive.
struct Files {
  std::vector<ZipFile> entries;
  absl::string_view model;
  absl::string_view index;
  std::vector<absl::string_view> shards;
};

absl::StatusOr<Files> FilesOf(absl::string_view archive) {
  Files files;
  ASSIGN_OR_RETURN(files.entries, ReadArchive(archive, static_cast<int64_t>(kMaxModelBytes)));
  std::string folder;
  for (const ZipFile& entry : files.entries) {
    if (!absl::EndsWith(entry.name, kModelFile)) continue;
    folder = entry.name.substr(0, entry.name.size() - kModelFile.size());
    files.model = entry.bytes;
    break;
  }
  for (const ZipFile& entry : files.entries) {  // sorted, so the shards are in their order
    if (entry.name == absl::StrCat(folder, kIndexFile)) files.index = entry.bytes;
    if (absl::StartsWith(entry.name, absl::StrCat(folder, kDataFile))) {
      files.shards.push_back(entry.bytes);
    }
  }
  return files;
}

absl::StatusOr<const MetaGraphDef*> ServedGraph(const fe::tf::SavedModel& model) {
  for (const MetaGraphDef& each : model.meta_graphs()) {
    const auto& tags = each.meta_info_def().tags();
    if (std::find(tags.begin(), tags.end(), "serve") != tags.end()) return &each;
  }
  if (model.meta_graphs_size() == 0) return Refused("holds no graph");
  return &model.meta_graphs(0);
}

absl::StatusOr<const SignatureDef*> SignatureOf(const MetaGraphDef& meta) {
  constexpr absl::string_view kDefault = "serving_default";
  std::map<std::string, const SignatureDef*> found;  // those that have outputs
  for (const auto& entry : meta.signature_def()) {
    if (entry.value().inputs_size() > 0 && entry.value().outputs_size() > 0) {
      found[entry.key()] = &entry.value();
    }
  }
  const auto usual = found.find(std::string(kDefault));
  if (usual != found.end()) return usual->second;
  if (found.size() == 1) return found.begin()->second;
  std::string names;
  for (const auto& [name, signature] : found) absl::StrAppend(&names, " ", Printable(name));
  return Refused(found.empty()
                     ? "has no signature with inputs and outputs"
                     : absl::StrCat("has several signatures and no serving_default:", names));
}

// Freezes one signature of one graph.
class Freezer {
 public:
  Freezer(const GraphDef& graph, const std::optional<TensorBundle>& bundle, GraphDef& out)
      : functions_(graph), bundle_(bundle), out_(out) {}

  absl::Status Run(const MetaGraphDef& meta, const SignatureDef& signature) {
    RETURN_IF_ERROR(FindVariables(meta.saver_def().restore_op_name()));
    RETURN_IF_ERROR(NameInputs(signature));
    RETURN_IF_ERROR(AddOutputs(signature));
    while (!queue_.empty()) {
      const auto [place, name] = queue_.front();
      queue_.pop_front();
      RETURN_IF_ERROR(Emit(place, name));
    }
    *out_.mutable_versions() = meta.graph_def().versions();
    return absl::OkStatus();
  }

 private:
  // Which variable of the checkpoint each node is, by the graph that restores it.
  absl::Status FindVariables(absl::string_view restore_op) {
    std::vector<int> scopes = {FunctionGraph::kMainScope};
    const std::string node_name(restore_op.substr(0, restore_op.find(':')));
    const NodeDef* restore = functions_.FindNode(FunctionGraph::kMainScope, node_name);
    if (restore != nullptr && functions_.IsCall(*restore)) {
      ASSIGN_OR_RETURN(const int scope, functions_.Enter(FunctionGraph::kMainScope, *restore));
      scopes.push_back(scope);
    }
    for (const int scope : scopes) {
      for (const NodeDef* node : functions_.NodesOf(scope)) {
        if (node->op() != "AssignVariableOp" && node->op() != "Assign") continue;
        if (node->input_size() < 2) return AtNode(*node, "has fewer than two inputs");
        RETURN_IF_ERROR(AddVariable(scope, *node));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddVariable(int scope, const NodeDef& assign) {
    ASSIGN_OR_RETURN(const Place variable, functions_.Resolve(scope, assign.input(0)));
    ASSIGN_OR_RETURN(const Place value, functions_.ResolveThroughIdentity(scope, assign.input(1)));
    if (value.node->op() != "RestoreV2" || value.node->input_size() < 3) return absl::OkStatus();
    const auto text = [&](int operand) -> absl::StatusOr<std::string> {
      ASSIGN_OR_RETURN(const Place place,
                       functions_.ResolveThroughIdentity(value.scope, value.node->input(operand)));
      for (const auto& attr : place.node->attr()) {
        if (attr.key() != "value") continue;
        const auto& strings = attr.value().tensor().string_val();
        if (strings.empty()) break;
        return strings[std::min(value.output, strings.size() - 1)];
      }
      return AtNode(*value.node, "restores variables whose names are not constant");
    };
    ASSIGN_OR_RETURN(const std::string slice, text(2));
    if (!slice.empty()) return AtNode(*value.node, "restores slices of variables");
    ASSIGN_OR_RETURN(variables_[variable.node], text(1));
    return absl::OkStatus();
  }

  absl::Status NameInputs(const SignatureDef& signature) {
    for (const auto& input : signature.inputs()) {
      ASSIGN_OR_RETURN(const Place place,
                       functions_.Resolve(FunctionGraph::kMainScope, input.value().name()));
      const std::string name = Unique(input.key(), "input_");
      names_.emplace(KeyOf(place), name);
      queue_.emplace_back(place, name);
    }
    return absl::OkStatus();
  }

  absl::Status AddOutputs(const SignatureDef& signature) {
    for (const auto& output : signature.outputs()) Unique(output.key(), "output_");
    for (const auto& output : signature.outputs()) {
      ASSIGN_OR_RETURN(const Place place,
                       functions_.Resolve(FunctionGraph::kMainScope, output.value().name()));
      NodeDef& node = *out_.add_node();
      node.set_name(reserved_[output.key()]);
      node.set_op("Identity");
      ASSIGN_OR_RETURN(*node.add_input(), NameOf(place));
      auto& type = *node.add_attr();
      type.set_key("T");
      type.mutable_value()->set_type(output.value().dtype());
    }
    return absl::OkStatus();
  }

  // `wanted` where no node has that name yet, else `prefix` and it, else with a number.
  std::string Unique(const std::string& wanted, const std::string& prefix) {
    std::string name = wanted;
    if (!taken_.insert(name).second) {
      name = absl::StrCat(prefix, wanted);
      for (int i = 1; !taken_.insert(name).second; ++i) name = absl::StrCat(prefix, wanted, "_", i);
    }
    reserved_.emplace(wanted, name);
    return name;
  }

  using PlaceKey = std::pair<int, const NodeDef*>;
  static PlaceKey KeyOf(const Place& place) { return {place.scope, place.node}; }

  // Gives the name of the tensor at `place` in the result, and puts its node into the queue.
  absl::StatusOr<std::string> NameOf(const Place& place) {
    const auto [it, inserted] = names_.try_emplace(KeyOf(place));
    if (inserted) {
      if (static_cast<int>(names_.size()) > kMaxNodes) {
        return Refused(absl::StrCat("has more than ", kMaxNodes, " nodes, functions inlined"));
      }
      it->second = Unique(place.node->name(), functions_.PrefixOf(place.scope));
      queue_.emplace_back(place, it->second);
    }
    return place.output == 0 ? it->second : absl::StrCat(it->second, ":", place.output);
  }

  absl::Status Emit(const Place& place, const std::string& name) {
    const NodeDef& from = *place.node;
    if (from.op() == "VarHandleOp" || from.op() == "VariableV2" || from.op() == "Variable") {
      return EmitVariable(from, name);
    }
    NodeDef& node = *out_.add_node();
    node.set_name(name);
    node.set_op(from.op() == "ResourceGather" ? "GatherV2" : from.op());
    for (const auto& attr : from.attr()) {
      if (absl::StartsWith(attr.key(), "_")) continue;
      fe::tf::AttrEntry& to = *node.add_attr();
      functions_.CopyAttr(place.scope, attr, to);
      if (to.key() == "frame_name") {  // each call of a function has loops of its own
        to.mutable_value()->set_s(absl::StrCat(functions_.PrefixOf(place.scope), to.value().s()));
      }
    }
    for (const std::string& input : from.input()) {
      if (absl::StartsWith(input, "^")) continue;
      ASSIGN_OR_RETURN(const Place operand, functions_.Resolve(place.scope, input));
      ASSIGN_OR_RETURN(*node.add_input(), NameOf(operand));
    }
    if (from.op() == "ResourceGather") AddAxis(node);
    return absl::OkStatus();
  }

  static fe::tf::AttrValue& AddAttr(NodeDef& node, absl::string_view key) {
    fe::tf::AttrEntry& entry = *node.add_attr();
    entry.set_key(std::string(key));
    return *entry.mutable_value();
  }

  // Adds the axis operand of GatherV2: ResourceGather takes the first axis without one.
  void AddAxis(NodeDef& gather) {
    const std::string name = Unique(absl::StrCat(gather.name(), "/axis"), "of_");
    gather.add_input(name);
    NodeDef& axis = *out_.add_node();
    axis.set_name(name);
    axis.set_op("Const");
    AddAttr(axis, "dtype").set_type(fe::tf::DT_INT32);
    fe::tf::TensorProto& value = *AddAttr(axis, "value").mutable_tensor();
    value.set_dtype(fe::tf::DT_INT32);
    value.mutable_tensor_shape();
    value.add_int_val(0);
  }

  absl::Status EmitVariable(const NodeDef& variable, const std::string& name) {
    const auto key = variables_.find(&variable);
    if (key == variables_.end())
      return AtNode(variable, "is a variable that no checkpoint restores");
    if (!bundle_.has_value()) {
      return Refused("has variables, and its folder no variables/variables.index");
    }
    const absl::StatusOr<BundleTensor> tensor = bundle_->Find(key->second);
    if (!tensor.ok()) return AtNode(variable, absl::StrCat("is lost: ", tensor.status().message()));
    frozen_bytes_ += tensor->bytes.size();
    if (frozen_bytes_ > kMaxModelBytes) {
      return Refused(absl::StrCat("has variables of more than ", kMaxModelBytes, " bytes"));
    }
    const auto type = static_cast<fe::tf::DataType>(tensor->data_type);
    NodeDef& node = *out_.add_node();
    node.set_name(name);
    node.set_op("Const");
    AddAttr(node, "dtype").set_type(type);
    fe::tf::TensorProto& value = *AddAttr(node, "value").mutable_tensor();
    value.set_dtype(type);
    for (const int64_t size : tensor->shape)
      value.mutable_tensor_shape()->add_dim()->set_size(size);
    value.set_tensor_content(std::string(tensor->bytes));
    return absl::OkStatus();
  }

  FunctionGraph functions_;
  const std::optional<TensorBundle>& bundle_;
  GraphDef& out_;
  absl::flat_hash_map<const NodeDef*, std::string> variables_;  // names in the checkpoint
  std::map<PlaceKey, std::string> names_;                       // of emitted nodes
  std::map<std::string, std::string> reserved_;                 // of the signature's keys
  absl::flat_hash_set<std::string> taken_;
  std::deque<std::pair<Place, std::string>> queue_;  // to be emitted
  size_t frozen_bytes_ = 0;
};

}  // namespace

absl::Status FreezeSavedModel(absl::string_view archive, GraphDef& graph) {
  ASSIGN_OR_RETURN(const Files files, FilesOf(archive));
  fe::tf::SavedModel model;
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t*>(files.model.data()), static_cast<int>(files.model.size()));
  stream.SetRecursionLimit(kMaxMessageNesting);
  if (!model.MergeFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return Refused("has a saved_model.pb that is damaged or cut short");
  }
  for (MetaGraphDef& each : *model.mutable_meta_graphs()) {
    LowerFunctionControl(*each.mutable_graph_def());
  }
  ASSIGN_OR_RETURN(const MetaGraphDef* meta, ServedGraph(model));
  ASSIGN_OR_RETURN(const SignatureDef* signature, SignatureOf(*meta));
  std::optional<TensorBundle> bundle;
  if (!files.index.empty()) {
    ASSIGN_OR_RETURN(bundle, TensorBundle::Open(files.index, files.shards));
  }
  return Freezer(meta->graph_def(), bundle, graph).Run(*meta, *signature);
}

}  // namespace npuc::tf
