#include "compiler_core/frontends/paddle/import.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/common/recurrent_cases_test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/paddle/program.pb.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Names = std::vector<std::string>;

// Builds programs for tests. Op() begins an operator; the calls that follow go to it.
class ProgramBuilder {
 public:
  ProgramBuilder() {
    block().set_idx(0);
    block().set_parent_idx(-1);
    Version(2003000);
  }
  ProgramBuilder& Version(int64_t version) {
    proto_.mutable_version()->set_version(version);
    return *this;
  }
  // The shape that the program states of a result.
  ProgramBuilder& State(const std::string& name, const std::vector<int64_t>& dims) {
    AddVariable(name, dims, false);
    return *this;
  }
  ProgramBuilder& Input(const std::string& name, const std::vector<int64_t>& dims, int lod = 0) {
    AddVariable(name, dims, false)->mutable_type()->mutable_lod_tensor()->set_lod_level(lod);
    Op("feed").In("X", {"feed"}).Out("Out", {name}).Int("col", inputs_++);
    return *this;
  }
  ProgramBuilder& Output(const std::string& name) {
    return Op("fetch").In("X", {name}).Out("Out", {"fetch"}).Int("col", outputs_++);
  }
  ProgramBuilder& Parameter(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<float>& values) {
    AddVariable(name, dims, true);
    parameters_[name] = Stream(dims, values);
    return *this;
  }
  ProgramBuilder& Op(const std::string& type) {
    op_ = block().add_operators();
    op_->set_type(type);
    return *this;
  }
  ProgramBuilder& In(const std::string& parameter, const Names& names) {
    return Add(op_->add_inputs(), parameter, names);
  }
  ProgramBuilder& Out(const std::string& parameter, const Names& names) {
    return Add(op_->add_outputs(), parameter, names);
  }
  ProgramBuilder& Int(const std::string& name, int value) {
    Attribute(name, 0)->set_i(value);
    return *this;
  }
  ProgramBuilder& Float(const std::string& name, float value) {
    Attribute(name, 1)->set_f(value);
    return *this;
  }
  ProgramBuilder& Text(const std::string& name, const std::string& value) {
    Attribute(name, 2)->set_s(value);
    return *this;
  }
  ProgramBuilder& Ints(const std::string& name, const std::vector<int>& values) {
    auto* attribute = Attribute(name, 3);
    for (const int value : values) attribute->add_ints(value);
    return *this;
  }
  ProgramBuilder& Floats(const std::string& name, const std::vector<float>& values) {
    auto* attribute = Attribute(name, 4);
    for (const float value : values) attribute->add_floats(value);
    return *this;
  }
  ProgramBuilder& Bool(const std::string& name, bool value) {
    Attribute(name, 6)->set_b(value);
    return *this;
  }

  std::string Program() const { return proto_.SerializeAsString(); }
  std::string Parameters() const {
    std::string all;
    for (const auto& [name, stream] : parameters_) all += stream;
    return all;
  }

 private:
  fe::paddle::Block& block() {
    if (proto_.blocks_size() == 0) proto_.add_blocks();
    return *proto_.mutable_blocks(0);
  }
  fe::paddle::Variable* AddVariable(const std::string& name, const std::vector<int64_t>& dims,
                                    bool is_parameter) {
    auto* variable = block().add_variables();
    variable->set_name(name);
    variable->set_persistable(is_parameter);
    variable->mutable_type()->set_type(7);
    auto* tensor = variable->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    tensor->set_data_type(5);
    for (const int64_t dim : dims) tensor->add_dims(dim);
    return variable;
  }
  ProgramBuilder& Add(fe::paddle::Argument* argument, const std::string& parameter,
                      const Names& names) {
    argument->set_parameter(parameter);
    for (const std::string& name : names) argument->add_arguments(name);
    return *this;
  }
  fe::paddle::Attribute* Attribute(const std::string& name, int type) {
    auto* attribute = op_->add_attributes();
    attribute->set_name(name);
    attribute->set_type(type);
    return attribute;
  }
  static std::string Stream(const std::vector<int64_t>& dims, const std::vector<float>& values) {
    fe::paddle::TensorDesc desc;
    desc.set_data_type(5);
    for (const int64_t dim : dims) desc.add_dims(dim);
    const std::string described = desc.SerializeAsString();
    std::string bytes(16, '\0');  // version, levels, version
    const auto size = static_cast<int32_t>(described.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(described);
    return bytes.append(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(float));
  }

  fe::paddle::Program proto_;
  fe::paddle::Operator* op_ = nullptr;
  std::map<std::string, std::string> parameters_;
  int inputs_ = 0;
  int outputs_ = 0;
};

struct Imported {
  absl::StatusOr<Graph> graph;
  std::string text;  // a diagnostic a line
};

// `plugins`: the text of a file of declarations.
Imported Import(const std::string& program, const std::optional<std::string>& parameters,
                CompileOptions options = {}, absl::string_view plugins = "") {
  options.model_name = "net.pdmodel";
  Diagnostics diagnostics;
  std::vector<std::shared_ptr<const frontend::PluginOp>> ops;
  if (!plugins.empty()) {
    EXPECT_TRUE(frontend::ReadPluginFile(plugins, "ops.yaml", ops, diagnostics));
  }
  const auto declared =
      frontend::Plugins::For("PADDLE", std::move(ops), ImportedPaddleOps(), diagnostics);
  const ViewSource bytes(parameters.has_value() ? absl::string_view(*parameters) : "");
  Imported result{ImportPaddle(program, parameters.has_value() ? &bytes : nullptr, options,
                               diagnostics, declared),
                  ""};
  EXPECT_EQ(result.graph.ok(), !diagnostics.has_errors());
  for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&result.text, d.ToString(), "\n");
  return result;
}

