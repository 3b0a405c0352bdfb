// Small models, built operator by operator: groups of SPACE_TO_BATCH_ND, a convolution and
// BATCH_TO_SPACE_ND; shapes known from the file alone; operators with a state.
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler_core/frontends/tflite/import.h"
#include "compiler_core/frontends/tflite/model_file.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

namespace fb = ::npuc::fe::tflite;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int kAdd = 0;
constexpr int kConv2D = 3;
constexpr int kL2Normalization = 11;
constexpr int kMul = 18;
constexpr int kRelu = 19;
constexpr int kReshape = 22;
constexpr int kSvdf = 27;
constexpr int kBatchToSpace = 37;
constexpr int kSpaceToBatch = 38;
constexpr int kCast = 53;
constexpr int kNeg = 59;
constexpr int kSin = 66;
constexpr int kTransposeConv = 67;
constexpr int kResizeNearest = 97;
constexpr int kIf = 118;
constexpr int kScatterNd = 122;
constexpr int kSelectV2 = 123;
constexpr int kRfft2d = 131;
constexpr int kImag = 133;
constexpr int kComplexAbs = 135;
constexpr int kDynamicUpdateSlice = 151;

// A float model, tensor by tensor.
class ModelBuilder {
 public:
  ModelBuilder() {
    model_.version = 3;
    model_.buffers.push_back(std::make_unique<fb::BufferT>());
    model_.subgraphs.push_back(std::make_unique<fb::SubGraphT>());
  }
  fb::SubGraphT& graph() { return *model_.subgraphs[0]; }

  int Tensor(std::vector<int> shape, fb::ElementType type = fb::ElementType_FLOAT32,
             uint32_t buffer = 0) {
    auto tensor = std::make_unique<fb::TensorInfoT>();
    tensor->name = "t" + std::to_string(graph().tensors.size());
    tensor->type = type;
    tensor->shape = std::move(shape);
    tensor->buffer = buffer;
    graph().tensors.push_back(std::move(tensor));
    return static_cast<int>(graph().tensors.size()) - 1;
  }
  int Input(std::vector<int> shape, fb::ElementType type = fb::ElementType_FLOAT32) {
    graph().inputs.push_back(Tensor(std::move(shape), type));
    return graph().inputs.back();
  }
  template <typename T>
  int Constant(std::vector<int> shape, const std::vector<T>& values) {
    auto data = std::make_unique<fb::BufferT>();
    data->data.resize(values.size() * sizeof(T));
    std::memcpy(data->data.data(), values.data(), data->data.size());
    model_.buffers.push_back(std::move(data));
    return Tensor(std::move(shape),
                  std::is_same_v<T, int32_t> ? fb::ElementType_INT32 : fb::ElementType_FLOAT32,
                  static_cast<uint32_t>(model_.buffers.size()) - 1);
  }
  int Op(int code, std::vector<int> inputs, std::vector<int> shape) {
    model_.operator_codes.push_back(std::make_unique<fb::OperatorCodeT>());
    model_.operator_codes.back()->builtin_code = code;
    auto op = std::make_unique<fb::OperatorT>();
    op->opcode_index = static_cast<uint32_t>(model_.operator_codes.size()) - 1;
    op->inputs = std::move(inputs);
    op->outputs = {Tensor(std::move(shape))};
    SetOptions(code, *op);
    graph().operators.push_back(std::move(op));
    graph().outputs = {static_cast<int>(graph().tensors.size()) - 1};
    return graph().outputs[0];
  }

  // One of two operators on x, as a condition chooses.
  void If(int condition, int x, std::vector<int> shape, int if_true, int if_false) {
    Op(kIf, {condition, x}, shape);
    fb::IfOptionsT options;
    options.then_subgraph_index = 1;
    options.else_subgraph_index = 2;
    graph().operators.back()->options.Set(options);
    std::unique_ptr<fb::SubGraphT> main = std::move(model_.subgraphs[0]);
    std::vector<std::unique_ptr<fb::SubGraphT>> branches;
    for (const int code : {if_true, if_false}) {
      model_.subgraphs[0] = std::make_unique<fb::SubGraphT>();
      Op(code, {Input(shape)}, shape);
      branches.push_back(std::move(model_.subgraphs[0]));
    }
    model_.subgraphs[0] = std::move(main);
    for (auto& branch : branches) model_.subgraphs.push_back(std::move(branch));
  }

