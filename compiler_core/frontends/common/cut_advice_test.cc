#include "compiler_core/frontends/common/cut_advice.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::frontend {
namespace {

// A chain of operators from input "x"; result i is "ti". "?" is not supported. The advice about
// each of those.
std::vector<std::string> AdviceFor(const std::vector<std::string>& ops) {
  CutAdvice advice;
  advice.AddInput("x");
  std::string last = "x";
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string result = absl::StrCat("t", i);
    advice.AddNode(ops[i], ops[i] != "?", {last, "weight"}, {result});
    last = result;
  }
  advice.AddOutput(last);
  std::vector<std::string> fixes;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i] == "?") fixes.push_back(advice.FixFor(absl::StrCat("t", i), "rebuild"));
  }
  return fixes;
}

using Fixes = std::vector<std::string>;

TEST(CutAdvice, NamesTheSideWhereThereIsWork) {
  EXPECT_EQ(AdviceFor({"?", "Conv", "Relu"}),
            Fixes{"begin the model behind it with INPUT_OPS: {'t0': [shape]}, or rebuild"});
  EXPECT_EQ(AdviceFor({"Conv", "Relu", "?"}),
            Fixes{"end the model before it with OUTPUT_OPS: ['t1'], or rebuild"});
  EXPECT_EQ(AdviceFor({"Conv", "?", "Relu"}),
            Fixes{"begin the model behind it with INPUT_OPS: {'t1': [shape]}, or end the model "
                  "before it with OUTPUT_OPS: ['t0'], or rebuild"});
  EXPECT_EQ(AdviceFor({"?"}), Fixes{"rebuild"});
}

TEST(CutAdvice, WhatChangesTheFormAloneIsNoWork) {
  EXPECT_EQ(AdviceFor({"Conv", "?", "Reshape"}),
            Fixes{"end the model before it with OUTPUT_OPS: ['t0'], or rebuild"});
  EXPECT_EQ(AdviceFor({"Identity", "?", "Relu"}),
            Fixes{"begin the model behind it with INPUT_OPS: {'t1': [shape]}, or rebuild"});
}

// One piece of advice holds for nodes that follow each other.
TEST(CutAdvice, CutsAroundSeveralNodes) {
  const std::string last = "end the model before it with OUTPUT_OPS: ['t0'], or rebuild";
  EXPECT_EQ(AdviceFor({"Conv", "?", "?"}), (Fixes{last, last}));
  const std::string first = "begin the model behind it with INPUT_OPS: {'t1': [shape]}, or rebuild";
  EXPECT_EQ(AdviceFor({"?", "?", "Conv"}), (Fixes{first, first}));
}

TEST(CutAdvice, IsTheSameForManyNodes) {
  EXPECT_EQ(AdviceFor({"Conv", "?", "Relu", "?", "Relu", "?", "Relu", "?", "Relu", "?", "Relu"}),
            Fixes(5, "rebuild"));
}

TEST(CutAdvice, OutputsThatDoNotNeedTheNodeStay) {
  CutAdvice advice;
  advice.AddInput("x");
  advice.AddNode("Conv", true, {"x"}, {"a"});
  advice.AddNode("Relu", true, {"a"}, {"kept"});
  advice.AddNode("?", false, {"a"}, {"lost"});
  advice.AddOutput("kept");
  advice.AddOutput("lost");
  EXPECT_EQ(advice.FixFor("lost", "rebuild"),
            "end the model before it with OUTPUT_OPS: ['kept', 'a'], or rebuild");
}

}  // namespace
}  // namespace npuc::frontend
