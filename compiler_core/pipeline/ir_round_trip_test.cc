// Random nets written as Compass's IR files compile to the same bytes as without: in float for
// GRUS, quantized for the integer cores. What the files cannot hold is refused by name.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/frontends/compass/import.h"
#include "compiler_core/ir/compass/check.h"
#include "compiler_core/ir/graph/text.h"
#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/pipeline/random_nodes_test_util.h"
#include "compiler_core/quant/compass_ir/ir_writer.h"
#include "compiler_core/quant/kept/kept_scales.h"
#include "compiler_core/quant/params.h"
#include "compiler_core/target/core_spec.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// A net that grows layer by layer, as models do: of every operator that IR files can hold, and now
// and then of one that they cannot. Constants are operands and outputs, too.
class NetMaker {
 public:
  explicit NetMaker(uint32_t seed) : random_(seed), builder_(&graph_, /*fold=*/false) {}

  Graph Make() {
    for (size_t i = 0; i < 1 + Below(2); ++i) {
      values_.push_back(graph_.AddInput(absl::StrCat("x", i), {DType::kFloat32, {1, 6, 6, 4}}));
    }
    const size_t layers = 2 + Below(7);
    for (size_t i = 0; i < layers; ++i) AddLayer(absl::StrCat("n", i));
    for (size_t i = 0; i < 1 + Below(2); ++i) {
      graph_.AddOutput({absl::StrCat("o", i), values_[values_.size() - 1 - i]});
    }
    if (Below(4) == 0) graph_.AddOutput({"c", Constant({2, 3}, 1)});
    return std::move(graph_);
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }
  ValueId Recent() {
    return values_[values_.size() - 1 - Below(std::min<size_t>(3, values_.size()))];
  }
  const Shape& shape(ValueId value) { return graph_.type(value).shape; }

  ValueId Constant(Shape shape, double spread) {
    std::normal_distribution<float> normal(0, static_cast<float>(spread));
    std::vector<float> values(static_cast<size_t>(ElementCount(shape)));
    for (float& value : values) value = normal(random_);
    const std::string name = absl::StrCat("c", constants_++);
    return graph_.AddConst(Tensor::FromFloats(std::move(shape), values), {name, "Const"});
  }

  // The result, or `operand` where the shapes do not fit.
  ValueId Add(Op op, const std::vector<ValueId>& inputs, AttrMap attrs, const std::string& name,
              ValueId operand) {
    const auto results =
        builder_.Add(op, inputs, std::move(attrs), {name, std::string(NameOf(op))});
    if (!results.ok() || graph_.type((*results)[0]).element_count() == 0) return operand;
    return (*results)[0];
  }

  void Push(ValueId value) {
    if (graph_.type(value).element_count() <= 2000) values_.push_back(value);
  }

  ValueId Activated(ValueId x, const std::string& name) {
    const std::optional<Op> ops[] = {Op::kRelu, Op::kRelu6, Op::kTanh, Op::kSigmoid, std::nullopt};
    const std::optional<Op> op = ops[Below(5)];
    return !op.has_value() ? x : Add(*op, {x}, {}, name + "/act", x);
  }

  void AddWeighted(const std::string& name) {
    const ValueId x = Recent();
    const Shape s = shape(x);
    const int64_t channels = 1 + static_cast<int64_t>(Below(5));
    ValueId sums = x;
    if (s.size() == 4 && Below(3) != 0) {
      const bool depthwise = Below(3) == 0;
      const int64_t k = 1 + static_cast<int64_t>(Below(3));
      const Shape weight = depthwise ? Shape{k, k, s[3], 1} : Shape{k, k, s[3], channels};
      const AttrMap attrs = {{"strides", Shape{1 + static_cast<int64_t>(Below(2)), 1}},
                             {"pads", Shape{0, k - 1, 0, 0}}};
      sums = Add(depthwise ? Op::kDepthwiseConv2D : Op::kConv2D, {x, Constant(weight, 0.3)}, attrs,
                 name, x);
    } else if (s.size() >= 2) {
      const bool transposed = Below(2) == 0;
      const Shape weight = transposed ? Shape{channels, s.back()} : Shape{s.back(), channels};
      sums = Add(Op::kMatMul, {x, Constant(weight, 0.3)}, {{"transpose_b", transposed}}, name, x);
    }
    if (sums == x) return;
    if (Below(3) != 0) {
      sums = Add(Op::kAdd, {sums, Constant({shape(sums).back()}, 0.3)}, {}, name + "/bias", sums);
    }
    const size_t activation = Below(3);
    if (activation > 0)
      sums = Add(activation == 1 ? Op::kRelu : Op::kRelu6, {sums}, {}, name + "/r", sums);
    Push(sums);
  }