  // A custom operator with one output of each shape, which are the graph's.
  void Custom(const std::string& name, std::vector<int> inputs,
              const std::vector<std::vector<int>>& shapes) {
    Op(kCustomOperator, std::move(inputs), shapes[0]);
    model_.operator_codes.back()->custom_code = name;
    for (size_t i = 1; i < shapes.size(); ++i) graph().outputs.push_back(Tensor(shapes[i]));
    graph().operators.back()->outputs = graph().outputs;
  }

  absl::StatusOr<Graph> Import(Diagnostics* notes = nullptr,
                               std::vector<ConstInput> const_inputs = {}) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(fb::Model::Pack(builder, &model_), "TFL3");
    const std::string bytes(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                            builder.GetSize());
    Diagnostics diagnostics;
    CompileOptions options;
    options.model_name = "m.tflite";
    options.const_inputs = std::move(const_inputs);
    return ImportTfLite(bytes, options, notes == nullptr ? diagnostics : *notes);
  }

 private:
  static void SetOptions(int code, fb::OperatorT& op) {
    if (code == kConv2D) {
      fb::Conv2DOptionsT options;
      options.stride_w = options.stride_h = 1;
      options.padding = fb::Padding_VALID;
      op.options.Set(options);
    }
    if (code == kTransposeConv) {
      fb::TransposeConvOptionsT options;
      options.stride_w = options.stride_h = 2;
      options.padding = fb::Padding_VALID;
      op.options.Set(options);
    }
    if (code == kSvdf) {
      fb::SvdfOptionsT options;
      options.rank = 1;
      op.options.Set(options);
    }
  }

  fb::ModelT model_;
};

std::vector<float> Answer(const Graph& graph, Tensor x) {
  absl::StatusOr<std::vector<Tensor>> results = RunReference(graph, {std::move(x)});
  return results.ok() ? (*results)[0].ToFloats() : std::vector<float>();
}

// The node that gives the graph's output.
const Node& Last(const Graph& graph) { return graph.def(graph.outputs()[0].value); }

TEST(TfLiteIf, AConditionThatFlowsChoosesBetweenTheResults) {
  ModelBuilder b;
  const int choice = b.Input({}, fb::ElementType_BOOL);
  const int x = b.Input({2});
  b.If(choice, x, {2}, kNeg, kRelu);
  const absl::StatusOr<Graph> graph = b.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const int64_t flag : {0, 1}) {
    const auto y = RunReference(*graph, {CastTensor(Tensor::FromInts({}, {flag}), DType::kBool),
                                         Tensor::FromFloats({2}, {3, -2})});
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_THAT((*y)[0].ToFloats(), flag == 0 ? ElementsAre(3, 0) : ElementsAre(-3, 2));
  }
}

// Transforms two rows of four by a length, and runs another operator on the result.
absl::StatusOr<Graph> Spectrum(int length, int code) {
  ModelBuilder b;
  const int x = b.Input({2, 1, 4});
  const int lengths = b.Constant<int32_t>({2}, {1, length});
  const int bins = length / 2 + 1;
  const int spectrum = b.Op(kRfft2d, {x, lengths}, {2, 1, bins});
  b.graph().tensors[static_cast<size_t>(spectrum)]->type = fb::ElementType_COMPLEX64;
  if (code == kReshape) {
    const int shape = b.Constant<int32_t>({2}, {2, bins});
    const int flat = b.Op(code, {spectrum, shape}, {2, bins});
    b.graph().tensors[static_cast<size_t>(flat)]->type = fb::ElementType_COMPLEX64;
    b.Op(kComplexAbs, {flat}, {2, bins});
  } else if (code == kMul) {
    b.Op(code, {spectrum, spectrum}, {2, 1, bins});
  } else {
    b.Op(code, {spectrum}, {2, 1, bins});
  }
  return b.Import();
}

