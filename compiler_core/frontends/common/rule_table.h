#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_RULE_TABLE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_RULE_TABLE_H_

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::frontend {

// The rules of a front end by operator, made of its families' tables, which outlive it. A rule has
// the operator's name, `op`, and the function that imports a node of it, `import`.
template <typename Rule>
class RuleTable {
 public:
  RuleTable(std::initializer_list<absl::Span<const Rule>> families) {
    size_t count = 0;
    for (const absl::Span<const Rule> family : families) count += family.size();
    rules_.reserve(count);
    for (const absl::Span<const Rule> family : families) {
      for (const Rule& rule : family) rules_.emplace(rule.op, &rule);
    }
  }

  // Null where there is none.
  const Rule* Find(absl::string_view op) const {
    const auto it = rules_.find(op);
    return it == rules_.end() ? nullptr : it->second;
  }
  // Sorted.
  std::vector<std::string> Ops() const {
    std::vector<std::string> ops;
    for (const auto& [op, rule] : rules_) ops.emplace_back(op);
    std::sort(ops.begin(), ops.end());
    return ops;
  }
  // The supported operator nearest to one that is not; empty where none is near, which begins with
  // the same letter: Assign is no misspelt SIGN.
  std::string Nearest(absl::string_view op) const {
    const std::vector<std::string> ops = Ops();
    std::vector<absl::string_view> alike;
    std::copy_if(ops.begin(), ops.end(), std::back_inserter(alike), [&](absl::string_view known) {
      return absl::EqualsIgnoreCase(known.substr(0, 1), op.substr(0, 1));
    });
    return NearestMatch(op, alike);
  }
  // The same as the end of a message.
  std::string NearestText(absl::string_view op) const {
    const std::string nearest = Nearest(op);
    return nearest.empty() ? "" : absl::StrCat("; the nearest supported one is ", nearest);
  }

 private:
  absl::flat_hash_map<absl::string_view, const Rule*> rules_;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_RULE_TABLE_H_
