#include "compiler_core/quant/data/sample_set.h"

#include <cstring>

#include "compiler_core/base/archive.h"
#include "compiler_core/quant/data/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StringSource : public ByteSource {
 public:
  explicit StringSource(std::string bytes) : bytes_(std::move(bytes)) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::Status Read(int64_t offset, absl::Span<char> to) const override {
    return ViewSource(bytes_).Read(offset, to);
  }

 private:
  std::string bytes_;
};

template <typename T>
std::string Npy(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  NpyArray array{dtype, std::move(shape), std::string(values.size() * sizeof(T), '\0')};
  if (!values.empty()) {
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  }
  return WriteNpy(array).value();
}

SampleFile File(absl::string_view input, std::string bytes) {
  return {std::string(input), "data.npy", std::make_shared<StringSource>(std::move(bytes))};
}

Graph TwoInputs() {
  Graph graph;
  graph.AddInput("scope/a", {DType::kFloat32, {1, 2}});
  graph.AddInput("b", {DType::kFloat32, {2, 1}});
  return graph;
}

Graph OneInput() {
  Graph graph;
  graph.AddInput("a", {DType::kFloat32, {1, 2}});
  return graph;
}

// numpy.savez(f, a=numpy.float32([[1,2],[3,4]])) and savez_compressed, byte for byte.
std::string Npz(bool deflated);

TEST(SampleSetTest, ReadsSamplesOfEachInput) {
  const Graph graph = TwoInputs();
  const auto set = SampleSet::Open(
      {File("scope_a", Npy<int8_t>(DType::kInt8, {3, 2}, {1, -2, 3, 4, 5, 6})),
       File("b", Npy<double>(DType::kFloat64, {3, 2, 1}, {10, 20, 30, 40, 50, 60}))},
      graph);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->size(), 3);
  std::vector<std::vector<float>> inputs;
  ASSERT_TRUE(set->Read(2, inputs).ok());
  EXPECT_THAT(inputs, ElementsAre(ElementsAre(5, 6), ElementsAre(50, 60)));
  ASSERT_TRUE(set->Read(0, inputs).ok());
  EXPECT_THAT(inputs, ElementsAre(ElementsAre(1, -2), ElementsAre(10, 20)));
}

TEST(SampleSetTest, SaysWhatDoesNotFit) {
  const auto problem = [](const Graph& graph, std::vector<SampleFile> files) {
    const auto set = SampleSet::Open(files, graph);
    if (set.ok()) {
      std::vector<std::vector<float>> inputs;
      return std::string(set->Read(0, inputs).message());
    }
    return std::string(set.status().message());
  };
  const std::string two = Npy<float>(DType::kFloat32, {1, 2}, {1, 2});
  EXPECT_THAT(problem(TwoInputs(), {File("", two)}), HasSubstr("a model of 2 inputs"));
  EXPECT_THAT(problem(TwoInputs(), {File("scope/a", two)}), HasSubstr("no samples for input 'b'"));
  EXPECT_THAT(problem(TwoInputs(), {File("c", two)}),
              HasSubstr("no input 'c'; it has: scope/a, b"));
  EXPECT_THAT(problem(OneInput(), {File("", two), File("a", two)}), HasSubstr("already"));
  EXPECT_THAT(problem(OneInput(), {File("", two)}), "");
  EXPECT_THAT(problem(OneInput(), {File("", Npy<float>(DType::kFloat32, {3}, {1, 2, 3}))}),
              HasSubstr("holds no samples of input 'a' [1,2]"));
  EXPECT_THAT(problem(OneInput(), {File("", Npy<float>(DType::kFloat32, {0, 2}, {}))}),
              HasSubstr("holds no samples"));
  EXPECT_THAT(problem(OneInput(), {File("", Npy<float>(DType::kFloat32, {1, 2}, {1, NAN}))}),
              HasSubstr("not finite"));
  EXPECT_THAT(problem(OneInput(), {File("", two.substr(0, two.size() - 1))}),
              HasSubstr("data.npy: not a usable .npy file: it holds 7 bytes"));
  EXPECT_THAT(problem(OneInput(), {}), HasSubstr("no samples"));
  EXPECT_THAT(problem(TwoInputs(), {File("scope/a", two),
                                    File("b", Npy<float>(DType::kFloat32, {4, 1}, {1, 2, 3, 4}))}),
              HasSubstr("holds 2 samples, another input has 1"));
}

