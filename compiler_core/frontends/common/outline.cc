#include "compiler_core/frontends/common/outline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace npuc {

std::string OutlineTypeName(DType dtype) {
  const std::string name(NameOf(dtype));
  if (name.size() < 2) return name;
  const std::string bits = name.substr(1);
  if (name[0] == 'f') return absl::StrCat("float", bits);
  if (name[0] == 'i') return absl::StrCat("int", bits);
  if (name[0] == 'u') return absl::StrCat("uint", bits);
  return name;
}

std::string OutlineShape(const std::optional<std::vector<int64_t>>& dims) {
  if (!dims.has_value()) return "of unknown shape";
  return absl::StrCat("[",
                      absl::StrJoin(*dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(
                                          out, dim < 0 ? std::string("?") : absl::StrCat(dim));
                                    }),
                      "]");
}

bool OnlyBatchIsUnknown(absl::Span<const int64_t> dims) {
  return !dims.empty() && dims[0] < 0 &&
         std::none_of(dims.begin() + 1, dims.end(), [](int64_t dim) { return dim < 0; });
}

std::string ShapeToWrite(const std::optional<std::vector<int64_t>>& dims) {
  if (!dims.has_value()) return "[...]";
  std::vector<int64_t> known = *dims;
  if (OnlyBatchIsUnknown(known)) known[0] = 1;
  return absl::StrReplaceAll(OutlineShape(known), {{",", ", "}});
}

void CountWeight(absl::Span<const int64_t> dims, int64_t bytes_per_element, ModelOutline& outline) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && count > kMost / dim)) return;
    count *= dim;
  }
  outline.weights += count;
  outline.weight_bytes += count * bytes_per_element;
}

}  // namespace npuc
