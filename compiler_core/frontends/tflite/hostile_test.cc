// Models that lie: every index, size and parameter that a file states wrongly is a diagnostic.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/frontends/tflite/import.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc {
namespace {

namespace fb = ::npuc::fe::tflite;
using ::testing::HasSubstr;

std::unique_ptr<fb::TensorInfoT> MakeTensor(const std::string& name, fb::ElementType type,
                                            uint32_t buffer, float scale) {
  auto tensor = std::make_unique<fb::TensorInfoT>();
  tensor->name = name;
  tensor->type = type;
  tensor->shape = {2, 2};
  tensor->buffer = buffer;
  if (scale > 0) {
    tensor->quantization = std::make_unique<fb::QuantizationT>();
    tensor->quantization->scale = {scale};
    tensor->quantization->zero_point = {1};
  }
  return tensor;
}

// x + c = y, all int8 [2,2].
fb::ModelT SmallModel() {
  fb::ModelT model;
  model.version = 3;
  auto code = std::make_unique<fb::OperatorCodeT>();
  code->builtin_code = 0;  // ADD
  model.operator_codes.push_back(std::move(code));
  model.buffers.push_back(std::make_unique<fb::BufferT>());
  auto data = std::make_unique<fb::BufferT>();
  data->data = {1, 2, 3, 4};
  model.buffers.push_back(std::move(data));
  auto graph = std::make_unique<fb::SubGraphT>();
  graph->tensors.push_back(MakeTensor("x", fb::ElementType_INT8, 0, 0.5f));
  graph->tensors.push_back(MakeTensor("c", fb::ElementType_INT8, 1, 0.25f));
  graph->tensors.push_back(MakeTensor("y", fb::ElementType_INT8, 0, 1.0f));
  auto op = std::make_unique<fb::OperatorT>();
  op->inputs = {0, 1};
  op->outputs = {2};
  op->options.Set(fb::AddOptionsT());
  graph->operators.push_back(std::move(op));
  graph->inputs = {0};
  graph->outputs = {2};
  model.subgraphs.push_back(std::move(graph));
  return model;
}

std::string BytesOf(const fb::ModelT& model) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Model::Pack(builder, &model), "TFL3");
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

CompileOptions Options() {
  CompileOptions options;
  options.model_name = "m.tflite";
  return options;
}

// The diagnostics of a model; "" where it imports.
std::string RefusalOf(const fb::ModelT& model) {
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph = ImportTfLite(BytesOf(model), Options(), diagnostics);
  EXPECT_EQ(graph.ok(), !diagnostics.has_errors());
  EXPECT_FALSE(absl::IsInternal(graph.status())) << graph.status();
  std::string text;
  for (const Diagnostic& d : diagnostics.list()) text += d.ToString() + "\n";
  return text;
}

// The diagnostics of the small model after a change.
std::string Refusal(const std::function<void(fb::ModelT&)>& change) {
  fb::ModelT model = SmallModel();
  change(model);
  return RefusalOf(model);
}

