#include "compiler_core/emit/header_reader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/c_lexer.h"
#include "compiler_core/target/family.h"

namespace npuc {
namespace {

using Token = CLexer::Token;

// A declaration's tokens before its initialiser; more than this is no declaration of ours.
constexpr size_t kMaxHeadTokens = 64;
constexpr size_t kMaxMembers = 2 * kMaxPorts;  // of in_out

constexpr absl::string_view kFlashSuffix = "_xip";

constexpr absl::string_view kArrayNames[] = {"cmd_content", "weight_content", "ops_content",
                                             "data_content", "cache_content"};

// Whose header it is; tells what npu_data_t and the integer types stand for.
enum class Family : uint8_t {
  kGrus,        // npu_data_t is an fp16
  kInteger,     // integers of 8 and 16 bits, scales and zero points as macros
  kFixedPoint,  // npu_data_t is a signed 16-bit integer, a Q for each as a macro
};

struct Member {
  std::string name;
  std::string type;  // as written, without const
  DType dtype = DType::kInvalid;
  Shape shape;
  int line = 0;
};

// Where a part stands. Within `#if 0` it counts where no live one has its name.
struct Place {
  int line = 0;
  bool is_off = false;
};

struct ParsedStruct {
  std::vector<Member> members;
  Place place;
};

struct ParsedArray {
  std::vector<uint8_t> bytes;
  int64_t declared_size = 0;
  Place place;
};

struct ParsedConstant {
  int64_t value = 0;
  Place place;
};

struct ParsedText {
  std::string value;
  Place place;
};

class Reader {
 public:
  Reader(absl::string_view text, absl::string_view file_name)
      : lexer_(text), is_empty_(text.empty()), file_name_(file_name) {}

  CompiledModel Run() {
    while (ReadDeclaration()) {
    }
    return Assemble();
  }

  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  void Report(DiagnosticKind kind, int line, std::string message, std::string fix = kFixOfDamage) {
    diagnostics_.Add({.kind = kind,
                      .message = std::move(message),
                      .file = file_name_,
                      .line = line,
                      .fix = std::move(fix)});
  }

  // Reads one declaration; false at the end of the text.
  bool ReadDeclaration() {
    std::vector<Token> head;
    int parentheses = 0;
    while (true) {
      const Token token = lexer_.Next();
      if (token.kind == Token::Kind::kEnd) {
        if (!head.empty()) {
          Report(DiagnosticKind::kHeaderSyntax, head.front().line,
                 "a declaration has no end before the file's");
        }
        return false;
      }
      if (token.is('}') && head.empty()) continue;  // of an extern "C" block
      if (token.is('(')) ++parentheses;
      if (token.is(')')) --parentheses;
      if (parentheses <= 0 && token.is(';')) {
        FinishPlain(head);
        return true;
      }
      if (parentheses <= 0 && token.is('{')) return ReadBraced(head);
      if (parentheses <= 0 && token.is('=')) return ReadInitialised(head);
      if (head.size() < kMaxHeadTokens) head.push_back(token);
    }
  }

  // A declaration without initialiser: data_content, or the typedef that tells the family.
  void FinishPlain(const std::vector<Token>& head) {
    if (head.empty()) return;
    if (head.front().is("typedef") && head.back().is("npu_data_t")) {
      bool is_unsigned = false;
      for (const Token& token : head) {
        if (token.is("unsigned") || token.is("uint16_t")) is_unsigned = true;
      }
      if (!is_unsigned) {
        family_ = Family::kFixedPoint;
        family_line_ = head.front().line;
      }
      return;
    }
    if (const std::optional<size_t> name = ArrayName(head)) TakeArray(head, *name, {});
  }

  // The index in `head` of NAME in NAME[N] where NAME ends like one of the model's arrays.
  static std::optional<size_t> ArrayName(const std::vector<Token>& head) {
    for (size_t i = 0; i + 1 < head.size(); ++i) {
      if (head[i].kind != Token::Kind::kWord || !head[i + 1].is('[')) continue;
      for (const absl::string_view suffix : kArrayNames) {
        if (absl::EndsWith(head[i].text, suffix)) return i;
      }
      return std::nullopt;
    }
    return std::nullopt;
  }

