#include "compiler_core/frontends/caffe/blob.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/wire.h"

namespace npuc::caffe {
namespace {

// Fields of BlobProto.
constexpr uint32_t kNum = 1;
constexpr uint32_t kWidth = 4;
constexpr uint32_t kData = 5;
constexpr uint32_t kDiff = 6;
constexpr uint32_t kShape = 7;
constexpr uint32_t kDoubleData = 8;
constexpr uint32_t kDoubleDiff = 9;

absl::Status Damaged() { return absl::InvalidArgumentError("it is cut short, or damaged"); }

// The field `dim` of a BlobShape, packed or not.
absl::Status ReadShape(absl::string_view bytes, std::vector<int64_t>* dims) {
  WireReader reader(bytes);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.Next(&field)) return Damaged();
    if (field.number != 1) continue;
    WireReader packed(field.bytes);
    while (field.type == WireField::Type::kBytes && !packed.AtEnd()) {
      if (!packed.Varint(&field.varint)) return Damaged();
      dims->push_back(static_cast<int64_t>(field.varint));
      if (dims->size() > kMaxRank) break;
    }
    if (field.type == WireField::Type::kVarint) {
      dims->push_back(static_cast<int64_t>(field.varint));
    }
    if (dims->size() > kMaxRank) {
      return absl::InvalidArgumentError(absl::StrCat("it has more than ", kMaxRank, " dimensions"));
    }
  }
  return absl::OkStatus();
}

// Appends the numbers of one field, of which all have one size.
absl::Status AppendNumbers(const WireField& field, bool is_double, int64_t max_bytes,
                           std::vector<float>& floats) {
  const size_t size = is_double ? sizeof(double) : sizeof(float);
  if (field.type == WireField::Type::kVarint || field.bytes.size() % size != 0) return Damaged();
  const size_t count = field.bytes.size() / size;
  if (floats.size() + count >
      static_cast<size_t>(std::max<int64_t>(max_bytes, 0)) / sizeof(float)) {
    return absl::ResourceExhaustedError("the constants of the model take too many bytes");
  }
  if (floats.size() + count > floats.capacity()) {
    floats.reserve(std::max(floats.size() + count, 2 * floats.capacity()));
  }
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view at = field.bytes.substr(i * size, size);
    floats.push_back(is_double ? static_cast<float>(DoubleAt(at)) : FloatAt(at));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> BlobDims(absl::string_view bytes) {
  std::array<int64_t, 4> legacy = {0, 0, 0, 0};
  bool has_legacy = false;
  std::optional<std::vector<int64_t>> dims;
  WireReader reader(bytes);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.Next(&field)) return Damaged();
    if (field.number >= kNum && field.number <= kWidth && field.type == WireField::Type::kVarint) {
      legacy[field.number - kNum] = static_cast<int64_t>(field.varint);
      has_legacy = true;
    } else if (field.number == kShape && field.type == WireField::Type::kBytes) {
      dims.emplace();
      RETURN_IF_ERROR(ReadShape(field.bytes, &*dims));
    }
  }
  if (!dims.has_value()) {
    if (!has_legacy) return absl::InvalidArgumentError("it states no shape");
    dims.emplace(legacy.begin(), legacy.end());
  }
  RETURN_IF_ERROR(CheckShape(*dims));
  return *std::move(dims);
}

absl::StatusOr<Tensor> DecodeBlob(absl::string_view bytes, int64_t max_bytes) {
  ASSIGN_OR_RETURN(std::vector<int64_t> dims, BlobDims(bytes));
  std::vector<float> floats;
  bool has_other_data = false;
  WireReader reader(bytes);
  WireField field;
  while (!reader.AtEnd()) {
    if (!reader.Next(&field)) return Damaged();
    if (field.number == kData || field.number == kDoubleData) {
      RETURN_IF_ERROR(AppendNumbers(field, field.number == kDoubleData, max_bytes, floats));
    }
    has_other_data |=
        field.number > kShape && field.number != kDoubleData && field.number != kDoubleDiff;
  }
  static_assert(kDiff < kShape);
  const int64_t wanted = ElementCount(dims);
  if (floats.empty() && wanted > 0 && has_other_data) {
    return absl::InvalidArgumentError(
        "its data are of a form that only a fork of Caffe has (float16 or raw bytes)");
  }
  if (static_cast<int64_t>(floats.size()) != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it holds ", floats.size(), " numbers, and its shape is ", ShapeToString(dims)));
  }
  return Tensor::FromFloats(std::move(dims), floats);
}

}  // namespace npuc::caffe