// The first result of a program on the values of its inputs.
std::vector<float> Answer(const ProgramBuilder& b, const std::vector<std::vector<float>>& inputs,
                          absl::string_view plugins = "") {
  const Imported net = Import(b.Program(), b.Parameters(), {}, plugins);
  EXPECT_TRUE(net.graph.ok()) << net.text;
  if (!net.graph.ok()) return {};
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(Tensor::FromFloats(net.graph->type(net.graph->inputs()[i]).shape, inputs[i]));
  }
  const auto results = RunReference(*net.graph, tensors);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0].ToFloats() : std::vector<float>();
}

// y = relu(x * w + b), and a scale under the name of its operand.
ProgramBuilder SmallNet() {
  ProgramBuilder b;
  b.Input("x", {-1, 2}).Parameter("w", {2, 2}, {1, 2, 3, 4}).Parameter("b", {2}, {10, -20});
  b.Op("mul").In("X", {"x"}).In("Y", {"w"}).Out("Out", {"t"});
  b.Op("elementwise_add").In("X", {"t"}).In("Y", {"b"}).Out("Out", {"t"}).Int("axis", 1);
  b.Op("relu").In("X", {"t"}).Out("Out", {"y"});
  b.Op("scale").In("X", {"y"}).Out("Out", {"y"}).Float("scale", 2).Float("bias", 1);
  b.Output("y");
  return b;
}

TEST(PaddleImportTest, NamesStandForTheLatestResult) {
  EXPECT_THAT(Answer(SmallNet(), {{1, 2}}), ElementsAre(2 * (1 + 6 + 10) + 1, 1));
}

// An operator of the user's with a parameter, and a subgraph whose first operator reads a value
// that a later one makes anew under the same name.
TEST(PaddleImportTest, DeclaredOperatorsAreTheirFormulas) {
  constexpr char kDeclared[] = R"(operators:
  - op: acme_scaled
    operands: [w, x]
    attributes: {by: {type: float}, shifts: {type: ints, default: [1]}}
    formula: |
      y = Abs(x) * by + w
      n = -x
    results: [y, n]
  - op: Halves
    pattern_nodes: [[t, tanh], [s, elementwise_add]]
    pattern_edges: [[t, s, {src_out_port: 0, dst_in_port: 0}]]
    operands: {x: t:0, c: s:1}
    formula: y = x / 2 + c
    results: [y]
)";
  ProgramBuilder b;
  b.Input("x", {1, 2}).Parameter("w", {2}, {1, 2});
  b.Op("acme_scaled").In("W", {"w"}).In("X", {"x"}).Out("Out", {"t"}).Out("Other", {"n"});
  b.Float("by", 0.5);
  b.Op("tanh").In("X", {"t"}).Out("Out", {"h"});
  b.Op("scale").In("X", {"n"}).Out("Out", {"t"}).Float("scale", 10).Float("bias", 0);
  b.Op("elementwise_add").In("X", {"h"}).In("Y", {"t"}).Out("Out", {"y"}).Int("axis", -1);
  b.Output("y");
  // t = [2.5, 3]; n = [3, -2]; y = t / 2 + 10 n.
  EXPECT_THAT(Answer(b, {{-3, 2}}, kDeclared), ElementsAre(31.25, -18.5));
  EXPECT_THAT(Import(b.Program(), b.Parameters()).text, HasSubstr("NPUC1110"));
}

TEST(PaddleImportTest, ParametersLieInTheOrderOfTheirNames) {
  ProgramBuilder b;
  b.Input("x", {1, 1}).Parameter("z", {1, 1}, {1000}).Parameter("a", {1, 1}, {1});
  b.Op("elementwise_add").In("X", {"x"}).In("Y", {"a"}).Out("Out", {"t"});
  b.Op("elementwise_mul").In("X", {"t"}).In("Y", {"z"}).Out("Out", {"y"}).Output("y");
  EXPECT_THAT(Answer(b, {{1}}), ElementsAre(2000));
}

TEST(PaddleImportTest, TheAxisPlacesTheSecondOperand) {
  ProgramBuilder b;
  b.Input("x", {1, 2, 2}).Parameter("v", {2, 1}, {10, 20});
  b.Op("elementwise_add").In("X", {"x"}).In("Y", {"v"}).Out("Out", {"y"}).Int("axis", 1);
  b.Output("y");
  EXPECT_THAT(Answer(b, {{1, 2, 3, 4}}), ElementsAre(11, 12, 23, 24));
  // Dimensions of 1 at the end that X does not have are cut off.
  ProgramBuilder cut;
  cut.Input("x", {1, 2}).Parameter("v", {2, 1}, {10, 20});
  cut.Op("elementwise_add").In("X", {"x"}).In("Y", {"v"}).Out("Out", {"y"}).Int("axis", 1);
  cut.Output("y");
  EXPECT_THAT(Answer(cut, {{1, 2}}), ElementsAre(11, 22));
}

TEST(PaddleImportTest, ThePlaceOfTheGreatest) {
  ProgramBuilder b;
  b.Input("x", {2, 3}).Op("arg_max").In("X", {"x"}).Out("Out", {"y"}).Int("axis", -1).Output("y");
  EXPECT_THAT(Answer(b, {{1, 9, 2, 7, 5, 7}}), ElementsAre(1, 0));
  ProgramBuilder least;
  least.Input("x", {2, 3}).Op("arg_min").In("X", {"x"}).Out("Out", {"y"}).Bool("flatten", true);
  least.Output("y");
  EXPECT_THAT(Answer(least, {{1, 9, 2, 7, 0, 7}}), ElementsAre(4));
}

