#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_BOX_DECODER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_BOX_DECODER_H_

#include <optional>
#include <vector>

#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/tflite/model_file.h"

namespace npuc::tflite {

// A model's outputs as far as cores compute them.
struct CoreOutputs {
  // Those that the file states. In place of the boxes, classes, scores and count of a detector
  // stand the encoded boxes and the scores that TFLite_Detection_PostProcess decodes.
  std::vector<int> tensors;
  const OperatorView* decoder = nullptr;  // the operator that is left out; null: none
};
CoreOutputs OutputsOfCores(const ModelFile& file);

// The settings by which the operator decodes boxes, from its options and its anchors. nullopt: its
// options are missing, or the decoder of ../../boxes does not have their form. Source: TensorFlow
// Lite, kernels/detection_postprocess.cc.
std::optional<BoxSettings> BoxesOf(const ModelFile& file, const OperatorView& decoder);

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_BOX_DECODER_H_
