#include "compiler_core/frontends/mxnet/import.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/common/recurrent_cases_test_util.h"
#include "compiler_core/frontends/mxnet/test_util.h"
#include "compiler_core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::mxnet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;

// A fully connected layer, its activation, and the softmax of a training with its label.
constexpr char kNet[] = R"({"nodes": [
  {"op": "null", "name": "data", "inputs": []},
  {"op": "null", "name": "fc_weight", "inputs": []},
  {"op": "null", "name": "fc_bias", "inputs": []},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2"},
   "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]},
  {"op": "Activation", "name": "act", "attrs": {"act_type": "relu"}, "inputs": [[3, 0, 0]]},
  {"op": "null", "name": "softmax_label", "inputs": []},
  {"op": "SoftmaxOutput", "name": "softmax", "inputs": [[4, 0, 0], [5, 0, 0]]}],
 "arg_nodes": [0, 1, 2, 5], "heads": [[6, 0, 0]],
 "attrs": {"mxnet_version": ["int", 10601]}})";

std::string Params(absl::string_view prefix = "arg:") {
  return ParamsBytes(
      {{absl::StrCat(prefix, "fc_weight"), ArrayBytes(2, {2, 3}, {1, 2, 3, 4, 5, 6})},
       {absl::StrCat(prefix, "fc_bias"), ArrayBytes(2, {2}, {0.5f, -0.5f})}});
}

struct Imported {
  absl::StatusOr<Graph> graph;
  std::string problems;
};

// `plugins`: the text of a file of declarations.
Imported Import(absl::string_view symbol, const std::string& params, CompileOptions options,
                absl::string_view plugins = "") {
  options.model_name = "m-symbol.json";
  const ViewSource source(params);
  Diagnostics diagnostics;
  std::vector<std::shared_ptr<const frontend::PluginOp>> ops;
  if (!plugins.empty()) {
    EXPECT_TRUE(frontend::ReadPluginFile(plugins, "ops.yaml", ops, diagnostics));
  }
  const auto declared =
      frontend::Plugins::For("MXNET", std::move(ops), ImportedMxNetOps(), diagnostics);
  Imported result{ImportMxNet(symbol, "m.params", &source, options, diagnostics, declared), ""};
  EXPECT_EQ(result.graph.ok(), !diagnostics.has_errors());
  for (const Diagnostic& d : diagnostics.list()) {
    absl::StrAppend(&result.problems, d.ToString(), "\n");
  }
  return result;
}

CompileOptions Options(std::vector<std::string> outputs = {}) {
  CompileOptions options;
  options.inputs = {{"data", {1, 3}}};
  options.outputs = std::move(outputs);
  return options;
}

std::string Changed(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kNet, {{from, to}});
  EXPECT_NE(text, kNet) << from;
  return text;
}

std::vector<std::string> OutputNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphOutput& output : graph.outputs()) names.push_back(output.name);
  return names;
}

TEST(MxNetImportTest, DropsTheLabelOfATraining) {
  const Imported net = Import(kNet, Params(), Options());
  ASSERT_TRUE(net.graph.ok()) << net.problems;
  EXPECT_THAT(net.problems, IsEmpty());
  EXPECT_THAT(OutputNames(*net.graph), ElementsAre("softmax"));
  EXPECT_EQ(net.graph->inputs().size(), 1);
}

TEST(MxNetImportTest, TakesNamesOfNodesAndOfTheirResults) {
  EXPECT_TRUE(Import(kNet, Params(), Options({"fc_output", "act"})).graph.ok());
  EXPECT_THAT(Import(kNet, Params(), Options({"fd"})).problems,
              AllOf(HasSubstr("NPUC1117"), HasSubstr("'fc'")));
  EXPECT_THAT(Import(kNet, Params(), Options({"fc_output1"})).problems, HasSubstr("no result 1"));
}

TEST(MxNetImportTest, ReadsTheNamesOfGluon) {
  EXPECT_TRUE(Import(kNet, Params(""), Options()).graph.ok());
  // Saved without the prefix of the whole net.
  const std::string prefixed = absl::StrReplaceAll(
      kNet, {{"\"fc_weight\"", "\"net0_fc_weight\""}, {"\"fc_bias\"", "\"net0_fc_bias\""}});
  EXPECT_TRUE(Import(prefixed, Params(""), Options()).graph.ok());
}