TEST(PaddleImportTest, ComparesAndChoosesAtRunTime) {
  ProgramBuilder b;
  b.Input("x", {1, 4}).Parameter("limit", {1, 4}, {1, 1, 1, 1});
  b.Op("greater_than").In("X", {"x"}).In("Y", {"limit"}).Out("Out", {"above"});
  b.Op("logical_not").In("X", {"above"}).Out("Out", {"below"});
  b.Op("floor").In("X", {"x"}).Out("Out", {"whole"});
  b.Op("sign").In("X", {"x"}).Out("Out", {"sign"});
  b.Op("where").In("Condition", {"below"}).In("X", {"sign"}).In("Y", {"whole"}).Out("Out", {"y"});
  b.Output("y");
  EXPECT_THAT(Answer(b, {{-2.5f, 0.5f, 1.5f, 3}}), ElementsAre(-1, 1, 1, 3));
}

TEST(PaddleImportTest, LooksUpThePlaceOfTheGreatest) {
  ProgramBuilder b;
  b.Input("x", {1, 3}).Parameter("rows", {3, 2}, {1, 2, 3, 4, 5, 6});
  b.Op("arg_max").In("X", {"x"}).Out("Out", {"best"}).Int("axis", 1);
  b.Op("gather").In("X", {"rows"}).In("Index", {"best"}).Out("Out", {"y"}).Output("y");
  EXPECT_THAT(Answer(b, {{0, 9, 4}}), ElementsAre(3, 4));
}

// By Paddle's formula: round(clip(x, -s, s) / s * 127) * s / 127.
TEST(PaddleImportTest, TrainedScalesRoundToTheirSteps) {
  ProgramBuilder b;
  b.Input("x", {1, 4}).Parameter("s", {1}, {12.7F});
  b.Op("fake_quantize_dequantize_moving_average_abs_max")
      .In("X", {"x"})
      .In("InScale", {"s"})
      .Out("Out", {"y"});
  b.Output("y");
  EXPECT_THAT(Answer(b, {{0.34F, -0.06F, 50, -50}}),
              ElementsAre(FloatNear(0.3, 1e-5), FloatNear(-0.1, 1e-5), FloatNear(12.7, 1e-5),
                          FloatNear(-12.7, 1e-5)));
  ProgramBuilder w;
  w.Input("x", {1, 2}).Parameter("w", {2, 2}, {1.27F, 10, 0.014F, 254});
  w.Op("fake_channel_wise_quantize_dequantize_abs_max").In("X", {"w"}).Out("Out", {"v"});
  w.Int("quant_axis", 1);
  w.Op("mul").In("X", {"x"}).In("Y", {"v"}).Out("Out", {"y"}).Output("y");
  EXPECT_THAT(Answer(w, {{0, 1}}), ElementsAre(FloatNear(0.01, 1e-5), FloatNear(254, 1e-4)));
  ProgramBuilder wild;
  wild.Input("x", {1, 4}).Parameter("s", {1}, {-1});
  wild.Op("fake_quantize_dequantize_moving_average_abs_max")
      .In("X", {"x"})
      .In("InScale", {"s"})
      .Out("Out", {"y"});
  wild.Output("y");
  EXPECT_THAT(Import(wild.Program(), wild.Parameters()).text,
              HasSubstr("a scale that is not positive"));
}

// interpolate_kernel.cc, of floats: "out_w = static_cast<int>(in_w * scale_w)", "new_scale_w =
// (scale_w > 0) ? static_cast<float>(1. / scale_w) : static_cast<float>(in_w) / out_w", and then
// static_cast<int>(ratio_w * l), or static_cast<int>(ratio_w * l + 0.5) with align_corners.
TEST(PaddleImportTest, NearestPixelsAreFoundInFloats) {
  const auto answer = [](int width, const std::function<void(ProgramBuilder&)>& set) {
    ProgramBuilder b;
    b.Input("x", {1, 1, 1, width}).Op("nearest_interp_v2").In("X", {"x"}).Out("Out", {"y"});
    set(b);
    b.Output("y");
    std::vector<float> pixels(static_cast<size_t>(width));
    std::iota(pixels.begin(), pixels.end(), 0.F);
    return Answer(b, {pixels});
  };
  const auto to_18 = [](ProgramBuilder& b) {
    b.Bool("align_corners", false).Int("out_h", 1).Int("out_w", 18);
  };
  EXPECT_EQ(answer(14, to_18)[9], 7);
  const auto corners = [](ProgramBuilder& b) {
    b.Bool("align_corners", true).Int("out_h", 1).Int("out_w", 7);
  };
  EXPECT_THAT(answer(4, corners), ElementsAre(0, 1, 1, 2, 2, 3, 3));
  // 0.7F is below 0.7, and the product with 10 rounds to 7.
  const auto by_scale = [](ProgramBuilder& b) {
    b.Bool("align_corners", false).Floats("scale", {1, 0.7F});
  };
  EXPECT_THAT(answer(10, by_scale), ElementsAre(0, 1, 2, 4, 5, 7, 8));
}

TEST(PaddleImportTest, DropoutMayScale) {
  const auto answer = [](const char* kind) {
    ProgramBuilder b;
    b.Input("x", {1, 1}).Op("dropout").In("X", {"x"}).Out("Out", {"y"}).Out("Mask", {"m"});
    b.Float("dropout_prob", 0.25F);
    if (kind != nullptr) b.Text("dropout_implementation", kind);
    return Answer(b.Output("y"), {{4}});
  };
  EXPECT_THAT(answer(nullptr), ElementsAre(3));
  EXPECT_THAT(answer("downgrade_in_infer"), ElementsAre(3));
  EXPECT_THAT(answer("upscale_in_train"), ElementsAre(4));
}

