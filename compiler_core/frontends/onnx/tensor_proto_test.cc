#include "compiler_core/frontends/onnx/tensor_proto.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

using fe::onnx::TensorProto;
using ::testing::ElementsAre;

constexpr int64_t kMaxBytes = 1 << 20;

TEST(OnnxTensorTest, ReadsRawDataAndLists) {
  TensorProto raw;
  raw.set_data_type(TensorProto::BFLOAT16);
  raw.add_dims(2);
  raw.set_raw_data(std::string("\x80\x3f\x00\xc0", 4));
  EXPECT_THAT(DecodeTensor(raw, kMaxBytes)->ToFloats(), ElementsAre(1, -2));
  raw.set_data_type(TensorProto::FLOAT16);
  raw.set_raw_data(std::string("\x00\x3c\x00\xc0", 4));
  EXPECT_THAT(DecodeTensor(raw, kMaxBytes)->ToFloats(), ElementsAre(1, -2));
  EXPECT_EQ(DecodeTensor(raw, kMaxBytes)->dtype(), DType::kFloat32);
  TensorProto list;
  list.set_data_type(TensorProto::FLOAT16);
  list.add_dims(2);
  list.add_int32_data(0x3c00);
  list.add_int32_data(0xc000);
  EXPECT_THAT(DecodeTensor(list, kMaxBytes)->ToFloats(), ElementsAre(1, -2));
}

TEST(OnnxTensorTest, RefusesWrongSizesTypesAndLimits) {
  TensorProto proto;
  proto.set_data_type(TensorProto::FLOAT);
  proto.add_dims(3);
  proto.add_float_data(1);
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeTensor(proto, kMaxBytes).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(DecodeTensor(proto, 8).status()));
  proto.set_data_type(TensorProto::STRING);
  EXPECT_TRUE(absl::IsUnimplemented(DecodeTensor(proto, kMaxBytes).status()));
  proto.set_data_type(TensorProto::UINT64);
  proto.clear_dims();
  proto.add_uint64_data(~uint64_t{0});
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeTensor(proto, kMaxBytes).status()));
}

}  // namespace
}  // namespace npuc::onnx
