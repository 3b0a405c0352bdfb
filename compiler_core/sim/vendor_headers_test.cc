#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "compiler_core/base/fp16.h"
#include "compiler_core/emit/fixtures_test_util.h"
#include "compiler_core/emit/header_reader.h"
#include "compiler_core/sim/simulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

std::unique_ptr<Simulator> LoadHeader(const std::filesystem::path& path) {
  Diagnostics diagnostics;
  const absl::StatusOr<CompiledModel> model =
      ReadCHeader(ReadTestFile(path), path.filename().string(), diagnostics);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<Simulator>> simulator =
      Simulator::Load(*model, path.filename().string(), diagnostics);
  EXPECT_TRUE(simulator.ok()) << simulator.status();
  for (const Diagnostic& d : diagnostics.list()) ADD_FAILURE() << d.ToString();
  return simulator.ok() ? *std::move(simulator) : nullptr;
}

void PutHalf(float value, size_t index, std::vector<uint8_t>& bytes) {
  const uint16_t half = FloatToHalf(value);
  std::memcpy(bytes.data() + 2 * index, &half, 2);
}

// The values of an output.
std::vector<float> Values(const PortTensor& port, const std::vector<uint8_t>& bytes) {
  std::vector<float> values(static_cast<size_t>(ElementCount(port.shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t* at = bytes.data() + port.offset_bytes;
    if (port.dtype == DType::kFloat32) {
      std::memcpy(&values[i], at + 4 * i, 4);
    } else {
      uint16_t half;
      std::memcpy(&half, at + 2 * i, 2);
      values[i] = HalfToFloat(half);
    }
  }
  return values;
}

// The little of .npy that the fixtures need: data behind a header of version 1.
template <typename T>
std::vector<T> ReadNpy(const std::filesystem::path& path) {
  const std::string bytes = ReadTestFile(path);
  const size_t start = 10 + static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]);
  std::vector<T> values((bytes.size() - start) / sizeof(T));
  std::memcpy(values.data(), bytes.data() + start, values.size() * sizeof(T));
  return values;
}

TEST(VendorHeaders, TheMnistNetReadsItsDigits) {
  const std::filesystem::path folder = SharedFolder() / "fixtures" / "gxdnn-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const std::unique_ptr<Simulator> simulator = LoadHeader(folder / "vendor_model.h");
  ASSERT_NE(simulator, nullptr);
  const std::vector<float> images = ReadNpy<float>(folder / "images.npy");
  const std::vector<int32_t> digits = ReadNpy<int32_t>(folder / "digits.npy");
  const std::vector<float> logits = ReadNpy<float>(folder / "logits_float.npy");
  ASSERT_EQ(images.size(), digits.size() * 784);
  double worst = 0;
  for (size_t image = 0; image < digits.size(); ++image) {
    std::vector<uint8_t> input(1568);
    for (size_t i = 0; i < 784; ++i) PutHalf(images[image * 784 + i], i, input);
    std::vector<uint8_t> output;
    ASSERT_TRUE(simulator->Run(input, output).ok());
    const std::vector<float> row = Values(simulator->outputs()[0], output);
    ASSERT_EQ(row.size(), 10u);
    EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), digits[image]);
    for (size_t i = 0; i < 10; ++i) {
      worst = std::max<double>(worst, std::abs(row[i] - logits[image * 10 + i]));
    }
  }
  // Weights in 8 bits over a range of 1.6, up to 150 bright pixels: errors of up to half a step
  // (0.003) each, of either sign.
  EXPECT_LT(worst, 0.1);
  RecordProperty("worst_logit_error", std::to_string(worst));
}

// The state outputs of a frame become the state inputs of the next, as firmware does it.
void FeedBack(const Simulator& simulator, const std::vector<uint8_t>& output,
              std::vector<uint8_t>& input) {
  for (const PortTensor& port : simulator.outputs()) {
    if (port.state_input < 0) continue;
    const PortTensor& state = simulator.inputs()[static_cast<size_t>(port.state_input)];
    const auto from = output.begin() + port.offset_bytes;
    std::copy(from, from + ElementCount(port.shape) * SizeOf(port.dtype),
              input.begin() + state.offset_bytes);
  }
}

