#ifndef NPUC_SERVER_OBJECTS_XML_H_
#define NPUC_SERVER_OBJECTS_XML_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::objects {

// An element without children: "ListBucketResult/Contents/Key" and its text.
struct XmlLeaf {
  std::string path;
  std::string text;
};

inline constexpr size_t kMaxXmlBytes = size_t{16} << 20;
inline constexpr size_t kMaxXmlDepth = 8;
inline constexpr size_t kMaxXmlLeaves = 20000;

// Reads the leaves of a document in their order, in UTF-8; attributes are skipped.
// INVALID_ARGUMENT: it is not well-formed, has a DOCTYPE (which could define entities), or more
// than the bounds.
absl::StatusOr<std::vector<XmlLeaf>> ReadXmlLeaves(absl::string_view document);

}  // namespace npuc::objects

#endif  // NPUC_SERVER_OBJECTS_XML_H_
