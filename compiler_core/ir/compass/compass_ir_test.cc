
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/ir/compass/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::compass {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kSmall[] =
    "model_name=m\nlayer_number=3\ninput_tensors=[x]\noutput_tensors=[y]\n\n"
    "layer_id=0\nlayer_name=x\nlayer_type=Input\nlayer_bottom=[]\nlayer_bottom_shape=[]\n"
    "layer_bottom_type=[]\nlayer_top=[x]\nlayer_top_shape=[[1,5,4,2]]\nlayer_top_type=[float32]\n\n"
    "layer_id=1\nlayer_name=c\nlayer_type=Convolution\nlayer_bottom=[x]\n"
    "layer_bottom_shape=[[1,5,4,2]]\nlayer_bottom_type=[float32]\nlayer_top=[c]\n"
    "layer_top_shape=[[1,3,4,3]]\nlayer_top_type=[float32]\nweights_type=float32\n"
    "weights_offset=0\nweights_size=216\nweights_shape=[3,3,3,2]\nbiases_type=float32\n"
    "biases_offset=216\nbiases_size=12\nbiases_shape=[3]\nkernel_x=3\nkernel_y=3\nstride_x=1\n"
    "stride_y=1\ndilation_x=1\ndilation_y=1\npad_left=1\npad_right=1\npad_top=0\npad_bottom=0\n"
    "group=1\nnum_output=3\nwith_activation=NONE\n\n"
    "layer_id=2\nlayer_name=y\nlayer_type=Softmax\nlayer_bottom=[c]\n"
    "layer_bottom_shape=[[1,3,4,3]]\nlayer_bottom_type=[float32]\nlayer_top=[y]\n"
    "layer_top_shape=[[1,3,4,3]]\nlayer_top_type=[float32]\naxis=3\n\n";

// Every problem of a text, a line each.
std::string ProblemsOf(const std::string& text, std::optional<int64_t> bin_bytes = 228) {
  Diagnostics diagnostics;
  const absl::StatusOr<Document> document = ParseDocument(text, "m.txt", diagnostics);
  if (document.ok()) (void)CheckDocument(*document, bin_bytes, "m.txt", diagnostics);
  std::string all;
  for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&all, d.ToString(), "\n");
  return all;
}

std::string Changed(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kSmall, {{from, to}});
  EXPECT_NE(text, kSmall) << from;
  return text;
}

TEST(CompassIrTest, ASoundTextHasNoProblemAndIsPrintedBack) {
  EXPECT_EQ(ProblemsOf(kSmall), "");
  Diagnostics diagnostics;
  EXPECT_EQ(PrintDocument(*ParseDocument(kSmall, "m.txt", diagnostics)), kSmall);
}

TEST(CompassIrTest, ThePublishedFileIsSoundAndPrintedBack) {
  const std::string text =
      ReadTestFile(SharedFolder() / "fixtures" / "compass" / "compass_kws_o.txt");
  if (text.empty()) GTEST_SKIP() << "no fixtures";
  EXPECT_EQ(ProblemsOf(text, 34292), "");  // its last constant, of 1024 bytes, begins at 33268
  EXPECT_THAT(ProblemsOf(text, 34291), HasSubstr("lut ends at byte 34292, the .bin at 34291"));
  Diagnostics diagnostics;
  EXPECT_EQ(PrintDocument(*ParseDocument(text, "m.txt", diagnostics)), text);
}

struct Case {
  const char* from;
  const char* to;
  const char* problem;
};

