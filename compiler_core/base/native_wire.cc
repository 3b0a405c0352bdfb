#include "compiler_core/base/native_wire.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr uint32_t kOrderMagic = 0x314f504e;
constexpr uint32_t kAnswerMagic = 0x3141504e;
constexpr uint32_t kMaxWireList =
    1024;  // of calls, operands, attributes, results and their numbers
constexpr size_t kMaxWireTextBytes = 4096;

class WireWriter {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Count(size_t count) { Number(static_cast<uint32_t>(count)); }
  void Text(absl::string_view text) {
    Number(static_cast<uint64_t>(text.size()));
    bytes_.append(text.data(), text.size());
  }
  void Tensor(const NativeTensor& tensor) {
    Count(tensor.shape.size());
    for (const int64_t dim : tensor.shape) Number(dim);
    bytes_.append(reinterpret_cast<const char*>(tensor.values.data()),
                  tensor.values.size() * sizeof(float));
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : left_(bytes) {}
  bool at_end() const { return left_.empty(); }

  template <typename T>
  absl::StatusOr<T> Number() {
    T value;
    if (left_.size() < sizeof(value)) return CutShort();
    std::memcpy(&value, left_.data(), sizeof(value));
    left_.remove_prefix(sizeof(value));
    return value;
  }
  // At most kMaxWireList.
  absl::StatusOr<uint32_t> Count() {
    ASSIGN_OR_RETURN(const uint32_t count, Number<uint32_t>());
    if (count > kMaxWireList) return absl::InvalidArgumentError("it wrote a list that is too long");
    return count;
  }
  absl::StatusOr<std::string> Text(size_t most) {
    ASSIGN_OR_RETURN(const uint64_t size, Number<uint64_t>());
    if (size > most || size > left_.size()) return CutShort();
    std::string text(left_.substr(0, static_cast<size_t>(size)));
    left_.remove_prefix(static_cast<size_t>(size));
    return text;
  }
  absl::StatusOr<NativeTensor> Tensor() {
    NativeTensor tensor;
    ASSIGN_OR_RETURN(const uint32_t rank, Count());
    if (rank > kMaxNativeRank) return absl::InvalidArgumentError("it wrote a shape of many axes");
    for (uint32_t i = 0; i < rank; ++i) {
      ASSIGN_OR_RETURN(const int64_t dim, Number<int64_t>());
      tensor.shape.push_back(dim);
    }
    ASSIGN_OR_RETURN(const int64_t count, NativeElementCount(tensor.shape));
    const size_t bytes = static_cast<size_t>(count) * sizeof(float);
    if (bytes > left_.size()) return CutShort();
    tensor.values.resize(static_cast<size_t>(count));
    std::memcpy(tensor.values.data(), left_.data(), bytes);
    left_.remove_prefix(bytes);
    return tensor;
  }

 private:
  static absl::Status CutShort() {
    return absl::InvalidArgumentError("it wrote over its process's answer, which is cut short");
  }
  absl::string_view left_;
};

}  // namespace

absl::StatusOr<int64_t> NativeElementCount(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  bool fits = shape.size() <= kMaxNativeRank;
  for (const int64_t dim : shape) {
    fits = fits && dim >= 1 && dim <= kMaxNativeElements / count;
    if (!fits) break;
    count *= dim;
  }
  if (fits) return count;
  return absl::InvalidArgumentError(
      absl::StrCat("[", absl::StrJoin(shape, ","), "] is a shape of more than ", kMaxNativeRank,
                   " axes, of an axis below 1, or of more than ", kMaxNativeElements, " elements"));
}

std::string EncodeNativeOrder(absl::string_view library, absl::Span<const NativeCall> calls) {
  WireWriter out;
  out.Number(kOrderMagic);
  out.Text(library);
  out.Count(calls.size());
  for (const NativeCall& call : calls) {
    out.Text(call.op);
    out.Count(call.result_count);
    out.Count(call.attributes.size());
    for (const NativeAttribute& attribute : call.attributes) {
      out.Text(attribute.name);
      out.Number(static_cast<uint32_t>(attribute.type));
      out.Count(attribute.numbers.size());
      for (const double number : attribute.numbers) out.Number(number);
    }
    out.Count(call.operands.size());
    for (const NativeTensor& operand : call.operands) out.Tensor(operand);
  }
  return out.Take();
}

