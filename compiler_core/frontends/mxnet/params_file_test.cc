#include "compiler_core/frontends/mxnet/params_file.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/files_test_util.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/frontends/mxnet/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::mxnet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Parsed {
  explicit Parsed(std::string file) : bytes(std::move(file)), source(bytes) {
    Diagnostics diagnostics;
    params = ParamsFile::Parse(source, "m.params", diagnostics);
    EXPECT_EQ(params == nullptr, diagnostics.has_errors());
    for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&problems, d.ToString(), "\n");
  }

  std::string bytes;
  ViewSource source;
  std::unique_ptr<ParamsFile> params;
  std::string problems;
};

Tensor Decoded(const ParamsFile& params, absl::string_view name) {
  const ParamsFile::Array* const array = params.Find(name);
  if (array == nullptr) {
    ADD_FAILURE() << "no array " << name;
    return Tensor();
  }
  absl::StatusOr<Tensor> tensor = params.Decode(*array, 1 << 20);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : Tensor();
}

TEST(MxNetParamsTest, ReadsEveryVersionOfAnArray) {
  for (int version = 0; version <= 3; ++version) {
    const Parsed parsed(ParamsBytes({{"arg:w", ArrayBytes(version, {2, 3}, {1, 2, 3, 4, 5, 6})},
                                     {"aux:m", ArrayBytes(version, {2}, {7, 8})},
                                     {"plain", ArrayBytes(version, {1}, {9})}}));
    ASSERT_NE(parsed.params, nullptr) << parsed.problems;
    EXPECT_EQ(Decoded(*parsed.params, "w"), Tensor::FromFloats({2, 3}, {1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(Decoded(*parsed.params, "m"), Tensor::FromFloats({2}, {7, 8}));
    EXPECT_EQ(Decoded(*parsed.params, "plain"), Tensor::FromFloats({1}, {9}));
    EXPECT_EQ(parsed.params->Find("arg:w"), nullptr);
  }
}

TEST(MxNetParamsTest, ReadsEveryElementType) {
  std::string halves;
  AppendNumber<uint16_t>(halves, FloatToHalf(-0.5f));
  std::string doubles;
  AppendNumber<double>(doubles, 0.25);
  std::string bfloats;
  AppendNumber<uint16_t>(bfloats, 0x4049);
  std::string longs;
  AppendNumber<uint64_t>(longs, 77);
  const Parsed parsed(ParamsBytes({{"f16", ArrayBytes(2, {1}, 2, halves)},
                                   {"f64", ArrayBytes(2, {1}, 1, doubles)},
                                   {"bf16", ArrayBytes(2, {1}, 12, bfloats)},
                                   {"i8", ArrayBytes(2, {2}, 5, "\xff\x01")},
                                   {"bool", ArrayBytes(2, {2}, 7, absl::string_view("\x02\0", 2))},
                                   {"u64", ArrayBytes(2, {1}, 11, longs)}}));
  ASSERT_NE(parsed.params, nullptr) << parsed.problems;
  EXPECT_THAT(Decoded(*parsed.params, "f16").ToFloats(), ElementsAre(-0.5f));
  EXPECT_THAT(Decoded(*parsed.params, "f64").ToFloats(), ElementsAre(0.25f));
  EXPECT_THAT(Decoded(*parsed.params, "bf16").ToFloats(), ElementsAre(3.140625f));
  EXPECT_THAT(Decoded(*parsed.params, "i8").ToFloats(), ElementsAre(-1, 1));
  EXPECT_THAT(Decoded(*parsed.params, "bool").ToFloats(), ElementsAre(1, 0));
  EXPECT_EQ(Decoded(*parsed.params, "u64").dtype(), DType::kInt64);
}

TEST(MxNetParamsTest, AScalarIsOneOfVersion3Alone) {
  const Parsed scalar(ParamsBytes({{"s", ArrayBytes(3, {}, {5})}}));
  ASSERT_NE(scalar.params, nullptr) << scalar.problems;
  EXPECT_EQ(Decoded(*scalar.params, "s"), Tensor::ScalarFloat(5));
  // Before that no dimensions mean no array, and nothing follows.
  std::string none;
  AppendNumber<uint32_t>(none, 0xF993FAC8);
  AppendNumber<uint32_t>(none, 0);
  const Parsed missing(ParamsBytes({{"n", none}, {"w", ArrayBytes(1, {1}, {4})}}));
  ASSERT_NE(missing.params, nullptr) << missing.problems;
  EXPECT_FALSE(missing.params->Decode(*missing.params->Find("n"), 1 << 20).ok());
  EXPECT_EQ(Decoded(*missing.params, "w"), Tensor::FromFloats({1}, {4}));
}

TEST(MxNetParamsTest, RefusesWhatIsCutShort) {
  const std::string whole = ParamsBytes({{"w", ArrayBytes(2, {2}, {1, 2})}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const Parsed parsed(whole.substr(0, size));
    EXPECT_EQ(parsed.params, nullptr) << size;
    EXPECT_THAT(parsed.problems, HasSubstr("NPUC1196")) << size;
  }
}

TEST(MxNetParamsTest, RefusesSizesThatAreNotThere) {
  std::string huge = ArrayBytes(2, {1 << 20, 1 << 20}, {});
  EXPECT_THAT(Parsed(ParamsBytes({{"w", huge}})).problems, HasSubstr("NPUC1196"));
  std::string negative = ArrayBytes(2, {-4}, {});
  EXPECT_THAT(Parsed(ParamsBytes({{"w", negative}})).problems, HasSubstr("NPUC1196"));
  std::string deep;
  AppendNumber<uint32_t>(deep, 33);
  EXPECT_THAT(Parsed(ParamsBytes({{"w", deep}})).problems, HasSubstr("33 dimensions"));
  EXPECT_THAT(Parsed(ParamsBytes({{"w", ArrayBytes(2, {1}, 99, "x")}})).problems,
              HasSubstr("element type 99"));
  std::string many = ParamsBytes({});
  const uint64_t count = uint64_t{1} << 60;
  std::memcpy(many.data() + 16, &count, sizeof(count));
  EXPECT_THAT(Parsed(many).problems, HasSubstr("more than"));
  EXPECT_THAT(Parsed("{\"nodes\": []}").problems, HasSubstr("is no .params file"));
}

TEST(MxNetParamsTest, RefusesSparseArrays) {
  std::string sparse;
  AppendNumber<uint32_t>(sparse, 0xF993FAC9);
  AppendNumber<int32_t>(sparse, 1);
  EXPECT_THAT(Parsed(ParamsBytes({{"w", sparse}})).problems, HasSubstr("sparse"));
}

// MXNet's own test of the format holds six times the numbers from 0 to 127, without names.
TEST(MxNetParamsTest, ReadsTheOldestFileOfMxNet) {
  const std::string file = ReadTestFile(SharedFolder() / "suites/mxnet/ndarray/legacy_ndarray.v0");
  if (file.empty()) GTEST_SKIP() << "the shared folder is missing";
  const Parsed parsed(file);
  ASSERT_NE(parsed.params, nullptr) << parsed.problems;
  ASSERT_EQ(parsed.params->arrays().size(), 6);
  for (const ParamsFile::Array& array : parsed.params->arrays()) {
    const absl::StatusOr<Tensor> tensor = parsed.params->Decode(array, 1 << 20);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    ASSERT_EQ(tensor->shape(), Shape{128});
    for (int64_t i = 0; i < 128; ++i) EXPECT_EQ(tensor->at(i), static_cast<double>(i));
  }
}

}  // namespace
}  // namespace npuc::mxnet