TEST(PaddleImportTest, PoolsCountAsTheyAreTold) {
  const auto answer = [](bool exclusive, bool ceil) {
    ProgramBuilder b;
    b.Input("x", {1, 1, 1, 4}).Op("pool2d").In("X", {"x"}).Out("Out", {"y"});
    b.Text("pooling_type", "avg").Ints("ksize", {1, 3}).Ints("strides", {1, 2});
    b.Ints("paddings", {0, 0, 1, 0}).Bool("exclusive", exclusive).Bool("ceil_mode", ceil);
    return Answer(b.Output("y"), {{3, 6, 9, 12}});
  };
  EXPECT_THAT(answer(true, false), ElementsAre(4.5, 9));
  EXPECT_THAT(answer(false, false), ElementsAre(3, 9));
  // Nothing more fits; with a window of 2 one is cut at the end.
  EXPECT_THAT(answer(true, true), ElementsAre(4.5, 9));
}

// One operator on x [1, 1, 1, n], from the parameter X to Out; its attributes follow.
ProgramBuilder OfRow(const std::string& type, int64_t n) {
  ProgramBuilder b;
  b.Input("x", {1, 1, 1, n}).Op(type).In("X", {"x"}).Out("Out", {"y"});
  return b;
}

// Paddle's indexing writes x[::-1] as ends = -1, and phi/kernels/funcs/strided_slice.h adds the
// size to a negative end but for an end of -1 with a negative stride.
TEST(PaddleImportTest, SlicesBackwardsToTheBeginning) {
  const auto slice = [](int start, int end, int step) {
    ProgramBuilder b;
    b.Input("x", {1, 4}).Op("strided_slice").In("Input", {"x"}).Out("Out", {"y"});
    b.Ints("axes", {1}).Ints("starts", {start}).Ints("ends", {end}).Ints("strides", {step});
    return b.Output("y");
  };
  const std::vector<std::vector<float>> x = {{1, 2, 3, 4}};
  EXPECT_THAT(Answer(slice(2147483647, -1, -1), x), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Answer(slice(3, -1, -1), x), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Answer(slice(2147483647, -1, -2), x), ElementsAre(4, 2));
  EXPECT_THAT(Answer(slice(-1, -4, -1), x), ElementsAre(4, 3, 2));
  EXPECT_THAT(Answer(slice(-9, -1, -1), x), ElementsAre(1));
  EXPECT_THAT(Answer(slice(0, -1, 1), x), ElementsAre(1, 2, 3));
  // 1.x and 2.0 count backward steps from the place behind the end.
  EXPECT_THAT(Answer(slice(3, -1, -2).Version(1008000), x), ElementsAre(3, 1));
  EXPECT_THAT(Answer(slice(3, 0, -2).Version(1008000), x), ElementsAre(4, 2));
  EXPECT_THAT(Answer(slice(2, 0, -2).Version(1008000), x), ElementsAre(2));
  EXPECT_THAT(Answer(slice(3, -1, -1).Version(1008000), x), ElementsAre(4, 3, 2, 1));
  for (const int64_t unsure : {0, 2001000}) {
    EXPECT_THAT(Import(slice(3, -1, -2).Version(unsure).Program(), std::nullopt).text,
                HasSubstr("versions of Paddle read differently"));
  }
  const auto refused = [&](int start, int end, int step) {
    return Import(slice(start, end, step).Program(), std::nullopt).text;
  };
  EXPECT_THAT(refused(3, -5, -1), HasSubstr("versions of Paddle read differently"));
  EXPECT_THAT(refused(2, 2, 1), HasSubstr("has none of 4 places"));
}

// Pool2dFunctor in phi/kernels/funcs/pooling.cc: hend = min(hstart + ksize, H + padding) and,
// without `exclusive`, a divisor of hend - hstart; in fluid/operators/math/pooling.cc of 1.x it was
// ksize.
TEST(PaddleImportTest, AveragesOfWindowsBeyondThePadding) {
  const auto program = [](int64_t version) {
    ProgramBuilder b = OfRow("pool2d", 4);
    b.Text("pooling_type", "avg").Ints("ksize", {1, 3}).Ints("strides", {1, 2});
    b.Ints("paddings", {0, 0}).Bool("exclusive", false).Bool("ceil_mode", true);
    return b.Version(version).Output("y");
  };
  const std::vector<std::vector<float>> x = {{3, 6, 9, 12}};
  EXPECT_THAT(Answer(program(2003000), x), ElementsAre(6, 10.5));
  EXPECT_THAT(Answer(program(1008000), x), ElementsAre(6, 7));
  for (const int64_t unsure : {0, 2000000}) {
    EXPECT_THAT(Import(program(unsure).Program(), std::nullopt).text,
                HasSubstr("versions of Paddle divide by unlike numbers"));
  }
}

// RoundFunctor in phi/kernels/funcs/activation_functor.h is Eigen's round(): halves go away from 0.
TEST(PaddleImportTest, RoundsHalvesAwayFromZero) {
  const float below = 0.49999997F;  // and no number in between
  EXPECT_THAT(
      Answer(OfRow("round", 8).Output("y"), {{-2.5, -1.5, -0.5, 0.5, 2.5, 2.4F, below, 8388609}}),
      ElementsAre(-3, -2, -1, 1, 3, 2, 0, 8388609));
  EXPECT_THAT(Import(OfRow("round", 2).Int("decimals", 1).Output("y").Program(), std::nullopt).text,
              HasSubstr("rounding to 1 decimals"));
}