  bool ReadInitialised(const std::vector<Token>& head) {
    const Token first = lexer_.Next();
    if (first.is('{')) {
      const std::optional<size_t> name = ArrayName(head);
      if (!name.has_value()) return SkipTo(';', 1);
      const int line = lexer_.line();
      std::vector<uint8_t> bytes;
      if (!lexer_.ReadByteList(bytes)) {
        Report(DiagnosticKind::kHeaderSyntax, lexer_.line(),
               absl::StrCat("array ", Printable(head[*name].text), " of line ", line,
                            " holds something other than numbers 0..255 parted by commas, after ",
                            bytes.size(), " values"));
        for (const absl::string_view suffix : kArrayNames) {
          // Known, though broken: it is not missing.
          if (absl::EndsWith(head[*name].text, suffix)) arrays_.emplace(suffix, ParsedArray());
        }
        return SkipTo(';', 1);
      }
      TakeArray(head, *name, std::move(bytes));
      return SkipTo(';', 0);
    }
    if (first.is(';')) return true;
    TakeConstant(head, first);
    return first.kind == Token::Kind::kEnd ? false : SkipTo(';', 0);
  }

  void TakeArray(const std::vector<Token>& head, size_t name, std::vector<uint8_t> bytes) {
    ParsedArray array;
    array.place = {head[name].line, head[name].is_off};
    array.declared_size = -1;
    if (name + 3 < head.size() && head[name + 2].kind == Token::Kind::kNumber &&
        head[name + 3].is(']')) {
      array.declared_size = CLexer::NumberValue(head[name + 2].text);
    } else if (name + 2 < head.size() && head[name + 2].is(']')) {
      array.declared_size = static_cast<int64_t>(bytes.size());
    }
    if (array.declared_size < 0 || array.declared_size > kMaxArtifactBytes) {
      Report(DiagnosticKind::kHeaderSyntax, array.place.line,
             absl::StrCat("the size of array ", Printable(head[name].text), " is no number up to ",
                          kMaxArtifactBytes));
      return;
    }
    array.bytes = std::move(bytes);
    for (const absl::string_view suffix : kArrayNames) {
      if (!absl::EndsWith(head[name].text, suffix)) continue;
      if (!Keep(arrays_, std::string(suffix), std::move(array))) {
        Report(DiagnosticKind::kHeaderSyntax, head[name].line,
               absl::StrCat("a second ", suffix, " array: ", Printable(head[name].text)));
      }
      return;
    }
  }

  // `unsigned int NAME [ATTRIBUTES] = NUMBER`, `char *NAME [ATTRIBUTES] = "TEXT"`.
  void TakeConstant(const std::vector<Token>& head, const Token& value) {
    for (const Token& token : head) {
      if (token.kind != Token::Kind::kWord) continue;
      const std::string name(token.text);
      const Place place{token.line, token.is_off};
      if (value.kind == Token::Kind::kNumber &&
          (name == "total_size" || name == "npu_size" || name == "input_offset" ||
           name == "output_offset")) {
        Keep(sizes_, name, {CLexer::NumberValue(value.text), place});
      } else if (value.kind == Token::Kind::kString &&
                 (name == "version" || name == "pb_md5" || name == "npu_unit" ||
                  name == "npu_core" || name == "model_info")) {
        Keep(strings_, name, {CLexer::StringValue(value.text), place});
      }
    }
  }

  // Adds a part, where a live one takes the place of one within `#if 0`. False, with the first one
  // kept, where there is a live one already.
  template <typename Part>
  static bool Keep(std::map<std::string, Part>& parts, const std::string& name, Part part) {
    const auto found = parts.find(name);
    if (found == parts.end()) return parts.emplace(name, std::move(part)).second;
    const bool is_off = part.place.is_off;
    const bool was_off = found->second.place.is_off;
    if (was_off && !is_off) found->second = std::move(part);
    return was_off || is_off;
  }

  // Skips tokens behind an opening (depth 1) or at top level (0) up to `stop` at depth 0.
  bool SkipTo(char stop, int64_t depth) {
    while (true) {
      const Token token = lexer_.Next();
      if (token.kind == Token::Kind::kEnd) {
        Report(DiagnosticKind::kHeaderSyntax, token.line,
               "the file ends within a declaration (cut short?)");
        return false;
      }
      if (token.is('{')) ++depth;
      if (token.is('}')) --depth;
      if (depth <= 0 && token.is(stop)) return true;
    }
  }

