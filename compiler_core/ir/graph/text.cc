#include "compiler_core/ir/graph/text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/graph/text_cursor.h"

namespace npuc {
namespace {

constexpr int64_t kMaxListItems = int64_t{1} << 20;
constexpr int64_t kMaxNodes = int64_t{1} << 22;
constexpr size_t kMaxNameBytes = TextCursor::kMaxNameBytes;

// ---- printing -----------------------------------------------------------------------------------

void AppendFloat(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  const absl::string_view digits(buffer, result.ptr - buffer);
  absl::StrAppend(&out, digits);
  if (digits.find_first_of(".e") == absl::string_view::npos) out += ".0";
}

bool AllElementsEqual(const Tensor& tensor) {
  const absl::Span<const uint8_t> bytes = tensor.bytes();
  const size_t size = SizeOf(tensor.dtype());
  // Every byte equals the one an element before it.
  return bytes.size() >= 2 * size &&
         std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

void AppendTensor(const Tensor& tensor, const PrintOptions& options, std::string& out) {
  absl::StrAppend(&out, TypeToString(tensor.type()), " ");
  const int64_t size_bytes = static_cast<int64_t>(tensor.bytes().size());
  if (options.max_constant_bytes >= 0 && size_bytes > options.max_constant_bytes) {
    out += "elided";
    return;
  }
  const bool splat = AllElementsEqual(tensor);
  if (splat) out += "splat ";
  out.push_back('"');
  AppendHex(splat ? tensor.bytes().subspan(0, SizeOf(tensor.dtype())) : tensor.bytes(), out);
  out.push_back('"');
}

struct AttrPrinter {
  const PrintOptions& options;
  std::string& out;

  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(int64_t value) const { absl::StrAppend(&out, value); }
  void operator()(double value) const { AppendFloat(value, out); }
  void operator()(const std::string& value) const { AppendQuoted(value, out); }
  void operator()(const std::vector<int64_t>& values) const {
    absl::StrAppend(&out, "[", absl::StrJoin(values, ", "), "]");
  }
  void operator()(const std::vector<double>& values) const {
    out.push_back('[');
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ", ";
      AppendFloat(values[i], out);
    }
    out.push_back(']');
  }
  void operator()(const Tensor& value) const { AppendTensor(value, options, out); }
};

void AppendNode(const Graph& graph, const Node& node, const PrintOptions& options,
                std::string& out) {
  const auto append_id = [](std::string* text, ValueId id) {
    absl::StrAppend(text, "%", id.value());
  };
  absl::StrAppend(&out, "  ", absl::StrJoin(node.outputs, ", ", append_id), " = ", NameOf(node.op),
                  "(", absl::StrJoin(node.inputs, ", ", append_id), ")");
  if (!node.attrs.empty()) {
    absl::string_view separator = " {";
    for (const auto& [name, value] : node.attrs) {
      absl::StrAppend(&out, separator, name, " = ");
      std::visit(AttrPrinter{options, out}, value);
      separator = ", ";
    }
    out.push_back('}');
  }
  absl::StrAppend(&out, " : ",
                  absl::StrJoin(node.outputs, ", ", [&graph](std::string* text, ValueId id) {
                    absl::StrAppend(text, TypeToString(graph.type(id)));
                  }));
  // A Placeholder's operator type says nothing; it is left out where it is the usual one.
  const bool print_op =
      !node.source.op.empty() && !(node.op == Op::kPlaceholder && node.source.op == "Placeholder");
  if (!node.source.name.empty() || print_op) {
    out += " @";
    AppendQuoted(node.source.name, out);
  }
  if (print_op) {
    out += " (";
    AppendQuoted(node.source.op, out);
    out += ")";
  }
  out.push_back('\n');
}

// ---- parsing ------------------------------------------------------------------------------------

class Parser {
 public:
  Parser(absl::string_view text, const ParseOptions& options)
      : cursor_(text), constant_bytes_left_(options.max_constant_bytes) {}

  absl::StatusOr<Graph> Parse();