TEST(TfLiteSpectrum, IsAProductWithCosinesAndSines) {
  // 1 2 3 4 gives 10, -2 + 2i, -2, and 1 0 0 0 gives ones.
  const Tensor x = Tensor::FromFloats({2, 1, 4}, {1, 2, 3, 4, 1, 0, 0, 0});
  const absl::StatusOr<Graph> sizes = Spectrum(4, kComplexAbs);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  const std::vector<float> found = Answer(*sizes, x);
  ASSERT_EQ(found.size(), 6u);
  EXPECT_NEAR(found[0], 10, 1e-5);
  EXPECT_NEAR(found[1], 2.828427, 1e-5);
  EXPECT_NEAR(found[2], 2, 1e-5);
  EXPECT_NEAR(found[4], 1, 1e-5);
  const absl::StatusOr<Graph> parts = Spectrum(4, kImag);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_NEAR(Answer(*parts, x)[1], 2, 1e-5);
  const absl::StatusOr<Graph> flat = Spectrum(4, kReshape);
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ(Answer(*flat, x), found);
  // A longer transform ends the rows in zeros, a shorter one takes their beginning.
  EXPECT_NEAR(Answer(*Spectrum(8, kComplexAbs), x)[0], 10, 1e-5);
  EXPECT_NEAR(Answer(*Spectrum(2, kComplexAbs), x)[1], 1, 1e-5);
}

TEST(TfLiteSpectrum, ComplexNumbersAreNotMultiplied) {
  EXPECT_THAT(std::string(Spectrum(4, kMul).status().message()),
              HasSubstr("an operand of complex numbers"));
}

// x [1,1,6,1], kernel 1 x 2 of weights 1 and 10 and dilation 2; padded by 2 before, cropped `crop`.
absl::StatusOr<Graph> Group(int crop, int stated_width) {
  ModelBuilder b;
  const int x = b.Input({1, 1, 6, 1});
  const int block = b.Constant<int32_t>({2}, {1, 2});
  const int paddings = b.Constant<int32_t>({2, 2}, {0, 0, 2, 0});
  const int crops = b.Constant<int32_t>({2, 2}, {0, 0, 0, crop});
  const int weight = b.Constant<float>({1, 1, 2, 1}, {1, 10});
  const int batched = b.Op(kSpaceToBatch, {x, block, paddings}, {2, 1, 4, 1});
  const int convolved = b.Op(kConv2D, {batched, weight}, {2, 1, 3, 1});
  b.Op(kBatchToSpace, {convolved, block, crops}, {1, 1, stated_width, 1});
  return b.Import();
}

TEST(TfLiteDilation, AGroupIsOneConvolution) {
  const absl::StatusOr<Graph> graph = Group(0, 6);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node& node = Last(*graph);
  ASSERT_EQ(node.op, Op::kConv2D);
  EXPECT_EQ(std::get<Shape>(node.attrs.at("dilations")), (Shape{1, 2}));
  EXPECT_EQ(std::get<Shape>(node.attrs.at("pads")), (Shape{0, 0, 2, 0}));
  EXPECT_THAT(Answer(*graph, Tensor::FromFloats({1, 1, 6, 1}, {1, 2, 3, 4, 5, 6})),
              ElementsAre(10, 20, 31, 42, 53, 64));
}

// Crops beyond the padding would need a convolution of a negative one.
TEST(TfLiteDilation, CropsBeyondThePaddingStayAsWritten) {
  const absl::StatusOr<Graph> graph = Group(1, 5);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Last(*graph).op, Op::kSlice);
  EXPECT_THAT(Answer(*graph, Tensor::FromFloats({1, 1, 6, 1}, {1, 2, 3, 4, 5, 6})),
              ElementsAre(10, 20, 31, 42, 53));
}

