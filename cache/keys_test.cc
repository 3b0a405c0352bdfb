#include "cache/keys.h"

#include <functional>
#include <set>

#include "gtest/gtest.h"

namespace npuc::cache {
namespace {

CacheKeyParts Parts() {
  CacheKeyParts parts;
  parts.scope = "default";
  parts.model_md5 = std::string(32, 'a');
  parts.model_bytes = 1234;
  parts.model_sha256 = std::string(64, 'b');
  parts.options_sha256 = std::string(64, 'c');
  parts.side_inputs = {{"OPT_CONFIG", std::string(64, 'd')}, {"STATS", std::string(64, 'e')}};
  parts.compiler_build_id = "build";
  return parts;
}

TEST(CacheKey, EveryPartChangesIt) {
  const std::vector<std::function<void(CacheKeyParts&)>> changes = {
      [](auto&) {},
      [](auto& p) { p.scope.push_back('2'); },
      [](auto& p) { p.model_md5[3] = '0'; },
      [](auto& p) { ++p.model_bytes; },
      [](auto& p) { p.model_sha256[63] = '0'; },
      [](auto& p) { p.options_sha256[0] = '0'; },
      [](auto& p) { p.side_inputs.pop_back(); },
      [](auto& p) { p.side_inputs[0].role.resize(3); },
      [](auto& p) { p.side_inputs[0].sha256[0] = '0'; },
      [](auto& p) { std::swap(p.side_inputs[0].sha256, p.side_inputs[1].sha256); },
      [](auto& p) { p.compiler_build_id.push_back('1'); },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    CacheKeyParts parts = Parts();
    change(parts);
    const auto key = CacheKey::Make(parts);
    ASSERT_TRUE(key.ok()) << key.status();
    digests.insert(key->sha256());
  }
  EXPECT_EQ(digests.size(), changes.size());
}

TEST(CacheKey, OrderOfSideInputsDoesNotMatter) {
  CacheKeyParts swapped = Parts();
  std::swap(swapped.side_inputs[0], swapped.side_inputs[1]);
  EXPECT_EQ(CacheKey::Make(Parts()).value(), CacheKey::Make(swapped).value());
}

TEST(CacheKey, RefusesWhatIsNotWellFormed) {
  const std::vector<std::function<void(CacheKeyParts&)>> changes = {
      [](auto& p) { p.scope.clear(); },
      [](auto& p) { p.scope = std::string("../x"); },
      [](auto& p) { p.scope = std::string(".x"); },
      [](auto& p) { p.scope = std::string(65, 'x'); },
      [](auto& p) { p.model_md5.clear(); },
      [](auto& p) { p.model_sha256[0] = 'A'; },
      [](auto& p) { p.options_sha256.pop_back(); },
      [](auto& p) { p.side_inputs[1].role = p.side_inputs[0].role; },
      [](auto& p) { p.side_inputs[1].sha256.resize(1); },
      [](auto& p) { p.compiler_build_id.clear(); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    CacheKeyParts parts = Parts();
    changes[i](parts);
    EXPECT_EQ(CacheKey::Make(parts).status().code(), absl::StatusCode::kInvalidArgument) << i;
  }
}

TEST(CacheKey, TextRoundTrip) {
  const CacheKey key = CacheKey::Make(Parts()).value();
  EXPECT_EQ(CacheKey::Parse(key.ToString()).value(), key);
  for (const char* bad : {"", "/", "default", "default/", "default/zz", "/aa"}) {
    EXPECT_FALSE(CacheKey::Parse(bad).ok()) << bad;
  }
  EXPECT_FALSE(CacheKey::Parse(key.ToString() + "0").ok());
}

}  // namespace
}  // namespace npuc::cache
