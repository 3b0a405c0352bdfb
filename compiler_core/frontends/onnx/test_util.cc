#include "compiler_core/frontends/onnx/test_util.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/onnx/import.h"
#include "compiler_core/ops/op.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

fe::onnx::Attribute* AddAttribute(fe::onnx::ModelProto& model, const std::string& name) {
  auto* nodes = model.mutable_graph()->mutable_node();
  fe::onnx::Attribute* attribute = nodes->Mutable(nodes->size() - 1)->add_attribute();
  attribute->set_name(name);
  return attribute;
}

}  // namespace

ModelBuilder::ModelBuilder(int64_t opset) : proto_(std::make_unique<fe::onnx::ModelProto>()) {
  proto_->set_ir_version(8);
  proto_->add_opset_import()->set_version(opset);
  proto_->mutable_graph();
}
ModelBuilder::ModelBuilder(const ModelBuilder& other)
    : proto_(std::make_unique<fe::onnx::ModelProto>(*other.proto_)) {}
ModelBuilder& ModelBuilder::operator=(const ModelBuilder& other) {
  *proto_ = *other.proto_;
  return *this;
}
ModelBuilder::~ModelBuilder() = default;

ModelBuilder& ModelBuilder::Input(const std::string& name, const std::vector<int64_t>& dims,
                                  int data_type) {
  fe::onnx::ValueInfo* info = proto_->mutable_graph()->add_input();
  info->set_name(name);
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(data_type);
  type->mutable_shape();
  for (const int64_t dim : dims) {
    auto* added = type->mutable_shape()->add_dim();
    if (dim >= 0) added->set_dim_value(dim);
    if (dim < 0) added->set_dim_param("n");
  }
  return *this;
}
ModelBuilder& ModelBuilder::Output(const std::string& name) {
  proto_->mutable_graph()->add_output()->set_name(name);
  return *this;
}
ModelBuilder& ModelBuilder::Node(const std::string& op, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  fe::onnx::NodeProto* node = proto_->mutable_graph()->add_node();
  node->set_op_type(op);
  for (const std::string& name : inputs) node->add_input(name);
  for (const std::string& name : outputs) node->add_output(name);
  return *this;
}
ModelBuilder& ModelBuilder::Int(const std::string& name, int64_t value) {
  AddAttribute(*proto_, name)->set_i(value);
  return *this;
}
ModelBuilder& ModelBuilder::Float(const std::string& name, float value) {
  AddAttribute(*proto_, name)->set_f(value);
  return *this;
}
ModelBuilder& ModelBuilder::String(const std::string& name, const std::string& value) {
  AddAttribute(*proto_, name)->set_s(value);
  return *this;
}
ModelBuilder& ModelBuilder::Ints(const std::string& name, const std::vector<int64_t>& values) {
  fe::onnx::Attribute* attribute = AddAttribute(*proto_, name);
  for (const int64_t value : values) attribute->add_ints(value);
  return *this;
}
ModelBuilder& ModelBuilder::Body(const std::string& name, const ModelBuilder& body) {
  *AddAttribute(*proto_, name)->mutable_g() = body.proto_->graph();
  return *this;
}
ModelBuilder& ModelBuilder::Ref(const std::string& name, const std::string& attribute) {
  AddAttribute(*proto_, name)->set_ref_attr_name(attribute);
  return *this;
}
ModelBuilder& ModelBuilder::Function(const std::string& name, const ModelBuilder& body) {
  fe::onnx::FunctionProto* function = proto_->add_functions();
  function->set_name(name);
  function->set_domain("local");
  for (const auto& input : body.proto_->graph().input()) function->add_input(input.name());
  for (const auto& output : body.proto_->graph().output()) function->add_output(output.name());
  *function->mutable_node() = body.proto_->graph().node();
  *function->mutable_opset_import() = body.proto_->opset_import();
  return *this;
}
ModelBuilder& ModelBuilder::Domain(const std::string& name) {
  auto* nodes = proto_->mutable_graph()->mutable_node();
  nodes->Mutable(nodes->size() - 1)->set_domain(name);
  return *this;
}
ModelBuilder& ModelBuilder::Floats(const std::string& name, const Shape& shape,
                                   const std::vector<float>& values) {
  fe::onnx::TensorProto* tensor = proto_->mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(fe::onnx::TensorProto::FLOAT);
  for (const int64_t dim : shape) tensor->add_dims(dim);
  for (const float value : values) tensor->add_float_data(value);
  return *this;
}
ModelBuilder& ModelBuilder::Int64s(const std::string& name, const std::vector<int64_t>& values) {
  fe::onnx::TensorProto* tensor = proto_->mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(fe::onnx::TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor->add_int64_data(value);
  return *this;
}
ModelBuilder& ModelBuilder::Bool(const std::string& name, bool value) {
  fe::onnx::TensorProto* tensor = proto_->mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(fe::onnx::TensorProto::BOOL);
  tensor->add_int32_data(value ? 1 : 0);
  return *this;
}
std::string ModelBuilder::Bytes() const { return proto_->SerializeAsString(); }

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

ImportResult RunImport(const std::string& bytes, const CompileOptions& options,
                       absl::string_view plugins) {
  Diagnostics diagnostics;
  CompileOptions named = options;
  named.framework = Framework::kOnnx;
  if (named.model_name.empty()) named.model_name = "test.onnx";
  std::vector<std::shared_ptr<const frontend::PluginOp>> ops;
  if (!plugins.empty() && !frontend::ReadPluginFile(plugins, "ops.yaml", ops, diagnostics)) {
    return {diagnostics.ToStatus(), std::move(diagnostics)};
  }
  const auto declared =
      frontend::Plugins::For("ONNX", std::move(ops), ImportedOnnxOps(), diagnostics);
  absl::StatusOr<Graph> graph = ImportOnnx(bytes, named, diagnostics, {}, declared);
  return {std::move(graph), std::move(diagnostics)};
}

std::vector<Tensor> Evaluate(const std::string& bytes,
                             const std::vector<std::vector<float>>& inputs) {
  const ImportResult result = RunImport(bytes);
  EXPECT_TRUE(result.graph.ok()) << result.Text();
  if (!result.graph.ok()) return {};
  std::vector<Tensor> tensors;
  EXPECT_EQ(result.graph->inputs().size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = result.graph->type(result.graph->inputs()[i]);
    tensors.push_back(CastTensor(Tensor::FromFloats(type.shape, inputs[i]), type.dtype));
  }
  absl::StatusOr<std::vector<Tensor>> outputs = RunReference(*result.graph, tensors);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>();
}

}  // namespace npuc::onnx
