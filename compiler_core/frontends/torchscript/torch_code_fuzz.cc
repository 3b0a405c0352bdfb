// Fuzzes the parser and the executor of TorchScript: the bytes are the source file of class Net in
// a module with a few attributes. Its forward gets a tensor for each parameter.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/torchscript/archive.h"
#include "compiler_core/frontends/torchscript/import.h"
#include "compiler_core/frontends/torchscript/parser.h"

namespace {

// A module of class __torch__.Net: w, six floats as [2,3], and n, the int 3.
constexpr char kModule[] =
    "\x80\x02"
    "c__torch__\nNet\n)\x81}(X\x01\x00\x00\x00w"
    "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    "X\x01\x00\x00\x00"
    "0X\x03\x00\x00\x00"
    "cpuK\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89"
    "ccollections\nOrderedDict\n)RtR"
    "X\x01\x00\x00\x00nK\x03ub.";

size_t ParameterCount(const std::string& source) {
  npuc::pt::CodeError error;
  const auto file = npuc::pt::ParseCode(source, {}, error);
  if (file == nullptr) return 0;
  for (const npuc::pt::ClassDef& def : file->classes) {
    for (const npuc::pt::FunctionDef& method : def.methods) {
      if (method.name == "forward" && !method.parameters.empty()) {
        return method.parameters.size() - 1;
      }
    }
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  npuc::pt::TorchArchive archive;
  archive.file = "fuzz.pt";
  archive.sources.push_back({"__torch__.py", source});
  archive.root = npuc::pt::Unpickle(absl::string_view(kModule, sizeof(kModule) - 1), "fuzz.pt",
                                    "data.pkl", "data", {}, archive.values, diagnostics);
  if (!archive.root.valid()) __builtin_trap();
  const std::string ones(24, '\x01');
  archive.storage_bytes.push_back({ones, nullptr});
  npuc::CompileOptions options;
  options.framework = npuc::Framework::kTorchScript;
  options.model_name = "fuzz.pt";
  options.core = "GRUS";
  const size_t count = ParameterCount(source);
  for (size_t i = 0; i < count && i < 8; ++i) {
    std::vector<int64_t> shape = {1, 4, 6, 8};
    shape.resize(i == 0 && size % 2 == 0 ? 4 : 3);
    options.inputs.push_back({absl::StrCat(i), shape});
  }
  const absl::StatusOr<npuc::Graph> graph = npuc::ImportTorchArchive(archive, options, diagnostics);
  if (graph.ok() == diagnostics.has_errors()) __builtin_trap();
  if (absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
