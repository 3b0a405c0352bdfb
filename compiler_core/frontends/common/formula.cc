#include "compiler_core/frontends/common/formula.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/frontends/common/formula_functions.h"

namespace npuc::frontend {
namespace {

struct Token {
  enum class Kind : uint8_t { kName, kNumber, kSymbol, kLineEnd, kEnd };
  Kind kind = Kind::kEnd;
  absl::string_view text;
  double number = 0;
  int line = 1;
};

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == ':'; }

// Cuts the text into tokens. A line ends a statement unless a bracket is open.
class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  // Nullopt: the text holds a character that has no meaning; `line` says where.
  std::optional<std::vector<Token>> Read(int& line) {
    while (at_ < text_.size()) {
      if (!ReadOne()) {
        line = line_;
        return std::nullopt;
      }
    }
    Add(Token::Kind::kLineEnd, 0);
    Add(Token::Kind::kEnd, 0);
    return std::move(tokens_);
  }

 private:
  void Add(Token::Kind kind, size_t length) {
    tokens_.push_back({kind, text_.substr(at_, length), 0, line_});
    at_ += length;
  }
  template <typename Holds>
  size_t LengthWhile(Holds holds) const {
    size_t length = 0;
    while (at_ + length < text_.size() && holds(text_[at_ + length])) ++length;
    return length;
  }

  bool ReadOne() {
    const char c = text_[at_];
    if (c == '\n') {
      if (open_ == 0) {
        Add(Token::Kind::kLineEnd, 1);
      } else {
        ++at_;
      }
      ++line_;
    } else if (absl::ascii_isspace(c)) {
      ++at_;
    } else if (c == '#') {
      at_ += LengthWhile([](char next) { return next != '\n'; });
    } else if (IsNameStart(c)) {
      Add(Token::Kind::kName, LengthWhile(IsNamePart));
    } else if (absl::ascii_isdigit(c) || c == '.') {
      return ReadNumber();
    } else if (absl::string_view("+-*/^()[],=").find(c) != absl::string_view::npos) {
      if (c == '(' || c == '[') ++open_;
      if (c == ')' || c == ']') open_ = std::max(open_ - 1, 0);
      Add(Token::Kind::kSymbol, 1);
    } else {
      return false;
    }
    return true;
  }

