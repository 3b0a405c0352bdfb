#include "compiler_core/ir/cmd/text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/ir/graph/text_cursor.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;
using OperandText = std::function<std::string(const Operand&)>;

std::string Quoted(absl::string_view text) {
  std::string out;
  AppendQuoted(text, out);
  return out;
}

void AppendOperand(absl::string_view name, const Operand& operand, const OperandText& text,
                   std::string& out) {
  if (operand.present()) absl::StrAppend(&out, " ", name, "=", text(operand));
}

bool HasArithmetic(Kind kind) {
  return kind == Kind::kTensorVector || kind == Kind::kTensorTensor || kind == Kind::kTensorScalar;
}

void AppendVector(const VectorCommand& v, const OperandText& text, std::string& out) {
  absl::StrAppend(&out, NameOf(v.kind));
  if (HasArithmetic(v.kind) || v.arithmetic != Arithmetic::kAdd) {
    absl::StrAppend(&out, " op=", NameOf(v.arithmetic));
  }
  if (v.kind == Kind::kActivation || v.activation != Activation::kRelu) {
    absl::StrAppend(&out, " f=", NameOf(v.activation));
  }
  if (v.window_h != 0 || v.window_w != 0) {
    absl::StrAppend(&out, " window=", v.window_h, "x", v.window_w);
  }
  if (v.average) absl::StrAppend(&out, " average");
  if (v.reduce_middle) absl::StrAppend(&out, " over_middle");
  if (v.a_is_immediate) absl::StrAppend(&out, " a_is_immediate");
  AppendOperand("a", v.a, text, out);
  AppendOperand("b", v.b, text, out);
  AppendOperand("c", v.c, text, out);
  AppendOperand("d", v.d, text, out);
  absl::StrAppend(&out, " ext=", v.extents[0], "x", v.extents[1], "x", v.extents[2]);
  absl::StrAppend(&out, " a_stride=", v.a_outer_stride, ",", v.a_middle_stride);
  absl::StrAppend(&out, " d_stride=", v.d_outer_stride, ",", v.d_middle_stride);
  if (v.immediate != 0) absl::StrAppendFormat(&out, " imm=0x%04x", v.immediate);
}

void AppendWeightForm(const WeightForm& form, std::string& out) {
  if (form.book_bits != 0) absl::StrAppend(&out, " book=", form.book_bits);
  if (form.exponent_bits != 0) absl::StrAppend(&out, " exp_bits=", form.exponent_bits);
}

void AppendFullyConnected(const FullyConnectedCommand& fc, const OperandText& text,
                          std::string& out) {
  absl::StrAppend(&out, "fully_connected");
  AppendOperand("a", fc.a, text, out);
  AppendOperand("codes", fc.codes, text, out);
  AppendOperand("mask", fc.mask, text, out);
  AppendOperand("d", fc.d, text, out);
  absl::StrAppend(&out, " n=", fc.n, " k=", fc.k);
  if (fc.min != 0) absl::StrAppendFormat(&out, " min=0x%04x", fc.min);
  if (fc.step != 0) absl::StrAppendFormat(&out, " step=0x%04x", fc.step);
  AppendWeightForm(fc.form, out);
}

void AppendRaw(const RawCommand& raw, const OperandText& text, std::string& out) {
  std::string form;
  const bool understood = AppendRawForm(raw, form);
  absl::StrAppendFormat(&out, "%s opcode=0x%02x", understood ? NameOfOpcode(raw.opcode) : "raw",
                        raw.opcode);
  AppendOperand("a", raw.a, text, out);
  AppendOperand("weights", raw.weights, text, out);
  AppendOperand("mask", raw.mask, text, out);
  AppendOperand("d", raw.d, text, out);
  absl::StrAppend(&out, form, raw.words.empty() ? "" : " words=");
  for (size_t i = 0; i < raw.words.size(); ++i) {
    absl::StrAppendFormat(&out, "%s%08x", i == 0 ? "" : ",", raw.words[i]);
  }
}

void AppendPort(absl::string_view keyword, const PortTensor& port, std::string& out) {
  absl::StrAppend(&out, "  ", keyword, " ", Quoted(port.name), " ", NameOf(port.dtype), " ",
                  ShapeToString(port.shape), " @", port.offset_bytes);
  if (keyword == "output") absl::StrAppend(&out, " state ", port.state_input);
  absl::StrAppend(&out, "\n");
}