// As Keras writes a Conv1D of dilation 2: rows of rank 3 around the convolution of an image.
TEST(TfLiteDilation, ARowIsConvolvedAsAnImage) {
  ModelBuilder b;
  const int x = b.Input({1, 6, 1});
  const int block = b.Constant<int32_t>({1}, {2});
  const int none = b.Constant<int32_t>({1, 2}, {0, 0});
  const int image = b.Constant<int32_t>({4}, {2, 1, 3, 1});
  const int row = b.Constant<int32_t>({3}, {2, 2, 1});
  const int weight = b.Constant<float>({1, 1, 2, 1}, {1, 10});
  const int batched = b.Op(kSpaceToBatch, {x, block, none}, {2, 3, 1});
  const int expanded = b.Op(kReshape, {batched, image}, {2, 1, 3, 1});
  const int convolved = b.Op(kConv2D, {expanded, weight}, {2, 1, 2, 1});
  const int squeezed = b.Op(kReshape, {convolved, row}, {2, 2, 1});
  b.Op(kBatchToSpace, {squeezed, block, none}, {1, 4, 1});
  const absl::StatusOr<Graph> graph = b.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node& last = Last(*graph);
  ASSERT_EQ(last.op, Op::kReshape);
  EXPECT_EQ(graph->def(last.inputs[0]).op, Op::kConv2D);
  EXPECT_THAT(Answer(*graph, Tensor::FromFloats({1, 6, 1}, {1, 2, 3, 4, 5, 6})),
              ElementsAre(31, 42, 53, 64));
}

TEST(TfLiteDilation, BlocksThatDoNotFitAreRefused) {
  ModelBuilder b;
  const int x = b.Input({1, 1, 5, 1});
  const int block = b.Constant<int32_t>({2}, {1, 2});
  const int paddings = b.Constant<int32_t>({2, 2}, {0, 0, 0, 0});
  b.Op(kSpaceToBatch, {x, block, paddings}, {2, 1, 2, 1});
  EXPECT_THAT(std::string(b.Import().status().message()), HasSubstr("no multiple of the block 2"));
}

// The result's shape as an input of the model.
ModelBuilder Enlarging() {
  ModelBuilder b;
  const int shape = b.Input({4}, fb::ElementType_INT32);
  const int weight = b.Constant<float>({1, 1, 2, 1}, {1, 10});
  const int x = b.Input({1, 1, 2, 1});
  b.Op(kTransposeConv, {shape, weight, x}, {1, 1, 4, 1});
  return b;
}

TEST(TfLiteShapes, AShapeAtRunTimeIsTheOneThatTheFileStates) {
  const absl::StatusOr<Graph> graph = Enlarging().Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->inputs().size(), 2u);
  EXPECT_EQ(TypeToString(graph->type(graph->inputs()[0])), "f32[4]");
  const auto outputs = RunReference(
      *graph, {Tensor::FromFloats({4}, {0, 0, 0, 0}), Tensor::FromFloats({1, 1, 2, 1}, {1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].ToFloats(), ElementsAre(1, 10, 2, 20));
}

TEST(TfLiteShapes, AShapeOfAnotherRankIsIgnoredForTheOptions) {
  ModelBuilder b;
  const int x = b.Input({2, 3});
  const int shape = b.Constant<int32_t>({1, 2}, {9, 9});
  b.Op(kReshape, {x, shape}, {3, 2});
  fb::ReshapeOptionsT options;
  options.new_shape = {3, 2};
  b.graph().operators.back()->options.Set(options);
  const absl::StatusOr<Graph> graph = b.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(TypeToString(graph->type(graph->outputs()[0].value)), "f32[3,2]");
}

// x [1,1,2,1] by a weight of 1 and 10 in steps of 2, plus 100.
ModelBuilder MediaPipesTransposed(std::vector<uint8_t> options) {
  ModelBuilder b;
  const int x = b.Input({1, 1, 2, 1});
  const int weight = b.Constant<float>({1, 1, 2, 1}, {1, 10});
  const int bias = b.Constant<float>({1}, {100});
  b.Custom("Convolution2DTransposeBias", {x, weight, bias}, {{1, 1, 4, 1}});
  b.graph().operators.back()->custom_options = std::move(options);
  return b;
}

TEST(TfLiteCustom, MediaPipesTransposedConvolutionHasABias) {
  constexpr uint8_t kValid = 2;
  const absl::StatusOr<Graph> graph =
      MediaPipesTransposed({kValid, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0}).Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Answer(*graph, Tensor::FromFloats({1, 1, 2, 1}, {1, 2})),
              ElementsAre(101, 110, 102, 120));
}