TEST(MxNetImportTest, NamesEveryMissingParameter) {
  const Imported net = Import(kNet, ParamsBytes({{"arg:x", ArrayBytes(2, {1}, {1})}}), Options());
  EXPECT_THAT(net.problems, AllOf(HasSubstr("'fc_weight' is not in m.params"),
                                  HasSubstr("'fc_bias' is not in m.params")));
}

TEST(MxNetImportTest, AsksForTheShapeOfAnInput) {
  EXPECT_THAT(Import(kNet, Params(), {}).problems,
              AllOf(HasSubstr("NPUC1183"), HasSubstr("add 'data: [...]' to INPUT_OPS")));
  const std::string stated = Changed("\"name\": \"data\",",
                                     "\"name\": \"data\", \"attrs\": "
                                     "{\"__shape__\": \"(1, 3)\"},");
  EXPECT_TRUE(Import(stated, Params(), {}).graph.ok());
  CompileOptions other = Options();
  other.inputs[0].shape = {1, 4};
  EXPECT_THAT(Import(stated, Params(), other).problems, HasSubstr("NPUC1118"));
}

TEST(MxNetImportTest, ReadsSymbolsOfEveryAge) {
  const std::string old = absl::StrReplaceAll(
      kNet, {{"\"attrs\": {\"num", "\"attr\": {\"lr\": \"1\"}, \"param\": {\"num"},
             {"\"attrs\": {\"act", "\"attr\": {\"act"},
             {", 0]", "]"}});
  const Imported net = Import(old, Params(), Options());
  EXPECT_TRUE(net.graph.ok()) << net.problems;
}

TEST(MxNetImportTest, AppendsTheStatesThatOldSymbolsLeaveOut) {
  constexpr char kOld[] = R"({"nodes": [
    {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
    {"op": "null", "param": {}, "name": "bn_gamma", "inputs": []},
    {"op": "null", "param": {}, "name": "bn_beta", "inputs": []},
    {"op": "BatchNorm", "param": {"eps": "0.001"}, "name": "bn", "inputs": [[0, 0], [1, 0], [2, 0]]}],
   "arg_nodes": [0, 1, 2], "heads": [[3, 0]]})";
  const std::string one = ArrayBytes(0, {3}, {1, 1, 1});
  const Imported net = Import(kOld,
                              ParamsBytes({{"arg:bn_gamma", one},
                                           {"arg:bn_beta", one},
                                           {"aux:bn_moving_mean", one},
                                           {"aux:bn_moving_var", one}}),
                              Options());
  EXPECT_TRUE(net.graph.ok()) << net.problems;
  EXPECT_THAT(
      Import(kOld, ParamsBytes({{"arg:bn_gamma", one}, {"arg:bn_beta", one}}), Options()).problems,
      HasSubstr("'bn_moving_mean' is not in"));
}

TEST(MxNetImportTest, CutsTheModelBeforeBoxesAreDecoded) {
  const std::string detector =
      absl::StrReplaceAll(kNet, {{"{\"op\": \"SoftmaxOutput\", \"name\": \"softmax\"",
                                  "{\"op\": \"_contrib_MultiBoxDetection\", \"name\": \"boxes\""},
                                 {"[5, 0, 0]]", "[3, 0, 0], [1, 0, 0]]"}});
  const Imported net = Import(detector, Params(), Options());
  ASSERT_TRUE(net.graph.ok()) << net.problems;
  EXPECT_THAT(OutputNames(*net.graph), ElementsAre("act", "fc"));
  EXPECT_THAT(net.problems, AllOf(HasSubstr("NPUC1143"), HasSubstr("'boxes'")));
  EXPECT_THAT(Import(detector, Params(), Options({"boxes"})).problems, HasSubstr("NPUC1110"));
}

