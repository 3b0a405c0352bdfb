// Hostile and mistaken files: a diagnostic that says what, where and what to do; bounded time and
// memory; never a crash.
#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::pt {
namespace {

using ::testing::HasSubstr;

// A literal with all its NUL bytes.
template <size_t kSize>
absl::string_view Bytes(const char (&text)[kSize]) {
  return absl::string_view(text, kSize - 1);
}

std::string Refusal(absl::string_view bytes, const ArchiveLimits& limits = {}) {
  const ReadResult result = RunRead(bytes, limits);
  EXPECT_FALSE(result.archive.ok());
  for (const Diagnostic& d : result.diagnostics.list()) {
    EXPECT_EQ(d.file, "net.pt");
    EXPECT_FALSE(d.fix.empty()) << d.ToString();
    const std::string text = d.ToString();
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x20;
    })) << text;
  }
  return result.Text();
}

TEST(ArchiveHostileTest, OtherFilesAreRefusedByName) {
  const struct {
    absl::string_view bytes;
    const char* says;
  } cases[] = {
      {Bytes(""), "no bytes"},
      {Bytes("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80"),
       "torch.save of PyTorch before 1.6"},
      {Bytes("\x80\x02}q\x00."), "a Python pickle"},
      {Bytes("\x18\x00\x00\x00PTMF...."), "PyTorch Mobile"},
      {Bytes("\x1c\x00\x00\x00TFL3...."), "TensorFlow Lite"},
      {Bytes("\x1f\x8b\x08\x00"), "gzip"},
      {Bytes("\x89HDF\r\n\x1a\n"), "HDF5"},
      {Bytes("<!DOCTYPE html>"), "web page"},
      {Bytes("version https://git-lfs.github.com/spec/v1"), "git lfs pull"},
      {Bytes("hello"), "text file"},
      {Bytes("\x08\x07\x12\x07pytorch"), "protobuf"},
      {Bytes("\x01\x02\x03\x04"), "no kind of file"},
      {Bytes("PK\x03\x04"
             "abcd"),
       "cut short"},
  };
  for (const auto& c : cases) EXPECT_THAT(Refusal(c.bytes), HasSubstr(c.says));
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  EXPECT_THAT(Refusal(tar), HasSubstr("tar archive"));
}

TEST(ArchiveHostileTest, OtherZipsAreRefusedByName) {
  const struct {
    const char* name;
    const char* says;
  } cases[] = {{"archive/data.pkl", "torch.save: it has no code"},
               {"net/model.json", "another kind"},
               {"MAR-INF/MANIFEST.json", "TorchServe"},
               {"arr_0.npy", "NumPy"},
               {"model.weights.h5", "Keras"},
               {"p/.data/extern_modules", "torch.package"},
               {"serialized_exported_program.json", "torch.export"}};
  for (const auto& c : cases) {
    ZipBuilder zip;
    zip.Stored(c.name, "x");
    const std::string text = Refusal(zip.Bytes());
    EXPECT_THAT(text, HasSubstr(c.says));
    EXPECT_THAT(text, HasSubstr("NPUC1130"));
  }
  ZipBuilder old;
  old.Stored("net/model.json", "{}").Stored("net/tensors/0", "x").Stored("net/code/net.py", "");
  EXPECT_THAT(Refusal(old.Bytes()), HasSubstr("PyTorch 1.0 to 1.3"));
  EXPECT_THAT(Refusal(ZipBuilder().Bytes()), HasSubstr("empty zip"));
}

TEST(ArchiveHostileTest, MissingPartsAreReportedTogether) {
  ZipBuilder zip;
  zip.Stored("net/data.pkl", PickleBuilder().Int(1).Bytes());
  zip.Stored("net/code/__torch__.py", "\xff\xfe").Stored("net/byteorder", "middle");
  const std::string text = Refusal(zip.Bytes());
  EXPECT_THAT(text, HasSubstr("no entry 'version'"));
  EXPECT_THAT(text, HasSubstr("no entry 'constants.pkl'"));
  EXPECT_THAT(text, HasSubstr("'byteorder' says 'middle'"));
  EXPECT_THAT(text, HasSubstr("NPUC1139"));
  EXPECT_THAT(text, HasSubstr("data.pkl holds an int"));
}

