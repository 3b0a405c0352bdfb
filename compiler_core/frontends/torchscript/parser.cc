#include "compiler_core/frontends/torchscript/parser.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::pt {
namespace {

// How tightly a binary operator binds; 0: the token is none.
int PrecedenceOf(absl::string_view op) {
  struct Row {
    absl::string_view op;
    int precedence;
  };
  constexpr Row kOfOne[] = {{"<", 4}, {">", 4},  {"|", 5},  {"^", 6},  {"&", 7}, {"+", 9},
                            {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10}, {"@", 10}};
  constexpr Row kOfTwo[] = {{"or", 1}, {"==", 4}, {"!=", 4}, {"<=", 4},  {">=", 4}, {"in", 4},
                            {"is", 4}, {"<<", 8}, {">>", 8}, {"//", 10}, {"**", 12}};
  const auto find = [op](absl::Span<const Row> rows) {
    for (const Row& row : rows) {
      if (row.op == op) return row.precedence;
    }
    return 0;
  };
  switch (op.size()) {  // most tokens are longer
    case 1:
      return find(kOfOne);
    case 2:
      return find(kOfTwo);
    case 3:
      return op == "and" ? 2 : 0;
    default:
      return 0;
  }
}
constexpr int kNotPrecedence = 3;
constexpr int kUnaryPrecedence = 11;
constexpr int kPowerPrecedence = 12;

// Words that end an expression instead of being a name in it.
bool IsReserved(absl::string_view word) {
  using Words = absl::Span<const absl::string_view>;
  constexpr absl::string_view kOfTwo[] = {"if", "as", "in", "is", "or"};
  constexpr absl::string_view kOfThree[] = {"for", "def", "and", "not", "del", "try"};
  constexpr absl::string_view kOfFour[] = {"else", "elif", "pass", "with", "from"};
  constexpr absl::string_view kOfFive[] = {"while", "class", "raise", "break",
                                           "yield", "async", "await"};
  constexpr absl::string_view kOfSix[] = {"return", "import", "lambda", "global"};
  constexpr absl::string_view kOfEight[] = {"continue"};
  const Words by_length[] = {{}, {}, kOfTwo, kOfThree, kOfFour, kOfFive, kOfSix, {}, kOfEight};
  return word.size() < std::size(by_length) && absl::c_linear_search(by_length[word.size()], word);
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, const CodeLimits& limits, CodeError& error)
      : tokens_(std::move(tokens)), limits_(limits), error_(error) {}

