#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_SNIFF_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_SNIFF_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc {

// What bytes that are no GraphDef seem to be, for a message: `what` completes "the file looks like
// ..." and `fix` says what to do. Both are empty where nothing was recognised. Thread-safe.
struct FileGuess {
  std::string what;
  std::string fix;
};
FileGuess GuessFileKind(absl::string_view bytes);

// The advice for a Keras model: Keras writes a SavedModel, which is read with its folder.
inline constexpr char kExportKeras[] =
    "save it as a folder, which is read: python3 -c \"import keras; "
    "keras.models.load_model('FILE').export('FOLDER')\"";

// True where a file begins with printable characters; false for no bytes.
bool IsMostlyText(absl::string_view bytes);

// True for a ProgramDesc of PaddlePaddle, by the begin of its first block: its number and its
// parent's, which no GraphDef has there.
bool IsPaddleProgram(absl::string_view bytes);

// The outermost protobuf fields of `bytes`, walked without decoding what they hold.
struct WireOutline {
  bool well_formed = false;  // every field ends within the file
  // The count of length-delimited fields of each number; 100 is the layers of a Caffe net.
  int length_delimited[101] = {};
  bool starts_with_varint_1 = false;
  // Where the walk broke off: the field of number `broken_field` at `broken_offset` needs
  // `needed_bytes` bytes and the file has `left_bytes`. needed_bytes 0: not a protobuf field at
  // all.
  uint64_t broken_offset = 0;
  uint64_t broken_field = 0;
  uint64_t needed_bytes = 0;
  uint64_t left_bytes = 0;
};
WireOutline OutlineWire(absl::string_view bytes);

// Reports what is wrong with a model file as a whole. Null, for its parser to return.
std::nullptr_t RefuseFile(DiagnosticKind kind, absl::string_view file, std::string message,
                          std::string fix, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_SNIFF_H_
