// Fuzzes the GraphDef reader and the importer: the bytes are a model; every node without consumers
// is an output and every Placeholder an input.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/tensorflow/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  npuc::CompileOptions options;
  options.model_name = "fuzz.pb";
  const absl::StatusOr<npuc::ModelOutline> outline =
      npuc::OutlineTensorFlow(bytes, options.model_name, diagnostics);
  if (!outline.ok()) return 0;
  for (const npuc::ModelOutline::Port& input : outline->inputs) {
    // The fuzzer chooses the input's shape by the Placeholder's own; unknown dimensions become 2.
    std::vector<int64_t> shape = input.dims.value_or(std::vector<int64_t>());
    for (int64_t& dim : shape) dim = dim < 0 ? 2 : dim;
    options.inputs.push_back({input.key, shape});
  }
  for (const npuc::ModelOutline::Port& output : outline->outputs) {
    if (options.outputs.size() < 64) options.outputs.push_back(output.key);
  }
  const absl::StatusOr<npuc::Graph> graph = npuc::ImportTensorFlow(bytes, options, diagnostics);
  if (!graph.ok() && absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
