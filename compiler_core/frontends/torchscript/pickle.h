#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PICKLE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PICKLE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/strong_int.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::pt {

// PyTorch's element types by its own numbers, which are also what a dtype is in TorchScript code
// and pickles: an int.
enum class ScalarType : int8_t {
  kUint8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kComplexHalf = 8,
  kComplexFloat = 9,
  kComplexDouble = 10,
  kBool = 11,
  kQInt8 = 12,
  kQUInt8 = 13,
  kQInt32 = 14,
  kBFloat16 = 15,
  kQUInt4x2 = 16,
  kQUInt2x4 = 17,
};
inline constexpr int kScalarTypeCount = 18;
absl::string_view NameOf(ScalarType type);  // "float32", "qint8" ... as in torch.NAME
int64_t SizeOf(ScalarType type);            // bytes of an element in a storage
bool IsQuantized(ScalarType type);
// The IR's type for it, of a quantized one that of its integers; kInvalid for complex ones and for
// integers that share a byte. kBFloat16 is read as f32, which holds each of its values.
DType DTypeOf(ScalarType type);

// The kinds of values in a pickle of a TorchScript archive.
enum class PyKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kDouble,
  kComplex,
  kString,
  kTuple,
  kList,
  kDict,
  kObject,  // an instance of a TorchScript class: a module, or a class of the model's own
  kTensor,
  kDevice,  // string() is "cpu", "cuda:0"
  kEnum,    // an instance of an enum class; enum_value() is its value
};
absl::string_view NameOf(PyKind kind);  // "a list" ...: for messages

using PyId = StrongInt<struct PyIdTag>;

// A named piece of memory that tensors look into. Several tensors may share one.
struct PyStorage {
  std::string entry;  // of the archive: "data/0", "constants/3"
  ScalarType type = ScalarType::kFloat32;
  std::string device;
  int64_t element_count = 0;  // as the pickle says; ReadTorchArchive checks it against the entry
};

// The meaning of a quantized tensor's integers.
struct PyQuantizer {
  std::string scheme;  // "per_tensor_affine" ...; empty where the tensor is not quantized
  double scale = 0;    // of a scheme by tensor
  int64_t zero_point = 0;
  PyId
      scales;  // of a scheme by channel: tensors of as many elements as the tensor has along `axis`
  PyId zero_points;
  int64_t axis = 0;
};

struct PyTensor {
  ScalarType type = ScalarType::kFloat32;
  int storage = -1;            // index into PyValues::storages
  int64_t storage_offset = 0;  // in elements, not negative
  // In elements. Bounds against the storage are checked by ReadTorchArchive. rank <= kMaxRank;
  // strides are not negative.
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  bool requires_grad = false;
  PyQuantizer quantizer;
};

struct PyObject {
  // "__torch__.net.Net", "__torch__.torch.nn.modules.conv.___torch_mangle_3.Conv2d"
  std::string class_name;
  // What the class is restored from. A dict from attribute names, unless the class has a
  // __getstate__ of its own: then it is that function's result, and __setstate__ (in the archive's
  // code) makes the attributes. Invalid where the pickle gives no state.
  PyId state;
  // The attributes in the pickle's order, where `state` is a dict whose keys are distinct strings;
  // else empty.
  std::vector<std::pair<std::string, PyId>> attributes;
  // An invalid id where there is no such attribute.
  PyId Find(absl::string_view name) const;
};

// The values of one archive, all of its pickles together. A value is an id; equal ids are one
// Python object (aliasing is kept: a list that two attributes share has one id). No value contains
// itself and none is nested deeper than PickleLimits::nesting, so that a consumer may recurse; but
// values are shared, so a consumer that visits each reference may visit exponentially many:
// remember results by id. Accessors require the kind that they name (CHECKed: ask kind() first).
// Immutable once read, so thread-safe.
class PyValues {
 public:
  using Entry = std::pair<PyId, PyId>;

  int size() const { return static_cast<int>(values_.size()); }
  PyKind kind(PyId id) const;
  bool boolean(PyId id) const;
  int64_t integer(PyId id) const;
  double real(PyId id) const;                        // kDouble
  std::pair<double, double> complex(PyId id) const;  // real, imaginary
  absl::string_view string(PyId id) const;           // kString, kDevice; any bytes may be in it
  absl::Span<const PyId> items(PyId id) const;       // kTuple, kList
  absl::Span<const Entry> entries(PyId id) const;  // kDict: in the pickle's order, keys may repeat
  // kList, kDict: the type that the pickle states, "List[int]" or "Dict[str, Tensor]"; may be "".
  absl::string_view type_tag(PyId id) const;
  const PyObject& object(PyId id) const;
  const PyTensor& tensor(PyId id) const;
  absl::string_view enum_class(PyId id) const;  // "__torch__.net.Color"
  PyId enum_value(PyId id) const;

  const std::vector<PyStorage>& storages() const { return storages_; }

 private:
  friend class Unpickler;
  struct Value {
    PyKind kind = PyKind::kNone;
    int32_t index = -1;  // into the table of its kind
    union {
      int64_t integer = 0;
      double real;
    };
  };
  struct Sequence {
    std::vector<PyId> items;
    std::string type_tag;
  };
  struct Dict {
    std::vector<Entry> entries;
    std::string type_tag;
  };
  struct Enum {
    std::string class_name;
    PyId value;
  };
  const Value& Of(PyId id, PyKind kind) const;
  size_t IndexOf(PyId id, PyKind kind) const;

  std::vector<Value> values_;
  std::deque<std::string> strings_;
  std::deque<Sequence> sequences_;
  std::deque<Dict> dicts_;
  std::deque<PyObject> objects_;
  std::deque<PyTensor> tensors_;
  std::deque<Enum> enums_;
  std::vector<std::pair<double, double>> complexes_;
  std::vector<PyStorage> storages_;
};

// Limits on one pickle; more is a diagnostic.
struct PickleLimits {
  int64_t steps = int64_t{1} << 22;         // opcodes
  int64_t values = int64_t{1} << 21;        // made, those dropped included
  int64_t stack = int64_t{1} << 20;         // values and marks
  int64_t memo = int64_t{1} << 20;          // its entries; also the largest index
  int64_t string_bytes = int64_t{1} << 26;  // of all strings together
  int nesting = 128;  // a module inside a module takes two: its object and its dict
  int tensors = 1 << 16;
};

// Runs `bytes`, a pickle as torch writes it into TorchScript archives (protocol 2), and gives its
// root. Only the opcodes and globals that torch's own writer uses are known; anything else is a
// diagnostic that names it. Nothing is executed. `entry` ("data.pkl") and `file` are the place in
// diagnostics; `storage_folder` ("data") is the folder of the storages' entries. Values go to
// `values`, which may hold another pickle's values already. An invalid id where there was an error.
PyId Unpickle(absl::string_view bytes, absl::string_view file, absl::string_view entry,
              absl::string_view storage_folder, const PickleLimits& limits, PyValues& values,
              Diagnostics& diagnostics);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PICKLE_H_
