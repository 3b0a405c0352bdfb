#ifndef NPUC_COMPILER_CORE_CONFIG_CFG_TEXT_H_
#define NPUC_COMPILER_CORE_CONFIG_CFG_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/config/config_values.h"

namespace npuc {

// The lines of a .cfg file, as Python's configparser reads them, which Compass's tools use:
// sections in brackets, KEY = VALUE or KEY: VALUE, keys in any case. Beyond that a value may stand
// in quotes, and '#' or ';' behind white space begins a comment.

// A line's part with its place. A view of the file.
struct CfgText {
  absl::string_view text;
  ConfigPlace place;
  CfgText From(size_t offset) const;
  CfgText Upto(size_t size) const { return {text.substr(0, size), place}; }
  CfgText Stripped() const;
  // Without the quotes around the whole.
  CfgText Unquoted() const;
};

// Parts between commas that are in no bracket, each without its quotes.
std::vector<CfgText> SplitAtCommas(const CfgText& list);

struct CfgEntry {
  absl::string_view section;
  std::string key;  // in lower case
  CfgText name;     // as written
  CfgText value;    // without comment; empty: KEY =
};

struct CfgFile {
  std::vector<std::string> sections;  // those that are known, in the file's order
  std::vector<CfgEntry> entries;      // keys are unique in their section
};

// Every problem goes to the reporter: lines that are neither, sections that are unknown, what is
// given twice. Keys are not looked at.
CfgFile ReadCfgText(absl::string_view text, ConfigReporter& reporter);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CFG_TEXT_H_
