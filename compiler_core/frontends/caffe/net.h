#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_NET_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_NET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/caffe/message.h"

namespace npuc::caffe {

inline constexpr size_t kMaxLayers = size_t{1} << 16;
// The name of the format in a FileGuess.
inline constexpr absl::string_view kCaffeGuess = "a Caffe model";
inline constexpr absl::string_view kCaffeTextGuess = "a Caffe net in text form (.prototxt)";

// The files of a model. Both outlive what is read from them.
struct CaffeFiles {
  absl::string_view model;                               // .caffemodel
  absl::string_view model_name;                          // for diagnostics
  std::optional<absl::string_view> text = std::nullopt;  // .prototxt
  absl::string_view text_name = {};
  bool is_text_alone = false;  // there is no .caffemodel: for an outline
};

// A layer that is there at inference. Tensors are numbers, since a net gives one name to several:
// a layer may write where it reads.
struct Layer {
  std::string name;
  std::string type;
  std::vector<std::string> bottom_names = {};
  std::vector<int> bottoms = {};  // tensors; -1 where no layer before gives one of the name
  std::vector<int> tops = {};
  const Message* params = nullptr;  // of its type; never null
  bool has_foreign_params = false;  // in the binary form, under a number that no table names
  std::vector<absl::string_view> blobs = {};
};

struct NetTensor {
  std::string blob;  // what the net calls it
  int layer = -1;    // -1: an input
  // Its name in a config: the blob, or of an earlier value of that, LAYER:TOP.
  std::string name = {};
  bool is_read = false;                                     // by a layer that is there at inference
  bool is_decoded = false;                                  // by a layer that is not
  std::optional<std::vector<int64_t>> dims = std::nullopt;  // of an input, -1 where unknown
};

// A layer that decodes boxes behind the net, which the firmware does.
struct Decoding {
  Layer layer;                       // with the tensors that it decodes as bottoms
  std::vector<std::string> results;  // its tops
  int priors = -1;                   // the tensor that holds the boxes that they are relative to
};

// A net as it runs at inference: phase TEST, level and stages as the net itself states them;
// without what reads data sets, measures or trains. Owns the messages that its layers point to.
class Net {
 public:
  // The net is that of the text where there is one, with the blobs of the model by layer name; else
  // that of the model. Every problem goes to `diagnostics`; null where there was one that is an
  // error.
  static std::unique_ptr<Net> Parse(const CaffeFiles& files, Diagnostics& diagnostics);

  const std::string& name() const { return name_; }
  bool is_from_text() const { return is_from_text_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<NetTensor>& tensors() const { return tensors_; }
  const std::vector<Decoding>& decodings() const { return decodings_; }
  // The tensors that no layer reads, in the order of the layers that give them.
  std::vector<int> Outputs() const;
  // The tensor of the name: a blob's last value, the first top of a layer, or LAYER:TOP. -1: none.
  int Find(absl::string_view name) const;
  std::vector<absl::string_view> TensorNames() const;

 private:
  class Reader;
  Net() = default;

  std::string name_;
  bool is_from_text_ = false;
  std::unique_ptr<Message> model_;
  std::unique_ptr<Message> text_;
  std::vector<Layer> layers_;
  std::vector<NetTensor> tensors_;
  std::vector<Decoding> decodings_;
  absl::flat_hash_map<std::string, int> by_name_;
};

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_NET_H_