TEST(TfLiteCustom, DamagedOptionsAreRefused) {
  const auto said = [](std::vector<uint8_t> options) {
    return std::string(MediaPipesTransposed(std::move(options)).Import().status().message());
  };
  EXPECT_THAT(said({1, 0, 0, 0, 2, 0, 0, 0}), HasSubstr("shorter than 12 bytes"));
  EXPECT_THAT(said({9, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0}), HasSubstr("its padding is 9"));
  EXPECT_THAT(said({1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}), HasSubstr("its stride is 0"));
  EXPECT_THAT(said({1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0x80}), HasSubstr("its stride is"));
}

TEST(TfLiteCustom, AnotherChipsMachineCodeIsToldAsSuch) {
  ModelBuilder b;
  b.Custom("edgetpu-custom-op", {b.Input({1, 4})}, {{1, 4}});
  EXPECT_THAT(std::string(b.Import().status().message()), HasSubstr("Coral's Edge TPU compiler"));
}

TEST(TfLiteShapes, AShapeThatVariesIsRefused) {
  ModelBuilder b = Enlarging();
  b.graph().tensors.back()->shape_signature = {1, 1, -1, 1};
  EXPECT_THAT(std::string(b.Import().status().message()), HasSubstr("NPUC1115"));
}

TEST(TfLiteDetection, TheModelEndsBeforeTheDecoderOfBoxes) {
  ModelBuilder b;
  const int x = b.Input({1, 3, 4});
  const int ones = b.Constant<float>({4}, {1, 1, 1, 1});
  const int boxes = b.Op(kAdd, {x, ones}, {1, 3, 4});
  const int scores = b.Op(kMul, {x, ones}, {1, 3, 4});
  const int anchors = b.Constant<float>({3, 4}, std::vector<float>(12, 0.5f));
  b.Custom("TFLite_Detection_PostProcess", {boxes, scores, anchors},
           {{1, 10, 4}, {1, 10}, {1, 10}, {1}});
  Diagnostics notes;
  const absl::StatusOr<Graph> graph = b.Import(&notes);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->outputs().size(), 2u);
  EXPECT_EQ(graph->outputs()[0].name, "t2");
  EXPECT_EQ(graph->outputs()[1].name, "t3");
  ASSERT_EQ(notes.list().size(), 1u);
  EXPECT_THAT(
      notes.list()[0].ToString(),
      HasSubstr("note: node 't5' (TFLite_Detection_PostProcess): the operator decodes boxes, "
                "which no core does; the outputs are 't2' and 't3', which it reads; decode "
                "them in the firmware, with the anchors in tensor 't4' [NPUC1143]"));
}

TEST(TfLiteSelect, AConditionAtRunTimeChooses) {
  ModelBuilder b;
  const int condition = b.Input({2}, fb::ElementType_BOOL);
  const int x = b.Input({2});
  const int y = b.Input({2});
  b.Op(kSelectV2, {condition, x, y}, {2});
  const absl::StatusOr<Graph> graph = b.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto outputs =
      RunReference(*graph, {Tensor({DType::kBool, {2}}, {1, 0}), Tensor::FromFloats({2}, {1, 2}),
                            Tensor::FromFloats({2}, {3, 4})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].ToFloats(), ElementsAre(1, 4));
}

