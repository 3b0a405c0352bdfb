#ifndef NPUC_SERVER_OIDC_JSON_DOCUMENT_H_
#define NPUC_SERVER_OIDC_JSON_DOCUMENT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/json_tree.h"

namespace npuc::oidc {

// The most bytes of a document of the provider: discovery, keys, tokens, user info.
inline constexpr size_t kMaxDocumentBytes = size_t{256} << 10;

// Documents of a provider: JSON objects of bounded size, in which no name of an object may stand
// twice, since two readers could take different values.

// `what` names the document in errors, all of which are INVALID_ARGUMENT.
absl::StatusOr<JsonNode> ParseDocument(absl::string_view text, absl::string_view what);

// The value of a name of an object; null where it is missing.
const JsonNode* FindIn(const JsonNode& object, absl::string_view name);
// The text of a name; empty where it is missing or no text.
std::string TextIn(const JsonNode& object, absl::string_view name);
// The texts of a name that has a text or a list; an element that is no text is left out.
std::vector<std::string> TextsIn(const JsonNode& object, absl::string_view name);

}  // namespace npuc::oidc

#endif  // NPUC_SERVER_OIDC_JSON_DOCUMENT_H_
