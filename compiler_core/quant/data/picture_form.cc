#include "compiler_core/quant/data/picture_form.h"

#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/quant/data/form_yaml.h"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;

constexpr double kMost = 1e6;  // of a mean or a scale
constexpr size_t kChannels = 3;

std::optional<double> NumberOf(const ConfigNode& node) {
  double number = 0;
  if (node.kind != Kind::kScalar || !node.plain || !absl::SimpleAtod(node.text, &number) ||
      !(std::abs(number) <= kMost)) {
    return std::nullopt;
  }
  return number;
}

absl::StatusOr<std::vector<double>> NumbersOf(const ConfigNode& key, const ConfigNode& value,
                                              bool may_be_zero) {
  const std::string allowed = absl::StrCat("a number or a list of 3, each from -1e6 to 1e6",
                                           may_be_zero ? "" : " and not 0");
  const bool is_list = value.kind == Kind::kSequence;
  if (is_list && value.items.size() != kChannels) return WrongFormValue(key, value, allowed);
  std::vector<double> numbers;
  for (size_t i = 0; i < (is_list ? kChannels : 1); ++i) {
    const std::optional<double> number = NumberOf(is_list ? value.items[i] : value);
    if (!number.has_value() || (!may_be_zero && *number == 0))
      return WrongFormValue(key, value, allowed);
    numbers.push_back(*number);
  }
  return numbers;
}

// True for `second`, false for `first`; no other word is allowed.
absl::StatusOr<bool> IsSecond(const ConfigNode& key, const ConfigNode& value,
                              absl::string_view first, absl::string_view second) {
  if (value.kind == Kind::kScalar && value.text == first) return false;
  if (value.kind == Kind::kScalar && value.text == second) return true;
  return WrongFormValue(key, value, absl::StrCat(first, " or ", second));
}

absl::Status ReadOne(const ConfigNode& key, const ConfigNode& value, PictureForm& form) {
  if (key.text == "mean") {
    ASSIGN_OR_RETURN(form.mean, NumbersOf(key, value, true));
  } else if (key.text == "scale" || key.text == "std") {
    if (!form.scale.empty()) {
      return absl::InvalidArgumentError("scale and std are both given; keep one of the two");
    }
    ASSIGN_OR_RETURN(form.scale, NumbersOf(key, value, false));
    for (double& number : form.scale) number = key.text == "std" ? 1 / number : number;
  } else if (key.text == "channels") {
    ASSIGN_OR_RETURN(form.bgr, IsSecond(key, value, "RGB", "BGR"));
  } else if (key.text == "resize") {
    ASSIGN_OR_RETURN(form.resize, IsSecond(key, value, "false", "true"));
  } else if (key.text == "layout") {
    ASSIGN_OR_RETURN(const bool is_first, IsSecond(key, value, "NHWC", "NCHW"));
    form.layout = is_first ? PictureForm::Layout::kFirst : PictureForm::Layout::kLast;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", key.line, ": '", Printable(key.text, 80),
                     "' is none of mean, scale, std, channels, layout, resize"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PictureForm> PictureFormFromYaml(absl::string_view text) {
  PictureForm form;
  RETURN_IF_ERROR(ReadFormYaml(
      text, kPictureFormFile, "mean: 127.5",
      [&](const ConfigNode& key, const ConfigNode& value) { return ReadOne(key, value, form); }));
  return form;
}

}  // namespace npuc
