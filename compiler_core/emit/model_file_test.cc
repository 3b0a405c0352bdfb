#include "compiler_core/emit/model_file.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/emit/small_model_test_util.h"
#include "compiler_core/emit/written_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;

absl::StatusOr<CompiledModel> Read(absl::string_view bytes) {
  Diagnostics diagnostics;
  absl::StatusOr<CompiledModel> model = ReadArtifact(bytes, "m.npuc", diagnostics);
  EXPECT_EQ(model.ok(), !diagnostics.has_errors());
  return model;
}

TEST(ModelFile, ReadsWhatItWrites) {
  const CompiledModel m = SmallModel();
  const std::string bytes = ModelFileBytes(m);
  const absl::StatusOr<CompiledModel> back = Read(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ModelFileBytes(*back), bytes);
  EXPECT_EQ(back->outputs[0].state_input, 1);
  EXPECT_EQ(back->outputs[2].offset_bytes, 14);
  EXPECT_EQ(back->inputs[1].name, "State/c0");
  Diagnostics diagnostics;
  EXPECT_EQ(*HeaderText(*back, diagnostics), *HeaderText(m, diagnostics));
}

TEST(ModelFile, HeadersAreReadAsHeaders) {
  Diagnostics diagnostics;
  const absl::StatusOr<CompiledModel> back = Read(*HeaderText(SmallModel(), diagnostics));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->cmd_content, SmallModel().cmd_content);
  EXPECT_THAT(Read(absl::string_view("\x7f"
                                     "ELF\0\0",
                                     6))
                  .status()
                  .message(),
              HasSubstr("[NPUC1508]"));
}

TEST(ModelFile, NoCutAndNoChangedByteIsTaken) {
  const std::string bytes = ModelFileBytes(SmallModel());
  for (size_t size = 8; size < bytes.size(); ++size) {
    EXPECT_FALSE(Read(absl::string_view(bytes).substr(0, size)).ok()) << size;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    EXPECT_FALSE(Read(changed).ok()) << i;
  }
  EXPECT_FALSE(Read(bytes + "x").ok());
}

// `bytes` with a digest that fits them.
std::string Resigned(std::string bytes) {
  bytes.resize(bytes.size() - 32);
  return bytes + absl::HexStringToBytes(Sha256Hex(bytes));
}

TEST(ModelFile, SignedNonsenseIsRefusedToo) {
  const std::string bytes = ModelFileBytes(SmallModel());
  // Every byte of head, table and metadata takes every value; none may crash, and what is taken
  // must be a model that writes the same bytes.
  for (size_t i = 8; i < 400; ++i) {
    for (const int value : {0, 1, 2, 5, 0x7f, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      changed = Resigned(changed);
      Diagnostics diagnostics;
      const absl::StatusOr<CompiledModel> model = ReadModelFile(changed, "m.npuc", diagnostics);
      if (model.ok()) {
        EXPECT_EQ(ModelFileBytes(*model).size(), changed.size()) << i;
      }
    }
  }
  std::string version = bytes;
  version[8] = 2;
  EXPECT_THAT(Read(version).status().message(),
              HasSubstr("format version 2; this program reads 1 and 3"));
}

}  // namespace
}  // namespace npuc
