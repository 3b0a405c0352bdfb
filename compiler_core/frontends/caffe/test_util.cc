#include "compiler_core/frontends/caffe/test_util.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/caffe/import.h"
#include "compiler_core/ops/op.h"
#include "gtest/gtest.h"

namespace npuc::caffe {
namespace {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string FloatBytes(float value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::string BytesField(uint32_t number, const std::string& bytes) {
  return absl::StrCat(Varint(number << 3 | 2), Varint(bytes.size()), bytes);
}
std::string IntField(uint32_t number, uint64_t value) {
  return absl::StrCat(Varint(number << 3), Varint(value));
}
std::string FloatField(uint32_t number, float value) {
  return absl::StrCat(Varint(number << 3 | 5), FloatBytes(value));
}

std::string BlobBytes(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  std::string shape;
  for (const int64_t dim : dims) shape += Varint(static_cast<uint64_t>(dim));
  std::string data;
  for (const float value : values) data += FloatBytes(value);
  return BytesField(7, BytesField(1, shape)) + BytesField(5, data);
}

std::string BlobLayer(const std::string& name, const std::vector<std::string>& blobs) {
  std::string layer = BytesField(1, name);
  for (const std::string& blob : blobs) layer += BytesField(7, blob);
  return BytesField(100, layer);
}

std::string ImportResult::Text() const {
  std::string text;
  for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&text, d.ToString(), "\n");
  return text;
}
int ImportResult::CountOf(DiagnosticKind kind) const {
  int count = 0;
  for (const Diagnostic& d : diagnostics.list()) count += d.kind == kind ? 1 : 0;
  return count;
}

ImportResult RunImport(const std::string& model, const std::optional<std::string>& text,
                       CompileOptions options) {
  options.framework = Framework::kCaffe;
  options.model_name = "net.caffemodel";
  CaffeFiles files{.model = model, .model_name = options.model_name};
  if (text.has_value()) {
    files.text = *text;
    files.text_name = "net.prototxt";
  }
  Diagnostics diagnostics;
  absl::StatusOr<Graph> graph = ImportCaffe(files, options, diagnostics);
  return {std::move(graph), std::move(diagnostics)};
}

std::vector<std::vector<float>> Evaluate(const std::string& model,
                                         const std::optional<std::string>& text,
                                         const std::vector<std::vector<float>>& inputs,
                                         CompileOptions options) {
  const ImportResult result = RunImport(model, text, std::move(options));
  EXPECT_TRUE(result.graph.ok()) << result.Text();
  if (!result.graph.ok()) return {};
  std::vector<Tensor> tensors;
  EXPECT_EQ(result.graph->inputs().size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = result.graph->type(result.graph->inputs()[i]);
    tensors.push_back(Tensor::FromFloats(type.shape, inputs[i]));
  }
  const absl::StatusOr<std::vector<Tensor>> outputs = RunReference(*result.graph, tensors);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<std::vector<float>> values;
  for (size_t i = 0; outputs.ok() && i < outputs->size(); ++i) {
    values.push_back((*outputs)[i].ToFloats());
  }
  return values;
}

}  // namespace npuc::caffe
