// Whole archives: what torch.jit.save writes is read, tensors come out as the IR's.
#include "compiler_core/frontends/torchscript/archive.h"

#include <bit>
#include <string>
#include <vector>

#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMax = int64_t{1} << 30;

TEST(ArchiveTest, SampleIsRead) {
  for (const bool zip64 : {false, true}) {
    const ReadResult result = RunRead(SampleArchive().Zip64(zip64).Bytes());
    ASSERT_TRUE(result.archive.ok()) << result.Text();
    const TorchArchive& a = *result.archive;
    EXPECT_EQ(a.version, 3);
    EXPECT_FALSE(a.big_endian);
    ASSERT_NE(a.FindSource("__torch__.py"), nullptr);
    EXPECT_THAT(a.FindSource("__torch__.py")->text, HasSubstr("class Net"));
    EXPECT_EQ(a.FindSource("__torch__/net.py"), nullptr);
    EXPECT_TRUE(a.constants.empty());
    const PyObject& root = a.values.object(a.root);
    EXPECT_EQ(root.class_name, "__torch__.Net");
    const absl::StatusOr<Tensor> w = MaterializeTensor(a, root.Find("w"), kMax);
    ASSERT_TRUE(w.ok()) << w.status();
    EXPECT_EQ(TypeToString(w->type()), "f32[2,3]");
    EXPECT_THAT(w->ToFloats(), ElementsAre(0, 2, 4, 1, 3, 5));
    EXPECT_TRUE(absl::IsResourceExhausted(MaterializeTensor(a, root.Find("w"), 23).status()));
  }
}

TEST(ArchiveTest, DeflatedEntriesAndForeignOnesAreRead) {
  ZipBuilder zip;
  zip.Stored("__MACOSX/._x", "?").Stored("net/", "").Deflated("net/data.pkl", SampleData());
  zip.Deflated("net/code/__torch__.py", "class Net(Module):\n  pass\n");
  zip.Deflated("net/code/__torch__.py.debug_pkl", "not read");
  zip.Deflated("net/code/__torch__/a.py", "x = 1\n").Deflated("net/constants.pkl", NoConstants());
  zip.Stored("net/version", "10")
      .Stored("net/byteorder", "little")
      .Deflated("net/data/0", Floats(6));
  zip.Stored("net/.data/serialization_id", "123").Stored("net/extra/notes", "hello");
  const ReadResult result = RunRead(zip.Bytes());
  ASSERT_TRUE(result.archive.ok()) << result.Text();
  EXPECT_EQ(result.archive->version, 10);
  ASSERT_EQ(result.archive->sources.size(), 2u);
  EXPECT_EQ(result.archive->sources[0].path, "__torch__.py");
  EXPECT_EQ(result.archive->sources[1].path, "__torch__/a.py");
}

TEST(ArchiveTest, ConstantsHaveStoragesOfTheirOwn) {
  ZipBuilder zip = SampleArchive();
  ZipBuilder with;
  with.Stored("net/data.pkl", SampleData()).Stored("net/data/0", Floats(6));
  with.Stored("net/code/__torch__.py", "pass\n").Stored("net/version", "3\n");
  with.Stored("net/constants.pkl",
              PickleBuilder().Raw("(").Tensor("Float", "0", 2, 1, {1}, {1}).Raw("t").Bytes());
  with.Stored("net/constants/0", Floats(2));
  const ReadResult result = RunRead(with.Bytes());
  ASSERT_TRUE(result.archive.ok()) << result.Text();
  ASSERT_EQ(result.archive->constants.size(), 1u);
  EXPECT_EQ(result.archive->values.storages().size(), 2u);
  const auto tensor = MaterializeTensor(*result.archive, result.archive->constants[0], kMax);
  ASSERT_TRUE(tensor.ok());
  EXPECT_THAT(tensor->ToFloats(), ElementsAre(1));
}

// A tensor of one storage, read from an archive of either byte order.
absl::StatusOr<Tensor> OneTensor(const std::string& type, const std::string& storage,
                                 int64_t elements, const std::vector<int64_t>& sizes,
                                 const std::vector<int64_t>& strides, int64_t offset = 0,
                                 bool big_endian = false) {
  PickleBuilder p;
  p.BeginObject("Net").String("w").Tensor(type, "0", elements, offset, sizes, strides).EndObject();
  ZipBuilder zip = SmallArchive(p.Bytes());
  zip.Stored("net/data/0", storage).Stored("net/byteorder", big_endian ? "big" : "little");
  const ReadResult result = RunRead(zip.Bytes());
  if (!result.archive.ok()) return result.archive.status();
  const TorchArchive& a = *result.archive;
  return MaterializeTensor(a, a.values.object(a.root).Find("w"), kMax);
}