TEST(MxNetImportTest, OperatorsOfOneNameGetNamesOfTheirOwn) {
  constexpr char kTwice[] = R"({"nodes": [
    {"op": "null", "name": "data", "inputs": []},
    {"op": "Activation", "name": "relu", "attrs": {"act_type": "relu"}, "inputs": [[0, 0, 0]]},
    {"op": "negative", "name": "relu_1", "inputs": [[1, 0, 0]]},
    {"op": "Activation", "name": "relu", "attrs": {"act_type": "tanh"}, "inputs": [[2, 0, 0]]},
    {"op": "abs", "name": "data", "inputs": [[3, 0, 0]]}],
   "arg_nodes": [0], "heads": [[1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]]})";
  const Imported net = Import(kTwice, Params(), Options());
  ASSERT_TRUE(net.graph.ok()) << net.problems;
  EXPECT_THAT(OutputNames(*net.graph), ElementsAre("relu", "relu_1", "relu_2", "data_1"));
  const auto op_of = [&](size_t i) { return net.graph->def(net.graph->outputs()[i].value).op; };
  EXPECT_EQ(op_of(0), Op::kRelu);
  EXPECT_EQ(op_of(2), Op::kTanh);
  EXPECT_EQ(op_of(3), Op::kAbs);
}

TEST(MxNetImportTest, ParametersOfOneNameAreRefused) {
  EXPECT_THAT(Import(Changed("\"fc_bias\"", "\"fc_weight\""), Params(), Options()).problems,
              AllOf(HasSubstr("NPUC1105"), HasSubstr("two variables of the symbol")));
}

TEST(MxNetImportTest, RefusesNodesThatReadForward) {
  EXPECT_THAT(Import(Changed("[[3, 0, 0]]", "[[4, 0, 0]]"), Params(), Options()).problems,
              AllOf(HasSubstr("NPUC1104"), HasSubstr("reads node 4")));
  EXPECT_THAT(Import(Changed("[[3, 0, 0]]", "[[6, 0, 0]]"), Params(), Options()).problems,
              HasSubstr("NPUC1104"));
  EXPECT_THAT(Import(Changed("[[3, 0, 0]]", "[[3, 4, 0]]"), Params(), Options()).problems,
              HasSubstr("which has 1"));
}

TEST(MxNetImportTest, RefusesWhatIsNoSymbol) {
  EXPECT_THAT(Import("", Params(), Options()).problems, HasSubstr("NPUC1100"));
  EXPECT_THAT(Import("{\"a\": 1}", Params(), Options()).problems, HasSubstr("NPUC1195"));
  EXPECT_THAT(Import("{\"nodes\": [", Params(), Options()).problems, HasSubstr("NPUC1195"));
  EXPECT_THAT(Import(std::string(100, '['), Params(), Options()).problems, HasSubstr("nested"));
  EXPECT_THAT(Import(Changed("[[6, 0, 0]]", "[[7, 0, 0]]"), Params(), Options()).problems,
              HasSubstr("'heads'"));
  CompileOptions options = Options();
  Diagnostics diagnostics;
  EXPECT_FALSE(ImportMxNet(kNet, "", nullptr, options, diagnostics).ok());
}

TEST(MxNetImportTest, ReportsEveryProblemAtOnce) {
  const std::string broken =
      absl::StrReplaceAll(kNet, {{"\"num_hidden\": \"2\"", "\"num_hidden\": \"two\""},
                                 {"\"act_type\": \"relu\"", "\"act_type\": \"wave\""}});
  EXPECT_THAT(Import(broken, Params(), Options()).problems,
              HasSubstr("'two', which is no integer"));
  EXPECT_THAT(Import(Changed("\"relu\"", "\"wave\""), Params(), Options()).problems,
              AllOf(HasSubstr("NPUC1111"), HasSubstr("wave")));
  EXPECT_THAT(Import(Changed("\"2\"", "\"3\""), Params(), Options()).problems,
              AllOf(HasSubstr("NPUC1113"), HasSubstr("the weight is")));
}

TEST(MxNetImportTest, OutlineTellsInputsFromParameters) {
  Diagnostics diagnostics;
  const absl::StatusOr<ModelOutline> outline = OutlineMxNet(kNet, "net-symbol.json", diagnostics);
  ASSERT_TRUE(outline.ok());
  ASSERT_EQ(outline->inputs.size(), 1);
  EXPECT_EQ(outline->inputs[0].key, "data");
  EXPECT_EQ(outline->producer, "MXNet 1.6.1");
  EXPECT_EQ(outline->data_file, "net-0000.params");
}