TEST(CompassIrTest, SaysWhatIsWrongAndWhere) {
  const std::vector<Case> cases = {
      {"model_name=m\n", "model_name\n", "m.txt:1: 'model_name' is no KEY=VALUE"},
      {"axis=3\n", "axis=3\naxis=2\n", "m.txt:57: a second axis in the same block"},
      {"axis=3\n\n", "axis=3\n", "the last layer has no empty line behind it"},
      {"axis=3\n\n", "axis=3", "the last line has no end"},
      {"layer_number=3", "layer_number=4", "m.txt:2: layer_number is 4, but 3 layers follow"},
      {"output_tensors=[y]", "output_tensors=[z]", "names 'z', which no layer makes"},
      {"input_tensors=[x]\n", "", "m.txt:1: the head has no input_tensors"},
      {"layer_id=2", "layer_id=3", "layer_id is 3; layers are counted, and this is number 2"},
      {"layer_name=y", "layer_name=c", "a second layer of this name"},
      {"layer_bottom=[c]", "layer_bottom=[d]", "'d' is made by no layer before this one"},
      {"layer_top=[y]", "layer_top=[c]", "'c' is made a second time"},
      {"layer_bottom=[c]", "layer_bottom=[c,x]", "has 2 names, 1 shapes and 1 types"},
      {"layer_bottom=[c]", "layer_bottom=c", "layer_bottom: is no list [a,b]"},
      {"[[1,3,4,3]]\nlayer_bottom_type=[float32]\nlayer_top=[y]",
       "[[1,3,4,4]]\nlayer_bottom_type=[int8]\nlayer_top=[y]",
       "'c' is [1,3,4,4] here, and [1,3,4,3] in layer 'c', which makes it"},
      {"layer_top_type=[float32]\naxis", "layer_top_type=[float31]\naxis", "'float31' is no type"},
      {"weights_size=216", "weights_size=215", "weights_size is 215, which [3,3,3,2] of float32"},
      {"weights_type=float32\n", "", "weights lacks a sound _offset, _size, _type or _shape"},
      {"biases_offset=216", "biases_offset=220", "biases ends at byte 232, the .bin at 228"},
      {"biases_offset=216", "biases_offset=212", "biases begins within weights of layer 'c'"},
      {"kernel_y=3\n", "", "has no kernel_y"},
      {"kernel_y=3", "kernel_y=9", "the window does not fit 5 with its pads"},
      {"stride_y=1", "stride_y=0", "kernel, stride and dilation are at least 1"},
      {"stride_y=1", "stride_y=2", "[1,3,4,3] is written, [1,2,4,3] follows"},
      {"group=1", "group=2", "2 does not divide 2 and 3 channels"},
      {"num_output=3", "num_output=4", "weights_shape: [3,3,3,2] is written, [4,3,3,2] follows"},
      {"num_output=3", "num_output=three", "'three' is no whole number below 2^31"},
      {"axis=3", "layer_top_scale=[1]\naxis=3", "layer_top_scale: stands without layer_top_zp"},
      {"axis=3", "layer_top_range=[[3,1]]\naxis=3", "is no list of 1 pairs [least,greatest]"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(ProblemsOf(Changed(c.from, c.to)), HasSubstr(c.problem)) << c.from;
  }
}

// With and without a .bin that bounds it: neither message nor comparison has a sum beyond int64_t.
TEST(CompassIrTest, AnOffsetWhoseEndIsNoNumberIsRefused) {
  const std::string text = Changed("weights_offset=0", "weights_offset=9223372036854775807");
  for (const std::optional<int64_t> bin_bytes : {std::optional<int64_t>(228), {}}) {
    const std::string problems = ProblemsOf(text, bin_bytes);
    EXPECT_THAT(problems, HasSubstr("weights lacks a sound _offset"));
    EXPECT_THAT(problems, Not(HasSubstr("-9223372036854775")));
  }
}

TEST(CompassIrTest, AllProblemsAtOnce) {
  const std::string problems =
      ProblemsOf(absl::StrReplaceAll(kSmall, {{"layer_number=3", "layer_number=9"},
                                              {"stride_y=1", "stride_y=2"},
                                              {"layer_id=2", "layer_id=7"}}));
  EXPECT_THAT(problems, HasSubstr("layer_number is 9"));
  EXPECT_THAT(problems, HasSubstr("follows from the attributes"));
  EXPECT_THAT(problems, HasSubstr("layer_id is 7"));
}

}  // namespace
}  // namespace npuc::compass