TEST(TfLiteImport, SmallModelComputesInStepsOfItsScales) {
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph = ImportTfLite(BytesOf(SmallModel()), Options(), diagnostics);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->inputs().size(), 1u);
  EXPECT_EQ(TypeToString(graph->type(graph->inputs()[0])), "f32[2,2]");
  const auto outputs = RunReference(*graph, {Tensor::FromFloats({2, 2}, {0, 1.2f, -70, 70})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  // x in halves: 0, 1, -64.5 (the least), 63 (the greatest); c: 0, 0.25, 0.5, 0.75; y in ones.
  EXPECT_THAT((*outputs)[0].ToFloats(), testing::ElementsAre(0, 1, -64, 64));
}

// The small model with the bytes of c at an offset behind the FlatBuffer.
std::string ModelWithOuterData(uint64_t offset_after_end, uint64_t size) {
  fb::ModelT model = SmallModel();
  model.buffers[1]->data.clear();
  model.buffers[1]->offset = model.buffers[1]->size = 2;  // so that the FlatBuffer has its size
  model.buffers[1]->offset = BytesOf(model).size() + offset_after_end;
  model.buffers[1]->size = size;
  return BytesOf(model) + std::string("\0\1\2\3\4", 5);
}

TEST(TfLiteImport, DataMayLieBehindTheFlatBuffer) {
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph =
      ImportTfLite(ModelWithOuterData(1, 4), Options(), diagnostics);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto outputs = RunReference(*graph, {Tensor::FromFloats({2, 2}, {0, 1.2f, -70, 70})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].ToFloats(), testing::ElementsAre(0, 1, -64, 64));
}

TEST(TfLiteImport, DataOutsideOfTheFileIsRefused) {
  const auto refusal = [](uint64_t offset_after_end, uint64_t size) {
    Diagnostics diagnostics;
    EXPECT_FALSE(
        ImportTfLite(ModelWithOuterData(offset_after_end, size), Options(), diagnostics).ok());
    return diagnostics.list().size() == 1 ? diagnostics.list()[0].ToString() : "";
  };
  EXPECT_THAT(refusal(2, 4), HasSubstr("tensor 1 'c': its data has 4 bytes at offset "));
  EXPECT_THAT(refusal(6, 4), HasSubstr("; the file has "));
  EXPECT_THAT(refusal(1, ~uint64_t{0}), HasSubstr("its data has 18446744073709551615 bytes"));
  EXPECT_THAT(refusal(uint64_t{0} - 1024, 4), HasSubstr("at offset 18446744073709"));
  EXPECT_THAT(refusal(1, 3), HasSubstr("its data has 3 bytes; i8[2,2] takes 4"));
}

TEST(TfLiteImport, WrongIndicesAreNamed) {
  EXPECT_EQ(Refusal([](fb::ModelT&) {}), "");
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.subgraphs[0]->operators[0]->inputs[1] = 3; }),
              HasSubstr("name tensor 3; the model has 3"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.subgraphs[0]->operators[0]->outputs[0] = -1; }),
              HasSubstr("name tensor -1"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.subgraphs[0]->operators[0]->opcode_index = 1; }),
              HasSubstr("operator code 1 of 1"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.subgraphs[0]->tensors[1]->buffer = 9; }),
              HasSubstr("buffer 9 of 2"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.subgraphs[0]->outputs = {7}; }),
              HasSubstr("the graph's outputs name tensor 7"));
}

TEST(TfLiteImport, BlockwiseQuantizationIsNamed) {
  EXPECT_THAT(Refusal([](fb::ModelT& m) {
                fb::TensorInfoT& c = *m.subgraphs[0]->tensors[1];
                c.type = fb::ElementType_INT4;
                c.quantization->scale.clear();
                fb::BlockwiseQuantizationT blocks;
                blocks.block_size = 32;
                c.quantization->details.Set(blocks);
              }),
              AllOf(HasSubstr("'c': it is quantized blockwise, with a scale for each 32 values"),
                    HasSubstr("with one scale for a tensor or a channel")));
}

TEST(TfLiteImport, ConstantsOfTypesThatNpucLacksAreNamed) {
  EXPECT_THAT(
      Refusal([](fb::ModelT& m) { m.subgraphs[0]->tensors[1]->type = fb::ElementType_INT4; }),
      HasSubstr("'c' has type INT4, which npuc does not compute"));
}

// An operator that has a fused activation, its options and the shapes of its operands: the first is
// the model's input, the others are constants.
struct Activating {
  const char* name;
  int code;
  std::function<void(fb::OperatorT&, fb::Activation)> set;
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
  bool knows_tanh = false;
};

template <typename T>
std::function<void(fb::OperatorT&, fb::Activation)> Setter(T options) {
  return [options](fb::OperatorT& op, fb::Activation activation) {
    T set = options;
    set.activation = activation;
    op.options.Set(std::move(set));
  };
}

template <typename T>
T WithWindow() {
  T options;
  options.stride_w = options.stride_h = 1;
  options.padding = fb::Padding_VALID;
  return options;
}

