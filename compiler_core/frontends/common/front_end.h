#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FRONT_END_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FRONT_END_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// The files of a model. Views; read during the call only.
struct ModelFiles {
  absl::string_view model;
  std::string data_name = {};        // base name of the file of its constants
  const ByteSource* data = nullptr;  // null: there is none
  frontend::Plugins plugins = {};    // the operators that the config declares; none without plugins
  // Takes the settings of boxes where the import cuts the model in front of layers that decode
  // them; null: nobody asks.
  std::optional<BoxSettings>* boxes = nullptr;
};

// The functions of a front end. Thread-safe. A member that is left out does not compile.
struct FrontEnd {
  // True for a file of its format, by its first bytes or its outermost fields.
  bool (*sniff)(absl::string_view bytes);
  // The model's graph. Problems go to `diagnostics`, with options.model_name as file.
  absl::StatusOr<Graph> (*import)(const ModelFiles& files, const CompileOptions& options,
                                  Diagnostics& diagnostics);
  // The facts that a file states of itself; no operator is imported. The framework in the result is
  // the caller's to set. Problems go to `diagnostics`, with `file`.
  absl::StatusOr<ModelOutline> (*outline)(const ModelFiles& files, absl::string_view file,
                                          Diagnostics& diagnostics);
  // The operators that it has a rule for, sorted. Whether a node compiles depends on the node, too.
  std::vector<std::string> (*operators)();
  // True: it imports operators that a config declares (ModelFiles::plugins).
  bool has_plugins;
};

// FrontEnd::outline of formats whose first file states all that an outline holds.
template <auto Outline>
absl::StatusOr<ModelOutline> OutlineOfModel(const ModelFiles& files, absl::string_view file,
                                            Diagnostics& diagnostics) {
  return Outline(files.model, file, diagnostics);
}

// Each row of frameworks.inc has one, defined in its own folder; without it pipeline does not link.
#define NPUC_FRONT_END(constant, ...) extern const FrontEnd k##constant##FrontEnd;
#include "compiler_core/base/frameworks.inc"

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FRONT_END_H_
