#ifndef NPUC_COMPILER_CORE_BASE_NATIVE_OPERATORS_H_
#define NPUC_COMPILER_CORE_BASE_NATIVE_OPERATORS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

// Operators that a shared library of the user's computes (client/PLUGINS.md). The compiler asks for
// values through this interface and never loads a library itself: a program that has a sandbox for
// them implements it (compiler_core/tools/native_runner.h), and the daemon's workers have none.

// Limits on what goes to a library and comes back.
inline constexpr int64_t kMaxNativeElements = int64_t{1} << 24;  // of one tensor
inline constexpr int64_t kMaxNativeBytes = int64_t{1} << 28;     // of all tensors of one Run
inline constexpr size_t kMaxNativeLibraryBytes = size_t{1} << 26;

// Row-major; values.size() is the product of the shape, which has at most 8 axes of at least 1.
struct NativeTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

struct NativeAttribute {
  // The numbers are those of enum NPUC_BOOL ... of client/operator/npuc_operator.h.
  enum class Type : uint8_t { kBool = 0, kInt = 1, kFloat = 2, kInts = 3, kFloats = 4 };
  std::string name;
  Type type = Type::kFloat;
  std::vector<double> numbers;
};

struct NativeCall {
  std::string op;
  std::vector<NativeAttribute> attributes;
  std::vector<NativeTensor> operands;
  size_t result_count = 1;
};

// One library of a user's. Thread-safe.
class NativeLibrary {
 public:
  virtual ~NativeLibrary() = default;
  // The results of each call. Equal calls give equal bytes: a library for which that is not so is
  // an error. Values may be NaN or infinite. FAILED_PRECONDITION: libraries cannot be run here, and
  // why; INVALID_ARGUMENT: the library's fault, as a clause whose subject is the library ("it ended
  // by signal 11 (SIGSEGV)").
  virtual absl::StatusOr<std::vector<std::vector<NativeTensor>>> Run(
      absl::Span<const NativeCall> calls) const = 0;
};

class NativeOperators {
 public:
  virtual ~NativeOperators() = default;
  // The library at `path`, seen from the folder of `plugin_file`, a file of PLUGINS by its name in
  // the config. Reads it and runs nothing. An error says why it cannot be read.
  virtual absl::StatusOr<std::shared_ptr<const NativeLibrary>> Open(absl::string_view plugin_file,
                                                                    absl::string_view path) = 0;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_NATIVE_OPERATORS_H_
