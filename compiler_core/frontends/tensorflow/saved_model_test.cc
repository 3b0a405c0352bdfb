#include "compiler_core/frontends/tensorflow/saved_model.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/archive.h"
#include "compiler_core/frontends/common/saved_model_sniff.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/frontends/tensorflow/tensor_bundle.h"
#include "compiler_core/frontends/tensorflow/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> 8 * i));
  return out;
}

// A block of LevelDB's table format with one restart; the second of two keys shares no beginning.
std::string Block(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  for (const auto& [key, value] : entries) {
    absl::StrAppend(&out, Varint(0), Varint(key.size()), Varint(value.size()), key, value);
  }
  return out + Little(0, 4) + Little(1, 4);
}

// variables.index of entries that are sorted.
std::string Table(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  const auto add = [&](const std::string& block) {
    const std::string handle = Varint(out.size()) + Varint(block.size());
    out += block + std::string(5, '\0');
    return handle;
  };
  const std::string data = add(Block(entries));
  const std::string meta = add(Block({}));
  const std::string index = add(Block({{"zzz", data}}));
  std::string footer = meta + index;
  footer.resize(40);
  return out + footer + Little(0xdb4775248b80fb57, 8);
}

std::string Entry(const std::vector<int64_t>& shape, int64_t offset, int64_t size) {
  fe::tf::BundleEntryProto entry;
  entry.set_dtype(fe::tf::DT_FLOAT);
  for (const int64_t dim : shape) entry.mutable_shape()->add_dim()->set_size(dim);
  entry.set_offset(offset);
  entry.set_size(size);
  return entry.SerializeAsString();
}

std::string Header() {
  fe::tf::BundleHeaderProto header;
  header.set_num_shards(1);
  return header.SerializeAsString();
}

std::string FloatBytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size());
}

std::string Index() {
  return Table({{"", Header()},
                {"b/.ATTRIBUTES/VARIABLE_VALUE", Entry({2}, 16, 8)},
                {"w/.ATTRIBUTES/VARIABLE_VALUE", Entry({2, 2}, 0, 16)}});
}

fe::tf::AttrValue& Attr(fe::tf::NodeDef& node, const std::string& key) {
  fe::tf::AttrEntry& entry = *node.add_attr();
  entry.set_key(key);
  return *entry.mutable_value();
}

template <typename Nodes>
fe::tf::NodeDef& AddNode(Nodes* nodes, const std::string& name, const std::string& op,
                         const std::vector<std::string>& inputs) {
  fe::tf::NodeDef& node = *nodes->Add();
  node.set_name(name);
  node.set_op(op);
  for (const std::string& input : inputs) node.add_input(input);
  return node;
}

fe::tf::FunctionDef& AddFunction(fe::tf::GraphDef& graph, const std::string& name,
                                 const std::vector<std::string>& arguments,
                                 const std::vector<std::pair<std::string, std::string>>& results) {
  fe::tf::FunctionDef& function = *graph.mutable_library()->add_function();
  function.mutable_signature()->set_name(name);
  for (const std::string& argument : arguments) {
    function.mutable_signature()->add_input_arg()->set_name(argument);
  }
  for (const auto& [result, tensor] : results) {
    function.mutable_signature()->add_output_arg()->set_name(result);
    fe::tf::StringEntry& entry = *function.add_ret();
    entry.set_key(result);
    entry.set_value(tensor);
  }
  return function;
}

fe::tf::NodeDef& AddCall(google::protobuf::RepeatedPtrField<fe::tf::NodeDef>* nodes,
                         const std::string& name, const std::string& function,
                         const std::vector<std::string>& inputs) {
  fe::tf::NodeDef& call = AddNode(nodes, name, "StatefulPartitionedCall", inputs);
  Attr(call, "f").mutable_func()->set_name(function);
  return call;
}

void AddStrings(google::protobuf::RepeatedPtrField<fe::tf::NodeDef>* nodes, const std::string& name,
                const std::vector<std::string>& values) {
  fe::tf::TensorProto& tensor = *Attr(AddNode(nodes, name, "Const", {}), "value").mutable_tensor();
  tensor.set_dtype(fe::tf::DT_STRING);
  for (const std::string& value : values) tensor.add_string_val(value);
}

