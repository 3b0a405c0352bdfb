#include "compiler_core/frontends/tflite/box_decoder.h"

#include <algorithm>

namespace npuc::tflite {
namespace {

constexpr absl::string_view kDecoder = "TFLite_Detection_PostProcess";
constexpr size_t kDecodedOperands = 2;  // boxes and scores; behind them stand the anchors

}  // namespace

CoreOutputs OutputsOfCores(const ModelFile& file) {
  CoreOutputs outputs;
  const auto add = [&](int tensor) {
    const auto& found = outputs.tensors;
    if (std::find(found.begin(), found.end(), tensor) == found.end()) {
      outputs.tensors.push_back(tensor);
    }
  };
  for (const int tensor : file.outputs()) {
    const auto& operators = file.operators();
    const auto decoder =
        std::find_if(operators.begin(), operators.end(), [&](const OperatorView& op) {
          return op.op == kDecoder && op.inputs.size() > kDecodedOperands && op.inputs[0] >= 0 &&
                 op.inputs[1] >= 0 &&
                 std::find(op.outputs.begin(), op.outputs.end(), tensor) != op.outputs.end();
        });
    if (decoder == operators.end()) {
      outputs.tensors.push_back(tensor);
      continue;
    }
    outputs.decoder = &*decoder;
    for (size_t i = 0; i < kDecodedOperands; ++i) add(decoder->inputs[i]);
  }
  return outputs;
}

}  // namespace npuc::tflite