TEST(MxNetCorpusTest, SeedsAreFresh) {
  const std::string zeros(2 * 128 * sizeof(float), '\0');
  const std::string params = ParamsBytes({{"arg:fc_weight", ArrayBytes(2, {2, 128}, 0, zeros)},
                                          {"arg:fc_bias", ArrayBytes(0, {2}, {1, 2})}});
  ASSERT_TRUE(Import(kNet, params,
                     [] {
                       CompileOptions options;
                       options.inputs = {{"data", {1, 2, 8, 8}}};
                       return options;
                     }())
                  .graph.ok());
  ExpectSeeds("mxnet_fuzz",
              {{"seed_dense", absl::StrCat(kNet, absl::string_view("\0", 1), params)}});
}

// MXNet's own test of symbols of version 0.8.
TEST(MxNetImportTest, OutlinesTheOldSymbolOfMxNet) {
  const std::string file = ReadTestFile(SharedFolder() / "suites/mxnet/ndarray/save_000800.json");
  if (file.empty()) GTEST_SKIP() << "the shared folder is missing";
  Diagnostics diagnostics;
  const absl::StatusOr<ModelOutline> outline = OutlineMxNet(file, "save_000800.json", diagnostics);
  ASSERT_TRUE(outline.ok());
  ASSERT_EQ(outline->inputs.size(), 1);
  EXPECT_EQ(outline->inputs[0].key, "data");
  EXPECT_EQ(outline->outputs.size(), 1);
  EXPECT_GE(outline->operators.at("FullyConnected"), 2);
}

// Parameters of the fused RNN: the weights of all layers and directions, then their biases.
TEST(MxNetImportTest, FusedRnnsAreThoseOfPyTorch) {
  const std::map<std::string, std::string> modes = {
      {"Lstm", "lstm"},     {"TwoWayLstm", "lstm"},  {"Gru", "gru"},
      {"TwoWayGru", "gru"}, {"TanhRnn", "rnn_tanh"}, {"ReluRnn", "rnn_relu"}};
  for (const frontend::RecurrentCase& c : frontend::RecurrentCases()) {
    const std::string& mode = modes.at(c.name);
    const bool is_lstm = mode == "lstm";
    const frontend::RecurrentNumbers numbers(c, is_lstm ? 4 : mode == "gru" ? 3 : 1);
    std::vector<float> flat;
    const auto append = [&](const std::vector<float>& part) {
      flat.insert(flat.end(), part.begin(), part.end());
    };
    for (const auto& direction : numbers.directions) {
      append(direction.w);
      append(direction.r);
    }
    for (const auto& direction : numbers.directions) {
      append(direction.w_bias);
      append(direction.r_bias);
    }
    const std::string symbol = absl::StrCat(
        R"({"nodes": [
      {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "all", "inputs": []},
      {"op": "null", "name": "h", "inputs": []}, {"op": "null", "name": "c", "inputs": []},
      {"op": "_rnn_param_concat", "name": "joined", "attrs": {"dim": "0", "num_args": "1"},
       "inputs": [[1, 0, 0]]},
      {"op": "RNN", "name": "rnn", "attrs": {"mode": ")",
        mode, R"(", "state_size": "2", "num_layers": ")", c.states == 1 ? 1 : 2,
        R"(", "bidirectional": ")", c.states == 1 ? "False" : "True",
        R"(", "state_outputs": "True"}, "inputs": [[0, 0, 0], [4, 0, 0], [2, 0, 0])",
        is_lstm ? ", [3, 0, 0]" : "", R"(]}], "arg_nodes": [0, 1, 2, 3], "heads": [[5, 0, 0],
      [5, 1, 0])",
        is_lstm ? ", [5, 2, 0]" : "", "]}");
    CompileOptions options;
    options.inputs = {{"data", {3, 2, 3}}, {"h", {c.states, 2, 2}}};
    if (is_lstm) options.inputs.push_back({"c", {c.states, 2, 2}});
    const std::string params =
        ParamsBytes({{"arg:all", ArrayBytes(2, {static_cast<int64_t>(flat.size())}, flat)}});
    const Imported net = Import(symbol, params, options);
    ASSERT_TRUE(net.graph.ok()) << c.name << net.problems;
    frontend::ExpectCase(c, numbers, *net.graph);
  }
}

