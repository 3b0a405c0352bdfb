#ifndef NPUC_COMPILER_CORE_BASE_FILE_BESIDE_H_
#define NPUC_COMPILER_CORE_BASE_FILE_BESIDE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/framework.h"

namespace npuc {

// The second file of a model, as the programs that are given a model alone find it.
struct FileBeside {
  std::string path;       // empty: none
  std::string in_config;  // its path from the model's folder; empty: a config may leave it out
};

// Looks in the model's folder and nowhere else, in this order: the file that the model states, the
// model's name with the format's ending, and, where no key may be left out, the last file of that
// ending whose name begins with the model's or the other way round ("lenet_iter_100.caffemodel",
// "lenet.prototxt"; "lenet-symbol.json", "lenet-0005.params"), deploy.prototxt, and the only one of
// that ending beside a solver's settings. A program of Paddle's 1.x,
// "__model__", has "__params__" or a folder of parameters. A file that a compile would look for is
// named though it is not there.
FileBeside FindFileBeside(const FrameworkInfo& info, const std::string& model_path,
                          absl::string_view stated);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FILE_BESIDE_H_
