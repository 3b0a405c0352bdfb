#ifndef NPUC_COMPILER_CORE_EMIT_HEADER_WRITER_H_
#define NPUC_COMPILER_CORE_EMIT_HEADER_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"

namespace npuc {

// The C header of a compiled model, byte for byte as the vendor's compiler (1.5.5 and later) lays
// it out: deployment scripts parse it by its lines. Source: the published headers.
// in_out holds the inputs, then the outputs that are no states (PortTensor::state_input < 0).
// Of the integer cores (this project's own, in the same spirit): `npu_core` in place of `npu_unit`;
// no npu_data_t, members are of C's integer types; before the structs, for each input and output
// NAME, INPUT_NAME_SCALE and INPUT_NAME_ZERO_POINT (OUTPUT_ ...), where real value = (stored -
// zero point) * scale; no tmp_content or ops_content.
// Errors: the status of the diagnostics that are added, where two names of a struct become the
// same C identifier.
absl::StatusOr<std::string> WriteCHeader(const CompiledModel& model, Diagnostics& diagnostics);

// The same text in pieces, which can be made in any order and by several threads at once, for those
// who do not want all of it in memory. The model must outlive it; its MD5 need not be known yet.
class CHeaderText {
 public:
  // model.model_md5: as long as the MD5 will be. Errors: as WriteCHeader's.
  static absl::StatusOr<CHeaderText> Make(const CompiledModel& model, Diagnostics& diagnostics);
  // The text is its head, which names the model's MD5, and its body.
  size_t head_bytes() const { return head_bytes_; }
  size_t size_bytes() const { return size_bytes_; }
  std::string Head(absl::string_view model_md5) const;
  // Bytes [begin, end) of the whole text, none of them of the head. A view into `room`, which is
  // made large enough.
  absl::string_view Body(size_t begin, size_t end, std::vector<char>& room) const;

 private:
  // Text, and behind it the lines of an array.
  struct Part {
    size_t begin = 0;
    std::string text;
    absl::Span<const uint8_t> values;
  };
  explicit CHeaderText(const CompiledModel* model) : model_(model) {}
  void Add(std::string text, absl::Span<const uint8_t> values);

  const CompiledModel* model_;
  std::string structs_;
  size_t head_bytes_ = 0;
  size_t size_bytes_ = 0;
  std::vector<Part> parts_;
};

// `name` as a C identifier: every byte outside [A-Za-z0-9_] becomes '_', a leading digit gets one
// before it, a C or C++ keyword one behind it; "" becomes "_".
std::string CIdentifier(absl::string_view name);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_HEADER_WRITER_H_
