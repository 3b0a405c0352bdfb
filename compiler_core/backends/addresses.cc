#include "compiler_core/backends/addresses.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr char kSection[] = "[reuse]";
constexpr int kMaxProblems = 20;

// One buffer as the file has it.
struct Entry {
  int line = 0;
  std::optional<int64_t> address;
  std::optional<int64_t> size;
  std::optional<std::string> name;
};

// Reads and checks one file.
class AddressReader {
 public:
  AddressReader(absl::string_view file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {}

  // By the buffers' numbers.
  std::map<int, Entry> Read(absl::string_view text) {
    int line = 0;
    for (absl::string_view row : absl::StrSplit(text, '\n')) {
      ++line;
      row = absl::StripAsciiWhitespace(row);
      if (row.empty() || row[0] == ';' || row[0] == '#' || row == kSection) continue;
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(row, absl::MaxSplits('=', 1));
      if (!ReadLine(absl::StripAsciiWhitespace(parts.first),
                    absl::StripAsciiWhitespace(parts.second), line)) {
        Report(line,
               absl::StrCat("'", Printable(row, 80),
                            "' is none of [reuse], addrK = BYTES, sizeK = BYTES and nameK = "
                            "NAME"),
               "write the file again by --dump_addr_cfg");
      }
    }
    return std::move(entries_);
  }

  void Report(int line, std::string message, std::string fix) {
    if (++problems_ > kMaxProblems) return;
    diagnostics_.Add({.kind = DiagnosticKind::kConfigValueNotAllowed,
                      .message = std::move(message),
                      .file = std::string(file_),
                      .line = line,
                      .fix = std::move(fix)});
  }
  bool ok() const { return problems_ == 0; }

 private:
  static std::optional<int64_t> Number(absl::string_view text) {
    int64_t value = 0;
    const bool is_hex = absl::StartsWith(text, "0x") || absl::StartsWith(text, "0X");
    const bool ok = is_hex ? absl::SimpleHexAtoi(text, &value) : absl::SimpleAtoi(text, &value);
    if (!ok || value < 0 || value > kSlotSpanBytes) return std::nullopt;
    return value;
  }

  bool ReadLine(absl::string_view key, absl::string_view value, int line) {
    for (const absl::string_view kind : {"addr", "size", "name"}) {
      absl::string_view digits = key;
      int number = 0;
      if (!absl::ConsumePrefix(&digits, kind) || !absl::SimpleAtoi(digits, &number) || number < 0 ||
          static_cast<size_t>(number) >= kMaxAddressBuffers) {
        continue;
      }
      Entry& entry = entries_[number];
      if (kind == "name") {
        if (entry.name.has_value()) return false;
        entry.name = std::string(value);
        return true;
      }
      std::optional<int64_t>& field = kind == "addr" ? entry.address : entry.size;
      if (field.has_value()) return false;
      field = Number(value);
      if (kind == "addr") entry.line = line;
      return field.has_value();
    }
    return false;
  }

  const absl::string_view file_;
  Diagnostics& diagnostics_;
  std::map<int, Entry> entries_;
  int problems_ = 0;
};

std::string Shown(size_t number, const Buffer& buffer) {
  return absl::StrCat(number, " ('", Printable(buffer.name), "')");
}

// Reports what the file says otherwise of a buffer than the model does.
void CheckEntry(size_t number, const Buffer& buffer, const Entry& entry, int64_t alignment_bytes,
                AddressReader& reader) {
  const std::string shown = Shown(number, buffer);
  if (!entry.address.has_value()) {
    return reader.Report(0, absl::StrCat("the address of buffer ", shown, " is missing"),
                         "write the file again by --dump_addr_cfg");
  }
  if (entry.size.value_or(-1) != buffer.size_bytes ||
      entry.name.value_or("") != Printable(buffer.name)) {
    return reader.Report(
        entry.line,
        absl::StrCat("buffer ", shown, " of ", buffer.size_bytes, " bytes is '",
                     Printable(entry.name.value_or("")), "' of ", entry.size.value_or(0),
                     " bytes in the file, which is of another model or another config"),
        "write the file again by --dump_addr_cfg");
  }
  if (*entry.address % alignment_bytes != 0) {
    reader.Report(entry.line,
                  absl::StrCat("the address of buffer ", shown, " is ", *entry.address,
                               "; it must be a multiple of ", alignment_bytes),
                  "round it up");
  }
}

// Reports two buffers that are in use at one command and share bytes.
void CheckOverlaps(absl::Span<const Buffer> buffers, absl::Span<const LiveRange> ranges,
                   const std::vector<size_t>& order, const std::map<int, Entry>& entries,
                   AddressReader& reader) {
  std::vector<size_t> by_address(order.size());
  std::iota(by_address.begin(), by_address.end(), 0);
  const auto begin = [&](size_t number) { return *entries.at(static_cast<int>(number)).address; };
  std::stable_sort(by_address.begin(), by_address.end(),
                   [&](size_t a, size_t b) { return begin(a) < begin(b); });
  for (size_t i = 0; i < by_address.size(); ++i) {
    const size_t a = by_address[i];
    const int64_t end = begin(a) + buffers[order[a]].size_bytes;
    for (size_t k = i + 1; k < by_address.size() && begin(by_address[k]) < end; ++k) {
      const size_t b = by_address[k];
      if (buffers[order[b]].size_bytes == 0 || !ranges[order[a]].Overlaps(ranges[order[b]])) {
        continue;
      }
      reader.Report(entries.at(static_cast<int>(b)).line,
                    absl::StrCat("buffers ", Shown(a, buffers[order[a]]), " and ",
                                 Shown(b, buffers[order[b]]),
                                 " are in use at one time and share "
                                 "bytes from ",
                                 begin(b), " on"),
                    "move one of the two");
    }
  }
}

}  // namespace

