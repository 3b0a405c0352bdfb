#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_LAYER_VIEW_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_LAYER_VIEW_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/caffe/net.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::caffe {

// The parameters of one layer by name, as its rule reads them. It remembers which were read: one
// that no rule knows may change what the layer computes. Functions return NOT_FOUND where the
// parameter is absent, INVALID_ARGUMENT where it is of another kind. Not thread-safe.
class LayerView {
 public:
  explicit LayerView(const Layer* layer) : layer_(layer) {}

  const Layer& layer() const { return *layer_; }
  NodeSource source() const { return {layer_->name, layer_->type}; }

  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
  absl::StatusOr<bool> Bool(absl::string_view name) const;
  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<double> Float(absl::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name) const;
  absl::StatusOr<std::vector<double>> Floats(absl::string_view name) const;
  // The number of an enumerator, given as itself or by name; words[0] has the number `first`.
  absl::StatusOr<int64_t> Choice(absl::string_view name, absl::Span<const absl::string_view> words,
                                 int64_t first) const;
  // The dimensions of a BlobShape.
  absl::StatusOr<std::vector<int64_t>> Dims(absl::string_view name) const;

  // The first parameter that nobody read and that is not known to change nothing.
  std::optional<absl::string_view> Unread() const;

 private:
  const Field* Find(absl::string_view name) const;
  template <typename T, typename Read>
  absl::StatusOr<T> One(absl::string_view name, absl::string_view kind, Read read) const;
  template <typename T, typename Read>
  absl::StatusOr<std::vector<T>> Many(absl::string_view name, absl::string_view kind,
                                      Read read) const;

  const Layer* layer_;
  mutable std::set<absl::string_view> read_;
};

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_LAYER_VIEW_H_