std::vector<Activating> ActivatingOperators() {
  const std::vector<int> image = {1, 4, 4, 2};
  fb::Pool2DOptionsT pool = WithWindow<fb::Pool2DOptionsT>();
  pool.filter_w = pool.filter_h = 2;
  fb::DepthwiseConv2DOptionsT depthwise = WithWindow<fb::DepthwiseConv2DOptionsT>();
  depthwise.depth_multiplier = 1;
  fb::ConcatenationOptionsT concat;
  concat.axis = 3;
  return {
      {"ADD", 0, Setter(fb::AddOptionsT()), {image, image}, image},
      {"AVERAGE_POOL_2D", 1, Setter(pool), {image}, {1, 3, 3, 2}},
      {"CONCATENATION", 2, Setter(concat), {image, image}, {1, 4, 4, 4}},
      {"CONV_2D", 3, Setter(WithWindow<fb::Conv2DOptionsT>()), {image, {3, 1, 1, 2}}, {1, 4, 4, 3}},
      {"DEPTHWISE_CONV_2D", 4, Setter(depthwise), {image, {1, 1, 1, 2}}, image},
      {"FULLY_CONNECTED", 9, Setter(fb::FullyConnectedOptionsT()), {{2, 4}, {3, 4}}, {2, 3}},
      {"L2_NORMALIZATION", 11, Setter(fb::L2NormOptionsT()), {{2, 4}}, {2, 4}},
      {"MAX_POOL_2D", 17, Setter(pool), {image}, {1, 3, 3, 2}},
      {"MUL", 18, Setter(fb::MulOptionsT()), {image, image}, image},
      {"SUB", 41, Setter(fb::SubOptionsT()), {image, image}, image},
      {"DIV", 42, Setter(fb::DivOptionsT()), {image, image}, image},
      {"UNIDIRECTIONAL_SEQUENCE_RNN",
       35,
       Setter(fb::SequenceRnnOptionsT()),
       {{1, 3, 4}, {5, 4}, {5, 5}, {5}, {1, 5}},
       {1, 3, 5},
       true},
  };
}

// A float model of that operator alone.
fb::ModelT ActivatingModel(const Activating& activating, fb::Activation activation) {
  fb::ModelT model;
  model.version = 3;
  model.operator_codes.push_back(std::make_unique<fb::OperatorCodeT>());
  model.operator_codes[0]->builtin_code = activating.code;
  model.operator_codes[0]->old_builtin_code = static_cast<int8_t>(activating.code);
  model.buffers.push_back(std::make_unique<fb::BufferT>());
  model.subgraphs.push_back(std::make_unique<fb::SubGraphT>());
  fb::SubGraphT& graph = *model.subgraphs[0];
  auto op = std::make_unique<fb::OperatorT>();
  const auto add = [&](const std::string& name, const std::vector<int>& shape, uint32_t buffer) {
    auto tensor = MakeTensor(name, fb::ElementType_FLOAT32, buffer, 0);
    tensor->shape = shape;
    graph.tensors.push_back(std::move(tensor));
    return static_cast<int>(graph.tensors.size()) - 1;
  };
  for (const std::vector<int>& shape : activating.operands) {
    uint32_t buffer = 0;
    if (!op->inputs.empty()) {
      size_t count = sizeof(float);
      for (const int dim : shape) count *= static_cast<size_t>(dim);
      auto data = std::make_unique<fb::BufferT>();
      data->data.assign(count, 0x3f);  // each float 0.747
      model.buffers.push_back(std::move(data));
      buffer = static_cast<uint32_t>(model.buffers.size()) - 1;
    }
    op->inputs.push_back(add("t", shape, buffer));
  }
  op->outputs = {add("y", activating.result, 0)};
  activating.set(*op, activation);
  graph.operators.push_back(std::move(op));
  graph.inputs = {0};
  graph.outputs = {static_cast<int>(graph.tensors.size()) - 1};
  return model;
}

