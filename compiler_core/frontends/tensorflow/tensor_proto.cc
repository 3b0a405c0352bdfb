#include "compiler_core/frontends/tensorflow/tensor_proto.h"

#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensor_content is little-endian and is copied as it is");

// The value lists of a TensorProto, by name, for the message about a list of the wrong type.
std::string NonEmptyLists(const fe::tf::TensorProto& proto) {
  std::string names;
  const auto add = [&](const char* name, int size) {
    if (size > 0) absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  };
  add("float_val", proto.float_val_size());
  add("double_val", proto.double_val_size());
  add("int_val", proto.int_val_size());
  add("string_val", proto.string_val_size());
  add("scomplex_val", proto.scomplex_val_size());
  add("int64_val", proto.int64_val_size());
  add("bool_val", proto.bool_val_size());
  add("dcomplex_val", proto.dcomplex_val_size());
  add("half_val", proto.half_val_size());
  add("uint32_val", proto.uint32_val_size());
  add("uint64_val", proto.uint64_val_size());
  return names;
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Fills `count` elements of type T from a value list whose last value repeats.
template <typename T, typename List, typename Convert>
absl::StatusOr<std::vector<uint8_t>> FromList(const fe::tf::TensorProto& proto, const List& list,
                                              const char* list_name, int64_t count,
                                              Convert convert) {
  if (list.size() > count) {
    return absl::InvalidArgumentError(absl::StrCat("tensor has ", list.size(), " values in ",
                                                   list_name, " for ", count, " elements"));
  }
  if (list.size() == 0) {
    const std::string others = NonEmptyLists(proto);
    if (!others.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor of type ", DataTypeName(proto.dtype()),
                                                     " has its values in ", others, ", not in ",
                                                     list_name));
    }
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(count) * sizeof(T));
  T last{};
  for (int64_t i = 0; i < count; ++i) {
    if (i < list.size()) last = convert(list.Get(static_cast<int>(i)));
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &last, sizeof(T));
  }
  return bytes;
}

template <typename T, typename List>
absl::StatusOr<std::vector<uint8_t>> FromList(const fe::tf::TensorProto& proto, const List& list,
                                              const char* list_name, int64_t count) {
  return FromList<T>(proto, list, list_name, count, [](auto v) { return static_cast<T>(v); });
}

absl::StatusOr<std::vector<uint8_t>> FromLists(const fe::tf::TensorProto& p, int64_t n) {
  switch (p.dtype()) {
    case fe::tf::DT_FLOAT:
      return FromList<float>(p, p.float_val(), "float_val", n);
    case fe::tf::DT_DOUBLE:
      return FromList<double>(p, p.double_val(), "double_val", n);
    case fe::tf::DT_HALF:
      return FromList<uint16_t>(p, p.half_val(), "half_val", n);
    case fe::tf::DT_BFLOAT16:
      return FromList<float>(p, p.half_val(), "half_val", n,
                             [](int32_t v) { return BFloat16ToFloat(static_cast<uint16_t>(v)); });
    case fe::tf::DT_INT8:
      return FromList<int8_t>(p, p.int_val(), "int_val", n);
    case fe::tf::DT_UINT8:
      return FromList<uint8_t>(p, p.int_val(), "int_val", n);
    case fe::tf::DT_INT16:
      return FromList<int16_t>(p, p.int_val(), "int_val", n);
    case fe::tf::DT_UINT16:
      return FromList<uint16_t>(p, p.int_val(), "int_val", n);
    case fe::tf::DT_INT32:
      return FromList<int32_t>(p, p.int_val(), "int_val", n);
    case fe::tf::DT_INT64:
      return FromList<int64_t>(p, p.int64_val(), "int64_val", n);
    case fe::tf::DT_UINT32:
      return FromList<uint32_t>(p, p.uint32_val(), "uint32_val", n);
    case fe::tf::DT_BOOL:
      return FromList<uint8_t>(p, p.bool_val(), "bool_val", n,
                               [](bool v) { return static_cast<uint8_t>(v ? 1 : 0); });
    case fe::tf::DT_UINT64:
      // The IR has no u64; values that fit become i64.
      for (uint64_t value : p.uint64_val()) {
        if (value > static_cast<uint64_t>(INT64_MAX)) {
          return absl::InvalidArgumentError(
              absl::StrCat("tensor holds the 64-bit value ", value, ", above 2^63 - 1"));
        }
      }
      return FromList<int64_t>(p, p.uint64_val(), "uint64_val", n);
    default:
      return absl::UnimplementedError(
          absl::StrCat("tensor has type ", DataTypeName(p.dtype()), ", which has no value here"));
  }
}

absl::StatusOr<std::vector<uint8_t>> FromContent(const fe::tf::TensorProto& proto, DType dtype,
                                                 int64_t count) {
  const std::string& content = proto.tensor_content();
  const bool is_bfloat16 = proto.dtype() == fe::tf::DT_BFLOAT16;
  const int64_t wanted = count * (is_bfloat16 ? 2 : SizeOf(dtype));
  if (static_cast<int64_t>(content.size()) != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("tensor_content has ", content.size(),
                                                   " bytes, but ", count, " elements of ",
                                                   DataTypeName(proto.dtype()), " need ", wanted));
  }
  std::vector<uint8_t> bytes;
  if (is_bfloat16) {
    bytes.resize(static_cast<size_t>(count) * sizeof(float));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, content.data() + 2 * i, 2);
      const float value = BFloat16ToFloat(bits);
      std::memcpy(bytes.data() + 4 * i, &value, 4);
    }
    return bytes;
  }
  bytes.assign(content.begin(), content.end());
  if (dtype == DType::kBool) {
    for (uint8_t& byte : bytes) byte = byte != 0 ? 1 : 0;
  }
  if (proto.dtype() == fe::tf::DT_UINT64) {
    for (size_t i = 7; i < bytes.size(); i += 8) {
      if ((bytes[i] & 0x80) != 0) {
        return absl::InvalidArgumentError("tensor holds a 64-bit value above 2^63 - 1");
      }
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<Tensor> DecodeTensor(const fe::tf::TensorProto& proto, int64_t max_bytes) {
  const DType dtype = DTypeFromWire(proto.dtype());
  if (dtype == DType::kInvalid) {
    return absl::UnimplementedError(
        absl::StrCat("tensor has type ", DataTypeName(proto.dtype()),
                     "; allowed are floating-point, integer and bool tensors"));
  }
  if (proto.tensor_shape().unknown_rank()) {
    return absl::InvalidArgumentError("tensor's shape has an unknown rank");
  }
  if (proto.tensor_shape().dim_size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat("tensor has ", proto.tensor_shape().dim_size(),
                                                   " dimensions; allowed are at most ", kMaxRank));
  }
  TensorType type{dtype, {}};
  for (const auto& dim : proto.tensor_shape().dim()) type.shape.push_back(dim.size());
  RETURN_IF_ERROR(CheckShape(type.shape));
  if (type.size_bytes() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tensor of shape ", ShapeToString(type.shape), " takes ", type.size_bytes(),
                     " bytes; the constants of one model may take ", max_bytes, " more"));
  }
  const int64_t count = type.element_count();
  if (!proto.tensor_content().empty()) {
    ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, FromContent(proto, dtype, count));
    return Tensor(std::move(type), std::move(bytes));
  }
  ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, FromLists(proto, count));
  return Tensor(std::move(type), std::move(bytes));
}

}  // namespace npuc::tf