  // `struct NAME {` is read; other braces (extern "C" among them) are stepped into.
  bool ReadBraced(const std::vector<Token>& head) {
    std::string name;
    bool is_struct = false;
    for (size_t i = 0; i < head.size(); ++i) {
      if (head[i].is("struct")) is_struct = true;
      if (head[i].kind == Token::Kind::kWord && !head[i].is("struct") &&
          !absl::StartsWith(head[i].text, "__") && name.empty() && is_struct) {
        name = std::string(head[i].text);
      }
    }
    if (!is_struct) {
      const bool linkage = !head.empty() && head.front().is("extern");
      return linkage ? true : SkipTo('}', 1);
    }
    // The vendor's programs call the structs of a net that runs from flash input_xip and so on.
    if (absl::EndsWith(name, kFlashSuffix)) name.resize(name.size() - kFlashSuffix.size());
    ParsedStruct parsed;
    parsed.place = {head.front().line, head.front().is_off};
    if (!ReadMembers(name, parsed)) return false;
    if (name == "input" || name == "output" || name == "in_out") {
      if (!Keep(structs_, name, std::move(parsed))) {
        Report(DiagnosticKind::kHeaderSyntax, head.front().line,
               absl::StrCat("a second struct ", name));
      }
    }
    return SkipTo(';', 0);
  }

  bool ReadMembers(const std::string& struct_name, ParsedStruct& parsed) {
    const bool wanted =
        struct_name == "input" || struct_name == "output" || struct_name == "in_out";
    std::vector<Token> tokens;
    int64_t depth = 0;
    while (true) {
      const Token token = lexer_.Next();
      if (token.kind == Token::Kind::kEnd) {
        Report(DiagnosticKind::kHeaderSyntax, token.line,
               absl::StrCat("the file ends within struct ", Printable(struct_name)));
        return false;
      }
      if (token.is('{')) ++depth;
      if (token.is('}') && depth-- == 0) break;
      if (!token.is(';') || depth > 0) {
        if (tokens.size() < kMaxHeadTokens) tokens.push_back(token);
        continue;
      }
      if (wanted) TakeMember(struct_name, tokens, parsed);
      tokens.clear();
    }
    if (!tokens.empty() && wanted) {
      Report(DiagnosticKind::kHeaderSyntax, tokens.front().line,
             absl::StrCat("the last member of struct ", struct_name, " has no ';'"));
    }
    return true;
  }

  void TakeMember(const std::string& struct_name, const std::vector<Token>& tokens,
                  ParsedStruct& parsed) {
    if (tokens.empty()) return;
    Member member;
    member.line = tokens.front().line;
    const std::optional<std::string> problem = ParseMember(tokens, member);
    if (problem.has_value()) {
      Report(DiagnosticKind::kHeaderMemberInvalid, member.line,
             absl::StrCat("struct ", struct_name, ": ", *problem));
      return;
    }
    if (parsed.members.size() > kMaxMembers) return;  // reported already
    if (parsed.members.size() == kMaxMembers) {
      Report(DiagnosticKind::kHeaderMemberInvalid, member.line,
             absl::StrCat("struct ", struct_name, " has more than ", kMaxMembers, " members"));
    }
    parsed.members.push_back(std::move(member));
  }

  // TYPE NAME [DIM]...; the reason where it is not that.
  static std::optional<std::string> ParseMember(const std::vector<Token>& tokens, Member& member) {
    size_t i = 0;
    std::string type;
    while (i + 1 < tokens.size() && tokens[i].kind == Token::Kind::kWord &&
           tokens[i + 1].kind == Token::Kind::kWord) {
      if (!tokens[i].is("const")) absl::StrAppend(&type, type.empty() ? "" : " ", tokens[i].text);
      ++i;
    }
    member.type = std::move(type);
    member.name = std::string(tokens[i++].text);
    while (i < tokens.size()) {
      if (i + 2 >= tokens.size() || !tokens[i].is('[') || !tokens[i + 2].is(']')) {
        return absl::StrCat("member '", Printable(member.name), "' is not NAME[N][N]...");
      }
      member.shape.push_back(tokens[i + 1].kind == Token::Kind::kNumber
                                 ? CLexer::NumberValue(tokens[i + 1].text)
                                 : -1);
      i += 3;
    }
    const absl::Status status = CheckShape(member.shape);
    if (!status.ok()) {
      return absl::StrCat("member '", Printable(member.name), "': ", status.message());
    }
    return std::nullopt;
  }

