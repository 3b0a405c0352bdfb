#include "compiler_core/pipeline/random_nodes_test_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/ir/cmd/verify.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/lowering/copies.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/table.h"
#include "compiler_core/sim/simulator.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

// The widths of the units' fields, and one less and more.
constexpr int64_t kEdges[] = {15,  16,  17,  31,  32,  33,  63,   64,   65,   127,  128,  129,
                              225, 226, 254, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097};

struct Range {
  float lo;
  float hi;
};

class NodeMaker {
 public:
  NodeMaker(std::mt19937& rng, int64_t max_elements) : rng_(rng), max_elements_(max_elements) {}

  NodeSpec Make(Op op) {
    spec_.op = op;
    spec_.framework_op = FrameworkOp(op);
    static const std::map<Op, void (NodeMaker::*)()> kMakers = {
        {Op::kAvgPool, &NodeMaker::Pool},        {Op::kMaxPool, &NodeMaker::Pool},
        {Op::kBatchNorm, &NodeMaker::BatchNorm}, {Op::kConcat, &NodeMaker::Concat},
        {Op::kConv2D, &NodeMaker::Convolution},  {Op::kDepthwiseConv2D, &NodeMaker::Convolution},
        {Op::kMatMul, &NodeMaker::MatMul},       {Op::kPad, &NodeMaker::Pad},
        {Op::kReduceMax, &NodeMaker::Reduce},    {Op::kReduceMean, &NodeMaker::Reduce},
        {Op::kReduceSum, &NodeMaker::Reduce},    {Op::kReshape, &NodeMaker::Reshape},
        {Op::kSlice, &NodeMaker::Slice},         {Op::kSplit, &NodeMaker::Split},
        {Op::kTable, &NodeMaker::FunctionTable}, {Op::kTranspose, &NodeMaker::Transpose},
    };
    static const std::set<Op> kBinary = {Op::kAdd,     Op::kDiv,     Op::kGreater,
                                         Op::kMaximum, Op::kMinimum, Op::kMul,
                                         Op::kPow,     Op::kSub,     Op::kSquaredDifference};
    if (op == Op::kGreater) spec_.attrs["dtype"] = std::string("f32");
    const auto it = kMakers.find(spec_.op);
    if (it != kMakers.end()) {
      (this->*it->second)();
    } else if (kBinary.count(spec_.op) > 0) {
      Binary();
    } else {
      Unary();
    }
    return std::move(spec_);
  }

