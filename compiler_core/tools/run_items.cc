#include "compiler_core/tools/run_items.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/emit/header_writer.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/port_values.h"

namespace npuc {
namespace {

constexpr int64_t kMaxItems = int64_t{1} << 24;
constexpr int64_t kMaxOutputBytes = int64_t{1} << 31;

// One input's items in the port's type, laid one after the other.
struct BoundInput {
  bool given = false;
  int64_t items = 0;
  std::string elements;
};

template <typename T>
T Load(const std::string& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// Token numbers, counts, shapes: stored values of quantized inputs are narrower.
bool HoldsWholeNumbers(const NpyArray& array) {
  return array.dtype == DType::kInt32 || array.dtype == DType::kInt64;
}

// INVALID_ARGUMENT where a float of `digits` binary digits does not hold a whole number exactly.
absl::Status CheckWholeNumbers(const NpyArray& array, int digits) {
  const double most = std::ldexp(1.0, digits);
  for (int64_t i = 0; HoldsWholeNumbers(array) && i < array.element_count(); ++i) {
    const double value = ValueAt(array, i);
    if (std::abs(value) <= most) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "holds ", static_cast<int64_t>(std::clamp(value, -1e15, 1e15)), " at element ", i,
        "; whole numbers to ", static_cast<int64_t>(most), " are exact in this input's type"));
  }
  return absl::OkStatus();
}

// INVALID_ARGUMENT where a float is none of the integers that the model itself takes.
absl::Status CheckIntegers(const NpyArray& array, DType stated) {
  const bool is_signed = stated == DType::kInt8 || stated == DType::kInt16 ||
                         stated == DType::kInt32 || stated == DType::kInt64;
  const double count = std::ldexp(1.0, static_cast<int>(8 * SizeOf(stated)));
  const double least = is_signed ? -count / 2 : 0;
  const double most = least + count - 1;
  for (int64_t i = 0; i < array.element_count(); ++i) {
    const double value = ValueAt(array, i);
    if (value >= least && value <= most && value == std::floor(value)) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "holds %g at element %d; the model's input is %s, which takes whole numbers from %.0f to "
        "%.0f, as npuc run --raw does",
        value, i, NameOf(stated), least, most));
  }
  return absl::OkStatus();
}

// The array's elements as fp16 or float32, for an input that the model states as `stated`. float64
// goes by way of float32, as numpy's astype twice would.
absl::StatusOr<std::string> Converted(const NpyArray& array, DType stated, DType to) {
  const bool is_float = array.dtype == DType::kFloat16 || array.dtype == DType::kFloat32 ||
                        array.dtype == DType::kFloat64;
  const bool is_bits = array.dtype == DType::kUint16 && stated == DType::kFloat16;
  const bool is_stated = IsInteger(stated) && array.dtype == stated;
  const bool is_whole = HoldsWholeNumbers(array) && IsFloat(stated);
  if (!is_float && !is_bits && !is_stated && !is_whole) {
    const std::string also = stated == DType::kFloat16 ? ", or uint16 (fp16 bits)"
                             : IsInteger(stated)       ? absl::StrCat(", or ", NameOf(stated))
                                                       : "";
    return absl::InvalidArgumentError(
        absl::StrCat("is ", NameOf(array.dtype), ", and the model's is ", NameOf(stated),
                     "; float32, float64 or float16", also, " is needed"));
  }
  if (is_float && IsInteger(stated)) RETURN_IF_ERROR(CheckIntegers(array, stated));
  if (is_whole) RETURN_IF_ERROR(CheckWholeNumbers(array, to == DType::kFloat16 ? 11 : 24));
  if (to == DType::kFloat16 && is_bits) return array.bytes;
  if (to == array.dtype) return array.bytes;
  const int64_t size = SizeOf(to);
  std::string out(static_cast<size_t>(size * array.element_count()), '\0');
  for (int64_t i = 0; i < array.element_count(); ++i) {
    const float value = is_bits ? HalfToFloat(Load<uint16_t>(array.bytes, i))
                                : static_cast<float>(ValueAt(array, i));
    const uint16_t half = FloatToHalf(value);
    const void* element = to == DType::kFloat16 ? static_cast<const void*>(&half) : &value;
    std::memcpy(out.data() + size * i, element, static_cast<size_t>(size));
  }
  return out;
}

