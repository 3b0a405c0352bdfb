#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_AST_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_AST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/torchscript/lexer.h"

namespace npuc::pt {

// The syntax of serialized TorchScript. Views look into the source text, which must outlive the
// tree. No tree is nested deeper than CodeLimits allows, so recursion over it is bounded.

enum class ExprKind : uint8_t {
  kName,       // text; True, False and None are names, too
  kInt,        // integer
  kFloat,      // real
  kString,     // string
  kList,       // children
  kTuple,      // children
  kDict,       // children: key, value, key, value ...
  kAttribute,  // text of children[0]
  kCall,       // children[0] (the rest, then keywords named by `keywords`)
  kSubscript,  // children[0][children[1]]
  kSlice,      // children: begin, end, step; null where left out
  kUnary,      // text: -, +, ~, not
  kBinary,     // text: +, -, ==, in, is, and, or ...; "is not" and "not in" as such
  kTernary,    // children: condition, value where true, value where false
  kEllipsis,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;
using ExprList = absl::InlinedVector<ExprPtr, 2>;  // few have more

struct Expr {
  ExprKind kind = ExprKind::kName;
  int line = 0;
  int column = 0;
  int height = 1;  // longest way down
  int64_t integer = 0;
  double real = 0;
  absl::string_view text;
  std::string string;
  ExprList children;
  std::vector<absl::string_view> keywords;  // of a call: names of the last children
};

enum class StmtKind : uint8_t {
  kExpr,    // value
  kAssign,  // targets = value
  kIf,      // value, body, orelse
  kWhile,   // value, body
  kFor,     // targets in value, body
  kReturn,  // value, may be null
  kRaise,   // value, may be null
  kPass,
  kBreak,
  kContinue,
  kWith,  // value, targets (none or one), body
};

struct Stmt {
  StmtKind kind = StmtKind::kPass;
  int line = 0;
  int column = 0;
  ExprList targets;
  bool is_unpacking = false;  // targets take apart a sequence, even where there is one
  ExprPtr value;
  std::vector<Stmt> body;
  std::vector<Stmt> orelse;
};

struct Parameter {
  absl::string_view name;
  ExprPtr type;      // may be null
  ExprPtr fallback;  // the default value; may be null
  bool keyword_only = false;
};

struct FunctionDef {
  absl::string_view name;
  int line = 0;
  int column = 0;
  std::vector<Parameter> parameters;
  std::vector<Stmt> body;
};

// A constant or annotated attribute of a class.
struct ClassAttribute {
  std::string name;
  ExprPtr type;   // may be null
  ExprPtr value;  // may be null
};

struct ClassDef {
  absl::string_view name;
  absl::string_view base;  // "Module", "NamedTuple", "Enum" ...; may be empty
  int line = 0;
  std::vector<ClassAttribute> attributes;
  std::vector<FunctionDef> methods;
};

// One source file.
struct CodeFile {
  std::vector<ClassDef> classes;
  std::vector<FunctionDef> functions;
};

// What parsing a source file gave: the one or the other.
struct ParsedCode {
  std::unique_ptr<CodeFile> code;  // null where there is an error
  CodeError error;
};

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_AST_H_
