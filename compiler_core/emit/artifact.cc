#include "compiler_core/emit/artifact.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace npuc {
namespace {

int64_t StructBytes(const std::vector<PortTensor>& ports) {
  int64_t bytes = 0;
  for (const PortTensor& port : ports) bytes += ElementCount(port.shape) * SizeOf(port.dtype);
  return bytes;
}

class LimitChecker {
 public:
  LimitChecker(absl::string_view model_name, Diagnostics& found)
      : model_name_(model_name), found_(found) {}

  void CheckSlot(absl::string_view what, int64_t bytes) {
    if (bytes <= kSlotSpanBytes) return;
    Report(absl::StrCat(what, " take ", bytes, " bytes; commands reach ", kSlotSpanBytes));
  }
  void CheckPorts(absl::string_view what, const std::vector<PortTensor>& ports) {
    if (ports.size() > kMaxPorts) {
      Report(absl::StrCat("the model has ", ports.size(), " ", what, "; at most ", kMaxPorts,
                          " are allowed"));
    }
  }

 private:
  void Report(std::string message) {
    found_.Add(
        {.kind = DiagnosticKind::kProgramTooLarge,
         .message = std::move(message),
         .file = std::string(model_name_),
         .fix = "compile a smaller model, or a part of it between INPUT_OPS and OUTPUT_OPS"});
  }

  absl::string_view model_name_;
  Diagnostics& found_;
};

}  // namespace

absl::Status CheckArtifactLimits(const CompiledModel& model, absl::string_view model_name,
                                 Diagnostics& diagnostics) {
  Diagnostics found;
  LimitChecker checker(model_name, found);
  checker.CheckSlot("the values between operators", model.data_bytes);
  checker.CheckSlot("the weights", static_cast<int64_t>(model.weight_content.size()));
  checker.CheckSlot("the inputs", model.input_struct_bytes());
  checker.CheckSlot("the outputs", model.output_struct_bytes());
  checker.CheckPorts("inputs", model.inputs);
  checker.CheckPorts("outputs", model.outputs);
  diagnostics.Append(found);
  return found.ToStatus();
}

int64_t CompiledModel::npu_size() const {
  return static_cast<int64_t>(cmd_content.size() + weight_content.size() + ops_content.size()) +
         data_bytes;
}

int64_t CompiledModel::input_struct_bytes() const { return StructBytes(inputs); }

int64_t CompiledModel::output_struct_bytes() const { return StructBytes(outputs); }

int64_t CompiledModel::total_size() const {
  return npu_size() + input_struct_bytes() + output_struct_bytes();
}

}  // namespace npuc
