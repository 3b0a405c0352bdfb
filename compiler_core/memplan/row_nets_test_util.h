#ifndef NPUC_COMPILER_CORE_MEMPLAN_ROW_NETS_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_MEMPLAN_ROW_NETS_TEST_UTIL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/ir/integer/command.h"

namespace npuc {

// A map of rows x columns x channels bytes.
struct Map {
  int32_t h = 1, w = 1, c = 1;
  int64_t size_bytes() const { return int64_t{h} * w * c; }
};

// Builds a program on one input and one output.
class Nets {
 public:
  Nets(const Map& input, const Map& output) : output_(output) {
    program.buffers = {{Slot::kInput, input.size_bytes(), 0, "input"},
                       {Slot::kOutput, output.size_bytes(), 0, "output"},
                       {Slot::kWeight, 65536, 0, "weights"}};
    maps_ = {input, output, {}};
    program.inputs = {{"x", {input.size_bytes()}, DType::kInt8, 0, -1, 1.0, 0}};
    program.outputs = {{"y", {output.size_bytes()}, DType::kInt8, 0, -1, 1.0, 0}};
  }

  int32_t Add(const Map& map) {
    program.buffers.push_back({Slot::kData, map.size_bytes(), -1, ""});
    maps_.push_back(map);
    return static_cast<int32_t>(program.buffers.size()) - 1;
  }
  const Map& map(int32_t buffer) const { return maps_[static_cast<size_t>(buffer)]; }

  void Convolution(int32_t from, int32_t to, int32_t kernel, int32_t stride = 1,
                   const std::string& layer = "convolution") {
    integer::Convolve c;
    const Map& in = map(from);
    const Map& out = map(to);
    c.a = {BufferId(from), 0};
    c.weights = c.bias = c.factors = {BufferId(2), 0};
    c.in_h = in.h;
    c.in_w = in.w;
    c.in_c = in.c;
    c.out_h = out.h;
    c.out_w = out.w;
    c.out_c = out.c;
    c.window.kernel_h = c.window.kernel_w = kernel;
    c.window.stride_h = c.window.stride_w = stride;
    c.window.pad_top = c.window.pad_left = kernel / 2;
    c.result.d = {BufferId(to), 0};
    program.commands.push_back({c, layer});
  }
  // Copies a whole buffer to an offset of another.
  void Copy(int32_t from, int32_t to, int64_t offset = 0) {
    integer::Move c;
    c.a = {BufferId(from), 0};
    c.extents[5] = static_cast<int32_t>(map(from).size_bytes());
    c.a_strides[5] = c.d_strides[5] = 1;
    c.result.d = {BufferId(to), offset};
    program.commands.push_back({c, "copy"});
  }
  void Sum(int32_t a, int32_t b, int32_t to) {
    integer::Combine c;
    c.a = {BufferId(a), 0};
    c.b = {BufferId(b), 0};
    c.factors = {BufferId(2), 0};
    c.extents[5] = static_cast<int32_t>(map(a).size_bytes());
    c.a_strides[5] = c.b_strides[5] = c.d_strides[5] = 1;
    c.result.d = {BufferId(to), 0};
    program.commands.push_back({c, "sum"});
  }

  integer::Program program;

 private:
  Map output_;
  std::vector<Map> maps_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_MEMPLAN_ROW_NETS_TEST_UTIL_H_
