#include "server/http/compress.h"

#include <zlib.h>

#include "gtest/gtest.h"

namespace npuc::http {
namespace {

std::string Gunzip(const std::string& bytes, size_t size) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(size + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(CompressTest, BothLevelsGiveTheBytesBack) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 10007) + ",";
  for (const int level : {kQuickGzip, kBestGzip}) {
    const std::string small = Gzip(text, level);
    EXPECT_LT(small.size(), text.size() / 2);
    EXPECT_EQ(Gunzip(small, text.size()), text);
  }
  EXPECT_EQ(Gunzip(Gzip("", kQuickGzip), 0), "");
}

TEST(CompressTest, WhatAcceptEncodingSays) {
  EXPECT_TRUE(AcceptsGzip("gzip"));
  EXPECT_TRUE(AcceptsGzip("br, GZIP;q=0.5, deflate"));
  EXPECT_FALSE(AcceptsGzip("br, gzip;q=0"));
  EXPECT_FALSE(AcceptsGzip("gzip;q=x"));
  EXPECT_FALSE(AcceptsGzip(""));
  EXPECT_FALSE(AcceptsGzip("*;q=0, br"));
  EXPECT_TRUE(IsCompressible("application/json"));
  EXPECT_FALSE(IsCompressible("application/octet-stream"));
  EXPECT_FALSE(IsCompressible("text-of-mine/x"));
}

}  // namespace
}  // namespace npuc::http
