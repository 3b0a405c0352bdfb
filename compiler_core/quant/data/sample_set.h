#ifndef NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_SET_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_SET_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/types.h"
#include "compiler_core/quant/data/input_samples.h"

namespace npuc {

// An input that samples are for. Names match where '/' and ':' stand as '_', too.
struct SampledInput {
  std::string name;
  Shape shape;
  bool may_lack = false;  // it may have no samples, and is zeros until SetSamples
};

// Reads samples for a model's inputs one by one, so that memory does not grow with their number. An
// archive is kept whole, up to kMaxArchiveBytes of data. Any numeric type, converted to f32.
// Thread-safe once made.
//
// A file (SampleFile) without an input's name is for the only input, or it is an archive:
// - an .npz file of arrays with the inputs' names;
// - a zip file or folder of .npy files, pictures and sounds, which are samples of the only input in
//   the order of their names; of several inputs each has its folder, named as it is. The files
//   pictures.yaml and sounds.yaml in it say what pictures and sounds become (sample_forms.h).
class SampleSet {
 public:
  static constexpr int64_t kMaxArchiveBytes = int64_t{1} << 30;
  static constexpr int64_t kMaxSamples = InputSamples::kMaxSamples;

  // INVALID_ARGUMENT saying which file does not fit: every input needs samples, as many as the
  // others, at least one.
  static absl::StatusOr<SampleSet> Open(const std::vector<SampleFile>& files,
                                        const std::vector<SampledInput>& inputs);
  // Takes the inputs of a graph, which must be f32.
  static absl::StatusOr<SampleSet> Open(const std::vector<SampleFile>& files, const Graph& graph,
                                        const std::set<size_t>& may_lack = {});

  int64_t size() const { return size_; }
  // Sample `index`: f32 values of each input, in their order. INVALID_ARGUMENT where one is not
  // finite.
  absl::Status Read(int64_t index, std::vector<std::vector<float>>& inputs) const;

  bool HasSamples(size_t input) const { return samples_[input].size() > 0; }
  // The samples of an input, one after the other: as many as size() times its elements (CHECKed).
  void SetSamples(size_t input, const std::string& name, absl::Span<const float> values);

 private:
  std::vector<SampledInput> inputs_;
  std::vector<InputSamples> samples_;  // by input
  int64_t size_ = 0;
};

// A whole array of one number a sample, such as labels.npy [m] or [m,1], as doubles; at most
// SampleSet::kMaxSamples.
absl::StatusOr<std::vector<double>> ReadNumbers(absl::string_view npy);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_SET_H_
