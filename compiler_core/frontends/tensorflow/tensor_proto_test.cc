#include "compiler_core/frontends/tensorflow/tensor_proto.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBudget = 1 << 20;

fe::tf::TensorProto Proto(fe::tf::DataType dtype, const std::vector<int64_t>& dims) {
  fe::tf::TensorProto proto;
  proto.set_dtype(dtype);
  for (int64_t dim : dims) proto.mutable_tensor_shape()->add_dim()->set_size(dim);
  return proto;
}

// The decoded elements as doubles.
std::vector<double> Decode(const fe::tf::TensorProto& proto) {
  const absl::StatusOr<Tensor> tensor = DecodeTensor(proto, kBudget);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  if (!tensor.ok()) return {};
  std::vector<double> values;
  for (int64_t i = 0; i < tensor->element_count(); ++i) {
    values.push_back(tensor->dtype() == DType::kBool ? tensor->bytes()[static_cast<size_t>(i)]
                                                     : tensor->at(i));
  }
  return values;
}

std::string ErrorOf(const fe::tf::TensorProto& proto, absl::StatusCode code) {
  const absl::StatusOr<Tensor> tensor = DecodeTensor(proto, kBudget);
  EXPECT_EQ(tensor.status().code(), code) << tensor.status();
  return std::string(tensor.status().message());
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(DecodeTensorTest, ContentOfEveryType) {
  const auto content = [](fe::tf::DataType dtype, std::string bytes) {
    fe::tf::TensorProto proto = Proto(dtype, {2});
    proto.set_tensor_content(std::move(bytes));
    return Decode(proto);
  };
  EXPECT_THAT(content(fe::tf::DT_FLOAT, Bytes<float>({1.5f, -2})), ElementsAre(1.5, -2));
  EXPECT_THAT(content(fe::tf::DT_DOUBLE, Bytes<double>({1e300, -2})), ElementsAre(1e300, -2));
  EXPECT_THAT(content(fe::tf::DT_HALF, Bytes<uint16_t>({0x3c00, 0xc000})), ElementsAre(1, -2));
  EXPECT_THAT(content(fe::tf::DT_BFLOAT16, Bytes<uint16_t>({0x3f80, 0xc000})), ElementsAre(1, -2));
  EXPECT_THAT(content(fe::tf::DT_INT8, Bytes<int8_t>({-128, 127})), ElementsAre(-128, 127));
  EXPECT_THAT(content(fe::tf::DT_UINT8, Bytes<uint8_t>({0, 255})), ElementsAre(0, 255));
  EXPECT_THAT(content(fe::tf::DT_INT16, Bytes<int16_t>({-300, 300})), ElementsAre(-300, 300));
  EXPECT_THAT(content(fe::tf::DT_UINT16, Bytes<uint16_t>({1, 65535})), ElementsAre(1, 65535));
  EXPECT_THAT(content(fe::tf::DT_INT32, Bytes<int32_t>({-70000, 7})), ElementsAre(-70000, 7));
  EXPECT_THAT(content(fe::tf::DT_UINT32, Bytes<uint32_t>({4000000000u, 7})), ElementsAre(4e9, 7));
  EXPECT_THAT(content(fe::tf::DT_INT64, Bytes<int64_t>({-5, 1ll << 40})),
              ElementsAre(-5, 1099511627776.0));
  EXPECT_THAT(content(fe::tf::DT_UINT64, Bytes<uint64_t>({5, 1ull << 40})),
              ElementsAre(5, 1099511627776.0));
  EXPECT_THAT(content(fe::tf::DT_BOOL, std::string("\x02\x00", 2)), ElementsAre(1, 0));
}

TEST(DecodeTensorTest, ValueListOfEveryType) {
  fe::tf::TensorProto p = Proto(fe::tf::DT_FLOAT, {2});
  p.add_float_val(1.5f);
  p.add_float_val(-2);
  EXPECT_THAT(Decode(p), ElementsAre(1.5, -2));
  p = Proto(fe::tf::DT_DOUBLE, {1});
  p.add_double_val(1e300);
  EXPECT_THAT(Decode(p), ElementsAre(1e300));
  p = Proto(fe::tf::DT_HALF, {1});
  p.add_half_val(0xc000);
  EXPECT_THAT(Decode(p), ElementsAre(-2));
  p.set_dtype(fe::tf::DT_BFLOAT16);
  EXPECT_THAT(Decode(p), ElementsAre(-2));
  for (auto dtype : {fe::tf::DT_INT32, fe::tf::DT_INT16, fe::tf::DT_INT8}) {
    p = Proto(dtype, {1});
    p.add_int_val(-7);
    EXPECT_THAT(Decode(p), ElementsAre(-7)) << dtype;
  }
  for (auto dtype : {fe::tf::DT_UINT8, fe::tf::DT_UINT16}) {
    p = Proto(dtype, {1});
    p.add_int_val(200);
    EXPECT_THAT(Decode(p), ElementsAre(200)) << dtype;
  }
  p = Proto(fe::tf::DT_INT64, {1});
  p.add_int64_val(-(1ll << 40));
  EXPECT_THAT(Decode(p), ElementsAre(-1099511627776.0));
  p = Proto(fe::tf::DT_UINT32, {1});
  p.add_uint32_val(4000000000u);
  EXPECT_THAT(Decode(p), ElementsAre(4e9));
  p = Proto(fe::tf::DT_UINT64, {1});
  p.add_uint64_val(9);
  EXPECT_THAT(Decode(p), ElementsAre(9));
  p = Proto(fe::tf::DT_BOOL, {2});
  p.add_bool_val(true);
  p.add_bool_val(false);
  EXPECT_THAT(Decode(p), ElementsAre(1, 0));
}

TEST(DecodeTensorTest, ShortListRepeatsItsLastValue) {
  fe::tf::TensorProto p = Proto(fe::tf::DT_FLOAT, {2, 2});
  p.add_float_val(1);
  p.add_float_val(3);
  EXPECT_THAT(Decode(p), ElementsAre(1, 3, 3, 3));
}

TEST(DecodeTensorTest, EmptyListIsZerosAndEmptyTensorIsEmpty) {
  EXPECT_THAT(Decode(Proto(fe::tf::DT_INT32, {3})), ElementsAre(0, 0, 0));
  EXPECT_THAT(Decode(Proto(fe::tf::DT_FLOAT, {})), ElementsAre(0));
  EXPECT_THAT(Decode(Proto(fe::tf::DT_FLOAT, {0, 5})), ElementsAre());
}

TEST(DecodeTensorTest, RefusesWhatDoesNotFit) {
  fe::tf::TensorProto p = Proto(fe::tf::DT_FLOAT, {2});
  p.set_tensor_content("1234567");
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kInvalidArgument),
              HasSubstr("tensor_content has 7 bytes, but 2 elements of DT_FLOAT need 8"));
  p = Proto(fe::tf::DT_FLOAT, {1});
  p.add_float_val(1);
  p.add_float_val(1);
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kInvalidArgument),
              HasSubstr("2 values in float_val for 1 elements"));
  p = Proto(fe::tf::DT_FLOAT, {2});
  p.add_int_val(1);
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kInvalidArgument),
              HasSubstr("has its values in int_val, not in float_val"));
  p = Proto(fe::tf::DT_UINT64, {1});
  p.add_uint64_val(~0ull);
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kInvalidArgument), HasSubstr("above 2^63 - 1"));
  p = Proto(fe::tf::DT_UINT64, {1});
  p.set_tensor_content("\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kInvalidArgument), HasSubstr("above 2^63 - 1"));
}