  std::unique_ptr<CodeFile> Run() {
    auto file = std::make_unique<CodeFile>();
    while (ok() && !Is(TokenKind::kEnd)) ParseTopLevel(*file);
    return ok() ? std::move(file) : nullptr;
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void Advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool ok() const { return error_.message.empty(); }
  bool Is(TokenKind kind) const { return token().kind == kind; }
  bool IsWord(absl::string_view word) const { return Is(TokenKind::kName) && token().text == word; }
  bool IsMark(absl::string_view mark) const {
    return Is(TokenKind::kPunctuation) && token().text == mark;
  }
  bool TakeWord(absl::string_view word) {
    if (!IsWord(word)) return false;
    Advance();
    return true;
  }
  bool TakeMark(absl::string_view mark) {
    if (!IsMark(mark)) return false;
    Advance();
    return true;
  }

  void Fail(std::string message, bool is_limit = false) {
    if (!ok()) return;
    error_ = {token().line, token().column, std::move(message), is_limit};
    at_ = tokens_.size() - 1;
  }
  std::string Found() const {
    switch (token().kind) {
      case TokenKind::kNewline:
        return "the end of the line";
      case TokenKind::kIndent:
        return "a deeper indentation";
      case TokenKind::kDedent:
        return "the end of the block";
      case TokenKind::kEnd:
        return "the end of the file";
      default:
        return absl::StrCat("'", Printable(token().text, 40), "'");
    }
  }
  void Expect(absl::string_view mark) {
    if (!TakeMark(mark)) Fail(absl::StrCat("expected '", mark, "', found ", Found()));
  }
  absl::string_view ExpectName() {
    if (!Is(TokenKind::kName) || IsReserved(token().text)) {
      Fail(absl::StrCat("expected a name, found ", Found()));
      return "";
    }
    const absl::string_view name = token().text;
    Advance();
    return name;
  }
  void ExpectNewline() {
    if (Is(TokenKind::kNewline)) {
      Advance();
    } else if (!Is(TokenKind::kEnd)) {
      Fail(absl::StrCat("expected the end of the line, found ", Found()));
    }
  }

  void ParseTopLevel(CodeFile& file) {
    if (TakeWord("class")) {
      ParseClass(file);
    } else if (IsWord("def")) {
      file.functions.push_back(ParseFunction());
    } else if (IsWord("import") || IsWord("from")) {
      while (ok() && !Is(TokenKind::kNewline) && !Is(TokenKind::kEnd)) Advance();
      ExpectNewline();
    } else if (TakeWord("op_version_set")) {  // PyTorch 1.0 to 1.3 begin each file with it
      Expect("=");
      ParseExpr();
      ExpectNewline();
    } else {
      Fail(absl::StrCat("expected a class or a function, found ", Found()));
    }
  }

  void ParseClass(CodeFile& file) {
    ClassDef result;
    result.line = token().line;
    result.name = ExpectName();
    if (TakeMark("(")) {
      if (!IsMark(")")) {
        const ExprPtr base = ParseExpr();
        if (ok()) result.base = base->text;
      }
      Expect(")");
    }
    Expect(":");
    if (!OpenBlock()) return;
    while (ok() && !Is(TokenKind::kDedent) && !Is(TokenKind::kEnd)) {
      if (IsWord("def")) {
        result.methods.push_back(ParseFunction());
      } else if (TakeWord("pass")) {
        ExpectNewline();
      } else {
        ParseClassAttribute(result);
      }
    }
    CloseBlock();
    file.classes.push_back(std::move(result));
  }

  // NAME : TYPE [= VALUE], NAME = VALUE, or __annotations__["NAME"] = TYPE.
  void ParseClassAttribute(ClassDef& result) {
    ExprPtr target = ParseExpr();
    if (!ok()) return;
    ClassAttribute attribute;
    bool is_annotation = false;
    if (target->kind == ExprKind::kName) {
      attribute.name = std::string(target->text);
    } else if (target->kind == ExprKind::kSubscript &&
               target->children[1]->kind == ExprKind::kString) {
      attribute.name = target->children[1]->string;
      is_annotation = true;
    } else {
      return Fail("expected an attribute of the class");
    }
    if (TakeMark(":")) attribute.type = ParseExpr();
    if (TakeMark("=")) (is_annotation ? attribute.type : attribute.value) = ParseExprList();
    ExpectNewline();
    result.attributes.push_back(std::move(attribute));
  }

  bool OpenBlock() {
    ExpectNewline();
    if (Is(TokenKind::kIndent)) {
      Advance();
      return ok();
    }
    Fail(absl::StrCat("expected an indented block, found ", Found()));
    return false;
  }
  void CloseBlock() {
    if (Is(TokenKind::kDedent)) {
      Advance();
    } else if (!Is(TokenKind::kEnd)) {
      Fail(absl::StrCat("expected the end of the block, found ", Found()));
    }
  }

  FunctionDef ParseFunction() {
    FunctionDef result;
    result.line = token().line;
    result.column = token().column;
    Advance();  // def
    result.name = ExpectName();
    Expect("(");
    bool keyword_only = false;
    while (ok() && !IsMark(")")) {
      if (TakeMark("*")) {
        keyword_only = true;
      } else {
        Parameter parameter;
        parameter.keyword_only = keyword_only;
        parameter.name = ExpectName();
        if (TakeMark(":")) parameter.type = ParseExpr();
        if (TakeMark("=")) parameter.fallback = ParseExpr();
        result.parameters.push_back(std::move(parameter));
      }
      if (!TakeMark(",")) break;
    }
    Expect(")");
    if (TakeMark("->")) ParseExpr();
    Expect(":");
    result.body = ParseBlock();
    return result;
  }

  std::vector<Stmt> ParseBlock() {
    std::vector<Stmt> body;
    if (!OpenBlock()) return body;
    while (ok() && !Is(TokenKind::kDedent) && !Is(TokenKind::kEnd)) {
      body.push_back(ParseStatement());
    }
    CloseBlock();
    return body;
  }

  Stmt ParseStatement() {
    Stmt stmt;
    stmt.line = token().line;
    stmt.column = token().column;
    if (TakeWord("if")) {
      ParseIf(stmt);
    } else if (TakeWord("while")) {
      stmt.kind = StmtKind::kWhile;
      stmt.value = ParseExpr();
      Expect(":");
      stmt.body = ParseBlock();
    } else if (TakeWord("for")) {
      stmt.kind = StmtKind::kFor;
      ParseTargets(stmt);
      if (!TakeWord("in")) Fail(absl::StrCat("expected 'in', found ", Found()));
      stmt.value = ParseExprList();
      Expect(":");
      stmt.body = ParseBlock();
    } else if (TakeWord("with")) {
      stmt.kind = StmtKind::kWith;
      stmt.value = ParseExpr();
      if (TakeWord("as")) ParseTargets(stmt);
      Expect(":");
      stmt.body = ParseBlock();
    } else {
      ParseSimpleStatement(stmt);
      ExpectNewline();
    }
    return stmt;
  }

  void ParseIf(Stmt& stmt) {
    stmt.kind = StmtKind::kIf;
    stmt.value = ParseExpr();
    Expect(":");
    stmt.body = ParseBlock();
    if (TakeWord("else")) {
      Expect(":");
      stmt.orelse = ParseBlock();
    } else if (IsWord("elif")) {
      // Each elif is one level deeper in the tree, as if it were written out.
      if (++elif_depth_ > limits_.indentation) {
        return Fail(absl::StrCat("more than ", limits_.indentation, " branches in a row"),
                    /*is_limit=*/true);
      }
      Stmt nested;
      nested.line = token().line;
      nested.column = token().column;
      Advance();
      ParseIf(nested);
      --elif_depth_;
      stmt.orelse.push_back(std::move(nested));
    }
  }

  // a, b, (c): the left side of a for or an assignment.
  void ParseTargets(Stmt& stmt) {
    while (ok()) {
      stmt.targets.push_back(ParsePostfix());
      if (!TakeMark(",")) break;
      stmt.is_unpacking = true;
      if (!Is(TokenKind::kName)) break;
      if (IsWord("in")) break;
    }
  }

  void ParseSimpleStatement(Stmt& stmt) {
    if (TakeWord("return")) {
      stmt.kind = StmtKind::kReturn;
      if (!Is(TokenKind::kNewline)) stmt.value = ParseExprList();
    } else if (TakeWord("raise")) {
      stmt.kind = StmtKind::kRaise;
      if (!Is(TokenKind::kNewline)) stmt.value = ParseExpr();
    } else if (TakeWord("pass")) {
      stmt.kind = StmtKind::kPass;
    } else if (TakeWord("break")) {
      stmt.kind = StmtKind::kBreak;
    } else if (TakeWord("continue")) {
      stmt.kind = StmtKind::kContinue;
    } else {
      ParseAssignment(stmt);
    }
  }

  void ParseAssignment(Stmt& stmt) {
    ExprPtr first = ParseExprList();
    if (!ok()) return;
    if (TakeMark(":")) {
      ParseExpr();  // the annotation: values carry their types
      if (!IsMark("=")) return;
    }
    if (!TakeMark("=")) {
      stmt.kind = StmtKind::kExpr;
      stmt.value = std::move(first);
      return;
    }
    stmt.kind = StmtKind::kAssign;
    if (first->kind == ExprKind::kTuple) {
      stmt.is_unpacking = true;
      stmt.targets = std::move(first->children);
    } else {
      stmt.targets.push_back(std::move(first));
    }
    for (const ExprPtr& target : stmt.targets) {
      if (target->kind != ExprKind::kName && target->kind != ExprKind::kAttribute &&
          target->kind != ExprKind::kSubscript) {
        return Fail("the left side of the assignment is neither a name nor a place");
      }
    }
    stmt.value = ParseExprList();
  }

  ExprPtr Make(ExprKind kind) const {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = token().line;
    expr->column = token().column;
    return expr;
  }
  void Adopt(Expr& parent, ExprPtr child) {
    if (child != nullptr) {
      parent.height = std::max(parent.height, child->height + 1);
      if (parent.height > limits_.nesting) {
        Fail(absl::StrCat("expressions are nested deeper than ", limits_.nesting), true);
      }
    }
    parent.children.push_back(std::move(child));
  }

  // a, b, ...: a tuple where there is a comma.
  ExprPtr ParseExprList() {
    ExprPtr first = ParseExpr();
    if (!IsMark(",")) return first;
    ExprPtr tuple = Make(ExprKind::kTuple);
    tuple->line = first->line;
    tuple->column = first->column;
    Adopt(*tuple, std::move(first));
    while (ok() && TakeMark(",")) {
      if (Is(TokenKind::kNewline) || IsMark("=")) break;
      Adopt(*tuple, ParseExpr());
    }
    return tuple;
  }

  ExprPtr ParseExpr() {
    if (++depth_ > limits_.nesting) {
      Fail(absl::StrCat("expressions are nested deeper than ", limits_.nesting), true);
    }
    ExprPtr value = ok() ? ParseBinary(1) : Make(ExprKind::kEllipsis);
    if (ok() && IsWord("if")) {
      ExprPtr ternary = Make(ExprKind::kTernary);
      Advance();
      Adopt(*ternary, ParseBinary(1));
      Adopt(*ternary, std::move(value));
      if (!TakeWord("else")) Fail(absl::StrCat("expected 'else', found ", Found()));
      Adopt(*ternary, ParseExpr());
      value = std::move(ternary);
    }
    --depth_;
    return value;
  }

  // The operator at this place, of two words where it has them; empty where there is none.
  absl::string_view BinaryOperator() {
    if (!Is(TokenKind::kPunctuation) && !Is(TokenKind::kName)) return "";
    if (IsWord("not")) return ahead().text == "in" ? "not in" : "";
    if (IsWord("is")) return ahead().text == "not" ? "is not" : "is";
    return PrecedenceOf(token().text) > 0 ? token().text : "";
  }

  ExprPtr ParseBinary(int lowest) {
    ExprPtr left = ParseUnary(lowest);
    while (ok()) {
      const absl::string_view op = BinaryOperator();
      if (op.empty()) break;
      const bool is_two_words = op == "not in" || op == "is not";
      const int precedence = is_two_words ? PrecedenceOf("in") : PrecedenceOf(op);
      if (precedence < lowest) break;
      ExprPtr binary = Make(ExprKind::kBinary);
      binary->text = op;
      Advance();
      if (is_two_words) Advance();
      Adopt(*binary, std::move(left));
      // ** groups to the right, all others to the left.
      if (++depth_ > limits_.nesting) {
        Fail(absl::StrCat("expressions are nested deeper than ", limits_.nesting), true);
      }
      Adopt(*binary, ok()
                         ? ParseBinary(precedence == kPowerPrecedence ? precedence : precedence + 1)
                         : Make(ExprKind::kEllipsis));
      --depth_;
      left = std::move(binary);
    }
    return left;
  }

  ExprPtr ParseUnary(int lowest) {
    const bool is_not = IsWord("not");
    if (!is_not && !IsMark("-") && !IsMark("+") && !IsMark("~")) return ParsePostfix();
    if (++depth_ > limits_.nesting) {
      Fail(absl::StrCat("expressions are nested deeper than ", limits_.nesting), true);
      return Make(ExprKind::kEllipsis);
    }
    ExprPtr unary = Make(ExprKind::kUnary);
    unary->text = token().text;
    Advance();
    Adopt(*unary, ParseBinary(is_not ? kNotPrecedence : std::max(lowest, kUnaryPrecedence)));
    --depth_;
    return unary;
  }

  ExprPtr ParsePostfix() {
    ExprPtr value = ParseAtom();
    while (ok()) {
      if (IsMark(".")) {
        ExprPtr attribute = Make(ExprKind::kAttribute);
        attribute->line = value->line;
        attribute->column = value->column;
        Advance();
        if (!Is(TokenKind::kName)) Fail(absl::StrCat("expected a name, found ", Found()));
        attribute->text = token().text;
        Advance();
        Adopt(*attribute, std::move(value));
        value = std::move(attribute);
      } else if (IsMark("(")) {
        value = ParseCall(std::move(value));
      } else if (IsMark("[")) {
        ExprPtr subscript = Make(ExprKind::kSubscript);
        subscript->line = value->line;
        subscript->column = value->column;
        Advance();
        Adopt(*subscript, std::move(value));
        Adopt(*subscript, ParseIndex());
        Expect("]");
        value = std::move(subscript);
      } else {
        break;
      }
    }
    return value;
  }

  ExprPtr ParseCall(ExprPtr callee) {
    ExprPtr call = Make(ExprKind::kCall);
    call->line = callee->line;
    call->column = callee->column;
    Advance();
    Adopt(*call, std::move(callee));
    while (ok() && !IsMark(")")) {
      const bool is_keyword =
          Is(TokenKind::kName) && ahead().kind == TokenKind::kPunctuation && ahead().text == "=";
      if (is_keyword) {
        call->keywords.push_back(token().text);
        Advance();
        Advance();
      } else if (!call->keywords.empty()) {
        Fail("an argument without a name behind one with a name");
      }
      Adopt(*call, ParseExpr());
      if (!TakeMark(",")) break;
    }
    Expect(")");
    return call;
  }

  // What stands between brackets: an index, a slice, or several types or indices.
  ExprPtr ParseIndex() {
    ExprPtr first = ParseSliceOrExpr();
    if (!IsMark(",")) return first;
    ExprPtr tuple = Make(ExprKind::kTuple);
    Adopt(*tuple, std::move(first));
    while (ok() && TakeMark(",")) {
      if (IsMark("]")) break;
      Adopt(*tuple, ParseSliceOrExpr());
    }
    return tuple;
  }

  ExprPtr ParseSliceOrExpr() {
    ExprPtr begin;
    if (!IsMark(":")) begin = ParseExpr();
    if (!ok() || !IsMark(":")) return begin;
    ExprPtr slice = Make(ExprKind::kSlice);
    Adopt(*slice, std::move(begin));
    for (int i = 0; i < 2; ++i) {
      ExprPtr part;
      if (TakeMark(":") && !IsMark(":") && !IsMark("]") && !IsMark(",")) part = ParseExpr();
      Adopt(*slice, std::move(part));
    }
    return slice;
  }

  ExprPtr ParseAtom() {
    ExprPtr atom = Make(ExprKind::kName);
    atom->text = token().text;
    switch (token().kind) {
      case TokenKind::kName:
        ExpectName();
        return atom;
      case TokenKind::kInt:
        atom->kind = ExprKind::kInt;
        if (!absl::SimpleAtoi(token().text, &atom->integer)) {
          // torch writes the lowest integer as -9223372036854775808, whose digits alone are beyond.
          atom->kind = ExprKind::kFloat;
          if (!absl::SimpleAtod(token().text, &atom->real)) Fail("an integer beyond all limits");
        }
        Advance();
        return atom;
      case TokenKind::kFloat:
        atom->kind = ExprKind::kFloat;
        if (!absl::SimpleAtod(token().text, &atom->real)) Fail("a number that cannot be read");
        Advance();
        return atom;
      case TokenKind::kString:
        atom->kind = ExprKind::kString;
        while (ok() && Is(TokenKind::kString)) {  // adjacent strings are one
          std::string part;
          if (!UnescapeString(token().text, part)) Fail("a string with a malformed escape");
          atom->string += part;
          Advance();
        }
        return atom;
      case TokenKind::kPunctuation:
        return ParseBracketed(std::move(atom));
      default:
        Fail(absl::StrCat("expected an expression, found ", Found()));
        return atom;
    }
  }

  ExprPtr ParseBracketed(ExprPtr atom) {
    if (TakeMark("...")) {
      atom->kind = ExprKind::kEllipsis;
      return atom;
    }
    if (TakeMark("^")) {  // ^PythonOp(...)(...): a Python function, which the archive does not hold
      atom->text = "^";
      const absl::string_view name = ExpectName();
      atom->string = std::string(name);
      return atom;
    }
    if (TakeMark("[")) {
      atom->kind = ExprKind::kList;
      ParseItems(*atom, "]");
      return atom;
    }
    if (TakeMark("{")) {
      atom->kind = ExprKind::kDict;
      while (ok() && !IsMark("}")) {
        Adopt(*atom, ParseExpr());
        Expect(":");
        Adopt(*atom, ParseExpr());
        if (!TakeMark(",")) break;
      }
      Expect("}");
      return atom;
    }
    if (!TakeMark("(")) {
      Fail(absl::StrCat("expected an expression, found ", Found()));
      return atom;
    }
    atom->kind = ExprKind::kTuple;
    const bool has_comma = ParseItems(*atom, ")");
    if (!ok() || has_comma || atom->children.size() != 1) return atom;
    ExprPtr inner = std::move(atom->children[0]);
    return inner;
  }

  // Whether there was a comma.
  bool ParseItems(Expr& parent, absl::string_view close) {
    bool has_comma = false;
    while (ok() && !IsMark(close)) {
      Adopt(parent, ParseExpr());
      if (!TakeMark(",")) break;
      has_comma = true;
    }
    Expect(close);
    return has_comma;
  }

  std::vector<Token> tokens_;
  const CodeLimits& limits_;
  CodeError& error_;
  size_t at_ = 0;
  int depth_ = 0;
  int elif_depth_ = 0;
};

}  // namespace

std::unique_ptr<CodeFile> ParseCode(absl::string_view source, const CodeLimits& limits,
                                    CodeError& error) {
  std::vector<Token> tokens = Tokenize(source, limits, error);
  if (!error.message.empty()) return nullptr;
  return Parser(std::move(tokens), limits, error).Run();
}

ParsedCode ParseCode(absl::string_view source, const CodeLimits& limits) {
  ParsedCode parsed;
  parsed.code = ParseCode(source, limits, parsed.error);
  return parsed;
}

}  // namespace npuc::pt