// Each activation has its operators in the graph, or is refused: none is dropped.
TEST(TfLiteImport, EachFusedActivationHasAnEffectOrIsRefused) {
  const std::vector<std::vector<Op>> operators = {
      {}, {Op::kRelu}, {Op::kMaximum, Op::kMinimum}, {Op::kRelu6}, {Op::kTanh}};
  for (const Activating& activating : ActivatingOperators()) {
    for (int activation = 0; activation <= 6; ++activation) {
      SCOPED_TRACE(std::string(activating.name) + ", activation " + std::to_string(activation));
      Diagnostics diagnostics;
      const absl::StatusOr<Graph> graph = ImportTfLite(
          BytesOf(ActivatingModel(activating, static_cast<fb::Activation>(activation))), Options(),
          diagnostics);
      const bool is_known = activation < 4 || (activation == 4 && activating.knows_tanh);
      ASSERT_EQ(graph.ok(), is_known) << graph.status();
      if (!is_known) {
        EXPECT_THAT(std::string(graph.status().message()), HasSubstr("fused activation"));
        continue;
      }
      std::vector<Op> found;
      for (const Node& node : graph->nodes()) found.push_back(node.op);
      for (const Op op : operators[static_cast<size_t>(activation)]) {
        EXPECT_THAT(found, testing::Contains(op));
      }
    }
  }
}

// CALL_ONCE sets variables that nothing here reads.
TEST(TfLiteImport, AnOperatorWithoutResultsIsNoError) {
  EXPECT_EQ(Refusal([](fb::ModelT& m) {
              auto code = std::make_unique<fb::OperatorCodeT>();
              code->builtin_code = 129;
              m.operator_codes.push_back(std::move(code));
              auto op = std::make_unique<fb::OperatorT>();
              op->opcode_index = 1;
              m.subgraphs[0]->operators.push_back(std::move(op));
            }),
            "");
}

// TensorFlow Lite Micro's person detection states the weight's dimension for its biases.
TEST(TfLiteImport, TheScalesOfAListRunAlongIt) {
  EXPECT_EQ(Refusal([](fb::ModelT& m) {
              fb::TensorInfoT& c = *m.subgraphs[0]->tensors[1];
              c.shape = {4};
              c.quantization->scale = {1, 2, 3, 4};
              c.quantization->zero_point = {0, 0, 0, 0};
              c.quantization->quantized_dimension = 3;
              m.subgraphs[0]->tensors[0]->shape = {1, 4};
              m.subgraphs[0]->tensors[2]->shape = {1, 4};
            }),
            "");
}

TEST(TfLiteImport, WrongTensorsAreNamed) {
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.buffers[1]->data.pop_back(); }),
              HasSubstr("its data has 3 bytes; i8[2,2] takes 4"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) {
                m.subgraphs[0]->tensors[1]->shape = {2, -2};
              }),
              HasSubstr("NPUC1108"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) {
                m.subgraphs[0]->tensors[0]->shape = {1 << 20, 1 << 20};
              }),
              HasSubstr("NPUC1108"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) {
                m.subgraphs[0]->tensors[1]->quantization->scale = {1, 2, 3};
                m.subgraphs[0]->tensors[1]->quantization->quantized_dimension = 1;
              }),
              HasSubstr("3 scales along dimension 1"));
  EXPECT_THAT(
      Refusal([](fb::ModelT& m) { m.subgraphs[0]->tensors[1]->quantization->zero_point = {300}; }),
      HasSubstr("zero point 300"));
  EXPECT_THAT(
      Refusal([](fb::ModelT& m) { m.subgraphs[0]->tensors[1]->quantization->scale = {-1}; }),
      HasSubstr("scale -1"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.subgraphs[0]->tensors[2]->shape = {4}; }),
              HasSubstr("has shape [2,2], but the model states [4]"));
}

