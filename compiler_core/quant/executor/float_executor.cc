#include "compiler_core/quant/executor/float_executor.h"

#include <algorithm>
#include <bit>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

// Free stretches of the arena, by offset; neighbours are merged.
class FreeList {
 public:
  // The smallest stretch that holds `size`, or new room at the end.
  int64_t Take(int64_t size) {
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second >= size && (best == free_.end() || it->second < best->second)) best = it;
    }
    if (best == free_.end()) {
      const int64_t at = end_;
      end_ += size;
      return at;
    }
    const auto [at, length] = *best;
    free_.erase(best);
    if (length > size) free_.emplace(at + size, length - size);
    return at;
  }
  void Give(int64_t at, int64_t size) {
    if (size == 0) return;
    auto it = free_.emplace(at, size).first;
    const auto next = std::next(it);
    if (next != free_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it == free_.begin()) return;
    const auto before = std::prev(it);
    if (before->first + before->second == it->first) {
      before->second += it->second;
      free_.erase(it);
    }
  }
  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> free_;
  int64_t end_ = 0;
};

// Vectors are loaded unaligned, but buffers that start at whole lines are faster.
int64_t RoundedSize(int64_t elements) { return (elements + 15) / 16 * 16; }

}  // namespace

absl::StatusOr<FloatExecutor> FloatExecutor::Create(const Graph& graph) {
  FloatExecutor executor(&graph);
  executor.constants_.resize(graph.value_count());
  for (int i = 0; i < graph.value_count(); ++i) {
    if (const Tensor* constant = graph.ConstantOf(ValueId(i))) executor.constants_[i] = *constant;
  }
  RETURN_IF_ERROR(executor.CheckTypes());
  RETURN_IF_ERROR(executor.PlanArena());
  executor.kernels_.resize(graph.node_count());
  executor.FindTwins();
  for (int i = 0; i < graph.node_count(); ++i) {
    if (executor.twin_[i] == i) RETURN_IF_ERROR(executor.MakeKernelOf(i));
  }
  return executor;
}

absl::Status FloatExecutor::CheckTypes() const {
  for (const Node& node : graph_->nodes()) {
    if (node.op == Op::kConst) continue;
    for (const ValueId id : node.outputs) {
      if (graph_->type(id).dtype == DType::kFloat32) continue;
      return absl::UnimplementedError(absl::StrCat("node '", Printable(node.source.name),
                                                   "' computes ", NameOf(graph_->type(id).dtype),
                                                   " values at run time; f32 alone is run"));
    }
  }
  return absl::OkStatus();
}

absl::Status FloatExecutor::PlanArena() {
  const int node_count = graph_->node_count();
  std::vector<int> last_use(graph_->value_count(), -1);
  for (int i = 0; i < node_count; ++i) {
    for (const ValueId id : graph_->nodes()[i].inputs) last_use[id.value()] = i;
    // A hook sees every result, so each has room at least while its node runs.
    for (const ValueId id : graph_->nodes()[i].outputs) {
      last_use[id.value()] = std::max(last_use[id.value()], i);
    }
  }
  for (const GraphOutput& output : graph_->outputs()) last_use[output.value.value()] = node_count;
  offsets_.assign(graph_->value_count(), -1);
  FreeList room;
  const auto size_of = [&](ValueId id) { return RoundedSize(graph_->type(id).element_count()); };
  for (const ValueId id : graph_->inputs()) offsets_[id.value()] = room.Take(size_of(id));
  std::vector<std::vector<ValueId>> ends(node_count + 1);
  for (int i = 0; i < graph_->value_count(); ++i) {
    if (last_use[i] >= 0) ends[last_use[i]].push_back(ValueId(i));
  }
  for (int i = 0; i < node_count; ++i) {
    const Node& node = graph_->nodes()[i];
    if (node.op != Op::kConst && node.op != Op::kPlaceholder) {
      for (const ValueId id : node.outputs) offsets_[id.value()] = room.Take(size_of(id));
    }
    if (room.end() > kMaxArenaElements) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the graph's values need over ", kMaxArenaElements, " elements at once"));
    }
    for (const ValueId id : ends[i]) {
      if (offsets_[id.value()] >= 0) room.Give(offsets_[id.value()], size_of(id));
    }
  }
  arena_elements_ = room.end();
  return absl::OkStatus();
}

void FloatExecutor::FindTwins() {
  std::map<std::string, int> first;
  readers_.resize(graph_->value_count());
  for (int i = 0; i < graph_->node_count(); ++i) {
    twin_.push_back(first.emplace(KernelKey(i), i).first->second);
    if (twin_[i] != i) continue;
    for (const ValueId id : graph_->nodes()[i].inputs) {
      std::vector<int>& readers = readers_[id.value()];
      const bool is_constant = constants_[id.value()].dtype() != DType::kInvalid;
      if (is_constant && (readers.empty() || readers.back() != i)) readers.push_back(i);
    }
  }
}