// A SavedModel as Keras writes it, relu(x w + b): a call in a call, variables as handles, and a
// function that restores them.
fe::tf::SavedModel Dense() {
  fe::tf::SavedModel model;
  fe::tf::MetaGraphDef& meta = *model.add_meta_graphs();
  meta.mutable_meta_info_def()->add_tags("serve");
  fe::tf::GraphDef& graph = *meta.mutable_graph_def();
  auto* nodes = graph.mutable_node();
  fe::tf::NodeDef& x = AddNode(nodes, "serving_default_x", "Placeholder", {});
  Attr(x, "dtype").set_type(fe::tf::DT_FLOAT);
  AddNode(nodes, "dense/kernel", "VarHandleOp", {});
  AddNode(nodes, "dense/bias", "VarHandleOp", {});
  AddNode(nodes, "saver_filename", "Placeholder", {});
  AddCall(nodes, "StatefulPartitionedCall", "outer",
          {"serving_default_x", "dense/kernel", "dense/bias"});
  AddCall(nodes, "StatefulPartitionedCall_1", "restore",
          {"saver_filename", "dense/kernel", "dense/bias"});

  auto* outer = AddFunction(graph, "outer", {"x", "k", "b"}, {{"identity", "Identity:output:0"}})
                    .mutable_node_def();
  AddCall(outer, "dense", "inner", {"x", "k", "b"});
  AddNode(outer, "Identity", "Identity", {"dense:output:0", "^dense"});
  auto* inner = AddFunction(graph, "inner", {"in", "k", "b"}, {{"out", "Relu:activations:0"}})
                    .mutable_node_def();
  AddNode(inner, "MatMul/ReadVariableOp", "ReadVariableOp", {"k"});
  AddNode(inner, "MatMul", "MatMul", {"in", "MatMul/ReadVariableOp:value:0"});
  AddNode(inner, "BiasAdd/ReadVariableOp", "ReadVariableOp", {"b"});
  AddNode(inner, "BiasAdd", "BiasAdd", {"MatMul:product:0", "BiasAdd/ReadVariableOp:value:0"});
  AddNode(inner, "Relu", "Relu", {"BiasAdd:output:0"});
  auto* restore =
      AddFunction(graph, "restore", {"file", "k", "b"}, {{"id", "Id:output:0"}}).mutable_node_def();
  AddStrings(restore, "names", {"w/.ATTRIBUTES/VARIABLE_VALUE", "b/.ATTRIBUTES/VARIABLE_VALUE"});
  AddStrings(restore, "slices", {"", ""});
  AddNode(restore, "RestoreV2", "RestoreV2", {"file", "names:output:0", "slices:output:0"});
  AddNode(restore, "Identity", "Identity", {"RestoreV2:tensors:0"});
  AddNode(restore, "AssignVariableOp", "AssignVariableOp", {"k", "Identity:output:0"});
  AddNode(restore, "Identity_1", "Identity", {"RestoreV2:tensors:1"});
  AddNode(restore, "AssignVariableOp_1", "AssignVariableOp", {"b", "Identity_1:output:0"});
  AddNode(restore, "Id", "Identity", {"file"});

  meta.mutable_saver_def()->set_restore_op_name("StatefulPartitionedCall_1");
  fe::tf::SignatureEntry& signature = *meta.add_signature_def();
  signature.set_key("serving_default");
  auto& input = *signature.mutable_value()->add_inputs();
  input.set_key("x");
  input.mutable_value()->set_name("serving_default_x:0");
  auto& output = *signature.mutable_value()->add_outputs();
  output.set_key("dense");
  output.mutable_value()->set_name("StatefulPartitionedCall:0");
  output.mutable_value()->set_dtype(fe::tf::DT_FLOAT);
  return model;
}

std::string Archive(const fe::tf::SavedModel& model, const std::string& index = Index(),
                    const std::string& folder = "") {
  return *WriteZip(
      {{folder + "saved_model.pb", model.SerializeAsString()},
       {folder + "variables/variables.data-00000-of-00001", FloatBytes({1, 2, 3, 4, 10, -100})},
       {folder + "variables/variables.index", index}});
}

