// Fuzzes the GraphDef reader and the importer: the bytes are a model; every node without consumers
// is an output and every Placeholder an input.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/tensorflow/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  npuc::CompileOptions options;
  options.model_name = "fuzz.pb";
  const absl::StatusOr<npuc::TensorFlowOutline> outline =
      npuc::OutlineTensorFlow(bytes, options.model_name, diagnostics);
  if (!outline.ok()) return 0;
  for (const auto& placeholder : outline->placeholders) {
    // The fuzzer chooses the input's shape by the Placeholder's own; unknown dimensions become 2.
    std::vector<int64_t> shape;
    int64_t dim = -1;
    for (char c : placeholder.shape) {
      if (c == '?') dim = 2;
      if (c >= '0' && c <= '9' && dim < 100000) dim = (dim < 0 ? 0 : dim * 10) + (c - '0');
      if ((c == ',' || c == ']') && dim >= 0) {
        shape.push_back(dim);
        dim = -1;
      }
    }
    options.inputs.push_back({placeholder.name, shape});
  }
  options.outputs = outline->outputs;
  if (options.outputs.size() > 64) options.outputs.resize(64);
  const absl::StatusOr<npuc::Graph> graph = npuc::ImportTensorFlow(bytes, options, diagnostics);
  if (!graph.ok() && absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