  // --- from the parsed parts to the model ---

  CompiledModel Assemble() {
    CompiledModel model;
    if (arrays_.empty() && structs_.empty() && sizes_.empty() && strings_.empty()) {
      ReportNoHeader();
      return model;
    }
    SettleFamily(model);
    model.version = strings_["version"].value;
    model.model_md5 = strings_["pb_md5"].value;
    model.npu_unit = strings_["npu_unit"].value;
    model.model_info = strings_["model_info"].value;
    AssembleArrays(model);
    AssemblePorts(model);
    if (family_ == Family::kInteger) TakePortPlaces(model);
    if (!diagnostics_.has_errors()) {
      CheckSize("npu_size", model.npu_size(), "cmd + weight + ops + data");
      CheckSize("total_size", model.total_size(), "npu_size + the structs outside data_content");
      WarnOfSkippedParts();
    }
    return model;
  }

  void TakePortPlaces(CompiledModel& model) {
    int line = 0;
    const auto take = [&](const char* name, int64_t& offset) {
      const auto found = sizes_.find(name);
      if (found == sizes_.end()) return;
      offset = found->second.value;
      line = found->second.place.line;
    };
    take("input_offset", model.input_offset);
    take("output_offset", model.output_offset);
    if (line == 0 || diagnostics_.has_errors()) return;
    const absl::Status status = CheckPortPlaces(model);
    if (status.ok()) return;
    Report(DiagnosticKind::kHeaderSizeMismatch, line, std::string(status.message()));
  }

  // Parts that were taken from within `#if 0`, as one warning.
  void WarnOfSkippedParts() {
    std::vector<std::string> names;
    int line = 0;
    const auto collect = [&](absl::string_view what, const auto& parts) {
      for (const auto& [name, part] : parts) {
        if (!part.place.is_off) continue;
        names.push_back(absl::StrCat(what, name));
        line = line == 0 ? part.place.line : std::min(line, part.place.line);
      }
    };
    collect("struct ", structs_);
    collect("", arrays_);
    collect("", sizes_);
    collect("", strings_);
    if (names.empty()) return;
    Report(
        DiagnosticKind::kHeaderUnusualForm, line,
        absl::StrCat("read although the C compiler skips it (#if 0): ", absl::StrJoin(names, ", ")),
        "take the lines of #if 0 away if the firmware is to have it too");
  }

  // A config, a picture, an empty file: one problem, in place of all that a header has.
  void ReportNoHeader() {
    diagnostics_ = Diagnostics();
    Report(DiagnosticKind::kArtifactUnknown, 0,
           is_empty_ ? "the file is empty"
                     : "neither a model file (NPUCMDL1), nor an NPUB file, nor a C header: it has "
                       "none of a header's "
                       "arrays, structs and constants",
           kFixOfNoArtifact);
  }

  void SettleFamily(CompiledModel& model) {
    const auto cache = arrays_.find("cache_content");
    if (cache != arrays_.end() && family_ != Family::kFixedPoint) {
      family_ = Family::kFixedPoint;
      family_line_ = cache->second.place.line;
    }
    // Headers of these two cores do not name them.
    model.core = std::string(FirstCoreOf(NpuFamily::kFp16).name);
    if (family_ == Family::kFixedPoint) {
      model.core = std::string(FirstCoreOf(NpuFamily::kFixedPoint).name);
      if (!absl::StartsWith(strings_["version"].value, "npuc ")) {
        Report(DiagnosticKind::kHeaderUnsupportedFamily, family_line_,
               absl::StrCat("npu_data_t is signed: this header is for a fixed-point core, and its "
                            "version '",
                            Printable(strings_["version"].value),
                            "' is not npuc's; what its commands "
                            "mean is not published"),
               absl::StrCat("name a header that npuc wrote, or one for ",
                            FirstCoreOf(NpuFamily::kFp16).name));
      }
    } else if (const std::string& name = strings_["npu_core"].value; !name.empty()) {
      const CoreSpec* core = FindCore(name);
      if (core == nullptr || core->limits == nullptr) family_ = Family::kInteger;
      model.core = name;
    }
    if (family_ != Family::kGrus) model.command_set = CommandSet::kInteger;
    for (auto& [name, parsed] : structs_) {
      for (Member& member : parsed.members) SettleType(name, member);
    }
  }

