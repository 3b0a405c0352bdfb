#ifndef NPUC_COMPILER_CORE_IR_GRAPH_TYPES_H_
#define NPUC_COMPILER_CORE_IR_GRAPH_TYPES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/strong_int.h"

namespace npuc {

enum class DType : uint8_t {
  kInvalid,
  kFloat16,
  kFloat32,
  kFloat64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kBool,
};
int64_t SizeOf(DType dtype);                  // bytes of an element; kInvalid: 0
absl::string_view NameOf(DType dtype);        // "f32", "i8", "bool" ...
DType DTypeFromName(absl::string_view name);  // kInvalid where unknown
bool IsFloat(DType dtype);
bool IsInteger(DType dtype);  // bool excluded

// Limits on what a model may declare; larger is a diagnostic, never an allocation.
inline constexpr int kMaxRank = 8;
inline constexpr int64_t kMaxElements = int64_t{1} << 28;

// A static shape: dims.size() <= kMaxRank, each dim >= 0, product <= kMaxElements where a zero
// dimension counts as one (so strides are bounded too). No dims: a scalar.
using Shape = std::vector<int64_t>;
int64_t ElementCount(absl::Span<const int64_t> shape);
// INVALID_ARGUMENT naming the limit, where the shape is out of the bounds above.
absl::Status CheckShape(absl::Span<const int64_t> shape);
std::string ShapeToString(absl::Span<const int64_t> shape);  // "[1,784]"

struct TensorType {
  DType dtype = DType::kInvalid;
  Shape shape;
  int64_t element_count() const { return ElementCount(shape); }
  int64_t size_bytes() const { return element_count() * SizeOf(dtype); }
  bool operator==(const TensorType&) const = default;
};
std::string TypeToString(const TensorType& type);  // "f32[1,784]"

// A constant: row-major, little-endian elements. Copies share the bytes, which never change after
// construction. bool is one byte, 0 or 1.
class Tensor {
 public:
  Tensor() = default;
  // bytes.size() must equal type.size_bytes() (CHECKed).
  Tensor(TensorType type, std::vector<uint8_t> bytes);
  static Tensor FromFloats(Shape shape, absl::Span<const float> values);  // f32
  static Tensor FromInts(Shape shape, absl::Span<const int64_t> values);  // i64
  static Tensor ScalarFloat(float value);
  static Tensor Zeros(const TensorType& type);
  // The same bytes, shared, under another shape of as many elements (CHECKed).
  Tensor WithShape(Shape shape) const;

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  int64_t element_count() const { return type_.element_count(); }
  absl::Span<const uint8_t> bytes() const;
  // T must fit dtype (CHECKed): float for f32, int32_t for i32, uint16_t for f16 and u16 ...
  template <typename T>
  absl::Span<const T> as() const;
  // The element at flat index i, converted. f16 is decoded.
  double at(int64_t i) const;
  int64_t int_at(int64_t i) const;
  std::vector<float> ToFloats() const;         // every element as float
  bool operator==(const Tensor& other) const;  // type and bytes
  // Of the bytes; found once for all tensors that share them. Good within one process only.
  // Thread-safe.
  uint64_t ContentHash() const;

 private:
  struct Shared;
  TensorType type_;
  std::shared_ptr<const Shared> shared_;
};

// Converts as TensorFlow's Cast does: float to integer truncates towards zero (out of range is
// clamped here, undefined there), to bool is != 0.
Tensor CastTensor(const Tensor& tensor, DType to);

using NodeId = StrongInt<struct NodeIdTag>;
using ValueId = StrongInt<struct ValueIdTag>;

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_GRAPH_TYPES_H_