// pixel_shuffle_kernel_impl.h: channels last are [c, r, r] of one place, as channels first are.
TEST(PaddleImportTest, FormatsAreHeeded) {
  ProgramBuilder shuffle = OfRow("pixel_shuffle", 4);
  shuffle.Int("upscale_factor", 2).Text("data_format", "NHWC").Output("y");
  const Imported shuffled = Import(shuffle.Program(), std::nullopt);
  ASSERT_TRUE(shuffled.graph.ok()) << shuffled.text;
  EXPECT_EQ(shuffled.graph->type(shuffled.graph->outputs()[0].value).shape, (Shape{1, 2, 2, 1}));
  EXPECT_THAT(Answer(shuffle, {{1, 2, 3, 4}}), ElementsAre(1, 2, 3, 4));
  // Two channels of two places each.
  ProgramBuilder wide;
  wide.Input("x", {1, 1, 2, 8}).Op("pixel_shuffle").In("X", {"x"}).Out("Out", {"y"});
  wide.Int("upscale_factor", 2).Text("data_format", "NHWC").Output("y");
  EXPECT_THAT(Answer(wide, {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}),
              ElementsAre(0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15));
  ProgramBuilder lrn = OfRow("lrn", 3);
  lrn.Int("n", 3).Float("k", 1).Float("alpha", 1).Float("beta", 1).Text("data_format", "NHWC");
  EXPECT_THAT(
      Answer(lrn.Output("y"), {{1, 2, 3}}),
      ElementsAre(FloatNear(1.0 / 6, 1e-6), FloatNear(2.0 / 15, 1e-6), FloatNear(3.0 / 14, 1e-6)));
}

// interpolate_op.h steps by in / out; phi/kernels/cpu/interpolate_kernel.cc of the _v2 operators by
// 1 / scale where there is one. Both make int(float(in) * scale) places, and step by 0 to one
// place.
TEST(PaddleImportTest, ResizesByTheStepsOfPaddle) {
  const auto program = [](const std::string& type, int64_t in, int align_mode) {
    ProgramBuilder b = OfRow(type, in);
    b.Bool("align_corners", false).Int("align_mode", align_mode);
    return b;
  };
  const auto row = [](double step, int count) {
    std::vector<testing::Matcher<float>> wanted;
    for (int i = 0; i < count; ++i) {
      wanted.push_back(FloatNear(static_cast<float>(std::min(i * step, 4.0)), 1e-5F));
    }
    return testing::ElementsAreArray(wanted);
  };
  const std::vector<std::vector<float>> five = {{0, 1, 2, 3, 4}};
  EXPECT_THAT(Answer(program("bilinear_interp", 5, 1).Float("scale", 1.5).Output("y"), five),
              row(5.0 / 7, 7));
  EXPECT_THAT(
      Answer(program("bilinear_interp_v2", 5, 1).Floats("scale", {1, 1.5}).Output("y"), five),
      row(1 / 1.5, 7));
  const std::vector<std::vector<float>> ten = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
  EXPECT_THAT(
      Answer(program("nearest_interp_v2", 10, 1).Floats("scale", {1, 0.7F}).Output("y"), ten),
      ElementsAre(0, 1, 2, 4, 5, 7, 8));
  const auto single = [&](const std::string& type, int64_t version) {
    return program(type, 5, 0).Int("out_h", 1).Int("out_w", 1).Version(version).Output("y");
  };
  EXPECT_THAT(Answer(single("bilinear_interp_v2", 2003000), five), ElementsAre(0));
  EXPECT_THAT(Answer(single("bilinear_interp", 0), five), ElementsAre(0));
  // The weights of places -2 to 1 around -0.5, of which the first three are of place 0.
  EXPECT_THAT(Answer(single("bicubic_interp_v2", 2003000), five),
              ElementsAre(FloatNear(-0.09375F, 1e-6F)));
  EXPECT_THAT(Import(single("bilinear_interp_v2", 3000000).Program(), std::nullopt).text,
              HasSubstr("versions of Paddle do differently"));
}

// QuantTensorFunctor in phi/kernels/funcs/fake_quantize_functor.h, and the clip and Eigen's round()
// of round_type 1 in fake_quantize_op.cc.
TEST(PaddleImportTest, FakeQuantizationRoundsByItsType) {
  const auto weight = [](int round_type) {
    ProgramBuilder b;
    b.Input("x", {4}).Parameter("w", {4}, {127, 0.5F, 2.5F, -2.5F});
    b.Op("fake_quantize_dequantize_abs_max").In("X", {"w"}).Out("Out", {"v"});
    if (round_type >= 0) b.Int("round_type", round_type);
    b.Op("elementwise_add").In("X", {"x"}).In("Y", {"v"}).Out("Out", {"y"}).Output("y");
    return Answer(b, {{0, 0, 0, 0}});
  };
  EXPECT_THAT(weight(-1), ElementsAre(127, 1, 3, -3));
  EXPECT_THAT(weight(1), ElementsAre(127, 1, 3, -3));
  EXPECT_THAT(weight(0), ElementsAre(127, 0, 2, -2));
  const auto computed = [](int round_type) {
    ProgramBuilder b;
    b.Input("x", {2}).Parameter("s", {1}, {127});
    b.Op("fake_quantize_dequantize_moving_average_abs_max").In("X", {"x"}).In("InScale", {"s"});
    b.Out("Out", {"y"}).Int("round_type", round_type).Output("y");
    return Answer(b, {{500, -500}});
  };
  EXPECT_THAT(computed(0), ElementsAre(127, -128));
  EXPECT_THAT(computed(1), ElementsAre(127, -127));
}

