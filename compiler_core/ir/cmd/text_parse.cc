#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/text.h"
#include "compiler_core/ir/graph/text_cursor.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;

constexpr size_t kMaxPorts = size_t{1} << 16;
constexpr size_t kMaxBuffers = size_t{1} << 22;
constexpr size_t kMaxCommands = size_t{1} << 22;
constexpr size_t kMaxWords = 4096;  // of a raw command
constexpr int64_t kMaxBytes = int64_t{1} << 40;

// The fields of one command as they are read: each once, and only those of its kind.
class Fields {
 public:
  Fields(TextCursor& cursor, const std::string& kind) : cursor_(cursor), kind_(kind) {}

  // Moves on to the next field or flag of this command; false where the command ends.
  absl::StatusOr<bool> Next() {
    cursor_.Skip();
    before_ = cursor_;
    const TextCursor start = cursor_;
    const absl::string_view word = cursor_.Word(false);
    if (word.empty()) {
      cursor_ = start;
      return false;
    }
    name_ = std::string(word);
    has_value_ = cursor_.Accept('=');
    constexpr absl::string_view kFlags[] = {"average", "over_middle", "a_is_immediate",
                                            "bias",    "no_wait",     "interrupt"};
    const bool flag = std::find(std::begin(kFlags), std::end(kFlags), word) != std::end(kFlags);
    if (!has_value_ && !flag) {
      cursor_ = start;  // the next command
      return false;
    }
    if (!seen_.insert(name_).second) return Error(absl::StrCat("'", name_, "' is given twice"));
    return true;
  }
  bool Is(absl::string_view name) const { return has_value_ && name_ == name; }
  bool IsFlag(absl::string_view name) const { return !has_value_ && name_ == name; }
  absl::Status Unknown() const {
    return Error(absl::StrCat(kind_, " has no ", has_value_ ? "field" : "flag", " '",
                              Printable(name_), "'"));
  }
  absl::Status Error(absl::string_view what) const { return before_.Error(what); }

 private:
  TextCursor& cursor_;
  TextCursor before_{""};  // where the field begins
  const std::string kind_;
  std::string name_;
  bool has_value_ = false;
  std::set<std::string> seen_;
};

class ProgramParser {
 public:
  ProgramParser(absl::string_view text, const ProgramParseOptions& options)
      : cursor_(text), options_(options) {}

  absl::StatusOr<Program> Parse() {
    RETURN_IF_ERROR(cursor_.ExpectWord("program"));
    RETURN_IF_ERROR(cursor_.Expect('{'));
    if (NextIs("data")) {
      RETURN_IF_ERROR(cursor_.ExpectWord("data"));
      RETURN_IF_ERROR(Number(0, kMaxBytes, program_.data_bytes));
    }
    while (NextIs("weights")) RETURN_IF_ERROR(ParseWeights());
    while (NextIs("input")) RETURN_IF_ERROR(ParsePort("input", program_.inputs));
    while (NextIs("output")) RETURN_IF_ERROR(ParsePort("output", program_.outputs));
    while (cursor_.Peek() == '%') RETURN_IF_ERROR(ParseBuffer());
    while (cursor_.Peek() != '}') RETURN_IF_ERROR(ParseCommand());
    RETURN_IF_ERROR(cursor_.Expect('}'));
    if (!cursor_.AtEnd()) return cursor_.Expected("the end of the text");
    return std::move(program_);
  }

 private:
  bool NextIs(absl::string_view word) const {
    TextCursor ahead = cursor_;
    return ahead.Word(false) == word;
  }

  // An integer: decimal, or with 0x and digits in hex where `hex`.
  template <typename T>
  absl::Status Number(int64_t lo, int64_t hi, T& result, bool hex = false) {
    cursor_.Skip();
    const TextCursor before = cursor_;
    absl::string_view word = cursor_.Word(true);
    if (hex && !absl::ConsumePrefix(&word, "0x")) return before.Expected("a number 0x...");
    return Converted(before, word, lo, hi, hex ? 16 : 10, result);
  }