TEST(TfLiteImport, WhatIsNotSupportedIsRefusedByName) {
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.operator_codes[0]->builtin_code = 119; }),
              HasSubstr("'y' (WHILE): its options are missing"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.operator_codes[0]->builtin_code = 121; }),
              HasSubstr("'y' (NON_MAX_SUPPRESSION_V5): the operator is not supported"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.operator_codes[0]->builtin_code = 4000; }),
              HasSubstr("builtin operator 4000"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) {
                m.operator_codes[0]->builtin_code = 32;
                m.operator_codes[0]->custom_code = "ADD";
              }),
              HasSubstr("NPUC1110"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.version = 2; }), HasSubstr("schema version 2"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) { m.subgraphs.clear(); }), HasSubstr("no subgraph"));
  EXPECT_THAT(Refusal([](fb::ModelT& m) {
                m.subgraphs[0]->operators[0]->inputs = {0, 2};
              }),
              HasSubstr("no result of an earlier operator"));
}

std::unique_ptr<fb::TensorInfoT> Plain(const std::string& name, fb::ElementType type,
                                       std::vector<int> shape, uint32_t buffer = 0) {
  auto tensor = std::make_unique<fb::TensorInfoT>();
  tensor->name = name;
  tensor->type = type;
  tensor->shape = std::move(shape);
  tensor->buffer = buffer;
  return tensor;
}

std::unique_ptr<fb::OperatorT> Call(uint32_t code, std::vector<int> inputs,
                                    std::vector<int> outputs) {
  auto op = std::make_unique<fb::OperatorT>();
  op->opcode_index = code;
  op->inputs = std::move(inputs);
  op->outputs = std::move(outputs);
  return op;
}

// for (i = 0; i < 3; ++i) { list[i] = sum = sum + sum; }, from the sum x; its results are the last
// sum and the list as a tensor.
fb::ModelT LoopModel() {
  constexpr auto kF32 = fb::ElementType_FLOAT32;
  constexpr auto kI32 = fb::ElementType_INT32;
  fb::ModelT model;
  model.version = 3;
  for (const int code : {119, 58, 0}) {  // WHILE, LESS, ADD
    model.operator_codes.push_back(std::make_unique<fb::OperatorCodeT>());
    model.operator_codes.back()->builtin_code = code;
  }
  for (const char* name : {"FlexTensorListReserve", "TensorListSetItem", "FlexTensorListStack"}) {
    model.operator_codes.push_back(std::make_unique<fb::OperatorCodeT>());
    model.operator_codes.back()->builtin_code = 32;
    model.operator_codes.back()->custom_code = name;
  }
  for (const uint8_t value : {0, 0, 1, 3}) {  // buffer 0 is empty; then int32 0, 1 and 3
    model.buffers.push_back(std::make_unique<fb::BufferT>());
    if (model.buffers.size() > 1) model.buffers.back()->data = {value, 0, 0, 0};
  }
  for (int i = 0; i < 3; ++i) {
    auto graph = std::make_unique<fb::SubGraphT>();
    auto& t = graph->tensors;
    t.push_back(Plain("i", kI32, {}, i == 0 ? 1 : 0));
    t.push_back(Plain(i == 0 ? "x" : "sum", kF32, {2}));
    t.push_back(Plain("list", fb::ElementType_VARIANT, {}));
    t.push_back(Plain("limit", kI32, {}, i == 2 ? 2 : 3));  // 3; the body's is the step of 1
    graph->inputs = {0, 1, 2};
    model.subgraphs.push_back(std::move(graph));
  }
  fb::SubGraphT& main = *model.subgraphs[0];
  main.inputs = {1};
  main.tensors.push_back(Plain("last_i", kI32, {}));
  main.tensors.push_back(Plain("last", kF32, {2}));
  main.tensors.push_back(Plain("filled", fb::ElementType_VARIANT, {}));
  main.tensors.push_back(Plain("all", kF32, {3, 2}));
  main.operators.push_back(Call(3, {0, 3}, {2}));
  main.operators.push_back(Call(0, {0, 1, 2}, {4, 5, 6}));
  fb::WhileOptionsT loop;
  loop.cond_subgraph_index = 1;
  loop.body_subgraph_index = 2;
  main.operators.back()->options.Set(std::move(loop));
  main.operators.push_back(Call(5, {6, 0}, {7}));
  main.outputs = {5, 7};
  fb::SubGraphT& condition = *model.subgraphs[1];
  condition.tensors.push_back(Plain("goes_on", fb::ElementType_BOOL, {}));
  condition.operators.push_back(Call(1, {0, 3}, {4}));
  condition.outputs = {4};
  fb::SubGraphT& body = *model.subgraphs[2];
  body.tensors.push_back(Plain("doubled", kF32, {2}));
  body.tensors.push_back(Plain("written", fb::ElementType_VARIANT, {}));
  body.tensors.push_back(Plain("next_i", kI32, {}));
  body.operators.push_back(Call(2, {1, 1}, {4}));
  body.operators.push_back(Call(4, {2, 0, 4}, {5}));
  body.operators.push_back(Call(2, {0, 3}, {6}));
  for (const size_t add : {0u, 2u}) body.operators[add]->options.Set(fb::AddOptionsT());
  body.outputs = {6, 4, 5};
  return model;
}

