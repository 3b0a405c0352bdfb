// Hostile files: truncated at every length, mutated at random. Diagnostics, never a crash.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/tensorflow/import.h"
#include "compiler_core/frontends/tensorflow/test_util.h"
#include "gtest/gtest.h"

namespace npuc::tf {
namespace {

// A little of everything that the reader and the rules look at.
GraphDefBuilder Sample() {
  GraphDefBuilder b;
  b.Placeholder("x", {1, 4, 4, 2}).Floats("k", {2, 2, 2, 3}, {1, 2, 3});
  b.Node("conv", "Conv2D", {"x", "k"}).Ints("strides", {1, 1, 1, 1}).String("padding", "SAME");
  b.Floats("b", {3}, {1, 2, 3}).Node("bias", "BiasAdd", {"conv", "b"});
  b.Node("pool", "MaxPool", {"bias"}).Ints("ksize", {1, 2, 2, 1}).Ints("strides", {1, 2, 2, 1});
  b.String("padding", "VALID").Int32s("shape", {2}, {1, -1});
  b.Node("flat", "Reshape", {"pool", "shape"}).Floats("w", {12, 2}, {0.5f});
  b.Node("fc", "MatMul", {"flat", "w"}).Node("act", "Tanh", {"fc"});
  b.Int32s("begin", {2}, {0, 0}).Int32s("end", {2}, {1, 1}).Int32s("ones", {2}, {1, 1});
  b.Node("cut", "StridedSlice", {"act", "begin", "end", "ones"}).Int("shrink_axis_mask", 1);
  b.Node("y", "Softmax", {"act"}).Node("z", "Pack", {"cut", "cut"}).Int("axis", 0);
  return b;
}

// Imports in both ways that matter: the proper outputs, and all that the bytes now seem to hold.
void Feed(absl::string_view bytes) {
  const CompileOptions options = Options({{"x", {1, 4, 4, 2}}}, {"y", "z"});
  Diagnostics diagnostics;
  const absl::StatusOr<Graph> graph = ImportTensorFlow(bytes, options, diagnostics);
  EXPECT_EQ(graph.ok(), !diagnostics.has_errors());
  EXPECT_FALSE(absl::IsInternal(graph.status())) << graph.status();
  for (const Diagnostic& d : diagnostics.list()) {
    const std::string text = d.ToString();
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) >= 0x20;
    })) << text;
  }
}

TEST(HostileTest, SampleItselfImports) {
  EXPECT_TRUE(RunImport(Sample().Bytes(), Options({{"x", {1, 4, 4, 2}}}, {"y", "z"})).graph.ok());
}

TEST(HostileTest, TruncatedAtEveryLength) {
  const std::string bytes = Sample().Bytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const ImportResult result = RunImport(absl::string_view(bytes).substr(0, length),
                                          Options({{"x", {1, 4, 4, 2}}}, {"y", "z"}));
    // Cut at a node's end the file is a smaller graph, whole only without the versions field.
    if (length + 4 < bytes.size()) {
      EXPECT_FALSE(result.graph.ok()) << length;
    }
    EXPECT_EQ(result.CountOf(DiagnosticKind::kInternalError), 0);
  }
}

TEST(HostileTest, EveryByteFlipped) {
  const std::string bytes = Sample().Bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit : {0, 3, 7}) {
      std::string mutant = bytes;
      mutant[i] = static_cast<char>(mutant[i] ^ (1 << bit));
      Feed(mutant);
    }
  }
}

TEST(HostileTest, RandomMutations) {
  const std::string bytes = Sample().Bytes();
  std::mt19937 random(20240607);  // NOLINT: a fixed seed, so that failures repeat
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    std::string mutant = bytes;
    const size_t changes = 1 + below(8);
    for (size_t k = 0; k < changes; ++k) {
      const size_t at = below(mutant.size());
      switch (below(5)) {
        case 0:
          mutant[at] = static_cast<char>(random());
          break;
        case 1:
          mutant.erase(at, 1 + below(16));
          break;
        case 2:
          mutant.insert(at, mutant.substr(below(mutant.size()), below(32)));
          break;
        case 3:
          mutant.insert(at, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
          break;
        default:
          mutant[at] = static_cast<char>(mutant[at] + (random() % 2 == 0 ? 1 : -1));
          break;
      }
      if (mutant.empty()) mutant.push_back('\n');
    }
    Feed(mutant);
  }
}

TEST(HostileTest, RandomBytes) {
  std::mt19937 random(7);  // NOLINT: a fixed seed, so that failures repeat
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    Feed(bytes);
  }
}

TEST(HostileTest, DeepChainsNeedNoRecursion) {
  GraphDefBuilder b;
  b.Placeholder("n0", {2});
  for (int i = 1; i <= 50000; ++i) {
    b.Node(absl::StrCat("n", i), "Relu", {absl::StrCat("n", i - 1)});
  }
  EXPECT_TRUE(RunImport(b.Bytes(), Options({{"n0", {2}}}, {"n50000"})).graph.ok());
}

TEST(HostileTest, ConstantBombsAreBounded) {
  // Products of splats: each step is allowed, all of them would take hours.
  GraphDefBuilder b;
  b.Floats("a", {2048, 2048}, {1});
  std::string last = "a";
  for (int i = 0; i < 100; ++i) {
    const std::string name = absl::StrCat("m", i);
    b.Node(name, "MatMul", {last, "a"});
    last = name;
  }
  const ImportResult result = RunImport(b.Bytes(), Options({}, {last}));
  EXPECT_EQ(result.CountOf(DiagnosticKind::kModelLimitExceeded), 1) << result.Text();
}

}  // namespace
}  // namespace npuc::tf
