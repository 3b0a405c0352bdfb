#ifndef NPUC_COMPILER_CORE_BASE_NATIVE_WIRE_H_
#define NPUC_COMPILER_CORE_BASE_NATIVE_WIRE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/native_operators.h"

namespace npuc {

// The messages between npuc and npuc-operator (server/native), as bytes in the machine's order:
// both programs run on one machine and belong to one build. npuc sends an order, a library and
// calls; npuc-operator answers with an outcome. Its payload comes from the process that has loaded
// the library, and is hostile: decoders refuse bytes that are cut short, sizes above the limits and
// shapes out of bounds, and take memory only for bytes that are there.

inline constexpr int kMaxNativeRank = 8;

struct NativeOrder {
  std::string library;  // the bytes of the file
  std::vector<NativeCall> calls;
};
std::string EncodeNativeOrder(absl::string_view library, absl::Span<const NativeCall> calls);
// INVALID_ARGUMENT for bytes that EncodeNativeOrder does not make.
absl::StatusOr<NativeOrder> DecodeNativeOrder(absl::string_view bytes);

// The end of the process with the library.
struct NativeOutcome {
  enum class Kind : uint32_t {
    kAnswered,  // it wrote a payload and ended by itself
    kSignal,    // detail: the signal
    kExit,      // it ended with an exit code of the library's own: detail
    kTooLong,   // its time by the clock was over
    kTooMuch,   // it wrote more than kMaxNativeBytes
    kNoWalls,   // the host has no sandbox; the payload says what is missing
  };
  enum class Stage : uint32_t { kLoad, kShapes, kCompute, kEnd };
  Kind kind = Kind::kAnswered;
  int32_t detail = 0;
  Stage stage = Stage::kLoad;
  std::string payload;
};
std::string EncodeNativeOutcome(const NativeOutcome& outcome);
// INVALID_ARGUMENT for a header that is cut short or has a value that this build does not know.
absl::StatusOr<NativeOutcome> DecodeNativeOutcome(std::string bytes);

// The payload of an outcome: the results of all calls, or the reason why there are none.
struct NativeAnswer {
  std::string problem;  // a clause whose subject is the library; empty: none
  std::vector<std::vector<NativeTensor>> results;
};
std::string EncodeNativeAnswer(const NativeAnswer& answer);
// `calls` says how many results there must be. INVALID_ARGUMENT: a clause whose subject is the
// library.
absl::StatusOr<NativeAnswer> DecodeNativeAnswer(absl::string_view bytes,
                                                absl::Span<const NativeCall> calls);

// The number of elements, or INVALID_ARGUMENT where the rank is above kMaxNativeRank, a dimension
// below 1 or the number above kMaxNativeElements.
absl::StatusOr<int64_t> NativeElementCount(absl::Span<const int64_t> shape);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_NATIVE_WIRE_H_