 private:
  int64_t Below(int64_t bound) {
    return std::uniform_int_distribution<int64_t>(0, bound - 1)(rng_);
  }
  int64_t Within(int64_t lo, int64_t hi) { return lo + Below(hi - lo + 1); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<size_t>(Below(static_cast<int64_t>(i)))]);
    }
  }

  int64_t Extent(int64_t most) {
    if (most >= 15 && OneIn(3)) {
      const int64_t edge = kEdges[Below(std::size(kEdges))];
      if (edge <= most) return edge;
    }
    return Within(1, std::min<int64_t>(most, OneIn(4) ? 100 : 6));
  }

  // Dimensions of 1 and more; the edges fall on any of them.
  Shape RandomShape(int64_t rank_min, int64_t rank_max) {
    Shape shape(static_cast<size_t>(Within(rank_min, rank_max)), 1);
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    Shuffle(order);
    int64_t left = max_elements_;
    for (const size_t i : order) {
      shape[i] = Extent(left);
      left /= shape[i];
    }
    return shape;
  }

  float Value(Range range) {
    return RoundToHalf(std::uniform_real_distribution<float>(range.lo, range.hi)(rng_));
  }
  void AddOperand(const Shape& shape, Range range, bool constant, bool either_sign = false) {
    std::vector<float> values(static_cast<size_t>(ElementCount(shape)));
    for (float& value : values) {
      value = Value(range);
      if (either_sign && OneIn(2)) value = -value;
    }
    spec_.operands.push_back(Tensor::FromFloats(shape, values));
    spec_.is_constant.push_back(constant);
  }

  std::string FrameworkOp(Op op) {
    static const std::map<Op, std::string> kNames = {
        {Op::kAdd, "AddV2"},         {Op::kBatchNorm, "FusedBatchNormV3"},
        {Op::kConcat, "ConcatV2"},   {Op::kDepthwiseConv2D, "DepthwiseConv2dNative"},
        {Op::kDiv, "RealDiv"},       {Op::kReduceMax, "Max"},
        {Op::kReduceMean, "Mean"},   {Op::kReduceSum, "Sum"},
        {Op::kSlice, "StridedSlice"}};
    const auto it = kNames.find(op);
    return it == kNames.end() ? std::string(NameOf(op)) : it->second;
  }

  void Unary() {
    Range range{-3, 3};
    if (spec_.op == Op::kLog || spec_.op == Op::kSqrt || spec_.op == Op::kRsqrt) range = {0.05f, 4};
    if (spec_.op == Op::kRelu6) range = {-3, 9};
    if (spec_.op == Op::kFloor || spec_.op == Op::kRound)
      range = OneIn(2) ? Range{-9, 9} : Range{-3000, 3000};
    const bool divides = spec_.op == Op::kReciprocal;
    if (divides) range = {0.2f, 4};
    const bool softmax = spec_.op == Op::kSoftmax || spec_.op == Op::kLogSoftmax;
    AddOperand(RandomShape(softmax ? 1 : 0, 5), range, false, divides);
  }

  // The points of a smooth function.
  void FunctionTable() {
    const TableGrid grid = {-6, 3, 6};
    std::vector<float> values;
    for (const float x : TablePoints(grid)) values.push_back(std::atan(x));
    const auto count = static_cast<int64_t>(values.size());
    spec_.attrs["values"] = Tensor::FromFloats({count}, values);
    spec_.attrs["lowest"] = grid.lowest;
    spec_.attrs["highest"] = grid.highest;
    spec_.attrs["bits"] = grid.bits;
    Unary();
  }

  // One shape, or two that broadcast: dimensions of either side become 1 or are left out.
  void Binary() {
    const Shape full = RandomShape(0, 5);
    std::vector<Shape> shapes = {full, full};
    const bool broadcasts = spec_.op != Op::kSquaredDifference && !OneIn(4);
    if (broadcasts) {
      for (size_t i = 0; i < full.size(); ++i) {
        const int64_t which = Below(4);
        if (which < 2) shapes[static_cast<size_t>(which)][i] = 1;
      }
      Shape& shorter = shapes[static_cast<size_t>(Below(2))];
      while (!shorter.empty() && shorter[0] == 1 && OneIn(2)) shorter.erase(shorter.begin());
      if (OneIn(5)) shapes[static_cast<size_t>(Below(2))] = {};
    }
    const int64_t constant = Below(3);
    const bool pow = spec_.op == Op::kPow;
    AddOperand(shapes[0], pow ? Range{0.2f, 3} : Range{-3, 3}, constant == 0 && !pow);
    const bool divides = spec_.op == Op::kDiv;
    AddOperand(shapes[1], divides ? Range{0.25f, 4} : Range{-2, 2}, constant == 1 || pow, divides);
  }

  void BatchNorm() {
    const Shape shape = RandomShape(1, 4);
    AddOperand(shape, {-2, 2}, false);
    for (int i = 0; i < 4; ++i) {
      AddOperand({shape.back()}, i == 3 ? Range{0.5f, 2} : Range{-1, 1}, true);
    }
    spec_.attrs["epsilon"] = 0.001;
  }

  void Concat() {
    Shape shape = RandomShape(1, 4);
    const int64_t axis = Below(static_cast<int64_t>(shape.size()));
    const int64_t parts = Within(1, 4);
    for (int64_t i = 0; i < parts; ++i) {
      AddOperand(shape, {-3, 3}, i > 0 && OneIn(3));
      shape[axis] = Within(1, std::min<int64_t>(2 * shape[axis] + 1, 300));
    }
    spec_.attrs["axis"] = OneIn(2) ? axis : axis - static_cast<int64_t>(shape.size());
  }

  void MatMul() {
    const int64_t side = std::max<int64_t>(6, static_cast<int64_t>(std::sqrt(max_elements_)));
    const int64_t k = Extent(OneIn(4) ? max_elements_ / 8 : side);
    const int64_t n = Extent(std::max<int64_t>(1, max_elements_ / k));
    const int64_t m = Extent(std::min<int64_t>(8, std::max<int64_t>(1, max_elements_ / k)));
    const bool transpose_a = OneIn(3);
    const bool transpose_b = OneIn(3);
    spec_.attrs["transpose_a"] = transpose_a;
    spec_.attrs["transpose_b"] = transpose_b;
    Shape a = transpose_a ? Shape{k, m} : Shape{m, k};
    Shape b = transpose_b ? Shape{n, k} : Shape{k, n};
    if (OneIn(3)) {
      spec_.framework_op = "BatchMatMulV2";
      const int64_t batch = Within(1, 3);
      if (!OneIn(3)) a.insert(a.begin(), OneIn(4) ? 1 : batch);
      if (!OneIn(3)) b.insert(b.begin(), OneIn(4) ? 1 : batch);
    }
    const bool constant_first = OneIn(6);
    AddOperand(a, {-1, 1}, constant_first);
    AddOperand(b, {-1, 1}, !constant_first && !OneIn(3));
  }

  void Convolution() {
    const bool depthwise = spec_.op == Op::kDepthwiseConv2D;
    const int64_t channels = OneIn(4) ? 1 : Within(1, 40);
    const int64_t outputs = depthwise ? Within(1, OneIn(2) ? 1 : 3) : Within(1, 70);
    const int64_t kernel_h = Within(1, OneIn(8) ? 17 : 5);
    const int64_t kernel_w = Within(1, OneIn(8) ? 17 : 5);
    AddOperand({Within(1, OneIn(4) ? 2 : 1), kernel_h + Below(9), kernel_w + Below(9), channels},
               {-1, 1}, false);
    AddOperand({kernel_h, kernel_w, channels, outputs}, {-1, 1}, !OneIn(10));
    if (OneIn(3)) AddOperand({depthwise ? channels * outputs : outputs}, {-2, 2}, true);
    spec_.attrs["strides"] = std::vector<int64_t>{Within(1, 3), Within(1, 3)};
    spec_.attrs["pads"] = OneIn(2) ? std::vector<int64_t>{0, 0, 0, 0}
                                   : std::vector<int64_t>{Below(kernel_h), Below(kernel_h),
                                                          Below(kernel_w), Below(kernel_w)};
    if (OneIn(6)) spec_.attrs["dilations"] = std::vector<int64_t>{1, 1};
  }

  void Pool() {
    const int64_t h = Within(1, OneIn(6) ? 20 : 4);
    const int64_t w = Within(1, OneIn(6) ? 20 : 4);
    const bool usual = !OneIn(3);
    AddOperand({Within(1, 2), h * Within(1, 3) + (usual ? 0 : Below(4)),
                w * Within(1, 3) + (usual ? 0 : Below(4)), Extent(70)},
               {-3, 3}, false);
    spec_.attrs["kernel"] = std::vector<int64_t>{h, w};
    spec_.attrs["strides"] =
        usual ? std::vector<int64_t>{h, w} : std::vector<int64_t>{Within(1, 4), Within(1, 4)};
    spec_.attrs["pads"] = usual || OneIn(2)
                              ? std::vector<int64_t>{0, 0, 0, 0}
                              : std::vector<int64_t>{Below(h), Below(h), Below(w), Below(w)};
  }

  void Pad() {
    const Shape shape = RandomShape(0, 4);
    std::vector<int64_t> paddings;
    for (size_t i = 0; i < 2 * shape.size(); ++i) paddings.push_back(OneIn(2) ? 0 : Below(5));
    AddOperand(shape, {-3, 3}, false);
    spec_.attrs["paddings"] = std::move(paddings);
    if (OneIn(4)) spec_.attrs["value"] = 1.5;
  }

  void Reduce() {
    const Shape shape = RandomShape(1, 5);
    std::vector<int64_t> axes;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (OneIn(2)) axes.push_back(static_cast<int64_t>(i));
    }
    // A mean of large values must not overflow although their sum would.
    const bool large = spec_.op == Op::kReduceMean && OneIn(2);
    AddOperand(shape, large ? Range{20, 60} : Range{-2, 2}, false);
    spec_.attrs["axes"] = std::move(axes);
    spec_.attrs["keep_dims"] = OneIn(2);
  }

  void Reshape() {
    Shape shape = RandomShape(0, 4);
    AddOperand(shape, {-3, 3}, false);
    Shuffle(shape);
    if (OneIn(2)) shape.push_back(1);
    spec_.attrs["shape"] = std::move(shape);
  }

  void Slice() {
    const Shape shape = RandomShape(1, 4);
    std::vector<int64_t> begin, size, strides;
    for (const int64_t dim : shape) {
      const int64_t step = OneIn(3) ? Within(1, 3) : 1;
      const int64_t count = Within(1, (dim - 1) / step + 1);
      const int64_t span = (count - 1) * step;
      const int64_t first = Below(dim - span);
      const bool backwards = OneIn(6);
      begin.push_back(backwards ? first + span : first);
      size.push_back(count);
      strides.push_back(backwards ? -step : step);
    }
    AddOperand(shape, {-3, 3}, false);
    spec_.attrs["begin"] = std::move(begin);
    spec_.attrs["size"] = std::move(size);
    spec_.attrs["strides"] = std::move(strides);
  }

  void Split() {
    const Shape shape = RandomShape(1, 4);
    const int64_t axis = Below(static_cast<int64_t>(shape.size()));
    std::vector<int64_t> sizes;
    int64_t left = shape[axis];
    while (left > 0 && sizes.size() < 4) {
      sizes.push_back(Within(1, left));
      left -= sizes.back();
    }
    sizes.back() += left;
    AddOperand(shape, {-3, 3}, false);
    spec_.attrs["axis"] = axis;
    spec_.attrs["sizes"] = std::move(sizes);
  }

  void Transpose() {
    const Shape shape = RandomShape(1, 5);
    std::vector<int64_t> perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    Shuffle(perm);
    AddOperand(shape, {-3, 3}, false);
    spec_.attrs["perm"] = std::move(perm);
  }

  std::mt19937& rng_;
  const int64_t max_elements_;
  NodeSpec spec_;
};