std::string LoopRefusal(const std::function<void(fb::ModelT&)>& change) {
  fb::ModelT model = LoopModel();
  change(model);
  return RefusalOf(model);
}

TEST(TfLiteLoops, ALoopRunsAsOftenAsItsConditionSays) {
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph = ImportTfLite(BytesOf(LoopModel()), Options(), diagnostics);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto outputs = RunReference(*graph, {Tensor::FromFloats({2}, {1, -3})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].ToFloats(), testing::ElementsAre(8, -24));
  EXPECT_THAT((*outputs)[1].ToFloats(), testing::ElementsAre(2, -6, 4, -12, 8, -24));
}

TEST(TfLiteLoops, WhatCannotBeUnrolledIsRefused) {
  EXPECT_EQ(LoopRefusal([](fb::ModelT&) {}), "");
  // A step of 0: the loop never ends.
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) { m.subgraphs[2]->tensors[3]->buffer = 1; }),
              HasSubstr("the loop takes more than 4096 turns"));
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) {
                m.subgraphs[0]->tensors[1] = Plain("weights", fb::ElementType_RESOURCE, {});
                m.subgraphs[0]->inputs.clear();
              }),
              HasSubstr("passes variable 'weights' to a graph of its own"));
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) {
                m.subgraphs[2]->outputs = {6, 4};
              }),
              HasSubstr("subgraph 2 takes 3 tensors and gives 2"));
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) {
                m.subgraphs[0]->operators[1]->options.AsWhileOptions()->body_subgraph_index = 3;
              }),
              HasSubstr("it runs subgraph 3 of 3"));
  // A body that runs itself.
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) {
                m.subgraphs[2]->operators.clear();
                m.subgraphs[2]->operators.push_back(Call(0, {0, 1, 2}, {6, 4, 5}));
                fb::WhileOptionsT loop;
                loop.cond_subgraph_index = 1;
                loop.body_subgraph_index = 2;
                m.subgraphs[2]->operators[0]->options.Set(std::move(loop));
              }),
              HasSubstr("nested more than 8 deep"));
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) {
                m.subgraphs[1]->tensors[3] = Plain("limit", fb::ElementType_FLOAT32, {2}, 0);
                m.subgraphs[1]->operators[0]->inputs = {1, 1};
              }),
              HasSubstr("depends on a model input"));
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) { m.operator_codes[4]->custom_code = "Unknown"; }),
              HasSubstr("not supported inside of the operator that gives 'last_i'"));
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) { m.subgraphs[0]->outputs = {6}; }),
              HasSubstr("is a list of tensors"));
  EXPECT_THAT(LoopRefusal([](fb::ModelT& m) {
                m.subgraphs[0]->tensors[3]->buffer = 2;  // a list of one element
              }),
              HasSubstr("element 1 of a list of 1"));
}

