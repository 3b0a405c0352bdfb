#include "compiler_core/emit/artifact.h"

namespace npuc {
namespace {

int64_t StructBytes(const std::vector<PortTensor>& ports) {
  int64_t bytes = 0;
  for (const PortTensor& port : ports) bytes += ElementCount(port.shape) * SizeOf(port.dtype);
  return bytes;
}

}  // namespace

int64_t CompiledModel::npu_size() const {
  return static_cast<int64_t>(cmd_content.size() + weight_content.size() + ops_content.size()) +
         data_bytes;
}

int64_t CompiledModel::input_struct_bytes() const { return StructBytes(inputs); }

int64_t CompiledModel::output_struct_bytes() const { return StructBytes(outputs); }

int64_t CompiledModel::total_size() const {
  return npu_size() + input_struct_bytes() + output_struct_bytes();
}

}  // namespace npuc