TEST(ArchiveHostileTest, ForeignGlobalsInEitherPickleAreRefused) {
  const std::string bad = PickleBuilder().Global("os", "system").String("id").Raw("\x85R").Bytes();
  EXPECT_THAT(Refusal(SmallArchive(bad).Bytes()), HasSubstr("'os.system'"));
  ZipBuilder zip;
  zip.Stored("net/data.pkl", SampleData()).Stored("net/data/0", Floats(6));
  zip.Stored("net/code/__torch__.py", "pass\n").Stored("net/version", "3\n");
  zip.Stored("net/constants.pkl", bad);
  const std::string text = Refusal(zip.Bytes());
  EXPECT_THAT(text, HasSubstr("entry 'constants.pkl', byte 2"));
  EXPECT_THAT(text, HasSubstr("'os.system'"));
}

TEST(ArchiveHostileTest, StoragesMustBeThereAndOfTheirSize) {
  EXPECT_THAT(Refusal(SmallArchive(SampleData()).Bytes()), HasSubstr("NPUC1137"));
  for (const int bytes : {0, 1, 23, 28, 1000}) {
    ZipBuilder zip = SmallArchive(SampleData());
    zip.Stored("net/data/0", std::string(static_cast<size_t>(bytes), 'x'));
    EXPECT_THAT(Refusal(zip.Bytes()), HasSubstr("6 elements of float32: 24 bytes"));
  }
}

TEST(ArchiveHostileTest, DuplicateAndStrangeEntriesAreRefused) {
  ZipBuilder twice = SampleArchive();
  twice.Stored("net/data/0", Floats(6));
  EXPECT_THAT(Refusal(twice.Bytes()), HasSubstr("'net/data/0' is in the archive twice"));
  ZipBuilder encrypted = SampleArchive();
  encrypted.last().flags = 1;
  EXPECT_THAT(Refusal(encrypted.Bytes()), HasSubstr("encrypted"));
  ZipBuilder lzma = SampleArchive();
  lzma.last().method = 14;
  EXPECT_THAT(Refusal(lzma.Bytes()), HasSubstr("method 14"));
  ZipBuilder control = SampleArchive();
  control.Stored("net/\n", "x");
  EXPECT_THAT(Refusal(control.Bytes()), HasSubstr("printable"));
  ZipBuilder long_name = SampleArchive();
  long_name.Stored(std::string(5000, 'n'), "x");
  EXPECT_THAT(Refusal(long_name.Bytes()), HasSubstr("1 to 1024 bytes"));
  ZipBuilder two = SampleArchive();
  two.Stored("other/data.pkl", "x");
  EXPECT_THAT(Refusal(two.Bytes()), HasSubstr("2 entries named data.pkl"));
}

TEST(ArchiveHostileTest, ChecksumsAndSizesThatLieAreRefused) {
  ZipBuilder crc = SampleArchive();
  crc.last().crc ^= 1;
  EXPECT_THAT(Refusal(crc.Bytes()), HasSubstr("NPUC1131"));
  ZipBuilder longer = SampleArchive();
  longer.last().size = 25;
  EXPECT_THAT(Refusal(longer.Bytes()), HasSubstr("NPUC1133"));
  for (const int64_t lie : {-1, 1, 100}) {
    ZipBuilder deflated = SmallArchive(SampleData());
    deflated.Deflated("net/code/__torch__/a.py", std::string(1000, ' '));
    deflated.last().size = static_cast<uint64_t>(1000 + lie);
    deflated.Stored("net/data/0", Floats(6));
    EXPECT_THAT(Refusal(deflated.Bytes()), HasSubstr("NPUC1131")) << lie;
  }
  ZipBuilder garbage = SmallArchive(SampleData());
  garbage.Deflated("net/data/0", Floats(6));
  garbage.last().data = "\xff\xff\xff\xff";
  EXPECT_THAT(Refusal(garbage.Bytes()), HasSubstr("NPUC1131"));
}

