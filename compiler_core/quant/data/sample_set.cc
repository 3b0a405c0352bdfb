#include "compiler_core/quant/data/sample_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/npz.h"

namespace npuc {
namespace {

std::string FileForm(absl::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c == '/' || c == ':') c = '_';
  }
  return out;
}

// How many samples of `tensor` an array of `shape` holds; 0 where it fits in no way.
int64_t SampleCount(const Shape& tensor, const std::vector<int64_t>& shape) {
  if (shape == tensor) return 1;
  if (shape.empty()) return 0;
  const Shape tail(shape.begin() + 1, shape.end());
  if (tail == tensor) return shape[0];
  if (tensor.empty() || tensor[0] == 0) return 0;
  const Shape tensor_tail(tensor.begin() + 1, tensor.end());
  return tail == tensor_tail && shape[0] % tensor[0] == 0 ? shape[0] / tensor[0] : 0;
}

template <typename T>
void Convert(const char* bytes, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

void ConvertHalf(const char* bytes, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * i, sizeof(half));
    out[i] = HalfToFloat(half);
  }
}

void ConvertFrom(DType dtype, const char* bytes, std::vector<float>& out) {
  switch (dtype) {
    case DType::kFloat16:
      return ConvertHalf(bytes, out);
    case DType::kFloat32:
      return Convert<float>(bytes, out);
    case DType::kFloat64:
      return Convert<double>(bytes, out);
    case DType::kInt8:
      return Convert<int8_t>(bytes, out);
    case DType::kInt16:
      return Convert<int16_t>(bytes, out);
    case DType::kInt32:
      return Convert<int32_t>(bytes, out);
    case DType::kInt64:
      return Convert<int64_t>(bytes, out);
    case DType::kUint8:
      return Convert<uint8_t>(bytes, out);
    case DType::kUint16:
      return Convert<uint16_t>(bytes, out);
    default:
      NPUC_CHECK(false);  // ReadNpyHeader gives no other
  }
}

absl::StatusOr<NpyHeader> HeaderOf(const ByteSource& bytes) {
  std::string start(static_cast<size_t>(std::min(bytes.size(), kMaxNpyHeaderBytes)), '\0');
  RETURN_IF_ERROR(bytes.Read(0, absl::MakeSpan(&start[0], start.size())));
  return ReadNpyHeader(start, bytes.size());
}

absl::Status InFile(const SampleFile& file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(Printable(file.name), ": ", status.message()));
}

}  // namespace

absl::StatusOr<SampleSet> SampleSet::Open(const std::vector<SampleFile>& files, const Graph& graph,
                                          const std::set<size_t>& may_lack) {
  SampleSet set;
  set.arrays_.resize(graph.inputs().size());
  size_t only = 0;  // the input that a file without a name is for
  while (may_lack.contains(only)) ++only;
  const bool has_only = graph.inputs().size() == 1 || graph.inputs().size() == may_lack.size() + 1;
  for (const ValueId id : graph.inputs()) {
    if (graph.type(id).dtype == DType::kFloat32) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input '", Printable(graph.def(id).source.name), "' is not f32"));
  }
  for (const SampleFile& file : files) {
    char magic[4] = {};
    const int64_t magic_bytes = std::min<int64_t>(4, file.bytes->size());
    RETURN_IF_ERROR(file.bytes->Read(0, absl::MakeSpan(magic, magic_bytes)));
    if (LooksLikeZip(absl::string_view(magic, magic_bytes))) {
      RETURN_IF_ERROR(set.BindArchive(graph, file));
      continue;
    }
    size_t input = only;
    if (file.input.empty() && !has_only) {
      return InFile(file, absl::InvalidArgumentError(absl::StrCat(
                              "one array for a model of ", graph.inputs().size(),
                              " inputs; give an .npz file, or a file for each input by name")));
    }
    const auto is_meant = [&](ValueId id) {
      return FileForm(graph.def(id).source.name) == FileForm(file.input);
    };
    if (!file.input.empty()) {
      const auto found = std::find_if(graph.inputs().begin(), graph.inputs().end(), is_meant);
      input = static_cast<size_t>(found - graph.inputs().begin());
    }
    RETURN_IF_ERROR(set.Bind(graph, input, file));
  }
  for (size_t i = 0; i < set.arrays_.size(); ++i) {
    set.arrays_[i].sample_elements = graph.type(graph.inputs()[i]).element_count();
    if (set.arrays_[i].bytes != nullptr || may_lack.contains(i)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "no samples for input '", Printable(graph.def(graph.inputs()[i]).source.name), "'"));
  }
  if (set.size_ < 1) return absl::InvalidArgumentError("there are no samples");
  return set;
}

