// The functions and classes that a pickle of torch may name.
#include <iterator>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/utf8.h"
#include "compiler_core/frontends/torchscript/unpickler.h"

namespace npuc::pt {
namespace {

struct NamedGlobal {
  absl::string_view name;
  PickleGlobal global;
};
constexpr NamedGlobal kGlobals[] = {
    {"torch._utils._rebuild_tensor_v2", PickleGlobal::kRebuildTensor},
    {"torch._utils._rebuild_qtensor", PickleGlobal::kRebuildQTensor},
    {"torch._utils._rebuild_parameter", PickleGlobal::kRebuildParameter},
    {"collections.OrderedDict", PickleGlobal::kOrderedDict},
    {"builtins.complex", PickleGlobal::kComplex},
    {"torch.device", PickleGlobal::kDevice},
    {"torch.jit._pickle.restore_type_tag", PickleGlobal::kRestoreTypeTag},
    {"torch.jit._pickle.build_intlist", PickleGlobal::kBuildIntList},
    {"torch.jit._pickle.build_tensorlist", PickleGlobal::kBuildTensorList},
    {"torch.jit._pickle.build_doublelist", PickleGlobal::kBuildDoubleList},
    {"torch.jit._pickle.build_boollist", PickleGlobal::kBuildBoolList},
};

struct RefusedGlobal {
  absl::string_view name;
  absl::string_view what;
  absl::string_view fix;
};
// Globals that torch itself writes, but whose values npuc has no use for.
constexpr RefusedGlobal kRefusedGlobals[] = {
    {"torch._utils._rebuild_sparse_tensor", "a sparse tensor", "make it dense before saving"},
    {"torch._utils._rebuild_sparse_csr_tensor", "a sparse tensor", "make it dense before saving"},
    {"torch._utils._rebuild_meta_tensor_no_storage", "a tensor of the meta device, without values",
     "move the model to the cpu before saving"},
    {"torch.jit._pickle.build_tensor_from_id", "a tensor kept outside, as before PyTorch 1.4",
     "load the model by torch.jit.load in PyTorch 1.10 or newer and save it again"},
    {"torch.distributed.rpc.rref", "a remote reference", "take its local value before saving"},
};

// By ScalarType's number: "torch." + this + "Storage".
constexpr absl::string_view kStorageNames[kScalarTypeCount] = {
    "Byte",  "Char",   "Short",       "Int",          "Long",          "Half",
    "Float", "Double", "ComplexHalf", "ComplexFloat", "ComplexDouble", "Bool",
    "QInt8", "QUInt8", "QInt32",      "BFloat16",     "QUInt4x2",      "QUInt2x4"};

constexpr absl::string_view kQuantizers[] = {"per_tensor_affine", "per_channel_affine",
                                             "per_tensor_symmetric", "per_channel_symmetric",
                                             "per_channel_affine_float_qparams"};

// A name of Python: letters, digits, '_', dots between, and what is not ASCII.
bool IsQualifiedName(absl::string_view name) {
  if (name.empty() || FirstInvalidUtf8(name) != absl::string_view::npos) return false;
  for (const char c : name) {
    const auto byte = static_cast<uint8_t>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
    if (!letter && !(c >= '0' && c <= '9') && byte < 0x80) return false;
  }
  return true;
}

}  // namespace

bool Unpickler::PushGlobal(absl::string_view module, absl::string_view name) {
  const std::string full = absl::StrCat(module, ".", name);
  if (module == "__torch__" || absl::StartsWith(module, "__torch__.")) return PushClass(full);
  for (const NamedGlobal& known : kGlobals) {
    if (known.name == full) return Push({.tag = Item::kGlobalTag, .global = known.global});
  }
  bool known = false;
  if (!PushTorchConstant(full, known)) return false;
  return known || RefuseGlobal(full);
}

// Storage types and quantization schemes: constants of the torch module.
bool Unpickler::PushTorchConstant(absl::string_view name, bool& known) {
  known = true;
  for (int i = 0; i < kScalarTypeCount; ++i) {
    if (name == absl::StrCat("torch.", kStorageNames[i], "Storage")) {
      return Push({.tag = Item::kStorageType, .index = i});
    }
  }
  for (size_t i = 0; i < std::size(kQuantizers); ++i) {
    if (name == absl::StrCat("torch.", kQuantizers[i])) {
      return Push({.tag = Item::kQuantizer, .index = static_cast<int32_t>(i)});
    }
  }
  known = false;
  return true;
}

bool Unpickler::RefuseGlobal(absl::string_view name) {
  for (const RefusedGlobal& refused : kRefusedGlobals) {
    if (refused.name != name) continue;
    return Fail(DiagnosticKind::kTorchPickleGlobal,
                absl::StrCat("the pickle calls '", name, "' to make ", refused.what,
                             "; allowed are dense tensors with their values in the archive"),
                std::string(refused.fix));
  }
  return Fail(DiagnosticKind::kTorchPickleGlobal,
              absl::StrCat("the pickle names '", Printable(name),
                           "'; allowed are the archive's own classes (__torch__...), tensors and "
                           "what else torch.jit.save writes; nothing was executed"),
              absl::StartsWith(name, "torch.")
                  ? std::string(kSaveAgain)
                  : "do not load this file in Python unless you trust where it comes from; save "
                    "the model by torch.jit.save");
}

bool Unpickler::PushClass(absl::string_view name) {
  if (!IsQualifiedName(name)) {
    return Malformed(absl::StrCat("'", Printable(name), "' is no name of a class"));
  }
  classes_.emplace_back(name);
  return Push({.tag = Item::kGlobalTag,
               .global = Global::kClass,
               .index = static_cast<int32_t>(classes_.size() - 1)});
}

bool Unpickler::NewObject() {
  Item arguments;
  Item type;
  if (!Pop(arguments) || !Pop(type)) return false;
  if (type.tag != Item::kGlobalTag || type.global != Global::kClass) {
    return Malformed("an object is made of what is no class of the archive");
  }
  PyId tuple;
  if (!AsValue(arguments, "the argument of an object", tuple)) return false;
  if (values_.kind(tuple) != PyKind::kTuple || !values_.items(tuple).empty()) {
    return Malformed("an object is made with arguments; allowed is the empty tuple");
  }
  const std::string& name = classes_[static_cast<size_t>(type.index)];
  if (!ChargeString(name.size())) return false;
  values_.objects_.push_back({.class_name = name, .state = {}, .attributes = {}});
  return PushLast(PyKind::kObject, values_.objects_.size());
}

bool Unpickler::Build() {
  PyId state;
  PyId id;
  if (!PopValue("an object's state", state) || !PopValue("the object of a state", id)) return false;
  if (values_.kind(id) != PyKind::kObject) {
    return Malformed(
        absl::StrCat("a state is given to ", NameOf(values_.kind(id)), "; allowed is an object"));
  }
  PyObject& object = values_.objects_[values_.IndexOf(id, PyKind::kObject)];
  if (object.state.valid()) return Malformed("an object is given a second state");
  object.state = state;
  if (values_.kind(state) == PyKind::kDict) {
    absl::flat_hash_set<absl::string_view> names;
    for (const auto& [key, value] : values_.entries(state)) {
      if (values_.kind(key) != PyKind::kString || !names.insert(values_.string(key)).second) {
        object.attributes.clear();
        break;
      }
      if (!Charge(1) || !ChargeString(values_.string(key).size())) return false;
      object.attributes.emplace_back(std::string(values_.string(key)), value);
    }
  }
  return PushValue(id);
}

bool Unpickler::Reduce() {
  Item arguments;
  Item callee;
  if (!Pop(arguments) || !Pop(callee)) return false;
  if (callee.tag != Item::kGlobalTag) {
    return Malformed(absl::StrCat("a call is to ", NameOf(callee.tag), "; allowed is a function"));
  }
  if (callee.global == Global::kClass) {
    // An enum: torch gives its value itself, Python's own pickler a tuple of it.
    PyId value;
    if (!AsValue(arguments, "an enum's value", value)) return false;
    if (values_.kind(value) == PyKind::kTuple && values_.items(value).size() == 1) {
      value = values_.items(value)[0];
    }
    const std::string& name = classes_[static_cast<size_t>(callee.index)];
    if (!ChargeString(name.size())) return false;
    values_.enums_.push_back({.class_name = name, .value = value});
    return PushLast(PyKind::kEnum, values_.enums_.size());
  }
  std::vector<Item> items;
  if (arguments.tag == Item::kArguments) {
    items = argument_tuples_[static_cast<size_t>(arguments.index)];
  } else {
    PyId tuple;
    if (!AsValue(arguments, "the argument of a call", tuple)) return false;
    if (values_.kind(tuple) != PyKind::kTuple) {
      return Malformed(absl::StrCat("a call has ", NameOf(values_.kind(tuple)),
                                    " for arguments; allowed is a tuple"));
    }
    for (const PyId id : values_.items(tuple)) {
      items.push_back({.tag = Item::kValue, .index = id.value()});
    }
  }
  return Charge(items.size()) && ReduceCall(callee.global, items);
}

bool Unpickler::ReduceCall(Global global, const std::vector<Item>& arguments) {
  const auto kind_of = [&](size_t i) {
    return i < arguments.size() && arguments[i].tag == Item::kValue
               ? values_.kind(PyId(arguments[i].index))
               : PyKind::kNone;
  };
  switch (global) {
    case Global::kRebuildTensor:
      return RebuildTensor(false, arguments);
    case Global::kRebuildQTensor:
      return RebuildTensor(true, arguments);
    case Global::kRebuildParameter:
      return RebuildParameter(arguments);
    case Global::kRestoreTypeTag:
      return RestoreTypeTag(arguments);
    case Global::kBuildIntList:
      return BuildList(arguments, "List[int]");
    case Global::kBuildTensorList:
      return BuildList(arguments, "List[Tensor]");
    case Global::kBuildDoubleList:
      return BuildList(arguments, "List[float]");
    case Global::kBuildBoolList:
      return BuildList(arguments, "List[bool]");
    case Global::kOrderedDict:
      // A tensor's hooks, never saved: an empty dict.
      if (!arguments.empty()) return Malformed("an OrderedDict is made with arguments");
      values_.dicts_.emplace_back();
      return PushLast(PyKind::kDict, values_.dicts_.size());
    case Global::kDevice:
      if (arguments.size() != 1 || kind_of(0) != PyKind::kString) {
        return Malformed("torch.device has arguments other than one string");
      }
      return PushString(std::string(values_.string(PyId(arguments[0].index))), PyKind::kDevice);
    case Global::kComplex:
      if (arguments.size() != 2 || kind_of(0) != PyKind::kDouble || kind_of(1) != PyKind::kDouble) {
        return Malformed("a complex number has arguments other than two floats");
      }
      values_.complexes_.emplace_back(values_.real(PyId(arguments[0].index)),
                                      values_.real(PyId(arguments[1].index)));
      return PushLast(PyKind::kComplex, values_.complexes_.size());
    case Global::kClass:
      break;
  }
  return Malformed("a call is to what is no function");
}

bool Unpickler::BuildList(absl::Span<const Item> arguments, const std::string& type_tag) {
  PyId list;
  if (arguments.size() != 1 || !AsValue(arguments[0], "the argument of a list", list) ||
      values_.kind(list) != PyKind::kList) {
    return Malformed("a typed list is made of what is no list");
  }
  values_.sequences_[values_.IndexOf(list, PyKind::kList)].type_tag = type_tag;
  return PushValue(list);
}

bool Unpickler::RestoreTypeTag(absl::Span<const Item> arguments) {
  PyId value;
  PyId tag;
  if (arguments.size() != 2) {
    return Malformed(
        absl::StrCat("restore_type_tag has ", arguments.size(), " arguments; allowed are 2"));
  }
  if (!AsValue(arguments[0], "the first argument of restore_type_tag", value) ||
      !AsValue(arguments[1], "the second argument of restore_type_tag", tag)) {
    return false;
  }
  if (values_.kind(tag) != PyKind::kString) return Malformed("a type tag is no string");
  const std::string text(values_.string(tag));
  if (!ChargeString(text.size())) return false;
  if (values_.kind(value) == PyKind::kList) {
    values_.sequences_[values_.IndexOf(value, PyKind::kList)].type_tag = text;
  } else if (values_.kind(value) == PyKind::kDict) {
    values_.dicts_[values_.IndexOf(value, PyKind::kDict)].type_tag = text;
  }
  return PushValue(value);
}

bool Unpickler::Dimensions(const Item& item, absl::string_view what, std::vector<int64_t>& out) {
  PyId tuple;
  if (!AsValue(item, what, tuple)) return false;
  if (values_.kind(tuple) != PyKind::kTuple) {
    return Malformed(
        absl::StrCat(what, " is ", NameOf(values_.kind(tuple)), "; allowed is a tuple of ints"));
  }
  const absl::Span<const PyId> items = values_.items(tuple);
  if (items.size() > static_cast<size_t>(kMaxRank)) {
    return Fail(
        DiagnosticKind::kTorchTensorInvalid,
        absl::StrCat(what, " has ", items.size(), " dimensions; allowed are at most ", kMaxRank),
        "reshape the tensor before saving");
  }
  for (const PyId id : items) {
    if (values_.kind(id) != PyKind::kInt || values_.integer(id) < 0) {
      return Fail(DiagnosticKind::kTorchTensorInvalid,
                  absl::StrCat(what, " has an entry that is no int of 0 or more"));
    }
    out.push_back(values_.integer(id));
  }
  return true;
}

namespace {

// The number of elements of a storage that the tensor reaches, its offset included; -1 where that
// is beyond 2^62.
int64_t ReachOf(const PyTensor& tensor) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t last = tensor.storage_offset;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return 0;
    int64_t span = 0;
    if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &span) ||
        __builtin_add_overflow(last, span, &last) || last > kMost) {
      return -1;
    }
  }
  return last >= kMost ? -1 : last + 1;
}

}  // namespace

