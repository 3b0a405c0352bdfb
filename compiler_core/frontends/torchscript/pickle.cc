#include "compiler_core/frontends/torchscript/pickle.h"

#include "compiler_core/base/status.h"

namespace npuc::pt {
namespace {

struct ScalarTypeInfo {
  const char* name;
  int64_t size;
  DType dtype;
};
// By PyTorch's number.
constexpr ScalarTypeInfo kScalarTypes[kScalarTypeCount] = {
    {"uint8", 1, DType::kUint8},         {"int8", 1, DType::kInt8},
    {"int16", 2, DType::kInt16},         {"int32", 4, DType::kInt32},
    {"int64", 8, DType::kInt64},         {"float16", 2, DType::kFloat16},
    {"float32", 4, DType::kFloat32},     {"float64", 8, DType::kFloat64},
    {"complex32", 4, DType::kInvalid},   {"complex64", 8, DType::kInvalid},
    {"complex128", 16, DType::kInvalid}, {"bool", 1, DType::kBool},
    {"qint8", 1, DType::kInt8},          {"quint8", 1, DType::kUint8},
    {"qint32", 4, DType::kInt32},        {"bfloat16", 2, DType::kFloat32},
    {"quint4x2", 1, DType::kInvalid},    {"quint2x4", 1, DType::kInvalid},
};

const ScalarTypeInfo& InfoOf(ScalarType type) {
  const int number = static_cast<int>(type);
  NPUC_CHECK(number >= 0 && number < kScalarTypeCount);
  return kScalarTypes[number];
}

}  // namespace

absl::string_view NameOf(ScalarType type) { return InfoOf(type).name; }
int64_t SizeOf(ScalarType type) { return InfoOf(type).size; }
DType DTypeOf(ScalarType type) { return InfoOf(type).dtype; }

bool IsQuantized(ScalarType type) {
  switch (type) {
    case ScalarType::kQInt8:
    case ScalarType::kQUInt8:
    case ScalarType::kQInt32:
    case ScalarType::kQUInt4x2:
    case ScalarType::kQUInt2x4:
      return true;
    default:
      return false;
  }
}

absl::string_view NameOf(PyKind kind) {
  switch (kind) {
    case PyKind::kNone:
      return "None";
    case PyKind::kBool:
      return "a bool";
    case PyKind::kInt:
      return "an int";
    case PyKind::kDouble:
      return "a float";
    case PyKind::kComplex:
      return "a complex number";
    case PyKind::kString:
      return "a string";
    case PyKind::kTuple:
      return "a tuple";
    case PyKind::kList:
      return "a list";
    case PyKind::kDict:
      return "a dict";
    case PyKind::kObject:
      return "an object";
    case PyKind::kTensor:
      return "a tensor";
    case PyKind::kDevice:
      return "a device";
    case PyKind::kEnum:
      return "an enum";
  }
  return "a value";
}

PyId PyObject::Find(absl::string_view name) const {
  for (const auto& [attribute, id] : attributes) {
    if (attribute == name) return id;
  }
  return PyId();
}

PyKind PyValues::kind(PyId id) const {
  NPUC_CHECK(id.value() >= 0 && id.value() < size());
  return values_[static_cast<size_t>(id.value())].kind;
}

const PyValues::Value& PyValues::Of(PyId id, PyKind kind) const {
  NPUC_CHECK(this->kind(id) == kind);
  return values_[static_cast<size_t>(id.value())];
}

size_t PyValues::IndexOf(PyId id, PyKind kind) const {
  return static_cast<size_t>(Of(id, kind).index);
}

bool PyValues::boolean(PyId id) const { return Of(id, PyKind::kBool).integer != 0; }
int64_t PyValues::integer(PyId id) const { return Of(id, PyKind::kInt).integer; }
double PyValues::real(PyId id) const { return Of(id, PyKind::kDouble).real; }

std::pair<double, double> PyValues::complex(PyId id) const {
  return complexes_[IndexOf(id, PyKind::kComplex)];
}

absl::string_view PyValues::string(PyId id) const {
  const PyKind kind = this->kind(id) == PyKind::kDevice ? PyKind::kDevice : PyKind::kString;
  return strings_[IndexOf(id, kind)];
}

absl::Span<const PyId> PyValues::items(PyId id) const {
  const PyKind kind = this->kind(id) == PyKind::kList ? PyKind::kList : PyKind::kTuple;
  return sequences_[IndexOf(id, kind)].items;
}

absl::Span<const PyValues::Entry> PyValues::entries(PyId id) const {
  return dicts_[IndexOf(id, PyKind::kDict)].entries;
}

absl::string_view PyValues::type_tag(PyId id) const {
  if (kind(id) == PyKind::kDict) return dicts_[IndexOf(id, PyKind::kDict)].type_tag;
  return sequences_[IndexOf(id, PyKind::kList)].type_tag;
}

const PyObject& PyValues::object(PyId id) const { return objects_[IndexOf(id, PyKind::kObject)]; }
const PyTensor& PyValues::tensor(PyId id) const { return tensors_[IndexOf(id, PyKind::kTensor)]; }

absl::string_view PyValues::enum_class(PyId id) const {
  return enums_[IndexOf(id, PyKind::kEnum)].class_name;
}
PyId PyValues::enum_value(PyId id) const { return enums_[IndexOf(id, PyKind::kEnum)].value; }

}  // namespace npuc::pt