// KEEP_STATES makes inputs and outputs of states that the model begins with zeros.
TEST(MxNetImportTest, ARnnMayGoOnWhereTheCallBeforeEnded) {
  for (const frontend::RecurrentCase& c : frontend::RecurrentCases()) {
    if (c.name != "Lstm" && c.name != "Gru") continue;
    const bool is_lstm = c.name == "Lstm";
    const frontend::RecurrentNumbers numbers(c, is_lstm ? 4 : 3);
    const auto& direction = numbers.directions[0];
    std::vector<float> flat;
    for (const auto* part : {&direction.w, &direction.r, &direction.w_bias, &direction.r_bias}) {
      flat.insert(flat.end(), part->begin(), part->end());
    }
    const std::string symbol = absl::StrCat(
        R"({"nodes": [
      {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "all", "inputs": []},
      {"op": "RNN", "name": "rnn", "attrs": {"mode": ")",
        is_lstm ? "lstm" : "gru", R"(", "state_size": "2", "num_layers": "1"},
       "inputs": [[0, 0, 0], [1, 0, 0]]}], "arg_nodes": [0, 1], "heads": [[2, 0, 0]]})");
    CompileOptions options;
    options.inputs = {{"data", {3, 2, 3}}};
    options.keep_states = {"*"};
    const std::string params =
        ParamsBytes({{"arg:all", ArrayBytes(2, {static_cast<int64_t>(flat.size())}, flat)}});
    const Imported net = Import(symbol, params, options);
    ASSERT_TRUE(net.graph.ok()) << net.problems;
    std::vector<Tensor> inputs = {Tensor::FromFloats({3, 2, 3}, numbers.x),
                                  Tensor::FromFloats({2, 2}, numbers.h)};
    if (is_lstm) inputs.push_back(Tensor::FromFloats({2, 2}, numbers.c));
    const absl::StatusOr<std::vector<Tensor>> results = RunReference(*net.graph, inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    std::vector<std::vector<float>> wanted = {c.h};
    if (is_lstm) wanted.push_back(c.c);
    wanted.push_back(c.y);
    ASSERT_EQ(results->size(), wanted.size());
    EXPECT_EQ(net.graph->outputs()[0].name, "rnn_h_out");
    EXPECT_TRUE(net.graph->outputs()[0].fp16);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_THAT((*results)[i].ToFloats(), Pointwise(FloatNear(1e-5f), wanted[i])) << c.name << i;
    }
  }
}

// By MXNet's documentation: what holds is 1, indices are floats, and take keeps them in range.
TEST(MxNetImportTest, ComparesChoosesAndLooksUp) {
  constexpr char kSymbol[] = R"({"nodes": [
    {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
    {"op": "_greater_scalar", "name": "above", "attrs": {"scalar": "1.5"}, "inputs": [[0, 0, 0]]},
    {"op": "argmax", "name": "best", "attrs": {"axis": "1"}, "inputs": [[0, 0, 0]]},
    {"op": "take", "name": "row", "inputs": [[1, 0, 0], [3, 0, 0]]},
    {"op": "floor", "name": "whole", "inputs": [[0, 0, 0]]},
    {"op": "where", "name": "chosen", "inputs": [[2, 0, 0], [5, 0, 0], [0, 0, 0]]},
    {"op": "one_hot", "name": "hot", "attrs": {"depth": "3"}, "inputs": [[3, 0, 0]]},
    {"op": "logical_not", "name": "not", "inputs": [[2, 0, 0]]}],
   "arg_nodes": [0, 1],
   "heads": [[2, 0, 0], [3, 0, 0], [4, 0, 0], [6, 0, 0], [7, 0, 0], [8, 0, 0]]})";
  const Imported net = Import(
      kSymbol, ParamsBytes({{"arg:w", ArrayBytes(2, {3, 2}, {1, 2, 3, 4, 5, 6})}}), Options());
  ASSERT_TRUE(net.graph.ok()) << net.problems;
  const absl::StatusOr<std::vector<Tensor>> results =
      RunReference(*net.graph, {Tensor::FromFloats({1, 3}, {-0.5f, 1.5f, 2.75f})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].ToFloats(), ElementsAre(0, 0, 1));
  EXPECT_THAT((*results)[1].ToFloats(), ElementsAre(2));
  EXPECT_THAT((*results)[2].ToFloats(), ElementsAre(5, 6));
  EXPECT_THAT((*results)[3].ToFloats(), ElementsAre(-0.5f, 1.5f, 2));
  EXPECT_THAT((*results)[4].ToFloats(), ElementsAre(0, 0, 1));
  EXPECT_THAT((*results)[5].ToFloats(), ElementsAre(1, 1, 0));
}