Tensor Absolute(const Tensor& tensor) {
  std::vector<float> values = tensor.ToFloats();
  for (float& value : values) value = std::fabs(value);
  return Tensor::FromFloats(tensor.shape(), values);
}

absl::StatusOr<CompiledModel> AssembleModel(const Program& program, const CoreSpec& core) {
  CompiledModel model;
  model.npu_unit = "NPU32";
  model.core = std::string(core.name);
  model.inputs = program.inputs;
  model.outputs = program.outputs;
  ASSIGN_OR_RETURN(model.cmd_content, EncodeCommands(program));
  model.weight_content = program.weights;
  model.data_bytes = program.data_bytes;
  return model;
}

std::vector<uint8_t> StoredInputs(absl::Span<const Tensor> inputs) {
  std::vector<uint8_t> bytes;
  for (const Tensor& tensor : inputs) {
    for (const float value : tensor.ToFloats()) {
      const uint16_t half = FloatToHalf(value);
      bytes.push_back(static_cast<uint8_t>(half & 0xff));
      bytes.push_back(static_cast<uint8_t>(half >> 8));
    }
  }
  return bytes;
}

}  // namespace

std::string NodeSpec::ToString() const {
  const absl::StatusOr<NodeGraph> built = BuildNodeGraph(*this);
  if (!built.ok()) return absl::StrCat(NameOf(op), ": ", std::string(built.status().message()));
  std::string text(NameOf(op));
  for (size_t i = 0; i < operands.size(); ++i) {
    absl::StrAppend(&text, " ", ShapeToString(operands[i].shape()), is_constant[i] ? "const" : "");
  }
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&text, " ", name, "=");
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      absl::StrAppend(&text, ShapeToString(*list));
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      absl::StrAppend(&text, *integer);
    } else if (const auto* flag = std::get_if<bool>(&value)) {
      absl::StrAppend(&text, *flag);
    } else if (const auto* number = std::get_if<double>(&value)) {
      absl::StrAppend(&text, *number);
    } else if (const auto* word = std::get_if<std::string>(&value)) {
      absl::StrAppend(&text, *word);
    }
  }
  return text;
}

