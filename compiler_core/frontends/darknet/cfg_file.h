#ifndef NPUC_COMPILER_CORE_FRONTENDS_DARKNET_CFG_FILE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_DARKNET_CFG_FILE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::darknet {

// Limits on a .cfg; more is a diagnostic.
inline constexpr size_t kMaxCfgBytes = size_t{1} << 22;
inline constexpr size_t kMaxLayers = size_t{1} << 12;
inline constexpr size_t kMaxOptions = size_t{1} << 8;

struct Option {
  std::string key;
  std::string value;
  int line = 0;
};

// "[convolutional]" and the lines below it.
struct Section {
  std::string type;  // without the brackets
  int line = 0;
  std::vector<Option> options = {};
  // The first of that key, as Darknet takes it; null where there is none.
  const Option* Find(absl::string_view key) const;
};

struct CfgFile {
  Section net;
  std::vector<Section> layers;
};

// True where the first line that is no comment begins a section [net] or [network].
bool IsDarknetCfg(absl::string_view bytes);

// Reads a .cfg as Darknet does: white space anywhere in a line does not count, lines that begin
// with '#' or ';' are comments. nullopt: what is wrong was reported, all of it.
std::optional<CfgFile> ParseCfg(absl::string_view bytes, absl::string_view file,
                                Diagnostics& diagnostics);

}  // namespace npuc::darknet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_DARKNET_CFG_FILE_H_
