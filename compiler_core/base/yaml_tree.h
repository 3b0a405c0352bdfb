#ifndef NPUC_COMPILER_CORE_BASE_YAML_TREE_H_
#define NPUC_COMPILER_CORE_BASE_YAML_TREE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc {

// A node of the small part of YAML that configs use.
struct ConfigNode {
  enum class Kind : uint8_t { kNull, kScalar, kSequence, kMapping };
  Kind kind = Kind::kNull;
  bool plain = false;             // kScalar: written without quotes
  std::string text;               // kScalar
  std::vector<ConfigNode> items;  // kSequence: elements; kMapping: key, value, key, value ...
  int line = 0;                   // 1-based
  int column = 0;                 // 1-based
};

inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr int kMaxConfigDepth = 8;
inline constexpr int kMaxConfigNodes = 20000;

// Whether `text` may be a config at all: its size, its encoding, its brackets and commas. The
// problem goes to `diagnostics`.
bool CheckConfigText(absl::string_view text, absl::string_view name, Diagnostics& diagnostics);

// The one document of `text` as a tree; nullopt where there is none. Aliases, anchors and tags are
// refused; depth, nodes and size are bounded before memory is spent on them. All problems go to
// `diagnostics`; keys that are given twice, or that are not scalars, are reported and left in the
// tree for the caller to skip, so that the rest can be checked too. Catches yaml-cpp's exceptions.
// Thread-safe.
std::optional<ConfigNode> ParseConfigYaml(absl::string_view text, absl::string_view name,
                                          Diagnostics& diagnostics);

// What a node is, for messages: "'abc'", "the quoted text 'abc'", "a list", "nothing".
std::string DescribeNode(const ConfigNode& node);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_YAML_TREE_H_
