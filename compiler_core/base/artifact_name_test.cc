#include "compiler_core/base/artifact_name.h"

#include <string>

#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(ArtifactNameTest, AreSafeFileNames) {
  for (const char* good : {"model.h", "opt_template.json", "a-b+c", "A"}) {
    EXPECT_TRUE(IsValidArtifactName(good)) << good;
  }
  for (const char* bad : {"", ".", "..", ".x", "a/b", "a b", "a\n", "\xc3\xa9"}) {
    EXPECT_FALSE(IsValidArtifactName(bad)) << bad;
  }
  EXPECT_FALSE(IsValidArtifactName(absl::string_view("a\0b", 3)));
  EXPECT_FALSE(IsValidArtifactName(std::string(129, 'a')));
}

}  // namespace
}  // namespace npuc
