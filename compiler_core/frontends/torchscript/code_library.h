#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CODE_LIBRARY_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CODE_LIBRARY_H_

#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/torchscript/archive.h"
#include "compiler_core/frontends/torchscript/ast.h"
#include "compiler_core/frontends/torchscript/lexer.h"

namespace npuc::pt {

// One parsed source file of the archive.
struct LoadedFile {
  std::string path;  // "code/__torch__/torch/nn/modules/conv.py"
  absl::string_view source;
  ParsedCode parsed;
};

// The archive's code, parsed file by file when something in it is asked for. A name such as
// __torch__.torch.nn.functional.relu lives in code/__torch__/torch/nn/functional.py. The archive
// must outlive it. Files that cannot be parsed are reported once.
class CodeLibrary {
 public:
  CodeLibrary(const TorchArchive* archive, Diagnostics* diagnostics, CodeLimits limits = {})
      : archive_(archive), diagnostics_(diagnostics), limits_(limits) {}

  struct Found {
    const LoadedFile* file = nullptr;
    const ClassDef* class_def = nullptr;  // one of the two, or neither
    const FunctionDef* function = nullptr;
    bool has_failed = false;  // the file is there and does not parse; that is reported
  };
  Found Find(absl::string_view qualified_name);

 private:
  const LoadedFile* Load(absl::string_view path, bool& has_failed);

  const TorchArchive* archive_;
  Diagnostics* diagnostics_;
  CodeLimits limits_;
  std::map<std::string, std::unique_ptr<LoadedFile>, std::less<>> files_;  // null: does not parse
};

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CODE_LIBRARY_H_