  template <typename T>
  absl::Status Converted(const TextCursor& before, absl::string_view word, int64_t lo, int64_t hi,
                         int base, T& result) {
    int64_t value = 0;
    const char* const end = word.data() + word.size();
    const std::from_chars_result read = std::from_chars(word.data(), end, value, base);
    if (word.empty() || read.ec != std::errc() || read.ptr != end || value < lo || value > hi) {
      return before.Error(
          absl::StrCat("expected a number from ", lo, " to ", hi, base == 16 ? ", in hex" : ""));
    }
    result = static_cast<T>(value);
    return absl::OkStatus();
  }

  // Numbers of type T with a separator that belongs to words ("2x3x4").
  template <typename T, size_t N>
  absl::Status Product(std::array<T, N>& result) {
    cursor_.Skip();
    const TextCursor before = cursor_;
    absl::string_view rest = cursor_.Word(false);
    for (size_t i = 0; i < N; ++i) {
      const size_t end = i + 1 < N ? rest.find('x') : rest.size();
      if (end == absl::string_view::npos) {
        return before.Error(absl::StrCat("expected ", N, " numbers with x between them"));
      }
      RETURN_IF_ERROR(
          Converted(before, rest.substr(0, end), 0, std::numeric_limits<T>::max(), 10, result[i]));
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    return absl::OkStatus();
  }

  absl::Status Strides(uint16_t& outer, uint16_t& middle) {
    RETURN_IF_ERROR(Number(0, 0xffff, outer));
    RETURN_IF_ERROR(cursor_.Expect(','));
    return Number(0, 0xffff, middle);
  }

  absl::Status ParseWeights() {
    RETURN_IF_ERROR(cursor_.ExpectWord("weights"));
    cursor_.Skip();
    const TextCursor before = cursor_;
    if (cursor_.Peek() != '"') {
      return before.Error("weights without their bytes in hex; print the program in full");
    }
    ASSIGN_OR_RETURN(const absl::string_view hex, cursor_.RawQuoted());
    std::vector<uint8_t> bytes;
    if (!ParseHex(hex, bytes)) return before.Error("weights are not pairs of hex digits");
    program_.weights.insert(program_.weights.end(), bytes.begin(), bytes.end());
    if (static_cast<int64_t>(program_.weights.size()) > options_.max_weight_bytes) {
      return before.Error(absl::StrCat("more than ", options_.max_weight_bytes, " weight bytes"));
    }
    return absl::OkStatus();
  }

  absl::Status ParsePort(absl::string_view keyword, std::vector<PortTensor>& ports) {
    RETURN_IF_ERROR(cursor_.ExpectWord(keyword));
    cursor_.Skip();
    const TextCursor before = cursor_;
    PortTensor port;
    ASSIGN_OR_RETURN(port.name, cursor_.String(TextCursor::kMaxNameBytes));
    ASSIGN_OR_RETURN(const absl::string_view dtype, cursor_.Name("an element type such as f16"));
    port.dtype = DTypeFromName(dtype);
    if (port.dtype == DType::kInvalid) return before.Error("an element type that there is not");
    RETURN_IF_ERROR(ParseShape(port.shape));
    RETURN_IF_ERROR(cursor_.Expect('@'));
    RETURN_IF_ERROR(Number(0, kMaxBytes, port.offset_bytes));
    if (keyword == "output") {
      RETURN_IF_ERROR(cursor_.ExpectWord("state"));
      RETURN_IF_ERROR(
          Number(-1, static_cast<int64_t>(program_.inputs.size()) - 1, port.state_input));
    }
    if (ports.size() == kMaxPorts) {
      return before.Error(absl::StrCat("more than ", kMaxPorts, " ", keyword, "s"));
    }
    ports.push_back(std::move(port));
    return absl::OkStatus();
  }

  absl::Status ParseShape(Shape& shape) {
    const TextCursor before = cursor_;
    RETURN_IF_ERROR(cursor_.Expect('['));
    if (cursor_.Accept(']')) return absl::OkStatus();
    do {
      int64_t dim = 0;
      RETURN_IF_ERROR(Number(0, kMaxElements, dim));
      shape.push_back(dim);
    } while (shape.size() <= static_cast<size_t>(kMaxRank) && cursor_.Accept(','));
    const absl::Status status = CheckShape(shape);
    if (!status.ok()) return before.Error(status.message());
    return cursor_.Expect(']');
  }

  absl::Status ParseBuffer() {
    const TextCursor before = cursor_;
    RETURN_IF_ERROR(cursor_.Expect('%'));
    if (program_.buffers.size() == kMaxBuffers) {
      return before.Error(absl::StrCat("more than ", kMaxBuffers, " buffers"));
    }
    const int64_t next = static_cast<int64_t>(program_.buffers.size());
    int64_t id = 0;
    RETURN_IF_ERROR(Number(0, static_cast<int64_t>(kMaxBuffers), id));
    if (id != next) return before.Error(absl::StrCat("buffers count up; this one is %", next));
    Buffer buffer;
    ASSIGN_OR_RETURN(buffer.slot, ParseEnum<Slot>(0, kSlotCount, "a slot such as data"));
    RETURN_IF_ERROR(Number(0, kMaxBytes, buffer.size_bytes));
    RETURN_IF_ERROR(cursor_.Expect('@'));
    RETURN_IF_ERROR(Number(-1, kMaxBytes, buffer.offset_bytes));
    ASSIGN_OR_RETURN(buffer.name, cursor_.String(TextCursor::kMaxNameBytes));
    program_.buffers.push_back(std::move(buffer));
    return absl::OkStatus();
  }

  // One of the enumerators from..count-1 by its name.
  template <typename E>
  absl::StatusOr<E> ParseEnum(int from, int count, absl::string_view what) {
    cursor_.Skip();
    const TextCursor before = cursor_;
    const absl::string_view word = cursor_.Word(false);
    for (int i = from; i < count; ++i) {
      if (NameOf(static_cast<E>(i)) == word) return static_cast<E>(i);
    }
    return before.Expected(what);
  }

  absl::Status ParseOperand(Operand& operand) {
    const TextCursor before = cursor_;
    RETURN_IF_ERROR(cursor_.Expect('%'));
    int32_t id = 0;
    RETURN_IF_ERROR(
        Converted(before, cursor_.Word(false), 0, static_cast<int64_t>(kMaxBuffers), 10, id));
    if (static_cast<size_t>(id) >= program_.buffers.size()) {
      return before.Error(absl::StrCat("there is no buffer %", id));
    }
    operand.buffer = BufferId(id);
    RETURN_IF_ERROR(cursor_.Expect('+'));
    return Number(0, kMaxBytes, operand.offset_bytes, /*hex=*/true);
  }

  // Fields that every command has.
  absl::StatusOr<bool> ParseCommon(const Fields& fields, Command& command) {
    if (fields.IsFlag("no_wait")) {
      command.waits = false;
    } else if (fields.IsFlag("interrupt")) {
      command.interrupts = true;
    } else if (fields.Is("link")) {
      uint32_t link = 0;
      RETURN_IF_ERROR(Number(0, 0xffffffff, link, true));
      command.link = link;
    } else if (fields.Is("node")) {
      ASSIGN_OR_RETURN(command.node, cursor_.String(TextCursor::kMaxNameBytes));
    } else {
      return false;
    }
    return true;
  }

  absl::Status ParseCommand() {
    cursor_.Skip();
    const TextCursor before = cursor_;
    ASSIGN_OR_RETURN(const absl::string_view word, cursor_.Name("a command or '}'"));
    if (program_.commands.size() == kMaxCommands) {
      return before.Error(absl::StrCat("more than ", kMaxCommands, " commands"));
    }
    const std::string kind(word);
    Command command;
    if (kind == "fully_connected") {
      RETURN_IF_ERROR(ParseFullyConnected(kind, command));
    } else if (kind == "raw" || kind == "convolution" || kind == "depthwise" ||
               kind == "transpose") {
      RETURN_IF_ERROR(ParseRaw(before, kind, command));
    } else {
      RETURN_IF_ERROR(ParseVector(before, kind, command));
    }
    program_.commands.push_back(std::move(command));
    return absl::OkStatus();
  }

  absl::Status ParseVector(const TextCursor& before, const std::string& kind, Command& command) {
    constexpr int kKinds = static_cast<int>(Kind::kBatchNorm) + 1;
    VectorCommand v;
    int index = 0;
    while (index < kKinds && NameOf(static_cast<Kind>(index)) != kind) ++index;
    if (index == kKinds) return before.Error(absl::StrCat("no command '", Printable(kind), "'"));
    v.kind = static_cast<Kind>(index);
    Fields fields(cursor_, kind);
    while (true) {
      ASSIGN_OR_RETURN(const bool more, fields.Next());
      if (!more) break;
      ASSIGN_OR_RETURN(const bool common, ParseCommon(fields, command));
      if (!common) RETURN_IF_ERROR(ParseVectorField(fields, v));
    }
    command.body = v;
    return absl::OkStatus();
  }

  absl::Status ParseVectorField(const Fields& fields, VectorCommand& v) {
    if (fields.Is("op")) {
      constexpr int kCount = static_cast<int>(Arithmetic::kLog) + 1;
      ASSIGN_OR_RETURN(v.arithmetic, ParseEnum<Arithmetic>(0, kCount, "an operation such as add"));
      return absl::OkStatus();
    }
    if (fields.Is("f")) {
      constexpr int kCount = static_cast<int>(Activation::kSelu) + 1;
      ASSIGN_OR_RETURN(v.activation, ParseEnum<Activation>(0, kCount, "a function such as relu"));
      return absl::OkStatus();
    }
    if (fields.Is("window")) {
      std::array<uint8_t, 2> window = {};
      RETURN_IF_ERROR(Product(window));
      v.window_h = window[0];
      v.window_w = window[1];
      return absl::OkStatus();
    }
    if (fields.Is("ext")) return Product(v.extents);
    if (fields.Is("a_stride")) return Strides(v.a_outer_stride, v.a_middle_stride);
    if (fields.Is("d_stride")) return Strides(v.d_outer_stride, v.d_middle_stride);
    if (fields.Is("imm")) return Number(0, 0xffff, v.immediate, true);
    if (fields.Is("a")) return ParseOperand(v.a);
    if (fields.Is("b")) return ParseOperand(v.b);
    if (fields.Is("c")) return ParseOperand(v.c);
    if (fields.Is("d")) return ParseOperand(v.d);
    for (const auto& [name, flag] : {std::pair{"average", &v.average},
                                     {"over_middle", &v.reduce_middle},
                                     {"a_is_immediate", &v.a_is_immediate}}) {
      if (!fields.IsFlag(name)) continue;
      *flag = true;
      return absl::OkStatus();
    }
    return fields.Unknown();
  }

  absl::Status ParseFullyConnected(const std::string& kind, Command& command) {
    FullyConnectedCommand fc;
    Fields fields(cursor_, kind);
    while (true) {
      ASSIGN_OR_RETURN(const bool more, fields.Next());
      if (!more) break;
      ASSIGN_OR_RETURN(const bool common, ParseCommon(fields, command));
      if (common) continue;
      absl::Status status;
      if (fields.Is("a")) {
        status = ParseOperand(fc.a);
      } else if (fields.Is("codes")) {
        status = ParseOperand(fc.codes);
      } else if (fields.Is("mask")) {
        status = ParseOperand(fc.mask);
      } else if (fields.Is("d")) {
        status = ParseOperand(fc.d);
      } else if (fields.Is("n")) {
        status = Number(0, 0xffff, fc.n);
      } else if (fields.Is("k")) {
        status = Number(0, 0xffff, fc.k);
      } else if (fields.Is("min")) {
        status = Number(0, 0xffff, fc.min, true);
      } else if (fields.Is("step")) {
        status = Number(0, 0xffff, fc.step, true);
      } else if (fields.Is("book")) {
        status = Number(0, 0xff, fc.form.book_bits);
      } else if (fields.Is("exp_bits")) {
        status = Number(0, 0xff, fc.form.exponent_bits);
      } else {
        status = fields.Unknown();
      }
      RETURN_IF_ERROR(status);
    }
    command.body = fc;
    return absl::OkStatus();
  }

  absl::Status ParseWords(RawCommand& raw) {
    do {
      cursor_.Skip();
      const TextCursor before = cursor_;
      uint32_t word = 0;
      RETURN_IF_ERROR(Converted(before, cursor_.Word(false), 0, 0xffffffff, 16, word));
      if (raw.words.size() == kMaxWords) {
        return before.Error(absl::StrCat("more than ", kMaxWords, " words"));
      }
      raw.words.push_back(word);
    } while (cursor_.Accept(','));
    return absl::OkStatus();
  }

  // The words say everything; what is printed beside them for people must agree, so it is compared
  // with what would be printed.
  absl::Status ParseRaw(const TextCursor& before, const std::string& kind, Command& command) {
    RawCommand raw;
    std::string shown;
    Fields fields(cursor_, kind);
    while (true) {
      ASSIGN_OR_RETURN(const bool more, fields.Next());
      if (!more) break;
      ASSIGN_OR_RETURN(const bool common, ParseCommon(fields, command));
      if (!common) RETURN_IF_ERROR(ParseRawField(fields, raw, shown));
    }
    std::string expected;
    const absl::string_view name = NameOf(Command{raw, true, false, "", {}});
    const bool understood = AppendRawForm(raw, expected);
    if (kind != (understood ? name : "raw")) {
      return before.Error(
          absl::StrCat("the words are not those of a ", kind, " command of opcode ", raw.opcode));
    }
    if (shown != expected) {
      return before.Error(absl::StrCat("the words say '", absl::StripPrefix(expected, " "),
                                       "', the text '", absl::StripPrefix(shown, " "), "'"));
    }
    command.body = std::move(raw);
    return absl::OkStatus();
  }

  absl::Status ParseRawField(const Fields& fields, RawCommand& raw, std::string& shown) {
    if (fields.Is("opcode")) return Number(0, 0xff, raw.opcode, true);
    if (fields.Is("a")) return ParseOperand(raw.a);
    if (fields.Is("weights")) return ParseOperand(raw.weights);
    if (fields.Is("mask")) return ParseOperand(raw.mask);
    if (fields.Is("d")) return ParseOperand(raw.d);
    if (fields.Is("words")) return ParseWords(raw);
    if (fields.IsFlag("bias")) {
      absl::StrAppend(&shown, " bias");
      return absl::OkStatus();
    }
    for (const absl::string_view name : {"in", "out"}) {
      if (!fields.Is(name)) continue;
      Shape shape;
      RETURN_IF_ERROR(ParseShape(shape));
      absl::StrAppend(&shown, " ", name, "=", ShapeToString(shape));
      return absl::OkStatus();
    }
    for (const absl::string_view name :
         {"kernel", "stride", "pad_left", "min", "step", "book", "exp_bits", "rows", "columns"}) {
      if (!fields.Is(name)) continue;
      ASSIGN_OR_RETURN(const absl::string_view word, cursor_.Name("a number"));
      absl::StrAppend(&shown, " ", name, "=", word);
      return absl::OkStatus();
    }
    return fields.Unknown();
  }

  TextCursor cursor_;
  const ProgramParseOptions& options_;
  Program program_;
};

}  // namespace

absl::StatusOr<Program> ParseProgram(absl::string_view text, const ProgramParseOptions& options) {
  if (static_cast<int64_t>(text.size()) > options.max_text_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("text of ", text.size(), " bytes; at most ", options.max_text_bytes));
  }
  return ProgramParser(text, options).Parse();
}

}  // namespace npuc
