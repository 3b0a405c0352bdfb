#include "compiler_core/frontends/torchscript/code_library.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/frontends/torchscript/parser.h"

namespace npuc::pt {

const LoadedFile* CodeLibrary::Load(absl::string_view path, bool& has_failed) {
  const auto it = files_.find(path);
  if (it != files_.end()) {
    has_failed = it->second == nullptr;
    return it->second.get();
  }
  const SourceFile* source = archive_->FindSource(path);
  if (source == nullptr) return nullptr;
  auto file = std::make_unique<LoadedFile>();
  file->path = absl::StrCat("code/", path);
  file->source = source->text;
  file->parsed = ParseCode(source->text, limits_);
  if (file->parsed.code == nullptr) {
    const CodeError& error = file->parsed.error;
    diagnostics_->Add({.kind = error.is_limit ? DiagnosticKind::kModelLimitExceeded
                                              : DiagnosticKind::kTorchCodeSyntax,
                       .message = absl::StrCat(
                           error.message,
                           "; the code is: ", Printable(SourceLine(source->text, error.line), 120)),
                       .file = absl::StrCat(archive_->file, ":", Printable(file->path)),
                       .line = error.line,
                       .column = error.column,
                       .fix = error.is_limit ? "simplify the model"
                                             : "save the model again with torch.jit.save"});
    file = nullptr;
    has_failed = true;
  }
  return files_.emplace(std::string(path), std::move(file)).first->second.get();
}

CodeLibrary::Found CodeLibrary::Find(absl::string_view qualified_name) {
  Found found;
  const size_t dot = qualified_name.rfind('.');
  if (dot == absl::string_view::npos) return found;
  const absl::string_view name = qualified_name.substr(dot + 1);
  const std::string path =
      absl::StrCat(absl::StrReplaceAll(qualified_name.substr(0, dot), {{".", "/"}}), ".py");
  found.file = Load(path, found.has_failed);
  if (found.file == nullptr) return found;
  for (const ClassDef& class_def : found.file->parsed.code->classes) {
    if (class_def.name == name) found.class_def = &class_def;
  }
  for (const FunctionDef& function : found.file->parsed.code->functions) {
    if (function.name == name) found.function = &function;
  }
  return found;
}

}  // namespace npuc::pt
