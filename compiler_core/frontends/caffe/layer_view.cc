#include "compiler_core/frontends/caffe/layer_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::caffe {
namespace {

constexpr size_t kMaxListEntries = size_t{1} << 12;

// Parameters of training, or of how a library computes the same.
constexpr absl::string_view kHarmless[] = {"bias_filler",
                                           "engine",
                                           "filler",
                                           "force_nd_im2col",
                                           "moving_average_fraction",
                                           "scale_filler",
                                           "stable_prod_grad",
                                           "weight_filler"};

absl::Status Missing(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("parameter '", name, "' is missing"));
}
absl::Status WrongKind(absl::string_view name, const Field& field, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("parameter '", name, "' is ",
                   field.text.empty() ? std::string(field.KindName())
                                      : absl::StrCat("'", Printable(field.text, 60), "'"),
                   "; it must be ", wanted));
}

}  // namespace

const Field* LayerView::Find(absl::string_view name) const {
  read_.insert(name);
  return layer_->params->Find(name);
}

template <typename T, typename Read>
absl::StatusOr<T> LayerView::One(absl::string_view name, absl::string_view kind, Read read) const {
  const Field* field = Find(name);
  if (field == nullptr) return Missing(name);
  const std::optional<T> value = read(*field);
  if (!value.has_value()) return WrongKind(name, *field, kind);
  return *value;
}

template <typename T, typename Read>
absl::StatusOr<std::vector<T>> LayerView::Many(absl::string_view name, absl::string_view kind,
                                               Read read) const {
  if (Find(name) == nullptr) return Missing(name);
  std::vector<T> values;
  for (const Field* field : layer_->params->All(name)) {
    const std::optional<T> value = read(*field);
    if (!value.has_value()) return WrongKind(name, *field, kind);
    values.push_back(*value);
    if (values.size() > kMaxListEntries) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter '", name, "' has more than ", kMaxListEntries, " values"));
    }
  }
  return values;
}

absl::StatusOr<bool> LayerView::Bool(absl::string_view name) const {
  return One<bool>(name, "true or false", [](const Field& field) { return field.Bool(); });
}
absl::StatusOr<int64_t> LayerView::Int(absl::string_view name) const {
  return One<int64_t>(name, "an integer", [](const Field& field) { return field.Int(); });
}
absl::StatusOr<double> LayerView::Float(absl::string_view name) const {
  return One<double>(name, "a number", [](const Field& field) { return field.Float(); });
}
absl::StatusOr<std::vector<int64_t>> LayerView::Ints(absl::string_view name) const {
  return Many<int64_t>(name, "integers", [](const Field& field) { return field.Int(); });
}
absl::StatusOr<std::vector<double>> LayerView::Floats(absl::string_view name) const {
  return Many<double>(name, "numbers", [](const Field& field) { return field.Float(); });
}

absl::StatusOr<int64_t> LayerView::Choice(absl::string_view name,
                                          absl::Span<const absl::string_view> words,
                                          int64_t first) const {
  const std::string kind = absl::StrCat("one of ", absl::StrJoin(words, ", "));
  return One<int64_t>(name, kind, [&](const Field& field) -> std::optional<int64_t> {
    const auto word = std::find(words.begin(), words.end(), field.text);
    if (word != words.end()) return first + (word - words.begin());
    const std::optional<int64_t> number = field.Int();
    const int64_t end = first + static_cast<int64_t>(words.size());
    return number.has_value() && *number >= first && *number < end ? number : std::nullopt;
  });
}

absl::StatusOr<std::vector<int64_t>> LayerView::Dims(absl::string_view name) const {
  const Field* field = Find(name);
  if (field == nullptr) return Missing(name);
  if (field->message == nullptr) return WrongKind(name, *field, "a shape");
  std::vector<int64_t> dims;
  for (const Field* dim : field->message->All("dim")) {
    if (!dim->Int().has_value()) return WrongKind("dim", *dim, "an integer");
    dims.push_back(*dim->Int());
    if (dims.size() > kMaxRank) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter '", name, "' has more than ", kMaxRank, " dimensions"));
    }
  }
  return dims;
}

std::optional<absl::string_view> LayerView::Unread() const {
  for (const Field& field : layer_->params->fields) {
    const bool is_harmless =
        std::find(std::begin(kHarmless), std::end(kHarmless), field.name) != std::end(kHarmless);
    if (!is_harmless && !read_.contains(field.name)) return field.name;
  }
  return std::nullopt;
}

}  // namespace npuc::caffe