std::string AddressText(absl::Span<const BufferFigures> map) {
  std::string text = absl::StrCat(
      "; Addresses of buffers in data_content. Edit the lines addr; size and name say which buffer "
      "is meant.\n",
      kSection, "\n");
  for (size_t i = 0; i < map.size(); ++i) {
    absl::StrAppendFormat(&text, "addr%d = 0x%x\nsize%d = %d\nname%d = %s\n", i,
                          map[i].offset_bytes, i, map[i].size_bytes, i, Printable(map[i].node));
  }
  return text;
}

absl::Status TakeAddresses(const CompileRequest& request, absl::Span<const LiveRange> ranges,
                           int64_t alignment_bytes, absl::Span<Buffer> buffers, int64_t& data_bytes,
                           Diagnostics& diagnostics) {
  const auto input = request.side_inputs.find(kAddressesRole);
  if (input == request.side_inputs.end()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string text,
                   ReadAll(*input->second.bytes, static_cast<int64_t>(kMaxAddressFileBytes)));
  AddressReader reader(input->second.name, diagnostics);
  const std::map<int, Entry> entries = reader.Read(text);
  const std::vector<size_t> order = BuffersInUse(buffers, ranges);
  if (order.size() > kMaxAddressBuffers || entries.size() != order.size()) {
    reader.Report(0,
                  absl::StrCat("the file has ", entries.size(), " buffers, and the model ",
                               order.size(), "; at most ", kMaxAddressBuffers, " can be moved"),
                  "write the file again by --dump_addr_cfg");
    return diagnostics.ToStatus();
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const auto entry = entries.find(static_cast<int>(i));
    CheckEntry(i, buffers[order[i]], entry == entries.end() ? Entry() : entry->second,
               alignment_bytes, reader);
  }
  if (reader.ok()) CheckOverlaps(buffers, ranges, order, entries, reader);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  data_bytes = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    Buffer& buffer = buffers[order[i]];
    buffer.offset_bytes = *entries.at(static_cast<int>(i)).address;
    const int64_t end = buffer.offset_bytes + buffer.size_bytes;
    data_bytes =
        std::max(data_bytes, (end + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
  }
  return absl::OkStatus();
}

}  // namespace npuc
