#ifndef NPUC_COMPILER_CORE_TOOLS_ARRAY_FILES_H_
#define NPUC_COMPILER_CORE_TOOLS_ARRAY_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/tools/run_items.h"
#include "nlohmann/json_fwd.hpp"

namespace npuc {

// What `npuc run` and `npuc reference` share: arrays from and to .npy files, and their ending.

// Every "NAME=FILE.npy"; "FILE.npy" where the model has one input, states aside; the same of
// FILE.bin, which has the bytes that the input stores, without a head; "random" or
// "random:SEED" for all inputs that are not given: one item of RandomInput, which is printed to
// standard error. A picture, a zip file or a folder holds samples of one input, or of all
// (SampleSet), as real values; files pictures.yaml and sounds.yaml in the folder, or beside the
// file, say what pictures and sounds become. All problems become diagnostics.
std::vector<NamedArray> LoadInputs(const std::vector<std::string>& inputs, const FrameRunner& model,
                                   Diagnostics& diagnostics);

// NAME of NAME.npy: '/' and ':' written as '_', and what cannot stand in a file name too. Of a
// longer name than a file can have its beginning and 16 digits of its MD5.
std::string FileStem(const std::string& name);

// Writes DIR/NAME.npy for each output ('/' and ':' in NAME as '_'), or nothing where output_dir is
// empty; adds each to `list`, and prints it where `print`.
absl::Status WriteOutputs(const std::string& output_dir, bool print, const RunItemsResult& result,
                          nlohmann::ordered_json& list);

void AddFileProblem(const absl::Status& status, Diagnostics& diagnostics);

// Prints what went wrong, once, without notes: those are for who compiles. The process's exit code:
// 0 done, 1 refused.
int Finish(const absl::Status& status, const Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_ARRAY_FILES_H_
