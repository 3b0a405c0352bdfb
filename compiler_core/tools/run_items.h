#ifndef NPUC_COMPILER_CORE_TOOLS_RUN_ITEMS_H_
#define NPUC_COMPILER_CORE_TOOLS_RUN_ITEMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/sim/simulator.h"

namespace npuc {

// Runs a model over stacked items, as `npuc run` and `npuc reference` do. No files.

// Something that computes one frame: the simulator, or the float reference. Ports lie in the input
// and output bytes at their offsets, in their dtypes.
class FrameRunner {
 public:
  virtual ~FrameRunner() = default;
  virtual const std::vector<PortTensor>& inputs() const = 0;
  virtual const std::vector<PortTensor>& outputs() const = 0;
  // The type that the model states for input i, which says what an array's integers are. A runner
  // may hold the values in another.
  virtual DType StatedType(size_t i) const { return inputs()[i].dtype; }
  virtual absl::Status Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) = 0;
};

// The simulator as a FrameRunner; it must outlive this.
class SimulatorRunner : public FrameRunner {
 public:
  // `stated`: by inputs; empty: the types of the ports.
  explicit SimulatorRunner(Simulator& simulator, std::vector<DType> stated = {})
      : simulator_(simulator), stated_(std::move(stated)) {}
  const std::vector<PortTensor>& inputs() const override { return simulator_.inputs(); }
  const std::vector<PortTensor>& outputs() const override { return simulator_.outputs(); }
  DType StatedType(size_t i) const override {
    return i < stated_.size() ? stated_[i] : FrameRunner::StatedType(i);
  }
  absl::Status Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) override {
    return simulator_.Run(input, output);
  }

 private:
  Simulator& simulator_;
  const std::vector<DType> stated_;
};

struct NamedArray {
  std::string name;
  NpyArray array;
};

// Element i of an array of any type that NpyArray has.
double ValueAt(const NpyArray& array, int64_t i);
// All of them, in its order.
std::vector<float> FloatsOf(const NpyArray& array);

// The real values of what a port stores; floats as they are.
std::vector<float> RealValues(const PortTensor& port, const NpyArray& stored);
// Arrays of stored values, and of the integers that a model itself takes, as the floats that they
// stand for.
std::vector<NamedArray> RealInputs(const FrameRunner& model, std::vector<NamedArray> inputs);

// The inputs that a caller gives: all but those that an output feeds back.
std::vector<const PortTensor*> InputsToGive(const FrameRunner& model);
// One item for an input that the model states as `stated`: floats evenly spread over [-1, 1),
// stored integers and a model's own of 8 and 16 bits over their type, wider ones 0 or 1. The same
// for a seed on every machine, whatever the input's name.
NpyArray RandomInput(const PortTensor& port, DType stated, uint32_t seed);

// How many items of `tensor` an array of `shape` holds; 0 where it fits in no way.
int64_t ItemCount(const Shape& tensor, const std::vector<int64_t>& shape);

// What integer ports take and give, beside arrays of their own type.
enum class RunValues : uint8_t {
  kReal,           // float32 in and out
  kStored,         // stored values alone, in and out
  kStoredResults,  // float32 in, stored values out
};

struct RunItemsResult {
  int64_t items = 0;
  std::vector<NamedArray> outputs;  // in the model's order; items stacked in the first dimension
};

// Inputs are matched by name ('/' and ':' may stand as '_'); float32, float64 or float16, converted
// to the port's type. An input that the model states as integers takes integers of that type as
// numbers, one that it states as float16 takes uint16 as bit patterns. An array [m*t,...] for a
// tensor [t,...] is m items; one item serves all. An array of one dimension more, [m,t,...], is m
// items too. State inputs may be left out: they start at zero, and are fed back from item to item;
// one that is given is the first item's. `max_items` 0: all there are. Above the number of items:
// where every input is one item, it is repeated that often; else no effect. All problems become
// diagnostics. Of integer ports (those with a scale): an array of the port's own type holds stored
// values; a float one is quantized by the port's parameters (to nearest, ties to even, clamped).
// Outputs are dequantized to float32. `values` says otherwise.
absl::StatusOr<RunItemsResult> RunItems(FrameRunner& model, const std::vector<NamedArray>& inputs,
                                        int64_t max_items, Diagnostics& diagnostics,
                                        RunValues values = RunValues::kReal);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_RUN_ITEMS_H_
