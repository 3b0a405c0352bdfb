#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/frontends/caffe/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::caffe {
namespace {

using ::testing::HasSubstr;

// The net in both forms: a convolution, a pooling, a product.
std::string SmallModel() {
  const std::string conv =
      BytesField(1, "c") + BytesField(2, "Convolution") + BytesField(3, "x") + BytesField(4, "c") +
      BytesField(7, BlobBytes({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})) +
      BytesField(7, BlobBytes({2}, {1, 2})) + BytesField(106, IntField(1, 2) + IntField(4, 2));
  const std::string pool = BytesField(1, "p") + BytesField(2, "Pooling") + BytesField(3, "c") +
                           BytesField(4, "p") +
                           BytesField(121, IntField(1, 1) + IntField(2, 2) + IntField(3, 2));
  const std::string product = BytesField(1, "f") + BytesField(2, "InnerProduct") +
                              BytesField(3, "p") + BytesField(4, "f") +
                              BytesField(7, BlobBytes({1, 8}, {1, 2, 3, 4, 5, 6, 7, 8})) +
                              BytesField(117, IntField(1, 1) + IntField(2, 0));
  return BytesField(1, "net") + BytesField(3, "x") +
         BytesField(8, IntField(1, 1) + IntField(1, 1) + IntField(1, 4) + IntField(1, 4)) +
         BytesField(100, conv) + BytesField(100, pool) + BytesField(100, product);
}

const char kSmallText[] = R"(input: "x" input_dim: 1 input_dim: 1 input_dim: 4 input_dim: 4
layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 2 kernel_size: 2 } }
layer { name: "p" type: "Pooling" bottom: "c" top: "p" pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "f" type: "InnerProduct" bottom: "p" top: "f" inner_product_param { num_output: 1 bias_term: false } }
)";

void ExpectRefusedOrRead(const ImportResult& result, size_t at) {
  EXPECT_EQ(result.graph.ok(), !result.diagnostics.has_errors()) << at;
  EXPECT_FALSE(absl::IsInternal(result.graph.status())) << at << ": " << result.Text();
}

TEST(CaffeHostileTest, TheSmallNetIsRead) {
  EXPECT_TRUE(RunImport(SmallModel(), std::nullopt).graph.ok())
      << RunImport(SmallModel(), std::nullopt).Text();
  EXPECT_TRUE(RunImport(SmallModel(), kSmallText).graph.ok());
}

TEST(CaffeHostileTest, EveryTruncationIsRefusedOrRead) {
  const std::string model = SmallModel();
  for (size_t size = 0; size < model.size(); ++size) {
    ExpectRefusedOrRead(RunImport(model.substr(0, size), std::nullopt), size);
  }
  const std::string text = kSmallText;
  for (size_t size = 0; size < text.size(); ++size) {
    ExpectRefusedOrRead(RunImport(model, text.substr(0, size)), size);
  }
}

TEST(CaffeHostileTest, EveryFlippedByteIsRefusedOrRead) {
  const auto flipped = [](std::string bytes, size_t at, unsigned char flip) {
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ flip);
    return bytes;
  };
  const std::string model = SmallModel();
  const std::string text = kSmallText;
  for (const unsigned char flip : {0x01, 0x10, 0x80, 0xff}) {
    for (size_t at = 0; at < model.size(); ++at) {
      ExpectRefusedOrRead(RunImport(flipped(model, at, flip), std::nullopt), at);
    }
    for (size_t at = 0; at < text.size(); ++at) {
      ExpectRefusedOrRead(RunImport(model, flipped(text, at, flip)), at);
    }
  }
}

TEST(CaffeHostileTest, RefusesWhatIsNoModel) {
  EXPECT_EQ(RunImport("", std::nullopt).CountOf(DiagnosticKind::kEmptyModel), 1);
  const ImportResult swapped = RunImport(kSmallText, std::nullopt);
  EXPECT_EQ(swapped.CountOf(DiagnosticKind::kNotACaffeModel), 1);
  EXPECT_THAT(swapped.Text(), HasSubstr("name it in PROTOTXT"));
  EXPECT_EQ(RunImport(SmallModel(), "layer {").CountOf(DiagnosticKind::kCaffeTextSyntax), 1);
}

// A layer that reads what a later one gives has no such operand: a net has no circles.
TEST(CaffeHostileTest, ACircleLacksItsFirstOperand) {
  const ImportResult result = RunImport(SmallModel(),
                                        "layer { name: 'a' type: 'ReLU' bottom: 'b' top: 'a' }\n"
                                        "layer { name: 'b' type: 'ReLU' bottom: 'a' top: 'b' }\n");
  EXPECT_EQ(result.CountOf(DiagnosticKind::kMissingProducer), 1) << result.Text();
}

TEST(CaffeHostileTest, RefusesHugeNumbersBeforeAllocating) {
  const std::string wide =
      "input: 'x' input_dim: 1099511627776 input_dim: 1 input_dim: 1 "
      "input_dim: 1\nlayer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }";
  EXPECT_EQ(RunImport(SmallModel(), wide).CountOf(DiagnosticKind::kInputShapeConflict), 1);
  for (const char* params : {"type: 'Pooling' pooling_param { kernel_size: 2147483647 }",
                             "type: 'Tile' tile_param { tiles: 1000000 }",
                             "type: 'Upsample' upsample_param { scale: 1000000 }",
                             "type: 'Interp' interp_param { height: 1000000 width: 1000000 }",
                             "type: 'LRN' lrn_param { local_size: 1000001 }",
                             "type: 'Reshape' reshape_param { shape { dim: 9007199254740992 } }",
                             "type: 'Reshape' reshape_param { shape { dim: -1 dim: -1 } }",
                             "type: 'Slice' slice_param { slice_point: -5 }",
                             "type: 'Permute' permute_param { order: 99 }"}) {
    const ImportResult result =
        RunImport(SmallModel(),
                  absl::StrCat("input: 'x' input_dim: 1 input_dim: 2 input_dim: 4 input_dim: 4\n"
                               "layer { name: 'l' bottom: 'x' top: 'y' ",
                               params, " }"));
    EXPECT_TRUE(result.diagnostics.has_errors()) << params;
    EXPECT_FALSE(absl::IsInternal(result.graph.status())) << params << result.Text();
  }
}

TEST(CaffeHostileTest, SeedsAreCommitted) {
  ExpectSeeds("caffe_fuzz", {{"seed_net.caffemodel", SmallModel()},
                             {"seed_net_and_text", SmallModel() + "\n%%\n" + kSmallText}});
}

}  // namespace
}  // namespace npuc::caffe