// (scheme, scale, zero point), or (scheme, scales, zero points, axis).
bool Unpickler::ReadQuantizer(const Item& parameters, PyQuantizer& quantizer) {
  // A copy: tuples may be made while this runs.
  std::vector<Item> items;
  if (parameters.tag == Item::kArguments) {
    items = argument_tuples_[static_cast<size_t>(parameters.index)];
  }
  if (items.empty() || items[0].tag != Item::kQuantizer) {
    return Malformed("a quantized tensor names no quantization scheme");
  }
  quantizer.scheme = std::string(kQuantizers[static_cast<size_t>(items[0].index)]);
  const bool by_channel = absl::StartsWith(quantizer.scheme, "per_channel");
  const std::vector<PyKind> wanted =
      by_channel ? std::vector<PyKind>{PyKind::kTensor, PyKind::kTensor, PyKind::kInt}
                 : std::vector<PyKind>{PyKind::kDouble, PyKind::kInt};
  std::vector<PyId> ids(wanted.size());
  bool fits = items.size() == wanted.size() + 1;
  for (size_t i = 0; fits && i < wanted.size(); ++i) {
    if (!AsValue(items[i + 1], "a quantized tensor's parameter", ids[i])) return false;
    fits = values_.kind(ids[i]) == wanted[i];
  }
  if (!fits) {
    return Malformed(
        absl::StrCat("a quantized tensor's parameters are not those of ", quantizer.scheme));
  }
  if (by_channel) {
    quantizer.scales = ids[0];
    quantizer.zero_points = ids[1];
    quantizer.axis = values_.integer(ids[2]);
  } else {
    quantizer.scale = values_.real(ids[0]);
    quantizer.zero_point = values_.integer(ids[1]);
  }
  return true;
}