  void SettleType(const std::string& struct_name, Member& member) {
    const std::string& type = member.type;
    if (family_ == Family::kInteger) {
      static constexpr std::pair<absl::string_view, DType> kTypes[] = {
          {"signed char", DType::kInt8},      {"int8_t", DType::kInt8},
          {"unsigned char", DType::kUint8},   {"uint8_t", DType::kUint8},
          {"short", DType::kInt16},           {"int16_t", DType::kInt16},
          {"unsigned short", DType::kUint16}, {"uint16_t", DType::kUint16}};
      for (const auto& [name, dtype] : kTypes) {
        if (type == name) member.dtype = dtype;
      }
    } else if (family_ == Family::kFixedPoint) {
      if (type == "npu_data_t" || type == "short" || type == "int16_t") {
        member.dtype = DType::kInt16;
      }
    } else if (type == "npu_data_t" || type == "unsigned short" || type == "uint16_t") {
      member.dtype = DType::kFloat16;
    } else if (type == "float") {
      member.dtype = DType::kFloat32;
    }
    if (member.dtype != DType::kInvalid) return;
    const absl::string_view allowed = family_ == Family::kGrus ? "is neither npu_data_t nor float"
                                      : family_ == Family::kFixedPoint
                                          ? "is not npu_data_t"
                                          : "is no integer type of 8 or 16 bits";
    Report(DiagnosticKind::kHeaderMemberInvalid, member.line,
           absl::StrCat("struct ", struct_name, ": member type '", Printable(type), "' ", allowed));
    member.dtype = DType::kInt8;  // so that sizes can be counted
  }

  // The number that a macro stands for, in parentheses or not.
  std::optional<double> MacroNumber(const std::string& name) {
    const auto found = macros_.find(name);
    if (found == macros_.end()) {
      Report(DiagnosticKind::kHeaderMissingPart, 0,
             absl::StrCat("no macro ", Printable(name),
                          ": what the stored values stand for is not known"));
      return std::nullopt;
    }
    const CLexer::Macro& macro = *found->second;
    absl::string_view text = macro.value;
    if (absl::ConsumePrefix(&text, "(")) absl::ConsumeSuffix(&text, ")");
    double value = 0;
    if (absl::SimpleAtod(text, &value) && std::isfinite(value)) return value;
    Report(DiagnosticKind::kHeaderSyntax, macro.line,
           absl::StrCat("macro ", Printable(name), " stands for '", Printable(macro.value),
                        "', which is no number"));
    return std::nullopt;
  }

  // Scale and zero point of an integer port.
  void SettleParameters(absl::string_view prefix, PortTensor& port) {
    port.scale = 1;
    const std::string upper = absl::AsciiStrToUpper(port.name);
    if (family_ == Family::kFixedPoint) {
      const std::optional<double> q = MacroNumber(absl::StrCat(upper, "_Q"));
      if (!q.has_value()) return;
      if (*q != std::trunc(*q) || std::fabs(*q) > kLargestQ) {
        Report(DiagnosticKind::kHeaderMemberInvalid, 0,
               absl::StrCat(Printable(upper), "_Q is ", *q, "; a whole number from -", kLargestQ,
                            " to ", kLargestQ, " is allowed"));
        return;
      }
      port.scale = std::ldexp(1.0, -static_cast<int>(*q));
      return;
    }
    const std::optional<double> scale = MacroNumber(absl::StrCat(prefix, upper, "_SCALE"));
    const std::optional<double> zero = MacroNumber(absl::StrCat(prefix, upper, "_ZERO_POINT"));
    if (!scale.has_value() || !zero.has_value()) return;
    if (*scale <= 0 || *zero != std::trunc(*zero) || *zero < INT16_MIN || *zero > UINT16_MAX) {
      Report(DiagnosticKind::kHeaderMemberInvalid, 0,
             absl::StrCat(Printable(port.name), " has scale ", *scale, " and zero point ", *zero,
                          "; a scale is above 0, a zero point a whole number of 16 bits"));
      return;
    }
    port.scale = *scale;
    port.zero_point = static_cast<int64_t>(*zero);
  }