TEST(SavedModelTest, IsFrozenWithTheNamesOfItsSignature) {
  const std::string archive = Archive(Dense(), Index(), "my_model/");
  ASSERT_TRUE(IsSavedModel(archive));
  fe::tf::GraphDef graph;
  const absl::Status status = FreezeSavedModel(archive, graph);
  ASSERT_TRUE(status.ok()) << status;
  std::vector<std::string> nodes;
  for (const auto& node : graph.node()) {
    nodes.push_back(absl::StrCat(node.name(), " ", node.op()));
    for (const auto& input : node.input()) absl::StrAppend(&nodes.back(), " ", input);
  }
  EXPECT_THAT(
      nodes, ElementsAre("dense Identity Identity", "x Placeholder", "Identity Identity Relu",
                         "Relu Relu BiasAdd", "BiasAdd BiasAdd MatMul dense/bias",
                         "MatMul MatMul x dense/kernel", "dense/bias Const", "dense/kernel Const"));
}

TEST(SavedModelTest, IsImportedWithItsVariables) {
  const std::vector<Tensor> outputs =
      Evaluate(Archive(Dense()), Options({{"x", {1, 2}}}, {"dense"}), {{5, 7}});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(outputs[0].ToFloats(), ElementsAre(36, 0));
}

// A recurrent layer as Keras writes it: a loop that takes rows from a list, multiplies a state by a
// variable, adds the row, and writes each state to a list. The function that it is in is called
// twice, on x and on the first call's result.
fe::tf::SavedModel Recurrent() {
  fe::tf::SavedModel model = Dense();
  fe::tf::GraphDef& graph = *model.mutable_meta_graphs(0)->mutable_graph_def();
  graph.mutable_library()->mutable_function(0)->Clear();
  auto& outer = *graph.mutable_library()->mutable_function(0);
  {
    fe::tf::GraphDef made;
    auto& function = AddFunction(made, "outer", {"x", "k", "b"}, {{"identity", "second:states:0"}});
    AddCall(function.mutable_node_def(), "first", "layer", {"x", "k"});
    AddCall(function.mutable_node_def(), "second", "layer", {"first:states:0", "k"});
    outer = function;
  }
  const auto number = [](auto* nodes, const std::string& name, std::vector<int> dims,
                         std::vector<int> values) {
    fe::tf::NodeDef& node = AddNode(nodes, name, "Const", {});
    Attr(node, "dtype").set_type(fe::tf::DT_INT32);
    fe::tf::TensorProto& tensor = *Attr(node, "value").mutable_tensor();
    tensor.set_dtype(fe::tf::DT_INT32);
    tensor.mutable_tensor_shape();
    for (const int dim : dims) tensor.mutable_tensor_shape()->add_dim()->set_size(dim);
    for (const int value : values) tensor.add_int_val(value);
  };
  auto& layer = AddFunction(graph, "layer", {"x", "k"}, {{"states", "stack:tensor:0"}});
  auto* nodes = layer.mutable_node_def();
  number(nodes, "zero", {}, {0});
  number(nodes, "count", {}, {2});
  number(nodes, "shape", {2}, {1, 2});
  number(nodes, "rows", {3}, {2, 1, 2});
  AddNode(nodes, "in3", "Reshape", {"x", "rows:output:0"});
  AddNode(nodes, "in", "TensorListFromTensor", {"in3:output:0", "shape:output:0"});
  AddNode(nodes, "out", "TensorListReserve", {"shape:output:0", "count:output:0"});
  fe::tf::NodeDef& start = AddNode(nodes, "start", "Const", {});
  Attr(start, "dtype").set_type(fe::tf::DT_FLOAT);
  fe::tf::TensorProto& ones = *Attr(start, "value").mutable_tensor();
  ones.set_dtype(fe::tf::DT_FLOAT);
  ones.mutable_tensor_shape()->add_dim()->set_size(1);
  ones.mutable_tensor_shape()->add_dim()->set_size(2);
  ones.add_float_val(1);
  fe::tf::NodeDef& loop = AddNode(
      nodes, "while", "StatelessWhile",
      {"zero:output:0", "out:handle:0", "start:output:0", "in:output_handle:0", "k", "^start"});
  Attr(loop, "cond").mutable_func()->set_name("test");
  Attr(loop, "body").mutable_func()->set_name("turn");
  auto& types = *Attr(loop, "T").mutable_list();
  for (const auto type : {fe::tf::DT_INT32, fe::tf::DT_VARIANT, fe::tf::DT_FLOAT,
                          fe::tf::DT_VARIANT, fe::tf::DT_RESOURCE}) {
    types.add_type(type);
  }
  AddNode(nodes, "stack", "TensorListStack", {"while:output:1", "shape:output:0"});

  auto* test =
      AddFunction(graph, "test", {"i", "out", "state", "in", "k"}, {{"goes_on", "Less:z:0"}})
          .mutable_node_def();
  number(test, "two", {}, {2});
  AddNode(test, "Less", "Less", {"i", "two:output:0"});
  auto* turn = AddFunction(graph, "turn", {"i", "out", "state", "in", "k"},
                           {{"i_1", "next:z:0"},
                            {"out_1", "set:output_handle:0"},
                            {"state_1", "sum:z:0"},
                            {"in_1", "in"},
                            {"k_1", "k"}})
                   .mutable_node_def();
  number(turn, "one", {}, {1});
  number(turn, "shape", {2}, {1, 2});
  AddNode(turn, "next", "AddV2", {"i", "one:output:0"});
  AddNode(turn, "row", "TensorListGetItem", {"in", "i", "shape:output:0"});
  AddNode(turn, "read", "ReadVariableOp", {"k"});
  AddNode(turn, "product", "MatMul", {"state", "read:value:0"});
  AddNode(turn, "sum", "AddV2", {"product:product:0", "row:item:0"});
  AddNode(turn, "set", "TensorListSetItem", {"out", "i", "sum:z:0"});
  return model;
}

