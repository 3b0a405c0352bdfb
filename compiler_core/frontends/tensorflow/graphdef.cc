#include "compiler_core/frontends/tensorflow/graphdef.h"

#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/saved_model_sniff.h"
#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/frontends/tensorflow/saved_model.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

constexpr int kMaxNesting = 32;  // GraphDef's own messages nest six deep

absl::string_view View(const std::string& text) { return absl::string_view(text); }

// For a diagnostic. A name over the limit is of no use: its beginning is enough.
std::string Shown(absl::string_view name) {
  constexpr size_t kBeginning = 200;
  return name.size() > kMaxNameBytes ? Printable(name, kBeginning) : std::string(name);
}

absl::string_view KindName(const fe::tf::AttrValue& value) {
  switch (value.value_case()) {
    case fe::tf::AttrValue::kList:
      return "a list";
    case fe::tf::AttrValue::kS:
      return "a string";
    case fe::tf::AttrValue::kI:
      return "an integer";
    case fe::tf::AttrValue::kF:
      return "a float";
    case fe::tf::AttrValue::kB:
      return "a bool";
    case fe::tf::AttrValue::kType:
      return "a type";
    case fe::tf::AttrValue::kShape:
      return "a shape";
    case fe::tf::AttrValue::kTensor:
      return "a tensor";
    case fe::tf::AttrValue::kPlaceholder:
      return "a placeholder";
    case fe::tf::AttrValue::kFunc:
      return "a function";
    case fe::tf::AttrValue::VALUE_NOT_SET:
      break;
  }
  return "nothing";
}

void AddNotAGraphDef(absl::string_view bytes, absl::string_view file, Diagnostics& diagnostics) {
  const FileGuess guess = GuessFileKind(bytes);
  const WireOutline wire = OutlineWire(bytes);
  Diagnostic d{.kind = DiagnosticKind::kNotAGraphDef, .message = {}, .file = std::string(file)};
  if (!guess.what.empty()) {
    d.message = absl::StrCat("the file is not a frozen GraphDef; it looks like ", guess.what);
    d.fix = guess.fix;
  } else if (!wire.well_formed && wire.broken_field >= 1 && wire.broken_field <= 4 &&
             wire.needed_bytes > 0 && wire.broken_offset > 0) {
    d.kind = DiagnosticKind::kTruncatedModel;
    d.message = absl::StrCat("the file ends inside a field: the one at byte ", wire.broken_offset,
                             " needs ", wire.needed_bytes, " bytes and ", wire.left_bytes,
                             " are left of ", bytes.size());
    d.fix = "copy or download the whole file again";
  } else if (!wire.well_formed) {
    d.message = absl::StrCat("the file is not a frozen GraphDef: byte ", wire.broken_offset, " of ",
                             bytes.size(), " starts no protobuf field");
    d.fix = "name a frozen TensorFlow GraphDef (.pb) as MODEL_FILE";
  } else {
    d.message = "the file is not a frozen GraphDef: it is protobuf, but of another kind or damaged";
    d.fix = "name a frozen TensorFlow GraphDef (.pb) as MODEL_FILE";
  }
  diagnostics.Add(std::move(d));
}

// A GraphDef, or the frozen one of a SavedModel; false where there is none, which is reported.
bool ReadGraph(absl::string_view bytes, absl::string_view file, fe::tf::GraphDef& graph,
               Diagnostics& diagnostics) {
  if (IsSavedModel(bytes)) {
    const absl::Status frozen = FreezeSavedModel(bytes, graph);
    if (frozen.ok()) return true;
    RefuseFile(DiagnosticKind::kNotAGraphDef, file, std::string(frozen.message()),
               "save it again with one signature, or freeze it to a GraphDef (.pb)", diagnostics);
    return false;
  }
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxNesting);
  const bool parsed = graph.MergeFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (parsed && graph.node_size() > 0 && !graph.node(0).op().empty()) return true;
  AddNotAGraphDef(bytes, file, diagnostics);
  return false;
}

}  // namespace

absl::StatusOr<TensorName> ParseTensorName(absl::string_view text) {
  TensorName name;
  if (absl::ConsumePrefix(&text, "^")) name.is_control = true;
  const size_t colon = text.rfind(':');
  if (colon != absl::string_view::npos) {
    const absl::string_view index = text.substr(colon + 1);
    // Control characters and signs are no digits, so SimpleAtoi's leniency is shut out first.
    const bool digits =
        !index.empty() && index.find_first_not_of("0123456789") == absl::string_view::npos;
    if (!digits || !absl::SimpleAtoi(index, &name.output) || name.output > kMaxOutputIndex) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", Printable(text), "' has no output number after ':'"));
    }
    text = text.substr(0, colon);
  }
  if (text.empty()) return absl::InvalidArgumentError("a tensor name is empty");
  name.node = text;
  return name;
}

