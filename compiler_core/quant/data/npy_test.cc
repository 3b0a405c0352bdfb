#include "compiler_core/quant/data/npy.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string File(absl::string_view header, absl::string_view data) {
  std::string out = absl::StrCat("\x93NUMPY", absl::string_view("\1\0", 2));
  out.push_back(static_cast<char>(header.size()));
  out.push_back('\0');
  return absl::StrCat(out, header, data);
}

TEST(Npy, ReadsWhatItWritesInEveryTypeAndRank) {
  for (const DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kInt16,
        DType::kInt32, DType::kInt64, DType::kUint8, DType::kUint16}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {3}, {2, 3}, {0, 7}, {1, 2, 3, 1}}) {
      NpyArray array;
      array.dtype = dtype;
      array.shape = shape;
      for (int64_t i = 0; i < array.element_count() * SizeOf(dtype); ++i) {
        array.bytes.push_back(static_cast<char>(7 * i));
      }
      const absl::StatusOr<std::string> file = WriteNpy(array);
      ASSERT_TRUE(file.ok()) << file.status();
      EXPECT_EQ((file->size() - array.bytes.size()) % 64, 0u);
      const absl::StatusOr<NpyArray> back = ReadNpy(*file);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(back->dtype, dtype);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(back->bytes, array.bytes);
      for (size_t size = 0; size < file->size(); ++size) {
        EXPECT_FALSE(ReadNpy(absl::string_view(*file).substr(0, size)).ok());
      }
    }
  }
}

TEST(Npy, ReadsWhatNumpyWrites) {
  // numpy.save of an int32 array, as numpy 1.24 lays out its header.
  const absl::StatusOr<NpyArray> array =
      ReadNpy(File("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }          \n",
                   absl::string_view("\1\0\0\0\2\0\0\0", 8)));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape, ElementsAre(2));
  EXPECT_EQ(array->dtype, DType::kInt32);
}

TEST(Npy, SaysWhatIsWrong) {
  const auto problem = [](absl::string_view header) {
    return std::string(ReadNpy(File(header, "12345678")).status().message());
  };
  EXPECT_THAT(problem("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}"),
              HasSubstr("its type is '>f4'"));
  EXPECT_THAT(problem("{'descr': '<f4', 'fortran_order': True, 'shape': (2,1)}"),
              HasSubstr("Fortran order"));
  EXPECT_THAT(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"),
              HasSubstr("it holds 8 bytes of data; its shape needs 12"));
  EXPECT_THAT(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}"),
              HasSubstr("a dimension is '-2'"));
  EXPECT_THAT(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,9999999)}"),
              HasSubstr("2^40 elements"));
  EXPECT_THAT(problem("{'fortran_order': False, 'shape': (2,)}"), HasSubstr("no 'descr'"));
  EXPECT_THAT(problem("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
              HasSubstr("another form"));
}

}  // namespace
}  // namespace npuc
