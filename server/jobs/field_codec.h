#ifndef NPUC_SERVER_JOBS_FIELD_CODEC_H_
#define NPUC_SERVER_JOBS_FIELD_CODEC_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc {

// Records as (tag, value) fields, for what the job store keeps. A value is an integer or a byte
// string; a nested record is a byte string. Readers skip tags they do not know, so a record may
// gain fields without a change of format. The bytes are protobuf's wire format restricted to
// varints and length-delimited fields, which lets protoc --decode_raw show a record; no protobuf
// code is used, since generated types stay out of this folder.
class FieldWriter {
 public:
  // Zero and empty values are left out: they are what a reader assumes.
  void Int(uint32_t tag, int64_t value);
  void Bytes(uint32_t tag, absl::string_view value);
  // Kept also where empty: for repeated fields, in which each entry counts.
  void Entry(uint32_t tag, absl::string_view value);
  void Double(uint32_t tag, double value);
  // Fields of FieldReader::field.
  void Fields(absl::string_view stored) { out_.append(stored.data(), stored.size()); }

  const std::string& str() const& { return out_; }
  std::string&& str() && { return std::move(out_); }

 private:
  void Varint(uint64_t value);
  std::string out_;
};

// Walks the fields of a record. The bytes must outlive the reader. Damaged input ends the walk with
// ok() false; nothing is read outside the bytes.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view record) : rest_(record) {}

  // Moves to the next field; false at the end and where the record is damaged.
  bool Next();
  bool ok() const { return ok_; }

  uint32_t tag() const { return tag_; }
  // 0 where the field is a byte string; empty where it is an integer.
  int64_t integer() const { return integer_; }
  absl::string_view bytes() const { return bytes_; }
  double real() const;
  // The whole field, as it is stored.
  absl::string_view field() const { return field_; }

 private:
  bool Varint(uint64_t& value);
  bool Fail() {
    ok_ = false;
    return false;
  }

  absl::string_view rest_;
  bool ok_ = true;
  uint32_t tag_ = 0;
  int64_t integer_ = 0;
  absl::string_view bytes_;
  absl::string_view field_;
};

}  // namespace npuc

#endif  // NPUC_SERVER_JOBS_FIELD_CODEC_H_