DType DTypeFromWire(int data_type) {
  switch (data_type) {
    case fe::tf::DT_FLOAT:
    case fe::tf::DT_BFLOAT16:
      return DType::kFloat32;
    case fe::tf::DT_DOUBLE:
      return DType::kFloat64;
    case fe::tf::DT_HALF:
      return DType::kFloat16;
    case fe::tf::DT_INT8:
      return DType::kInt8;
    case fe::tf::DT_INT16:
      return DType::kInt16;
    case fe::tf::DT_INT32:
      return DType::kInt32;
    case fe::tf::DT_INT64:
    case fe::tf::DT_UINT64:
      return DType::kInt64;
    case fe::tf::DT_UINT8:
      return DType::kUint8;
    case fe::tf::DT_UINT16:
      return DType::kUint16;
    case fe::tf::DT_UINT32:
      return DType::kUint32;
    case fe::tf::DT_BOOL:
      return DType::kBool;
    default:
      return DType::kInvalid;
  }
}

std::string DataTypeName(int data_type) {
  static constexpr const char* kNames[] = {
      "DT_INVALID",    "DT_FLOAT",  "DT_DOUBLE",    "DT_INT32",   "DT_UINT8",   "DT_INT16",
      "DT_INT8",       "DT_STRING", "DT_COMPLEX64", "DT_INT64",   "DT_BOOL",    "DT_QINT8",
      "DT_QUINT8",     "DT_QINT32", "DT_BFLOAT16",  "DT_QINT16",  "DT_QUINT16", "DT_UINT16",
      "DT_COMPLEX128", "DT_HALF",   "DT_RESOURCE",  "DT_VARIANT", "DT_UINT32",  "DT_UINT64"};
  if (data_type >= 0 && data_type < static_cast<int>(std::size(kNames))) return kNames[data_type];
  return absl::StrCat("DataType ", data_type);
}

std::string ToString(const PartialShape& shape) {
  if (shape.unknown_rank) return "of unknown rank";
  return absl::StrCat("[",
                      absl::StrJoin(shape.dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(
                                          out, dim < 0 ? std::string("?") : absl::StrCat(dim));
                                    }),
                      "]");
}

absl::string_view NodeView::name() const { return View(proto_->name()); }
absl::string_view NodeView::op() const { return View(proto_->op()); }
int NodeView::input_count() const { return proto_->input_size(); }
absl::string_view NodeView::input(int i) const { return View(proto_->input(i)); }

const fe::tf::AttrValue* NodeView::Find(absl::string_view name) const {
  // Of equal keys the last counts, as in a protobuf map.
  for (int i = proto_->attr_size() - 1; i >= 0; --i) {
    if (View(proto_->attr(i).key()) == name) return &proto_->attr(i).value();
  }
  return nullptr;
}

absl::StatusOr<const fe::tf::AttrValue*> NodeView::FindKind(absl::string_view name, int kind,
                                                            absl::string_view kind_name) const {
  const fe::tf::AttrValue* value = Find(name);
  if (value == nullptr) {
    return absl::NotFoundError(absl::StrCat("attribute '", name, "' is missing"));
  }
  if (value->value_case() != kind) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' is ", KindName(*value), "; it must be ", kind_name));
  }
  return value;
}

bool NodeView::HasAttr(absl::string_view name) const { return Find(name) != nullptr; }

absl::StatusOr<bool> NodeView::Bool(absl::string_view name) const {
  ASSIGN_OR_RETURN(const auto* value, FindKind(name, fe::tf::AttrValue::kB, "a bool"));
  return value->b();
}
absl::StatusOr<int64_t> NodeView::Int(absl::string_view name) const {
  ASSIGN_OR_RETURN(const auto* value, FindKind(name, fe::tf::AttrValue::kI, "an integer"));
  return value->i();
}
absl::StatusOr<double> NodeView::Float(absl::string_view name) const {
  ASSIGN_OR_RETURN(const auto* value, FindKind(name, fe::tf::AttrValue::kF, "a float"));
  return static_cast<double>(value->f());
}
absl::StatusOr<std::string> NodeView::String(absl::string_view name) const {
  ASSIGN_OR_RETURN(const auto* value, FindKind(name, fe::tf::AttrValue::kS, "a string"));
  return value->s();
}
absl::StatusOr<int> NodeView::Type(absl::string_view name) const {
  ASSIGN_OR_RETURN(const auto* value, FindKind(name, fe::tf::AttrValue::kType, "a type"));
  return static_cast<int>(value->type());
}

absl::StatusOr<std::vector<int64_t>> NodeView::Ints(absl::string_view name) const {
  ASSIGN_OR_RETURN(const auto* value,
                   FindKind(name, fe::tf::AttrValue::kList, "a list of integers"));
  const fe::tf::AttrValue::ListValue& list = value->list();
  if (list.s_size() + list.f_size() + list.b_size() + list.type_size() + list.shape_size() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' is not a list of integers"));
  }
  if (list.i_size() > 64) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' has ", list.i_size(), " entries; at most 64 fit"));
  }
  return std::vector<int64_t>(list.i().begin(), list.i().end());
}

