#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_TEST_UTIL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::caffe {

// Fields of protobuf's binary form.
std::string BytesField(uint32_t number, const std::string& bytes);
std::string IntField(uint32_t number, uint64_t value);
std::string FloatField(uint32_t number, float value);
// A BlobProto of today's form.
std::string BlobBytes(const std::vector<int64_t>& dims, const std::vector<float>& values);
// A layer that has a name and blobs alone, as a .prototxt needs it.
std::string BlobLayer(const std::string& name, const std::vector<std::string>& blobs);

struct ImportResult {
  absl::StatusOr<Graph> graph;
  Diagnostics diagnostics;
  std::string Text() const;  // a diagnostic a line
  int CountOf(DiagnosticKind kind) const;
};
ImportResult RunImport(const std::string& model, const std::optional<std::string>& text,
                       CompileOptions options = {});
// The outputs on inputs of these elements, in the graph's order.
std::vector<std::vector<float>> Evaluate(const std::string& model,
                                         const std::optional<std::string>& text,
                                         const std::vector<std::vector<float>>& inputs,
                                         CompileOptions options = {});

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_TEST_UTIL_H_