bool Unpickler::RebuildTensor(bool quantized, absl::Span<const Item> arguments) {
  const size_t fewest = quantized ? 7 : 6;
  if (arguments.size() < fewest || arguments.size() > fewest + 1) {
    return Malformed(absl::StrCat("a tensor has ", arguments.size(), " arguments; allowed are ",
                                  fewest, " or ", fewest + 1));
  }
  if (arguments[0].tag != Item::kStorage) {
    return Malformed(
        absl::StrCat("a tensor looks into ", NameOf(arguments[0].tag), "; allowed is a storage"));
  }
  if (values_.tensors_.size() >= static_cast<size_t>(limits_.tensors)) {
    return OverLimit("tensors", limits_.tensors);
  }
  PyTensor tensor;
  tensor.storage = arguments[0].index;
  const PyStorage& storage = values_.storages_[static_cast<size_t>(tensor.storage)];
  tensor.type = storage.type;
  PyId offset;
  PyId grad;
  if (!AsValue(arguments[1], "a tensor's offset", offset) ||
      !Dimensions(arguments[2], "a tensor's size", tensor.sizes) ||
      !Dimensions(arguments[3], "a tensor's stride", tensor.strides) ||
      !AsValue(arguments[fewest - 2], "a tensor's requires_grad", grad)) {
    return false;
  }
  tensor.requires_grad = values_.kind(grad) == PyKind::kBool && values_.boolean(grad);
  if (values_.kind(offset) != PyKind::kInt || values_.integer(offset) < 0) {
    return Fail(DiagnosticKind::kTorchTensorInvalid, "a tensor's offset is no int of 0 or more");
  }
  tensor.storage_offset = values_.integer(offset);
  if (tensor.sizes.size() != tensor.strides.size()) {
    return Fail(DiagnosticKind::kTorchTensorInvalid,
                absl::StrCat("a tensor has ", tensor.sizes.size(), " sizes and ",
                             tensor.strides.size(), " strides; they must be as many"));
  }
  if (quantized && !ReadQuantizer(arguments[4], tensor.quantizer)) return false;
  const int64_t reach = ReachOf(tensor);
  // Two or four elements share a byte of these; they are never looked into.
  const bool packed = tensor.type == ScalarType::kQUInt4x2 || tensor.type == ScalarType::kQUInt2x4;
  if (reach < 0 || (reach > storage.element_count && !packed)) {
    return Fail(DiagnosticKind::kTorchTensorInvalid,
                absl::StrCat("a tensor of size ", ShapeToString(tensor.sizes), ", stride ",
                             ShapeToString(tensor.strides), " and offset ", tensor.storage_offset,
                             " reaches beyond its storage '", Printable(storage.entry), "' of ",
                             storage.element_count, " elements"));
  }
  values_.tensors_.push_back(std::move(tensor));
  return PushLast(PyKind::kTensor, values_.tensors_.size());
}

