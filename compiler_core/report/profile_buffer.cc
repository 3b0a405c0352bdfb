#include "compiler_core/report/profile_buffer.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace npuc {
namespace {

constexpr absl::string_view kMagic = "NPUCPROF";
constexpr uint64_t kVersion = 1;
constexpr size_t kRecordBytes = 64;
constexpr size_t kMd5Chars = 32;
constexpr size_t kHeadBytes = 8 + 4 + 4 + 8 + kMd5Chars;
// The sum of the counters of a file of kMaxProfileBytes is below 2^63.
constexpr uint64_t kMaxCounter = (uint64_t{1} << 42) - 1;

constexpr uint32_t kBarrierBit = 1u << 31;
constexpr int64_t ProfileRecord::*kCounters[] = {&ProfileRecord::cycles,
                                                 &ProfileRecord::aiff_busy_cycles,
                                                 &ProfileRecord::tpc_busy_cycles,
                                                 &ProfileRecord::dma_busy_cycles,
                                                 &ProfileRecord::read_bytes,
                                                 &ProfileRecord::written_bytes,
                                                 &ProfileRecord::macs};

void Append(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// Takes numbers off the front of bytes that are long enough.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}
  uint64_t Number(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
    }
    bytes_.remove_prefix(bytes);
    return value;
  }
  absl::string_view Text(size_t bytes) {
    const absl::string_view text = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return text;
  }

 private:
  absl::string_view bytes_;
};

}  // namespace

std::string WriteProfileBuffer(const ProfileBuffer& buffer) {
  std::string out(kMagic);
  Append(out, kVersion, 4);
  Append(out, kRecordBytes, 4);
  Append(out, buffer.records.size(), 8);
  std::string md5 = buffer.commands_md5;
  md5.resize(kMd5Chars, ' ');
  out += md5;
  for (const ProfileRecord& record : buffer.records) {
    Append(out, record.core | (record.barrier ? kBarrierBit : 0), 4);
    Append(out, record.offset_bytes, 4);
    for (const auto counter : kCounters) Append(out, static_cast<uint64_t>(record.*counter), 8);
  }
  return out;
}

absl::StatusOr<ProfileBuffer> ReadProfileBuffer(absl::string_view bytes) {
  if (bytes.size() < kHeadBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError(
        "is no profile of a run, which begins with NPUCPROF and has a head of 56 bytes");
  }
  Reader reader(bytes.substr(kMagic.size()));
  const uint64_t version = reader.Number(4);
  const uint64_t record_bytes = reader.Number(4);
  const uint64_t records = reader.Number(8);
  if (version != kVersion || record_bytes != kRecordBytes) {
    return absl::InvalidArgumentError(absl::StrCat("is a profile of version ", version,
                                                   " with records of ", record_bytes,
                                                   " bytes; read are version 1 and 64 bytes"));
  }
  const size_t rest = bytes.size() - kHeadBytes;
  if (rest % kRecordBytes != 0 || records != rest / kRecordBytes) {
    return absl::InvalidArgumentError(absl::StrCat("claims ", records, " records of 64 bytes, and ",
                                                   rest, " bytes follow its head"));
  }
  ProfileBuffer buffer;
  buffer.commands_md5 = std::string(reader.Text(kMd5Chars));
  buffer.records.resize(static_cast<size_t>(records));
  for (ProfileRecord& record : buffer.records) {
    const uint32_t core = static_cast<uint32_t>(reader.Number(4));
    record.core = core & ~kBarrierBit;
    record.barrier = (core & kBarrierBit) != 0;
    record.offset_bytes = static_cast<uint32_t>(reader.Number(4));
    for (const auto counter : kCounters) {
      const uint64_t value = reader.Number(8);
      if (value > kMaxCounter) {
        return absl::InvalidArgumentError(
            absl::StrCat("has a counter of ", value, "; the largest is ", kMaxCounter));
      }
      record.*counter = static_cast<int64_t>(value);
    }
  }
  return buffer;
}

}  // namespace npuc