TEST(PaddleImportTest, FusedOperatorsAreRefused) {
  ProgramBuilder b;
  b.Input("x", {1, 1, 1, 1}).Parameter("p", {1}, {1}).Op("batch_norm").In("X", {"x"});
  for (const char* operand : {"Scale", "Bias", "Mean", "Variance"}) b.In(operand, {"p"});
  b.Out("Y", {"y"}).Bool("fuse_with_relu", true).Output("y");
  EXPECT_THAT(Import(b.Program(), b.Parameters()).text, HasSubstr("operators fused into this one"));
}

TEST(PaddleImportTest, ResultsHaveTheShapesThatTheProgramStates) {
  const auto problems = [](const std::vector<int64_t>& stated, const std::vector<int64_t>& input) {
    ProgramBuilder b;
    b.Input("x", input).State("y", stated).Op("relu").In("X", {"x"}).Out("Out", {"y"}).Output("y");
    CompileOptions options;
    options.inputs = {{"x", {2, 3}}};
    return Import(b.Program(), std::nullopt, options).text;
  };
  EXPECT_THAT(problems({2, 3}, {2, 3}), testing::IsEmpty());
  EXPECT_THAT(problems({-1, 3}, {-1, 3}), testing::IsEmpty());
  EXPECT_THAT(problems({-1}, {-1, 3}), testing::IsEmpty());
  EXPECT_THAT(problems({-1, 4}, {-1, 3}),
              HasSubstr("result 'y' has shape [2,3], but the program states [-1,4]"));
  EXPECT_THAT(problems({6}, {2, 3}), HasSubstr("NPUC1113"));
  // Paddle may state nonsense where it knows no more than the batch.
  EXPECT_THAT(problems({-1, 4}, {-1, -1}), testing::IsEmpty());
  // A name of two values is stated once.
  ProgramBuilder twice;
  twice.Input("x", {1, 2}).State("y", {2}).Op("relu").In("X", {"x"}).Out("Out", {"y"});
  twice.Op("reshape").In("X", {"y"}).Out("Out", {"y"}).Ints("shape", {2}).Output("y");
  EXPECT_THAT(Answer(twice, {{1, -1}}), ElementsAre(1, 0));
}

TEST(PaddleImportTest, ShapesAreComputedWhileImporting) {
  ProgramBuilder b;
  b.Input("x", {1, 2, 3});
  b.Op("shape").In("Input", {"x"}).Out("Out", {"s"});
  b.Op("slice").In("Input", {"s"}).Out("Out", {"n"}).Ints("axes", {0}).Ints("starts", {1});
  b.Ints("ends", {3});
  b.Op("reshape2").In("X", {"x"}).In("Shape", {"n"}).Out("Out", {"y"}).Out("XShape", {"dummy"});
  b.Output("y");
  const Imported net = Import(b.Program(), std::nullopt);
  ASSERT_TRUE(net.graph.ok()) << net.text;
  EXPECT_EQ(net.graph->type(net.graph->outputs()[0].value).shape, (Shape{2, 3}));
}

TEST(PaddleImportTest, DecodersAreLeftOut) {
  ProgramBuilder b;
  b.Input("x", {1, 2}).Input("size", {1, 2});
  b.Op("relu").In("X", {"x"}).Out("Out", {"raw"});
  b.Op("yolo_box")
      .In("X", {"raw"})
      .In("ImgSize", {"size"})
      .Out("Boxes", {"b"})
      .Out("Scores", {"s"});
  b.Op("transpose2").In("X", {"s"}).Out("Out", {"st"});
  b.Op("multiclass_nms3").In("BBoxes", {"b"}).In("Scores", {"st"}).Out("Out", {"y"});
  b.Output("y");
  const Imported net = Import(b.Program(), std::nullopt);
  ASSERT_TRUE(net.graph.ok()) << net.text;
  ASSERT_EQ(net.graph->outputs().size(), 1U);
  EXPECT_EQ(net.graph->outputs()[0].name, "raw");
  EXPECT_EQ(net.graph->inputs().size(), 1U);
  EXPECT_THAT(net.text, HasSubstr("NPUC1143"));
  Diagnostics diagnostics;
  const auto outline = OutlinePaddle(b.Program(), "net.pdmodel", diagnostics);
  ASSERT_TRUE(outline.ok());
  EXPECT_EQ(outline->outputs[0].key, "raw");
  EXPECT_EQ(outline->producer, "PaddlePaddle 2.3.0");
}

TEST(PaddleImportTest, InputsMayBeDeclared) {
  CompileOptions options;
  options.inputs = {{"x", {3, 2}}};
  const ProgramBuilder b = SmallNet();
  const Imported three = Import(b.Program(), b.Parameters(), options);
  ASSERT_TRUE(three.graph.ok()) << three.text;
  EXPECT_EQ(three.graph->type(three.graph->outputs()[0].value).shape, (Shape{3, 2}));
  options.inputs = {{"x", {3, 4}}};
  EXPECT_THAT(Import(b.Program(), b.Parameters(), options).text, HasSubstr("NPUC1118"));
  options.inputs = {{"q", {1}}};
  EXPECT_THAT(Import(b.Program(), b.Parameters(), options).text, HasSubstr("NPUC1116"));
  ProgramBuilder open;
  open.Input("x", {-1, -1}).Op("relu").In("X", {"x"}).Out("Out", {"y"}).Output("y");
  EXPECT_THAT(Import(open.Program(), std::nullopt).text,
              HasSubstr("every dimension must be known"));
}