TEST(MaterializeTest, EveryTypeOfTheIr) {
  const std::string bytes("\x00\x3c\x00\xc0\x00\x00\x80\x3f\x00\x00\x00\x00\x00\x00\xf0\x3f", 16);
  const struct {
    const char* type;
    int64_t elements;
    int64_t at;
    const char* expected_type;
    double expected;
  } cases[] = {{"Half", 8, 1, "f16", -2},        {"Float", 4, 1, "f32", 1},
               {"Double", 2, 1, "f64", 1},       {"Byte", 16, 3, "u8", 192},
               {"Char", 16, 3, "i8", -64},       {"Short", 8, 1, "i16", -16384},
               {"Int", 4, 1, "i32", 0x3f800000}, {"Long", 2, 1, "i64", 0x3ff0000000000000},
               {"Bool", 16, 1, "bool", 1}};
  for (const auto& c : cases) {
    const auto tensor = OneTensor(c.type, bytes, c.elements, {1}, {1}, c.at);
    ASSERT_TRUE(tensor.ok()) << c.type << tensor.status();
    EXPECT_EQ(NameOf(tensor->dtype()), c.expected_type);
    EXPECT_EQ(tensor->at(0), c.expected) << c.type;
  }
  const auto bfloat = OneTensor("BFloat16", std::string("\xc0\x3f\x00\xc0", 4), 2, {2}, {1});
  ASSERT_TRUE(bfloat.ok()) << bfloat.status();
  EXPECT_EQ(TypeToString(bfloat->type()), "f32[2]");
  EXPECT_THAT(bfloat->ToFloats(), ElementsAre(1.5, -2));
}

TEST(MaterializeTest, BigEndian) {
  const auto floats =
      OneTensor("Float", std::string("\x3f\x80\x00\x00\xc0\x00\x00\x00", 8), 2, {2}, {1}, 0, true);
  ASSERT_TRUE(floats.ok()) << floats.status();
  EXPECT_THAT(floats->ToFloats(), ElementsAre(1, -2));
  const auto bfloats =
      OneTensor("BFloat16", std::string("\x3f\xc0\xc0\x00", 4), 2, {2}, {1}, 0, true);
  ASSERT_TRUE(bfloats.ok());
  EXPECT_THAT(bfloats->ToFloats(), ElementsAre(1.5, -2));
}

TEST(MaterializeTest, StridesOfEveryKind) {
  const auto floats = [](const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                         int64_t offset) {
    const auto tensor = OneTensor("Float", Floats(12), 12, sizes, strides, offset);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return tensor.ok() ? tensor->ToFloats() : std::vector<float>();
  };
  EXPECT_THAT(floats({}, {}, 7), ElementsAre(7));
  EXPECT_THAT(floats({2, 2}, {0, 0}, 3), ElementsAre(3, 3, 3, 3));  // expanded
  EXPECT_THAT(floats({3}, {4}, 1), ElementsAre(1, 5, 9));           // a column
  EXPECT_THAT(floats({1, 3}, {99, 1}, 2), ElementsAre(2, 3, 4));    // strides of 1s say nothing
  EXPECT_THAT(floats({2, 1, 2, 2}, {4, 4, 1, 2}, 0), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(floats({0, 5}, {5, 1}, 0), ElementsAre());
  EXPECT_THAT(floats({3, 2}, {1, 1}, 0), ElementsAre(0, 1, 1, 2, 2, 3));  // overlapping windows
}

TEST(MaterializeTest, WhatTheIrLacksIsRefusedByName) {
  EXPECT_THAT(OneTensor("ComplexFloat", Floats(2), 1, {1}, {1}).status().message(),
              HasSubstr("complex64"));
  EXPECT_THAT(OneTensor("QUInt4x2", "ab", 2, {2}, {1}).status().message(), HasSubstr("quint4x2"));
  // A stride of 0 makes any size of one element.
  EXPECT_THAT(OneTensor("Float", Floats(1), 1, {1 << 20, 1 << 20}, {0, 0}).status().message(),
              HasSubstr("limit"));
}

TEST(MaterializeTest, EmptyStoragesNeedNoEntry) {
  PickleBuilder p;
  p.BeginObject("Net").String("w").Tensor("Float", "0", 0, 0, {0}, {1}).EndObject();
  const ReadResult result = RunRead(SmallArchive(p.Bytes()).Bytes());
  ASSERT_TRUE(result.archive.ok()) << result.Text();
  const TorchArchive& a = *result.archive;
  const auto tensor = MaterializeTensor(a, a.values.object(a.root).Find("w"), kMax);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->element_count(), 0);
}

}  // namespace
}  // namespace npuc::pt
