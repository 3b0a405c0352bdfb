#include "compiler_core/frontends/tensorflow/test_util.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/tensorflow/import.h"
#include "compiler_core/ops/op.h"
#include "gtest/gtest.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

fe::tf::AttrValue& NewAttr(fe::tf::GraphDef& graph, absl::string_view name) {
  fe::tf::NodeDef& node = *graph.mutable_node(graph.node_size() - 1);
  fe::tf::AttrEntry& entry = *node.add_attr();
  entry.set_key(std::string(name));
  return *entry.mutable_value();
}

fe::tf::TensorProto& NewConst(GraphDefBuilder& builder, absl::string_view name, int data_type,
                              const Shape& shape) {
  builder.Node(name, "Const").Type("dtype", data_type);
  fe::tf::TensorProto& tensor = *NewAttr(builder.proto(), "value").mutable_tensor();
  tensor.set_dtype(static_cast<fe::tf::DataType>(data_type));
  for (int64_t dim : shape) tensor.mutable_tensor_shape()->add_dim()->set_size(dim);
  return tensor;
}

}  // namespace

GraphDefBuilder::GraphDefBuilder() : proto_(std::make_unique<fe::tf::GraphDef>()) {
  proto_->mutable_versions()->set_producer(27);
}
GraphDefBuilder::~GraphDefBuilder() = default;
GraphDefBuilder::GraphDefBuilder(GraphDefBuilder&&) noexcept = default;

GraphDefBuilder& GraphDefBuilder::Node(absl::string_view name, absl::string_view op,
                                       const std::vector<std::string>& inputs) {
  fe::tf::NodeDef& node = *proto_->add_node();
  node.set_name(std::string(name));
  node.set_op(std::string(op));
  for (const std::string& input : inputs) node.add_input(input);
  return *this;
}
GraphDefBuilder& GraphDefBuilder::Type(absl::string_view attr, int data_type) {
  NewAttr(*proto_, attr).set_type(static_cast<fe::tf::DataType>(data_type));
  return *this;
}
GraphDefBuilder& GraphDefBuilder::Int(absl::string_view attr, int64_t value) {
  NewAttr(*proto_, attr).set_i(value);
  return *this;
}
GraphDefBuilder& GraphDefBuilder::Float(absl::string_view attr, float value) {
  NewAttr(*proto_, attr).set_f(value);
  return *this;
}
GraphDefBuilder& GraphDefBuilder::Bool(absl::string_view attr, bool value) {
  NewAttr(*proto_, attr).set_b(value);
  return *this;
}
GraphDefBuilder& GraphDefBuilder::String(absl::string_view attr, absl::string_view value) {
  NewAttr(*proto_, attr).set_s(std::string(value));
  return *this;
}
GraphDefBuilder& GraphDefBuilder::Ints(absl::string_view attr, const std::vector<int64_t>& values) {
  auto* list = NewAttr(*proto_, attr).mutable_list();
  for (int64_t value : values) list->add_i(value);
  return *this;
}
GraphDefBuilder& GraphDefBuilder::Dims(absl::string_view attr, const std::vector<int64_t>& dims) {
  auto* shape = NewAttr(*proto_, attr).mutable_shape();
  for (int64_t dim : dims) shape->add_dim()->set_size(dim);
  return *this;
}

GraphDefBuilder& GraphDefBuilder::Placeholder(absl::string_view name,
                                              const std::vector<int64_t>& dims, int data_type) {
  return Node(name, "Placeholder").Type("dtype", data_type).Dims("shape", dims);
}
GraphDefBuilder& GraphDefBuilder::Floats(absl::string_view name, const Shape& shape,
                                         const std::vector<float>& values) {
  fe::tf::TensorProto& tensor = NewConst(*this, name, kDtFloat, shape);
  for (float value : values) tensor.add_float_val(value);
  return *this;
}
GraphDefBuilder& GraphDefBuilder::Int32s(absl::string_view name, const Shape& shape,
                                         const std::vector<int32_t>& values) {
  fe::tf::TensorProto& tensor = NewConst(*this, name, kDtInt32, shape);
  for (int32_t value : values) tensor.add_int_val(value);
  return *this;
}
GraphDefBuilder& GraphDefBuilder::Bools(absl::string_view name, const Shape& shape,
                                        const std::vector<bool>& values) {
  fe::tf::TensorProto& tensor = NewConst(*this, name, kDtBool, shape);
  for (bool value : values) tensor.add_bool_val(value);
  return *this;
}

std::string GraphDefBuilder::Bytes() const { return proto_->SerializeAsString(); }

CompileOptions Options(std::vector<InputDecl> inputs, std::vector<std::string> outputs) {
  CompileOptions options;
  options.model_name = "test.pb";
  options.inputs = std::move(inputs);
  options.outputs = std::move(outputs);
  return options;
}

std::string ImportResult::Text() const {
  std::string text;
  for (const Diagnostic& d : diagnostics.list()) {
    absl::StrAppend(&text, IdOf(d.kind), " ", d.ToString(), "\n");
  }
  return text;
}

int ImportResult::CountOf(DiagnosticKind kind) const {
  int count = 0;
  for (const Diagnostic& d : diagnostics.list()) count += d.kind == kind ? 1 : 0;
  return count;
}

ImportResult RunImport(absl::string_view bytes, const CompileOptions& options) {
  ImportResult result;
  result.graph = ImportTensorFlow(bytes, options, result.diagnostics);
  EXPECT_EQ(result.graph.ok(), !result.diagnostics.has_errors());
  return result;
}

std::vector<Tensor> Evaluate(absl::string_view bytes, const CompileOptions& options,
                             const std::vector<std::vector<float>>& inputs) {
  const ImportResult result = RunImport(bytes, options);
  EXPECT_TRUE(result.graph.ok()) << result.Text();
  if (!result.graph.ok()) return {};
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = result.graph->type(result.graph->inputs()[i]);
    tensors.push_back(CastTensor(Tensor::FromFloats(type.shape, inputs[i]), type.dtype));
  }
  absl::StatusOr<std::vector<Tensor>> outputs = RunReference(*result.graph, tensors);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>();
}

Computed Compute(const GraphDefBuilder& b, const Shape& shape, const std::vector<float>& x,
                 const std::string& output) {
  const std::vector<Tensor> outputs = Evaluate(b.Bytes(), Options({{"x", shape}}, {output}), {x});
  if (outputs.empty()) return {};
  return {outputs[0].shape(), outputs[0].ToFloats()};
}

std::string ErrorOf(const GraphDefBuilder& b, const Shape& shape) {
  const ImportResult result = RunImport(b.Bytes(), Options({{"x", shape}}, {"y"}));
  EXPECT_FALSE(result.graph.ok());
  return result.Text();
}

}  // namespace npuc::tf
