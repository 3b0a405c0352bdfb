// Frame time of the simulator on a fully connected net (784-240-240-10, compressed, relu between),
// beside the bare float loops of the same three products in the same run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "compiler_core/base/fp16.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/emit/written_test_util.h"
#include "compiler_core/sim/simulator.h"

namespace npuc {
namespace {

// Wide layers are split over K, since n x k of one command stays below 65536.
constexpr int kWidths[] = {784, 240, 240, 10};
constexpr int64_t kSlotBytes = 4096;

Operand At(Slot slot, int64_t offset) { return {BufferId(static_cast<int32_t>(slot)), offset}; }

VectorCommand Row(VectorCommand::Kind kind, Operand a, Operand d, int count) {
  VectorCommand v;
  v.kind = kind;
  v.a = a;
  v.d = d;
  v.extents = {1, 1, static_cast<uint16_t>(count)};
  v.a_middle_stride = v.a_outer_stride = v.d_middle_stride = v.d_outer_stride =
      static_cast<uint16_t>(count);
  return v;
}

// A matrix of which every weight has a code; returns where its mask starts.
int64_t AddWeights(int k, int n, std::vector<uint8_t>& weights, int64_t& codes) {
  const int64_t mask = static_cast<int64_t>(weights.size());
  for (int kb = 0; kb < k; kb += 32) {
    for (int nb = 0; nb < n; nb += 32) {
      for (int row = 0; row < 32; ++row) {
        for (int bit = 0; bit < 32; bit += 8) {
          int byte = 0;
          for (int i = 0; i < 8; ++i) {
            if (kb + row < k && nb + bit + i < n) byte |= 0x80 >> i;
          }
          weights.push_back(static_cast<uint8_t>(byte));
        }
      }
    }
  }
  codes = static_cast<int64_t>(weights.size());
  for (int i = 0; i < k * n; ++i) weights.push_back(static_cast<uint8_t>(i * 37));
  if (weights.size() % 2 != 0) weights.push_back(0);
  return mask;
}

CompiledModel FullyConnectedNet() {
  Program p;
  p.buffers = SlotBuffers();
  std::vector<uint8_t> weights;
  Operand a = At(Slot::kInput, 0);
  constexpr int kPart = 224;  // inputs of one command
  for (int layer = 0; layer < 3; ++layer) {
    const int n = kWidths[layer + 1];
    Operand sum;
    for (int first = 0; first < kWidths[layer]; first += kPart) {
      FullyConnectedCommand fc;
      fc.k = static_cast<uint16_t>(std::min(kPart, kWidths[layer] - first));
      fc.n = static_cast<uint16_t>(n);
      fc.a = a.Plus(2 * first);
      int64_t codes = 0;
      fc.mask = At(Slot::kWeight, AddWeights(fc.k, n, weights, codes));
      fc.codes = At(Slot::kWeight, codes);
      fc.d = At(Slot::kData, first == 0 ? 0 : kSlotBytes);
      fc.min = FloatToHalf(-0.5f);
      fc.step = FloatToHalf(1.0f / 256);
      p.commands.push_back({fc, true, false, "", {}});
      if (first > 0) {
        VectorCommand add = Row(VectorCommand::Kind::kTensorTensor, sum, sum, n);
        add.b = fc.d;
        p.commands.push_back({add, true, false, "", {}});
      }
      sum = At(Slot::kData, 0);
    }
    a = At(Slot::kData, (2 + layer) * kSlotBytes);
    p.commands.push_back({Row(VectorCommand::Kind::kActivation, sum, a, n), true, false, "", {}});
  }
  p.commands.push_back({Row(VectorCommand::Kind::kFormat, a, At(Slot::kOutput, 0), kWidths[3]),
                        true,
                        false,
                        "",
                        {}});
  CompiledModel m;
  m.inputs = {{"x", {1, kWidths[0]}, DType::kFloat16, 0, -1}};
  m.outputs = {{"y", {1, kWidths[3]}, DType::kFloat32, 0, -1}};
  const absl::StatusOr<std::vector<uint8_t>> bytes = EncodeCommands(p);
  if (bytes.ok()) m.cmd_content = *bytes;
  m.weight_content = std::move(weights);
  m.data_bytes = 5 * kSlotBytes;
  return m;
}

void BM_SimulatorFrame(benchmark::State& state) {
  Diagnostics diagnostics;
  const auto simulator = Simulator::Load(FullyConnectedNet(), "bench", diagnostics);
  if (!simulator.ok()) {
    state.SkipWithError(std::string(simulator.status().message()).c_str());
    return;
  }
  const std::vector<uint8_t> input(2 * kWidths[0], 0x2c);
  std::vector<uint8_t> output;
  for (auto _ : state) {
    if (!(*simulator)->Run(input, output).ok()) state.SkipWithError("run failed");
    benchmark::DoNotOptimize(output.data());
  }
}
BENCHMARK(BM_SimulatorFrame);

void BM_BareFloatLoops(benchmark::State& state) {
  std::vector<std::vector<float>> weights;
  for (int layer = 0; layer < 3; ++layer) {
    weights.emplace_back(static_cast<size_t>(kWidths[layer] * kWidths[layer + 1]), 0.01f);
  }
  for (auto _ : state) {
    std::vector<float> a(static_cast<size_t>(kWidths[0]), 0.06f);
    for (int layer = 0; layer < 3; ++layer) {
      const size_t n = static_cast<size_t>(kWidths[layer + 1]);
      std::vector<float> d(n, 0.0f);
      for (size_t k = 0; k < a.size(); ++k) {
        const float* row = weights[static_cast<size_t>(layer)].data() + k * n;
        for (size_t i = 0; i < n; ++i) d[i] += a[k] * row[i];
      }
      a = d;
    }
    benchmark::DoNotOptimize(a.data());
  }
}
BENCHMARK(BM_BareFloatLoops);

void BM_WriteHeader(benchmark::State& state) {
  CompiledModel m = FullyConnectedNet();
  m.weight_content.assign(4 << 20, 0x5a);
  int64_t bytes = 0;
  for (auto _ : state) {
    Diagnostics diagnostics;
    const absl::StatusOr<std::string> text = HeaderText(m, diagnostics);
    if (!text.ok()) state.SkipWithError("no header");
    if (text.ok()) bytes += static_cast<int64_t>(text->size());
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_WriteHeader);

}  // namespace
}  // namespace npuc

BENCHMARK_MAIN();