// The integer that a port holds for a value: the value itself stored (`raw`), or rounded by the
// port's scale.
absl::StatusOr<int64_t> StoredOf(const PortTensor& port, double value, bool raw, int64_t i) {
  if (!std::isfinite(value)) {
    return absl::InvalidArgumentError(absl::StrCat("holds ",
                                                   std::isnan(value) ? "NaN"
                                                   : value > 0       ? "inf"
                                                                     : "-inf",
                                                   " at element ", i,
                                                   "; an input of integers takes finite numbers"));
  }
  if (!raw) return integer::StoredValue(port, value);
  const int64_t least = integer::LowestValue(port.dtype);
  const int64_t most = integer::HighestValue(port.dtype);
  const int64_t stored = static_cast<int64_t>(std::clamp(value, -1e15, 1e15));
  if (stored >= least && stored <= most) return stored;
  return absl::InvalidArgumentError(absl::StrCat("holds ", stored, " at element ", i,
                                                 "; the input stores ", least, " to ", most));
}

// The array's elements as the integers of a port.
absl::StatusOr<std::string> Quantized(const NpyArray& array, const PortTensor& port, bool raw) {
  if (array.dtype == port.dtype) return array.bytes;
  const bool is_real = array.dtype == DType::kFloat32 || array.dtype == DType::kFloat64;
  if (!HoldsWholeNumbers(array) && (raw || !is_real)) {
    return absl::InvalidArgumentError(absl::StrCat("is ", NameOf(array.dtype), "; ",
                                                   NameOf(port.dtype), " (stored values)",
                                                   raw ? "" : " or float32", " is needed"));
  }
  std::string out(static_cast<size_t>(SizeOf(port.dtype) * array.element_count()), '\0');
  for (int64_t i = 0; i < array.element_count(); ++i) {
    ASSIGN_OR_RETURN(const int64_t stored, StoredOf(port, ValueAt(array, i), raw, i));
    integer::StoreInteger(port.dtype, stored, out.data(), i);
  }
  return out;
}

// An integer port's stored values as float32.
void Dequantize(const PortTensor& port, NpyArray& array) {
  const int64_t count = static_cast<int64_t>(array.bytes.size()) / SizeOf(port.dtype);
  std::string out(static_cast<size_t>(count) * sizeof(float), '\0');
  for (int64_t i = 0; i < count; ++i) {
    const float value =
        integer::RealValue(port, integer::LoadInteger(port.dtype, array.bytes.data(), i));
    std::memcpy(out.data() + i * static_cast<int64_t>(sizeof(float)), &value, sizeof(float));
  }
  array.dtype = DType::kFloat32;
  array.bytes = std::move(out);
}

int64_t BytesOf(const PortTensor& port) { return ElementCount(port.shape) * SizeOf(port.dtype); }

int64_t BytesOf(const std::vector<PortTensor>& ports) {
  int64_t end = 0;
  for (const PortTensor& port : ports) end = std::max(end, port.offset_bytes + BytesOf(port));
  return end;
}

class ItemRunner {
 public:
  ItemRunner(FrameRunner& model, RunValues values) : model_(model), values_(values) {}

  absl::StatusOr<RunItemsResult> Run(const std::vector<NamedArray>& inputs, int64_t max_items) {
    Bind(inputs);
    RETURN_IF_ERROR(found_.ToStatus());
    const int64_t items = CountItems(max_items);
    RETURN_IF_ERROR(found_.ToStatus());
    return RunAll(items);
  }

