#include "compiler_core/emit/header_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "compiler_core/base/byte_text.h"
#include "compiler_core/base/status.h"
#include "compiler_core/target/family.h"

namespace npuc {
namespace {

// Words that cannot name a member in C99 or C++20, the predefined macros of GNU modes among them.
constexpr absl::string_view kKeywords[] = {
    "_Bool",        "_Complex",     "_Imaginary", "alignas",
    "alignof",      "and",          "and_eq",     "asm",
    "auto",         "bitand",       "bitor",      "bool",
    "break",        "case",         "catch",      "char",
    "char16_t",     "char32_t",     "char8_t",    "class",
    "co_await",     "co_return",    "co_yield",   "compl",
    "concept",      "const",        "const_cast", "consteval",
    "constexpr",    "constinit",    "continue",   "decltype",
    "default",      "delete",       "do",         "double",
    "dynamic_cast", "else",         "enum",       "explicit",
    "export",       "extern",       "false",      "float",
    "for",          "friend",       "goto",       "if",
    "inline",       "int",          "linux",      "long",
    "mutable",      "namespace",    "new",        "noexcept",
    "not",          "not_eq",       "npu_data_t", "nullptr",
    "operator",     "or",           "or_eq",      "private",
    "protected",    "public",       "register",   "reinterpret_cast",
    "requires",     "restrict",     "return",     "short",
    "signed",       "sizeof",       "static",     "static_assert",
    "static_cast",  "struct",       "switch",     "template",
    "this",         "thread_local", "throw",      "true",
    "try",          "typedef",      "typeid",     "typename",
    "typeof",       "union",        "unix",       "unsigned",
    "using",        "virtual",      "void",       "volatile",
    "wchar_t",      "while",        "xor",        "xor_eq",
    "i386",         "mips",         "csky"};

// text as the inside of a C string literal: quotes, backslashes and control characters escaped,
// and question marks that would start a trigraph.
std::string CString(absl::string_view text) {
  std::string out;
  char before = 0;
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || (c == '?' && before == '?')) {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte == 0x7f) {
      out.push_back('\\');
      for (int shift = 6; shift >= 0; shift -= 3) {
        out.push_back(static_cast<char>('0' + (byte >> shift & 7)));
      }
    } else {
      out.push_back(c);
    }
    before = c;
  }
  return out;
}

absl::string_view CTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return "signed char";
    case DType::kUint8:
      return "unsigned char";
    case DType::kInt16:
      return "short";
    case DType::kUint16:
      return "unsigned short";
    case DType::kFloat32:
      return "float";
    default:
      return "npu_data_t";
  }
}

// The three forms of a header, by core.
enum class Form : uint8_t { kGrus, kInteger, kFixedPoint };

Form FormOf(const CompiledModel& model) {
  if (model.command_set == CommandSet::kGrus) return Form::kGrus;
  const CoreSpec* core = FindCore(model.core);
  return core != nullptr && IsFixedPoint(*core) ? Form::kFixedPoint : Form::kInteger;
}

void AppendMember(const PortTensor& port, Form form, std::string& out) {
  const absl::string_view type = form == Form::kFixedPoint ? "npu_data_t" : CTypeOf(port.dtype);
  absl::StrAppend(&out, "\t", type, " ", CIdentifier(port.name));
  for (const int64_t dim : port.shape) absl::StrAppend(&out, "[", dim, "]");
  absl::StrAppend(&out, ";\n");
}

using Members = std::vector<const PortTensor*>;

void AppendStruct(absl::string_view name, const Members& members, Form form, std::string& out) {
  absl::StrAppend(&out, "struct ", name, " {\n");
  for (const PortTensor* port : members) AppendMember(*port, form, out);
  absl::StrAppend(&out, "} __attribute__ ((packed));\n\n");
}

void CheckNames(absl::string_view struct_name, const Members& members, Diagnostics& diagnostics) {
  std::map<std::string, const PortTensor*> seen;
  for (const PortTensor* port : members) {
    const auto [it, inserted] = seen.emplace(CIdentifier(port->name), port);
    if (inserted) continue;
    diagnostics.Add({.kind = DiagnosticKind::kHeaderNameCollision,
                     .message = absl::StrCat("'", Printable(it->second->name), "' and '",
                                             Printable(port->name), "' would both be member '",
                                             Printable(it->first), "' of struct ", struct_name),
                     .node = port->name,
                     .fix = "rename one of the two nodes in the model"});
  }
}

constexpr size_t kValuesPerLine = 10;
constexpr size_t kLineChars = kValuesPerLine * kByteTextChars + 2;
constexpr size_t kLinesPerPiece = 1024;  // a piece stays in the processor's cache