TEST(SavedModelTest, LoopsOfFunctionsAreUnrolled) {
  const std::vector<Tensor> outputs =
      Evaluate(Archive(Recurrent()), Options({{"x", {2, 2}}}, {"dense"}), {{5, 7, 1, 0}});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].shape(), (Shape{2, 1, 2}));
  // The variable is [[1, 2], [3, 4]]. First call: [1 1] -> [4 6] + [5 7] -> [9 13] -> [48 70] +
  // [1 0]; second call on these: [4 6] + [9 13] -> [13 19] -> [70 102] + [49 70].
  EXPECT_THAT(outputs[0].ToFloats(), ElementsAre(13, 19, 119, 172));
}

TEST(SavedModelTest, BranchesOfFunctionsAreChosen) {
  const auto answer = [](bool holds) {
    fe::tf::SavedModel model = Dense();
    fe::tf::GraphDef& graph = *model.mutable_meta_graphs(0)->mutable_graph_def();
    auto& outer = *graph.mutable_library()->mutable_function(0);
    outer.mutable_node_def()->Clear();
    outer.mutable_ret(0)->set_value("if:output:0");
    auto* nodes = outer.mutable_node_def();
    fe::tf::NodeDef& predicate = AddNode(nodes, "training", "Const", {});
    Attr(predicate, "dtype").set_type(fe::tf::DT_BOOL);
    fe::tf::TensorProto& tensor = *Attr(predicate, "value").mutable_tensor();
    tensor.set_dtype(fe::tf::DT_BOOL);
    tensor.mutable_tensor_shape();
    tensor.add_bool_val(holds);
    fe::tf::NodeDef& choice = AddNode(nodes, "if", "StatelessIf", {"training:output:0", "x", "k"});
    Attr(choice, "then_branch").mutable_func()->set_name("yes");
    Attr(choice, "else_branch").mutable_func()->set_name("no");
    auto& taken = *Attr(choice, "Tin").mutable_list();
    taken.add_type(fe::tf::DT_FLOAT);
    taken.add_type(fe::tf::DT_RESOURCE);
    Attr(choice, "Tout").mutable_list()->add_type(fe::tf::DT_FLOAT);
    // The branch that is taken where it holds needs nothing of the inputs.
    auto* yes = AddFunction(graph, "yes", {"x", "k"}, {{"y", "read:value:0"}}).mutable_node_def();
    AddNode(yes, "read", "ReadVariableOp", {"k"});
    auto* no =
        AddFunction(graph, "no", {"x", "k"}, {{"y", "relu:activations:0"}}).mutable_node_def();
    AddNode(no, "relu", "Relu", {"x"});
    return Evaluate(Archive(model), Options({{"x", {2, 2}}}, {"dense"}), {{-5, 7, 1, 0}})[0]
        .ToFloats();
  };
  EXPECT_THAT(answer(true), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(answer(false), ElementsAre(0, 7, 1, 0));
}

std::string ProblemWith(const std::string& archive) {
  fe::tf::GraphDef graph;
  return std::string(FreezeSavedModel(archive, graph).message());
}

TEST(SavedModelTest, SaysWhatIsMissing) {
  fe::tf::SavedModel model = Dense();
  EXPECT_THAT(ProblemWith(*WriteZip({{"saved_model.pb", model.SerializeAsString()}})),
              HasSubstr("its folder no variables/variables.index"));
  EXPECT_THAT(ProblemWith(Archive(model, Table({{"", Header()}}))),
              HasSubstr("node 'dense/bias' (VarHandleOp) is lost: the checkpoint has no variable "
                        "'b/.ATTRIBUTES/VARIABLE_VALUE'"));
  model.mutable_meta_graphs(0)->mutable_saver_def()->set_restore_op_name("none");
  EXPECT_THAT(ProblemWith(Archive(model)), HasSubstr("is a variable that no checkpoint restores"));
  model = Dense();
  model.mutable_meta_graphs(0)->mutable_signature_def(0)->set_key("a");
  EXPECT_EQ(ProblemWith(Archive(model)), "");
  *model.mutable_meta_graphs(0)->add_signature_def() = model.meta_graphs(0).signature_def(0);
  model.mutable_meta_graphs(0)->mutable_signature_def(1)->set_key("b");
  EXPECT_THAT(ProblemWith(Archive(model)),
              HasSubstr("several signatures and no serving_default: a b"));
  model.mutable_meta_graphs(0)->clear_signature_def();
  EXPECT_THAT(ProblemWith(Archive(model)), HasSubstr("no signature with inputs and outputs"));
  EXPECT_THAT(ProblemWith(*WriteZip({{"saved_model.pb", "\x0a\xff"}})), HasSubstr("damaged"));
  EXPECT_THAT(ProblemWith(*WriteZip({{"saved_model.pb", ""}})), HasSubstr("holds no graph"));
}

TEST(SavedModelTest, CallsThatDoNotEndAreRefused) {
  // outer calls itself and returns that.
  fe::tf::SavedModel deep = Dense();
  auto& outer =
      *deep.mutable_meta_graphs(0)->mutable_graph_def()->mutable_library()->mutable_function(0);
  outer.mutable_node_def(0)->mutable_attr(0)->mutable_value()->mutable_func()->set_name("outer");
  outer.mutable_ret(0)->set_value("dense:output:0");
  EXPECT_THAT(ProblemWith(Archive(deep)), HasSubstr("calls others over 64 deep"));
  // A call whose function returns its argument, which is the call.
  fe::tf::SavedModel circle = Dense();
  auto& graph = *circle.mutable_meta_graphs(0)->mutable_graph_def();
  graph.mutable_library()->mutable_function(0)->mutable_ret(0)->set_value("x");
  graph.mutable_node(4)->set_input(0, "StatefulPartitionedCall");
  EXPECT_THAT(ProblemWith(Archive(circle)), HasSubstr("go in a circle"));
}

TEST(TensorBundleTest, DamageIsRefused) {
  const std::string shard = FloatBytes({1, 2, 3, 4, 5, 6});
  const std::string index = Index();
  ASSERT_TRUE(TensorBundle::Open(index, {shard}).ok());
  for (size_t i = 0; i < index.size(); ++i) {
    EXPECT_FALSE(TensorBundle::Open(index.substr(0, i), {shard}).ok()) << i;
    std::string damaged = index;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    const auto bundle = TensorBundle::Open(damaged, {shard});
    if (bundle.ok()) (void)bundle->Find("w/.ATTRIBUTES/VARIABLE_VALUE");
  }
  const auto problem = [&](const std::string& entry) {
    const auto bundle = TensorBundle::Open(Table({{"", Header()}, {"w", entry}}), {shard});
    return bundle.ok() ? std::string(bundle->Find("w").status().message())
                       : std::string(bundle.status().message());
  };
  EXPECT_EQ(problem(Entry({2, 3}, 0, 24)), "");
  EXPECT_THAT(problem(Entry({2, 3}, 4, 24)), HasSubstr("lies behind the end of its file"));
  EXPECT_THAT(problem(Entry({2, 3}, -4, 24)), HasSubstr("lies behind the end of its file"));
  EXPECT_THAT(problem(Entry({2, 3}, 0, 20)),
              HasSubstr("has 20 bytes, not those of its shape [2,3]"));
  EXPECT_THAT(problem(Entry({int64_t{1} << 40, int64_t{1} << 40}, 0, 20)),
              HasSubstr("variable 'w' in the checkpoint is too large: "));
  EXPECT_THAT(std::string(TensorBundle::Open(index, {}).status().message()),
              HasSubstr("speaks of 1 files of variables, and 0 are there"));
}

}  // namespace
}  // namespace npuc::tf