  const Diagnostics& found() const { return found_; }

 private:
  void Report(absl::string_view name, const std::string& message, std::string fix = {}) {
    found_.Add({.kind = DiagnosticKind::kRunInputInvalid,
                .message = absl::StrCat("input '", Printable(name), "' ", message),
                .fix = std::move(fix)});
  }

  std::string InputList() const {
    return absl::StrJoin(model_.inputs(), ", ", [](std::string* out, const PortTensor& port) {
      absl::StrAppend(out, Printable(port.name), " ", ShapeToString(port.shape));
    });
  }

  bool IsState(size_t input) const {
    return std::any_of(
        model_.outputs().begin(), model_.outputs().end(),
        [input](const PortTensor& port) { return port.state_input == static_cast<int>(input); });
  }

  void Bind(const std::vector<NamedArray>& inputs) {
    bound_.resize(model_.inputs().size());
    for (const NamedArray& input : inputs) BindOne(input);
    for (size_t i = 0; i < bound_.size(); ++i) {
      if (bound_[i].given || IsState(i)) continue;
      const PortTensor& port = model_.inputs()[i];
      Report(port.name, absl::StrCat(ShapeToString(port.shape), " is not given"),
             absl::StrCat("add --input ", Printable(port.name), "=FILE.npy"));
    }
  }

  void BindOne(const NamedArray& input) {
    const std::vector<PortTensor>& ports = model_.inputs();
    size_t i = 0;
    while (i < ports.size() && ports[i].name != input.name) ++i;
    if (i == ports.size()) {
      i = 0;
      while (i < ports.size() && CIdentifier(ports[i].name) != CIdentifier(input.name)) ++i;
    }
    if (i == ports.size()) {
      std::vector<absl::string_view> names;
      for (const PortTensor& port : ports) names.push_back(port.name);
      return Report(input.name, absl::StrCat("is none of the model's: ", InputList()),
                    DidYouMean(input.name, names, "give one of these"));
    }
    if (bound_[i].given) return Report(input.name, "is given twice");
    BoundInput& bound = bound_[i];
    bound.given = true;
    bound.items = ItemCount(ports[i].shape, input.array.shape);
    if (bound.items == 0) {
      return Report(input.name,
                    absl::StrCat("has shape ", ShapeToString(input.array.shape), "; the tensor is ",
                                 ShapeToString(ports[i].shape)),
                    "stack items in the first dimension");
    }
    absl::StatusOr<std::string> elements =
        ports[i].scale > 0 ? Quantized(input.array, ports[i], values_ == RunValues::kStored)
                           : Converted(input.array, model_.StatedType(i), ports[i].dtype);
    if (!elements.ok()) return Report(input.name, std::string(elements.status().message()));
    bound.elements = *std::move(elements);
    if (IsState(i) && bound.items != 1) {
      Report(input.name, absl::StrCat("is a state and has ", bound.items,
                                      " items; only its start can be given"));
    }
  }

  int64_t CountItems(int64_t max_items) {
    int64_t items = 1;
    for (size_t i = 0; i < bound_.size(); ++i) {
      const BoundInput& bound = bound_[i];
      if (!bound.given || bound.items == 1) continue;
      if (items != 1 && bound.items != items) {
        Report(model_.inputs()[i].name,
               absl::StrCat("has ", bound.items, " items, another input ", items));
      }
      items = bound.items;
    }
    if (max_items > 0 && (max_items < items || items == 1)) items = max_items;
    if (items > kMaxItems || items * BytesOf(model_.outputs()) > kMaxOutputBytes) {
      found_.Add({.kind = DiagnosticKind::kSimulationTooLarge,
                  .message = absl::StrCat(items, " items give ", BytesOf(model_.outputs()),
                                          " bytes each; at most ", kMaxItems, " items and ",
                                          kMaxOutputBytes, " bytes are run at once"),
                  .fix = "run fewer items"});
    }
    return items;
  }