// Chars of "\t0x01, 0x02, ... \n" lines of ten.
size_t CharsOf(absl::Span<const uint8_t> values) {
  const size_t lines = (values.size() + kValuesPerLine - 1) / kValuesPerLine;
  return values.size() * kByteTextChars + 2 * lines;
}

// At most kLinesPerPiece lines.
void AppendLines(absl::Span<const uint8_t> values, std::string& out) {
  std::array<char, kLinesPerPiece * kLineChars + kByteTextRoom> lines;
  char* to = lines.data();
  while (!values.empty()) {
    *to++ = '\t';
    const size_t count = std::min(values.size(), kValuesPerLine);
    for (const uint8_t value : values.first(count)) {
      std::memcpy(to, kByteTexts[value].data(), kByteTextRoom);
      to += kByteTextChars;
    }
    *to++ = '\n';
    values.remove_prefix(count);
  }
  out.append(lines.data(), static_cast<size_t>(to - lines.data()));
}

std::string ArrayBegin(absl::string_view name, size_t bytes) {
  return absl::StrCat("const unsigned char ", name, "[", bytes,
                      "] __attribute__ ((aligned(4))) = {\n");
}

void AppendCore(const CompiledModel& model, std::string& out) {
  absl::StrAppend(&out, "const char *npu_core = \"", CString(model.core), "\";\n");
}

void AppendConstants(const CompiledModel& model, Form form, std::string& out) {
  absl::StrAppend(&out, "// This file is automatically generated by NPU compiler.\n");
  absl::StrAppend(&out, "const unsigned int total_size = ", model.total_size(), ";\n");
  absl::StrAppend(&out, "const unsigned int npu_size = ", model.npu_size(), ";\n");
  absl::StrAppend(&out, "const char *version = \"", CString(model.version), "\";\n");
  absl::StrAppend(&out, "const char *pb_md5 = \"", CString(model.model_md5), "\";\n");
  if (form == Form::kGrus) {
    absl::StrAppend(&out, "const char *npu_unit = \"", CString(model.npu_unit), "\";\n");
    if (model.core != FirstCoreOf(NpuFamily::kFp16).name) AppendCore(model, out);
  } else if (form == Form::kInteger) {
    AppendCore(model, out);
  }
  absl::StrAppend(&out, "const char *model_info = \"", CString(model.model_info), "\";\n");
  if (model.ports_in_data()) {
    absl::StrAppend(&out,
                    "// struct input is at data_content + input_offset, and struct output at "
                    "data_content + output_offset.\n"
                    "// A frame may overwrite its input. Read the output before you store the next "
                    "input.\n"
                    "const unsigned int input_offset = ",
                    model.input_offset,
                    ";\nconst unsigned int output_offset = ", model.output_offset, ";\n");
  }
  absl::StrAppend(&out, form == Form::kGrus         ? "\ntypedef unsigned short npu_data_t;\n\n"
                        : form == Form::kFixedPoint ? "\ntypedef short npu_data_t;\n\n"
                                                    : "\n");
}

// real value = (stored - NAME_ZERO_POINT) * NAME_SCALE; scales with all digits of a double.
void AppendParameters(const std::vector<PortTensor>& ports, absl::string_view prefix,
                      std::string& out) {
  for (const PortTensor& port : ports) {
    const std::string name = absl::StrCat(prefix, absl::AsciiStrToUpper(CIdentifier(port.name)));
    absl::StrAppend(&out, "#define ", name, "_SCALE ", absl::StrFormat("%.17e", port.scale), "\n");
    absl::StrAppend(&out, "#define ", name, "_ZERO_POINT (", port.zero_point, ")\n");
  }
}

// real value = stored / 2^NAME_Q.
void AppendQ(const std::vector<PortTensor>& ports, std::string& out) {
  for (const PortTensor& port : ports) {
    absl::StrAppend(&out, "#define ", absl::AsciiStrToUpper(CIdentifier(port.name)), "_Q ",
                    -std::ilogb(port.scale), "\n");
  }
}

void AppendMacros(const CompiledModel& model, Form form, std::string& out) {
  if (form == Form::kGrus) return;
  if (form == Form::kInteger) {
    AppendParameters(model.inputs, "INPUT_", out);
    AppendParameters(model.outputs, "OUTPUT_", out);
  } else {
    AppendQ(model.inputs, out);
    AppendQ(model.outputs, out);
  }
  absl::StrAppend(&out, "\n");
}

