#include "compiler_core/backends/report_data.h"

#include <algorithm>
#include <cmath>

namespace npuc {

std::vector<BufferFigures> MemoryMapOf(absl::Span<const Buffer> buffers,
                                       absl::Span<const LiveRange> ranges) {
  std::vector<BufferFigures> map;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.slot != Slot::kData || ranges[i].empty()) continue;
    map.push_back({buffer.name, buffer.offset_bytes, buffer.size_bytes, ranges[i]});
  }
  std::stable_sort(map.begin(), map.end(), [](const BufferFigures& a, const BufferFigures& b) {
    return a.size_bytes > b.size_bytes;
  });
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
