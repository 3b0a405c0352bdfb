#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/torchscript/pickle.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::pt {

// Limits on an archive; more is a diagnostic. What an entry's header claims is checked before
// anything is allocated, and again while it is read.
struct ArchiveLimits {
  int64_t file_bytes = int64_t{1} << 28;
  int64_t entries = 1 << 14;
  int64_t name_bytes = 1024;
  int64_t source_bytes = int64_t{1} << 24;   // of one entry below code/
  int64_t pickle_bytes = int64_t{1} << 26;   // of data.pkl or constants.pkl
  int64_t storage_bytes = int64_t{1} << 28;  // of one storage
  int64_t total_bytes = int64_t{1} << 29;    // of all that is read, after decompression
  // Decompressed bytes a compressed byte, for entries over 1 MiB.
  int64_t ratio = 1100;  // deflate cannot do more than 1032
  PickleLimits pickle;
};

// One source file of the archive.
struct SourceFile {
  std::string path;  // below code/: "__torch__.py", "__torch__/torch/nn/modules/conv.py"
  std::string text;  // valid UTF-8 without NUL bytes
};

// The elements of a storage: a view of the file, or of what its entry holds compressed.
struct StorageBytes {
  absl::string_view bytes;
  std::shared_ptr<const std::string> inflated;  // may be null
};

// What torch.jit.save wrote, unpickled. Immutable, so thread-safe. The file's bytes must outlive
// it.
struct TorchArchive {
  std::string file;  // as the user named it, for diagnostics
  // The `version` entry: 3 .. 10 in PyTorch 1.10 to 2.x; of no consequence for reading.
  int64_t version = 0;
  bool big_endian = false;  // the storages' byte order; pickles do not depend on it

  std::vector<SourceFile> sources;  // sorted by path, all of them
  PyValues values;
  PyId root;                    // of data.pkl: always a kObject, the module
  std::vector<PyId> constants;  // of constants.pkl: constants[i] is CONSTANTS.ci; may be empty

  // Bytes by storage, parallel to values.storages(): exactly element_count elements, in the
  // archive's byte order.
  std::vector<StorageBytes> storage_bytes;

  // Null where there is no such file.
  const SourceFile* FindSource(absl::string_view path) const;
};

// Reads a TorchScript archive, as torch.jit.save of PyTorch 1.10 to 2.x writes it. Every problem
// goes to `diagnostics` with `file`, the place (entry, offset), what was found, what is allowed and
// what to do; the status is that of the first error. `bytes` must outlive the archive.
// Thread-safe. Time and memory are bounded by the limits, whatever the bytes.
absl::StatusOr<TorchArchive> ReadTorchArchive(absl::string_view bytes, absl::string_view file,
                                              const ArchiveLimits& limits,
                                              Diagnostics& diagnostics);

// The tensor as the IR's dense, contiguous, little-endian one, whatever its strides, storage and
// byte order. bool becomes 0 or 1; bfloat16 becomes f32; f64 stays f64. `max_bytes` bounds the
// result and is checked before anything is allocated.
// Errors: UNIMPLEMENTED for complex types and integers that share a byte, naming them;
// RESOURCE_EXHAUSTED above max_bytes; INVALID_ARGUMENT for a shape that the IR cannot hold. `id`
// must be of kind kTensor and of this archive.
absl::StatusOr<Tensor> MaterializeTensor(const TorchArchive& archive, PyId id, int64_t max_bytes);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_H_
