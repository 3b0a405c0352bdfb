// Fuzzes the readers of calibration data: a file for one input [2,3], as .npy or .npz.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/archive.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/quant/data/numpy_pickle.h"
#include "compiler_core/quant/data/sample_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<npuc::NpyArray> array = npuc::ReadNpy(bytes);
  if (array.ok()) {
    const absl::StatusOr<std::string> written = npuc::WriteNpy(*array);
    if (!written.ok() || npuc::ReadNpy(*written)->bytes != array->bytes) __builtin_trap();
  }
  (void)npuc::ReadArchive(bytes, int64_t{1} << 22);
  (void)npuc::ReadNumbers(bytes);
  (void)npuc::ReadNumpyPickle(bytes);
  npuc::Graph graph;
  graph.AddInput("x", {npuc::DType::kFloat32, {2, 3}});
  const absl::StatusOr<npuc::SampleSet> set =
      npuc::SampleSet::Open({{"", "fuzz", std::make_shared<npuc::ViewSource>(bytes)}}, graph);
  if (!set.ok()) return 0;
  std::vector<std::vector<float>> inputs;
  for (const int64_t index : {int64_t{0}, set->size() - 1}) {
    const absl::Status status = set->Read(index, inputs);
    if (!status.ok() && !absl::IsInvalidArgument(status)) __builtin_trap();
  }
  return 0;
}