// An operator of the user's in C++, one of Custom, and a subgraph of a pattern.
TEST(MxNetImportTest, DeclaredOperatorsAreTheirFormulas) {
  constexpr char kSymbol[] = R"json({"nodes": [
    {"op": "null", "name": "data", "inputs": []},
    {"op": "acme_scaled", "name": "s", "attrs": {"by": "0.5", "shifts": "(1, 2)"},
     "inputs": [[0, 0, 0]]},
    {"op": "Custom", "name": "c", "attrs": {"op_type": "plus"}, "inputs": [[1, 0, 0], [1, 1, 0]]},
    {"op": "tanh", "name": "t", "inputs": [[2, 0, 0]]},
    {"op": "negative", "name": "n", "inputs": [[3, 0, 0]]}],
   "arg_nodes": [0], "heads": [[4, 0, 0]]})json";
  constexpr char kDeclared[] = R"(operators:
  - op: acme_scaled
    operands: [x]
    attributes: {by: {type: float}, shifts: {type: ints}}
    formula: |
      y = Abs(x) * by
      n = -x
    results: [y, n]
  - {op: plus, operands: [a, b], formula: y = a + b, results: [y]}
  - op: NegTanh
    pattern_nodes: [[t, tanh], [n, negative]]
    pattern_edges: [[t, n]]
    operands: {x: t:0}
    formula: y = x * 2
    results: [y]
)";
  const std::string params = ParamsBytes({{"arg:unused", ArrayBytes(2, {1}, {0})}});
  CompileOptions options;
  options.inputs = {{"data", {1, 2}}};
  const Imported net = Import(kSymbol, params, options, kDeclared);
  ASSERT_TRUE(net.graph.ok()) << net.problems;
  const auto results = RunReference(*net.graph, {Tensor::FromFloats({1, 2}, {-3, 2})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].ToFloats(), ElementsAre(9, -2));
  EXPECT_THAT(Import(kSymbol, params, options).problems, HasSubstr("NPUC1110"));
  EXPECT_THAT(Import(kSymbol, params, options,
                     absl::StrReplaceAll(kDeclared, {{"by: {", "power: {"}, {"* by", "* power"}}))
                  .problems,
              HasSubstr("the declaration at line 2 of ops.yaml reads it"));
}

// A node has as many results as some other reads: where subgraphs are looked for, those that
// nothing reads cost no memory.
TEST(MxNetImportTest, FindsSubgraphsAmongResultsOfHighNumbers) {
  std::string nodes = R"({"op": "null", "name": "data", "inputs": []})";
  constexpr int kNodes = 300;
  for (int i = 0; i < kNodes; ++i) {
    absl::StrAppend(&nodes, R"(, {"op": "tanh", "name": "t)", i, R"(", "inputs": [[)", i, ", ",
                    i == 0 ? 0 : 4095, ", 0]]}");
  }
  const std::string symbol = absl::StrCat(
      R"({"nodes": [)", nodes, R"(], "arg_nodes": [0], "heads": [[)", kNodes, ", 0, 0]]}");
  constexpr char kDeclared[] = R"(operators:
  - op: Twice
    pattern_nodes: [[a, tanh], [b, tanh]]
    pattern_edges: [[a, b]]
    operands: {x: a:0}
    formula: y = x
    results: [y]
)";
  const std::string params = ParamsBytes({{"arg:unused", ArrayBytes(2, {1}, {0})}});
  CompileOptions options;
  options.inputs = {{"data", {1, 2}}};
  EXPECT_THAT(Import(symbol, params, options, kDeclared).problems, HasSubstr("is result 4095 of"));
}

TEST(MxNetImportTest, BoundsTheUnitsOfARnn) {
  constexpr char kSymbol[] = R"({"nodes": [
    {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "p", "inputs": []},
    {"op": "RNN", "name": "r", "attrs": {"mode": "lstm", "num_layers": "64",
     "state_size": "1000000000", "bidirectional": "True"}, "inputs": [[0, 0, 0], [1, 0, 0]]}],
   "arg_nodes": [0, 1], "heads": [[2, 0, 0]]})";
  CompileOptions options;
  options.inputs = {{"data", {3, 1, 2}}};
  EXPECT_THAT(Import(kSymbol, ParamsBytes({{"arg:p", ArrayBytes(2, {1}, {1})}}), options).problems,
              HasSubstr("64 layers of 1000000000 units; allowed are 64 layers of 65536"));
}

