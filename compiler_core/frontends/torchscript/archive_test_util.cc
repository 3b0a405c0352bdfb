#include "compiler_core/frontends/torchscript/archive_test_util.h"

#include <zlib.h>

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace npuc::pt {
namespace {

std::string Little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return text;
}

uint32_t Crc(absl::string_view data) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
}

std::string Deflate(absl::string_view data) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string TextOf(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.list()) {
    absl::StrAppend(&text, IdOf(d.kind), " ", d.ToString(), "\n");
  }
  return text;
}

}  // namespace

ZipBuilder& ZipBuilder::Stored(absl::string_view name, absl::string_view data) {
  entries_.push_back({.name = std::string(name),
                      .data = std::string(data),
                      .size = data.size(),
                      .crc = Crc(data)});
  return *this;
}

ZipBuilder& ZipBuilder::Deflated(absl::string_view name, absl::string_view data) {
  entries_.push_back({.name = std::string(name),
                      .data = Deflate(data),
                      .method = 8,
                      .size = data.size(),
                      .crc = Crc(data)});
  return *this;
}

ZipBuilder& ZipBuilder::Zip64(bool on) {
  zip64_ = on;
  return *this;
}

std::string ZipBuilder::Bytes() const {
  std::string file;
  std::string directory;
  for (const Entry& e : entries_) {
    const uint64_t at = e.local_offset >= 0 ? static_cast<uint64_t>(e.local_offset) : file.size();
    const std::string common = absl::StrCat(Little(20, 2), Little(e.flags, 2), Little(e.method, 2),
                                            Little(0, 4), Little(e.crc, 4));
    const std::string sizes = Little(e.data.size(), 4) + Little(e.size, 4);
    absl::StrAppend(&file, "PK\x03\x04", common, sizes, Little(e.name.size(), 2), Little(0, 2),
                    e.name, e.data);
    const std::string extra = zip64_ ? Little(1, 2) + Little(24, 2) + Little(e.size, 8) +
                                           Little(e.data.size(), 8) + Little(at, 8)
                                     : "";
    const std::string none = Little(0xffffffff, 4);
    absl::StrAppend(&directory, "PK\x01\x02", Little(20, 2), common, zip64_ ? none + none : sizes,
                    Little(e.name.size(), 2), Little(extra.size(), 2), Little(0, 2), Little(0, 2),
                    Little(0, 2), Little(0, 4), zip64_ ? none : Little(at, 4), e.name, extra);
  }
  const uint64_t offset = file.size();
  file += directory;
  if (zip64_) {
    const uint64_t end = file.size();
    absl::StrAppend(&file, "PK\x06\x06", Little(44, 8), Little(45, 2), Little(45, 2), Little(0, 4),
                    Little(0, 4), Little(entries_.size(), 8), Little(entries_.size(), 8),
                    Little(directory.size(), 8), Little(offset, 8));
    absl::StrAppend(&file, "PK\x06\x07", Little(0, 4), Little(end, 8), Little(1, 4));
  }
  const uint64_t count = zip64_ ? 0xffff : entries_.size();
  absl::StrAppend(&file, "PK\x05\x06", Little(0, 4), Little(count, 2), Little(count, 2),
                  Little(zip64_ ? 0xffffffff : directory.size(), 4),
                  Little(zip64_ ? 0xffffffff : offset, 4), Little(0, 2));
  return file;
}

PickleBuilder& PickleBuilder::Raw(absl::string_view bytes) {
  absl::StrAppend(&bytes_, bytes);
  return *this;
}

PickleBuilder& PickleBuilder::Global(absl::string_view module, absl::string_view name) {
  return Raw(absl::StrCat("c", module, "\n", name, "\n"));
}

PickleBuilder& PickleBuilder::String(absl::string_view text) {
  return Raw(absl::StrCat("X", Little(text.size(), 4), text));
}

