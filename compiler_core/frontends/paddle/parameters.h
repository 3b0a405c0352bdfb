#ifndef NPUC_COMPILER_CORE_FRONTENDS_PADDLE_PARAMETERS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_PADDLE_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/frontends/paddle/program_file.h"

namespace npuc::paddle {

// The values of a program's parameters: one file of all, in the order of their names and without
// them (.pdiparams, __params__), or a zip of the folder with a file for each. Values are read where
// they are asked for. Immutable after Open.
class Parameters {
 public:
  // `bytes` outlives it. INVALID_ARGUMENT where the file is none of these, does not have a tensor
  // for each of the program's parameters, or one of another shape; the message goes on from "the
  // parameters".
  static absl::StatusOr<Parameters> Open(const ByteSource& bytes, const ProgramFile& program);

  bool Has(absl::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  // RESOURCE_EXHAUSTED where it takes more than max_bytes.
  absl::StatusOr<Tensor> Read(absl::string_view name, int64_t max_bytes) const;

 private:
  struct Stored {
    std::shared_ptr<const ByteSource> owned;  // of a zip's entry; null: the file itself
    int64_t offset = 0;                       // of the values
    int data_type = 0;
    Shape shape;
  };

  // Reads the head of a tensor at *offset and moves it behind the values.
  static absl::StatusOr<Stored> ReadHead(const ByteSource& bytes, int64_t* offset);
  static absl::Status CheckShapeOf(const std::string& name, const Stored& stored,
                                   const Variable& variable);
  absl::Status ReadCombined(const ProgramFile& program);
  absl::Status ReadZip(const ProgramFile& program);

  const ByteSource* bytes_ = nullptr;
  std::map<std::string, Stored, std::less<>> tensors_;
};

}  // namespace npuc::paddle

#endif  // NPUC_COMPILER_CORE_FRONTENDS_PADDLE_PARAMETERS_H_