  void AddElementwise(const std::string& name) {
    const ValueId a = Recent();
    ValueId b = Recent();
    if (Below(2) == 0) {
      Shape part = shape(a);
      for (int64_t& dim : part) dim = Below(3) == 0 ? 1 : dim;
      b = Constant(std::move(part), 1);
    }
    const Op ops[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMaximum, Op::kMinimum};
    Push(Activated(Add(ops[Below(5)], {a, b}, {}, name, a), name));
  }

  void AddMove(const std::string& name) {
    const ValueId x = Recent();
    const Shape s = shape(x);
    const size_t rank = s.size();
    std::vector<int64_t> perm(rank);
    for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
    switch (Below(3)) {
      case 0:
        std::shuffle(perm.begin(), perm.end(), random_);
        return Push(Add(Op::kTranspose, {x}, {{"perm", std::move(perm)}}, name, x));
      case 1: {
        const int64_t axis = static_cast<int64_t>(Below(rank));
        const ValueId b = Below(2) == 0 ? Constant(s, 1) : Recent();
        return Push(Add(Op::kConcat, {x, b}, {{"axis", axis}}, name, x));
      }
      default: {
        Shape to = {1, ElementCount(s)};
        if (Below(2) == 0) to = {s[0], 1, ElementCount(s) / s[0]};
        return Push(Add(Op::kReshape, {x}, {{"shape", std::move(to)}}, name, x));
      }
    }
  }

  // A cut, a border, parts, and functions of one value.
  void AddCut(const std::string& name) {
    const ValueId x = Recent();
    const Shape s = shape(x);
    const size_t at = Below(s.size());
    switch (Below(4)) {
      case 0: {
        Shape begin(s.size(), 0);
        Shape size = s;
        Shape strides(s.size(), 1);
        size[at] = 1 + static_cast<int64_t>(Below(static_cast<size_t>(s[at])));
        begin[at] = static_cast<int64_t>(Below(static_cast<size_t>(s[at] - size[at] + 1)));
        if (Below(3) == 0) {  // backwards
          begin[at] += size[at] - 1;
          strides[at] = -1;
        }
        return Push(Add(Op::kSlice, {x},
                        {{"begin", std::move(begin)},
                         {"size", std::move(size)},
                         {"strides", std::move(strides)}},
                        name, x));
      }
      case 1: {
        Shape paddings(2 * s.size(), 0);
        paddings[2 * at] = static_cast<int64_t>(Below(3));
        paddings[2 * at + 1] = 1;
        AttrMap attrs = {{"paddings", std::move(paddings)}};
        if (Below(2) == 0) attrs["value"] = -0.5;
        return Push(Add(Op::kPad, {x}, std::move(attrs), name, x));
      }
      case 2: {
        if (s[at] < 2) return;
        const int64_t first = 1 + static_cast<int64_t>(Below(static_cast<size_t>(s[at] - 1)));
        const auto parts = builder_.Add(
            Op::kSplit, {x},
            {{"axis", static_cast<int64_t>(at)}, {"sizes", Shape{first, s[at] - first}}},
            {name, "Split"});
        if (!parts.ok()) return;
        for (const ValueId part : *parts) Push(part);
        return;
      }
      default:
        return AddFunction(name);
    }
  }

