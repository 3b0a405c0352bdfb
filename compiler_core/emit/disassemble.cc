#include "compiler_core/emit/disassemble.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/text.h"
#include "compiler_core/ir/integer/text.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

std::string OperandText(const Operand& operand) {
  return absl::StrFormat("%s+0x%x", NameOf(static_cast<Slot>(operand.buffer.value())),
                         operand.offset_bytes);
}

// What the fp16 fields are worth, for the reader.
std::string Remark(const Command& command) {
  if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
    const WeightForm& form = fc->form;
    if (form.book_bits > 0) {
      return absl::StrFormat("  ; weight = book[code of %d bits]", form.book_bits);
    }
    if (form.exponent_bits > 0) {
      return absl::StrFormat("  ; plain 16-bit weights with %d exponent bits", form.exponent_bits);
    }
    if (!fc->mask.present()) return "  ; plain fp16 weights";
    return absl::StrFormat("  ; weight = %g + code * %g", HalfToFloat(fc->min),
                           HalfToFloat(fc->step));
  }
  const auto* v = std::get_if<VectorCommand>(&command.body);
  if (v != nullptr && v->immediate != 0) {
    return absl::StrFormat("  ; imm = %g", HalfToFloat(v->immediate));
  }
  return "";
}

void AppendRawWords(absl::Span<const uint8_t> bytes, int64_t offset, int64_t end,
                    std::string& out) {
  for (; offset + 4 <= end; offset += 4) {
    absl::StrAppendFormat(&out, " %08x", integer::WordAt(bytes, offset));
  }
  for (; offset < end; ++offset) {
    absl::StrAppendFormat(&out, " %02x", bytes[static_cast<size_t>(offset)]);
  }
}

constexpr int64_t kRawBytesPerLine = 32;

void AppendRest(absl::Span<const uint8_t> bytes, int64_t offset, std::string& out) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  for (; offset < size; offset += kRawBytesPerLine) {
    absl::StrAppendFormat(&out, "%06d  raw", offset);
    AppendRawWords(bytes, offset, std::min(size, offset + kRawBytesPerLine), out);
    absl::StrAppend(&out, "\n");
  }
}

}  // namespace

Disassembly DisassembleIntegerCommands(absl::Span<const uint8_t> bytes, bool has_cores) {
  Disassembly result;
  bool last = false;
  while (!last) {
    const absl::StatusOr<integer::DecodedCommand> decoded =
        integer::DecodeCommand(bytes, result.end_bytes);
    if (!decoded.ok()) {
      absl::StrAppend(&result.text, "# ", decoded.status().message(), "\n");
      break;
    }
    ++result.command_count;
    absl::StrAppendFormat(
        &result.text, "%06d  %08x  %s%s\n", result.end_bytes,
        integer::WordAt(bytes, result.end_bytes), integer::PrintCommand(decoded->body, OperandText),
        integer::PrintHeader(decoded->descending, decoded->core, decoded->barrier, has_cores));
    result.end_bytes += decoded->size_bytes;
    last = decoded->last;
  }
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (last) {
    absl::StrAppend(&result.text, "# the stream ends at byte ", result.end_bytes, " of ", size,
                    "\n");
  }
  result.complete = last && result.end_bytes == size;
  if (!result.complete) AppendRest(bytes, result.end_bytes, result.text);
  return result;
}

Disassembly DisassembleCommands(absl::Span<const uint8_t> bytes) {
  Disassembly result;
  result.complete = true;
  const int64_t size = static_cast<int64_t>(bytes.size());
  int64_t offset = 0;
  bool last = false;
  while (!last) {
    const absl::StatusOr<DecodedCommand> decoded = DecodeCommand(bytes, offset);
    const int64_t command_size = CommandSizeAt(bytes, offset);
    if (!decoded.ok() && command_size == 0) {
      absl::StrAppend(&result.text, "# ", decoded.status().message(), "\n");
      break;
    }
    ++result.command_count;
    absl::StrAppendFormat(&result.text, "%06d  %08x  ", offset, integer::WordAt(bytes, offset));
    if (decoded.ok()) {
      absl::StrAppend(&result.text, PrintCommand(decoded->command, OperandText),
                      Remark(decoded->command), "\n");
      last = decoded->last;
      if (last && !std::holds_alternative<VectorCommand>(decoded->command.body)) {
        absl::StrAppend(&result.text, "# the last command is not of opcode 0x01\n");
        result.complete = false;
      }
    } else {
      absl::StrAppend(&result.text, "unknown");
      AppendRawWords(bytes, offset + 4, offset + command_size, result.text);
      absl::StrAppend(&result.text, "  ; ", decoded.status().message(), "\n");
      result.complete = false;
    }
    offset += command_size;
  }
  result.end_bytes = offset;
  if (last) {
    absl::StrAppend(&result.text, "# the stream ends at byte ", offset, " of ", size, "\n");
  }
  if (!last || offset != size) {
    result.complete = false;
    AppendRest(bytes, offset, result.text);
  }
  return result;
}

Disassembly DisassembleModel(const CompiledModel& model) {
  std::string head;
  absl::StrAppend(&head, "# ", Printable(model.core), " ", Printable(model.npu_unit), ", compiler ",
                  Printable(model.version), ", model ", Printable(model.model_md5), " ",
                  Printable(model.model_info), "\n");
  absl::StrAppend(&head, "# bytes: cmd ", model.cmd_content.size(), ", weight ",
                  model.weight_content.size(), ", ops ", model.ops_content.size(), ", data ",
                  model.data_bytes, "\n");
  if (model.ports_in_data()) {
    absl::StrAppendFormat(&head, "# input is data+0x%x, output is data+0x%x\n", model.input_offset,
                          model.output_offset);
  }
  const auto append_port = [&](absl::string_view what, const PortTensor& port) {
    absl::StrAppend(&head, "# ", what, " ", Printable(port.name), " ",
                    TypeToString({port.dtype, port.shape}), " at ", what, "+",
                    absl::StrFormat("0x%x", port.offset_bytes));
    if (port.scale > 0) {
      absl::StrAppendFormat(&head, ", (stored - %d) * %.9g", port.zero_point, port.scale);
    }
    if (port.state_input >= 0 && static_cast<size_t>(port.state_input) < model.inputs.size()) {
      absl::StrAppend(&head, ", the next frame's ",
                      Printable(model.inputs[static_cast<size_t>(port.state_input)].name));
    }
    absl::StrAppend(&head, "\n");
  };
  for (const PortTensor& port : model.inputs) append_port("input", port);
  for (const PortTensor& port : model.outputs) append_port("output", port);
  Disassembly result = model.command_set == CommandSet::kGrus
                           ? DisassembleCommands(model.cmd_content)
                           : DisassembleIntegerCommands(model.cmd_content, CoresOf(model.core) > 1);
  result.text = absl::StrCat(head, result.text);
  return result;
}

}  // namespace npuc
