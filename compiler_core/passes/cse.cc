#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
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
std::string KeyOf(const Graph& old, const Node& old_node, const Node& node) {
  std::string key;
  AppendBytes(node.op.data(), node.op.size(), key);
  AppendBytes(node.inputs.data(), node.inputs.size() * sizeof(ValueId), key);
  for (const ValueId output : old_node.outputs) AppendType(old.type(output), key);
  for (const auto& [name, value] : node.attrs) {
    AppendBytes(name.data(), name.size(), key);
    AppendItem(value.index(), key);
    std::visit(AttrAppender{key}, value);
  }
  return key;
}

// Finds constants of equal type and bytes. Bytes are hashed once, and only where two constants
// share a type; they are compared only where hashes agree.
class ConstantPool {
 public:
  // The value of an equal constant, or an invalid id after noting this one.
  ValueId FindOrAdd(const Tensor& tensor, ValueId id) {
    std::string type;
    AppendType(tensor.type(), type);
    Bucket& bucket = buckets_[type];
    if (bucket.by_hash.empty() && !bucket.first.id.valid()) {
      bucket.first = {tensor, id};
      return ValueId();
    }
    if (bucket.by_hash.empty()) {
      bucket.by_hash[HashOf(bucket.first.tensor)].push_back(bucket.first);
    }
    std::vector<Entry>& candidates = bucket.by_hash[HashOf(tensor)];
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
    Entry first;  // of its type; hashed when a second one comes
    absl::flat_hash_map<size_t, std::vector<Entry>> by_hash;
  };
  static size_t HashOf(const Tensor& tensor) {
    const absl::Span<const uint8_t> bytes = tensor.bytes();
    return absl::Hash<absl::string_view>()(
        absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  absl::flat_hash_map<std::string, Bucket> buckets_;
};

}  // namespace

Graph ApplyCse(const Graph& graph) {
  Rewriter rewriter(graph);
  ConstantPool constants;
  absl::flat_hash_map<std::string, NodeId> computed;
  for (const Node& old_node : graph.nodes()) {
    if (old_node.op == "Placeholder") {
      rewriter.Copy(old_node);
      continue;
    }
    if (old_node.op == "Const") {
      const ValueId next(rewriter.graph().value_count());
      const ValueId same = constants.FindOrAdd(*graph.ConstantOf(old_node.outputs[0]), next);
      if (same.valid()) {
        rewriter.Replace(old_node.outputs[0], same);
      } else {
        rewriter.Copy(old_node);
      }
      continue;
    }
    Node node = rewriter.Mapped(old_node);
    const auto [it, added] =
        computed.try_emplace(KeyOf(graph, old_node, node), NodeId(rewriter.graph().node_count()));
    if (added) {
      rewriter.Append(old_node, std::move(node));
      continue;
    }
    for (size_t i = 0; i < old_node.outputs.size(); ++i) {
      rewriter.Replace(old_node.outputs[i], rewriter.graph().node(it->second).outputs[i]);
    }
  }
  return rewriter.Finish();
}

}  // namespace npuc
