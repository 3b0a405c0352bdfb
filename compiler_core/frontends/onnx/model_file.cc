#include "compiler_core/frontends/onnx/model_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/frontends/common/unroller.h"
#include "google/protobuf/arena.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {

using fe::onnx::FunctionProto;
using fe::onnx::GraphProto;
using fe::onnx::NodeProto;

struct ModelFile::Impl {
  google::protobuf::Arena arena;
  absl::flat_hash_map<const GraphProto*, const GraphView*> by_graph;
  absl::flat_hash_map<const NodeProto*, const GraphView*> by_call;
};

ModelFile::ModelFile() : impl_(std::make_unique<Impl>()) {}
ModelFile::~ModelFile() = default;

const GraphView& ModelFile::Of(const GraphProto* graph) const { return *impl_->by_graph.at(graph); }

const GraphView* ModelFile::FunctionOf(const NodeView& node) const {
  const auto it = impl_->by_call.find(&node.proto());
  return it == impl_->by_call.end() ? nullptr : it->second;
}

namespace {

// The key of a function: nodes and functions alike have a domain, a name and an overload.
std::string KeyOf(const std::string& domain, const std::string& name, const std::string& overload) {
  return absl::StrCat(domain == "ai.onnx" ? "" : domain, "\n", name, "\n", overload);
}

template <typename Sets>
int64_t DefaultOpset(const Sets& sets) {
  int64_t opset = 0;
  for (const auto& set : sets) {
    if (set.domain().empty() || set.domain() == "ai.onnx") opset = std::max(opset, set.version());
  }
  return opset;
}

}  // namespace

// Makes the views of a parsed file: each graph inside of a node, and each call of a function with
// the attributes of the call in the place of the function's references to them.
class ModelFile::Reader {
 public:
  Reader(ModelFile* model, const fe::onnx::ModelProto& proto, absl::string_view file,
         Diagnostics* diagnostics)
      : model_(*model), proto_(proto), file_(file), diagnostics_(*diagnostics) {}

  void Read() {
    for (const FunctionProto& function : proto_.functions()) {
      functions_.emplace(KeyOf(function.domain(), function.name(), function.overload()), &function);
    }
    Add(proto_.graph(), Opset(), 0);
  }

 private:
  int64_t Opset();
  // The view of a graph and of all graphs that its nodes run; null where it was reported.
  const GraphView* Add(const GraphProto& graph, int64_t opset, int nesting);
  void AddCall(const NodeView& node, const FunctionProto& function, int64_t opset, int nesting);
  // The function's nodes as a graph, for one call of it. False: it was reported.
  bool Bind(GraphProto& graph, const FunctionProto& function, const NodeProto& call);
  bool TakeCopy(size_t bytes);
  void ReportLimit(std::string message, std::string fix) {
    diagnostics_.Add({.kind = DiagnosticKind::kModelLimitExceeded,
                      .message = std::move(message),
                      .file = std::string(file_),
                      .fix = std::move(fix)});
  }

  ModelFile& model_;
  const fe::onnx::ModelProto& proto_;
  const absl::string_view file_;
  Diagnostics& diagnostics_;
  absl::flat_hash_map<std::string, const FunctionProto*> functions_;
  int64_t nodes_ = 0;
  size_t copied_bytes_left_ = kMaxModelBytes;
};

int64_t ModelFile::Reader::Opset() {
  int64_t opset = DefaultOpset(proto_.opset_import());
  // A model of other domains alone states none; whatever it holds is refused by name.
  if (opset == 0 && proto_.opset_import_size() > 0) opset = kMaxOpset;
  if (opset < kMinOpset || opset > kMaxOpset) {
    diagnostics_.Add({.kind = DiagnosticKind::kOnnxOpset,
                      .message = absl::StrCat("the model uses operator set ", opset,
                                              "; allowed are ", kMinOpset, " to ", kMaxOpset),
                      .file = std::string(file_),
                      .fix = "convert it (onnx.version_converter) to operator set 18"});
  }
  return opset;
}

const GraphView* ModelFile::Reader::Add(const GraphProto& graph, int64_t opset, int nesting) {
  nodes_ += graph.node_size();
  if (nodes_ > kMaxNodes) {
    ReportLimit(absl::StrCat("the model has ", nodes_, " nodes; allowed are ", kMaxNodes),
                "compile a smaller model");
    return nullptr;
  }
  if (nesting > frontend::kMaxNesting) {
    ReportLimit(absl::StrCat("loops, branches and functions are nested more than ",
                             frontend::kMaxNesting, " deep"),
                "export the model with fewer of them inside of one another");
    return nullptr;
  }
  model_.graphs_.push_back(std::make_unique<GraphView>(graph, opset, file_, diagnostics_));
  const GraphView* const view = model_.graphs_.back().get();
  model_.impl_->by_graph.emplace(&graph, view);
  for (const NodeView& node : view->nodes()) {
    for (const GraphProto* inner : node.Graphs()) {
      if (Add(*inner, opset, nesting + 1) == nullptr) return nullptr;
    }
    const NodeProto& proto = node.proto();
    const auto function = functions_.find(KeyOf(proto.domain(), proto.op_type(), proto.overload()));
    if (function != functions_.end()) AddCall(node, *function->second, opset, nesting + 1);
    if (diagnostics_.has_errors()) return nullptr;
  }
  return view;
}

