#ifndef NPUC_COMPILER_CORE_QUANT_DATA_INPUT_SAMPLES_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_INPUT_SAMPLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/ir/graph/types.h"
#include "compiler_core/quant/data/sample_forms.h"

namespace npuc {

// A file of samples, or an archive of such files.
struct SampleFile {
  std::string input;  // the graph input that it is for; SampleSet says how
  std::string name;   // for messages
  std::shared_ptr<const ByteSource> bytes;
  SampleForms forms = {};  // what a picture or a sound becomes
};

// An error with the file's name in front; OK stays.
absl::Status InFile(const SampleFile& file, const absl::Status& status);

// The samples of one input, in the files that hold them: NumPy arrays, pictures and sounds, one
// file after the other. Each is read when its sample is. Thread-safe once made.
class InputSamples {
 public:
  static constexpr int64_t kMaxSamples = int64_t{1} << 24;

  InputSamples() = default;
  // `input` is the name for messages.
  InputSamples(std::string input, Shape shape)
      : input_(std::move(input)), shape_(std::move(shape)) {}

  // Adds a file's samples. An array of one more dimension than the input, [m,...], or [m*n,...] for
  // an input [n,...], is m samples; a picture or a sound is one. INVALID_ARGUMENT naming the file
  // and what does not fit; what is wrong with a picture or a sound is found when it is read.
  absl::Status Add(const SampleFile& file);

  int64_t size() const { return size_; }
  const std::string& name() const { return parts_[0].file.name; }  // of the first file
  // Sample `index` as f32, or zeros where there is none at all. INVALID_ARGUMENT where a value is
  // not finite, or the picture or sound is not usable.
  absl::Status Read(int64_t index, std::vector<float>& out) const;

 private:
  struct Part {
    SampleFile file;
    DType dtype = DType::kInvalid;  // of an array; kInvalid: a picture or a sound
    int64_t offset = 0;             // of its first element
    int64_t first = 0;              // the number of its first sample
  };

  std::string input_;
  Shape shape_;
  std::vector<Part> parts_;
  int64_t size_ = 0;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_INPUT_SAMPLES_H_
