#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_TEST_UTIL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::fe::onnx {
class ModelProto;
}  // namespace npuc::fe::onnx

namespace npuc::onnx {

// Builds models for tests. Node() starts a node; the attribute calls that follow go to it.
class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 18);
  ModelBuilder(const ModelBuilder& other);
  ModelBuilder& operator=(const ModelBuilder& other);
  ~ModelBuilder();

  // A dimension of -1 is unknown. data_type: ONNX's wire number, 1 is FLOAT.
  ModelBuilder& Input(const std::string& name, const std::vector<int64_t>& dims, int data_type = 1);
  ModelBuilder& Output(const std::string& name);
  ModelBuilder& Node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs);
  ModelBuilder& Int(const std::string& name, int64_t value);
  ModelBuilder& Float(const std::string& name, float value);
  ModelBuilder& String(const std::string& name, const std::string& value);
  ModelBuilder& Ints(const std::string& name, const std::vector<int64_t>& values);
  // An attribute that holds the graph of another model.
  ModelBuilder& Body(const std::string& name, const ModelBuilder& body);
  // The attribute takes its value from the call of the function that the node is in.
  ModelBuilder& Ref(const std::string& name, const std::string& attribute);
  // A local function of domain "local", made of another model's graph.
  ModelBuilder& Function(const std::string& name, const ModelBuilder& body);
  ModelBuilder& Domain(const std::string& name);
  ModelBuilder& Floats(const std::string& name, const Shape& shape,
                       const std::vector<float>& values);
  ModelBuilder& Int64s(const std::string& name, const std::vector<int64_t>& values);
  ModelBuilder& Bool(const std::string& name, bool value);

  fe::onnx::ModelProto& proto() { return *proto_; }
  std::string Bytes() const;

 private:
  std::unique_ptr<fe::onnx::ModelProto> proto_;
};

struct ImportResult {
  absl::StatusOr<Graph> graph;
  Diagnostics diagnostics;
  // A diagnostic a line.
  std::string Text() const;
  int CountOf(DiagnosticKind kind) const;
};
// `plugins`: the text of a file of PLUGINS, or "".
ImportResult RunImport(const std::string& bytes, const CompileOptions& options = {},
                       absl::string_view plugins = "");

// Imports, runs by the operators' reference functions on f32 inputs and gives each output's values;
// an expectation failure and no values where that is impossible.
std::vector<Tensor> Evaluate(const std::string& bytes,
                             const std::vector<std::vector<float>>& inputs);

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_TEST_UTIL_H_