absl::StatusOr<PartialShape> NodeView::ShapeOf(absl::string_view name) const {
  ASSIGN_OR_RETURN(const auto* value, FindKind(name, fe::tf::AttrValue::kShape, "a shape"));
  PartialShape shape;
  shape.unknown_rank = value->shape().unknown_rank();
  if (value->shape().dim_size() > 254) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' has ",
                                                   value->shape().dim_size(),
                                                   " dimensions; TensorFlow allows 254"));
  }
  for (const auto& dim : value->shape().dim()) shape.dims.push_back(dim.size());
  return shape;
}

absl::StatusOr<const fe::tf::TensorProto*> NodeView::TensorOf(absl::string_view name) const {
  ASSIGN_OR_RETURN(const auto* value, FindKind(name, fe::tf::AttrValue::kTensor, "a tensor"));
  return &value->tensor();
}

struct GraphFile::Impl {
  google::protobuf::Arena arena;
  const fe::tf::GraphDef* graph = nullptr;
  absl::flat_hash_map<absl::string_view, int> by_name;
  absl::flat_hash_set<absl::string_view> functions;
};

GraphFile::GraphFile() : impl_(std::make_unique<Impl>()) {}
GraphFile::~GraphFile() = default;

int GraphFile::Find(absl::string_view name) const {
  const auto it = impl_->by_name.find(name);
  return it == impl_->by_name.end() ? -1 : it->second;
}

bool GraphFile::IsFunction(absl::string_view op) const { return impl_->functions.contains(op); }

// Names unique and present, counts within the limits; reports every node that is not so.
bool GraphFile::CheckNodes(absl::string_view file, Diagnostics& diagnostics) {
  const size_t errors_before = diagnostics.error_count();
  const auto add = [&](DiagnosticKind kind, const NodeView& node, std::string message,
                       std::string fix) {
    diagnostics.Add({.kind = kind,
                     .message = std::move(message),
                     .file = std::string(file),
                     .node = Shown(node.name()),
                     .op = Shown(node.op()),
                     .fix = std::move(fix)});
  };
  impl_->by_name.reserve(nodes_.size());
  for (int i = 0; i < node_count(); ++i) {
    const NodeView& node = nodes_[i];
    const fe::tf::NodeDef& proto = impl_->graph->node(i);
    if (node.name().empty() || node.op().empty()) {
      add(DiagnosticKind::kMalformedNode, node,
          absl::StrCat("node ", i, " of the file has no ", node.name().empty() ? "name" : "op"),
          "export the model again");
      continue;
    }
    if (node.name().size() > kMaxNameBytes || node.op().size() > kMaxNameBytes ||
        proto.input_size() > kMaxInputsPerNode || proto.attr_size() > kMaxAttrsPerNode) {
      add(DiagnosticKind::kModelLimitExceeded, node,
          absl::StrCat("node ", i, " has ", proto.input_size(), " inputs, ", proto.attr_size(),
                       " attributes and a name of ", node.name().size(),
                       " bytes; allowed are at most ", kMaxInputsPerNode, ", ", kMaxAttrsPerNode,
                       " and ", kMaxNameBytes),
          "export a smaller graph");
      continue;
    }
    const auto [it, inserted] = impl_->by_name.emplace(node.name(), i);
    if (!inserted) {
      add(DiagnosticKind::kDuplicateNodeName, node,
          absl::StrCat("nodes ", it->second, " and ", i,
                       " of the file have the same name; names must be unique"),
          "export the model again");
    }
  }
  return diagnostics.error_count() == errors_before;
}

std::unique_ptr<GraphFile> GraphFile::Parse(absl::string_view bytes, absl::string_view file,
                                            Diagnostics& diagnostics) {
  if (bytes.empty()) {
    return RefuseFile(DiagnosticKind::kEmptyModel, file, "the model file is empty",
                      "name a frozen TensorFlow GraphDef (.pb) as MODEL_FILE", diagnostics);
  }
  if (bytes.size() > kMaxModelBytes) {
    return RefuseFile(DiagnosticKind::kModelLimitExceeded, file,
                      absl::StrCat("the model file has ", bytes.size(),
                                   " bytes; allowed are at most ", kMaxModelBytes),
                      "compile a smaller model", diagnostics);
  }
  std::unique_ptr<GraphFile> result(new GraphFile());
  auto* graph = google::protobuf::Arena::CreateMessage<fe::tf::GraphDef>(&result->impl_->arena);
  if (!ReadGraph(bytes, file, *graph, diagnostics)) return nullptr;
  if (graph->node_size() > kMaxNodes) {
    return RefuseFile(DiagnosticKind::kModelLimitExceeded, file,
                      absl::StrCat("the graph has ", graph->node_size(),
                                   " nodes; allowed are at most ", kMaxNodes),
                      "compile a smaller model", diagnostics);
  }
  result->impl_->graph = graph;
  result->producer_version_ = graph->versions().producer();
  result->nodes_.reserve(static_cast<size_t>(graph->node_size()));
  for (const fe::tf::NodeDef& node : graph->node()) result->nodes_.emplace_back(&node);
  for (const fe::tf::FunctionDef& function : graph->library().function()) {
    result->impl_->functions.insert(View(function.signature().name()));
  }
  if (!result->CheckNodes(file, diagnostics)) return nullptr;
  return result;
}

}  // namespace npuc::tf
