// The fuzz corpus' seeds, made here.
#include <string>

#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/tensorflow/test_util.h"
#include "gtest/gtest.h"

namespace npuc::tf {
namespace {

std::string Convolutions() {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 6, 6, 2}).Floats("k", {3, 3, 2, 4}, {1, 2, 3});
  b.Node("c", "Conv2D", {"x", "k"}).Ints("strides", {1, 2, 2, 1}).String("padding", "SAME");
  b.Ints("dilations", {1, 1, 1, 1}).String("data_format", "NHWC");
  b.Floats("v", {4}, {1}).Node("bn", "FusedBatchNormV3", {"c", "v", "v", "v", "v"});
  b.Float("epsilon", 0.001f).Bool("is_training", false);
  b.Floats("d", {2, 2, 4, 1}, {1}).Node("dw", "DepthwiseConv2dNative", {"bn", "d"});
  b.Ints("strides", {1, 1, 1, 1}).String("padding", "VALID");
  b.Node("p", "AvgPool", {"dw"}).Ints("ksize", {1, 2, 2, 1}).Ints("strides", {1, 2, 2, 1});
  b.String("padding", "VALID");
  return b.Bytes();
}

std::string Dilation() {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 6, 2}).Int32s("block", {1}, {2}).Int32s("pad", {1, 2}, {1, 1});
  b.Int32s("axis", {}, {1}).Floats("k", {1, 2, 2, 2}, {1});
  b.Node("s", "SpaceToBatchND", {"x", "block", "pad"}).Node("e", "ExpandDims", {"s", "axis"});
  b.Node("c", "Conv2D", {"e", "k"}).Ints("strides", {1, 1, 1, 1}).String("padding", "VALID");
  b.Node("q", "Squeeze", {"c"}).Ints("squeeze_dims", {1});
  b.Node("y", "BatchToSpaceND", {"q", "block", "pad"});
  return b.Bytes();
}

std::string Shapes() {
  GraphDefBuilder b;
  b.Placeholder("x", {-1, 4}).Node("shape", "Shape", {"x"}).Int32s("z", {1}, {0});
  b.Int32s("o", {1}, {1}).Int32s("s", {}, {2});
  b.Node("n", "StridedSlice", {"shape", "z", "o", "o"}).Int("shrink_axis_mask", 1);
  b.Node("m", "FloorDiv", {"n", "s"}).Node("r", "Range", {"m", "n", "s"});
  b.Node("f", "Cast", {"r"}).Type("DstT", kDtFloat).Node("g", "GatherV2", {"f", "z", "m"});
  b.Node("u", "Unpack", {"x"}).Int("num", 2).Int("axis", 0);
  b.Node("k", "Pack", {"u", "u:1"}).Int("axis", 1).Node("t", "ReverseV2", {"k", "z"});
  b.Int32s("pad", {2, 2}, {1, 1, 0, 2}).Node("p", "Pad", {"t", "pad"});
  b.Node("sum", "Sum", {"p", "z"}).Bool("keep_dims", false).Node("min", "Min", {"p", "o"});
  b.Node("soft", "LogSoftmax", {"sum"});
  return b.Bytes();
}

std::string Control() {
  GraphDefBuilder b;
  b.Placeholder("x", {2}).Bools("p", {}, {true}).Node("s", "Switch", {"x", "p"});
  b.Node("no", "Neg", {"s"}).Node("yes", "Square", {"s:1"}).Node("m", "Merge", {"no", "yes"});
  b.Node("i", "Enter", {"x"}).String("frame_name", "w").Node("l", "Merge", {"i", "n"});
  b.Node("n", "NextIteration", {"l"}).Node("e", "Exit", {"l", "^s"});
  b.Bools("c", {2}, {true, false}).Floats("a", {2}, {1, 2}).Node("v", "Select", {"c", "a", "a"});
  b.Node("w", "AddN", {"v", "m"});
  return b.Bytes();
}

TEST(CorpusTest, SeedsAreCommitted) {
  ExpectSeeds("graphdef_fuzz", {{"seed_control.pb", Control()},
                                {"seed_convolutions.pb", Convolutions()},
                                {"seed_dilation.pb", Dilation()},
                                {"seed_shapes.pb", Shapes()}});
}

}  // namespace
}  // namespace npuc::tf
