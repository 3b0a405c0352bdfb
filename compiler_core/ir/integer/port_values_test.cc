#include "compiler_core/ir/integer/port_values.h"

#include <array>

#include "gtest/gtest.h"

namespace npuc::integer {
namespace {

PortTensor Port(DType type, double scale, int64_t zero_point) {
  PortTensor port;
  port.dtype = type;
  port.scale = scale;
  port.zero_point = zero_point;
  return port;
}

TEST(PortValuesTest, TiesGoToEvenAndTheRangeOfTheTypeClips) {
  const PortTensor i8 = Port(DType::kInt8, 0.5, -3);
  EXPECT_EQ(StoredValue(i8, 0), -3);
  EXPECT_EQ(StoredValue(i8, 0.25), -3);
  EXPECT_EQ(StoredValue(i8, 0.75), -1);
  EXPECT_EQ(StoredValue(i8, -0.75), -5);
  EXPECT_EQ(StoredValue(i8, 1e30), 127);
  EXPECT_EQ(StoredValue(i8, -1e30), -128);
  EXPECT_EQ(RealValue(i8, -128), -62.5f);
  EXPECT_EQ(StoredValue(Port(DType::kUint16, 1, 0), 70000), 65535);
  EXPECT_EQ(StoredValue(Port(DType::kUint8, 1, 128), -1000), 0);
}

TEST(PortValuesTest, WhatIsStoredIsLoadedInEachType) {
  for (const DType type :
       {DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16, DType::kInt32}) {
    std::array<char, 32> bytes = {};
    const bool is_signed = type != DType::kUint8 && type != DType::kUint16;
    const int64_t values[] = {is_signed ? -100 : 200, 0, 1, 127};
    for (int64_t i = 0; i < 4; ++i) StoreInteger(type, values[i], bytes.data(), i);
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(LoadInteger(type, bytes.data(), i), values[i]);
    EXPECT_EQ(bytes[static_cast<size_t>(4 * SizeOf(type))], 0);  // nothing behind
  }
}

}  // namespace
}  // namespace npuc::integer
