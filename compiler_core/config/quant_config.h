#ifndef NPUC_COMPILER_CORE_CONFIG_QUANT_CONFIG_H_
#define NPUC_COMPILER_CORE_CONFIG_QUANT_CONFIG_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/base/quant_options.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/config/config_values.h"
#include "nlohmann/json_fwd.hpp"

namespace npuc {

// A file that the QUANT mapping names.
struct QuantFile {
  std::string role;  // "QUANT.calibration_data", "QUANT.calibration_data[1]", "OPT_CONFIG" ...
  std::string path;
  int line = 0;
};

struct QuantConfig {
  QuantOptions options;
  QuantOptions preset;  // the options that the preset gives; those without one are the defaults
  std::vector<QuantFile> files;
  int64_t metric_batch_size = 1;  // changes nothing
  bool dump = false;              // a task of the tools
  std::string dump_dir = ".";
};

inline constexpr char kCalibrationRole[] = "QUANT.calibration_data";
inline constexpr char kDataRole[] = "QUANT.data";
inline constexpr char kLabelRole[] = "QUANT.label";
inline constexpr char kTemplateRole[] = "OPT_CONFIG";  // opt_config, or the key itself
inline constexpr char kStatisticsRole[] = "QUANT.statistic_file";
inline constexpr size_t kMaxQuantFiles = 15;  // job stores take 16 side inputs in all
// Samples or items for one input each.
inline constexpr size_t kMaxCalibrationFiles = kMaxQuantFiles;

// Reads the QUANT mapping of a config: Compass's keys. Strict: unknown keys and values are errors
// with line and nearest match, all at once. False where there was one.
bool ReadQuantConfig(const ConfigNode& mapping, ConfigReporter& reporter, QuantConfig& config);

// The keys' names, whether a word is one, and whether its value is a list of names.
std::vector<absl::string_view> QuantKeyNames();
bool IsQuantKey(absl::string_view name);
bool QuantKeyTakesList(absl::string_view name);

// The options that differ from the defaults, as report.json echoes them.
nlohmann::ordered_json QuantJson(const QuantOptions& options);

// "weight_bits: 8\n    4..16 ...": the keys for a terminal.
std::string QuantConfigHelp();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_QUANT_CONFIG_H_
