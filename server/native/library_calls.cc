#include "server/native/library_calls.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/operator/npuc_operator.h"
#include "compiler_core/base/status.h"

namespace npuc::native {
namespace {

using Stage = NativeOutcome::Stage;

constexpr size_t kPageBytes = 4096;
constexpr uint32_t kErrorBytes = 512;
constexpr unsigned char kCanary = 0xa5;

// Floats between two pages that nobody may touch. The last float ends at the second one; the bytes
// between the first page and the first float hold a pattern.
class GuardedFloats {
 public:
  explicit GuardedFloats(size_t count) : count_(count) {
    const size_t bytes = count * sizeof(float);
    const size_t pages = (bytes + kPageBytes - 1) / kPageBytes;
    size_ = (pages + 2) * kPageBytes;
    void* const memory =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<unsigned char*>(memory);
    slack_ = pages * kPageBytes - bytes;
    std::memset(memory_ + kPageBytes, kCanary, slack_);
    const bool is_guarded = mprotect(memory_, kPageBytes, PROT_NONE) == 0 &&
                            mprotect(memory_ + size_ - kPageBytes, kPageBytes, PROT_NONE) == 0;
    if (is_guarded) floats_ = reinterpret_cast<float*>(memory_ + kPageBytes + slack_);
  }
  GuardedFloats(GuardedFloats&& other) noexcept
      : count_(other.count_),
        size_(other.size_),
        slack_(other.slack_),
        memory_(std::exchange(other.memory_, nullptr)),
        floats_(std::exchange(other.floats_, nullptr)) {}
  GuardedFloats& operator=(GuardedFloats&&) = delete;
  ~GuardedFloats() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }

  // Null: there is no memory.
  float* data() const { return floats_; }
  absl::Span<const float> values() const { return {floats_, count_}; }
  void Protect() { mprotect(memory_ + kPageBytes, size_ - 2 * kPageBytes, PROT_READ); }
  bool IsWhole() const {
    const unsigned char* const begin = memory_ + kPageBytes;
    return std::all_of(begin, begin + slack_, [](unsigned char c) { return c == kCanary; });
  }

 private:
  size_t count_ = 0;
  size_t size_ = 0;
  size_t slack_ = 0;
  unsigned char* memory_ = nullptr;
  float* floats_ = nullptr;
};

absl::Status Problem(absl::string_view text) { return absl::InvalidArgumentError(text); }

// A call as the library sees it.
class CCall {
 public:
  explicit CCall(const NativeCall& call) : error_(kErrorBytes, '\0') {
    for (const NativeAttribute& attribute : call.attributes) {
      ints_.emplace_back(attribute.numbers.begin(), attribute.numbers.end());
    }
    for (size_t i = 0; i < call.attributes.size(); ++i) {
      const NativeAttribute& from = call.attributes[i];
      const bool is_float =
          from.type == NativeAttribute::Type::kFloat || from.type == NativeAttribute::Type::kFloats;
      attributes_.push_back({from.name.c_str(), static_cast<uint32_t>(from.type),
                             static_cast<uint32_t>(from.numbers.size()),
                             is_float ? nullptr : ints_[i].data(),
                             is_float ? from.numbers.data() : nullptr});
    }
    for (const NativeTensor& operand : call.operands) {
      npuc_operand to = {};
      to.shape.rank = static_cast<uint32_t>(operand.shape.size());
      std::copy(operand.shape.begin(), operand.shape.end(), to.shape.dims);
      operands_.push_back(to);
    }
    call_ = {call.op.c_str(),
             static_cast<uint32_t>(attributes_.size()),
             static_cast<uint32_t>(operands_.size()),
             static_cast<uint32_t>(call.result_count),
             kErrorBytes,
             attributes_.data(),
             operands_.data(),
             error_.data()};
  }
  CCall(const CCall&) = delete;

  const npuc_call* get() const { return &call_; }
  void SetData(size_t operand, const float* data) { operands_[operand].data = data; }
  // Its own words for a call that it refused.
  absl::Status Refused(absl::string_view function) const {
    const size_t length = strnlen(error_.data(), kErrorBytes);
    return Problem(absl::StrCat(
        "it refuses the call in ", function,
        length == 0 ? "" : absl::StrCat(": ", absl::string_view(error_.data(), length))));
  }

