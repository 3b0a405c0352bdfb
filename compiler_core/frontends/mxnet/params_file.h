#ifndef NPUC_COMPILER_CORE_FRONTENDS_MXNET_PARAMS_FILE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_MXNET_PARAMS_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::mxnet {

// A .params file: a list of NDArrays (MXNet's mx.nd.save) with their names. Versions 0 to 3 of the
// NDArray are read. Only where each array lies is held; its values are read when asked for.
class ParamsFile {
 public:
  // An array as the file states it.
  struct Array {
    std::string name;  // without "arg:" or "aux:"
    Shape shape;
    int64_t type_flag = 0;  // MXNet's number of the element type
    int64_t offset = 0;     // of the values
    int64_t bytes = 0;
    std::string problem = {};  // why it cannot be read; empty: it can
  };

  // `bytes` outlives it. Null: what is wrong with the file is in the diagnostics.
  static std::unique_ptr<ParamsFile> Parse(const ByteSource& bytes, absl::string_view file,
                                           Diagnostics& diagnostics);

  // Null where it has none of the name.
  const Array* Find(absl::string_view name) const;
  const std::vector<Array>& arrays() const { return arrays_; }
  // All floats become f32, UINT64 i64 where its values fit. `max_bytes` bounds the result. Errors:
  // INVALID_ARGUMENT where the array cannot be read, RESOURCE_EXHAUSTED above max_bytes.
  absl::StatusOr<Tensor> Decode(const Array& array, int64_t max_bytes) const;
  // Puts `prefix` before every name.
  void AddPrefix(absl::string_view prefix);

 private:
  explicit ParamsFile(const ByteSource& bytes) : bytes_(bytes) {}
  void IndexNames();

  const ByteSource& bytes_;
  std::vector<Array> arrays_;
  absl::flat_hash_map<std::string, size_t> by_name_;
};

// "float32"; "element type 77" for a number that is not MXNet's.
std::string TypeFlagName(int64_t type_flag);
// The type that Decode() gives; kInvalid for a number that is not MXNet's.
DType DTypeOfFlag(int64_t type_flag);

}  // namespace npuc::mxnet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_MXNET_PARAMS_FILE_H_