// The small model's operator as a composite of it: subgraph 1 is what subgraph 0 was.
fb::ModelT CompositeModel() {
  fb::ModelT model = SmallModel();
  model.subgraphs.push_back(std::make_unique<fb::SubGraphT>(*model.subgraphs[0]));
  model.operator_codes.push_back(std::make_unique<fb::OperatorCodeT>());
  model.operator_codes[1]->builtin_code = 206;
  model.subgraphs[1]->inputs = {0, 1};
  fb::OperatorT& op = *model.subgraphs[0]->operators[0];
  op.opcode_index = 1;
  op.options.Reset();
  fb::StableHloCompositeOptionsT options;
  options.name = "my.sum";
  options.decomposition_subgraph_index = 1;
  op.options_2.Set(std::move(options));
  return model;
}

std::string CompositeRefusal(const std::function<void(fb::ModelT&)>& change) {
  fb::ModelT model = CompositeModel();
  change(model);
  return RefusalOf(model);
}

TEST(TfLiteComposites, AreComputedByTheirDecomposition) {
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph =
      ImportTfLite(BytesOf(CompositeModel()), Options(), diagnostics);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto outputs = RunReference(*graph, {Tensor::FromFloats({2, 2}, {0, 1.2f, -70, 70})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].ToFloats(), testing::ElementsAre(0, 1, -64, 64));
}

TEST(TfLiteComposites, WithoutASoundDecompositionAreRefused) {
  const auto options = [](fb::ModelT& m, size_t graph) -> fb::StableHloCompositeOptionsT& {
    return *m.subgraphs[graph]->operators[0]->options_2.AsStableHloCompositeOptions();
  };
  for (const int missing : {0, -1}) {
    EXPECT_THAT(
        CompositeRefusal([&](auto& m) { options(m, 0).decomposition_subgraph_index = missing; }),
        HasSubstr("composite 'my.sum' names no subgraph that computes it"));
  }
  EXPECT_THAT(CompositeRefusal([&](auto& m) { options(m, 0).decomposition_subgraph_index = 2; }),
              HasSubstr("it runs subgraph 2 of 2"));
  EXPECT_THAT(CompositeRefusal([](auto& m) { m.subgraphs[1]->inputs = {0}; }),
              HasSubstr("subgraph 1 takes 1 tensors and gives 1; the operator passes 2"));
  // A decomposition that runs itself.
  EXPECT_THAT(CompositeRefusal(
                  [](auto& m) { *m.subgraphs[1]->operators[0] = *m.subgraphs[0]->operators[0]; }),
              HasSubstr("nested more than 8 deep"));
  EXPECT_THAT(CompositeRefusal([](auto& m) { m.operator_codes[0]->builtin_code = 149; }),
              HasSubstr("not supported inside of the operator that gives 'y'"));
}

// Six graphs, each of which runs the next one 16 times, one after another.
TEST(TfLiteComposites, ThatGrowExponentiallyAreRefused) {
  EXPECT_THAT(CompositeRefusal([](fb::ModelT& m) {
                const fb::OperatorT call = *m.subgraphs[0]->operators[0];
                for (int depth = 1; depth <= 6; ++depth) {
                  m.subgraphs.insert(m.subgraphs.end() - 1,
                                     std::make_unique<fb::SubGraphT>(*m.subgraphs.back()));
                  fb::SubGraphT& graph = *m.subgraphs[static_cast<size_t>(depth)];
                  graph.operators.clear();
                  for (int run = 0; run < 16; ++run) {
                    graph.operators.push_back(std::make_unique<fb::OperatorT>(call));
                    fb::OperatorT& op = *graph.operators.back();
                    op.options_2.AsStableHloCompositeOptions()->decomposition_subgraph_index =
                        depth + 1;
                    if (run == 0) continue;
                    op.inputs[0] = static_cast<int>(graph.tensors.size()) - 1;
                    graph.tensors.push_back(std::make_unique<fb::TensorInfoT>(*graph.tensors[2]));
                    op.outputs[0] = static_cast<int>(graph.tensors.size()) - 1;
                  }
                  graph.outputs = {static_cast<int>(graph.tensors.size()) - 1};
                }
              }),
              HasSubstr("unroll to more than"));
}

