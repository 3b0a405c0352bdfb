// Tensors of an archive as the IR's dense ones.
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/archive.h"

namespace npuc::pt {
namespace {

static_assert(std::endian::native == std::endian::little, "storages are copied as they are");

// Whether the elements lie in the storage as the IR wants them: row-major, without gaps.
bool IsContiguous(const PyTensor& tensor) {
  int64_t expected = 1;
  for (size_t i = tensor.sizes.size(); i-- > 0;) {
    if (tensor.sizes[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.sizes[i];
  }
  return true;
}

// The `count` elements in row-major order. The unpickler checked that all lie in `storage`.
std::vector<uint8_t> Gather(const PyTensor& tensor, absl::string_view storage, size_t size,
                            size_t count) {
  if (count == 0) return {};
  const uint8_t* const base = reinterpret_cast<const uint8_t*>(storage.data()) +
                              static_cast<size_t>(tensor.storage_offset) * size;
  if (IsContiguous(tensor)) return {base, base + count * size};
  std::vector<uint8_t> out(count * size);
  const size_t rank = tensor.sizes.size();
  std::vector<int64_t> index(rank, 0);
  int64_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(out.data() + i * size, base + static_cast<size_t>(at) * size, size);
    for (size_t d = rank; d-- > 0;) {
      at += tensor.strides[d];
      if (++index[d] < tensor.sizes[d]) break;
      at -= tensor.strides[d] * tensor.sizes[d];
      index[d] = 0;
    }
  }
  return out;
}

void SwapBytes(std::vector<uint8_t>& bytes, size_t size) {
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    for (size_t i = 0; i < size / 2; ++i) std::swap(bytes[at + i], bytes[at + size - 1 - i]);
  }
}

std::vector<uint8_t> WidenBFloat16(const std::vector<uint8_t>& bytes) {
  std::vector<uint8_t> wide(bytes.size() * 2, 0);
  for (size_t i = 0; i < bytes.size() / 2; ++i) {
    wide[4 * i + 2] = bytes[2 * i];
    wide[4 * i + 3] = bytes[2 * i + 1];
  }
  return wide;
}

}  // namespace

absl::StatusOr<Tensor> MaterializeTensor(const TorchArchive& archive, PyId id, int64_t max_bytes) {
  const PyTensor& tensor = archive.values.tensor(id);
  TensorType type{DTypeOf(tensor.type), tensor.sizes};
  if (type.dtype == DType::kInvalid) {
    return absl::UnimplementedError(
        absl::StrCat("tensor has type ", NameOf(tensor.type),
                     "; allowed are floating-point, integer and bool tensors"));
  }
  RETURN_IF_ERROR(CheckShape(type.shape));
  if (type.size_bytes() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("tensor of shape ", ShapeToString(type.shape), " takes ", type.size_bytes(),
                     " bytes; the constants of one model may take ", max_bytes, " more"));
  }
  const auto size = static_cast<size_t>(SizeOf(tensor.type));
  std::vector<uint8_t> bytes =
      Gather(tensor, archive.storage_bytes[static_cast<size_t>(tensor.storage)].bytes, size,
             static_cast<size_t>(type.element_count()));
  if (archive.big_endian) SwapBytes(bytes, size);
  if (tensor.type == ScalarType::kBFloat16) bytes = WidenBFloat16(bytes);
  if (tensor.type == ScalarType::kBool) {
    for (uint8_t& byte : bytes) byte = byte != 0 ? 1 : 0;
  }
  return Tensor(std::move(type), std::move(bytes));
}

}  // namespace npuc::pt