// Names that differ in case alone are one macro.
void CheckMacros(const CompiledModel& model, Form form, Diagnostics& diagnostics) {
  std::map<std::string, const PortTensor*> seen;
  const auto check = [&](const std::vector<PortTensor>& ports, absl::string_view prefix) {
    for (const PortTensor& port : ports) {
      const std::string name = absl::StrCat(prefix, absl::AsciiStrToUpper(CIdentifier(port.name)));
      const auto [it, inserted] = seen.emplace(name, &port);
      if (inserted ||
          (it->second->scale == port.scale && it->second->zero_point == port.zero_point))
        continue;
      diagnostics.Add({.kind = DiagnosticKind::kHeaderNameCollision,
                       .message = absl::StrCat("'", Printable(it->second->name), "' and '",
                                               Printable(port.name), "' would both give macro ",
                                               name, form == Form::kFixedPoint ? "_Q" : "_SCALE"),
                       .node = port.name,
                       .fix = "rename one of the two nodes in the model"});
    }
  };
  check(model.inputs, form == Form::kFixedPoint ? "" : "INPUT_");
  check(model.outputs, form == Form::kFixedPoint ? "" : "OUTPUT_");
}

struct Structs {
  Members input;
  Members output;
  Members in_out;
};

Structs StructsOf(const CompiledModel& model) {
  Structs structs;
  for (const PortTensor& port : model.inputs) structs.input.push_back(&port);
  structs.in_out = structs.input;
  for (const PortTensor& port : model.outputs) {
    structs.output.push_back(&port);
    if (port.state_input < 0) structs.in_out.push_back(&port);
  }
  return structs;
}

// All before the arrays.
std::string HeadOf(const CompiledModel& model, Form form) {
  const Structs structs = StructsOf(model);
  std::string head;
  AppendConstants(model, form, head);
  AppendMacros(model, form, head);
  AppendStruct("input", structs.input, form, head);
  AppendStruct("output", structs.output, form, head);
  AppendStruct("in_out", structs.in_out, form, head);
  absl::StrAppend(&head, "\n");
  return head;
}

// The text in front of an array's lines, and its values.
struct Array {
  std::string text;
  absl::Span<const uint8_t> values;
};

std::vector<Array> ArraysOf(const CompiledModel& model, Form form) {
  std::vector<Array> arrays = {
      {ArrayBegin("cmd_content", model.cmd_content.size()), model.cmd_content},
      {absl::StrCat("};\n", ArrayBegin("weight_content", model.weight_content.size())),
       model.weight_content}};
  if (form == Form::kGrus) {
    arrays.push_back({absl::StrCat("};\nunsigned char *tmp_content = (void*)0;\n",
                                   ArrayBegin("ops_content", model.ops_content.size())),
                      model.ops_content});
  }
  return arrays;
}

// Behind the last array's lines.
std::string TailOf(const CompiledModel& model, Form form) {
  std::string tail = absl::StrCat("};\nunsigned char data_content[", model.data_bytes,
                                  "] __attribute__ ((aligned(4)));\n");
  if (form == Form::kFixedPoint) {  // nothing is cached
    absl::StrAppend(&tail, "unsigned char cache_content[0] __attribute__ ((aligned(4)));\n");
  }
  return tail;
}

}  // namespace

std::string CIdentifier(absl::string_view name) {
  std::string out;
  for (const char c : name) out.push_back(absl::ascii_isalnum(c) ? c : '_');
  if (out.empty() || absl::ascii_isdigit(out[0])) out.insert(out.begin(), '_');
  if (std::find(std::begin(kKeywords), std::end(kKeywords), out) != std::end(kKeywords))
    out.push_back('_');
  return out;
}

absl::Status CheckCHeader(const CompiledModel& model, Diagnostics& diagnostics) {
  const Form form = FormOf(model);
  const Structs structs = StructsOf(model);
  Diagnostics found;
  CheckNames("output", structs.output, found);
  CheckNames("in_out", structs.in_out, found);
  if (form != Form::kGrus) CheckMacros(model, form, found);
  size_t size = HeadOf(model, form).size() + TailOf(model, form).size();
  for (const Array& array : ArraysOf(model, form)) {
    size += array.text.size() + CharsOf(array.values);
  }
  if (!found.has_errors() && static_cast<int64_t>(size) > kMaxArtifactBytes) {
    found.Add({.kind = DiagnosticKind::kProgramTooLarge,
               .message = absl::StrCat("the header has ", size, " bytes; at most ",
                                       kMaxArtifactBytes, " are read"),
               .fix = "compile a smaller model"});
  }
  diagnostics.Append(found);
  return found.ToStatus();
}

absl::Status WriteCHeader(const CompiledModel& model, const ByteSink& sink) {
  constexpr size_t kPieceValues = kLinesPerPiece * kValuesPerLine;
  const Form form = FormOf(model);
  std::string piece = HeadOf(model, form);
  for (const Array& array : ArraysOf(model, form)) {
    piece.append(array.text);
    for (size_t begin = 0; begin < array.values.size(); begin += kPieceValues) {
      AppendLines(array.values.subspan(begin, kPieceValues), piece);
      RETURN_IF_ERROR(sink(piece));
      piece.clear();
    }
  }
  piece.append(TailOf(model, form));
  return sink(piece);
}

}  // namespace npuc