  absl::StatusOr<RunItemsResult> RunAll(int64_t items) {
    RunItemsResult result;
    result.items = items;
    for (const PortTensor& port : model_.outputs()) {
      NamedArray output;
      output.name = port.name;
      output.array.dtype = port.dtype;
      output.array.shape = port.shape;
      if (!port.shape.empty()) {
        output.array.shape[0] *= items;
      } else if (items != 1) {
        output.array.shape = {items};
      }
      result.outputs.push_back(std::move(output));
    }
    std::vector<uint8_t> frame(static_cast<size_t>(BytesOf(model_.inputs())), 0);
    BeginStates(frame);
    std::vector<uint8_t> output;
    for (int64_t item = 0; item < items; ++item) {
      FillInputs(item, frame);
      RETURN_IF_ERROR(model_.Run(frame, output));
      for (size_t i = 0; i < result.outputs.size(); ++i) {
        const PortTensor& port = model_.outputs()[i];
        const size_t bytes = static_cast<size_t>(BytesOf(port));
        result.outputs[i].array.bytes.append(
            reinterpret_cast<const char*>(output.data()) + port.offset_bytes, bytes);
      }
      FeedBack(output, frame);
    }
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const PortTensor& port = model_.outputs()[i];
      if (port.scale > 0 && values_ == RunValues::kReal) Dequantize(port, result.outputs[i].array);
    }
    return result;
  }

  // States begin with 0: the zero point, where the port has integers.
  void BeginStates(std::vector<uint8_t>& frame) const {
    for (const PortTensor& output : model_.outputs()) {
      if (output.state_input < 0) continue;
      const PortTensor& input = model_.inputs()[static_cast<size_t>(output.state_input)];
      if (input.scale <= 0 || input.zero_point == 0) continue;
      for (int64_t i = 0; i < ElementCount(input.shape); ++i) {
        integer::StoreInteger(input.dtype, input.zero_point, frame.data() + input.offset_bytes, i);
      }
    }
  }

  void FeedBack(const std::vector<uint8_t>& output, std::vector<uint8_t>& frame) const {
    for (const PortTensor& port : model_.outputs()) {
      if (port.state_input < 0 || BytesOf(port) == 0) continue;
      const PortTensor& input = model_.inputs()[static_cast<size_t>(port.state_input)];
      std::memcpy(frame.data() + input.offset_bytes, output.data() + port.offset_bytes,
                  static_cast<size_t>(BytesOf(port)));
    }
  }

  void FillInputs(int64_t item, std::vector<uint8_t>& frame) const {
    for (size_t i = 0; i < bound_.size(); ++i) {
      const BoundInput& bound = bound_[i];
      if (!bound.given || (item > 0 && IsState(i))) continue;
      const PortTensor& port = model_.inputs()[i];
      const int64_t bytes = BytesOf(port);
      const int64_t from = bound.items == 1 ? 0 : item * bytes;
      if (bytes == 0) continue;
      std::memcpy(frame.data() + port.offset_bytes, bound.elements.data() + from,
                  static_cast<size_t>(bytes));
    }
  }

  FrameRunner& model_;
  const RunValues values_;
  Diagnostics found_;
  std::vector<BoundInput> bound_;
};

}  // namespace

int64_t ItemCount(const Shape& tensor, const std::vector<int64_t>& shape) {
  const auto ends_like = [](const std::vector<int64_t>& a, size_t from_a, const Shape& b,
                            size_t from_b) {
    return std::equal(a.begin() + static_cast<std::ptrdiff_t>(from_a), a.end(),
                      b.begin() + static_cast<std::ptrdiff_t>(from_b), b.end());
  };
  if (shape == tensor) return 1;
  if (shape.size() == tensor.size() + 1 && ends_like(shape, 1, tensor, 0)) return shape[0];
  if (shape.size() == tensor.size() && !tensor.empty() && ends_like(shape, 1, tensor, 1) &&
      tensor[0] > 0 && shape[0] % tensor[0] == 0) {
    return shape[0] / tensor[0];
  }
  return 0;
}