// Whatever a kernel is made of: operator, attributes, types, constants by their ids.
std::string FloatExecutor::KernelKey(int i) const {
  const Node& node = graph_->nodes()[i];
  std::string key(NameOf(node.op));
  const auto add_type = [&](ValueId id) {
    const TensorType& type = graph_->type(id);
    absl::StrAppend(&key, " ", static_cast<int>(type.dtype), ":", absl::StrJoin(type.shape, ","));
  };
  for (const ValueId id : node.inputs) {
    add_type(id);
    if (constants_[id.value()].dtype() != DType::kInvalid) absl::StrAppend(&key, "#", id.value());
  }
  absl::StrAppend(&key, " ->");
  for (const ValueId id : node.outputs) add_type(id);
  for (const auto& [name, attr] : node.attrs) {
    absl::StrAppend(&key, "\n", name, " ", attr.index(), " ");
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, Tensor>) {
            absl::StrAppend(&key, "node ", i);  // not compared: the node has no twin
          } else if constexpr (std::is_same_v<T, double>) {
            absl::StrAppend(&key, std::bit_cast<uint64_t>(value));
          } else if constexpr (std::is_same_v<T, std::vector<double>>) {
            for (const double x : value) absl::StrAppend(&key, std::bit_cast<uint64_t>(x), ",");
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            absl::StrAppend(&key, absl::StrJoin(value, ","));
          } else {
            absl::StrAppend(&key, value);
          }
        },
        attr);
  }
  return key;
}

absl::Status FloatExecutor::MakeKernelOf(int i) {
  const Node& node = graph_->nodes()[i];
  if (node.op == Op::kConst || node.op == Op::kPlaceholder) return absl::OkStatus();
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  std::vector<const Tensor*> constants;
  for (const ValueId id : node.inputs) {
    inputs.push_back(graph_->type(id));
    const Tensor& constant = constants_[id.value()];
    constants.push_back(constant.dtype() == DType::kInvalid ? nullptr : &constant);
  }
  for (const ValueId id : node.outputs) outputs.push_back(graph_->type(id));
  ASSIGN_OR_RETURN(kernels_[i], MakeKernel({node, inputs, constants, outputs}));
  scratch_elements_ = std::max(scratch_elements_, kernels_[i].scratch_elements);
  return absl::OkStatus();
}

FloatExecutor::Arena FloatExecutor::MakeArena() const {
  return {std::vector<float>(arena_elements_), std::vector<float>(scratch_elements_)};
}

absl::Status FloatExecutor::SetConstant(ValueId id, const Tensor& value) {
  NPUC_CHECK(value.type() == constants_[id.value()].type());
  constants_[id.value()] = value;
  for (const int i : readers_[id.value()]) RETURN_IF_ERROR(MakeKernelOf(i));
  return absl::OkStatus();
}

int FloatExecutor::kernel_count() const {
  return static_cast<int>(std::count_if(kernels_.begin(), kernels_.end(), [](const Kernel& kernel) {
    return kernel.run != nullptr;
  }));
}

void FloatExecutor::SetInput(Arena& arena, size_t k, absl::Span<const float> value) const {
  const ValueId id = graph_->inputs()[k];
  NPUC_CHECK(static_cast<int64_t>(value.size()) == graph_->type(id).element_count());
  std::copy(value.begin(), value.end(), arena.values.begin() + offsets_[id.value()]);
}

const float* FloatExecutor::Pointer(const Arena& arena, ValueId id) const {
  const Tensor& constant = constants_[id.value()];
  if (constant.dtype() == DType::kInvalid) return arena.values.data() + offsets_[id.value()];
  return constant.dtype() == DType::kFloat32 ? constant.as<float>().data() : nullptr;
}

absl::Span<const float> FloatExecutor::ValueOf(const Arena& arena, ValueId id) const {
  return {Pointer(arena, id), static_cast<size_t>(graph_->type(id).element_count())};
}

absl::Status FloatExecutor::Run(Arena& arena, int first, int last, const Hook& hook) const {
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
  for (int i = first; i < last; ++i) {
    const Node& node = graph_->nodes()[i];
    if (node.op == Op::kConst) continue;
    const Kernel& kernel = kernels_[twin_[i]];
    if (kernel.run != nullptr) {
      inputs.clear();
      outputs.clear();
      for (const ValueId id : node.inputs) inputs.push_back(Pointer(arena, id));
      for (const ValueId id : node.outputs) {
        outputs.push_back(arena.values.data() + offsets_[id.value()]);
      }
      const absl::Status status = kernel.run({inputs, outputs, arena.scratch.data()});
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat("node '", Printable(node.source.name), "' (",
                                         NameOf(node.op), "): ", status.message()));
      }
    }
    if (hook == nullptr) continue;
    for (const ValueId id : node.outputs) {
      hook(id, {arena.values.data() + offsets_[id.value()],
                static_cast<size_t>(graph_->type(id).element_count())});
    }
  }
  return absl::OkStatus();
}

}  // namespace npuc
