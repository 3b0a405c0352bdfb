#include "compiler_core/frontends/onnx/model_file.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/sniff.h"
#include "google/protobuf/arena.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

absl::string_view View(const std::string& text) { return {text.data(), text.size()}; }

// For a diagnostic. A name over the limit is of no use: its beginning is enough.
std::string Shown(absl::string_view name) {
  constexpr size_t kBeginning = 200;
  return name.size() > kMaxNameBytes ? Printable(name, kBeginning) : std::string(name);
}

constexpr absl::string_view kTypeNames[] = {
    "UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",   "INT16",
    "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",  "DOUBLE",
    "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16", "FLOAT8E4M3FN",
    "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4",     "FLOAT4E2M1"};

absl::string_view KindName(const fe::onnx::Attribute& attribute) {
  if (attribute.has_t()) return "a tensor";
  if (attribute.has_g()) return "a graph";
  if (attribute.has_s()) return "a string";
  if (attribute.has_i()) return "an integer";
  if (attribute.has_f()) return "a float";
  if (attribute.ints_size() > 0) return "a list of integers";
  if (attribute.floats_size() > 0) return "a list of floats";
  if (attribute.strings_size() > 0) return "a list of strings";
  return "empty";
}

absl::Status WrongKind(absl::string_view name, const fe::onnx::Attribute& attribute,
                       absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("attribute '", name, "' is ", KindName(attribute), "; it must be ", wanted));
}

absl::Status Missing(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("attribute '", name, "' is missing"));
}

absl::Status CheckEntries(absl::string_view name, int count) {
  if (count <= kMaxListEntries) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "attribute '", name, "' has ", count, " entries; allowed are at most ", kMaxListEntries));
}

TensorInfo InfoOf(const fe::onnx::ValueInfo& proto) {
  TensorInfo info;
  info.name = proto.name();
  if (!proto.has_type()) return info;
  info.is_tensor = proto.type().has_tensor_type();
  info.data_type = proto.type().tensor_type().elem_type();
  if (!proto.type().tensor_type().has_shape()) return info;
  info.dims.emplace();
  for (const auto& dim : proto.type().tensor_type().shape().dim()) {
    info.dims->push_back(dim.has_dim_value() ? std::max<int64_t>(dim.dim_value(), -1) : -1);
    if (info.dims->size() > kMaxRank + 1) break;  // refused by its rank
  }
  return info;
}

}  // namespace

DType DTypeFromWire(int data_type) {
  switch (data_type) {
    case fe::onnx::TensorProto::FLOAT:
    case fe::onnx::TensorProto::DOUBLE:
    case fe::onnx::TensorProto::BFLOAT16:
      return DType::kFloat32;
    case fe::onnx::TensorProto::FLOAT16:
      return DType::kFloat16;
    case fe::onnx::TensorProto::UINT8:
      return DType::kUint8;
    case fe::onnx::TensorProto::INT8:
      return DType::kInt8;
    case fe::onnx::TensorProto::UINT16:
      return DType::kUint16;
    case fe::onnx::TensorProto::INT16:
      return DType::kInt16;
    case fe::onnx::TensorProto::INT32:
      return DType::kInt32;
    case fe::onnx::TensorProto::INT64:
    case fe::onnx::TensorProto::UINT64:
      return DType::kInt64;
    case fe::onnx::TensorProto::UINT32:
      return DType::kUint32;
    case fe::onnx::TensorProto::BOOL:
      return DType::kBool;
    default:
      return DType::kInvalid;
  }
}

std::string DataTypeName(int data_type) {
  if (data_type >= 0 && data_type < static_cast<int>(std::size(kTypeNames))) {
    return std::string(kTypeNames[data_type]);
  }
  return absl::StrCat("data type ", data_type);
}

std::string ToString(const std::vector<int64_t>& partial_dims) {
  return absl::StrCat("[",
                      absl::StrJoin(partial_dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(out, dim < 0 ? "?" : absl::StrCat(dim));
                                    }),
                      "]");
}

absl::string_view NodeView::name() const {
  if (!proto_->name().empty() || proto_->output_size() == 0) return View(proto_->name());
  return View(proto_->output(0));
}
absl::string_view NodeView::op() const { return View(proto_->op_type()); }
absl::string_view NodeView::domain() const {
  return proto_->domain() == "ai.onnx" ? absl::string_view() : View(proto_->domain());
}
int NodeView::input_count() const { return proto_->input_size(); }
absl::string_view NodeView::input(int i) const { return View(proto_->input(i)); }
int NodeView::output_count() const { return proto_->output_size(); }
absl::string_view NodeView::output(int i) const { return View(proto_->output(i)); }

const fe::onnx::Attribute* NodeView::Find(absl::string_view name) const {
  for (const auto& attribute : proto_->attribute()) {
    if (View(attribute.name()) == name) return &attribute;
  }
  return nullptr;
}