absl::StatusOr<NodeGraph> BuildNodeGraph(const NodeSpec& spec, bool absolute) {
  NodeGraph built;
  GraphBuilder builder(&built.graph, /*fold=*/false);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const Tensor tensor = absolute ? Absolute(spec.operands[i]) : spec.operands[i];
    if (spec.is_constant[i]) {
      operands.push_back(built.graph.AddConst(tensor, {absl::StrCat("constant_", i), "Const"}));
    } else {
      operands.push_back(built.graph.AddInput(absl::StrCat("input_", i), tensor.type()));
      built.inputs.push_back(tensor);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                   builder.Add(spec.op, operands, spec.attrs, {"node", spec.framework_op}));
  for (size_t i = 0; i < results.size(); ++i) {
    built.graph.AddOutput({absl::StrCat("result_", i), results[i], false});
  }
  return built;
}

NodeSpec RandomNode(Op op, std::mt19937& rng, int64_t max_elements) {
  return NodeMaker(rng, max_elements).Make(op);
}

LowerOptions OptionsOf(bool in_place) {
  LowerOptions options;
  options.in_place = in_place;
  return options;
}

absl::StatusOr<std::vector<std::vector<float>>> Simulate(const Graph& graph,
                                                         absl::Span<const Tensor> inputs,
                                                         const LowerOptions& options,
                                                         Diagnostics& diagnostics,
                                                         absl::string_view core_name) {
  const CoreSpec* core = FindCore(core_name);
  ASSIGN_OR_RETURN(LoweredModel lowered, Lower(graph, *core, options, diagnostics));
  if (!options.plain_commands) DropCopies(lowered.program);
  RETURN_IF_ERROR(PlanMemory(lowered.program, core->limits->buffer_alignment_bytes).status());
  RETURN_IF_ERROR(VerifyProgram(lowered.program));
  RETURN_IF_ERROR(CheckMemoryPlan(lowered.program));
  ASSIGN_OR_RETURN(const CompiledModel model, AssembleModel(lowered.program, *core));
  ASSIGN_OR_RETURN(const std::unique_ptr<Simulator> simulator,
                   Simulator::Load(model, "test.npuc", diagnostics));
  std::vector<uint8_t> bytes;
  RETURN_IF_ERROR(simulator->Run(StoredInputs(inputs), bytes));
  std::vector<std::vector<float>> results;
  for (const PortTensor& port : model.outputs) {
    std::vector<float> values(static_cast<size_t>(ElementCount(port.shape)));
    std::memcpy(values.data(), bytes.data() + port.offset_bytes, values.size() * sizeof(float));
    results.push_back(std::move(values));
  }
  return results;
}

}  // namespace npuc
