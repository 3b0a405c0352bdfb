#include "compiler_core/quant/state_samples.h"

#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/byte_source.h"
#include "compiler_core/ir/graph/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;

// The state sums up what was given.
constexpr absl::string_view kSum = R"(graph "m" {
  %x = Placeholder() : f32[1] @"x"
  %s = Placeholder() : f32[1] @"s"
  %next = Add(%s, %x) : f32[1] @"next"
  return %next @"s_out"
}
)";

// A .npy of 1, 2, 3.
std::string Samples() {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }";
  header.resize(117, ' ');
  header += "\n";
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += header;
  for (const float value : {1.f, 2.f, 3.f}) {
    file.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return file;
}

TEST(StateSamples, AStateGoesFromSampleToSample) {
  const absl::StatusOr<Graph> graph = ParseGraph(kSum);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<FloatExecutor> executor = FloatExecutor::Create(*graph);
  ASSERT_TRUE(executor.ok()) << executor.status();
  absl::StatusOr<SampleSet> samples =
      SampleSet::Open({{"", "x.npy", std::make_shared<OwnedSource>(Samples())}}, *graph, {1});
  ASSERT_TRUE(samples.ok()) << samples.status();
  std::vector<std::string> log;
  ASSERT_TRUE(AddStateSamples(*executor, {1}, *samples, log).ok());
  EXPECT_EQ(log.size(), 1u);
  std::vector<float> states;
  std::vector<std::vector<float>> inputs;
  for (int64_t s = 0; s < 3; ++s) {
    ASSERT_TRUE(samples->Read(s, inputs).ok());
    states.push_back(inputs[1][0]);
  }
  EXPECT_THAT(states, ElementsAre(0, 1, 3));
  // A state with samples keeps them.
  ASSERT_TRUE(AddStateSamples(*executor, {1}, *samples, log).ok());
  EXPECT_EQ(log.size(), 1u);
}

}  // namespace
}  // namespace npuc
