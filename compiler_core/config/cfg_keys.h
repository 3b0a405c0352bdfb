#ifndef NPUC_COMPILER_CORE_CONFIG_CFG_KEYS_H_
#define NPUC_COMPILER_CORE_CONFIG_CFG_KEYS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

// The keys of the .cfg files of Compass's tools as data, those of [Optimizer] that QUANT has apart.
// Source: shared/guides/compass-guide.txt, section 4.2.

enum class CfgBecome : uint8_t {
  kValue,    // `to`, a key of the YAML config
  kFormat,   // `to`, by the words of base/frameworks.inc, in any case
  kNames,    // `to`, names between commas
  kShapes,   // beside `input`: the shapes of INPUT_OPS
  kSteps,    // beside `preprocess_type`: the steps of PREPROCESS
  kBoxes,    // beside `detection_postprocess`: a setting of BOXES
  kQuant,    // `to`, a key of QUANT
  kTask,     // a member of CfgTask; `why` says which
  kChecked,  // one of `words`; changes nothing, `why`
  kNothing,  // changes nothing, `why`
};

struct CfgKey {
  absl::string_view section;  // a section of aipubuild, or the tool whose [Common] has the key
  absl::string_view name;
  CfgBecome become;
  absl::string_view to;     // key of the YAML config
  absl::string_view words;  // kTask, kChecked: values that are taken, "a|b"; empty: any
  absl::string_view why;    // a clause
};

inline constexpr absl::string_view kCfgSections[] = {"Common", "Parser", "Optimizer", "GBuilder"};
inline constexpr absl::string_view kParseTool = "aipuparse";
inline constexpr absl::string_view kQuantizeTool = "aipuopt";
inline constexpr char kDefaultCfgTarget[] = "X2_1204";

absl::Span<const CfgKey> AllCfgKeys();

// Null where there is none. Case counts.
const CfgKey* FindCfgKey(absl::string_view section, absl::string_view name);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CFG_KEYS_H_
