#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TEST_UTIL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::fe::tf {
class GraphDef;
}  // namespace npuc::fe::tf

namespace npuc::tf {

// Wire numbers of DataType that tests use.
inline constexpr int kDtFloat = 1;
inline constexpr int kDtDouble = 2;
inline constexpr int kDtInt32 = 3;
inline constexpr int kDtString = 7;
inline constexpr int kDtBool = 10;
inline constexpr int kDtHalf = 19;

// Builds GraphDefs for tests. Node() starts a node; the attribute calls that follow go to it.
class GraphDefBuilder {
 public:
  GraphDefBuilder();
  ~GraphDefBuilder();
  GraphDefBuilder(GraphDefBuilder&&) noexcept;

  GraphDefBuilder& Node(absl::string_view name, absl::string_view op,
                        const std::vector<std::string>& inputs = {});
  GraphDefBuilder& Type(absl::string_view attr, int data_type);
  GraphDefBuilder& Int(absl::string_view attr, int64_t value);
  GraphDefBuilder& Float(absl::string_view attr, float value);
  GraphDefBuilder& Bool(absl::string_view attr, bool value);
  GraphDefBuilder& String(absl::string_view attr, absl::string_view value);
  GraphDefBuilder& Ints(absl::string_view attr, const std::vector<int64_t>& values);
  GraphDefBuilder& Dims(absl::string_view attr, const std::vector<int64_t>& dims);

  // Whole nodes. A Placeholder dimension of -1 is unknown.
  GraphDefBuilder& Placeholder(absl::string_view name, const std::vector<int64_t>& dims,
                               int data_type = kDtFloat);
  GraphDefBuilder& Floats(absl::string_view name, const Shape& shape,
                          const std::vector<float>& values);
  GraphDefBuilder& Int32s(absl::string_view name, const Shape& shape,
                          const std::vector<int32_t>& values);
  GraphDefBuilder& Bools(absl::string_view name, const Shape& shape,
                         const std::vector<bool>& values);

  fe::tf::GraphDef& proto() { return *proto_; }
  std::string Bytes() const;

 private:
  std::unique_ptr<fe::tf::GraphDef> proto_;
};

// Options with the given INPUT_OPS and OUTPUT_OPS; model_name is "test.pb".
CompileOptions Options(std::vector<InputDecl> inputs, std::vector<std::string> outputs);

// Imports and prints each diagnostic's id and text, for matching; ok is whether there was a graph.
struct ImportResult {
  absl::StatusOr<Graph> graph;
  Diagnostics diagnostics;
  // "NPUC1110 test.pb: node ...", a line each.
  std::string Text() const;
  int CountOf(DiagnosticKind kind) const;
};
ImportResult RunImport(absl::string_view bytes, const CompileOptions& options);

// Imports, runs by the operators' reference functions on f32 inputs and gives each output's values;
// an expectation failure and no values where that is impossible.
std::vector<Tensor> Evaluate(absl::string_view bytes, const CompileOptions& options,
                             const std::vector<std::vector<float>>& inputs);

// Node `output` of the graph for input "x" of `shape`, and its shape; empty where Evaluate is.
struct Computed {
  Shape shape;
  std::vector<float> values;
};
Computed Compute(const GraphDefBuilder& b, const Shape& shape, const std::vector<float>& x,
                 const std::string& output = "y");

// What the import of node "y" for input "x" of `shape` reports; an expectation failure where it
// succeeds.
std::string ErrorOf(const GraphDefBuilder& b, const Shape& shape);

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_TEST_UTIL_H_