constexpr size_t kWeightBytesPerLine = 64;

void AppendWeights(const std::vector<uint8_t>& weights, const CommandPrintOptions& options,
                   std::string& out) {
  if (weights.empty()) return;
  if (!options.weights) {
    absl::StrAppend(&out, "  weights ", weights.size(), " elided\n");
    return;
  }
  const absl::string_view bytes(reinterpret_cast<const char*>(weights.data()), weights.size());
  for (size_t at = 0; at < bytes.size(); at += kWeightBytesPerLine) {
    absl::StrAppend(&out, "  weights \"",
                    absl::BytesToHexString(bytes.substr(at, kWeightBytesPerLine)), "\"\n");
  }
}

}  // namespace

bool AppendRawForm(const RawCommand& raw, std::string& out) {
  if (const auto form = ParseConvolution(raw); raw.opcode == 0x41 && form.ok()) {
    absl::StrAppendFormat(
        &out, " in=[%d,%d,%d] out=[%d,%d,%d] kernel=%dx%d stride=%dx%d pad_left=%d%s", form->in_h,
        form->in_w, form->in_c, form->out_h, form->out_w, form->out_c, form->kernel_h,
        form->kernel_w, form->stride_h, form->stride_w, form->pad_left, form->bias ? " bias" : "");
    if (form->compressed && form->weights.book_bits == 0) {
      absl::StrAppendFormat(&out, " min=0x%04x step=0x%04x", form->min, form->step);
    }
    AppendWeightForm(form->weights, out);
    return true;
  }
  if (const auto form = ParseDepthwise(raw); raw.opcode == 0x42 && form.ok()) {
    absl::StrAppendFormat(&out, " in=[%d,%d,%d] out=[%d,%d,%d] kernel=%dx%d stride=%dx%d%s",
                          form->channels, form->in_h, form->in_w, form->channels * form->multiplier,
                          form->out_h, form->out_w, form->kernel_h, form->kernel_w, form->stride_h,
                          form->stride_w, form->bias ? " bias" : "");
    return true;
  }
  if (const auto form = ParseTranspose(raw); raw.opcode == 0x43 && form.ok()) {
    absl::StrAppendFormat(&out, " rows=%d columns=%d", form->rows, form->columns);
    return true;
  }
  return false;
}

std::string PrintCommand(const Command& command, const OperandText& operand_text) {
  std::string out;
  if (const auto* v = std::get_if<VectorCommand>(&command.body)) {
    AppendVector(*v, operand_text, out);
  } else if (const auto* fc = std::get_if<FullyConnectedCommand>(&command.body)) {
    AppendFullyConnected(*fc, operand_text, out);
  } else {
    AppendRaw(std::get<RawCommand>(command.body), operand_text, out);
  }
  if (!command.waits) absl::StrAppend(&out, " no_wait");
  if (command.interrupts) absl::StrAppend(&out, " interrupt");
  if (command.link.has_value()) absl::StrAppendFormat(&out, " link=0x%08x", *command.link);
  if (!command.node.empty()) absl::StrAppend(&out, " node=", Quoted(command.node));
  return out;
}

std::string PrintProgram(const Program& program, const CommandPrintOptions& options) {
  std::string out = "program {\n";
  if (program.data_bytes != 0) absl::StrAppend(&out, "  data ", program.data_bytes, "\n");
  AppendWeights(program.weights, options, out);
  for (const PortTensor& port : program.inputs) AppendPort("input", port, out);
  for (const PortTensor& port : program.outputs) AppendPort("output", port, out);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    absl::StrAppend(&out, "  %", i, " ", NameOf(buffer.slot), " ", buffer.size_bytes, " @",
                    buffer.offset_bytes, " ", Quoted(buffer.name), "\n");
  }
  const auto operand_text = [](const Operand& operand) {
    return absl::StrFormat("%%%d+0x%x", operand.buffer.value(), operand.offset_bytes);
  };
  for (const Command& command : program.commands) {
    absl::StrAppend(&out, "  ", PrintCommand(command, operand_text), "\n");
  }
  absl::StrAppend(&out, "}\n");
  return out;
}

}  // namespace npuc
