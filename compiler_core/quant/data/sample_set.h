#ifndef NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_SET_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_SET_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/types.h"
#include "compiler_core/quant/data/npy.h"

namespace npuc {

// One file of samples. `input` names the graph input that it is for: by its name ('/' and ':' may
// stand as '_'); empty: the only input, or the file is an .npz whose entries have the names.
struct SampleFile {
  std::string input;
  std::string name;  // for messages
  std::shared_ptr<const ByteSource> bytes;
};

// Samples from NumPy files, read one by one: memory does not grow with their number (but an .npz is
// kept whole, stored or deflated, up to kMaxArchiveBytes of data). An array of one
// more dimension than the input, [m,...], or [m*n,...] for an input [n,...], is m samples. Any
// numeric type, converted to f32. Thread-safe once made.
class SampleSet {
 public:
  static constexpr int64_t kMaxArchiveBytes = int64_t{1} << 30;
  static constexpr int64_t kMaxSamples = int64_t{1} << 24;

  // INVALID_ARGUMENT saying which file does not fit: every input needs samples, as many as the
  // others, at least one, each of f32 in the graph. Inputs of `may_lack` may have none, and are
  // zeros until SetSamples.
  static absl::StatusOr<SampleSet> Open(const std::vector<SampleFile>& files, const Graph& graph,
                                        const std::set<size_t>& may_lack = {});

  int64_t size() const { return size_; }
  // Sample `index`: f32 values of each graph input, in their order. INVALID_ARGUMENT where one is
  // not finite.
  absl::Status Read(int64_t index, std::vector<std::vector<float>>& inputs) const;

  bool HasSamples(size_t input) const { return arrays_[input].bytes != nullptr; }
  // The samples of an input, one after the other: as many as size() times its elements (CHECKed).
  void SetSamples(size_t input, const std::string& name, absl::Span<const float> values);

 private:
  struct Array {
    std::string name;
    std::shared_ptr<const ByteSource> bytes;
    DType dtype = DType::kInvalid;
    int64_t offset = 0;  // of the first element
    int64_t sample_elements = 0;
  };
  absl::Status Bind(const Graph& graph, size_t input, const SampleFile& file);
  absl::Status BindArchive(const Graph& graph, const SampleFile& file);

  std::vector<Array> arrays_;  // by graph input
  int64_t size_ = -1;
};

// A whole array of one number a sample, such as labels.npy [m] or [m,1], as doubles; at most
// SampleSet::kMaxSamples.
absl::StatusOr<std::vector<double>> ReadNumbers(absl::string_view npy);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_SAMPLE_SET_H_