bool NodeView::HasGraphs() const {
  return std::any_of(proto_->attribute().begin(), proto_->attribute().end(),
                     [](const auto& attribute) { return attribute.has_g(); });
}

absl::StatusOr<bool> NodeView::Bool(absl::string_view name) const {
  ASSIGN_OR_RETURN(const int64_t value, Int(name));
  return value != 0;
}
absl::StatusOr<int64_t> NodeView::Int(absl::string_view name) const {
  const fe::onnx::Attribute* attribute = Find(name);
  if (attribute == nullptr) return Missing(name);
  if (!attribute->has_i()) return WrongKind(name, *attribute, "an integer");
  return attribute->i();
}
absl::StatusOr<double> NodeView::Float(absl::string_view name) const {
  const fe::onnx::Attribute* attribute = Find(name);
  if (attribute == nullptr) return Missing(name);
  if (!attribute->has_f()) return WrongKind(name, *attribute, "a float");
  return static_cast<double>(attribute->f());
}
absl::StatusOr<std::string> NodeView::String(absl::string_view name) const {
  const fe::onnx::Attribute* attribute = Find(name);
  if (attribute == nullptr) return Missing(name);
  if (!attribute->has_s()) return WrongKind(name, *attribute, "a string");
  return attribute->s();
}
absl::StatusOr<std::vector<int64_t>> NodeView::Ints(absl::string_view name) const {
  const fe::onnx::Attribute* attribute = Find(name);
  if (attribute == nullptr) return Missing(name);
  const absl::string_view kind = KindName(*attribute);
  if (kind != "a list of integers" && kind != "empty") {
    return WrongKind(name, *attribute, "a list of integers");
  }
  RETURN_IF_ERROR(CheckEntries(name, attribute->ints_size()));
  return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}
absl::StatusOr<std::vector<double>> NodeView::Floats(absl::string_view name) const {
  const fe::onnx::Attribute* attribute = Find(name);
  if (attribute == nullptr) return Missing(name);
  const absl::string_view kind = KindName(*attribute);
  if (kind != "a list of floats" && kind != "empty") {
    return WrongKind(name, *attribute, "a list of floats");
  }
  RETURN_IF_ERROR(CheckEntries(name, attribute->floats_size()));
  return std::vector<double>(attribute->floats().begin(), attribute->floats().end());
}
absl::StatusOr<std::vector<std::string>> NodeView::Strings(absl::string_view name) const {
  const fe::onnx::Attribute* attribute = Find(name);
  if (attribute == nullptr) return Missing(name);
  RETURN_IF_ERROR(CheckEntries(name, attribute->strings_size()));
  return std::vector<std::string>(attribute->strings().begin(), attribute->strings().end());
}
absl::StatusOr<const fe::onnx::TensorProto*> NodeView::TensorOf(absl::string_view name) const {
  const fe::onnx::Attribute* attribute = Find(name);
  if (attribute == nullptr) return Missing(name);
  if (!attribute->has_t()) return WrongKind(name, *attribute, "a tensor");
  return &attribute->t();
}

struct ModelFile::Impl {
  google::protobuf::Arena arena;
  const fe::onnx::ModelProto* model = nullptr;
  absl::flat_hash_map<absl::string_view, Producer> producers;
  absl::flat_hash_map<absl::string_view, const fe::onnx::TensorProto*> initializers;
  absl::flat_hash_map<absl::string_view, int> inputs;
  absl::flat_hash_map<absl::string_view, TensorInfo> infos;
};

ModelFile::ModelFile() : impl_(std::make_unique<Impl>()) {}
ModelFile::~ModelFile() = default;

ModelFile::Producer ModelFile::FindProducer(absl::string_view name) const {
  const auto it = impl_->producers.find(name);
  return it == impl_->producers.end() ? Producer() : it->second;
}
const fe::onnx::TensorProto* ModelFile::FindInitializer(absl::string_view name) const {
  const auto it = impl_->initializers.find(name);
  return it == impl_->initializers.end() ? nullptr : it->second;
}
int ModelFile::FindInput(absl::string_view name) const {
  const auto it = impl_->inputs.find(name);
  return it == impl_->inputs.end() ? -1 : it->second;
}
const TensorInfo* ModelFile::FindInfo(absl::string_view name) const {
  const auto it = impl_->infos.find(name);
  return it == impl_->infos.end() ? nullptr : &it->second;
}
std::vector<absl::string_view> ModelFile::TensorNames() const {
  std::vector<absl::string_view> names;
  for (const TensorInfo& input : inputs_) {
    names.emplace_back(input.name);
  }
  for (const NodeView& node : nodes_) {
    for (int i = 0; i < node.output_count(); ++i) names.push_back(node.output(i));
  }
  return names;
}

