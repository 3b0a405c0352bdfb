#include "compiler_core/base/framework.h"

#include <cstddef>
#include <iterator>

#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr FrameworkInfo kFrameworks[] = {
#define NPUC_FRONT_END(constant, ...) {.framework = Framework::k##constant, __VA_ARGS__},
#include "compiler_core/base/frameworks.inc"
};

}  // namespace

absl::Span<const FrameworkInfo> AllFrameworks() { return kFrameworks; }

const FrameworkInfo& InfoOf(Framework framework) {
  const auto row = static_cast<size_t>(framework);
  NPUC_CHECK(row < std::size(kFrameworks));
  return kFrameworks[row];
}

std::string FrameworkNames(absl::string_view separator) {
  return absl::StrJoin(kFrameworks, separator, [](std::string* out, const FrameworkInfo& info) {
    absl::StrAppend(out, info.name);
  });
}

std::string ModelsThatAreRead() {
  std::string text;
  for (const FrameworkInfo& info : kFrameworks) {
    const bool is_last = &info == std::end(kFrameworks) - 1;
    absl::StrAppend(&text, text.empty() ? "" : is_last ? " or " : ", ", info.a_model);
  }
  return text;
}

std::optional<Framework> FrameworkNamed(absl::string_view name) {
  for (const FrameworkInfo& info : kFrameworks) {
    if (info.name == name) return info.framework;
  }
  return std::nullopt;
}

std::string FrameworksWithDataKey(absl::string_view key, std::optional<DataFile> kind) {
  std::string names;
  for (const FrameworkInfo& info : kFrameworks) {
    if (info.data_key != key || info.data_file != kind.value_or(info.data_file)) continue;
    absl::StrAppend(&names, names.empty() ? "" : "|", info.name);
  }
  return names;
}

}  // namespace npuc