// Runs 50 frames of noise; every value must be finite.
struct Trace {
  std::vector<std::vector<float>> rows;  // the non-state outputs, frame by frame
};
Trace RunFrames(Simulator& simulator, float amplitude, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, amplitude);
  std::vector<uint8_t> input(static_cast<size_t>(simulator.input_bytes()), 0);
  std::vector<uint8_t> output;
  Trace trace;
  for (int frame = 0; frame < 50; ++frame) {
    const int64_t count = ElementCount(simulator.inputs()[0].shape);
    for (int64_t i = 0; i < count; ++i) PutHalf(normal(random), static_cast<size_t>(i), input);
    EXPECT_TRUE(simulator.Run(input, output).ok());
    for (const PortTensor& port : simulator.outputs()) {
      const std::vector<float> values = Values(port, output);
      for (const float value : values) {
        EXPECT_TRUE(std::isfinite(value)) << port.name << " in frame " << frame;
        if (!std::isfinite(value)) return trace;
      }
      if (port.state_input < 0) trace.rows.push_back(values);
    }
    FeedBack(simulator, output, input);
  }
  return trace;
}

TEST(VendorHeaders, AllRunFiftyFramesAndRespond) {
  const std::vector<std::filesystem::path> headers = VendorHeaders();
  if (headers.size() < 2) GTEST_SKIP() << "no published headers at " << SharedFolder();
  for (const std::filesystem::path& path : headers) {
    const std::unique_ptr<Simulator> simulator = LoadHeader(path);
    ASSERT_NE(simulator, nullptr) << path;
    const Trace a = RunFrames(*simulator, 1.0f, 1);
    const Trace b = RunFrames(*simulator, 1.0f, 2);
    ASSERT_EQ(a.rows.size(), 50u) << path;
    ASSERT_EQ(b.rows.size(), 50u) << path;
    EXPECT_NE(a.rows.back(), b.rows.back()) << path << " does not see its input";
    const std::string name = path.filename().string();
    const bool softmax = name.find("alexa_v0.1") != std::string::npos ||
                         name.find("grus_tws_zh") != std::string::npos;
    for (const std::vector<float>& row : a.rows) {
      if (!softmax) break;  // the other nets end in sigmoids or in plain scores
      double sum = 0;
      for (const float value : row) sum += value;
      EXPECT_NEAR(sum, 1.0, 0.01) << path;
      EXPECT_GE(*std::min_element(row.begin(), row.end()), 0.0f) << path;
    }
  }
}

TEST(VendorHeaders, OneNetCompiledWithAndWithoutCompressionGivesOneResult) {
  // alexa v0.1.4 and v0.1.5 have one pb_md5: the same model, its convolution weights compressed in
  // the one and plain in the other. That both agree checks the order of codes, masks and biases.
  std::filesystem::path compressed;
  std::filesystem::path plain;
  for (const std::filesystem::path& path : VendorHeaders()) {
    const std::string name = path.filename().string();
    if (name.find("alexa_v0.1.4") != std::string::npos) compressed = path;
    if (name.find("alexa_v0.1.5") != std::string::npos) plain = path;
  }
  if (compressed.empty() || plain.empty()) GTEST_SKIP() << "no published headers";
  const std::unique_ptr<Simulator> a = LoadHeader(compressed);
  const std::unique_ptr<Simulator> b = LoadHeader(plain);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  const Trace rows_a = RunFrames(*a, 1.0f, 3);
  const Trace rows_b = RunFrames(*b, 1.0f, 3);
  ASSERT_EQ(rows_a.rows.size(), rows_b.rows.size());
  size_t same_top = 0;
  for (size_t frame = 0; frame < rows_a.rows.size(); ++frame) {
    const std::vector<float>& x = rows_a.rows[frame];
    const std::vector<float>& y = rows_b.rows[frame];
    same_top += std::max_element(x.begin(), x.end()) - x.begin() ==
                        std::max_element(y.begin(), y.end()) - y.begin()
                    ? 1
                    : 0;
  }
  // 8-bit weights may tip a frame; 42 classes agree by chance once in 42.
  EXPECT_GE(same_top, 45u);
}

}  // namespace
}  // namespace npuc
