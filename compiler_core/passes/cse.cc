#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

void AppendBytes(const void* data, size_t size, std::string& key) {
  key.append(reinterpret_cast<const char*>(&size), sizeof(size));
  if (size != 0) key.append(static_cast<const char*>(data), size);
}

template <typename T>
void AppendItem(const T& item, std::string& key) {
  key.append(reinterpret_cast<const char*>(&item), sizeof(item));
}

// Equal for equal constants. Weights as a rule differ here already, which spares reading the rest.
absl::Span<const uint8_t> BeginOf(const Tensor& tensor) {
  constexpr size_t kBeginBytes = 64;
  return tensor.bytes().subspan(0, kBeginBytes);
}

void AppendType(const TensorType& type, std::string& key) {
  AppendItem(type.dtype, key);
  AppendBytes(type.shape.data(), type.shape.size() * sizeof(int64_t), key);
}

// Floats by their bits, so that 0.0 and -0.0 differ and a NaN equals itself.
struct AttrAppender {
  std::string& key;
  void operator()(bool value) const { AppendItem(value, key); }
  void operator()(int64_t value) const { AppendItem(value, key); }
  void operator()(double value) const { AppendItem(value, key); }
  void operator()(const std::string& value) const { AppendBytes(value.data(), value.size(), key); }
  void operator()(const std::vector<int64_t>& value) const {
    AppendBytes(value.data(), value.size() * sizeof(int64_t), key);
  }
  void operator()(const std::vector<double>& value) const {
    AppendBytes(value.data(), value.size() * sizeof(double), key);
  }
  void operator()(const Tensor& value) const {
    AppendType(value.type(), key);
    AppendBytes(value.bytes().data(), value.bytes().size(), key);
  }
};

// Equal keys: the nodes compute the same.
std::string KeyOf(const Rewriter& rewriter, const Node& node) {
  std::string key;
  key.reserve(128);
  key.push_back(static_cast<char>(node.op));
  AppendBytes(node.inputs.data(), node.inputs.size() * sizeof(ValueId), key);
  for (const ValueId output : node.outputs) AppendType(rewriter.type(output), key);
  for (const auto& [name, value] : node.attrs) {
    AppendBytes(name.data(), name.size(), key);
    AppendItem(value.index(), key);
    std::visit(AttrAppender{key}, value);
  }
  return key;
}

// Finds constants of equal type and bytes. Bytes are hashed once, and only where two constants
// share a type and begin alike; they are compared only where hashes agree.
class ConstantPool {
 public:
  // The value of an equal constant, or an invalid id after noting this one.
  ValueId FindOrAdd(const Tensor& tensor, ValueId id) {
    std::string kind;
    AppendType(tensor.type(), kind);
    AppendBytes(BeginOf(tensor).data(), BeginOf(tensor).size(), kind);
    Bucket& bucket = buckets_[kind];
    if (bucket.by_hash.empty() && !bucket.first.id.valid()) {
      bucket.first = {tensor, id};
      return ValueId();
    }
    if (bucket.by_hash.empty()) {
      bucket.by_hash[bucket.first.tensor.ContentHash()].push_back(bucket.first);
    }
    std::vector<Entry>& candidates = bucket.by_hash[tensor.ContentHash()];
    for (const Entry& entry : candidates) {
      if (entry.tensor == tensor) return entry.id;
    }
    candidates.push_back({tensor, id});
    return ValueId();
  }

 private:
  struct Entry {
    Tensor tensor;
    ValueId id;
  };
  struct Bucket {
    Entry first;  // of its kind; hashed when a second one comes
    absl::flat_hash_map<uint64_t, std::vector<Entry>> by_hash;
  };
  absl::flat_hash_map<std::string, Bucket> buckets_;
};

struct AttrHasher {
  uint64_t operator()(const Tensor& tensor) const { return tensor.ContentHash(); }
  template <typename T>
  uint64_t operator()(const T& value) const {
    return absl::HashOf(value);
  }
};

// Equal for nodes that compute the same.
uint64_t HashOfNode(const Graph& graph, const Node& node) {
  uint64_t state = absl::HashOf(node.op, node.inputs);
  for (const ValueId output : node.outputs) {
    state = absl::HashOf(state, graph.type(output).dtype, graph.type(output).shape);
  }
  for (const auto& [name, value] : node.attrs) {
    state = absl::HashOf(state, name, std::visit(AttrHasher(), value));
  }
  return state;
}

// Whether two nodes may compute the same; by hashes, so it may be said of nodes that do not. As a
// rule the pass has nothing to do: the others leave few such nodes.
bool MayHaveEquals(const Graph& graph) {
  absl::flat_hash_set<uint64_t> seen;
  seen.reserve(graph.node_count());
  absl::flat_hash_map<uint64_t, const Tensor*> first_of_kind;  // null: seen, as all others are
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kPlaceholder) continue;
    if (node.op != Op::kConst) {
      if (!seen.insert(HashOfNode(graph, node)).second) return true;
      continue;
    }
    const Tensor& tensor = std::get<Tensor>(node.attrs.find("value")->second);
    const uint64_t kind = absl::HashOf(tensor.dtype(), tensor.shape(), BeginOf(tensor));
    const auto [it, added] = first_of_kind.try_emplace(kind, &tensor);
    if (added) continue;
    const Tensor* first = std::exchange(it->second, nullptr);
    if (first != nullptr) seen.insert(absl::HashOf(kind, first->ContentHash()));
    if (!seen.insert(absl::HashOf(kind, tensor.ContentHash())).second) return true;
  }
  return false;
}

}  // namespace

Graph ApplyCse(Graph graph) {
  if (!MayHaveEquals(graph)) return graph;
  Rewriter rewriter(std::move(graph));
  ConstantPool constants;
  absl::flat_hash_map<std::string, NodeId> computed;
  computed.reserve(rewriter.old().node_count());
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    if (node.op == Op::kPlaceholder) {
      rewriter.Append(std::move(node));
      continue;
    }
    if (node.op == Op::kConst) {
      const ValueId next(rewriter.graph().value_count());
      const ValueId same =
          constants.FindOrAdd(std::get<Tensor>(node.attrs.find("value")->second), next);
      if (same.valid()) {
        rewriter.Replace(node, same);
      } else {
        rewriter.Append(std::move(node));
      }
      continue;
    }
    const auto [it, added] =
        computed.try_emplace(KeyOf(rewriter, node), NodeId(rewriter.graph().node_count()));
    if (added) {
      rewriter.Append(std::move(node));
      continue;
    }
    const std::vector<ValueId>& first = rewriter.graph().node(it->second).outputs;
    if (first.size() == 1) {
      rewriter.Replace(node, first[0]);
      continue;
    }
    for (size_t k = 0; k < first.size(); ++k) rewriter.Set(node.outputs[k], first[k]);
  }
  return rewriter.Finish();
}

}  // namespace npuc
