// Every case of the shared TensorFlow suite: what imports must compute what TensorFlow computed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/frontends/tensorflow/import.h"
#include "compiler_core/frontends/tensorflow/test_util.h"
#include "compiler_core/ops/op.h"
#include "gtest/gtest.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

namespace fs = std::filesystem;

// The suite's number files: one number, or true/false, a line.
bool ReadNumbers(const fs::path& path, std::vector<float>* values) {
  const std::string text = ReadTestFile(path);
  for (absl::string_view line : absl::StrSplit(text, absl::ByAnyChar("\n, "))) {
    line = absl::StripAsciiWhitespace(line);
    float value = 0;
    if (line.empty()) continue;
    if (absl::EqualsIgnoreCase(line, "true")) {
      value = 1;
    } else if (!absl::EqualsIgnoreCase(line, "false") && !absl::SimpleAtof(line, &value)) {
      return false;
    }
    values->push_back(value);
  }
  return true;
}

struct Case {
  std::string name;
  std::string model;
  CompileOptions options;
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<float>> expected;
  bool constants_are_inputs = false;
};

// Placeholders come with .csv files. Else floating-point Const nodes in_N are inputs, with their
// own values, so that the operators run and do not fold.
void AddInputs(const fs::path& dir, const fe::tf::GraphDef& graph, Case& c) {
  for (const fe::tf::NodeDef& node : graph.node()) {
    const fs::path stem = dir / (node.name() + ".placeholder");
    std::vector<float> values;
    Shape shape;
    if (node.op() == "Placeholder") {
      std::vector<float> dims;
      if (!ReadNumbers(stem.string() + ".csv", &values) ||
          !ReadNumbers(stem.string() + ".shape", &dims)) {
        continue;
      }
      shape.assign(dims.begin(), dims.end());
    } else if (node.op() == "Const" && absl::StartsWith(node.name(), "in_")) {
      for (const fe::tf::AttrEntry& attr : node.attr()) {
        if (attr.key() != "value") continue;
        const int dtype = attr.value().tensor().dtype();
        if (dtype != kDtFloat && dtype != kDtDouble) continue;
        for (const auto& dim : attr.value().tensor().tensor_shape().dim()) {
          shape.push_back(dim.size());
        }
        Case constant;
        constant.options = Options({}, {node.name()});
        for (const Tensor& tensor : Evaluate(graph.SerializeAsString(), constant.options, {})) {
          values = tensor.ToFloats();
        }
      }
    }
    if (values.empty() || static_cast<int64_t>(values.size()) != ElementCount(shape)) continue;
    if (node.op() == "Const") c.constants_are_inputs = true;
    c.options.inputs.push_back({node.name(), shape});
    c.inputs.push_back(std::move(values));
  }
}

void AddOutputs(const fs::path& dir, const fe::tf::GraphDef& graph, Case& c) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (absl::EndsWith(entry.path().string(), ".prediction.csv")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::string name = fs::relative(file, dir).string();
    name.resize(name.size() - std::string(".prediction.csv").size());
    const auto has_node = [&](const std::string& wanted) {
      return std::any_of(graph.node().begin(), graph.node().end(),
                         [&](const fe::tf::NodeDef& node) { return node.name() == wanted; });
    };
    const size_t dot = name.rfind('.');
    if (!has_node(name) && dot != std::string::npos) name[dot] = ':';
    std::vector<float> values;
    ASSERT_TRUE(ReadNumbers(file, &values)) << file;
    c.options.outputs.push_back(name);
    c.expected.push_back(std::move(values));
  }
}

// The suite's files hold eight decimals; kernels of TensorFlow accumulate in f32.
bool IsClose(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= 1e-5 + 2e-5 * std::fabs(expected);
}

std::string Compare(const std::vector<Tensor>& outputs, const Case& c) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<float> got = outputs[i].ToFloats();
    if (got.size() != c.expected[i].size()) {
      return absl::StrCat(c.options.outputs[i], " has ", got.size(), " values, expected ",
                          c.expected[i].size());
    }
    for (size_t k = 0; k < got.size(); ++k) {
      if (!IsClose(got[k], c.expected[i][k])) {
        return absl::StrCat(c.options.outputs[i], "[", k, "] is ", got[k], ", expected ",
                            c.expected[i][k]);
      }
    }
  }
  return "";
}

TEST(SuiteTest, WhatImportsComputesWhatTensorFlowDid) {
  const fs::path suite = SharedFolder() / "suites" / "tf_graphs";
  if (!fs::is_directory(suite)) GTEST_SKIP() << "no shared suite";
  std::vector<fs::path> dirs;
  for (const auto& entry : fs::directory_iterator(suite)) dirs.push_back(entry.path());
  std::sort(dirs.begin(), dirs.end());
  int passed = 0;
  int folded = 0;
  int refused = 0;
  int failed = 0;
  std::map<std::string, int> reasons;
  for (const fs::path& dir : dirs) {
    Case c;
    c.name = dir.filename().string();
    c.model = ReadTestFile((dir / "frozen_model.pb"));
    fe::tf::GraphDef graph;
    ASSERT_TRUE(graph.ParseFromString(c.model)) << dir;
    AddInputs(dir, graph, c);
    AddOutputs(dir, graph, c);
    if (std::getenv("NPUC_SUITE_CASE") != nullptr && c.name != std::getenv("NPUC_SUITE_CASE")) {
      continue;
    }
    c.options.model_name = c.name;
    ImportResult result = RunImport(c.model, c.options);
    if (!result.graph.ok() && c.constants_are_inputs) {
      // A constant that has to be one, such as the value of PadV2, may be among them.
      c.options.inputs.clear();
      c.inputs.clear();
      result = RunImport(c.model, c.options);
      folded += result.graph.ok() ? 1 : 0;
    }
    if (!result.graph.ok()) {
      ++refused;
      for (const Diagnostic& d : result.diagnostics.list()) {
        if (d.severity() != Severity::kError) continue;
        ++reasons[absl::StrCat(IdOf(d.kind), " ", d.op)];
        if (std::getenv("NPUC_SUITE_VERBOSE") != nullptr)
          std::fprintf(stderr, "%s\n", d.ToString().c_str());
      }
      EXPECT_EQ(result.CountOf(DiagnosticKind::kInternalError), 0) << result.Text();
      continue;
    }
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      tensors.push_back(Tensor::FromFloats(c.options.inputs[i].shape, c.inputs[i]));
    }
    const absl::StatusOr<std::vector<Tensor>> outputs = RunReference(*result.graph, tensors);
    const std::string problem =
        outputs.ok() ? Compare(*outputs, c) : std::string(outputs.status().message());
    problem.empty() ? ++passed : ++failed;
    EXPECT_EQ(problem, "") << c.name << "\n" << result.Text();
  }
  for (const auto& [reason, count] : reasons)
    std::fprintf(stderr, "%4d %s\n", count, reason.c_str());
  std::fprintf(stderr,
               "tf_graphs: passed %d (%d of them with in_N as constants), refused %d, failed %d\n",
               passed, folded, refused, failed);
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace npuc::tf