absl::StatusOr<NativeOrder> DecodeNativeOrder(absl::string_view bytes) {
  WireReader in(bytes);
  NativeOrder order;
  ASSIGN_OR_RETURN(const uint32_t magic, in.Number<uint32_t>());
  if (magic != kOrderMagic) return absl::InvalidArgumentError("no order of this build");
  ASSIGN_OR_RETURN(order.library, in.Text(kMaxNativeLibraryBytes));
  ASSIGN_OR_RETURN(const uint32_t calls, in.Count());
  for (uint32_t i = 0; i < calls; ++i) {
    NativeCall call;
    ASSIGN_OR_RETURN(call.op, in.Text(kMaxWireTextBytes));
    ASSIGN_OR_RETURN(call.result_count, in.Count());
    ASSIGN_OR_RETURN(const uint32_t attributes, in.Count());
    for (uint32_t k = 0; k < attributes; ++k) {
      NativeAttribute attribute;
      ASSIGN_OR_RETURN(attribute.name, in.Text(kMaxWireTextBytes));
      ASSIGN_OR_RETURN(const uint32_t type, in.Number<uint32_t>());
      if (type > static_cast<uint32_t>(NativeAttribute::Type::kFloats)) {
        return absl::InvalidArgumentError("an attribute of no type");
      }
      attribute.type = static_cast<NativeAttribute::Type>(type);
      ASSIGN_OR_RETURN(const uint32_t numbers, in.Count());
      for (uint32_t n = 0; n < numbers; ++n) {
        ASSIGN_OR_RETURN(const double number, in.Number<double>());
        attribute.numbers.push_back(number);
      }
      call.attributes.push_back(std::move(attribute));
    }
    ASSIGN_OR_RETURN(const uint32_t operands, in.Count());
    for (uint32_t k = 0; k < operands; ++k) {
      ASSIGN_OR_RETURN(NativeTensor operand, in.Tensor());
      call.operands.push_back(std::move(operand));
    }
    order.calls.push_back(std::move(call));
  }
  if (!in.at_end()) return absl::InvalidArgumentError("bytes behind the order");
  return order;
}

std::string EncodeNativeOutcome(const NativeOutcome& outcome) {
  WireWriter out;
  out.Number(static_cast<uint32_t>(outcome.kind));
  out.Number(outcome.detail);
  out.Number(static_cast<uint32_t>(outcome.stage));
  return out.Take() + outcome.payload;
}

absl::StatusOr<NativeOutcome> DecodeNativeOutcome(std::string bytes) {
  constexpr size_t kHeaderBytes = 12;
  WireReader in(bytes);
  NativeOutcome outcome;
  ASSIGN_OR_RETURN(const uint32_t kind, in.Number<uint32_t>());
  ASSIGN_OR_RETURN(outcome.detail, in.Number<int32_t>());
  ASSIGN_OR_RETURN(const uint32_t stage, in.Number<uint32_t>());
  if (kind > static_cast<uint32_t>(NativeOutcome::Kind::kNoWalls) ||
      stage > static_cast<uint32_t>(NativeOutcome::Stage::kEnd)) {
    return absl::InvalidArgumentError("an outcome of no kind");
  }
  outcome.kind = static_cast<NativeOutcome::Kind>(kind);
  outcome.stage = static_cast<NativeOutcome::Stage>(stage);
  bytes.erase(0, kHeaderBytes);
  outcome.payload = std::move(bytes);
  return outcome;
}

std::string EncodeNativeAnswer(const NativeAnswer& answer) {
  WireWriter out;
  out.Number(kAnswerMagic);
  out.Text(absl::string_view(answer.problem).substr(0, kMaxWireTextBytes));
  for (const std::vector<NativeTensor>& results : answer.results) {
    for (const NativeTensor& result : results) out.Tensor(result);
  }
  return out.Take();
}

absl::StatusOr<NativeAnswer> DecodeNativeAnswer(absl::string_view bytes,
                                                absl::Span<const NativeCall> calls) {
  WireReader in(bytes);
  NativeAnswer answer;
  ASSIGN_OR_RETURN(const uint32_t magic, in.Number<uint32_t>());
  if (magic != kAnswerMagic) {
    return absl::InvalidArgumentError("it wrote over its process's answer");
  }
  ASSIGN_OR_RETURN(answer.problem, in.Text(kMaxWireTextBytes));
  if (!answer.problem.empty()) return answer;
  for (const NativeCall& call : calls) {
    std::vector<NativeTensor> results;
    for (size_t i = 0; i < call.result_count; ++i) {
      ASSIGN_OR_RETURN(NativeTensor result, in.Tensor());
      results.push_back(std::move(result));
    }
    answer.results.push_back(std::move(results));
  }
  if (!in.at_end()) return absl::InvalidArgumentError("it wrote behind its process's answer");
  return answer;
}

}  // namespace npuc
