#include "compiler_core/frontends/torchscript/forward_inputs.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/frontends/common/const_inputs.h"
#include "compiler_core/frontends/torchscript/parameter_type.h"

namespace npuc::pt {
namespace {

constexpr size_t kMaxContainers = 8;

// Words that a member of the header's structs must not be called.
bool IsCKeyword(absl::string_view name) {
  constexpr absl::string_view kWords[] = {
      "auto",   "break",  "case",      "char",     "const",   "continue", "default",  "do",
      "double", "else",   "enum",      "extern",   "float",   "for",      "goto",     "if",
      "inline", "int",    "long",      "register", "return",  "short",    "signed",   "sizeof",
      "static", "struct", "switch",    "typedef",  "union",   "unsigned", "void",     "volatile",
      "while",  "class",  "delete",    "new",      "this",    "template", "operator", "private",
      "public", "bool",   "namespace", "using",    "virtual", "friend",   "catch",    "throw",
  };
  return std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

// The declarations of one parameter, or of a part of it.
struct Declared {
  bool is_whole = false;  // by `value`
  ScriptValue value;
  std::map<std::string, Declared> parts;

  bool IsNothing() const { return !is_whole && parts.empty(); }
};

class InputMaker {
 public:
  InputMaker(const ScriptFunction& forward, const CompileOptions& options, ImportState& state,
             Executor& executor, ForwardInputs& made)
      : forward_(forward), options_(options), state_(state), executor_(executor), made_(made) {}

  bool Run() {
    const std::vector<Parameter>& parameters = forward_.def->parameters;
    declared_.resize(parameters.empty() ? 0 : parameters.size() - 1);  // without self
    // The graph has its inputs in the order of INPUT_OPS.
    for (const InputDecl& input : options_.inputs) {
      const Place place = Find("INPUT_OPS", input.name);
      if (place.at != nullptr) place.at->value = MakeInput(place.type, input, place.where);
    }
    for (const ConstInput& input : options_.const_inputs) {
      const Place place = Find("CONST_INPUTS", input.name);
      if (place.at != nullptr) place.at->value = MakeConstant(place.type, input, place.where);
    }
    for (size_t i = 0; i < declared_.size(); ++i) {
      const Parameter& parameter = parameters[i + 1];
      made_.arguments.push_back(declared_[i].IsNothing() && parameter.fallback != nullptr
                                    ? executor_.DefaultOf(forward_, parameter)
                                    : Assemble(parameter.type.get(), declared_[i], WhereOf(i)));
    }
    CheckTurned();
    return ok_;
  }

 private:
  // A parameter or a part of one.
  struct Where {
    std::string key;      // in a config: "1.0"
    std::string written;  // in the code: "hidden[0]"
    std::string name;     // of the graph's input: "hidden_0"

    std::string Words() const {
      return absl::StrCat("input ", key, ", '", Printable(written), "', ");
    }
    Where Part(const std::string& part) const {
      return {absl::StrCat(key, ".", part), absl::StrCat(written, "[", part, "]"),
              absl::StrCat(name, "_", part)};
    }
  };

  void Fail(DiagnosticKind kind, std::string message, std::string fix) {
    state_.AddError(kind, {}, std::move(message), std::move(fix));
    ok_ = false;
  }

  Where WhereOf(size_t index) const {
    const Parameter& parameter = forward_.def->parameters[index + 1];
    const bool has_no_name =
        absl::StartsWith(parameter.name, "argument_") || IsCKeyword(parameter.name);
    return {absl::StrCat(index), std::string(parameter.name),
            has_no_name ? absl::StrCat("input_", index) : std::string(parameter.name)};
  }

  // A declared parameter or part. `at` is null where it is not there, which is reported.
  struct Place {
    Declared* at = nullptr;
    const Expr* type = nullptr;
    Where where;
  };

  Place Find(absl::string_view key, const std::string& name) {
    const std::vector<std::string> path = absl::StrSplit(name, '.');
    size_t index = 0;
    if (!absl::SimpleAtoi(path[0], &index) || index >= declared_.size() ||
        path.size() > kMaxContainers) {
      Fail(DiagnosticKind::kInputNotInModel,
           absl::StrCat(key, " names input ", Printable(name), "; forward takes ", declared_.size(),
                        " inputs", declared_.empty() ? "" : ", counted from 0"),
           "name inputs by their index");
      return {};
    }
    Place place = {&declared_[index], forward_.def->parameters[index + 1].type.get(),
                   WhereOf(index)};
    for (size_t i = 1; i < path.size(); ++i) {
      const Expr* const part = TypeOfPart(place.type, path[i]);
      if (part == nullptr) {
        Fail(DiagnosticKind::kInputNotInModel,
             absl::StrCat(key, " names ", Printable(name), ", a part of ", place.where.Words(),
                          "which is of type ", TypeText(place.type)),
             absl::StrCat("name the parts that the type has, or the whole as ", place.where.key));
        return {};
      }
      place = {&place.at->parts[path[i]], part, place.where.Part(path[i])};
    }
    if (!place.at->IsNothing() || IsInsideWhole(path, declared_[index])) {
      Fail(DiagnosticKind::kDuplicateEndpoint,
           key == "INPUT_OPS" ? absl::StrCat("INPUT_OPS names input ", Printable(name), " twice")
                              : absl::StrCat("CONST_INPUTS names input ", Printable(name),
                                             ", which INPUT_OPS or CONST_INPUTS has already"),
           "keep one of the two");
      return {};
    }
    place.at->is_whole = true;
    return place;
  }

  static bool IsInsideWhole(const std::vector<std::string>& path, const Declared& parameter) {
    const Declared* at = &parameter;
    for (size_t i = 1; i < path.size(); ++i) {
      if (at->is_whole) return true;
      at = &at->parts.at(path[i]);
    }
    return false;
  }

  // The type without Optional.
  static const Expr* Required(const Expr* type) {
    while (type != nullptr && type->kind == ExprKind::kSubscript &&
           type->children[0]->text == "Optional") {
      type = type->children[1].get();
    }
    return type;
  }

  static bool IsContainer(const Expr* type) {
    const absl::string_view outer = TypeNameOf(type);
    return type != nullptr && type->kind == ExprKind::kSubscript &&
           (outer == "Tuple" || outer == "List" || outer == "Dict");
  }

  // "Tuple of 2", for messages.
  static std::string TypeText(const Expr* type) {
    type = Required(type);
    std::string text = Printable(TypeNameOf(type));
    if (IsContainer(type) && TypeNameOf(type) == "Tuple") {
      absl::StrAppend(&text, " of ", TupleTypes(*type).size());
    }
    return text;
  }

  static std::vector<const Expr*> TupleTypes(const Expr& tuple) {
    const Expr& inner = *tuple.children[1];
    if (inner.kind != ExprKind::kTuple) return {&inner};
    std::vector<const Expr*> types;
    for (const ExprPtr& item : inner.children) types.push_back(item.get());
    return types;
  }

  // The type of an item of a list or tuple, or of a dict's value; null: there is none.
  static const Expr* TypeOfPart(const Expr* type, const std::string& part) {
    type = Required(type);
    if (!IsContainer(type)) return nullptr;
    const absl::string_view outer = TypeNameOf(type);
    const Expr& inner = *type->children[1];
    if (outer == "Dict") {
      const bool has_both = inner.kind == ExprKind::kTuple && inner.children.size() == 2;
      return has_both && !part.empty() ? inner.children[1].get() : nullptr;
    }
    size_t index = 0;
    if (!absl::SimpleAtoi(part, &index) || absl::StrCat(index) != part) return nullptr;
    if (outer == "List") return &inner;
    const std::vector<const Expr*> types = TupleTypes(*type);
    return index < types.size() ? types[index] : nullptr;
  }

  // The value of a parameter or part; None where that was reported.
  ScriptValue Assemble(const Expr* type, const Declared& declared, const Where& where) {
    if (declared.is_whole) return declared.value;
    if (declared.parts.empty()) {
      const bool is_part = absl::StrContains(where.key, ".");
      if (!is_part || Required(type) == type) ReportMissing(TypeNameOf(type), where);
      return ScriptValue::None();
    }
    type = Required(type);
    const absl::string_view outer = TypeNameOf(type);
    if (outer == "Dict") return AssembleDict(*type, declared, where);
    const size_t count = outer == "Tuple" ? TupleTypes(*type).size() : declared.parts.size();
    std::vector<ScriptValue> items;
    for (size_t i = 0; i < count; ++i) {
      const std::string part = absl::StrCat(i);
      const auto found = declared.parts.find(part);
      items.push_back(Assemble(TypeOfPart(type, part),
                               found == declared.parts.end() ? Declared() : found->second,
                               where.Part(part)));
    }
    return state_.heap.List(std::move(items),
                            outer == "Tuple" ? ScriptKind::kTuple : ScriptKind::kList);
  }

  ScriptValue AssembleDict(const Expr& type, const Declared& declared, const Where& where) {
    ScriptValue dict = state_.heap.Dict();
    const bool has_numbers = TypeNameOf(type.children[1]->children[0].get()) == "int";
    for (const auto& [key, part] : declared.parts) {
      int64_t number = 0;
      const bool is_number = has_numbers && absl::SimpleAtoi(key, &number);
      dict.dict->entries.emplace_back(
          is_number ? ScriptValue::Int(number) : state_.heap.String(key),
          Assemble(TypeOfPart(&type, key), part, where.Part(key)));
    }
    return dict;
  }

  void ReportMissing(absl::string_view type, const Where& where) {
    if (type != "Tensor") return ReportType(type, where);
    Fail(DiagnosticKind::kTorchInputNotTensor,
         absl::StrCat(where.Words(), "has no default and is not in INPUT_OPS"),
         absl::StrCat("add it with its shape, as in INPUT_OPS: {", where.key, ": [1, 16]}"));
  }

  void ReportType(absl::string_view type, const Where& where) {
    const std::string first = absl::StrCat(where.key, type == "Dict" ? ".KEY" : ".0");
    const bool is_container = type == "List" || type == "Tuple" || type == "Dict";
    Fail(DiagnosticKind::kTorchInputNotTensor,
         absl::StrCat(where.Words(), "is of type ", Printable(type),
                      "; the inputs of a compiled model are tensors"),
         is_container
             ? absl::StrCat("name each tensor in it, as in INPUT_OPS: {", first, ": [1, 16]}")
             : "give its value in CONST_INPUTS, by its index");
  }

  // A number of Python where forward takes one; else a tensor, of i64 where all numbers are whole.
  ScriptValue MakeConstant(const Expr* expr, const ConstInput& input, const Where& where) {
    const absl::string_view type = TypeNameOf(expr);
    const double first = input.values[0];
    if (type == "Tensor") {
      const DType dtype = input.is_whole ? DType::kInt64 : DType::kFloat32;
      ValueRef value = frontend::ConstInputValue(state_, input, dtype, std::nullopt);
      if (value != nullptr) return state_.heap.Tensor(std::move(value));
      ok_ = false;
      return ScriptValue::None();
    }
    const bool is_flag = type == "bool" && input.is_whole && (first == 0 || first == 1);
    if (!input.is_list && is_flag) return ScriptValue::Bool(first != 0);
    if (!input.is_list && type == "int" && input.is_whole) {
      return ScriptValue::Int(static_cast<int64_t>(first));
    }
    if (!input.is_list && type == "float") return ScriptValue::Float(first);
    Fail(DiagnosticKind::kInputShapeConflict,
         absl::StrCat("the value of input ", where.key, ", '", Printable(where.written),
                      "', in CONST_INPUTS does not fit its type ", Printable(type)),
         "write a number for an int or a float, true or false for a bool");
    return ScriptValue::None();
  }

  ScriptValue MakeInput(const Expr* expr, const InputDecl& input, const Where& where) {
    const absl::string_view type = TypeNameOf(expr);
    if (type != "Tensor" && type != "Optional") {
      ReportType(type, where);
      return ScriptValue::None();
    }
    const absl::Status shape_status = CheckShape(input.shape);
    if (!shape_status.ok()) {
      Fail(DiagnosticKind::kInputShapeConflict,
           absl::StrCat("the shape of input ", where.key,
                        " in INPUT_OPS is refused: ", shape_status.message()),
           "declare a smaller shape");
      return ScriptValue::None();
    }
    ValueRef value = state_.AddInput(where.name, {DType::kFloat32, input.shape}, "Placeholder");
    state_.input_names.insert(where.name);
    made_.inputs.emplace_back(where.key, value->id);
    size_t index = 0;
    const auto& ncx = options_.input_ncx_to_nxc;
    if (absl::SimpleAtoi(where.key, &index) &&
        std::find(ncx.begin(), ncx.end(), static_cast<int64_t>(index)) != ncx.end()) {
      return MakeTurned(std::move(value), where);
    }
    return state_.heap.Tensor(std::move(value));
  }

  // An input that is fed with its channels last.
  ScriptValue MakeTurned(ValueRef value, const Where& where) {
    const auto rank = static_cast<int64_t>(value->type.shape.size());
    if (rank < 3 || rank > 5) {
      Fail(DiagnosticKind::kInputShapeConflict,
           absl::StrCat("INPUT_NCX_TO_NXC names input ", where.key, " of shape ",
                        ShapeToString(value->type.shape), "; NHWC and NLC have rank 4 and 3"),
           "take it out of INPUT_NCX_TO_NXC");
      return ScriptValue::None();
    }
    std::vector<int64_t> perm = {0, rank - 1};
    for (int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
    OpCall call(&state_, {}, {where.name, ""});
    absl::StatusOr<ValueRef> turned = call.Transposed(value, std::move(perm));
    if (turned.ok()) return state_.heap.Tensor(*std::move(turned));
    ok_ = false;
    return ScriptValue::None();
  }

  void CheckTurned() {
    for (const int64_t index : options_.input_ncx_to_nxc) {
      if (index >= 0 && index < static_cast<int64_t>(declared_.size()) &&
          declared_[static_cast<size_t>(index)].is_whole) {
        continue;
      }
      Fail(DiagnosticKind::kInputNotInModel,
           absl::StrCat("INPUT_NCX_TO_NXC names input ", index, ", which is not declared"),
           "name inputs of INPUT_OPS");
    }
  }

  const ScriptFunction& forward_;
  const CompileOptions& options_;
  ImportState& state_;
  Executor& executor_;
  ForwardInputs& made_;
  std::vector<Declared> declared_;
  bool ok_ = true;
};

}  // namespace

std::string ImportState::NameOfState(const std::string& path) {
  std::string name = path;
  while (IsCKeyword(name) || input_names.count(name) > 0) name = absl::StrCat("state_", name);
  input_names.insert(name);
  return name;
}

bool MakeForwardInputs(const ScriptFunction& forward, const CompileOptions& options,
                       ImportState& state, Executor& executor, ForwardInputs& made) {
  return InputMaker(forward, options, state, executor, made).Run();
}

}  // namespace npuc::pt