  void AssembleArrays(CompiledModel& model) {
    for (const absl::string_view name : {"cmd_content", "weight_content", "data_content"}) {
      if (arrays_.count(std::string(name)) != 0) continue;
      Report(DiagnosticKind::kHeaderMissingPart, 0,
             absl::StrCat("no array whose name ends in ", name));
    }
    for (auto& [name, array] : arrays_) {
      const bool data = name == "data_content";
      const int64_t values = static_cast<int64_t>(array.bytes.size());
      if (values != array.declared_size && (!data || values != 0)) {
        Report(DiagnosticKind::kHeaderSizeMismatch, array.place.line,
               absl::StrCat(name, " is declared with ", array.declared_size, " bytes, but has ",
                            values, " values"));
      }
    }
    model.cmd_content = std::move(arrays_["cmd_content"].bytes);
    model.weight_content = std::move(arrays_["weight_content"].bytes);
    model.ops_content = std::move(arrays_["ops_content"].bytes);
    model.data_bytes = arrays_["data_content"].declared_size;
  }

  void CheckSize(const std::string& name, int64_t computed, absl::string_view what) {
    const auto it = sizes_.find(name);
    if (it == sizes_.end() || it->second.value == computed) return;
    Report(DiagnosticKind::kHeaderUnusualForm, it->second.place.line,
           absl::StrCat(name, " is ", it->second.value, ", but ", what, " is ", computed,
                        ", which counts"),
           absl::StrCat("write ", computed, ", or compile the model again"));
  }

  std::vector<PortTensor> Ports(const ParsedStruct& parsed) {
    std::vector<PortTensor> ports;
    int64_t offset = 0;
    std::map<std::string, int> seen;
    for (const Member& member : parsed.members) {
      if (!seen.emplace(member.name, member.line).second) {
        Report(DiagnosticKind::kHeaderMemberInvalid, member.line,
               absl::StrCat("a second member ", Printable(member.name)));
      }
      ports.push_back({member.name, member.shape, member.dtype, offset, -1});
      offset += ElementCount(member.shape) * SizeOf(member.dtype);
    }
    return ports;
  }

  void AssemblePorts(CompiledModel& model) {
    for (const char* name : {"input", "output"}) {
      if (structs_.count(name) != 0) continue;
      Report(DiagnosticKind::kHeaderMissingPart, 0, absl::StrCat("no struct ", name));
    }
    if (diagnostics_.has_errors()) return;
    model.inputs = Ports(structs_["input"]);
    model.outputs = Ports(structs_["output"]);
    if (family_ != Family::kGrus) {
      for (const CLexer::Macro& macro : lexer_.macros()) macros_.emplace(macro.name, &macro);
      for (PortTensor& port : model.inputs) SettleParameters("INPUT_", port);
      for (PortTensor& port : model.outputs) SettleParameters("OUTPUT_", port);
      if (diagnostics_.has_errors()) return;  // states are told by their parameters, too
    }
    for (const Member& member : structs_["input"].members) {
      if (member.dtype != DType::kFloat32) continue;
      Report(DiagnosticKind::kHeaderMemberInvalid, member.line,
             absl::StrCat("input ", Printable(member.name), " is no npu_data_t"));
    }
    PairStates(model, CheckInOut(model));
  }

  // Which outputs are states: those that struct in_out leaves out. Without the struct, all outputs
  // count as candidates that a name has to confirm.
  std::vector<bool> CheckInOut(const CompiledModel& model) {
    std::vector<bool> state(model.outputs.size(), true);
    const auto in_out = structs_.find("in_out");
    if (in_out == structs_.end()) return state;
    std::map<absl::string_view, const Member*> members;
    for (const Member& member : in_out->second.members) members.emplace(member.name, &member);
    const auto take = [&](const PortTensor& port) {
      const auto it = members.find(port.name);
      if (it == members.end()) return false;
      if (it->second->dtype != port.dtype || it->second->shape != port.shape) {
        Report(DiagnosticKind::kHeaderMemberInvalid, it->second->line,
               absl::StrCat("member ", Printable(port.name), " of struct in_out is ",
                            TypeToString({it->second->dtype, it->second->shape}), ", elsewhere ",
                            TypeToString({port.dtype, port.shape})));
      }
      members.erase(it);
      return true;
    };
    for (const PortTensor& port : model.inputs) {
      if (take(port)) continue;
      Report(DiagnosticKind::kHeaderMemberInvalid, in_out->second.place.line,
             absl::StrCat("struct in_out lacks input ", Printable(port.name)));
    }
    for (size_t i = 0; i < model.outputs.size(); ++i) state[i] = !take(model.outputs[i]);
    for (const auto& [name, member] : members) {
      Report(DiagnosticKind::kHeaderMemberInvalid, member->line,
             absl::StrCat("member ", Printable(name),
                          " of struct in_out is in neither struct input nor struct output"));
    }
    return state;
  }