 private:
  absl::Status ParseNode();
  absl::Status ParseReturn();
  absl::StatusOr<ValueId> ParseUse();
  absl::StatusOr<std::vector<std::string>> ParseResultNames();
  absl::StatusOr<std::vector<ValueId>> ParseOperands();
  absl::StatusOr<std::vector<TensorType>> ParseTypes(size_t count);
  absl::StatusOr<AttrMap> ParseAttrs();
  absl::StatusOr<Attr> ParseAttr();
  absl::StatusOr<Attr> ParseList();
  absl::StatusOr<Attr> ParseNumber();
  absl::StatusOr<Tensor> ParseTensor();
  absl::StatusOr<TensorType> ParseType();
  absl::Status ParseSource(NodeSource& source);

  TextCursor cursor_;
  int64_t constant_bytes_left_;
  Graph graph_;
  absl::flat_hash_map<std::string, ValueId> values_;
};

absl::StatusOr<TensorType> Parser::ParseType() {
  cursor_.Skip();
  const TextCursor before = cursor_;
  TensorType type;
  type.dtype = DTypeFromName(cursor_.Word(false));
  if (type.dtype == DType::kInvalid) return before.Expected("an element type such as f32");
  RETURN_IF_ERROR(cursor_.Expect('['));
  if (!cursor_.Accept(']')) {
    do {
      ASSIGN_OR_RETURN(const Attr dim, ParseNumber());
      if (!std::holds_alternative<int64_t>(dim)) return before.Error("a dimension not an integer");
      type.shape.push_back(std::get<int64_t>(dim));
      if (type.shape.size() > static_cast<size_t>(kMaxRank)) break;
    } while (cursor_.Accept(','));
    const absl::Status status = CheckShape(type.shape);
    if (!status.ok()) return before.Error(status.message());
    RETURN_IF_ERROR(cursor_.Expect(']'));
  }
  return type;
}

absl::StatusOr<Tensor> Parser::ParseTensor() {
  cursor_.Skip();
  const TextCursor before = cursor_;
  ASSIGN_OR_RETURN(TensorType type, ParseType());
  bool splat = false;
  if (cursor_.Peek() != '"') {
    const absl::string_view word = cursor_.Word(false);
    if (word == "elided") return before.Error("an elided constant; print the graph in full");
    if (word != "splat") return before.Error("a tensor without its \"bytes\" in hex");
    splat = true;
  }
  const int64_t size_bytes = type.size_bytes();
  if (size_bytes > constant_bytes_left_) return before.Error("too many bytes of constants");
  constant_bytes_left_ -= size_bytes;
  ASSIGN_OR_RETURN(const absl::string_view hex, cursor_.RawQuoted());
  std::vector<uint8_t> bytes;
  if (!ParseHex(hex, bytes)) return before.Error("tensor bytes are not pairs of hex digits");
  const int64_t expected = splat ? SizeOf(type.dtype) : size_bytes;
  if (static_cast<int64_t>(bytes.size()) != expected) {
    return before.Error(
        absl::StrCat("tensor has ", bytes.size(), " bytes; its type has ", expected));
  }
  if (splat) {
    const std::vector<uint8_t> element = std::move(bytes);
    bytes = std::vector<uint8_t>(size_bytes);
    for (int64_t i = 0; i < size_bytes; i += expected) {
      std::memcpy(bytes.data() + i, element.data(), expected);
    }
  }
  return Tensor(std::move(type), std::move(bytes));
}

absl::StatusOr<Attr> Parser::ParseNumber() {
  cursor_.Skip();
  const TextCursor before = cursor_;
  const absl::string_view word = cursor_.Word(true);
  const char* const end = word.data() + word.size();
  int64_t integer = 0;
  const std::from_chars_result as_int = std::from_chars(word.data(), end, integer);
  if (!word.empty() && as_int.ec == std::errc() && as_int.ptr == end) return Attr(integer);
  double real = 0;
  const std::from_chars_result as_float = std::from_chars(word.data(), end, real);
  const bool floating =
      word.find_first_of(".ein") != absl::string_view::npos;  // 1.5, 1e9, inf, nan
  if (word.empty() || as_float.ec != std::errc() || as_float.ptr != end || !floating) {
    return before.Expected("a number in range");
  }
  return Attr(std::isnan(real) ? std::numeric_limits<double>::quiet_NaN() : real);
}

absl::StatusOr<Attr> Parser::ParseList() {
  const TextCursor before = cursor_;
  RETURN_IF_ERROR(cursor_.Expect('['));
  std::vector<int64_t> ints;
  std::vector<double> floats;
  if (cursor_.Accept(']')) return Attr(ints);
  do {
    ASSIGN_OR_RETURN(const Attr item, ParseNumber());
    if (const int64_t* integer = std::get_if<int64_t>(&item)) {
      ints.push_back(*integer);
    } else {
      floats.push_back(std::get<double>(item));
    }
    if (!ints.empty() && !floats.empty()) return before.Error("a list of both integers and floats");
    if (static_cast<int64_t>(ints.size() + floats.size()) > kMaxListItems) {
      return before.Error(absl::StrCat("a list of more than ", kMaxListItems, " items"));
    }
  } while (cursor_.Accept(','));
  RETURN_IF_ERROR(cursor_.Expect(']'));
  if (!floats.empty()) return Attr(std::move(floats));
  return Attr(std::move(ints));
}

absl::StatusOr<Attr> Parser::ParseAttr() {
  const char c = cursor_.Peek();
  if (c == '"') {
    ASSIGN_OR_RETURN(std::string text, cursor_.String(size_t{1} << 20));
    return Attr(std::move(text));
  }
  if (c == '[') return ParseList();
  const TextCursor before = cursor_;
  const absl::string_view word = cursor_.Word(true);
  if (word == "true" || word == "false") return Attr(word == "true");
  const bool tensor = DTypeFromName(word) != DType::kInvalid;
  cursor_ = before;
  if (!tensor) return ParseNumber();
  ASSIGN_OR_RETURN(Tensor value, ParseTensor());
  return Attr(std::move(value));
}

absl::StatusOr<AttrMap> Parser::ParseAttrs() {
  AttrMap attrs;
  if (!cursor_.Accept('{')) return attrs;
  do {
    cursor_.Skip();
    const TextCursor before = cursor_;
    ASSIGN_OR_RETURN(const absl::string_view name, cursor_.Name("an attribute name"));
    RETURN_IF_ERROR(cursor_.Expect('='));
    ASSIGN_OR_RETURN(Attr value, ParseAttr());
    if (!attrs.emplace(std::string(name), std::move(value)).second) {
      return before.Error(absl::StrCat("attribute '", name, "' is given twice"));
    }
  } while (cursor_.Accept(','));
  RETURN_IF_ERROR(cursor_.Expect('}'));
  return attrs;
}

absl::StatusOr<std::vector<std::string>> Parser::ParseResultNames() {
  std::vector<std::string> names;
  do {
    RETURN_IF_ERROR(cursor_.Expect('%'));
    const TextCursor before = cursor_;
    ASSIGN_OR_RETURN(const absl::string_view name, cursor_.Name("a value name"));
    // Reserved at once, with an invalid id, so that a repeat within the list shows too.
    if (!values_.emplace(name, ValueId()).second) {
      return before.Error(absl::StrCat("value %", Printable(name), " is defined twice"));
    }
    names.emplace_back(name);
  } while (cursor_.Accept(','));
  return names;
}

absl::StatusOr<ValueId> Parser::ParseUse() {
  RETURN_IF_ERROR(cursor_.Expect('%'));
  const TextCursor before = cursor_;
  ASSIGN_OR_RETURN(const absl::string_view name, cursor_.Name("a value name"));
  const auto it = values_.find(name);
  if (it == values_.end() || !it->second.valid()) {
    return before.Error(absl::StrCat("value %", Printable(name), " is not defined before its use"));
  }
  return it->second;
}

absl::StatusOr<std::vector<ValueId>> Parser::ParseOperands() {
  std::vector<ValueId> inputs;
  RETURN_IF_ERROR(cursor_.Expect('('));
  if (cursor_.Accept(')')) return inputs;
  do {
    ASSIGN_OR_RETURN(const ValueId input, ParseUse());
    inputs.push_back(input);
  } while (cursor_.Accept(','));
  RETURN_IF_ERROR(cursor_.Expect(')'));
  return inputs;
}

absl::StatusOr<std::vector<TensorType>> Parser::ParseTypes(size_t count) {
  const TextCursor before = cursor_;
  std::vector<TensorType> types;
  RETURN_IF_ERROR(cursor_.Expect(':'));
  do {
    ASSIGN_OR_RETURN(TensorType type, ParseType());
    types.push_back(std::move(type));
  } while (cursor_.Accept(','));
  if (types.size() != count) {
    return before.Error(absl::StrCat(types.size(), " types for ", count, " values"));
  }
  return types;
}

absl::Status Parser::ParseSource(NodeSource& source) {
  if (!cursor_.Accept('@')) return absl::OkStatus();
  ASSIGN_OR_RETURN(source.name, cursor_.String(kMaxNameBytes));
  if (cursor_.Accept('(')) {
    ASSIGN_OR_RETURN(source.op, cursor_.String(kMaxNameBytes));
    RETURN_IF_ERROR(cursor_.Expect(')'));
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseNode() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ParseResultNames());
  RETURN_IF_ERROR(cursor_.Expect('='));
  cursor_.Skip();
  const TextCursor before = cursor_;
  ASSIGN_OR_RETURN(const absl::string_view name, cursor_.Name("an operator"));
  const std::optional<Op> op = OpNamed(name);
  if (!op.has_value()) return before.Error(absl::StrCat("no operator is named '", name, "'"));
  ASSIGN_OR_RETURN(std::vector<ValueId> inputs, ParseOperands());
  ASSIGN_OR_RETURN(AttrMap attrs, ParseAttrs());
  ASSIGN_OR_RETURN(std::vector<TensorType> types, ParseTypes(names.size()));
  NodeSource source;
  RETURN_IF_ERROR(ParseSource(source));
  if (op == Op::kPlaceholder && source.op.empty()) source.op = "Placeholder";
  if (graph_.node_count() >= kMaxNodes) {
    return before.Error(absl::StrCat("more than ", kMaxNodes, " nodes"));
  }
  const NodeId id =
      graph_.AddNode(*op, std::move(inputs), std::move(attrs), std::move(types), std::move(source));
  for (size_t i = 0; i < names.size(); ++i) values_[names[i]] = graph_.node(id).outputs[i];
  return absl::OkStatus();
}

absl::Status Parser::ParseReturn() {
  RETURN_IF_ERROR(cursor_.ExpectWord("return"));
  if (cursor_.Peek() != '%') return absl::OkStatus();
  do {
    GraphOutput output;
    ASSIGN_OR_RETURN(output.value, ParseUse());
    RETURN_IF_ERROR(cursor_.Expect('@'));
    ASSIGN_OR_RETURN(output.name, cursor_.String(kMaxNameBytes));
    if (cursor_.Peek() == 'f') {
      RETURN_IF_ERROR(cursor_.ExpectWord("fp16"));
      output.fp16 = true;
    }
    graph_.AddOutput(std::move(output));
  } while (cursor_.Accept(','));
  return absl::OkStatus();
}

absl::StatusOr<Graph> Parser::Parse() {
  RETURN_IF_ERROR(cursor_.ExpectWord("graph"));
  ASSIGN_OR_RETURN(std::string name, cursor_.String(kMaxNameBytes));
  graph_.set_name(std::move(name));
  RETURN_IF_ERROR(cursor_.Expect('{'));
  while (cursor_.Peek() == '%') RETURN_IF_ERROR(ParseNode());
  RETURN_IF_ERROR(ParseReturn());
  RETURN_IF_ERROR(cursor_.Expect('}'));
  if (!cursor_.AtEnd()) return cursor_.Expected("the end of the text");
  const absl::Status status = VerifyStructure(graph_);
  if (!status.ok()) return absl::InvalidArgumentError(status.message());
  return std::move(graph_);
}

}  // namespace

std::string PrintGraph(const Graph& graph, const PrintOptions& options) {
  std::string out = "graph ";
  AppendQuoted(graph.name(), out);
  out += " {\n";
  for (const Node& node : graph.nodes()) AppendNode(graph, node, options, out);
  out += "  return";
  absl::string_view separator = " ";
  for (const GraphOutput& output : graph.outputs()) {
    absl::StrAppend(&out, separator, "%", output.value.value(), " @");
    AppendQuoted(output.name, out);
    if (output.fp16) out += " fp16";
    separator = ", ";
  }
  out += "\n}\n";
  return out;
}

absl::StatusOr<Graph> ParseGraph(absl::string_view text, const ParseOptions& options) {
  if (static_cast<int64_t>(text.size()) > options.max_text_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("text of ", text.size(), " bytes; at most ", options.max_text_bytes));
  }
  return Parser(text, options).Parse();
}

}  // namespace npuc