// [[0,1,0,2], [0,0,0,0]]: rows dense, columns by their indices.
fb::ModelT SparseModel() {
  fb::ModelT model = SmallModel();
  fb::TensorInfoT& c = *model.subgraphs[0]->tensors[1];
  c.shape = {2, 4};
  model.subgraphs[0]->tensors[0]->shape = model.subgraphs[0]->tensors[2]->shape = {2, 4};
  model.buffers[1]->data = {1, 2};
  c.quantization->zero_point = {0};
  c.quantization->scale = {1};
  c.sparsity = std::make_unique<fb::SparsityT>();
  c.sparsity->traversal_order = {0, 1};
  c.sparsity->dimensions.push_back(std::make_unique<fb::SparseDimensionT>());
  c.sparsity->dimensions[0]->dense_size = 2;
  auto columns = std::make_unique<fb::SparseDimensionT>();
  columns->kind = fb::DimensionKind_SPARSE_CSR;
  fb::Uint8ValuesT segments, indices;
  segments.values = {0, 2, 2};
  indices.values = {1, 3};
  columns->segments.Set(std::move(segments));
  columns->indices.Set(std::move(indices));
  c.sparsity->dimensions.push_back(std::move(columns));
  return model;
}

std::string SparseRefusal(const std::function<void(fb::SparsityT&)>& change) {
  fb::ModelT model = SparseModel();
  change(*model.subgraphs[0]->tensors[1]->sparsity);
  Diagnostics diagnostics;
  (void)ImportTfLite(BytesOf(model), Options(), diagnostics);
  return diagnostics.list().empty() ? "" : diagnostics.list()[0].ToString();
}

TEST(TfLiteSparse, ConstantsAreUnpacked) {
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph = ImportTfLite(BytesOf(SparseModel()), Options(), diagnostics);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto outputs = RunReference(*graph, {Tensor::FromFloats({2, 4}, {0, 0, 0, 0, 0, 0, 0, 0})});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT((*outputs)[0].ToFloats(), testing::ElementsAre(0, 1, 0, 2, 0, 0, 0, 0));
}

TEST(TfLiteSparse, ListsThatDoNotFitAreRefused) {
  EXPECT_EQ(SparseRefusal([](fb::SparsityT&) {}), "");
  EXPECT_THAT(SparseRefusal([](fb::SparsityT& s) {
                s.traversal_order = {0, 0};
              }),
              HasSubstr("order of traversal"));
  EXPECT_THAT(SparseRefusal([](fb::SparsityT& s) { s.traversal_order = {0}; }),
              HasSubstr("does not describe each dimension"));
  EXPECT_THAT(SparseRefusal([](fb::SparsityT& s) { s.dimensions[0]->dense_size = 3; }),
              HasSubstr("dimension 0 has 3 blocks of 1"));
  EXPECT_THAT(SparseRefusal([](fb::SparsityT& s) {
                s.dimensions[1]->indices.AsUint8Values()->values = {1, 4};
              }),
              HasSubstr("index 4 of a sparse dimension of 4"));
  EXPECT_THAT(SparseRefusal([](fb::SparsityT& s) {
                s.dimensions[1]->segments.AsUint8Values()->values = {0, 2, 1};
              }),
              HasSubstr("segments of a sparse dimension"));
  EXPECT_THAT(SparseRefusal([](fb::SparsityT& s) {
                s.block_map = {0, 1, 1};
              }),
              HasSubstr("does not describe each dimension"));
}

TEST(TfLiteImport, AnyTruncationIsRefused) {
  const std::string bytes = BytesOf(SmallModel());
  for (size_t size = 0; size < bytes.size(); ++size) {
    Diagnostics diagnostics;
    const absl::StatusOr<Graph> graph = ImportTfLite(bytes.substr(0, size), Options(), diagnostics);
    EXPECT_FALSE(absl::IsInternal(graph.status())) << size;
    EXPECT_EQ(graph.ok(), !diagnostics.has_errors()) << size;
  }
}

}  // namespace
}  // namespace npuc