TEST(MxNetImportTest, LooksUpRowsByIndices) {
  constexpr char kSymbol[] = R"({"nodes": [
    {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
    {"op": "Embedding", "name": "e", "attrs": {"input_dim": "3", "output_dim": "2"},
     "inputs": [[0, 0, 0], [1, 0, 0]]},
    {"op": "SequenceReverse", "name": "r", "inputs": [[2, 0, 0]]},
    {"op": "SequenceLast", "name": "l", "inputs": [[3, 0, 0]]}],
   "arg_nodes": [0, 1], "heads": [[3, 0, 0], [4, 0, 0]]})";
  CompileOptions options;
  options.inputs = {{"data", {3, 1}}};
  const Imported net =
      Import(kSymbol, ParamsBytes({{"arg:w", ArrayBytes(2, {3, 2}, {1, 2, 3, 4, 5, 6})}}), options);
  ASSERT_TRUE(net.graph.ok()) << net.problems;
  const absl::StatusOr<std::vector<Tensor>> results =
      RunReference(*net.graph, {Tensor::FromFloats({3, 1}, {2, 0, 1})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].ToFloats(), ElementsAre(3, 4, 1, 2, 5, 6));
  EXPECT_THAT((*results)[1].ToFloats(), ElementsAre(5, 6));
}

// The answer of one operator, `attrs` as in JSON, on a row of numbers.
std::vector<float> AnswerOf(absl::string_view op, absl::string_view attrs, Shape shape,
                            const std::vector<float>& row) {
  const std::string symbol =
      absl::StrCat(R"({"nodes": [{"op": "null", "name": "data", "inputs": []}, {"op": ")", op,
                   R"(", "name": "y", "attrs": {)", attrs,
                   R"(}, "inputs": [[0, 0, 0]]}], "arg_nodes": [0], "heads": [[1, 0, 0]]})");
  CompileOptions options;
  options.inputs = {{"data", shape}};
  const Imported net =
      Import(symbol, ParamsBytes({{"arg:unused", ArrayBytes(2, {1}, {0})}}), options);
  EXPECT_TRUE(net.graph.ok()) << net.problems;
  if (!net.graph.ok()) return {};
  const auto results = RunReference(*net.graph, {Tensor::FromFloats(shape, row)});
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0].ToFloats() : std::vector<float>();
}

// mshadow_op.h: the floor of a where a - floor <= ceil - a, else the ceiling.
TEST(MxNetImportTest, RintTakesHalvesDown) {
  const float above = -0.49999997F;  // and no number in between
  EXPECT_THAT(AnswerOf("rint", "", {1, 8}, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.6F, above, 8388609}),
              ElementsAre(-3, -2, -1, 0, 1, 3, 0, 8388609));
}

// mshadow_op.h: C's round(), to the nearest and halves away from 0.
TEST(MxNetImportTest, RoundTakesHalvesAwayFromZero) {
  const float below = 0.49999997F;  // and no number in between
  EXPECT_THAT(
      AnswerOf("round", "", {1, 9}, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, -2.6F, below, 8388609}),
      ElementsAre(-3, -2, -1, 1, 2, 3, -3, 0, 8388609));
}

// pool_utils.h: a, a * a and a * a * a, and the sum, its square root and its cube root.
TEST(MxNetImportTest, LpPoolingKeepsSigns) {
  const auto pooled = [](const std::string& p) {
    const std::string attrs = absl::StrReplaceAll(
        R"a("pool_type": "lp", "p_value": "P", "kernel": "(1, 2)", "stride": "(1, 2)")a",
        {{"P", p}});
    return AnswerOf("Pooling", attrs, {1, 1, 1, 4}, {-1, 2, -3, -1});
  };
  EXPECT_THAT(pooled("1"), ElementsAre(1, -4));
  EXPECT_THAT(pooled("2"), ElementsAre(FloatNear(2.236068F, 1e-6F), FloatNear(3.1622777F, 1e-6F)));
  EXPECT_THAT(pooled("3"),
              ElementsAre(FloatNear(1.9129312F, 1e-6F), FloatNear(-3.0365889F, 1e-6F)));
}

}  // namespace
}  // namespace npuc::mxnet