void ModelFile::Reader::AddCall(const NodeView& node, const FunctionProto& function, int64_t opset,
                                int nesting) {
  const int64_t own_opset = DefaultOpset(function.opset_import());
  if (!TakeCopy(function.ByteSizeLong())) return;
  auto* graph = google::protobuf::Arena::CreateMessage<GraphProto>(&model_.impl_->arena);
  for (const std::string& name : function.input()) graph->add_input()->set_name(name);
  for (const std::string& name : function.output()) graph->add_output()->set_name(name);
  *graph->mutable_node() = function.node();
  if (!Bind(*graph, function, node.proto())) return;
  const GraphView* const view = Add(*graph, own_opset > 0 ? own_opset : opset, nesting);
  if (view != nullptr) model_.impl_->by_call.emplace(&node.proto(), view);
}

bool ModelFile::Reader::TakeCopy(size_t bytes) {
  if (bytes > copied_bytes_left_) {
    ReportLimit(absl::StrCat("the calls of the model's functions take more than ", kMaxModelBytes,
                             " bytes"),
                "export the model with its functions inlined (onnx.inliner)");
    return false;
  }
  copied_bytes_left_ -= bytes;
  return true;
}

// Recurses as deep as protobuf's parser let the graphs nest, which is at most 100 messages.
bool ModelFile::Reader::Bind(GraphProto& graph, const FunctionProto& function,
                             const NodeProto& call) {
  const auto given = [&](const std::string& name) -> const fe::onnx::Attribute* {
    for (const auto& attribute : call.attribute()) {
      if (attribute.name() == name) return &attribute;
    }
    for (const auto& attribute : function.attribute_proto()) {
      if (attribute.name() == name) return &attribute;
    }
    return nullptr;
  };
  for (NodeProto& node : *graph.mutable_node()) {
    auto& attributes = *node.mutable_attribute();
    for (int i = attributes.size() - 1; i >= 0; --i) {
      fe::onnx::Attribute& attribute = attributes[i];
      if (attribute.has_g() && !Bind(*attribute.mutable_g(), function, call)) return false;
      if (attribute.ref_attr_name().empty()) continue;
      const fe::onnx::Attribute* const value = given(attribute.ref_attr_name());
      if (value == nullptr) {
        attributes.DeleteSubrange(i, 1);
        continue;
      }
      if (!TakeCopy(value->ByteSizeLong())) return false;
      const std::string name = attribute.name();
      attribute = *value;
      attribute.set_name(name);
    }
  }
  return true;
}

std::unique_ptr<ModelFile> ModelFile::Parse(absl::string_view bytes, absl::string_view file,
                                            Diagnostics& diagnostics) {
  if (bytes.empty()) {
    return RefuseFile(DiagnosticKind::kEmptyModel, file, "the model file is empty",
                      "export the model again", diagnostics);
  }
  if (bytes.size() > kMaxModelBytes) {
    return RefuseFile(
        DiagnosticKind::kModelLimitExceeded, file,
        absl::StrCat("the model has ", bytes.size(), " bytes; allowed are ", kMaxModelBytes),
        "compile a smaller model", diagnostics);
  }
  std::unique_ptr<ModelFile> model(new ModelFile());
  auto* proto = google::protobuf::Arena::CreateMessage<fe::onnx::ModelProto>(&model->impl_->arena);
  if (!proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !proto->has_graph() ||
      proto->ir_version() <= 0) {
    FileGuess guess = GuessFileKind(bytes);
    const WireOutline wire = OutlineWire(bytes);
    if (guess.what.empty() || guess.what == "an ONNX model") {
      guess = {wire.well_formed ? "a protobuf file without ONNX's ir_version and graph"
                                : "a damaged file or one of another format",
               "export the model again, or set FRAMEWORK to what it is"};
    }
    return RefuseFile(DiagnosticKind::kNotAnOnnxModel, file,
                      absl::StrCat("the file is no ONNX model; it looks like ", guess.what),
                      guess.fix == "set FRAMEWORK: ONNX" ? "export the model again" : guess.fix,
                      diagnostics);
  }
  const size_t errors_before = diagnostics.error_count();
  Reader(model.get(), *proto, file, &diagnostics).Read();
  if (diagnostics.error_count() != errors_before) return nullptr;
  return model;
}

}  // namespace npuc::onnx
