// The test of the test: every planted mistake is found, and nothing is found without one.
#include "tests/fault/simulation.h"

#include "gtest/gtest.h"

namespace npuc {
namespace {

constexpr uint64_t kSeedsPerPlant = 3000;

class PlantTest : public ::testing::TestWithParam<int> {};

TEST_P(PlantTest, IsFound) {
  const SimulationOptions options{.plant = static_cast<Plant>(GetParam())};
  for (uint64_t seed = 1; seed <= kSeedsPerPlant; ++seed) {
    if (const auto broken = Simulate(seed, options)) {
      RecordProperty("seeds", static_cast<int>(seed));
      RecordProperty("rule", *broken);
      return;
    }
  }
  FAIL() << PlantName(options.plant) << " was not found in " << kSeedsPerPlant << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Plants, PlantTest, ::testing::Range(1, kPlants), [](const auto& info) {
  std::string name = PlantName(static_cast<Plant>(info.param));
  std::erase(name, '-');
  return name;
});

TEST(SimulationTest, ASeedIsOneLife) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::string lives[2];
    for (std::string& life : lives) {
      const SimulationOptions options{.trace = [&](const std::string& line) { life += line; }};
      EXPECT_EQ(Simulate(seed, options), std::nullopt);
    }
    EXPECT_EQ(lives[0], lives[1]) << seed;
    EXPECT_GT(lives[0].size(), 100u);
  }
}

}  // namespace
}  // namespace npuc