absl::Status SampleSet::BindArchive(const Graph& graph, const SampleFile& file) {
  if (file.bytes->size() > kMaxArchiveBytes) {
    return InFile(file, absl::ResourceExhaustedError(
                            absl::StrCat("an .npz file of over ", kMaxArchiveBytes, " bytes")));
  }
  std::string whole(static_cast<size_t>(file.bytes->size()), '\0');
  RETURN_IF_ERROR(file.bytes->Read(0, absl::MakeSpan(&whole[0], whole.size())));
  absl::StatusOr<std::vector<NpzEntry>> entries = ReadNpz(whole, kMaxArchiveBytes);
  if (!entries.ok()) return InFile(file, entries.status());
  whole = std::string();
  const bool only_one = entries->size() == 1 && graph.inputs().size() == 1;
  for (NpzEntry& entry : *entries) {
    size_t input = 0;
    while (input < graph.inputs().size() && !only_one &&
           FileForm(graph.def(graph.inputs()[input]).source.name) != FileForm(entry.name)) {
      ++input;
    }
    const SampleFile inside{entry.name, absl::StrCat(file.name, ":", entry.name),
                            std::make_shared<OwnedSource>(std::move(entry.npy))};
    RETURN_IF_ERROR(Bind(graph, input, inside));
  }
  return absl::OkStatus();
}

absl::Status SampleSet::Bind(const Graph& graph, size_t input, const SampleFile& file) {
  if (input >= graph.inputs().size()) {
    const std::string names =
        absl::StrJoin(graph.inputs(), ", ", [&](std::string* out, ValueId id) {
          absl::StrAppend(out, Printable(graph.def(id).source.name));
        });
    return InFile(file,
                  absl::InvalidArgumentError(absl::StrCat(
                      "the model has no input '", Printable(file.input), "'; it has: ", names)));
  }
  if (arrays_[input].bytes != nullptr) {
    return InFile(file, absl::InvalidArgumentError("its input has samples already"));
  }
  const absl::StatusOr<NpyHeader> header = HeaderOf(*file.bytes);
  if (!header.ok()) return InFile(file, header.status());
  const Shape& shape = graph.type(graph.inputs()[input]).shape;
  const int64_t count = SampleCount(shape, header->shape);
  if (count == 0 || count > kMaxSamples) {
    return InFile(file, absl::InvalidArgumentError(absl::StrCat(
                            "an array of shape ", ShapeToString(header->shape),
                            " holds no samples of input '",
                            Printable(graph.def(graph.inputs()[input]).source.name), "' ",
                            ShapeToString(shape), " (at most ", kMaxSamples, ")")));
  }
  if (size_ >= 0 && size_ != count) {
    return InFile(file, absl::InvalidArgumentError(absl::StrCat(
                            "it holds ", count, " samples, another input has ", size_)));
  }
  size_ = count;
  arrays_[input] = {file.name, file.bytes, header->dtype, header->data_offset, ElementCount(shape)};
  return absl::OkStatus();
}

absl::Status SampleSet::Read(int64_t index, std::vector<std::vector<float>>& inputs) const {
  NPUC_CHECK(index >= 0 && index < size_);
  inputs.resize(arrays_.size());
  std::string bytes;
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const Array& array = arrays_[i];
    if (array.bytes == nullptr) {
      inputs[i].assign(static_cast<size_t>(array.sample_elements), 0);
      continue;
    }
    const int64_t sample_bytes = array.sample_elements * SizeOf(array.dtype);
    bytes.resize(static_cast<size_t>(sample_bytes));
    RETURN_IF_ERROR(array.bytes->Read(array.offset + index * sample_bytes,
                                      absl::MakeSpan(bytes.data(), bytes.size())));
    inputs[i].resize(static_cast<size_t>(array.sample_elements));
    ConvertFrom(array.dtype, bytes.data(), inputs[i]);
    for (const float value : inputs[i]) {
      if (std::isfinite(value)) continue;
      return absl::InvalidArgumentError(absl::StrCat(Printable(array.name), ": sample ", index,
                                                     " holds a value that is not finite"));
    }
  }
  return absl::OkStatus();
}

void SampleSet::SetSamples(size_t input, const std::string& name, absl::Span<const float> values) {
  Array& array = arrays_[input];
  NPUC_CHECK(static_cast<int64_t>(values.size()) == size_ * array.sample_elements);
  array.name = name;
  array.dtype = DType::kFloat32;
  array.offset = 0;
  array.bytes = std::make_shared<OwnedSource>(
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

absl::StatusOr<std::vector<double>> ReadNumbers(absl::string_view npy) {
  ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(npy));
  const int64_t count = array.element_count();
  const bool one_each = array.shape.size() == 1 || (array.shape.size() == 2 && array.shape[1] == 1);
  if (!one_each || count < 1 || count > SampleSet::kMaxSamples) {
    return absl::InvalidArgumentError(absl::StrCat("an array of shape ", ShapeToString(array.shape),
                                                   " is not one number a sample"));
  }
  std::vector<float> values(static_cast<size_t>(count));
  ConvertFrom(array.dtype, array.bytes.data(), values);
  return std::vector<double>(values.begin(), values.end());
}

}  // namespace npuc
