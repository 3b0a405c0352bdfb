#include "compiler_core/frontends/tensorflow/graphdef.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/tensorflow/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The text of the only diagnostic for bytes that do not parse.
std::string ParseError(absl::string_view bytes, DiagnosticKind kind) {
  Diagnostics diagnostics;
  EXPECT_EQ(GraphFile::Parse(bytes, "m.pb", diagnostics), nullptr);
  EXPECT_EQ(diagnostics.list().size(), 1u);
  if (diagnostics.list().empty()) return "";
  EXPECT_EQ(diagnostics.list()[0].kind, kind) << diagnostics.list()[0].ToString();
  EXPECT_THAT(diagnostics.list()[0].ToString(), HasSubstr("m.pb: "));
  EXPECT_FALSE(diagnostics.list()[0].fix.empty());
  return diagnostics.list()[0].ToString();
}

TEST(ParseTensorNameTest, Forms) {
  EXPECT_EQ(ParseTensorName("a/b")->node, "a/b");
  EXPECT_EQ(ParseTensorName("a:2")->output, 2);
  EXPECT_EQ(ParseTensorName("a:2")->node, "a");
  EXPECT_TRUE(ParseTensorName("^a")->is_control);
  for (absl::string_view bad : {"", ":1", "^", "a:", "a:x", "a:-1", "a:+1", "a: 1", "a:99999999"}) {
    EXPECT_FALSE(ParseTensorName(bad).ok()) << bad;
  }
}

TEST(GraphFileTest, SaysWhatTheFileIs) {
  using std::string;
  const DiagnosticKind kNot = DiagnosticKind::kNotAGraphDef;
  ParseError("", DiagnosticKind::kEmptyModel);
  EXPECT_THAT(ParseError(string("PK\x03\x04rest", 8), kNot), HasSubstr("TorchScript"));
  EXPECT_THAT(ParseError(string("\x1c\0\0\0TFL3\0\0\0\0", 12), kNot), HasSubstr("TensorFlow Lite"));
  EXPECT_THAT(ParseError(string("\x89HDF\r\n\x1a\n", 8), kNot), HasSubstr("HDF5"));
  EXPECT_THAT(ParseError("\x1f\x8b\x08junk", kNot), HasSubstr("gzip"));
  EXPECT_THAT(ParseError("node {\n  name: \"x\"\n}\n", kNot), HasSubstr("pbtxt"));
  EXPECT_THAT(ParseError("version https://git-lfs.github.com/spec/v1\n", kNot),
              HasSubstr("Git LFS"));
  EXPECT_THAT(ParseError("{\"node\": []}", kNot), HasSubstr("JSON"));
  EXPECT_THAT(ParseError("<!DOCTYPE html>", kNot), HasSubstr("HTML"));
  EXPECT_THAT(ParseError("hello", kNot), HasSubstr("looks like text"));
  EXPECT_THAT(ParseError(string("\x08\x01\x12\x04\x0a\x02\x08\x01", 8), kNot),
              HasSubstr("SavedModel"));
  EXPECT_THAT(ParseError(string("\x08\x07\x12\x01x\x3a\x02\x0a\x00", 9), kNot), HasSubstr("ONNX"));
  EXPECT_THAT(ParseError("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", kNot),
              HasSubstr("byte 0 of 12 starts no protobuf field"));
  EXPECT_THAT(ParseError(string("\x28\x01", 2), kNot), HasSubstr("of another kind or damaged"));
}

TEST(GraphFileTest, SaysWhereATruncatedFileEnds) {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 4}).Node("y", "Relu", {"x"}).Type("T", kDtFloat);
  const std::string bytes = b.Bytes();
  const std::string text =
      ParseError(bytes.substr(0, bytes.size() - 12), DiagnosticKind::kTruncatedModel);
  EXPECT_THAT(text, HasSubstr("ends inside a field"));
  EXPECT_THAT(text, HasSubstr("are left of"));
}

TEST(GraphFileTest, ReportsEveryBadNode) {
  GraphDefBuilder b;
  b.Node("a", "Relu").Node("a", "Relu").Node("", "Relu").Node("b", "").Node("a", "Tanh");
  Diagnostics diagnostics;
  EXPECT_EQ(GraphFile::Parse(b.Bytes(), "m.pb", diagnostics), nullptr);
  std::vector<DiagnosticKind> kinds;
  for (const Diagnostic& d : diagnostics.list()) kinds.push_back(d.kind);
  EXPECT_THAT(kinds,
              ElementsAre(DiagnosticKind::kDuplicateNodeName, DiagnosticKind::kMalformedNode,
                          DiagnosticKind::kMalformedNode, DiagnosticKind::kDuplicateNodeName));
}

TEST(GraphFileTest, LimitsInputsAndNames) {
  GraphDefBuilder b;
  b.Node("a", "AddN", std::vector<std::string>(kMaxInputsPerNode + 1, "x"));
  EXPECT_THAT(ParseError(b.Bytes(), DiagnosticKind::kModelLimitExceeded), HasSubstr("4097 inputs"));
  GraphDefBuilder c;
  c.Node(std::string(kMaxNameBytes + 1, 'n'), "Relu");
  ParseError(c.Bytes(), DiagnosticKind::kModelLimitExceeded);
}

TEST(GraphFileTest, RefusesDeepNesting) {
  // An unknown group field nested a thousand deep inside a node.
  std::string nested(1000, '\x53');
  nested += std::string(1000, '\x54');
  GraphDefBuilder b;
  b.Node("a", "Relu");
  ParseError(b.Bytes() + nested, DiagnosticKind::kNotAGraphDef);
}

TEST(NodeViewTest, AttributesAreCheckedByKind) {
  GraphDefBuilder b;
  b.Node("n", "Op").Int("i", 7).Bool("b", true).Float("f", 0.5f).String("s", "NHWC");
  b.Type("t", kDtHalf).Ints("l", {1, 2}).Dims("d", {-1, 3});
  Diagnostics diagnostics;
  const std::string bytes = b.Bytes();
  const auto file = GraphFile::Parse(bytes, "m.pb", diagnostics);
  ASSERT_NE(file, nullptr);
  const NodeView& node = file->node(0);
  EXPECT_EQ(*node.Int("i"), 7);
  EXPECT_TRUE(*node.Bool("b"));
  EXPECT_EQ(*node.Float("f"), 0.5);
  EXPECT_EQ(*node.String("s"), "NHWC");
  EXPECT_EQ(*node.Type("t"), kDtHalf);
  EXPECT_THAT(*node.Ints("l"), ElementsAre(1, 2));
  EXPECT_EQ(ToString(*node.ShapeOf("d")), "[?,3]");
  EXPECT_THAT(node.Int("s").status().message(),
              HasSubstr("attribute 's' is a string; it must be an integer"));
  EXPECT_TRUE(absl::IsNotFound(node.Int("none").status()));
  EXPECT_FALSE(node.TensorOf("l").ok());
}

}  // namespace
}  // namespace npuc::tf
