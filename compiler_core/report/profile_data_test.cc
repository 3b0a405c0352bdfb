#include "compiler_core/report/profile_data.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;

constexpr char kMd5[] = "0123456789abcdef0123456789abcdef";

// A net of two layers; the second one's first command runs before the first one's last.
std::string GraphJson() {
  return R"({"graph_name": "net", "frequency": 500, "target": "X2_1204",
 "commands_md5": "0123456789abcdef0123456789abcdef", "node_of_command": [0, 1, 0, -1],
 "graph": {"nodes": [
  {"name": "a", "op_type": "Convolution", "level": 1, "input": ["x"], "output": ["a"]},
  {"name": "b", "op_type": "Eltwise", "level": 2, "input": ["a", "x"], "output": ["b"]}],
 "tensors": [{"name": "x", "shape": [1, 4]}, {"name": "a", "shape": [1, 2]}]}})";
}

ProfileBuffer Buffer() {
  ProfileBuffer buffer{kMd5, {}};
  for (int64_t i = 1; i <= 4; ++i) {
    buffer.records.push_back({.core = 0,
                              .offset_bytes = static_cast<uint32_t>(16 * i),
                              .cycles = 100 * i,
                              .aiff_busy_cycles = 50 * i,
                              .tpc_busy_cycles = i,
                              .dma_busy_cycles = 25 * i,
                              .read_bytes = 8 * i,
                              .written_bytes = 4 * i,
                              .macs = 1000 * i});
  }
  return buffer;
}

std::string ProblemOf(const std::string& graph, const ProfileBuffer& buffer) {
  ProfileProblem problem;
  EXPECT_FALSE(MakeProfileData(graph, buffer, std::nullopt, problem).has_value());
  return (problem.in_graph ? "graph " : "buffer ") + problem.message;
}

std::string Replaced(std::string text, const std::string& old, const std::string& by) {
  text.replace(text.find(old), old.size(), by);
  return text;
}

TEST(ProfileDataTest, SumsTheCommandsOfEachLayer) {
  ProfileProblem problem;
  const auto data = MakeProfileData(GraphJson(), Buffer(), std::nullopt, problem);
  ASSERT_TRUE(data.has_value()) << problem.message;
  EXPECT_EQ((*data)["graph_name"], "net");
  EXPECT_EQ((*data)["graph"]["nodes"].size(), 2u);
  const auto& first = (*data)["profile_data"][0];
  EXPECT_EQ(first["name"], "a");
  const auto& figures = first["runtime_information"];
  EXPECT_EQ(figures["Cycles"], 400);  // commands 0 and 2
  EXPECT_EQ(figures["Cost Time (ms)"], 400 / 500e3);
  EXPECT_EQ(figures["AIFF Utilization"], 0.5);
  EXPECT_EQ(figures["Algorithm Ops"], 8000);
  EXPECT_EQ(figures["Level"], 1);
  EXPECT_EQ((*data)["profile_data"][1]["runtime_information"]["Input Shapes"], "[1,2],[1,4]");
  EXPECT_EQ((*data)["summary"]["Cycles"], 1000);  // those of no layer, too
  EXPECT_EQ((*data)["summary"]["Layers"], 2);
  const auto faster = MakeProfileData(GraphJson(), Buffer(), 1000, problem);
  ASSERT_TRUE(faster.has_value());
  EXPECT_EQ((*faster)["summary"]["Cost Time (ms)"], 1e-3);
  const std::vector<Table> tables = ProfileTables(*data);
  EXPECT_EQ(tables[0].columns.front(), "Layer Name");
  EXPECT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0].size(), tables[0].columns.size());
}

// Two cores share the layer's two commands; the frame is as long as the slowest core of each phase.
TEST(ProfileDataTest, CoresRunSideBySide) {
  ProfileBuffer buffer = Buffer();
  buffer.records[2].core = 1;
  buffer.records[3].barrier = true;
  const auto read = ReadProfileBuffer(WriteProfileBuffer(buffer));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->records[2].core, 1u);
  EXPECT_FALSE(read->records[2].barrier);
  EXPECT_TRUE(read->records[3].barrier);
  ProfileProblem problem;
  const auto data = MakeProfileData(GraphJson(), *read, std::nullopt, problem);
  ASSERT_TRUE(data.has_value()) << problem.message;
  const auto& figures = (*data)["profile_data"][0]["runtime_information"];
  EXPECT_EQ(figures["Core ID"], "0,1");
  EXPECT_EQ(figures["Cycles"], 300);
  EXPECT_EQ(figures["AIFF Utilization"], 0.5);
  EXPECT_EQ((*data)["profile_data"][1]["runtime_information"]["Core ID"], 0);
  EXPECT_EQ((*data)["summary"]["Cycles"], 300 + 400);
}

TEST(ProfileDataTest, ABufferIsReadBack) {
  const ProfileBuffer buffer = Buffer();
  const std::string bytes = WriteProfileBuffer(buffer);
  const auto read = ReadProfileBuffer(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->commands_md5, kMd5);
  EXPECT_EQ(WriteProfileBuffer(*read), bytes);
  EXPECT_EQ(read->records[3].macs, 4000);
}

TEST(ProfileDataTest, DamagedBuffersAreRefused) {
  const std::string bytes = WriteProfileBuffer(Buffer());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadProfileBuffer(bytes.substr(0, size)).ok()) << size;
  }
  std::string huge = bytes;
  huge[56 + 8 + 7] = '\x7f';  // the first record's cycles
  EXPECT_THAT(std::string(ReadProfileBuffer(huge).status().message()), HasSubstr("the largest is"));
}

TEST(ProfileDataTest, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(ProblemOf("{", Buffer()), HasSubstr("graph 1:2: "));
  EXPECT_THAT(ProblemOf("{}", Buffer()), HasSubstr("graph 1:1: graph is missing"));
  EXPECT_THAT(ProblemOf(Replaced(GraphJson(), "500", "0"), Buffer()),
              HasSubstr("frequency is 0 MHz; allowed: 1..1000000"));
  EXPECT_THAT(ProblemOf(Replaced(GraphJson(), "[0, 1, 0, -1]", "[0, 2, 0, -1]"), Buffer()),
              HasSubstr("node_of_command has 2; allowed: -1 and positions of 2 nodes"));
  EXPECT_THAT(ProblemOf(Replaced(GraphJson(), "\"level\": 1", "\"level\": \"1\""), Buffer()),
              HasSubstr("level is the text '1'"));
  EXPECT_THAT(
      ProblemOf(Replaced(GraphJson(), "\"level\": 1,", "\"big\": 1e999, \"level\": 1,"), Buffer()),
      HasSubstr("graph "));
  ProfileBuffer other = Buffer();
  other.records.pop_back();
  EXPECT_THAT(ProblemOf(GraphJson(), other),
              HasSubstr("buffer is the profile of another build than graph.json: 3 commands"));
}

}  // namespace
}  // namespace npuc