TEST(ArchiveHostileTest, BombsAreRefusedBeforeTheyAreUnpacked) {
  // Honest about its size, and beyond what a storage may have.
  ZipBuilder honest = SmallArchive(SampleData());
  honest.Deflated("net/data/0", std::string(size_t{1} << 24, '\0'));
  ArchiveLimits small;
  small.storage_bytes = 1 << 20;
  EXPECT_THAT(Refusal(honest.Bytes(), small), HasSubstr("16777216 bytes; allowed are at most"));
  // A claim that no deflate could fulfil.
  ZipBuilder ratio = SmallArchive(SampleData());
  ratio.Deflated("net/data/0", "x");
  ratio.last().size = 200000000;
  EXPECT_THAT(Refusal(ratio.Bytes()), HasSubstr("NPUC1132"));
  // Many sources, each allowed, too large together.
  ZipBuilder many = SampleArchive();
  for (int i = 0; i < 20; ++i) {
    many.Deflated(absl::StrCat("net/code/__torch__/m", i, ".py"), std::string(1 << 20, ' '));
  }
  ArchiveLimits total;
  total.total_bytes = 1 << 23;
  EXPECT_THAT(Refusal(many.Bytes(), total), HasSubstr("of the whole archive"));
  ArchiveLimits entries;
  entries.entries = 10;
  EXPECT_THAT(Refusal(many.Bytes(), entries), HasSubstr("25 entries; allowed are at most 10"));
  ArchiveLimits file;
  file.file_bytes = 100;
  EXPECT_THAT(Refusal(many.Bytes(), file), HasSubstr("allowed are at most 100"));
  ArchiveLimits pickles;
  pickles.pickle_bytes = 10;
  EXPECT_THAT(Refusal(SampleArchive().Bytes(), pickles), HasSubstr("for its kind are at most 10"));
}

TEST(ArchiveHostileTest, VersionsAreChecked) {
  for (const char* version : {"", "0", "11", "99999999999999999999", "3.5", "-3", "x"}) {
    ZipBuilder zip;
    zip.Stored("net/data.pkl", SampleData()).Stored("net/data/0", Floats(6));
    zip.Stored("net/code/__torch__.py", "pass\n").Stored("net/constants.pkl", NoConstants());
    zip.Stored("net/version", version);
    EXPECT_THAT(Refusal(zip.Bytes()), HasSubstr("'version' says")) << version;
  }
}

// The bytes may be anything: status and diagnostics agree, nothing is internal.
void Feed(absl::string_view bytes) {
  ArchiveLimits limits;
  limits.total_bytes = 1 << 22;
  const ReadResult result = RunRead(bytes, limits);
  EXPECT_EQ(result.archive.ok(), !result.diagnostics.has_errors());
  EXPECT_EQ(result.CountOf(DiagnosticKind::kInternalError), 0) << result.Text();
  if (!result.archive.ok()) return;
  const TorchArchive& a = *result.archive;
  for (int32_t id = 0; id < a.values.size(); ++id) {
    if (a.values.kind(PyId(id)) != PyKind::kTensor) continue;
    const absl::StatusOr<Tensor> tensor = MaterializeTensor(a, PyId(id), 1 << 20);
    EXPECT_FALSE(absl::IsInternal(tensor.status()));
  }
}

TEST(ArchiveHostileTest, TruncatedAtEveryLength) {
  const std::string bytes = SampleArchive().Bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(RunRead(absl::string_view(bytes).substr(0, length)).archive.ok()) << length;
  }
}

TEST(ArchiveHostileTest, EveryByteFlipped) {
  for (const bool zip64 : {false, true}) {
    const std::string bytes = SampleArchive().Zip64(zip64).Bytes();
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const int bit : {0, 3, 7}) {
        std::string mutant = bytes;
        mutant[i] = static_cast<char>(mutant[i] ^ (1 << bit));
        Feed(mutant);
      }
    }
  }
}

TEST(ArchiveHostileTest, RandomMutationsOfPickles) {
  // The zip around it stays whole, so that the unpickler sees every mutant.
  const std::string pickle = SampleData();
  std::mt19937 random(20261120);  // NOLINT: a fixed seed, so that failures repeat
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 4000; ++round) {
    std::string mutant = pickle;
    const size_t changes = 1 + below(4);
    for (size_t k = 0; k < changes; ++k) {
      const size_t at = below(mutant.size());
      switch (below(4)) {
        case 0:
          mutant[at] = static_cast<char>(random());
          break;
        case 1:
          mutant.erase(at, 1 + below(8));
          break;
        case 2:
          mutant.insert(at, mutant.substr(below(mutant.size()), below(32)));
          break;
        default:
          mutant.insert(at, 1, ".()]}tuebRQqh\x81\x85N"[below(16)]);
          break;
      }
      if (mutant.empty()) mutant.push_back('\x80');
    }
    Feed(SmallArchive(mutant).Stored("net/data/0", Floats(6)).Bytes());
  }
}

}  // namespace
}  // namespace npuc::pt
