#include "compiler_core/backends/report_data.h"

#include <algorithm>
#include <cmath>

namespace npuc {

std::vector<size_t> BuffersInUse(absl::Span<const Buffer> buffers,
                                 absl::Span<const LiveRange> ranges) {
  std::vector<size_t> order;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].slot == Slot::kData && !ranges[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].size_bytes > buffers[b].size_bytes;
  });
  return order;
}

std::vector<BufferFigures> MemoryMapOf(absl::Span<const Buffer> buffers,
                                       absl::Span<const LiveRange> ranges) {
  std::vector<BufferFigures> map;
  for (const size_t i : BuffersInUse(buffers, ranges)) {
    const Buffer& buffer = buffers[i];
    map.push_back({buffer.name, buffer.offset_bytes, buffer.size_bytes, ranges[i]});
  }
  return map;
}

int BitsOf(const QuantParams& params) {
  const int magnitude = static_cast<int>(std::ceil(std::log2(params.qmax + 1.0)));
  return params.qmin < 0 ? magnitude + 1 : magnitude;
}

Histogram ReportHistogram(const Tensor& tensor) {
  constexpr int kBins = 32;
  if (tensor.dtype() == DType::kFloat32) return MakeHistogram(tensor.as<float>(), kBins);
  return MakeHistogram(tensor.ToFloats(), kBins);
}

}  // namespace npuc
