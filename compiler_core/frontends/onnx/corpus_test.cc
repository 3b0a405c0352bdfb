// The fuzz corpus' seeds, made here.
#include <string>

#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/onnx/test_util.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

std::string Convolutions() {
  ModelBuilder b;
  b.Input("x", {1, 2, 6, 6}).Floats("w", {2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).Output("y");
  b.Floats("v", {2}, {1, 2}).Node("Conv", {"x", "w", "v"}, {"c"}).Int("group", 2);
  b.Ints("strides", {2, 2}).String("auto_pad", "SAME_LOWER");
  b.Node("BatchNormalization", {"c", "v", "v", "v", "v"}, {"n"}).Float("epsilon", 0.1f);
  b.Node("ConvTranspose", {"n", "w"}, {"t"}).Ints("strides", {2, 1});
  b.Node("AveragePool", {"t"}, {"p"}).Ints("kernel_shape", {2, 2}).Int("ceil_mode", 1);
  b.Node("MaxPool", {"p"}, {"y"}).Ints("kernel_shape", {2, 1}).Ints("dilations", {2, 1});
  return b.Bytes();
}

std::string Shapes() {
  ModelBuilder b;
  b.Input("x", {2, 4}).Int64s("i", {1, 0}).Int64s("p", {0, 1, 1, 0}).Int64s("n", {-1, 2});
  b.Output("y").Node("Gather", {"x", "i"}, {"g"}).Node("Pad", {"g", "p"}, {"q"});
  b.String("mode", "reflect")
      .Node("Slice", {"q", "i", "n"}, {"s"})
      .Node("Expand", {"s", "n"}, {"e"});
  b.Node("Reshape", {"e", "n"}, {"r"}).Node("Split", {"r"}, {"a", "b"}).Int("axis", 1);
  b.Node("ScatterElements", {"a", "i", "b"}, {"y"}).String("reduction", "add");
  return b.Bytes();
}

std::string Recurrent() {
  ModelBuilder b;
  b.Input("x", {2, 1, 1}).Floats("w", {1, 4, 1}, {1, 2, 3, 4}).Output("h").Output("y");
  b.Node("LSTM", {"x", "w", "w"}, {"y", "h"}).Int("hidden_size", 1).Float("clip", 3);
  return b.Bytes();
}

TEST(OnnxCorpusTest, SeedsAreCommitted) {
  ExpectSeeds("onnx_fuzz", {{"seed_convolutions.onnx", Convolutions()},
                            {"seed_recurrent.onnx", Recurrent()},
                            {"seed_shapes.onnx", Shapes()}});
}

}  // namespace
}  // namespace npuc::onnx
