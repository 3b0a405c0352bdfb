#include "compiler_core/memplan/plan.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

BufferId AddBuffer(Program& program, int64_t bytes) {
  program.buffers.push_back({Slot::kData, bytes, -1, ""});
  return BufferId(static_cast<int32_t>(program.buffers.size() - 1));
}

void AddCopy(Program& program, BufferId from, BufferId to, int64_t elements) {
  VectorCommand copy;
  copy.a = {from, 0};
  copy.d = {to, 0};
  copy.extents = {1, 1, static_cast<uint16_t>(elements)};
  Command command;
  command.body = copy;
  program.commands.push_back(command);
}

TEST(PlanMemory, AChainNeedsTwoBuffersAtATime) {
  Program program;
  std::vector<BufferId> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(AddBuffer(program, 20));
  for (int i = 0; i < 5; ++i) AddCopy(program, ids[i], ids[i + 1], 10);
  const auto result = PlanMemory(program, 4);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->arena_bytes, 40);
  EXPECT_EQ(result->lower_bound_bytes, 40);
  EXPECT_EQ(program.data_bytes, 40);
  EXPECT_EQ(program.buffers[0].offset_bytes, 0);
  EXPECT_EQ(program.buffers[1].offset_bytes, 20);
  EXPECT_EQ(result->method, PlanMethod::kGreedy);
  EXPECT_EQ(NameOf(result->method), "greedy: meets the bound");
  EXPECT_TRUE(CheckMemoryPlan(program).ok());
}

// Slices of the input that are all made at first and used one by one, as an unrolled recurrent net
// has them, and in each turn a state and buffers of unlike sizes.
Program UnrolledProgram(int turns) {
  Program program;
  std::vector<BufferId> slices;
  const BufferId input = AddBuffer(program, 8);
  for (int i = 0; i < turns; ++i) {
    slices.push_back(AddBuffer(program, 20));
    AddCopy(program, input, slices.back(), 2);
  }
  BufferId state = AddBuffer(program, 308);
  AddCopy(program, input, state, 2);
  for (int i = 0; i < turns; ++i) {
    const BufferId joined = AddBuffer(program, 328);
    const BufferId gates = AddBuffer(program, 616);
    const BufferId squashed = AddBuffer(program, 616);
    const BufferId reset = AddBuffer(program, 308);
    const BufferId update = AddBuffer(program, 308);
    const BufferId next = AddBuffer(program, 308);
    AddCopy(program, slices[i], joined, 10);
    AddCopy(program, state, joined, 10);
    AddCopy(program, joined, gates, 10);
    AddCopy(program, gates, squashed, 10);
    AddCopy(program, squashed, reset, 10);
    AddCopy(program, squashed, update, 10);
    AddCopy(program, reset, next, 10);
    AddCopy(program, update, next, 10);
    AddCopy(program, state, next, 10);
    state = next;
  }
  return program;
}

TEST(PlanMemory, UnrolledNetsMeetTheBound) {
  for (const int turns : {3, 10, 25, 60}) {
    Program program = UnrolledProgram(turns);
    const auto result = PlanMemory(program, 4);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->arena_bytes, result->lower_bound_bytes) << turns;
    EXPECT_EQ(program.data_bytes, result->arena_bytes);
    EXPECT_TRUE(CheckMemoryPlan(program).ok()) << CheckMemoryPlan(program);
  }
}

TEST(CheckMemoryPlan, FindsTwoLiveBuffersThatOverlap) {
  Program program;
  const BufferId a = AddBuffer(program, 20);
  const BufferId b = AddBuffer(program, 20);
  const BufferId c = AddBuffer(program, 20);
  AddCopy(program, a, b, 10);
  AddCopy(program, a, c, 10);
  AddCopy(program, b, c, 10);
  ASSERT_TRUE(PlanMemory(program, 4).ok());
  ASSERT_TRUE(CheckMemoryPlan(program).ok());
  program.buffers[c.value()].offset_bytes = program.buffers[b.value()].offset_bytes + 4;
  const absl::Status status = CheckMemoryPlan(program);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("overwritten"));
}

TEST(PlanMemory, RandomProgramsStayProvablyDisjointAndNearTheBound) {
  std::mt19937 rng(20261120);
  int64_t arena_sum = 0;
  int64_t bound_sum = 0;
  for (int round = 0; round < 200; ++round) {
    Program program;
    std::vector<BufferId> ids = {AddBuffer(program, 64)};
    const int commands = 2 + static_cast<int>(rng() % 60);
    for (int i = 0; i < commands; ++i) {
      const int64_t elements = 1 + static_cast<int64_t>(rng() % 60);
      const BufferId from = ids[ids.size() - 1 - rng() % std::min<size_t>(ids.size(), 4)];
      const int64_t from_elements = program.buffers[from.value()].size_bytes / 2;
      const BufferId to = AddBuffer(program, 2 * std::min(elements, from_elements));
      AddCopy(program, from, to, std::min(elements, from_elements));
      ids.push_back(to);
    }
    const auto result = PlanMemory(program, 4);
    ASSERT_TRUE(result.ok());
    ASSERT_GE(result->arena_bytes, result->lower_bound_bytes);
    ASSERT_TRUE(CheckMemoryPlan(program).ok()) << CheckMemoryPlan(program);
    arena_sum += result->arena_bytes;
    bound_sum += result->lower_bound_bytes;
  }
  EXPECT_LE(static_cast<double>(arena_sum), 1.05 * static_cast<double>(bound_sum));
}

}  // namespace
}  // namespace npuc