void ModelFile::ReadOpset(absl::string_view file, Diagnostics& diagnostics) {
  for (const auto& set : impl_->model->opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") {
      opset_ = std::max<int64_t>(opset_, set.version());
    }
  }
  // A model of other domains alone states none; whatever it holds is refused by name.
  if (opset_ == 0 && impl_->model->opset_import_size() > 0) opset_ = kMaxOpset;
  if (opset_ >= kMinOpset && opset_ <= kMaxOpset) return;
  diagnostics.Add({.kind = DiagnosticKind::kOnnxOpset,
                   .message = absl::StrCat("the model uses operator set ", opset_, "; allowed are ",
                                           kMinOpset, " to ", kMaxOpset),
                   .file = std::string(file),
                   .fix = "convert it (onnx.version_converter) to operator set 18"});
}

// Tensors with a name each, one producer each, counts within the limits.
void ModelFile::CheckNodes(absl::string_view file, Diagnostics& diagnostics) {
  const auto add = [&](DiagnosticKind kind, const NodeView& node, std::string message) {
    diagnostics.Add({.kind = kind,
                     .message = std::move(message),
                     .file = std::string(file),
                     .node = Shown(node.name()),
                     .op = Shown(node.op()),
                     .fix = "export the model again"});
  };
  for (int i = 0; i < node_count(); ++i) {
    const NodeView& node = nodes_[static_cast<size_t>(i)];
    const fe::onnx::NodeProto& proto = impl_->model->graph().node(i);
    size_t longest = std::max(node.name().size(), node.op().size());
    for (const std::string& name : proto.input()) longest = std::max(longest, name.size());
    for (const std::string& name : proto.output()) longest = std::max(longest, name.size());
    if (longest > kMaxNameBytes || proto.input_size() > kMaxInputsPerNode ||
        proto.output_size() > kMaxInputsPerNode || proto.attribute_size() > kMaxAttributesPerNode) {
      add(DiagnosticKind::kModelLimitExceeded, node,
          absl::StrCat("node ", i, " has ", proto.input_size(), " operands, ", proto.output_size(),
                       " results, ", proto.attribute_size(), " attributes and a name of ", longest,
                       " bytes; allowed are at most ", kMaxInputsPerNode, ", ", kMaxInputsPerNode,
                       ", ", kMaxAttributesPerNode, " and ", kMaxNameBytes));
      continue;
    }
    if (node.op().empty() || node.output_count() == 0) {
      add(DiagnosticKind::kMalformedNode, node,
          absl::StrCat("node ", i, " of the file has no ",
                       node.op().empty() ? "operator" : "result"));
      continue;
    }
    for (int k = 0; k < node.output_count(); ++k) {
      if (node.output(k).empty()) continue;
      const auto [it, inserted] = impl_->producers.emplace(node.output(k), Producer{i, k});
      if (inserted) continue;
      add(DiagnosticKind::kOnnxDuplicateTensor, node,
          absl::StrCat("nodes ", it->second.node, " and ", i, " of the file both give tensor '",
                       Printable(node.output(k)), "'; a tensor has one producer"));
    }
  }
}

void ModelFile::CheckTensors(absl::string_view file, Diagnostics& diagnostics) {
  const fe::onnx::GraphProto& graph = impl_->model->graph();
  for (const auto& tensor : graph.initializer()) {
    impl_->initializers.emplace(View(tensor.name()), &tensor);
  }
  for (const auto& input : graph.input()) {
    impl_->inputs.emplace(View(input.name()), static_cast<int>(inputs_.size()));
    inputs_.push_back(InfoOf(input));
  }
  for (const auto& output : graph.output()) {
    outputs_.push_back(InfoOf(output));
    impl_->infos.emplace(View(output.name()), outputs_.back());
  }
  for (const auto& info : graph.value_info()) impl_->infos.emplace(View(info.name()), InfoOf(info));
  if (graph.sparse_initializer_size() > 0) {
    diagnostics.Add({.kind = DiagnosticKind::kBadTensor,
                     .message = absl::StrCat("the model has ", graph.sparse_initializer_size(),
                                             " sparse initializers; allowed are dense ones"),
                     .file = std::string(file),
                     .fix = "export the model with dense initializers"});
  }
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
  model->impl_->model = proto;
  if (proto->graph().node_size() > kMaxNodes) {
    return RefuseFile(DiagnosticKind::kModelLimitExceeded, file,
                      absl::StrCat("the model has ", proto->graph().node_size(),
                                   " nodes; allowed are ", kMaxNodes),
                      "compile a smaller model", diagnostics);
  }
  for (const auto& node : proto->graph().node()) model->nodes_.emplace_back(&node);
  const size_t errors_before = diagnostics.error_count();
  model->ReadOpset(file, diagnostics);
  model->CheckNodes(file, diagnostics);
  model->CheckTensors(file, diagnostics);
  if (diagnostics.error_count() != errors_before) return nullptr;
  return model;
}

}  // namespace npuc::onnx
