#include "compiler_core/frontends/common/front_end.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/import.h"
#include "compiler_core/frontends/common/sniff.h"

namespace npuc {
namespace {

bool IsCaffeModel(absl::string_view bytes) {
  const FileGuess guess = GuessFileKind(bytes);
  return guess.what == caffe::kCaffeGuess || guess.what == caffe::kCaffeTextGuess;
}

// The whole .prototxt, which is text and small. False: it was reported.
bool ReadText(const ModelFiles& files, std::string* text, Diagnostics& diagnostics) {
  const int64_t size = files.data->size();
  if (size > static_cast<int64_t>(caffe::kMaxTextBytes)) {
    RefuseFile(DiagnosticKind::kModelLimitExceeded, files.data_name,
               absl::StrCat("the file has ", size, " bytes; allowed are ", caffe::kMaxTextBytes),
               "name the .prototxt of the net alone", diagnostics);
    return false;
  }
  text->resize(static_cast<size_t>(size));
  const absl::Status status = files.data->Read(0, absl::MakeSpan(*text));
  if (status.ok()) return true;
  RefuseFile(DiagnosticKind::kFileUnreadable, files.data_name, std::string(status.message()),
             "check the file", diagnostics);
  return false;
}

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  caffe::CaffeFiles caffe_files{.model = files.model, .model_name = options.model_name};
  std::string text;
  if (files.data != nullptr) {
    if (!ReadText(files, &text, diagnostics)) return diagnostics.ToStatus();
    caffe_files.text = text;
    caffe_files.text_name = files.data_name;
  }
  return ImportCaffe(caffe_files, options, diagnostics, files.plugins, files.boxes);
}

absl::StatusOr<ModelOutline> Outline(const ModelFiles& files, absl::string_view file,
                                     Diagnostics& diagnostics) {
  if (GuessFileKind(files.model).what == caffe::kCaffeTextGuess) {
    return OutlineCaffe({.model = "",
                         .model_name = file,
                         .text = files.model,
                         .text_name = file,
                         .is_text_alone = true},
                        diagnostics);
  }
  caffe::CaffeFiles caffe_files{.model = files.model, .model_name = file};
  std::string text;
  if (files.data != nullptr) {
    if (!ReadText(files, &text, diagnostics)) return diagnostics.ToStatus();
    caffe_files.text = text;
    caffe_files.text_name = files.data_name;
  }
  return OutlineCaffe(caffe_files, diagnostics);
}

}  // namespace

const FrontEnd kCaffeFrontEnd = {.sniff = IsCaffeModel,
                                 .import = Import,
                                 .outline = Outline,
                                 .operators = ImportedCaffeLayers,
                                 .has_plugins = true};

}  // namespace npuc
