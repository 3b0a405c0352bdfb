#include "compiler_core/base/preprocess.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

using StepKind = PreprocessStep::Kind;

// In the order of StepKind.
constexpr absl::string_view kNames[] = {"RESIZE",   "RGB2BGR",  "BGR2RGB",
                                        "RGB2GRAY", "BGR2GRAY", "STANDARDIZATION"};
constexpr size_t kMaxRank = 8;
constexpr int64_t kMaxDimension = 1 << 16;

// "[1,448,448,3]"; numbers from `least` to `most`.
std::optional<std::vector<int64_t>> NumbersFromText(absl::string_view text, int64_t least,
                                                    int64_t most) {
  text = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) return std::nullopt;
  std::vector<int64_t> numbers;
  if (absl::StripAsciiWhitespace(text).empty()) return numbers;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < least || number > most ||
        numbers.size() == kMaxRank) {
      return std::nullopt;
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::Status Wrong(absl::string_view name, absl::string_view params, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("the parameters of ", name, " are '{",
                                                 Printable(params, 80), "}'; allowed: ", allowed));
}

absl::Status ReadResize(absl::string_view params, PreprocessStep& step) {
  constexpr absl::string_view kAllowed =
      "{bilinear,[1,448,448,3]} or {nearest,[1,448,448,3]}, with the shape of the image";
  const size_t comma = params.find(',');
  if (comma == absl::string_view::npos) return Wrong("RESIZE", params, kAllowed);
  const absl::string_view method = absl::StripAsciiWhitespace(params.substr(0, comma));
  step.is_linear = absl::EqualsIgnoreCase(method, "bilinear");
  std::optional<std::vector<int64_t>> shape =
      NumbersFromText(params.substr(comma + 1), 1, kMaxDimension);
  if ((!step.is_linear && !absl::EqualsIgnoreCase(method, "nearest")) || !shape.has_value() ||
      shape->size() < 3) {
    return Wrong("RESIZE", params, kAllowed);
  }
  step.shape = *std::move(shape);
  return absl::OkStatus();
}

absl::Status ReadParams(absl::string_view params, PreprocessStep& step) {
  params = absl::StripAsciiWhitespace(params);
  if (step.kind == StepKind::kResize) return ReadResize(params, step);
  const absl::string_view name = kNames[static_cast<size_t>(step.kind)];
  if (step.kind != StepKind::kStandardize) {
    return params.empty() ? absl::OkStatus() : Wrong(name, params, "{}");
  }
  if (params.empty()) return absl::OkStatus();
  std::optional<std::vector<int64_t>> axes =
      NumbersFromText(params, 0, static_cast<int64_t>(kMaxRank) - 1);
  if (!axes.has_value()) return Wrong(name, params, "{}, or axes such as {[1,2]}");
  step.axes = *std::move(axes);
  return absl::OkStatus();
}

// Takes "NAME {params}" from the front of `text`.
absl::StatusOr<PreprocessStep> TakeStep(absl::string_view& text) {
  const size_t end = text.find_first_of("{,");
  const absl::string_view name = absl::StripAsciiWhitespace(text.substr(0, end));
  text.remove_prefix(std::min(end, text.size()));
  absl::string_view params;
  if (absl::StartsWith(text, "{")) {
    const size_t close = text.find('}');
    if (close == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("the '{' behind ", Printable(name, 80), " has no '}'"));
    }
    params = text.substr(1, close - 1);
    text = absl::StripLeadingAsciiWhitespace(text.substr(close + 1));
  }
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (!absl::EqualsIgnoreCase(kNames[i], name)) continue;
    PreprocessStep step;
    step.kind = static_cast<StepKind>(i);
    RETURN_IF_ERROR(ReadParams(params, step));
    return step;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", Printable(name, 80), "' is none of ", absl::StrJoin(kNames, ", ")));
}

}  // namespace

absl::StatusOr<std::vector<PreprocessStep>> PreprocessFromText(absl::string_view text) {
  std::vector<PreprocessStep> steps;
  text = absl::StripAsciiWhitespace(text);
  for (;;) {
    if (steps.size() == kMaxPreprocessSteps) {
      return absl::InvalidArgumentError(
          absl::StrCat("there are more than ", kMaxPreprocessSteps, " steps"));
    }
    ASSIGN_OR_RETURN(PreprocessStep step, TakeStep(text));
    steps.push_back(std::move(step));
    if (text.empty()) return steps;
    if (!absl::ConsumePrefix(&text, ",")) {
      return absl::InvalidArgumentError(
          absl::StrCat("a comma is missing before '", Printable(text, 80), "'"));
    }
  }
}

std::string TextOf(const std::vector<PreprocessStep>& steps) {
  return absl::StrJoin(steps, ", ", [](std::string* out, const PreprocessStep& step) {
    absl::StrAppend(out, kNames[static_cast<size_t>(step.kind)]);
    if (step.kind == StepKind::kResize) {
      absl::StrAppend(out, " {", step.is_linear ? "bilinear" : "nearest", ",[",
                      absl::StrJoin(step.shape, ","), "]}");
    } else if (!step.axes.empty()) {
      absl::StrAppend(out, " {[", absl::StrJoin(step.axes, ","), "]}");
    }
  });
}

}  // namespace npuc