  // A function of one value; of those above 0 alone where it is of no other.
  void AddFunction(const std::string& name) {
    const ValueId x = Recent();
    if (Below(2) == 0) {
      const Op ops[] = {Op::kAbs,   Op::kExp,   Op::kNeg, Op::kSquare,
                        Op::kFloor, Op::kRound, Op::kSelu};
      return Push(Add(ops[Below(7)], {x}, {}, name, x));
    }
    const ValueId exponential = Add(Op::kExp, {x}, {}, name + "/exp", x);
    const Op ops[] = {Op::kLog, Op::kSqrt, Op::kRsqrt, Op::kReciprocal};
    Push(Add(ops[Below(4)], {exponential}, {}, name, x));
  }

  // Operators of two values that are no sum, product, greatest or least one, and a product of two
  // matrices that are both computed.
  void AddPair(const std::string& name) {
    const ValueId x = Recent();
    const Shape s = shape(x);
    switch (Below(4)) {
      case 0: {
        const ValueId divisor = Add(Op::kExp, {Constant(s, 1)}, {}, name + "/divisor", x);
        return Push(Add(Op::kDiv, {x, divisor}, {}, name, x));
      }
      case 1:
        return Push(Add(Op::kSquaredDifference, {x, Recent()}, {}, name, x));
      case 2: {
        const ValueId base = Add(Op::kAbs, {x}, {}, name + "/base", x);
        const ValueId exponent =
            graph_.AddConst(Tensor::FromFloats({}, {1.5}), {name + "/exponent", "Const"});
        return Push(Add(Op::kPow, {base, exponent}, {}, name, x));
      }
      default:
        return Push(Add(Op::kMatMul, {x, x}, {{"transpose_b", true}}, name, x));
    }
  }

  void AddReduced(const std::string& name) {
    const ValueId x = Recent();
    const Shape s = shape(x);
    if (s.size() == 4 && Below(2) == 0) {
      const Shape kernel = {1 + static_cast<int64_t>(Below(2)), 2};
      return Push(
          Activated(Add(Below(2) == 0 ? Op::kMaxPool : Op::kAvgPool, {x},
                        {{"kernel", kernel}, {"strides", kernel}, {"pads", Shape(4, 0)}}, name, x),
                    name));
    }
    const int64_t axis = static_cast<int64_t>(Below(s.size()));
    if (Below(2) == 0) {
      return Push(
          Add(Below(3) == 0 ? Op::kLogSoftmax : Op::kSoftmax, {x}, {{"axis", axis}}, name, x));
    }
    if (s.size() < 3) return;
    const Op ops[] = {Op::kReduceMean, Op::kReduceSum, Op::kReduceMax};
    Push(Add(ops[Below(3)], {x}, {{"axes", Shape{axis}}, {"keep_dims", Below(2) == 0}}, name, x));
  }

  void AddLayer(const std::string& name) {
    switch (Below(14)) {
      case 0:
      case 1:
      case 2:
        return AddWeighted(name);
      case 3:
      case 4:
        return AddElementwise(name);
      case 5:
        return AddMove(name);
      case 6:
        return AddReduced(name);
      case 7:
        return Push(Activated(Recent(), name));
      case 8: {  // no layer type is written for it
        const ValueId x = Recent();
        if (Below(3) != 0) return;
        const ValueId index =
            graph_.AddConst(Tensor::FromInts({1}, {0}), {name + "/index", "Const"});
        return Push(Add(Op::kGather, {x, index}, {{"axis", int64_t{0}}}, name, x));
      }
      case 9:
      case 10:
        return AddPair(name);
      default:
        return AddCut(name);
    }
  }

  std::mt19937 random_;
  Graph graph_;
  GraphBuilder builder_;
  std::vector<ValueId> values_;
  int constants_ = 0;
};

PassOptions LayerPasses() {
  PassOptions options;
  options.fuse_batch_norm = true;
  options.rewrite_softmax = false;
  return options;
}

