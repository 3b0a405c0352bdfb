#ifndef NPUC_COMPILER_CORE_EMIT_MODEL_SET_H_
#define NPUC_COMPILER_CORE_EMIT_MODEL_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"

namespace npuc {

// ALL.npuc of several models: nets, or one net for several input sizes. All numbers are
// little-endian.
//   "NPUCSET1"; u32 format version, 1; u32 models; u32 parts; u32 zero
//   for each part: u64 bytes
//   for each model: u32 length and bytes of its name; u32 count and numbers of parts, which one
//   after the other are its model file (model_file.h)
//   the parts, each behind zeros up to a multiple of 16
//   32 bytes: SHA-256 of everything before them
// Each section of a model file is a part of its own, and equal parts are kept once: models with the
// same weights share them. Equal models in the same order give equal bytes.

struct NamedModel {
  std::string name;  // unique in a set
  CompiledModel model;
};

struct ModelSet {
  std::vector<NamedModel> models;
  int64_t shared_bytes = 0;  // that the file would have more without sharing
};

inline constexpr size_t kMaxSetModels = 64;
inline constexpr size_t kMaxModelNameBytes = 256;

// INVALID_ARGUMENT: no model, or two of one name. RESOURCE_EXHAUSTED: more than a set may hold.
absl::StatusOr<std::string> WriteModelSet(const std::vector<NamedModel>& models);

bool IsModelSet(absl::string_view bytes);

// Errors (with a diagnostic): INVALID_ARGUMENT where the file is damaged or a model in it is. The
// models together have at most kMaxArtifactBytes.
absl::StatusOr<ModelSet> ReadModelSet(absl::string_view bytes, absl::string_view file_name,
                                      Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_MODEL_SET_H_
