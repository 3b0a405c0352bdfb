#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FEATURE_EXTRACTION_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FEATURE_EXTRACTION_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace npuc::frontend {

// The part of a model that makes features of sound: TensorFlow's DecodeWav, AudioSpectrogram and
// Mfcc, the micro frontend, TFLite Micro's Signal operators. No core computes it: the application
// does, and the net begins behind it. Where a model has such a part at its begin, this says at
// which tensors the net begins and which inputs feed nothing else.
class FeatureExtraction {
 public:
  static bool IsExtraction(absl::string_view op);

  // Each node once, in any order. A tensor's name is unique in the model.
  void AddNode(absl::string_view op, const std::vector<std::string>& operands,
               const std::vector<std::string>& results);

  // The last results of the part that other nodes read, in the order of the nodes. Empty: there is
  // no such part. Asked after the last AddNode.
  std::vector<std::string> Results() const;

  // True where a tensor leads to the results alone: the net without the part does not need it.
  bool FeedsItAlone(const std::string& tensor) const;

  // "DecodeWav, AudioSpectrogram, Mfcc": its operators, each once.
  std::string Operators() const;

 private:
  struct Node {
    std::string op;
    std::vector<int> operands = {};
    std::vector<int> results = {};
  };
  struct Tensor {
    std::string name;
    int producer = -1;
    std::vector<int> readers = {};
  };

  int TensorOf(const std::string& name);
  // Nodes from which a path leads to an operator of the part.
  std::vector<bool> BeforeExtraction() const;
  // By tensor: whether it is one of Results().
  std::vector<bool> ResultFlags() const;

  std::vector<Node> nodes_;
  std::vector<Tensor> tensors_;
  absl::flat_hash_map<std::string, int> by_name_;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FEATURE_EXTRACTION_H_
