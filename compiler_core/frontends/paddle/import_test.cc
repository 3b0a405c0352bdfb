#include "compiler_core/frontends/paddle/import.h"

#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/paddle/program.pb.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

using Names = std::vector<std::string>;

// Builds programs for tests. Op() begins an operator; the calls that follow go to it.
class ProgramBuilder {
 public:
  ProgramBuilder() {
    block().set_idx(0);
    block().set_parent_idx(-1);
    proto_.mutable_version()->set_version(2003000);
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

Imported Import(const std::string& program, const std::optional<std::string>& parameters,
                CompileOptions options = {}) {
  options.model_name = "net.pdmodel";
  Diagnostics diagnostics;
  const ViewSource bytes(parameters.has_value() ? absl::string_view(*parameters) : "");
  Imported result{
      ImportPaddle(program, parameters.has_value() ? &bytes : nullptr, options, diagnostics), ""};
  EXPECT_EQ(result.graph.ok(), !diagnostics.has_errors());
  for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&result.text, d.ToString(), "\n");
  return result;
}

// The first result of a program on the values of its inputs.
std::vector<float> Answer(const ProgramBuilder& b, const std::vector<std::vector<float>>& inputs) {
  const Imported net = Import(b.Program(), b.Parameters());
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

}  // namespace
}  // namespace npuc
