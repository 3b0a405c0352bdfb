#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FEATURES_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FEATURES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/frontends/common/feature_extraction.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"

namespace npuc::tf {

// A graph's feature extraction with the shapes that its attributes state, by the kernels of
// TensorFlow (core/kernels/spectrogram.cc, mfcc.cc).
class Features {
 public:
  // declared: shapes of inputs that the graph leaves open, may be empty. The file must outlive it.
  Features(const GraphFile& file, const std::vector<InputDecl>& declared);

  // Where the net begins; dimensions of -1 are not known. Empty: the graph extracts no features.
  const std::vector<InputDecl>& inputs() const { return inputs_; }
  // True where a tensor feeds the extraction alone.
  bool Replaces(const std::string& tensor) const {
    return !inputs_.empty() && extraction_.FeedsItAlone(tensor);
  }
  // The work that is left to the application: "AudioSpectrogram of windows of 640 samples, every
  // 320; ...".
  const std::string& description() const { return description_; }

 private:
  // [] where the number of dimensions is not known.
  std::vector<int64_t> DimsOf(const std::string& tensor, int depth) const;
  std::vector<int64_t> DimsOfNode(const NodeView& node, int depth) const;
  void Describe(const NodeView& node);

  const GraphFile& file_;
  absl::flat_hash_map<std::string, std::vector<int64_t>> declared_;
  frontend::FeatureExtraction extraction_;
  std::vector<InputDecl> inputs_;
  std::string description_;
};

// "'Mfcc' [1,49,10]" of each, with commas.
std::string NamesOf(const std::vector<InputDecl>& inputs);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FEATURES_H_
