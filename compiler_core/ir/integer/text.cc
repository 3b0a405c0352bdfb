#include "compiler_core/ir/integer/text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/fields.h"

namespace npuc::integer {
namespace {

// Each field as text, in order.
struct Texts {
  const std::function<std::string(const Operand&)>& operand_text;
  std::vector<std::pair<absl::string_view, std::string>> fields = {};

  void Place(absl::string_view name, const Operand& operand) {
    fields.emplace_back(name, operand.present() ? operand_text(operand) : "none");
  }
  void Type(absl::string_view name, DType type) {
    fields.emplace_back(name, std::string(npuc::NameOf(type)));
  }
  template <typename E>
  void Choice(absl::string_view name, E value, int count) {
    fields.emplace_back(name, absl::StrCat(static_cast<int>(value)));
  }
  void Number(absl::string_view name, int32_t value, int32_t lo, int32_t hi) {
    fields.emplace_back(name, absl::StrCat(value));
  }
  void Walk(absl::string_view name, const Extents& extents, int32_t lo) {
    fields.emplace_back(name, absl::StrJoin(extents, "x"));
  }
};

template <typename BodyType>
Texts TextsOf(const BodyType& body,
              const std::function<std::string(const Operand&)>& operand_text) {
  Texts texts{operand_text};
  VisitFields(texts, body);
  return texts;
}

}  // namespace

bool MakeBody(uint8_t code, Body& body) {
  switch (code) {
    case 0x80:
      body = Convolve();
      return true;
    case 0x81:
      body = Pool();
      return true;
    case 0x82:
      body = Combine();
      return true;
    case 0x83:
      body = Move();
      return true;
    case 0x84:
      body = Fill();
      return true;
    case 0x85:
      body = Lookup();
      return true;
    case 0x86:
      body = Softmax();
      return true;
    case 0x87:
      body = Product();
      return true;
    default:
      return false;
  }
}

std::string PrintCommand(const Body& body,
                         const std::function<std::string(const Operand&)>& operand_text) {
  Body usual;
  MakeBody(kOpcodes[body.index()].code, usual);
  const Texts texts = TextsOf(body, operand_text);
  const Texts defaults = TextsOf(usual, operand_text);
  std::string out(NameOf(body));
  for (size_t i = 0; i < texts.fields.size(); ++i) {
    if (texts.fields[i] == defaults.fields[i]) continue;
    absl::StrAppend(&out, " ", texts.fields[i].first, "=", texts.fields[i].second);
  }
  return out;
}

std::string PrintHeader(bool descending, int32_t core, bool barrier, bool has_cores) {
  return absl::StrCat(descending ? " descending" : "",
                      has_cores ? absl::StrCat(" core=", core) : "", barrier ? " barrier" : "");
}

std::string PrintProgram(const Program& program) {
  std::string out = absl::StrCat("program {\n  data ", program.data_bytes, "\n  weights ",
                                 program.weights.size(), " bytes\n");
  const auto append_port = [&out](absl::string_view what, const PortTensor& port) {
    absl::StrAppend(&out, "  ", what, " \"", Printable(port.name), "\" ",
                    TypeToString({port.dtype, port.shape}), " @", port.offset_bytes, "\n");
  };
  for (const PortTensor& port : program.inputs) append_port("input", port);
  for (const PortTensor& port : program.outputs) append_port("output", port);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    absl::StrAppend(&out, "  %", i, " ", npuc::NameOf(buffer.slot), " ", buffer.size_bytes, " @",
                    buffer.offset_bytes, " \"", Printable(buffer.name), "\"\n");
  }
  const auto operand_text = [](const Operand& operand) {
    return absl::StrFormat("%%%d+0x%x", operand.buffer.value(), operand.offset_bytes);
  };
  const bool has_cores = std::any_of(program.commands.begin(), program.commands.end(),
                                     [](const Command& command) { return command.core > 0; });
  for (const Command& command : program.commands) {
    absl::StrAppend(&out, "  ", PrintCommand(command.body, operand_text),
                    PrintHeader(command.descending, command.core, command.barrier, has_cores),
                    "  # ", Printable(command.layer), "\n");
  }
  absl::StrAppend(&out, "}\n");
  return out;
}

}  // namespace npuc::integer
