#include "compiler_core/emit/artifact.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

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

absl::Status CheckStates(const CompiledModel& model) {
  for (const PortTensor& output : model.outputs) {
    if (output.state_input == -1) continue;
    if (output.state_input < 0 || static_cast<size_t>(output.state_input) >= model.inputs.size()) {
      return absl::InvalidArgumentError(absl::StrCat("output ", Printable(output.name),
                                                     " feeds input ", output.state_input, " of ",
                                                     model.inputs.size()));
    }
    const PortTensor& input = model.inputs[static_cast<size_t>(output.state_input)];
    if (input.shape != output.shape || input.dtype != output.dtype) {
      return absl::InvalidArgumentError(absl::StrCat("state output ", Printable(output.name),
                                                     " is unlike input ", Printable(input.name)));
    }
  }
  return absl::OkStatus();
}

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

absl::Status CheckPortPlaces(const CompiledModel& model) {
  if (model.input_offset == -1 && model.output_offset == -1) return absl::OkStatus();
  const auto check = [&model](absl::string_view what, int64_t offset, int64_t bytes) {
    if (offset >= 0 && offset <= model.data_bytes && bytes <= model.data_bytes - offset) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "struct ", what, " has ", bytes, " bytes, and ", what, "_offset is ", offset,
        "; both structs lie within the ", model.data_bytes, " bytes of data_content, or neither"));
  };
  RETURN_IF_ERROR(check("input", model.input_offset, model.input_struct_bytes()));
  return check("output", model.output_offset, model.output_struct_bytes());
}

int64_t CompiledModel::npu_size() const {
  return static_cast<int64_t>(cmd_content.size() + weight_content.size() + ops_content.size()) +
         data_bytes;
}

int64_t CompiledModel::input_struct_bytes() const { return StructBytes(inputs); }

int64_t CompiledModel::output_struct_bytes() const { return StructBytes(outputs); }

int64_t CompiledModel::total_size() const {
  return npu_size() + own_input_bytes() + own_output_bytes();
}

absl::StatusOr<CompiledModel> CheckedModel(absl::StatusOr<CompiledModel> parsed,
                                           absl::string_view form, absl::string_view file_name,
                                           Diagnostics& diagnostics) {
  if (!parsed.ok()) {
    Diagnostics found;
    found.Add({.kind = DiagnosticKind::kModelFileInvalid,
               .message = absl::StrCat("not a sound ", form, ": ", parsed.status().message()),
               .file = std::string(file_name),
               .fix = kFixOfDamage});
    diagnostics.Append(found);
    return found.ToStatus();
  }
  RETURN_IF_ERROR(CheckArtifactLimits(*parsed, file_name, diagnostics));
  return parsed;
}

}  // namespace npuc
