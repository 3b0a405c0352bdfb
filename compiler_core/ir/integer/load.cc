#include "compiler_core/ir/integer/load.h"

#include <algorithm>
#include <variant>

#include "compiler_core/base/rounding.h"
#include "compiler_core/ir/integer/access.h"

namespace npuc::integer {
namespace {

// Lanes of a sum's inputs take products of up to so many taps at once.
constexpr int64_t kTapLanes = 4;

// Cycles of one sum: inputs of tap after tap, or of several taps where a tap has few.
int64_t SumCycles(int64_t taps, int64_t inputs, int64_t lanes) {
  const int64_t by_taps = CappedProduct(
      {DivideUp(taps, kTapLanes), DivideUp(inputs, std::max<int64_t>(1, lanes / kTapLanes))});
  return std::min(CappedProduct({taps, DivideUp(inputs, lanes)}), by_taps);
}

}  // namespace

int64_t ArrayCycles(const Body& body, const MacArray& array) {
  if (const auto* c = std::get_if<Convolve>(&body)) {
    const int64_t inputs = c->in_c / c->groups;
    const int64_t taps = int64_t{c->window.kernel_h} * c->window.kernel_w;
    // Channels that read one input each stand side by side; other groups follow each other.
    const int64_t blocks = inputs == 1 ? DivideUp(c->out_c, array.outputs)
                                       : c->groups * DivideUp(c->out_c / c->groups, array.outputs);
    const int64_t pixels = CappedProduct({c->out_h, c->out_w});
    const int64_t cycles = CappedProduct(
        {c->n, DivideUp(pixels, array.pixels), blocks, SumCycles(taps, inputs, array.inputs)});
    const int64_t decoding =
        c->coded_bytes > 0 ? DivideUp(WeightCount(*c), array.weights_per_cycle) : 0;
    return std::max(cycles, decoding);
  }
  if (const auto* p = std::get_if<Product>(&body)) {
    const Extents& e = p->extents;
    return CappedProduct({e[0], e[1], e[2], DivideUp(e[3], array.pixels),
                          DivideUp(e[4], array.outputs), DivideUp(e[5], array.inputs)});
  }
  return 0;
}

CommandLoad LoadOf(const Body& body, const MacArray* array) {
  CommandLoad load;
  (MultipliesAndAdds(body) ? load.macs : load.elements) = WorkOf(body);
  if (array != nullptr) load.array_cycles = ArrayCycles(body, *array);
  for (const Access& access : AccessesOf(body)) {
    (access.writes ? load.written_bytes : load.read_bytes) += access.size_bytes;
  }
  // A part of the channels stores nothing between its pixels.
  if (const auto* c = std::get_if<Convolve>(&body); c != nullptr && c->d_pixel > 0) {
    load.written_bytes =
        CappedProduct({c->n, c->out_h, c->out_w, c->out_c, SizeOf(c->result.type)});
  }
  return load;
}

FrameLoad FrameLoadOf(const Program& program, const CoreSpec& core) {
  FrameLoad frame;
  StreamClock clock(*core.cycles, CoresOf(core));
  int64_t phase = 0;
  for (const Command& command : program.commands) {
    if (command.barrier) ++phase;
    const CommandLoad one = LoadOf(command.body, MacArrayOf(core));
    clock.Run(phase, command.core, one);
    frame.load += one;
  }
  frame.cycles = clock.cycles();
  return frame;
}

}  // namespace npuc::integer