 private:
  std::vector<std::vector<int64_t>> ints_;
  std::vector<npuc_attribute> attributes_;
  std::vector<npuc_operand> operands_;
  std::vector<char> error_;
  npuc_call call_ = {};
};

struct Functions {
  decltype(&npuc_operator_shapes) shapes = nullptr;
  decltype(&npuc_operator_compute) compute = nullptr;
};

absl::StatusOr<Functions> Load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const text = dlerror();
    absl::string_view why = text == nullptr ? "no reason" : text;
    absl::ConsumePrefix(&why, absl::StrCat(path, ": "));  // a path of the sandbox
    return Problem(absl::StrCat("it cannot be loaded: ", why));
  }
  const auto* const abi = static_cast<const uint32_t*>(dlsym(library, "npuc_operator_abi"));
  if (abi == nullptr) {
    return Problem("it has no npuc_operator_abi; write NPUC_OPERATOR_LIBRARY in its source");
  }
  if (*abi != NPUC_OPERATOR_ABI) {
    return Problem(absl::StrCat("it was compiled for version ", *abi,
                                " of npuc_operator.h; this npuc has version ", NPUC_OPERATOR_ABI));
  }
  Functions functions;
  functions.shapes =
      reinterpret_cast<decltype(functions.shapes)>(dlsym(library, "npuc_operator_shapes"));
  functions.compute =
      reinterpret_cast<decltype(functions.compute)>(dlsym(library, "npuc_operator_compute"));
  if (functions.shapes == nullptr || functions.compute == nullptr) {
    return Problem("it lacks npuc_operator_shapes or npuc_operator_compute");
  }
  return functions;
}

absl::StatusOr<std::vector<npuc_shape>> ShapesOf(const Functions& functions, const CCall& call,
                                                 size_t count) {
  std::vector<npuc_shape> shapes(count);
  if (functions.shapes(call.get(), shapes.data()) != 0) {
    return call.Refused("npuc_operator_shapes");
  }
  for (const npuc_shape& shape : shapes) {
    if (shape.rank > kMaxNativeRank) {
      return Problem(absl::StrCat("it sets a shape of ", shape.rank, " axes; at most ",
                                  kMaxNativeRank, " are allowed"));
    }
    const absl::StatusOr<int64_t> elements = NativeElementCount({shape.dims, shape.rank});
    if (!elements.ok()) {
      return Problem(absl::StrCat("it sets a shape out of bounds: ", elements.status().message()));
    }
  }
  return shapes;
}

// One run of npuc_operator_compute. Elements that the library leaves out stay NaN.
absl::StatusOr<std::vector<NativeTensor>> Compute(const Functions& functions, const CCall& call,
                                                  const std::vector<npuc_shape>& shapes) {
  std::vector<GuardedFloats> buffers;
  std::vector<npuc_result> results;
  for (const npuc_shape& shape : shapes) {
    buffers.emplace_back(static_cast<size_t>(npuc_element_count(&shape)));
    float* const data = buffers.back().data();
    if (data == nullptr) return Problem("it leaves no memory for its results");
    std::fill_n(data, buffers.back().values().size(), std::numeric_limits<float>::quiet_NaN());
    results.push_back({shape, data});
  }
  if (functions.compute(call.get(), results.data()) != 0) {
    return call.Refused("npuc_operator_compute");
  }
  std::vector<NativeTensor> values;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!buffers[i].IsWhole()) {
      return Problem(absl::StrCat("it writes in front of result ", i));
    }
    const npuc_shape& shape = shapes[i];
    values.push_back({{shape.dims, shape.dims + shape.rank},
                      {buffers[i].values().begin(), buffers[i].values().end()}});
  }
  return values;
}

bool SameBytes(const std::vector<NativeTensor>& a, const std::vector<NativeTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(a[i].values.data(), b[i].values.data(), a[i].values.size() * sizeof(float)) !=
        0) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<std::vector<NativeTensor>> CallTwice(const Functions& functions,
                                                    const NativeCall& from,
                                                    const std::function<void(Stage)>& at) {
  CCall call(from);
  at(Stage::kShapes);
  ASSIGN_OR_RETURN(const std::vector<npuc_shape> shapes,
                   ShapesOf(functions, call, from.result_count));
  std::vector<GuardedFloats> operands;
  for (size_t i = 0; i < from.operands.size(); ++i) {
    const std::vector<float>& values = from.operands[i].values;
    operands.emplace_back(values.size());
    if (operands.back().data() == nullptr) return Problem("it leaves no memory for its operands");
    std::copy(values.begin(), values.end(), operands.back().data());
    operands.back().Protect();
    call.SetData(i, operands.back().data());
  }
  at(Stage::kCompute);
  ASSIGN_OR_RETURN(std::vector<NativeTensor> results, Compute(functions, call, shapes));
  ASSIGN_OR_RETURN(const std::vector<NativeTensor> again, Compute(functions, call, shapes));
  if (SameBytes(results, again)) return results;
  return Problem("it gives two results for the same operands");
}

}  // namespace

NativeAnswer CallLibrary(const std::string& path, absl::Span<const NativeCall> calls,
                         const std::function<void(NativeOutcome::Stage)>& at) {
  NativeAnswer answer;
  at(Stage::kLoad);
  const absl::StatusOr<Functions> functions = Load(path);
  absl::Status status = functions.status();
  for (size_t i = 0; i < calls.size() && status.ok(); ++i) {
    auto results = CallTwice(*functions, calls[i], at);
    status = results.status();
    if (results.ok()) answer.results.push_back(*std::move(results));
  }
  if (!status.ok()) {
    answer.problem = std::string(status.message());
    answer.results.clear();
  }
  at(Stage::kEnd);
  return answer;
}

}  // namespace npuc::native