// The graph from its IR files; nullopt, with the reasons in `refused`, where they cannot hold it.
std::optional<Graph> ThroughIr(const Graph& graph, const QuantPlan& plan, Diagnostics& refused) {
  absl::StatusOr<IrFiles> files = WriteIr(graph, plan, "m", refused);
  if (!files.ok()) return std::nullopt;
  Diagnostics found;
  const int64_t bin_bytes = static_cast<int64_t>(files->bin.size());
  EXPECT_TRUE(compass::CheckDocument(files->document, bin_bytes, "m", found).ok());
  const absl::StatusOr<Graph> read = ImportCompass(compass::PrintDocument(files->document),
                                                   ViewSource(files->bin), CompileOptions(), found);
  for (const Diagnostic& d : found.list()) ADD_FAILURE() << d.ToString();
  if (!read.ok()) return std::nullopt;
  const absl::StatusOr<Graph> passed = RunPasses(*read, LayerPasses());
  EXPECT_TRUE(passed.ok()) << passed.status();
  return passed.ok() ? std::optional<Graph>(*passed) : std::nullopt;
}

// What an artifact holds: commands, weights, ports. Empty where the core refuses the net.
struct Bytes {
  std::vector<uint8_t> commands;
  std::vector<uint8_t> weights;
  std::string ports;
  bool operator==(const Bytes&) const = default;
};

// Empty where both are the same.
std::string Difference(const Bytes& a, const Bytes& b) {
  if (a.commands != b.commands) return "other commands";
  if (a.weights != b.weights) return "other weights";
  return a.ports == b.ports ? "" : absl::StrCat("ports ", a.ports, " and ", b.ports);
}

template <typename P>
std::string PortsOf(const P& program) {
  std::string text;
  for (const std::vector<PortTensor>* ports : {&program.inputs, &program.outputs}) {
    for (const PortTensor& port : *ports) {
      absl::StrAppend(&text, port.name, TypeToString({port.dtype, port.shape}), port.scale, " ",
                      port.zero_point, "\n");
    }
  }
  return text;
}

// Whether each layer's nodes follow each other. IR files hold whole layers, so that of other nets
// GRUS, which computes node by node, gets the same commands in another order.
bool IsInLayerOrder(const Graph& graph, const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) {
    for (int i = layer.nodes.front().value(); i < layer.nodes.back().value(); ++i) {
      const bool is_own =
          std::find(layer.nodes.begin(), layer.nodes.end(), NodeId(i)) != layer.nodes.end();
      if (!is_own && graph.node(NodeId(i)).op != Op::kConst) return false;
    }
  }
  return true;
}

Bytes ForGrus(const Graph& graph) {
  const absl::StatusOr<Graph> passed = RunPasses(graph);
  EXPECT_TRUE(passed.ok());
  const CoreSpec* core = FindCore("GRUS");
  Diagnostics diagnostics;
  absl::StatusOr<LoweredModel> lowered = Lower(*passed, *core, LowerOptions(), diagnostics);
  if (!lowered.ok()) return {};
  Program& program = lowered->program;
  EXPECT_TRUE(PlanMemory(program, core->limits->buffer_alignment_bytes).ok());
  const auto commands = EncodeCommands(program);
  EXPECT_TRUE(commands.ok()) << commands.status();
  return {*commands, program.weights, PortsOf(program)};
}

Bytes ForIntegers(const Graph& graph, const QuantPlan& plan) {
  Diagnostics diagnostics;
  absl::StatusOr<integer::Program> program = LowerInteger(graph, plan, "m", diagnostics);
  if (!program.ok()) return {};
  EXPECT_TRUE(PlanMemory(*program, 16).ok());
  const auto commands = integer::EncodeCommands(*program);
  EXPECT_TRUE(commands.ok()) << commands.status();
  return {*commands, program->weights, PortsOf(*program)};
}

