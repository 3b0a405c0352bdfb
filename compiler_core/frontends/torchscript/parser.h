#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PARSER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PARSER_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "compiler_core/frontends/torchscript/ast.h"
#include "compiler_core/frontends/torchscript/lexer.h"

namespace npuc::pt {

// Parses one source file of an archive, as torch's printer writes it: classes, functions and the
// statements of ast.h. `source` must outlive the result. Null where `error` is set. Time and memory
// are linear in the source; nesting is bounded by `limits`. Thread-safe.
std::unique_ptr<CodeFile> ParseCode(absl::string_view source, const CodeLimits& limits,
                                    CodeError& error);
// The same, with both in one.
ParsedCode ParseCode(absl::string_view source, const CodeLimits& limits = {});

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_PARSER_H_
