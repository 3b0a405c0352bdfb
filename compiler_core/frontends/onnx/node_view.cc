#include "compiler_core/frontends/onnx/node_view.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

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

}  // namespace

DType DTypeFromWire(int data_type) {
  switch (data_type) {
    case fe::onnx::TensorProto::FLOAT:
    case fe::onnx::TensorProto::DOUBLE:
    case fe::onnx::TensorProto::FLOAT16:
    case fe::onnx::TensorProto::BFLOAT16:
      return DType::kFloat32;
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
  if (!proto_->name().empty() || proto_->output_size() == 0)
    return absl::string_view(proto_->name());
  return absl::string_view(proto_->output(0));
}
absl::string_view NodeView::op() const { return absl::string_view(proto_->op_type()); }
absl::string_view NodeView::domain() const {
  return proto_->domain() == "ai.onnx" ? absl::string_view() : absl::string_view(proto_->domain());
}
std::string NameOf(const NodeView& node) {
  const absl::string_view op = node.op();
  return node.domain().empty() ? std::string(op) : absl::StrCat(node.domain(), ".", op);
}
int NodeView::input_count() const { return proto_->input_size(); }
absl::string_view NodeView::input(int i) const { return absl::string_view(proto_->input(i)); }
int NodeView::output_count() const { return proto_->output_size(); }
absl::string_view NodeView::output(int i) const { return absl::string_view(proto_->output(i)); }

const fe::onnx::Attribute* NodeView::Find(absl::string_view name) const {
  for (const auto& attribute : proto_->attribute()) {
    if (absl::string_view(attribute.name()) == name) return &attribute;
  }
  return nullptr;
}

std::vector<const fe::onnx::GraphProto*> NodeView::Graphs() const {
  std::vector<const fe::onnx::GraphProto*> graphs;
  for (const auto& attribute : proto_->attribute()) {
    if (attribute.has_g()) graphs.push_back(&attribute.g());
  }
  return graphs;
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
absl::StatusOr<const fe::onnx::GraphProto*> NodeView::GraphOf(absl::string_view name) const {
  const fe::onnx::Attribute* attribute = Find(name);
  if (attribute == nullptr) return Missing(name);
  if (!attribute->has_g()) return WrongKind(name, *attribute, "a graph");
  return &attribute->g();
}

}  // namespace npuc::onnx