// Parameters for every value between layers and every constant, by what they hold for one input.
QuantPlan PlanOf(const Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  const bool wide = random() % 3 == 0;
  const QuantMethod method =
      random() % 2 == 0 ? QuantMethod::kPerTensorAsymmetric : QuantMethod::kPerTensorSymmetricFull;
  Graph whole = graph;
  QuantPlan plan;
  plan.layers = GroupLayers(graph);
  LayerQuant settings;
  settings.lut_bits = wide ? 10 : 8;
  plan.settings.assign(plan.layers.size(), settings);
  std::vector<ValueId> values;
  for (const Layer& layer : plan.layers) {
    values.insert(values.end(), layer.outputs.begin(), layer.outputs.end());
  }
  for (const GraphOutput& output : graph.outputs()) values.push_back(output.value);
  for (size_t i = 0; i < values.size(); ++i) whole.AddOutput({absl::StrCat("v", i), values[i]});
  std::vector<Tensor> inputs;
  std::normal_distribution<float> normal;
  for (const ValueId id : graph.inputs()) {
    std::vector<float> numbers(static_cast<size_t>(graph.type(id).element_count()));
    for (float& number : numbers) number = normal(random);
    inputs.push_back(Tensor::FromFloats(graph.type(id).shape, numbers));
  }
  const std::vector<Tensor> results = RunReference(whole, inputs).value();
  for (size_t i = 0; i < values.size(); ++i) {
    ValueRange range{0, 1e-3};
    for (const float x : results[graph.outputs().size() + i].ToFloats()) {
      range = {std::min<double>(range.min, x), std::max<double>(range.max, x)};
    }
    plan.values[values[i]] = ActivationParams(method, wide ? 16 : 8, range, true);
  }
  // Parts of a split keep its operand's parameters, as quantization has it: what an IR states of a
  // part that nothing reads is not read either.
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kSplit || !plan.values.contains(node.inputs[0])) continue;
    for (const ValueId part : node.outputs) plan.values[part] = plan.values.at(node.inputs[0]);
  }
  for (const Layer& layer : plan.layers) {
    if (!layer.weight.valid()) continue;
    double most = 1e-3;
    for (const float x : graph.ConstantOf(layer.weight)->ToFloats()) {
      most = std::max(most, std::fabs(double{x}));
    }
    plan.values[layer.weight] = WeightParams(QuantMethod::kPerTensorSymmetricRestricted,
                                             wide ? 16 : 8, std::vector<double>{most}, -1);
  }
  return plan;
}

void ExpectRefusedByName(const Diagnostics& refused) {
  EXPECT_TRUE(refused.has_errors());
  for (const Diagnostic& d : refused.list()) {
    EXPECT_EQ(d.kind, DiagnosticKind::kNotLowerable) << d.ToString();
  }
}

constexpr uint32_t kNets = 600;
constexpr uint32_t kLeastCompared = 300;

// The number of compared nets that have a layer of a type, by type.
using TypeCounts = std::map<std::string, int>;

void Count(const std::vector<Layer>& layers, TypeCounts& counts) {
  std::set<std::string> types;
  for (const Layer& layer : layers) types.insert(layer.type);
  for (const std::string& type : types) ++counts[type];
}

// Holds the counts against the list of types that IR files are written with
// (quant/compass_ir/README.md).
void ExpectEveryType(const TypeCounts& counts) {
  for (const char* type : {"Input",      "Convolution", "DepthwiseConv", "FullyConnected",
                           "Pooling",    "Reshape",     "Softmax",       "LogSoftmax",
                           "Activation", "Eltwise",     "Concat",        "Transpose",
                           "Reduce",     "Pad",         "Slice",         "Split",
                           "MatMul",     "Div",         "Pow",           "SquaredDifference",
                           "Abs",        "Exp",         "Floor",         "Log",
                           "Negative",   "Reciprocal",  "Round",         "Rsqrt",
                           "Sqrt",       "Square"}) {
    const auto found = counts.find(type);
    EXPECT_GE(found == counts.end() ? 0 : found->second, 3) << type;
  }
}