TEST(PaddleHostileTest, EveryTruncationIsRefusedOrRead) {
  const ProgramBuilder b = SmallNet();
  const std::string program = b.Program();
  const std::string parameters = b.Parameters();
  for (size_t size = 0; size < program.size(); ++size) {
    const Imported net = Import(program.substr(0, size), parameters);
    EXPECT_FALSE(absl::IsInternal(net.graph.status())) << size << net.text;
  }
  for (size_t size = 0; size < parameters.size(); ++size) {
    EXPECT_THAT(Import(program, parameters.substr(0, size)).text, HasSubstr("NPUC1177")) << size;
  }
}

TEST(PaddleHostileTest, EveryFlippedByteIsRefusedOrRead) {
  const ProgramBuilder b = SmallNet();
  for (const bool of_program : {true, false}) {
    const std::string whole = of_program ? b.Program() : b.Parameters();
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const unsigned char flip : {0x01, 0x80, 0xff}) {
        std::string mutant = whole;
        mutant[at] = static_cast<char>(static_cast<unsigned char>(mutant[at]) ^ flip);
        const Imported net =
            of_program ? Import(mutant, b.Parameters()) : Import(b.Program(), mutant);
        EXPECT_FALSE(absl::IsInternal(net.graph.status())) << at << net.text;
      }
    }
  }
}

TEST(PaddleHostileTest, SaysWhatAFileIs) {
  const ProgramBuilder b = SmallNet();
  EXPECT_THAT(Import("", std::nullopt).text, HasSubstr("NPUC1100"));
  EXPECT_THAT(Import("{\"base_code\": 1}", std::nullopt).text, HasSubstr("FLAGS_enable_pir_api=0"));
  EXPECT_THAT(Import("\x0a\x04node", std::nullopt).text, HasSubstr("NPUC1176"));
  EXPECT_THAT(Import(b.Program(), std::nullopt).text, HasSubstr("no file of them is given"));
  EXPECT_THAT(Import(b.Program(), "\x80\x02}q\x00.and so on").text, HasSubstr("pickle"));
  EXPECT_THAT(Import(b.Program(), b.Parameters() + "more").text, HasSubstr("4 bytes behind"));
}

TEST(PaddleHostileTest, AllOperatorsAreNamedAtOnce) {
  ProgramBuilder b;
  b.Input("x", {1, 2}).Op("while").In("X", {"x"}).Out("Out", {"a"});
  b.Op("reluu").In("X", {"x"}).Out("Out", {"c"});
  b.Op("elementwise_add").In("X", {"a"}).In("Y", {"c"}).Out("Out", {"y"}).Output("y");
  const std::string text = Import(b.Program(), std::nullopt).text;
  EXPECT_THAT(text, HasSubstr("(while)"));
  EXPECT_THAT(text, HasSubstr("the nearest supported one is relu"));
}

TEST(PaddleHostileTest, WhatFeedsItselfHasNoValue) {
  ProgramBuilder b;
  b.Input("x", {1}).Op("elementwise_add").In("X", {"y"}).In("Y", {"x"}).Out("Out", {"y"});
  EXPECT_THAT(Import(b.Output("y").Program(), std::nullopt).text, HasSubstr("NPUC1106"));
}

TEST(PaddleHostileTest, SequencesAreRefused) {
  ProgramBuilder b;
  b.Input("x", {4}, 1).Op("relu").In("X", {"x"}).Out("Out", {"y"}).Output("y");
  EXPECT_THAT(Import(b.Program(), std::nullopt).text, HasSubstr("LoD level 1"));
}

TEST(PaddleHostileTest, SizesAreBounded) {
  ProgramBuilder b;
  b.Input("x", {1, 2}).Op("fill_constant").Out("Out", {"c"});
  b.Ints("shape", {1 << 20, 1 << 20}).Float("value", 1);
  b.Op("elementwise_add").In("X", {"c"}).In("Y", {"x"}).Out("Out", {"y"}).Output("y");
  EXPECT_THAT(Import(b.Program(), std::nullopt).text, HasSubstr("NPUC1113"));
  ProgramBuilder wide;
  wide.Input("x", {int64_t{1} << 40}).Op("relu").In("X", {"x"}).Out("Out", {"y"}).Output("y");
  EXPECT_THAT(Import(wide.Program(), std::nullopt).text, HasSubstr("NPUC1118"));
}

