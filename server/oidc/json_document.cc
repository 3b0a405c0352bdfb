#include "server/oidc/json_document.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::oidc {
namespace {

constexpr int kMaxDepth = 12;
constexpr int64_t kMaxNodes = 20'000;

absl::Status CheckNames(const JsonNode& node, absl::string_view what) {
  std::set<absl::string_view> names;
  for (const JsonNode::Key& key : node.keys) {
    if (names.insert(key.name).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has '", Printable(key.name, 64), "' twice"));
  }
  for (const JsonNode& item : node.items) RETURN_IF_ERROR(CheckNames(item, what));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JsonNode> ParseDocument(absl::string_view text, absl::string_view what) {
  JsonNode root;
  JsonError error;
  const JsonLimits limits{.bytes = kMaxDocumentBytes, .depth = kMaxDepth, .nodes = kMaxNodes};
  if (!ParseJsonTree(text, limits, root, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is no JSON: ", Printable(error.message, 128)));
  }
  if (root.kind != JsonNode::Kind::kObject) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is no JSON object"));
  }
  RETURN_IF_ERROR(CheckNames(root, what));
  return root;
}

const JsonNode* FindIn(const JsonNode& object, absl::string_view name) {
  for (size_t i = 0; i < object.keys.size(); ++i) {
    if (object.keys[i].name == name) return &object.items[i];
  }
  return nullptr;
}

std::string TextIn(const JsonNode& object, absl::string_view name) {
  const JsonNode* const node = FindIn(object, name);
  return node != nullptr && node->kind == JsonNode::Kind::kString ? node->text : "";
}

std::vector<std::string> TextsIn(const JsonNode& object, absl::string_view name) {
  const JsonNode* const node = FindIn(object, name);
  if (node == nullptr) return {};
  if (node->kind == JsonNode::Kind::kString) return {node->text};
  std::vector<std::string> texts;
  if (node->kind != JsonNode::Kind::kArray) return texts;
  for (const JsonNode& item : node->items) {
    if (item.kind == JsonNode::Kind::kString) texts.push_back(item.text);
  }
  return texts;
}

}  // namespace npuc::oidc
