#ifndef NPUC_COMPILER_CORE_IR_COMPASS_DOCUMENT_H_
#define NPUC_COMPILER_CORE_IR_COMPASS_DOCUMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::compass {

inline constexpr size_t kMaxTextBytes = size_t{64} << 20;

// A line KEY=VALUE.
struct Entry {
  std::string key;
  std::string value;
  int line = 0;  // 1-based; 0: not read from a text
};

// Lines up to an empty one. Keys are unique.
struct Block {
  std::vector<Entry> entries;
  int line = 0;
  const Entry* Find(absl::string_view key) const;
  std::string ValueOr(absl::string_view key, absl::string_view fallback) const;
  void Set(std::string key, std::string value);  // appends
};

struct Document {
  Block head;
  std::vector<Block> layers;
};

// Lines that are no KEY=VALUE, keys given twice in a block, a missing end of line: all become
// diagnostics with their lines. Linear in the text.
absl::StatusOr<Document> ParseDocument(absl::string_view text, absl::string_view file_name,
                                       Diagnostics& diagnostics);
// Each block's lines and an empty one. The inverse of ParseDocument, to the byte.
std::string PrintDocument(const Document& document);

// "[a,b]" as its items; "[]": none. nullopt where it is no such list.
std::optional<std::vector<std::string>> ParseList(absl::string_view text);
// "[[1,2],[3]]"; numbers of at most 18 digits.
std::optional<std::vector<std::vector<int64_t>>> ParseIntLists(absl::string_view text);
// "[1,2]"
std::optional<std::vector<int64_t>> ParseInts(absl::string_view text);
std::optional<int64_t> ParseInt(absl::string_view text);
std::string PrintShape(const Shape& shape);  // "[1,2]"

// Compass's names of types: "int8", "float32" ...; kInvalid and "" where there is none.
DType TypeFromName(absl::string_view name);
absl::string_view TypeName(DType dtype);

}  // namespace npuc::compass

#endif  // NPUC_COMPILER_CORE_IR_COMPASS_DOCUMENT_H_