// 3x4 numbers with a 2x2 update at a position.
std::vector<float> UpdatedAt(int32_t row, int32_t column) {
  ModelBuilder b;
  const int x = b.Input({3, 4});
  const int update = b.Constant<float>({2, 2}, {21, 22, 23, 24});
  b.Op(kDynamicUpdateSlice, {x, update, b.Constant<int32_t>({2}, {row, column})}, {3, 4});
  const absl::StatusOr<Graph> graph = b.Import();
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::vector<float> numbers(12);
  std::iota(numbers.begin(), numbers.end(), 0.f);
  return graph.ok() ? Answer(*graph, Tensor::FromFloats({3, 4}, numbers)) : numbers;
}

TEST(TfLiteUpdates, ASliceIsReplacedWithinTheValue) {
  EXPECT_THAT(UpdatedAt(0, 1), ElementsAre(0, 21, 22, 3, 4, 23, 24, 7, 8, 9, 10, 11));
  // dynamic_update_slice.cc moves a slice that ends outside: "ClampStartIndices".
  EXPECT_THAT(UpdatedAt(2, 9), ElementsAre(0, 1, 2, 3, 4, 5, 21, 22, 8, 9, 23, 24));
  EXPECT_THAT(UpdatedAt(-1, 0), ElementsAre(21, 22, 2, 3, 23, 24, 6, 7, 8, 9, 10, 11));
}

TEST(TfLiteUpdates, APositionAtRunTimeMayBeGivenAsAConstant) {
  ModelBuilder b;
  const int update = b.Constant<float>({1}, {5});
  const int begin = b.Input({1}, fb::ElementType_INT32);
  b.Op(kDynamicUpdateSlice, {b.Input({2}), update, begin}, {2});
  Diagnostics notes;
  EXPECT_FALSE(b.Import(&notes).ok());
  EXPECT_THAT(notes.list()[0].ToString(), HasSubstr("give it with CONST_INPUTS"));
  const absl::StatusOr<Graph> graph =
      b.Import(nullptr, {{.name = "t1", .values = {1}, .is_list = true, .is_whole = true}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Answer(*graph, Tensor::FromFloats({2}, {1, 2})), ElementsAre(1, 5));
}

TEST(TfLiteUpdates, ASliceThatDoesNotFitIsRefused) {
  ModelBuilder b;
  const int update = b.Constant<float>({2, 2}, {21, 22, 23, 24});
  b.Op(kDynamicUpdateSlice, {b.Input({3, 1}), update, b.Constant<int32_t>({2}, {0, 0})}, {3, 1});
  EXPECT_THAT(std::string(b.Import().status().message()),
              HasSubstr("an update of f32[2,2] at 2 positions of f32[3,1]"));
}

absl::StatusOr<Graph> Scattered(const std::vector<int32_t>& rows) {
  ModelBuilder b;
  const int count = static_cast<int>(rows.size());
  const int indices = b.Constant<int32_t>({count, 1}, rows);
  b.Op(kScatterNd, {indices, b.Input({count, 2}), b.Constant<int32_t>({2}, {4, 2})}, {4, 2});
  return b.Import();
}

TEST(TfLiteUpdates, RowsAreScatteredAmongZeros) {
  const absl::StatusOr<Graph> graph = Scattered({3, 1});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Answer(*graph, Tensor::FromFloats({2, 2}, {1, 2, 3, 4})),
              ElementsAre(0, 0, 3, 4, 0, 0, 1, 2));
}