  // Whether an output's bytes can be the next frame's input.
  static bool CanFeed(const PortTensor& output, const PortTensor& input) {
    return output.shape == input.shape && output.dtype == input.dtype &&
           output.scale == input.scale && output.zero_point == input.zero_point;
  }

  void PairStates(CompiledModel& model, const std::vector<bool>& is_state) {
    std::vector<bool> paired(model.inputs.size(), false);
    const auto pair = [&](PortTensor& output, size_t input) {
      output.state_input = static_cast<int>(input);
      paired[input] = true;
    };
    std::map<std::string, size_t> input_of;  // by the name that its state output would have
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      input_of.emplace(absl::StrCat(model.inputs[i].name, "_out"), i);
      input_of.emplace(absl::StrCat("model_", model.inputs[i].name, "_out"), i);
    }
    for (size_t i = 0; i < model.outputs.size(); ++i) {
      PortTensor& output = model.outputs[i];
      const auto it = input_of.find(output.name);
      if (!is_state[i] || it == input_of.end() || paired[it->second]) continue;
      if (CanFeed(output, model.inputs[it->second])) {
        pair(output, it->second);
      }
    }
    if (structs_.count("in_out") == 0) return;
    size_t next = 0;
    for (size_t i = 0; i < model.outputs.size(); ++i) {
      PortTensor& output = model.outputs[i];
      if (!is_state[i] || output.state_input >= 0) continue;
      size_t at = next;
      while (at < model.inputs.size() && (paired[at] || !CanFeed(output, model.inputs[at]))) {
        ++at;
      }
      if (at < model.inputs.size()) {
        pair(output, at);
        next = at + 1;
        continue;
      }
      Report(DiagnosticKind::kHeaderStateUnpaired, structs_["output"].place.line,
             absl::StrCat("output ", Printable(output.name), " ",
                          TypeToString({output.dtype, output.shape}),
                          " is not in struct in_out, so it is a state, but no input left has its "
                          "shape"),
             "add it to struct in_out, or give its state input the same shape");
    }
  }

  CLexer lexer_;
  const bool is_empty_;
  Family family_ = Family::kGrus;
  int family_line_ = 0;
  std::string file_name_;
  Diagnostics diagnostics_;
  std::map<std::string, ParsedStruct> structs_;
  std::map<std::string, ParsedArray> arrays_;
  std::map<std::string, ParsedConstant> sizes_;
  std::map<std::string, ParsedText> strings_;
  std::map<absl::string_view, const CLexer::Macro*> macros_;
};

}  // namespace

absl::StatusOr<CompiledModel> ReadCHeader(absl::string_view text, absl::string_view file_name,
                                          Diagnostics& diagnostics) {
  if (static_cast<int64_t>(text.size()) > kMaxArtifactBytes) {
    diagnostics.Add({.kind = DiagnosticKind::kHeaderSyntax,
                     .message = absl::StrCat("a header of ", text.size(), " bytes; at most ",
                                             kMaxArtifactBytes, " are read"),
                     .file = std::string(file_name),
                     .fix = kFixOfNoArtifact});
    return diagnostics.ToStatus();
  }
  Reader reader(text, file_name);
  CompiledModel model = reader.Run();
  diagnostics.Append(reader.diagnostics());
  if (reader.diagnostics().has_errors()) return reader.diagnostics().ToStatus();
  RETURN_IF_ERROR(CheckArtifactLimits(model, file_name, diagnostics));
  return model;
}

}  // namespace npuc
