// Fuzzes the Caffe reader and the importer. The bytes are a .caffemodel; behind a line "%%" a
// .prototxt may follow.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/caffe/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr absl::string_view kSeparator = "\n%%\n";
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  npuc::caffe::CaffeFiles files{.model = bytes, .model_name = "fuzz.caffemodel"};
  if (const size_t at = bytes.find(kSeparator); at != absl::string_view::npos) {
    files.model = bytes.substr(0, at);
    files.text = bytes.substr(at + kSeparator.size());
    files.text_name = "fuzz.prototxt";
  }
  npuc::Diagnostics diagnostics;
  npuc::CompileOptions options;
  options.model_name = "fuzz.caffemodel";
  (void)npuc::OutlineCaffe(files, diagnostics);
  const absl::StatusOr<npuc::Graph> graph = npuc::ImportCaffe(files, options, diagnostics);
  if (!graph.ok() && absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