TEST(SampleSetTest, AnInputThatMayLackSamplesIsZeroUntilItGetsSome) {
  const std::string two = Npy<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  auto set = SampleSet::Open({File("", two)}, TwoInputs(), {1});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_TRUE(set->HasSamples(0));
  EXPECT_FALSE(set->HasSamples(1));
  std::vector<std::vector<float>> inputs;
  ASSERT_TRUE(set->Read(1, inputs).ok());
  EXPECT_THAT(inputs, ElementsAre(ElementsAre(3, 4), ElementsAre(0, 0)));
  set->SetSamples(1, "b", {5, 6, 7, 8});
  ASSERT_TRUE(set->Read(1, inputs).ok());
  EXPECT_THAT(inputs, ElementsAre(ElementsAre(3, 4), ElementsAre(7, 8)));
}

TEST(SampleSetTest, ReadsArchivesStoredAndDeflated) {
  for (const bool deflated : {false, true}) {
    const std::string npz = Npz(deflated);
    const auto set = SampleSet::Open({File("", npz)}, OneInput());
    ASSERT_TRUE(set.ok()) << set.status();
    std::vector<std::vector<float>> inputs;
    ASSERT_TRUE(set->Read(1, inputs).ok());
    EXPECT_THAT(inputs, ElementsAre(ElementsAre(3, 4)));
    for (size_t i = 0; i < npz.size(); ++i) {  // any cut, and any damage to the data, is refused
      EXPECT_FALSE(ReadArchive(npz.substr(0, i), 1 << 20).ok()) << i;
    }
    for (size_t i = 56; i < 100; ++i) {
      std::string damaged = npz;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
      EXPECT_FALSE(ReadArchive(damaged, 1 << 20).ok()) << i;
    }
    EXPECT_EQ(ReadArchive(npz, 100).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

// Files of a folder, as a program packs them.
SampleFile Folder(absl::string_view input, const std::vector<ZipFile>& entries) {
  return {std::string(input), "folder", std::make_shared<OwnedSource>(*WriteZip(entries))};
}

TEST(SampleSetTest, AFolderIsSamplesInTheOrderOfNames) {
  const std::string row = Npy<float>(DType::kFloat32, {1, 2}, {1, 2});
  const std::string rows = Npy<uint8_t>(DType::kUint8, {2, 2}, {3, 4, 5, 6});
  const auto set =
      SampleSet::Open({Folder("", {{"calib/2.npy", rows}, {"calib/1.npy", row}})}, OneInput());
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->size(), 3);
  std::vector<std::vector<float>> inputs;
  ASSERT_TRUE(set->Read(2, inputs).ok());
  EXPECT_THAT(inputs, ElementsAre(ElementsAre(5, 6)));
  ASSERT_TRUE(set->Read(0, inputs).ok());
  EXPECT_THAT(inputs, ElementsAre(ElementsAre(1, 2)));
}

TEST(SampleSetTest, EachInputHasItsFolder) {
  const std::string a = Npy<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4});
  const std::string b = Npy<float>(DType::kFloat32, {2, 1}, {5, 6});
  const auto check = [](const absl::StatusOr<SampleSet>& set) {
    ASSERT_TRUE(set.ok()) << set.status();
    std::vector<std::vector<float>> inputs;
    ASSERT_TRUE(set->Read(1, inputs).ok());
    EXPECT_THAT(inputs, ElementsAre(ElementsAre(3, 4), ElementsAre(5, 6)));
  };
  check(SampleSet::Open({Folder("", {{"scope_a/1.npy", a}, {"b/1.npy", b}, {"b/2.npy", b}})},
                        TwoInputs()));
  check(SampleSet::Open(
      {Folder("scope/a", {{"x.npy", a}}), Folder("b", {{"y.npy", b}, {"z.npy", b}})}, TwoInputs()));
}