  // Digits, a point, digits, an exponent.
  bool ReadNumber() {
    size_t length = 0;
    bool after_e = false;
    for (; at_ + length < text_.size(); ++length) {
      const char c = text_[at_ + length];
      const bool is_sign = after_e && (c == '+' || c == '-');
      if (!absl::ascii_isdigit(c) && c != '.' && c != 'e' && c != 'E' && !is_sign) break;
      after_e = c == 'e' || c == 'E';
    }
    double number = 0;
    if (!absl::SimpleAtod(text_.substr(at_, length), &number) || !std::isfinite(number)) {
      return false;
    }
    Add(Token::Kind::kNumber, length);
    tokens_.back().number = number;
    return true;
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int open_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

// Recursive descent over the tokens, to at most kMaxFormulaDepth. A statement that is wrong is
// reported once and skipped.
class FormulaParser {
 public:
  FormulaParser(Formula* formula, const Formula::Names& names, const Formula::Report& report)
      : formula_(*formula), names_(names), report_(report) {}

  bool Parse(absl::string_view text) {
    if (text.size() > kMaxFormulaBytes) {
      return Refuse(1,
                    absl::StrCat("the formula has ", text.size(), " bytes; at most ",
                                 kMaxFormulaBytes, " are allowed"),
                    "declare operators for its parts");
    }
    int line = 1;
    std::optional<std::vector<Token>> tokens = Lexer(text).Read(line);
    if (!tokens.has_value()) {
      return Refuse(line, "the formula holds a character or a number that has no meaning",
                    "write names, numbers, + - * / ^ ( ) [ ] , and =");
    }
    tokens_ = *std::move(tokens);
    DeclareNames();
    while (Now().kind != Token::Kind::kEnd) Statement();
    TakeResults();
    return ok_;
  }

 private:
  using Step = Formula::Step;
  using StepKind = Formula::StepKind;
  enum class Type : uint8_t { kTensor, kNumber, kList, kSeveral };
  // The result of an expression: a step, and how many results a call gives (0: only it knows).
  struct Value {
    Type type = Type::kTensor;
    int step = -1;
    int count = 1;
  };
  using Maybe = std::optional<Value>;

  const Token& Now() const { return tokens_[at_]; }
  bool IsSymbol(char c) const { return Now().kind == Token::Kind::kSymbol && Now().text[0] == c; }
  bool Take(char c) {
    if (!IsSymbol(c)) return false;
    ++at_;
    return true;
  }

  bool Refuse(int line, std::string message, std::string fix) {
    ok_ = false;
    report_(line, std::move(message), std::move(fix));
    return false;
  }
  std::nullopt_t Wrong(std::string message, std::string fix) {
    Refuse(Now().line, std::move(message), std::move(fix));
    return std::nullopt;
  }
  std::nullopt_t Unexpected(absl::string_view wanted) {
    const std::string found = Now().kind == Token::Kind::kLineEnd || Now().kind == Token::Kind::kEnd
                                  ? "the line ends"
                                  : absl::StrCat("found '", Printable(Now().text, 40), "'");
    return Wrong(absl::StrCat("the formula needs ", wanted, " here; ", found),
                 "write NAME = expression, one a line");
  }

  // -1: the formula would become too long, which is reported.
  int Add(Step step) {
    if (formula_.steps_.size() >= kMaxFormulaSteps) {
      if (!is_full_) {
        Wrong(absl::StrCat("the formula becomes more than ", kMaxFormulaSteps,
                           " steps, those of the operators that it calls included"),
              "write a shorter one");
      }
      is_full_ = true;
      ok_ = false;
      return -1;
    }
    formula_.steps_.push_back(std::move(step));
    return static_cast<int>(formula_.steps_.size()) - 1;
  }
  Maybe Added(Step step, Type type, int count = 1) {
    const int index = Add(std::move(step));
    if (index < 0) return std::nullopt;
    return Value{type, index, count};
  }

  void DeclareNames() {
    int index = 0;
    for (const std::string& operand : names_.operands) {
      const Maybe value = Added({.kind = StepKind::kOperand, .index = index++}, Type::kTensor);
      if (value.has_value()) values_.emplace(operand, *value);
    }
    index = 0;
    for (const Formula::Attribute& attribute : names_.attributes) {
      const Maybe value = Added({.kind = StepKind::kAttribute, .index = index++},
                                attribute.is_list ? Type::kList : Type::kNumber);
      if (value.has_value()) values_.emplace(attribute.name, *value);
    }
  }

  void TakeResults() {
    for (const std::string& result : names_.results) {
      const auto found = values_.find(result);
      if (found == values_.end() || found->second.type != Type::kTensor) {
        if (!ok_) continue;  // perhaps of a statement that was wrong
        Refuse(1, absl::StrCat("the formula sets no tensor '", Printable(result), "', a result"),
               absl::StrCat("write a line ", Printable(result), " = ..."));
        continue;
      }
      formula_.results_.push_back(found->second.step);
    }
  }

  void Statement() {
    if (Now().kind == Token::Kind::kLineEnd) {
      ++at_;
      return;
    }
    if (!is_full_ && Assignment() && Now().kind != Token::Kind::kLineEnd) {
      Unexpected("the end of the line");
    }
    while (Now().kind != Token::Kind::kLineEnd && Now().kind != Token::Kind::kEnd) ++at_;
  }

  bool Assignment() {
    std::vector<std::string> targets;
    do {
      if (Now().kind != Token::Kind::kName) return Unexpected("a name"), false;
      targets.emplace_back(Now().text);
      if (!CheckNewName(targets.back())) return false;
      ++at_;
    } while (Take(','));
    if (!Take('=')) return Unexpected("="), false;
    const Maybe value = Expression(0);
    if (!value.has_value()) return false;
    return Bind(targets, *value);
  }

  bool CheckNewName(const std::string& name) {
    if (name.find_first_of(".:") != std::string::npos) {
      return Wrong(absl::StrCat("'", Printable(name), "' is no name for a value"),
                   "write letters, digits and _"),
             false;
    }
    const bool is_taken = values_.contains(name) || FindFormulaFunction(name) != nullptr ||
                          FindCallee(name) != nullptr;
    if (!is_taken) return true;
    return Wrong(absl::StrCat("'", Printable(name),
                              "' has a meaning already, and no name may have two"),
                 "write another name"),
           false;
  }

  bool Bind(const std::vector<std::string>& targets, const Value& value) {
    if (targets.size() == 1 && value.type != Type::kSeveral) {
      return values_.emplace(targets[0], value).second;
    }
    if (value.type != Type::kSeveral ||
        (value.count > 0 && value.count != static_cast<int>(targets.size()))) {
      return Wrong(absl::StrCat("the right side has ", value.count > 0 ? value.count : int64_t{1},
                                " results, and ", targets.size(), " names stand on the left"),
                   "write a name for each result"),
             false;
    }
    for (size_t i = 0; i < targets.size(); ++i) {
      const Maybe one = Added({.kind = StepKind::kResult,
                               .index = static_cast<int>(i),
                               .count = targets.size(),
                               .args = {value.step}},
                              Type::kTensor);
      if (!one.has_value()) return false;
      if (!values_.emplace(targets[i], *one).second) {
        return Wrong(absl::StrCat("'", Printable(targets[i]), "' stands twice on the left"),
                     "write another name"),
               false;
      }
    }
    return true;
  }

  // An operator of two operands that stands between them.
  Maybe Between(absl::string_view function, const Value& a, const Value& b) {
    for (const Value& value : {a, b}) {
      if (value.type == Type::kList || value.type == Type::kSeveral) {
        return Wrong("arithmetic takes tensors and numbers", "give it one of these");
      }
    }
    const bool is_tensor = a.type == Type::kTensor || b.type == Type::kTensor;
    return Added({.kind = StepKind::kCall,
                  .function = FindFormulaFunction(function),
                  .args = {a.step, b.step}},
                 is_tensor ? Type::kTensor : Type::kNumber);
  }

  Maybe Expression(int depth) {
    Maybe left = Product(depth);
    while (left.has_value() && (IsSymbol('+') || IsSymbol('-'))) {
      const absl::string_view function = Take('+') ? "Add" : (++at_, "Sub");
      const Maybe right = Product(depth);
      if (!right.has_value()) return std::nullopt;
      left = Between(function, *left, *right);
    }
    return left;
  }

  Maybe Product(int depth) {
    Maybe left = Signed(depth);
    while (left.has_value() && (IsSymbol('*') || IsSymbol('/'))) {
      const absl::string_view function = Take('*') ? "Mul" : (++at_, "Div");
      const Maybe right = Signed(depth);
      if (!right.has_value()) return std::nullopt;
      left = Between(function, *left, *right);
    }
    return left;
  }

  Maybe Signed(int depth) {
    if (depth >= kMaxFormulaDepth) {
      return Wrong(absl::StrCat("the formula is nested more than ", kMaxFormulaDepth, " deep"),
                   "name its parts on lines of their own");
    }
    if (!Take('-')) return Power(depth);
    if (Now().kind == Token::Kind::kNumber && tokens_[at_ + 1].text != "^") {
      tokens_[at_].number = -tokens_[at_].number;
      return Power(depth);
    }
    const Maybe value = Signed(depth + 1);
    if (!value.has_value()) return std::nullopt;
    if (value->type == Type::kList || value->type == Type::kSeveral) {
      return Wrong("arithmetic takes tensors and numbers", "give it one of these");
    }
    return Added(
        {.kind = StepKind::kCall, .function = FindFormulaFunction("Neg"), .args = {value->step}},
        value->type);
  }

  Maybe Power(int depth) {
    const Maybe base = Primary(depth);
    if (!base.has_value() || !Take('^')) return base;
    const Maybe exponent = Signed(depth + 1);
    if (!exponent.has_value()) return std::nullopt;
    return Between("Pow", *base, *exponent);
  }

  Maybe Primary(int depth) {
    if (Now().kind == Token::Kind::kNumber) {
      const double number = tokens_[at_++].number;
      return Added({.kind = StepKind::kNumber, .number = number}, Type::kNumber);
    }
    if (Take('(')) {
      const Maybe value = Expression(depth + 1);
      if (value.has_value() && !Take(')')) return Unexpected(")");
      return value;
    }
    if (Take('[')) return List(depth);
    if (Now().kind != Token::Kind::kName) return Unexpected("a value");
    const std::string name(Now().text);
    ++at_;
    if (Take('(')) return Call(name, depth + 1);
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    for (const auto& [word, number] : {std::pair("true", 1.0), std::pair("false", 0.0)}) {
      if (name == word) return Added({.kind = StepKind::kNumber, .number = number}, Type::kNumber);
    }
    std::vector<absl::string_view> known;
    for (const auto& [other, value] : values_) known.emplace_back(other);
    return Wrong(absl::StrCat("'", Printable(name), "' is no operand, attribute or earlier name"),
                 DidYouMean(name, known, "set it on a line before this one"));
  }

  Maybe List(int depth) {
    Step list{.kind = StepKind::kList};
    if (!Take(']')) {
      do {
        const Maybe item = Expression(depth + 1);
        if (!item.has_value()) return std::nullopt;
        if (item->type != Type::kNumber) return Wrong("a list holds numbers", "write [1, 2]");
        list.args.push_back(item->step);
      } while (Take(','));
      if (!Take(']')) return Unexpected("]");
    }
    return Added(std::move(list), Type::kList);
  }

  struct Arguments {
    std::vector<Value> operands;
    std::vector<std::pair<std::string, Value>> named;
  };

  std::optional<Arguments> ReadArguments(int depth) {
    Arguments arguments;
    if (Take(')')) return arguments;
    do {
      const bool is_named = Now().kind == Token::Kind::kName &&
                            tokens_[at_ + 1].kind == Token::Kind::kSymbol &&
                            tokens_[at_ + 1].text == "=";
      std::string name;
      if (is_named) {
        name = std::string(Now().text);
        at_ += 2;
      }
      const Maybe value = Expression(depth);
      if (!value.has_value()) return std::nullopt;
      if (is_named) {
        arguments.named.emplace_back(std::move(name), *value);
      } else if (!arguments.named.empty()) {
        return Wrong("an operand stands behind an argument with a name", "write operands first");
      } else {
        arguments.operands.push_back(*value);
      }
    } while (Take(','));
    if (!Take(')')) return Unexpected(")");
    return arguments;
  }

  const Formula::Callee* FindCallee(absl::string_view name) const {
    for (const Formula::Callee& callee : names_.callees) {
      if (callee.name == name) return &callee;
    }
    return nullptr;
  }

  Maybe Call(const std::string& name, int depth) {
    const std::optional<Arguments> arguments = ReadArguments(depth);
    if (!arguments.has_value()) return std::nullopt;
    if (const Formula::Callee* const callee = FindCallee(name)) return CallOf(*callee, *arguments);
    const FormulaFunction* const function = FindFormulaFunction(name);
    if (function != nullptr) return CallOf(*function, *arguments);
    const std::vector<std::string> names = FormulaFunctionNames();
    std::vector<absl::string_view> known(names.begin(), names.end());
    for (const Formula::Callee& callee : names_.callees) known.emplace_back(callee.name);
    return Wrong(absl::StrCat("'", Printable(name),
                              "' is no function of formulas, and no operator "
                              "that is declared before this one"),
                 DidYouMean(name, known,
                            "CONFIG.md lists the functions; declare an operator before "
                            "the formula that calls it, so that none calls itself"));
  }

  Maybe CallOf(const FormulaFunction& function, const Arguments& arguments) {
    const int count = static_cast<int>(arguments.operands.size());
    if (count < function.least_operands || count > function.most_operands) {
      return Wrong(absl::StrCat(function.name, " takes ", function.least_operands, " to ",
                                function.most_operands, " operands, found ", count),
                   "count them");
    }
    Step step{.kind = StepKind::kCall, .function = &function};
    bool has_tensor = false;
    for (const Value& operand : arguments.operands) {
      if (operand.type == Type::kList || operand.type == Type::kSeveral) {
        return Wrong(absl::StrCat(function.name, " takes tensors and numbers"),
                     "give it one of these");
      }
      has_tensor = has_tensor || operand.type == Type::kTensor;
      step.args.push_back(operand.step);
    }
    if (!has_tensor) {
      return Wrong(absl::StrCat(function.name, " needs a tensor among its operands"),
                   "compute numbers by + - * / ^");
    }
    if (!TakeNamed(function, arguments, step)) return std::nullopt;
    if (function.runs == FormulaFunction::Runs::kSize) return Added(std::move(step), Type::kNumber);
    const bool is_split = function.runs == FormulaFunction::Runs::kSplit;
    return Added(std::move(step), is_split ? Type::kSeveral : Type::kTensor, is_split ? 0 : 1);
  }

  bool TakeNamed(const FormulaFunction& function, const Arguments& arguments, Step& step) {
    step.named.assign(static_cast<size_t>(function.parameter_count()), -1);
    for (const auto& [name, value] : arguments.named) {
      const int place = function.FindParameter(name);
      if (place < 0 || value.type == Type::kTensor || value.type == Type::kSeveral ||
          step.named[static_cast<size_t>(place)] >= 0) {
        return Wrong(absl::StrCat(function.name, " takes no argument ", Printable(name),
                                  " of that kind here"),
                     "CONFIG.md lists the arguments"),
               false;
      }
      step.named[static_cast<size_t>(place)] = value.step;
    }
    for (int i = 0; i < function.parameter_count(); ++i) {
      const FormulaParameter& parameter = function.parameters[i];
      if (step.named[static_cast<size_t>(i)] >= 0 || !parameter.default_value.empty()) continue;
      return Wrong(absl::StrCat(function.name, " lacks the argument ", parameter.name),
                   absl::StrCat("write ", parameter.name, "=...")),
             false;
    }
    return true;
  }

  // Copies the callee's steps, its operands and attributes in the place of its own.
  Maybe CallOf(const Formula::Callee& callee, const Arguments& arguments) {
    const Formula& formula = *callee.formula;
    if (arguments.operands.size() != formula.names_.operands.size()) {
      return Wrong(absl::StrCat(Printable(callee.name), " takes ", formula.names_.operands.size(),
                                " operands, found ", arguments.operands.size()),
                   "count them");
    }
    for (const Value& operand : arguments.operands) {
      if (operand.type != Type::kTensor) {
        return Wrong(absl::StrCat(Printable(callee.name), " takes tensors"), "give it tensors");
      }
    }
    const std::optional<std::vector<int>> attributes = AttributesOf(callee, arguments);
    if (!attributes.has_value()) return std::nullopt;
    std::vector<int> copied;
    for (const Step& step : formula.steps_) {
      int index = -1;
      if (step.kind == StepKind::kOperand) {
        index = arguments.operands[static_cast<size_t>(step.index)].step;
      } else if (step.kind == StepKind::kAttribute) {
        index = (*attributes)[static_cast<size_t>(step.index)];
      } else {
        Step copy = step;
        for (std::vector<int>* list : {&copy.args, &copy.named}) {
          for (int& other : *list) other = other < 0 ? other : copied[static_cast<size_t>(other)];
        }
        index = Add(std::move(copy));
        if (index < 0) return std::nullopt;
      }
      copied.push_back(index);
    }
    if (formula.results_.size() == 1) {
      return Value{Type::kTensor, copied[static_cast<size_t>(formula.results_[0])], 1};
    }
    Step all{.kind = StepKind::kCall};  // without a function: its arguments are the results
    for (const int result : formula.results_) {
      all.args.push_back(copied[static_cast<size_t>(result)]);
    }
    const int count = static_cast<int>(formula.results_.size());
    return Added(std::move(all), Type::kSeveral, count);
  }

  std::optional<std::vector<int>> AttributesOf(const Formula::Callee& callee,
                                               const Arguments& arguments) {
    const std::vector<Formula::Attribute>& declared = callee.formula->names_.attributes;
    std::vector<int> steps(declared.size(), -1);
    for (const auto& [name, value] : arguments.named) {
      const auto found = std::find_if(declared.begin(), declared.end(),
                                      [&, word = absl::string_view(name)](const auto& attribute) {
                                        return attribute.name == word;
                                      });
      if (found == declared.end() || value.type != (found->is_list ? Type::kList : Type::kNumber)) {
        return Wrong(absl::StrCat(Printable(callee.name), " has no attribute ", Printable(name),
                                  " of that kind"),
                     "write one that it declares");
      }
      steps[static_cast<size_t>(found - declared.begin())] = value.step;
    }
    for (size_t i = 0; i < declared.size(); ++i) {
      if (steps[i] >= 0) continue;
      if (callee.defaults[i] == nullptr) {
        return Wrong(absl::StrCat(Printable(callee.name), " lacks the attribute ",
                                  Printable(declared[i].name)),
                     absl::StrCat("write ", Printable(declared[i].name), "=..."));
      }
      steps[i] = AddNumbers(*callee.defaults[i]);
      if (steps[i] < 0) return std::nullopt;
    }
    return steps;
  }

  int AddNumbers(const FormulaNumbers& value) {
    Step list{.kind = StepKind::kList};
    for (const double number : value.numbers) {
      const int item = Add({.kind = StepKind::kNumber, .number = number});
      if (item < 0 || !value.is_list) return item;
      list.args.push_back(item);
    }
    return Add(std::move(list));
  }

  Formula& formula_;
  const Formula::Names& names_;
  const Formula::Report& report_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::map<std::string, Value, std::less<>> values_;
  bool ok_ = true;
  bool is_full_ = false;
};

bool Formula::Parse(absl::string_view text, const Names& names, const Report& report) {
  names_ = names;
  steps_.clear();
  results_.clear();
  const bool ok = FormulaParser(this, names, report).Parse(text);
  names_.callees.clear();  // their steps were copied
  return ok;
}

// One run: the value of each step, in order.
class FormulaRun {
 public:
  FormulaRun(Emitter* node, const Formula& formula, absl::Span<const ValueRef> operands,
             absl::Span<const FormulaNumbers> attributes)
      : node_(*node), formula_(formula), operands_(operands), attributes_(attributes) {}

  absl::StatusOr<std::vector<ValueRef>> Run() {
    values_.reserve(formula_.steps_.size());
    for (const Formula::Step& step : formula_.steps_) {
      ASSIGN_OR_RETURN(Value value, ValueOf(step));
      values_.push_back(std::move(value));
    }
    std::vector<ValueRef> results;
    for (const int result : formula_.results_) results.push_back(At(result).tensors[0]);
    return results;
  }

 private:
  using StepKind = Formula::StepKind;
  // Tensors, or numbers where there are none.
  struct Value {
    std::vector<ValueRef> tensors;
    FormulaNumbers numbers;
  };
  const Value& At(int step) const { return values_[static_cast<size_t>(step)]; }

  absl::StatusOr<Value> ValueOf(const Formula::Step& step) {
    Value value;
    switch (step.kind) {
      case StepKind::kOperand:
        value.tensors = {operands_[static_cast<size_t>(step.index)]};
        return value;
      case StepKind::kAttribute:
        value.numbers = attributes_[static_cast<size_t>(step.index)];
        return value;
      case StepKind::kNumber:
        value.numbers = {{step.number}, false};
        return value;
      case StepKind::kList:
        value.numbers.is_list = true;
        for (const int item : step.args) {
          value.numbers.numbers.push_back(At(item).numbers.numbers[0]);
        }
        return value;
      case StepKind::kResult:
        return Result(step);
      case StepKind::kCall:
        return Call(step);
    }
    return absl::InternalError("a step of a formula of no kind");
  }

  absl::StatusOr<Value> Result(const Formula::Step& step) {
    const std::vector<ValueRef>& all = At(step.args[0]).tensors;
    if (all.size() != step.count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the formula names ", step.count, " results of an operator that has ", all.size()));
    }
    return Value{{all[static_cast<size_t>(step.index)]}, {}};
  }

  absl::StatusOr<Value> Call(const Formula::Step& step) {
    ValueRef like;  // the last tensor among the operands
    for (const int arg : step.args) {
      if (!At(arg).tensors.empty()) like = At(arg).tensors[0];
    }
    if (like == nullptr) return Arithmetic(step);
    std::vector<ValueRef> operands;
    for (const int arg : step.args) {
      const Value& operand = At(arg);
      operands.push_back(operand.tensors.empty()
                             ? node_.ScalarLike(like, operand.numbers.numbers[0])
                             : operand.tensors[0]);
    }
    if (step.function == nullptr) return Value{std::move(operands), {}};
    std::vector<std::optional<FormulaNumbers>> named;
    const auto rank = static_cast<int64_t>(operands[0]->type.shape.size());
    for (size_t i = 0; i < step.named.size(); ++i) {
      named.emplace_back();
      if (step.named[i] < 0) continue;
      ASSIGN_OR_RETURN(named.back(), CheckFormulaArgument(step.function->parameters[i],
                                                          At(step.named[i]).numbers, rank));
    }
    const FormulaCall call = {*step.function, operands, named};
    if (step.function->runs == FormulaFunction::Runs::kSize) {
      ASSIGN_OR_RETURN(const double size, RunFormulaSize(call));
      return Value{{}, {{size}, false}};
    }
    ASSIGN_OR_RETURN(std::vector<ValueRef> results, RunFormulaCall(node_, call));
    return Value{std::move(results), {}};
  }

  // A call on numbers alone, in double precision.
  absl::StatusOr<Value> Arithmetic(const Formula::Step& step) {
    const absl::string_view op = step.function->name;
    const double a = At(step.args[0]).numbers.numbers[0];
    const double b = step.args.size() > 1 ? At(step.args[1]).numbers.numbers[0] : 0;
    const double number = op == "Add"   ? a + b
                          : op == "Sub" ? a - b
                          : op == "Mul" ? a * b
                          : op == "Div" ? a / b
                          : op == "Pow" ? std::pow(a, b)
                                        : -a;
    if (!std::isfinite(number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the formula computes ", op, " of ", a, " and ", b, ", which is no number"));
    }
    return Value{{}, {{number}, false}};
  }

  Emitter& node_;
  const Formula& formula_;
  const absl::Span<const ValueRef> operands_;
  const absl::Span<const FormulaNumbers> attributes_;
  std::vector<Value> values_;
};

absl::StatusOr<std::vector<ValueRef>> Formula::Run(
    Emitter& node, absl::Span<const ValueRef> operands,
    absl::Span<const FormulaNumbers> attributes) const {
  return FormulaRun(&node, *this, operands, attributes).Run();
}

}  // namespace npuc::frontend