PickleBuilder& PickleBuilder::Int(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  if (value >= 0 && value < 256) return Raw(absl::StrCat("K", Little(bits, 1)));
  if (value >= 0 && value < 65536) return Raw(absl::StrCat("M", Little(bits, 2)));
  if (value >= INT32_MIN && value <= INT32_MAX) return Raw(absl::StrCat("J", Little(bits, 4)));
  return Raw(absl::StrCat("\x8a", Little(8, 1), Little(bits, 8)));
}

PickleBuilder& PickleBuilder::Float(double value) {
  const std::string little = Little(std::bit_cast<uint64_t>(value), 8);
  return Raw(absl::StrCat("G", std::string(little.rbegin(), little.rend())));
}

PickleBuilder& PickleBuilder::Ints(const std::vector<int64_t>& values) {
  Raw("(");
  for (const int64_t value : values) Int(value);
  return Raw("t");
}

PickleBuilder& PickleBuilder::Storage(absl::string_view type, absl::string_view key,
                                      int64_t elements) {
  Raw("(").String("storage").Global("torch", absl::StrCat(type, "Storage"));
  return String(key).String("cpu").Int(elements).Raw("tQ");
}

PickleBuilder& PickleBuilder::Tensor(absl::string_view type, absl::string_view key,
                                     int64_t elements, int64_t offset,
                                     const std::vector<int64_t>& sizes,
                                     const std::vector<int64_t>& strides) {
  Global("torch._utils", "_rebuild_tensor_v2").Raw("(").Storage(type, key, elements);
  Int(offset).Ints(sizes).Ints(strides).Raw("\x89");
  return Global("collections", "OrderedDict").Raw(")RtR");
}

PickleBuilder& PickleBuilder::BeginObject(absl::string_view class_name) {
  return Global("__torch__", class_name).Raw(")\x81}(");
}
PickleBuilder& PickleBuilder::EndObject() { return Raw("ub"); }

ZipBuilder SmallArchive(const std::string& data_pkl) {
  ZipBuilder zip;
  zip.Stored("net/data.pkl", data_pkl);
  zip.Stored("net/code/__torch__.py",
             "class Net(Module):\n  def forward(self, x):\n    return x\n");
  zip.Stored("net/constants.pkl", NoConstants());
  zip.Stored("net/version", "3\n");
  return zip;
}

std::string SampleData() {
  return PickleBuilder()
      .BeginObject("Net")
      .String("w")
      .Tensor("Float", "0", 6, 0, {2, 3}, {1, 2})
      .EndObject()
      .Bytes();
}

ZipBuilder SampleArchive() {
  ZipBuilder zip = SmallArchive(SampleData());
  zip.Stored("net/data/0", Floats(6));
  return zip;
}

std::string Floats(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes += Little(std::bit_cast<uint32_t>(static_cast<float>(i)), 4);
  }
  return bytes;
}

std::string NoConstants() { return PickleBuilder().Raw(")").Bytes(); }

std::string ReadResult::Text() const { return TextOf(diagnostics); }

int ReadResult::CountOf(DiagnosticKind kind) const {
  int count = 0;
  for (const Diagnostic& d : diagnostics.list()) count += d.kind == kind ? 1 : 0;
  return count;
}

ReadResult RunRead(absl::string_view bytes, const ArchiveLimits& limits) {
  auto kept = std::make_shared<const std::string>(bytes);
  Diagnostics diagnostics;
  absl::StatusOr<TorchArchive> archive = ReadTorchArchive(*kept, "net.pt", limits, diagnostics);
  return {std::move(archive), std::move(diagnostics), std::move(kept)};
}

std::string UnpickleResult::Text() const { return TextOf(diagnostics); }

UnpickleResult RunUnpickle(absl::string_view bytes, const PickleLimits& limits) {
  UnpickleResult result;
  result.root =
      Unpickle(bytes, "net.pt", "data.pkl", "data", limits, result.values, result.diagnostics);
  return result;
}

}  // namespace npuc::pt