TEST(SampleSetTest, SaysWhatOfAFolderDoesNotFit) {
  const auto problem = [](const Graph& graph, const std::vector<ZipFile>& entries) {
    return std::string(SampleSet::Open({Folder("", entries)}, graph).status().message());
  };
  const std::string row = Npy<float>(DType::kFloat32, {1, 2}, {1, 2});
  EXPECT_THAT(problem(OneInput(), {{"x/1.npy", row}, {"x/list.txt", "1"}}),
              HasSubstr("folder:list.txt: not a usable .npy file"));
  EXPECT_THAT(problem(OneInput(), {}), HasSubstr("no samples for input 'a'"));
  EXPECT_THAT(problem(TwoInputs(), {{"c/1.npy", row}, {"b/1.npy", row}}),
              HasSubstr("holds no samples of input 'b' [2,1]"));
  EXPECT_THAT(problem(TwoInputs(), {{"c/1.npy", row}, {"scope_a/1.npy", row}}),
              HasSubstr("no input 'c'; it has: scope/a, b"));
  EXPECT_THAT(problem(TwoInputs(), {{"1.npy", row}, {"b/1.npy", row}}),
              HasSubstr("1.npy: it lies in no folder that has the name of one of the model's "
                        "inputs: scope/a, b"));
}

TEST(SampleSetTest, ReadsLabels) {
  const auto labels = ReadNumbers(Npy<int64_t>(DType::kInt64, {3, 1}, {4, 5, 6}));
  ASSERT_TRUE(labels.ok());
  EXPECT_THAT(*labels, ElementsAre(4, 5, 6));
  EXPECT_FALSE(ReadNumbers(Npy<int64_t>(DType::kInt64, {1, 2}, {4, 5})).ok());
}

std::string Npz(bool deflated) {
  constexpr char kStored[] =
      "PK\003\004\024\000\000\000\000\000\000\000!\000N\373 u\220\000\000\000\220\000\000\000\005"
      "\000\024\000a.npy\001\000\020\000\220\000\000\000\000\000\000\000\220\000\000\000\000\000"
      "\000\000\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }  "
      "                                                        \012\000\000\200\077\000\000\000@"
      "\000\000@@\000\000\200@PK\001\002\024\003\024\000\000\000\000\000\000\000!\000N\373 u\220"
      "\000\000\000\220\000\000\000\005\000\000\000\000\000\000\000\000\000\000\000\200\001\000"
      "\000\000\000a.npyPK\005\006\000\000\000\000\001\000\001\0003\000\000\000\307\000\000\000"
      "\000\000";
  constexpr char kDeflated[] =
      "PK\003\004\024\000\000\000\010\000\000\000!\000N\373 uS\000\000\000\220\000\000\000\005\000"
      "\024\000a.npy\001\000\020\000\220\000\000\000\000\000\000\000S\000\000\000\000\000\000\000"
      "\233\354\027\352\033\020\311\310P\306P\255\236\222Z\234\134\244n\245\240n\223f\242\256\243"
      "\240\236\226_TR\224\230\027\237_\224\222\012\022wK\314)N\005\212\027g$\026\244\002\371\032F"
      ":\012F\232:\012\265\012d\003.\006\206\006{\006\006\006\007 \002\342\006\007\000PK\001\002"
      "\024\003\024\000\000\000\010\000\000\000!\000N\373 uS\000\000\000\220\000\000\000\005\000"
      "\000\000\000\000\000\000\000\000\000\000\200\001\000\000\000\000a.npyPK\005\006\000\000\000"
      "\000\001\000\001\0003\000\000\000\212\000\000\000\000\000";
  return deflated ? std::string(kDeflated, sizeof(kDeflated) - 1)
                  : std::string(kStored, sizeof(kStored) - 1);
}

}  // namespace
}  // namespace npuc