// reference_ops::ScatterNd: memset(output_data, 0, ...), which is 2.5 beside a zero point of -5.
TEST(TfLiteUpdates, StoredRowsAreScatteredAmongStoredZeros) {
  ModelBuilder b;
  const int x = b.Input({1, 2}, fb::ElementType_INT8);
  const int y = b.Op(
      kScatterNd, {b.Constant<int32_t>({1, 1}, {1}), x, b.Constant<int32_t>({2}, {2, 2})}, {2, 2});
  for (const int t : {x, y}) {
    fb::TensorInfoT& tensor = *b.graph().tensors[static_cast<size_t>(t)];
    tensor.type = fb::ElementType_INT8;
    tensor.quantization = std::make_unique<fb::QuantizationT>();
    tensor.quantization->scale = {0.5};
    tensor.quantization->zero_point = {-5};
  }
  const absl::StatusOr<Graph> graph = b.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Answer(*graph, Tensor::FromFloats({1, 2}, {1, -3})), ElementsAre(2.5, 2.5, 1, -3));
}

TEST(TfLiteUpdates, RowsOutsideOrTwiceAreRefused) {
  EXPECT_THAT(std::string(Scattered({0, 4}).status().message()),
              HasSubstr("index 4 is outside a dimension of 4"));
  EXPECT_THAT(std::string(Scattered({0, -1}).status().message()), HasSubstr("index -1"));
  EXPECT_THAT(std::string(Scattered({1, 1}).status().message()),
              HasSubstr("indices that name one place twice"));
}

TEST(TfLiteEvaluated, AnOperatorOfConstantsAloneSaysSo) {
  ModelBuilder b;
  b.Op(kSin, {b.Input({2})}, {2});
  Diagnostics notes;
  EXPECT_FALSE(b.Import(&notes).ok());
  ASSERT_EQ(notes.list().size(), 1u);
  EXPECT_THAT(notes.list()[0].ToString(),
              AllOf(HasSubstr("npuc computes SIN of constants alone"),
                    HasSubstr("begin the model behind this operator with INPUT_OPS")));
}

// x [1,2], two filters that take one element each, over `memory` frames; weights 1, 10, 100 over
// time, the newest last.
ModelBuilder Svdf(int rank, bool keeps_state = true) {
  ModelBuilder b;
  const int x = b.Input({1, 2});
  const int feature = b.Constant<float>({2, 2}, {1, 0, 0, 1});
  const int time = b.Constant<float>({2, 3}, {1, 10, 100, 1, 10, 100});
  const int state = keeps_state ? b.Tensor({1, 6}) : b.Input({1, 6});
  b.graph().tensors.back()->is_variable = keeps_state;
  const int bias = b.Constant<float>({2 / rank}, std::vector<float>(2 / rank, 0.5f));
  b.Op(kSvdf, {x, feature, time, bias, state}, {1, 2 / rank});
  b.graph().operators.back()->options.AsSvdfOptions()->rank = rank;
  return b;
}

std::vector<std::vector<float>> Answers(const Graph& graph, const std::vector<float>& state) {
  std::vector<std::vector<float>> found;
  const auto results = RunReference(
      graph, {Tensor::FromFloats({1, 2}, {3, 4}), Tensor::FromFloats({1, 3, 2}, state)});
  EXPECT_TRUE(results.ok()) << results.status();
  for (const Tensor& result : *results) found.push_back(result.ToFloats());
  return found;
}

TEST(TfLiteSvdf, TheStateIsAnInputAndAnOutput) {
  const absl::StatusOr<Graph> graph = Svdf(1).Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->outputs().size(), 2u);
  EXPECT_EQ(graph->outputs()[0].name, graph->def(graph->inputs()[1]).source.name + "_out");
  const auto found = Answers(*graph, {9, 9, 1, 2, 5, 6});
  EXPECT_THAT(found[0], ElementsAre(1, 2, 5, 6, 3, 4));
  EXPECT_THAT(found[1], ElementsAre(351.5f, 462.5f));
}

TEST(TfLiteSvdf, ARankAddsFilters) {
  const absl::StatusOr<Graph> graph = Svdf(2).Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(Answers(*graph, {9, 9, 1, 2, 5, 6})[1], ElementsAre(351 + 462 + 0.5f));
}