// The fuzz corpus' seeds: the length of the program, the program, the parameters.
std::string Seed(const ProgramBuilder& b) {
  const std::string program = b.Program();
  const auto length = static_cast<uint32_t>(program.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + program +
         b.Parameters();
}

TEST(PaddleCorpusTest, SeedsAreCommitted) {
  ProgramBuilder windows;
  windows.Input("x", {1, 2, 6, 6}).Parameter("w", {2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  windows.Op("conv2d").In("Input", {"x"}).In("Filter", {"w"}).Out("Output", {"c"});
  windows.Int("groups", 2).Ints("strides", {2, 1}).Text("padding_algorithm", "SAME");
  windows.Op("conv2d_transpose").In("Input", {"c"}).In("Filter", {"w"}).Out("Output", {"t"});
  windows.Ints("strides", {2, 2}).Ints("paddings", {1, 0});
  windows.Op("pool2d").In("X", {"t"}).Out("Out", {"p"}).Ints("ksize", {2, 2});
  windows.Ints("strides", {2, 2}).Bool("ceil_mode", true).Text("pooling_type", "avg");
  windows.Op("bilinear_interp_v2").In("X", {"p"}).Out("Out", {"y"}).Int("out_h", 5);
  windows.Int("out_w", 3).Bool("align_corners", false).Int("align_mode", 0).Output("y");
  ExpectSeeds("paddle_fuzz",
              {{"seed_dense.bin", Seed(SmallNet())}, {"seed_windows.bin", Seed(windows)}});
}

// The rnn of 2.x lists W and R of all layers and directions, then their biases.
TEST(PaddleImportTest, RnnsAreThoseOfPyTorch) {
  const std::map<std::string, std::string> modes = {
      {"Lstm", "LSTM"},     {"TwoWayLstm", "LSTM"},  {"Gru", "GRU"},
      {"TwoWayGru", "GRU"}, {"TanhRnn", "RNN_TANH"}, {"ReluRnn", "RNN_RELU"}};
  for (const frontend::RecurrentCase& c : frontend::RecurrentCases()) {
    const std::string& mode = modes.at(c.name);
    const bool is_lstm = mode == "LSTM";
    const int64_t rows = (is_lstm ? 4 : mode == "GRU" ? 3 : 1) * frontend::RecurrentCase::kUnits;
    const frontend::RecurrentNumbers numbers(c, rows / 2);
    ProgramBuilder b;
    b.Input("x", {3, 2, 3}).Input("h", {c.states, 2, 2});
    if (is_lstm) b.Input("c", {c.states, 2, 2});
    Names names;
    for (size_t i = 0; i < numbers.directions.size(); ++i) {
      const auto& direction = numbers.directions[i];
      b.Parameter(absl::StrCat("w", i), {rows, direction.in}, direction.w);
      b.Parameter(absl::StrCat("r", i), {rows, 2}, direction.r);
      b.Parameter(absl::StrCat("wb", i), {rows}, direction.w_bias);
      b.Parameter(absl::StrCat("rb", i), {rows}, direction.r_bias);
      names.insert(names.end(), {absl::StrCat("w", i), absl::StrCat("r", i)});
    }
    for (size_t i = 0; i < numbers.directions.size(); ++i) {
      names.insert(names.end(), {absl::StrCat("wb", i), absl::StrCat("rb", i)});
    }
    b.Op("rnn").In("Input", {"x"}).In("WeightList", names).Text("mode", mode);
    b.Int("num_layers", c.states == 1 ? 1 : 2).Bool("is_bidirec", c.states > 1);
    b.In("PreState", is_lstm ? Names{"h", "c"} : Names{"h"});
    b.Out("Out", {"y"}).Out("State", is_lstm ? Names{"h1", "c1"} : Names{"h1"});
    b.Output("y").Output("h1");
    if (is_lstm) b.Output("c1");
    const Imported net = Import(b.Program(), b.Parameters());
    ASSERT_TRUE(net.graph.ok()) << c.name << net.text;
    frontend::ExpectCase(c, numbers, *net.graph);
  }
}

// Gates c, i, f, o; peepholes of i, f and o behind the bias. By hand: all weights 0, the biases of
// the gates 0 but for that of c, its tanh 0.5; a peephole of i of 0 and of f and o of 1.
TEST(PaddleImportTest, LstmOfFluid) {
  ProgramBuilder b;
  b.Input("x", {2, 4}).Parameter("w", {1, 4}, {0, 0, 0, 0});
  b.Parameter("b", {1, 7}, {0.54930615f, 0, 0, 0, 0, 1, 1});
  b.Op("lstm").In("Input", {"x"}).In("Weight", {"w"}).In("Bias", {"b"}).Out("Hidden", {"y"});
  b.Out("Cell", {"c"}).Output("y");
  // c1 = 0.5 * 0.5; c2 = sigmoid(0.25) * 0.25 + 0.25.
  const double c1 = 0.25;
  const double c2 = c1 / (1 + std::exp(-c1)) + 0.25;
  const auto h = [](double c) { return static_cast<float>(std::tanh(c) / (1 + std::exp(-c))); };
  EXPECT_THAT(Answer(b, {std::vector<float>(8, 0)}),
              ElementsAre(FloatNear(h(c1), 1e-5f), FloatNear(h(c2), 1e-5f)));
}

// u, r and c; the weight of c stands behind that of the others. By hand: u = sigmoid(x0),
// c = tanh(x2 + r h 2), h' = (1 - u) h + u c, or the other way about in the original form.
TEST(PaddleImportTest, GruOfFluid) {
  for (const bool is_original : {false, true}) {
    ProgramBuilder b;
    b.Input("x", {2, 3}).Parameter("w", {1, 3}, {0, 0, 2});
    b.Op("gru").In("Input", {"x"}).In("Weight", {"w"}).Out("Hidden", {"y"});
    b.Bool("origin_mode", is_original).Output("y");
    const std::vector<float> x = {1, -1, 0.5f, -2, 0.25f, 0.75f};
    std::vector<testing::Matcher<float>> wanted;
    double h = 0;
    for (size_t t = 0; t < 2; ++t) {
      const double u = 1 / (1 + std::exp(-x[3 * t]));
      const double r = 1 / (1 + std::exp(-x[3 * t + 1]));
      const double c = std::tanh(x[3 * t + 2] + 2 * r * h);
      h = is_original ? u * h + (1 - u) * c : (1 - u) * h + u * c;
      wanted.push_back(FloatNear(static_cast<float>(h), 1e-5f));
    }
    EXPECT_THAT(Answer(b, {x}), testing::ElementsAreArray(wanted));
  }
}

TEST(PaddleImportTest, LooksUpRows) {
  ProgramBuilder b;
  b.Input("ids", {3, 1}).Parameter("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  b.Op("cast").In("X", {"ids"}).Out("Out", {"i"}).Int("out_dtype", 3).Int("in_dtype", 5);
  b.Op("lookup_table").In("W", {"w"}).In("Ids", {"i"}).Out("Out", {"y"}).Int("padding_idx", 1);
  b.Output("y");
  EXPECT_THAT(Answer(b, {{2, 1, 0}}), ElementsAre(5, 6, 0, 0, 1, 2));
}

}  // namespace
}  // namespace npuc
