#include "server/executor/failure_bundles.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::executor {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FailureBundlesTest : public ::testing::Test {
 protected:
  FailureBundlesTest() {
    std::string pattern = ::testing::TempDir() + "/bundles_XXXXXX";
    root_ = mkdtemp(pattern.data());
    Write(root_ / "blob", "model bytes");
  }
  ~FailureBundlesTest() override { fs::remove_all(root_); }

  static void Write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(root_ / "bundles" / name, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return in ? text.str() : "<none>";
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_ / "bundles")) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  FailureBundles::Options Options() const { return {.dir = root_ / "bundles"}; }
  FailureBundles::Failure Failure(const std::string& job_id) const {
    return {.job_id = job_id,
            .tenant = "default",
            .build_id = "build-1",
            .stage = "lower",
            .reason = "a \"reason\"",
            .timestamp_seconds = 7,
            .config_text = "CORENAME: GRUS\nMODEL_FILE: ../a b/my.pb\nX: my.pb\n",
            .inputs = {{.named = {.role = "MODEL_FILE", .path = "../a b/my.pb", .line = 2},
                        .blob_path = root_ / "blob"}},
            .log = "said"};
  }

  fs::path root_;
};

TEST_F(FailureBundlesTest, HoldsWhatShowsTheFailureAgain) {
  FailureBundles bundles(Options());
  const absl::Status kept = bundles.Keep(Failure("j1"));
  ASSERT_TRUE(kept.ok()) << kept;
  EXPECT_THAT(Names(), ElementsAre("j1"));
  EXPECT_EQ(Read("j1/config.yaml"), "CORENAME: GRUS\nMODEL_FILE: inputs/my.pb\nX: my.pb\n");
  EXPECT_EQ(Read("j1/inputs/my.pb"), "model bytes");
  EXPECT_EQ(Read("j1/compile.log"), "said");
  EXPECT_THAT(Read("j1/failure.json"), HasSubstr("SOURCE_DATE_EPOCH=7 npuc config.yaml"));
  EXPECT_THAT(Read("j1/failure.json"), HasSubstr("a \\\"reason\\\""));
  // The blob's eviction takes nothing from the bundle, and others may not look in.
  fs::remove(root_ / "blob");
  EXPECT_EQ(Read("j1/inputs/my.pb"), "model bytes");
  EXPECT_EQ(fs::status(root_ / "bundles").permissions(), fs::perms::owner_all);
}

TEST_F(FailureBundlesTest, NamesOfClientsMakeNoPaths) {
  FailureBundles bundles(Options());
  FailureBundles::Failure failure = Failure("j1");
  failure.inputs[0].named.role = "../../x";
  failure.inputs[0].named.path = "..";
  failure.inputs[0].named.line = 99;
  ASSERT_TRUE(bundles.Keep(failure).ok());
  EXPECT_EQ(Read("j1/inputs/.._.._x-.."), "model bytes");
  EXPECT_EQ(Read("j1/config.yaml"), failure.config_text);
}

TEST_F(FailureBundlesTest, NamesThatAreTakenGetTheRoleAndPathsAreReplacedWhole) {
  FailureBundles bundles(Options());
  FailureBundles::Failure failure = Failure("j1");
  failure.config_text = "MODEL_FILE: m\nd: {m: m, n: a/m, o: a/m/m}\n";
  failure.inputs[0].named.path = "m";
  failure.inputs[0].named.line = 1;
  Write(root_ / "other", "samples");
  failure.inputs.push_back(
      {.named = {.role = "data", .path = "a/m", .line = 2}, .blob_path = root_ / "other"});
  ASSERT_TRUE(bundles.Keep(failure).ok());
  EXPECT_EQ(Read("j1/inputs/m"), "model bytes");
  EXPECT_EQ(Read("j1/inputs/data-m"), "samples");
  EXPECT_EQ(Read("j1/config.yaml"),
            "MODEL_FILE: inputs/m\nd: {m: m, n: inputs/data-m, o: a/m/m}\n");
}

TEST_F(FailureBundlesTest, TheNewestAreKeptWithinBothLimits) {
  const auto of_kind = [&](const std::string& id) {
    FailureBundles::Failure failure = Failure(id);
    failure.stage = absl::StrCat("stage-", id);
    return failure;
  };
  FailureBundles::Options few = Options();
  few.max_bundles = 2;
  FailureBundles by_number(few);
  for (const char* id : {"j1", "j2", "j3"}) ASSERT_TRUE(by_number.Keep(of_kind(id)).ok());
  EXPECT_THAT(Names(), ElementsAre("j2", "j3"));

  FailureBundles::Options small = Options();
  small.max_bytes = 700;  // two, and no third
  FailureBundles by_bytes(small);
  ASSERT_TRUE(by_bytes.Keep(of_kind("j4")).ok());
  EXPECT_THAT(Names(), ElementsAre("j3", "j4"));
  FailureBundles::Failure large = of_kind("j5");
  large.log = std::string(701, 'x');
  EXPECT_EQ(by_bytes.Keep(large).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Names(), ElementsAre("j3", "j4"));
}

TEST_F(FailureBundlesTest, ARepeatedMistakeKeepsOneBundleAndPushesOutNone) {
  FailureBundles bundles(Options());
  FailureBundles::Failure crash = Failure("crash");
  crash.reason = "the compile ended by signal 11";
  ASSERT_TRUE(bundles.Keep(crash).ok());
  for (int i = 0; i < 30; ++i) {
    FailureBundles::Failure mistake = Failure(absl::StrCat("j", 10 + i));
    mistake.reason = absl::StrCat("artifact name 'model ", i, ".h' is not allowed (", i, ")");
    ASSERT_TRUE(bundles.Keep(mistake).ok());
  }
  EXPECT_THAT(Names(), ElementsAre("crash", "j39"));
}

TEST_F(FailureBundlesTest, ATenantWithManyCausesPushesOutItsOwn) {
  FailureBundles::Options options = Options();
  options.max_bundles = 3;
  FailureBundles bundles(options);
  ASSERT_TRUE(bundles.Keep(Failure("other")).ok());
  for (const char* id : {"j1", "j2", "j3", "j4"}) {
    FailureBundles::Failure failure = Failure(id);
    failure.tenant = "busy";
    failure.stage = absl::StrCat("stage-", id);
    ASSERT_TRUE(bundles.Keep(failure).ok());
  }
  EXPECT_THAT(Names(), ElementsAre("j3", "j4", "other"));
}

TEST_F(FailureBundlesTest, ALostBlobIsAnError) {
  FailureBundles bundles(Options());
  fs::remove(root_ / "blob");
  EXPECT_FALSE(bundles.Keep(Failure("j1")).ok());
}

}  // namespace
}  // namespace npuc::executor