TEST(TfLiteSvdf, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(std::string(Svdf(1, false).Import().status().message()),
              HasSubstr("a state that is no variable"));
  ModelBuilder b = Svdf(1);
  b.graph().operators.back()->options.AsSvdfOptions()->rank = 3;
  EXPECT_THAT(std::string(b.Import().status().message()), HasSubstr("with rank 3 do not fit"));
  ModelBuilder without = Svdf(1);
  without.graph().operators.back()->inputs.back() = -1;
  EXPECT_THAT(std::string(without.Import().status().message()),
              HasSubstr("a state that is no variable"));
}

// reference/l2normalization.h: "l2_norm = std::max(std::sqrt(squared_l2_norm), epsilon)", with an
// epsilon of 1e-6.
TEST(TfLiteL2Normalization, TheRootIsBounded) {
  ModelBuilder b;
  b.Op(kL2Normalization, {b.Input({2, 4})}, {2, 4});
  const absl::StatusOr<Graph> graph = b.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto y = Answer(*graph, Tensor::FromFloats({2, 4}, {3e-4f, 4e-4f, 0, 0, 3e-7f, 0, 0, 0}));
  EXPECT_THAT(y, Pointwise(FloatNear(1e-5f), {0.6f, 0.8f, 0.f, 0.f, 0.3f, 0.f, 0.f, 0.f}));
}

TEST(TfLiteResize, NearestPixelsAreFoundInFloats) {
  ModelBuilder b;
  const int x = b.Input({1, 1, 14, 1});
  const int size = b.Constant<int32_t>({2}, {1, 18});
  b.Op(kResizeNearest, {x, size}, {1, 1, 18, 1});
  const absl::StatusOr<Graph> graph = b.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<float> pixels(14);
  std::iota(pixels.begin(), pixels.end(), 0.f);
  EXPECT_EQ(Answer(*graph, Tensor::FromFloats({1, 1, 14, 1}, pixels))[9], 7);
}

// A cast of a tensor with those parameters to a type; a scale of 0 stands for no parameters.
absl::StatusOr<Graph> CastOf(fb::ElementType from, float scale, int64_t zero_point,
                             fb::ElementType to, float to_scale = 0) {
  ModelBuilder b;
  const int x = b.Input({2}, from);
  const int y = b.Op(kCast, {x}, {2});
  b.graph().tensors[static_cast<size_t>(y)]->type = to;
  const auto quantize = [&](int tensor, float s, int64_t zero) {
    if (s == 0) return;
    auto quantization = std::make_unique<fb::QuantizationT>();
    quantization->scale = {s};
    quantization->zero_point = {zero};
    b.graph().tensors[static_cast<size_t>(tensor)]->quantization = std::move(quantization);
  };
  quantize(x, scale, zero_point);
  quantize(y, to_scale, 0);
  return b.Import();
}

// cast.cc, copyCast: "[](FromT a) { return static_cast<ToT>(a); }" of the stored integers.
TEST(TfLiteCast, StoredIntegersThatStandForOthersAreRefused) {
  constexpr auto kU8 = fb::ElementType_UINT8;
  constexpr auto kF32 = fb::ElementType_FLOAT32;
  const auto refused = HasSubstr("a cast of integers that have a scale or a zero point");
  EXPECT_THAT(std::string(CastOf(kU8, 0.5, 0, kF32).status().message()), refused);
  EXPECT_THAT(std::string(CastOf(kU8, 1, 128, kF32).status().message()), refused);
  // The program rounds to the integers of a result; a cast truncates.
  EXPECT_THAT(std::string(CastOf(kF32, 0, 0, kU8, 1).status().message()), refused);
  // A cast wraps; real values do not.
  EXPECT_THAT(std::string(CastOf(kU8, 1, 0, fb::ElementType_INT8).status().message()), refused);
  EXPECT_TRUE(CastOf(kU8, 1, 0, kF32).ok()) << CastOf(kU8, 1, 0, kF32).status();
  EXPECT_TRUE(CastOf(kU8, 1, 0, kU8, 1).ok());
  EXPECT_TRUE(CastOf(kU8, 0, 0, kF32).ok());
}

}  // namespace
}  // namespace npuc::tflite
