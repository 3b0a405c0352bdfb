#ifndef NPUC_COMPILER_CORE_TOOLS_NATIVE_RUNNER_H_
#define NPUC_COMPILER_CORE_TOOLS_NATIVE_RUNNER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/native_operators.h"

namespace npuc {

// Libraries of operators for the command-line tools. Each Run starts npuc-operator, which lies
// beside this program and loads the library in a process behind walls, twice, and compares the
// answers. No byte of a library is mapped into this process. Thread-safe.
class NativeRunner : public NativeOperators {
 public:
  // Files of PLUGINS are seen from the folder of the config at `config_path`.
  explicit NativeRunner(std::string config_path) : config_path_(std::move(config_path)) {}

  absl::StatusOr<std::shared_ptr<const NativeLibrary>> Open(absl::string_view plugin_file,
                                                            absl::string_view path) override;

 private:
  const std::string config_path_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_NATIVE_RUNNER_H_
