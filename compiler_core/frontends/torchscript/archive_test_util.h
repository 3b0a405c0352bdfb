#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_TEST_UTIL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/torchscript/archive.h"

namespace npuc::pt {

// Writes zip files for tests, honest ones and others.
class ZipBuilder {
 public:
  struct Entry {
    std::string name;
    std::string data;  // as it is in the file
    uint16_t method = 0;
    uint16_t flags = 0;
    uint64_t size = 0;  // decompressed, as claimed
    uint32_t crc = 0;
    int64_t local_offset = -1;  // claimed instead of the true one where not negative
  };

  ZipBuilder& Stored(absl::string_view name, absl::string_view data);
  ZipBuilder& Deflated(absl::string_view name, absl::string_view data);
  // The last entry added, to lie about it.
  Entry& last() { return entries_.back(); }
  ZipBuilder& Zip64(bool on);
  std::string Bytes() const;

 private:
  std::vector<Entry> entries_;
  bool zip64_ = false;
};

// Writes pickles as torch does, instruction by instruction.
class PickleBuilder {
 public:
  PickleBuilder() : bytes_("\x80\x02") {}

  PickleBuilder& Raw(absl::string_view bytes);
  PickleBuilder& Global(absl::string_view module, absl::string_view name);
  PickleBuilder& String(absl::string_view text);
  PickleBuilder& Int(int64_t value);  // as LONG1 of 8 bytes where it has more than 31 bits
  PickleBuilder& Float(double value);
  PickleBuilder& Ints(const std::vector<int64_t>& values);  // a tuple
  // Tensor of a storage: torch type name ("Float"), key, elements; then what it looks at.
  PickleBuilder& Storage(absl::string_view type, absl::string_view key, int64_t elements);
  PickleBuilder& Tensor(absl::string_view type, absl::string_view key, int64_t elements,
                        int64_t offset, const std::vector<int64_t>& sizes,
                        const std::vector<int64_t>& strides);
  // An object of class __torch__.NAME: attributes go between these two, name and value in turn.
  PickleBuilder& BeginObject(absl::string_view class_name);
  PickleBuilder& EndObject();
  std::string Bytes() const { return bytes_ + "."; }  // with STOP

 private:
  std::string bytes_;
};

// A whole small archive below "net/": the module's class is __torch__.Net.
ZipBuilder SmallArchive(const std::string& data_pkl);
// As above, of a module with one attribute `w`: 2x3 floats 0..5 with strides (1, 2).
ZipBuilder SampleArchive();
std::string SampleData();       // its data.pkl
std::string Floats(int count);  // 0, 1, 2 ... as little-endian floats
std::string NoConstants();      // constants.pkl of an archive that has none

struct ReadResult {
  absl::StatusOr<TorchArchive> archive;
  Diagnostics diagnostics;
  std::shared_ptr<const std::string> bytes;  // which the archive looks at
  std::string Text() const;                  // "NPUC1130 net.pt: ...", a line each
  int CountOf(DiagnosticKind kind) const;
};
ReadResult RunRead(absl::string_view bytes, const ArchiveLimits& limits = {});
// What Unpickle gives for one pickle on its own.
struct UnpickleResult {
  PyValues values;
  PyId root;
  Diagnostics diagnostics;
  std::string Text() const;
};
UnpickleResult RunUnpickle(absl::string_view bytes, const PickleLimits& limits = {});

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ARCHIVE_TEST_UTIL_H_