double ValueAt(const NpyArray& array, int64_t i) {
  switch (array.dtype) {
    case DType::kFloat16:
      return HalfToFloat(Load<uint16_t>(array.bytes, i));
    case DType::kFloat32:
      return Load<float>(array.bytes, i);
    case DType::kFloat64:
      return Load<double>(array.bytes, i);
    default:
      return static_cast<double>(integer::LoadInteger(array.dtype, array.bytes.data(), i));
  }
}

std::vector<float> FloatsOf(const NpyArray& array) {
  std::vector<float> values(static_cast<size_t>(array.element_count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(ValueAt(array, static_cast<int64_t>(i)));
  }
  return values;
}

std::vector<const PortTensor*> InputsToGive(const FrameRunner& model) {
  std::vector<const PortTensor*> inputs;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const bool is_state = std::any_of(
        model.outputs().begin(), model.outputs().end(),
        [i](const PortTensor& port) { return port.state_input == static_cast<int>(i); });
    if (!is_state) inputs.push_back(&model.inputs()[i]);
  }
  return inputs;
}

std::vector<float> RealValues(const PortTensor& port, const NpyArray& stored) {
  if (port.scale <= 0) return FloatsOf(stored);
  std::vector<float> values;
  for (int64_t i = 0; i < stored.element_count(); ++i) {
    values.push_back(
        integer::RealValue(port, integer::LoadInteger(stored.dtype, stored.bytes.data(), i)));
  }
  return values;
}

std::vector<NamedArray> RealInputs(const FrameRunner& model, std::vector<NamedArray> inputs) {
  for (NamedArray& input : inputs) {
    for (size_t i = 0; i < model.inputs().size(); ++i) {
      const PortTensor& port = model.inputs()[i];
      const DType stored = port.scale > 0 ? port.dtype : model.StatedType(i);
      if (!IsInteger(stored) || input.array.dtype != stored ||
          CIdentifier(port.name) != CIdentifier(input.name)) {
        continue;
      }
      const std::vector<float> values = RealValues(port, input.array);
      input.array.dtype = DType::kFloat32;
      input.array.bytes.assign(reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(float));
    }
  }
  return inputs;
}

NpyArray RandomInput(const PortTensor& port, DType stated, uint32_t seed) {
  std::mt19937 random(seed);  // the standard defines its numbers
  NpyArray array;
  array.shape = port.shape;
  const int64_t count = array.element_count();
  const bool is_stored = port.scale > 0;
  if (is_stored || (IsInteger(stated) && SizeOf(stated) <= 2)) {
    array.dtype = is_stored ? port.dtype : stated;
    array.bytes.resize(static_cast<size_t>(count * SizeOf(array.dtype)));
    // All patterns of bits of a type are stored values.
    for (char& byte : array.bytes) byte = static_cast<char>(random() >> 24);
    return array;
  }
  array.dtype = DType::kFloat32;
  for (int64_t i = 0; i < count; ++i) {
    // A wide integer may be a place in a list of two.
    const float value = IsInteger(stated) ? static_cast<float>(random() >> 31)
                                          : static_cast<float>(random() >> 8) / 8388608.0F - 1.0F;
    array.bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return array;
}

absl::StatusOr<RunItemsResult> RunItems(FrameRunner& model, const std::vector<NamedArray>& inputs,
                                        int64_t max_items, Diagnostics& diagnostics,
                                        RunValues values) {
  ItemRunner runner(model, values);
  absl::StatusOr<RunItemsResult> result = runner.Run(inputs, max_items);
  diagnostics.Append(runner.found());
  return result;
}

}  // namespace npuc
