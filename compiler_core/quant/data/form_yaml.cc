#include "compiler_core/quant/data/form_yaml.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {

absl::Status ReadFormYaml(
    absl::string_view text, absl::string_view file, absl::string_view example,
    absl::FunctionRef<absl::Status(const ConfigNode& key, const ConfigNode& value)> read) {
  Diagnostics found;
  const std::optional<ConfigNode> root = ParseConfigYaml(text, file, found);
  if (!root.has_value() || found.has_errors()) {
    const std::string problem =
        found.list().empty() ? "it is empty" : std::string(found.list()[0].message);
    return absl::InvalidArgumentError(absl::StrCat("not usable: ", problem));
  }
  if (root->kind != ConfigNode::Kind::kMapping) {
    return absl::InvalidArgumentError(
        absl::StrCat("it holds ", DescribeNode(*root), "; a mapping is needed, such as ", example));
  }
  for (size_t i = 0; i + 1 < root->items.size(); i += 2) {
    RETURN_IF_ERROR(read(root->items[i], root->items[i + 1]));
  }
  return absl::OkStatus();
}

absl::Status WrongFormValue(const ConfigNode& key, const ConfigNode& value,
                            absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("line ", key.line, ": ", Printable(key.text, 80),
                                                 " takes ", allowed, ", found ",
                                                 DescribeNode(value)));
}

}  // namespace npuc
