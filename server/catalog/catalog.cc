#include "server/catalog/catalog.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/target/core_spec.h"
#include "server/jobs/service_error.h"

namespace npuc::catalog {
namespace {

absl::Status CheckNames(absl::string_view core, absl::string_view framework) {
  jobs::FieldChecker check;
  if (!core.empty() && FindCore(core) == nullptr) {
    check.Add("core", absl::StrCat("'", Printable(core), "' is not one of ",
                                   absl::StrJoin(ListCoreNames(), ", ")));
  }
  if (!framework.empty() && !FrameworkNamed(framework).has_value()) {
    check.Add("framework",
              absl::StrCat("'", Printable(framework), "' is not one of ", FrameworkNames()));
  }
  return check.ToStatus();
}

}  // namespace

std::vector<std::string> ListCoreNames() {
  std::vector<std::string> names;
  for (const CoreSpec* core : AllCores()) names.emplace_back(core->name);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<OperatorEntry>> ListOperators(absl::string_view core,
                                                         absl::string_view framework) {
  if (absl::Status status = CheckNames(core, framework); !status.ok()) return status;
  std::vector<OperatorEntry> entries;
  for (const CoreSpec* spec : AllCores()) {
    if (!core.empty() && spec != FindCore(core)) continue;
    for (const OpList& list : spec->op_lists) {
      if (!framework.empty() && framework != FrameworkName(list.framework)) continue;
      for (const OpSupport& op : list.ops) {
        OperatorEntry& entry = entries.emplace_back();
        entry.core = std::string(spec->name);
        entry.framework = FrameworkName(list.framework);
        entry.op = std::string(op.op);
        for (const SupportRule& rule : op.rules) entry.restrictions.push_back(Describe(rule));
      }
    }
  }
  std::sort(entries.begin(), entries.end(), [](const OperatorEntry& a, const OperatorEntry& b) {
    return std::tie(a.core, a.framework, a.op) < std::tie(b.core, b.framework, b.op);
  });
  return entries;
}

}  // namespace npuc::catalog