// A parameter is its tensor.
bool Unpickler::RebuildParameter(absl::Span<const Item> arguments) {
  PyId tensor;
  if (arguments.size() != 3) {
    return Malformed(
        absl::StrCat("a parameter has ", arguments.size(), " arguments; allowed are 3"));
  }
  if (!AsValue(arguments[0], "a parameter's value", tensor)) return false;
  if (values_.kind(tensor) != PyKind::kTensor) return Malformed("a parameter is no tensor");
  return PushValue(tensor);
}

// ("storage", storage type, key, device, number of elements), before PyTorch 1.5 with a None behind
// them.
bool Unpickler::PersistentId() {
  Item item;
  if (!Pop(item)) return false;
  if (item.tag != Item::kArguments) {
    return Malformed("what lies outside of the pickle is named by other than a storage's tuple");
  }
  // A copy: tuples may be made while this runs.
  const std::vector<Item> parts = argument_tuples_[static_cast<size_t>(item.index)];
  PyId view;
  const bool has_view = parts.size() == 6 && AsValue(parts[5], "a storage's view", view) &&
                        values_.kind(view) == PyKind::kNone;
  if ((parts.size() != 5 && !has_view) || parts[1].tag != Item::kStorageType) {
    return Malformed("a storage is not named by (\"storage\", type, key, device, size)");
  }
  PyId ids[5];
  for (const size_t i : {0, 2, 3, 4}) {
    if (!AsValue(parts[i], "a part of a storage's name", ids[i])) return false;
    if (values_.kind(ids[i]) != (i == 4 ? PyKind::kInt : PyKind::kString)) {
      return Malformed("a storage is not named by (\"storage\", type, key, device, size)");
    }
  }
  if (values_.string(ids[0]) != "storage") {
    return Malformed(absl::StrCat("'", Printable(values_.string(ids[0])),
                                  "' lies outside of the pickle; allowed is 'storage'"));
  }
  PyStorage storage{.entry = absl::StrCat(storage_folder_, "/", values_.string(ids[2])),
                    .type = static_cast<ScalarType>(parts[1].index),
                    .device = std::string(values_.string(ids[3])),
                    .element_count = values_.integer(ids[4])};
  if (storage.element_count < 0 || storage.element_count > (int64_t{1} << 48)) {
    return Fail(DiagnosticKind::kTorchTensorInvalid,
                absl::StrCat("storage '", Printable(storage.entry), "' has ", storage.element_count,
                             " elements; allowed are 0 to 2^48"));
  }
  int32_t index = -1;
  if (!FindOrAddStorage(std::move(storage), index)) return false;
  return Push({.tag = Item::kStorage, .index = index});
}

bool Unpickler::FindOrAddStorage(PyStorage storage, int32_t& index) {
  const auto it = storage_by_entry_.find(storage.entry);
  if (it != storage_by_entry_.end()) {
    index = it->second;
    const PyStorage& first = values_.storages_[static_cast<size_t>(index)];
    if (first.type == storage.type && first.element_count == storage.element_count) return true;
    return Fail(DiagnosticKind::kTorchTensorInvalid,
                absl::StrCat("storage '", Printable(storage.entry), "' is named twice, as ",
                             first.element_count, " elements of ", NameOf(first.type), " and as ",
                             storage.element_count, " of ", NameOf(storage.type)));
  }
  if (values_.storages_.size() - first_storage_ >= static_cast<size_t>(limits_.tensors)) {
    return OverLimit("storages", limits_.tensors);
  }
  if (!ChargeString(2 * storage.entry.size() + storage.device.size())) return false;
  index = static_cast<int32_t>(values_.storages_.size());
  storage_by_entry_.emplace(storage.entry, index);
  values_.storages_.push_back(std::move(storage));
  return true;
}

}  // namespace npuc::pt
