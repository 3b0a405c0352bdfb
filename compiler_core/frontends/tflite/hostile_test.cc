// Models that lie: every index, size and parameter that a file states wrongly is a diagnostic.
#include <functional>
#include <memory>
#include <string>

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

// The diagnostics of the small model after a change; "" where it imports.
std::string Refusal(const std::function<void(fb::ModelT&)>& change) {
  fb::ModelT model = SmallModel();
  change(model);
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph = ImportTfLite(BytesOf(model), Options(), diagnostics);
  EXPECT_EQ(graph.ok(), !diagnostics.has_errors());
  EXPECT_FALSE(absl::IsInternal(graph.status())) << graph.status();
  std::string text;
  for (const Diagnostic& d : diagnostics.list()) text += d.ToString() + "\n";
  return text;
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
              HasSubstr("the model's outputs name tensor 7"));
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
              HasSubstr("(WHILE): operator 0 of the file is not supported: from 'x', 'c' to 'y'"));
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