TEST(IrRoundTrip, QuantizedNetsCompileToTheSameBytes) {
  uint32_t compared = 0;
  TypeCounts counts;
  for (uint32_t seed = 0; seed < kNets; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const absl::StatusOr<Graph> graph = RunPasses(NetMaker(seed).Make(), LayerPasses());
    ASSERT_TRUE(graph.ok()) << graph.status();
    const QuantPlan plan = PlanOf(*graph, seed);
    Diagnostics refused;
    const std::optional<Graph> read = ThroughIr(*graph, plan, refused);
    if (!read.has_value()) {
      ExpectRefusedByName(refused);
      continue;
    }
    const absl::StatusOr<KeptScales> kept = KeepScales(*read);
    ASSERT_TRUE(kept.ok()) << kept.status();
    const Bytes direct = ForIntegers(*graph, plan);
    EXPECT_EQ(Difference(direct, ForIntegers(kept->graph, kept->plan)), "") << PrintGraph(*graph);
    if (direct.commands.empty()) continue;
    ++compared;
    Count(plan.layers, counts);
  }
  EXPECT_GE(compared, kLeastCompared);
  ExpectEveryType(counts);
}

TEST(IrRoundTrip, FloatNetsCompileToTheSameBytes) {
  uint32_t compared = 0;
  TypeCounts counts;
  for (uint32_t seed = 0; seed < kNets; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const absl::StatusOr<Graph> graph = RunPasses(NetMaker(seed).Make(), LayerPasses());
    ASSERT_TRUE(graph.ok()) << graph.status();
    QuantPlan plan;
    plan.layers = GroupLayers(*graph);
    Diagnostics refused;
    const std::optional<Graph> read = ThroughIr(*graph, plan, refused);
    if (!read.has_value()) {
      ExpectRefusedByName(refused);
      continue;
    }
    if (!IsInLayerOrder(*graph, plan.layers)) continue;
    const Bytes direct = ForGrus(*graph);
    EXPECT_EQ(Difference(direct, ForGrus(*read)), "") << PrintGraph(*graph);
    if (direct.commands.empty()) continue;
    ++compared;
    Count(plan.layers, counts);
  }
  EXPECT_GE(compared, kLeastCompared);
  ExpectEveryType(counts);
}

// A function that Compass lacks, or one with attributes, must not be written as another one.
TEST(IrRoundTrip, EachFunctionIsReadAsItWasOrRefused) {
  int read_back = 0;
  for (const OpDef* def : AllOps()) {
    if (!def->traits.is_pointwise || def->traits.layout != LayoutRule::kElementwise) continue;
    SCOPED_TRACE(NameOf(def->op));
    std::mt19937 random(7);
    const absl::StatusOr<NodeGraph> net = BuildNodeGraph(RandomNode(def->op, random, 40));
    ASSERT_TRUE(net.ok()) << net.status();
    QuantPlan plan;
    plan.layers = GroupLayers(net->graph);
    Diagnostics refused;
    const std::optional<Graph> read = ThroughIr(net->graph, plan, refused);
    if (!read.has_value()) {
      ExpectRefusedByName(refused);
      continue;
    }
    const std::vector<Tensor> want = RunReference(net->graph, net->inputs).value();
    const std::vector<Tensor> got = RunReference(*read, net->inputs).value();
    EXPECT_EQ(got[0].ToFloats(), want[0].ToFloats());
    ++read_back;
  }
  EXPECT_GE(read_back, 15);
}

TEST(IrRoundTrip, OutputsThatShareAValueKeepTheirNames) {
  Graph graph;
  GraphBuilder builder(&graph, /*fold=*/false);
  const ValueId x = graph.AddInput("x", {DType::kFloat32, {2, 3}});
  const ValueId y = builder.AddOne(Op::kRelu, {x}, {}, {"y", "Relu"}).value();
  graph.AddOutput({"same", x});
  graph.AddOutput({"first", y});
  graph.AddOutput({"second", y});
  Diagnostics refused;
  const std::optional<Graph> read = ThroughIr(graph, PlanOf(graph, 1), refused);
  ASSERT_TRUE(read.has_value());
  std::vector<std::string> names;
  for (const GraphOutput& output : read->outputs()) names.push_back(output.name);
  EXPECT_EQ(names, (std::vector<std::string>{"same", "first", "second"}));
  EXPECT_EQ(read->def(read->inputs()[0]).source.name, "x");
}

}  // namespace
}  // namespace npuc
