#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_CUSTOM_OPTIONS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_CUSTOM_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::fe::tflite {
struct Operator;
}

namespace npuc::tflite {

// The options of a custom operator as most converters write them, a map of FlexBuffers. An
// attribute that is not there is NOT_FOUND, as every one is of options in another form; one of
// another kind is INVALID_ARGUMENT.
class CustomOptions {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 16;
  static constexpr size_t kMaxListEntries = size_t{1} << 12;

  // The operator outlives it. One that is built in has no such options.
  explicit CustomOptions(const fe::tflite::Operator& op);

  absl::StatusOr<bool> Bool(absl::string_view name) const;
  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<double> Float(absl::string_view name) const;  // integers count as such
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name) const;
  absl::StatusOr<std::vector<double>> Floats(absl::string_view name) const;

 private:
  absl::string_view bytes_;  // empty: no map
};

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_CUSTOM_OPTIONS_H_
