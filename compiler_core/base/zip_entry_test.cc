#include "compiler_core/base/zip_entry.h"

#include <zlib.h>

#include <string>

#include "gtest/gtest.h"

namespace npuc {
namespace {

std::string Deflate(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class ZipEntryTest : public ::testing::Test {
 protected:
  ZipEntryTest() {
    for (int i = 0; i < 5000; ++i) text_ += std::to_string(i * i);
  }
  ZipRecord RecordOf(uint16_t method, const std::string& data) const {
    ZipRecord record;
    record.method = method;
    record.crc = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(text_.data()), text_.size()));
    record.size = text_.size();
    record.compressed_size = data.size();
    record.data_offset = 3;
    return record;
  }
  absl::StatusOr<std::string> Read(const ZipRecord& record, const std::string& data) {
    const std::string archive = "PK " + data;  // a stored entry's content is a view into it
    std::string inflated;
    const auto content = ReadZipEntry(archive, record, inflated);
    if (!content.ok()) return content.status();
    return std::string(*content);
  }
  std::string text_;
};

TEST_F(ZipEntryTest, GivesWhatWasStoredOrDeflated) {
  const std::string deflated = Deflate(text_);
  EXPECT_LT(deflated.size(), text_.size());
  EXPECT_EQ(*Read(RecordOf(kZipStored, text_), text_), text_);
  EXPECT_EQ(*Read(RecordOf(kZipDeflated, deflated), deflated), text_);
}

TEST_F(ZipEntryTest, RefusesAnotherSizeThanTheRecordClaims) {
  const std::string deflated = Deflate(text_);
  ZipRecord record = RecordOf(kZipDeflated, deflated);
  ++record.size;
  EXPECT_EQ(Read(record, deflated).status().message(),
            "claims " + std::to_string(record.size) + " bytes, but has " +
                std::to_string(text_.size()) + " before it ends");
  record.size = 5;
  EXPECT_EQ(Read(record, deflated).status().message(), "claims 5 bytes, but has more");
}

TEST_F(ZipEntryTest, FindsEachDamagedByte) {
  for (const std::string& data : {Deflate(text_), text_}) {
    const ZipRecord record = RecordOf(data == text_ ? kZipStored : kZipDeflated, data);
    for (size_t i = 0; i < data.size(); i += 11) {
      std::string spoilt = data;
      spoilt[i] = static_cast<char>(spoilt[i] ^ 1 << i % 8);
      EXPECT_FALSE(Read(record, spoilt).ok()) << i;
    }
    ZipRecord cut = record;
    --cut.compressed_size;
    EXPECT_FALSE(Read(cut, data).ok());
  }
}

}  // namespace
}  // namespace npuc