TEST(DecodeTensorTest, RefusesTypesWithoutValues) {
  EXPECT_THAT(ErrorOf(Proto(fe::tf::DT_STRING, {}), absl::StatusCode::kUnimplemented),
              HasSubstr("DT_STRING"));
  fe::tf::TensorProto p = Proto(fe::tf::DT_FLOAT, {});
  p.set_dtype(static_cast<fe::tf::DataType>(4711));
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kUnimplemented), HasSubstr("DataType 4711"));
}

TEST(DecodeTensorTest, LimitsComeBeforeAllocation) {
  fe::tf::TensorProto p = Proto(fe::tf::DT_FLOAT, {1ll << 20, 1ll << 20});
  p.add_float_val(1);
  ErrorOf(p, absl::StatusCode::kInvalidArgument);
  p = Proto(fe::tf::DT_FLOAT, {1ll << 62, 1ll << 62, 4});
  ErrorOf(p, absl::StatusCode::kInvalidArgument);
  p = Proto(fe::tf::DT_FLOAT, {-1});
  ErrorOf(p, absl::StatusCode::kInvalidArgument);
  p = Proto(fe::tf::DT_FLOAT, {kBudget});
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kResourceExhausted), HasSubstr("4194304 bytes"));
  p = Proto(fe::tf::DT_FLOAT, std::vector<int64_t>(300, 1));
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kInvalidArgument), HasSubstr("300 dimensions"));
  p = Proto(fe::tf::DT_FLOAT, {});
  p.mutable_tensor_shape()->set_unknown_rank(true);
  EXPECT_THAT(ErrorOf(p, absl::StatusCode::kInvalidArgument), HasSubstr("unknown rank"));
}

}  // namespace
}  // namespace npuc::tf
