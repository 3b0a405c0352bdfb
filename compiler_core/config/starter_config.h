#ifndef NPUC_COMPILER_CORE_CONFIG_STARTER_CONFIG_H_
#define NPUC_COMPILER_CORE_CONFIG_STARTER_CONFIG_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/outline.h"

namespace npuc {

// An input's shape as a user states it beside the model.
struct StatedShape {
  std::string name;  // of an input; empty: of the next one that no name was given for
  std::vector<int64_t> dims;
};
// "1,40,98", or "NAME=1,40,98". INVALID_ARGUMENT saying what is wrong.
absl::StatusOr<StatedShape> ParseStatedShape(absl::string_view text);

// Facts that a user states beside the model.
struct StatedFacts {
  std::vector<StatedShape> shapes = {};
  // Sizes of named dimensions and values of inputs, as written: "time", "25"; "sr", "16000".
  std::vector<std::pair<std::string, std::string>> dims = {};
  std::vector<std::pair<std::string, std::string>> constants = {};
};
// "NAME=VALUE" of an option such as --dim. INVALID_ARGUMENT where it is none.
absl::StatusOr<std::pair<std::string, std::string>> ParseStatedValue(absl::string_view option,
                                                                     absl::string_view text);

// Puts the facts into outline.inputs, and takes a first dimension that alone is unknown as 1, with
// a note in outline.notes. INVALID_ARGUMENT for a name that is no input or no dimension, a size
// that is none, or more shapes than inputs.
absl::Status SettleInputs(const StatedFacts& stated, ModelOutline& outline);

// A name of the header for a model of this name: what OUTPUT_FILE does not take becomes '_'.
std::string HeaderNameFor(absl::string_view stem);

struct StarterChoices {
  std::string core;
  std::string model_path;   // as the config names it
  std::string output_path;  // "model.h"
  std::string config_path;  // for the command in the first comment
  // The core computes in integers, the model in floats: QUANT is written, as comments.
  bool needs_calibration = false;
  // The model quantizes a part of its values, and all are quantized anew.
  bool quantizes_anew = false;
};
struct StarterConfig {
  std::string text;
  // The facts that only the user can know, each marked in the text: "the shape of input 'x', of
  // which ..."
  std::vector<std::string> open;
};
// The config that compiles the model where `open` is empty and nothing is to be calibrated. Pure.
StarterConfig WriteStarterConfig(const ModelOutline& outline, const StarterChoices& choices);

// The mark of a line that the user has to complete: no number, so a compile names its line.
inline constexpr char kFillIn[] = "FILL_IN";

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_STARTER_CONFIG_H_
