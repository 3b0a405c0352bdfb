#include "compiler_core/frontends/common/endpoints.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/suggest.h"

namespace npuc::frontend {

namespace {

// Edit distance to every tensor of a huge graph would take long; names near each other have about
// the same length.
std::vector<absl::string_view> CandidatesFor(absl::string_view name,
                                             absl::Span<const absl::string_view> known) {
  constexpr size_t kMaxCandidates = 20000;
  std::vector<absl::string_view> candidates;
  for (const absl::string_view other : known.first(std::min(known.size(), kMaxCandidates))) {
    const size_t longer = std::max(name.size(), other.size());
    if (longer - std::min(name.size(), other.size()) <= longer / 3) candidates.push_back(other);
  }
  return candidates;
}

}  // namespace

std::string NearestName(absl::string_view name, absl::Span<const absl::string_view> known) {
  return NearestMatch(name, CandidatesFor(name, known));
}

std::string SuggestName(absl::string_view name, absl::Span<const absl::string_view> known,
                        absl::string_view otherwise) {
  return DidYouMean(name, CandidatesFor(name, known), otherwise);
}

bool Contradicts(absl::Span<const int64_t> stated, absl::Span<const int64_t> declared) {
  return !std::equal(stated.begin(), stated.end(), declared.begin(), declared.end(),
                     [](int64_t known, int64_t dim) { return known < 0 || known == dim; });
}

std::string CircleMessage(absl::Span<const OrderingStep> waiting, int node,
                          absl::FunctionRef<absl::string_view(int node)> name_of) {
  constexpr size_t kMaxShown = 8;
  const auto start = std::find_if(waiting.begin(), waiting.end(),
                                  [&](const OrderingStep& step) { return step.first == node; });
  const auto circle = waiting.subspan(static_cast<size_t>(start - waiting.begin()));
  return absl::StrCat("the node feeds itself through ", circle.size(), " nodes: ",
                      absl::StrJoin(circle.first(std::min(circle.size(), kMaxShown)), " <- ",
                                    [&](std::string* out, const OrderingStep& step) {
                                      absl::StrAppend(out, Printable(name_of(step.first), 60));
                                    }),
                      circle.size() > kMaxShown ? " <- ..." : "");
}

bool Endpoints::TakeInput(const std::string& name, Exists exists, Suggest suggest,
                          absl::string_view key) {
  if (!exists(name)) {
    state_.AddError(
        DiagnosticKind::kInputNotInModel, {},
        absl::StrCat(key, " names '", Printable(name), "', which is no tensor of the model"),
        suggest(name));
    return false;
  }
  if (!inputs_.insert(name).second) {
    state_.AddError(DiagnosticKind::kDuplicateEndpoint, {},
                    key == "INPUT_OPS"
                        ? absl::StrCat("INPUT_OPS names '", Printable(name), "' twice")
                        : absl::StrCat(key, " names '", Printable(name), "', which INPUT_OPS or ",
                                       key, " has already"),
                    "keep one of the two");
    return false;
  }
  return true;
}

bool Endpoints::CheckShapeOf(absl::string_view input, const Shape& shape) {
  const absl::Status status = CheckShape(shape);
  if (status.ok()) return true;
  state_.AddError(
      DiagnosticKind::kInputShapeConflict, {},
      absl::StrCat("the shape of input '", Printable(input), "' is refused: ", status.message()),
      "declare a smaller shape in INPUT_OPS");
  return false;
}

void Endpoints::ReportConflict(const InputDecl& input, absl::string_view stated) {
  state_.AddError(DiagnosticKind::kInputShapeConflict, {},
                  absl::StrCat("INPUT_OPS declares '", Printable(input.name), "' as ",
                               ShapeToString(input.shape), ", but the model states ", stated),
                  "declare a shape that agrees with the model's");
}

void Endpoints::ReportType(absl::string_view input, absl::string_view type) {
  state_.AddError(DiagnosticKind::kInputTypeUnsupported, {},
                  absl::StrCat("input '", Printable(input), "' has type ", type,
                               "; allowed are floating-point, integer and bool tensors"),
                  "cut the graph behind it with INPUT_OPS");
}

void Endpoints::ReportUnused(absl::string_view name) {
  state_.AddError(DiagnosticKind::kUnusedInput, {},
                  absl::StrCat("input '", Printable(name),
                               "' is declared in INPUT_OPS, but no output depends on it"),
                  "remove it, or check OUTPUT_OPS");
}

void Endpoints::ReportInputAsOutput(absl::string_view name) {
  state_.AddError(DiagnosticKind::kDuplicateEndpoint, {},
                  absl::StrCat("output '", Printable(name),
                               "' is an input of the model, so nothing is computed for it"),
                  "name the result of a node behind it in OUTPUT_OPS, or a tensor in front of it "
                  "in INPUT_OPS");
}

std::vector<Endpoints::Output> Endpoints::TakeOutputs(const std::vector<std::string>& stated,
                                                      Exists exists, Suggest suggest) {
  const bool by_config = !options_.outputs.empty();
  const std::vector<std::string>& names = by_config ? options_.outputs : stated;
  std::vector<Output> outputs;
  std::set<absl::string_view> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!exists(names[i])) {
      state_.AddError(
          DiagnosticKind::kOutputNotInModel, {},
          absl::StrCat(by_config ? "OUTPUT_OPS names '" : "the model states the output '",
                       Printable(names[i]), "', which is no tensor of the model"),
          suggest(names[i]));
    } else if (!seen.insert(names[i]).second) {
      state_.AddError(DiagnosticKind::kDuplicateEndpoint, {},
                      absl::StrCat("output '", Printable(names[i]), "' is named twice"),
                      "keep one of the two");
    } else {
      outputs.push_back({.name = names[i], .index = i});
    }
  }
  if (names.empty()) {
    state_.AddError(DiagnosticKind::kOutputNotInModel, {}, "the model states no output",
                    "name at least one tensor in OUTPUT_OPS");
  }
  MarkFp16(outputs);
  return outputs;
}

void Endpoints::MarkFp16(std::vector<Output>& outputs) {
  for (const std::string& name : options_.fp16_outputs) {
    const auto it = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const Output& output) { return output.name == name; });
    if (it != outputs.end()) {
      it->fp16 = true;
      continue;
    }
    std::vector<absl::string_view> known;
    for (const Output& output : outputs) known.emplace_back(output.name);
    state_.AddError(DiagnosticKind::kOutputNotInModel, {},
                    absl::StrCat("FP16_OUT_OPS names '", Printable(name), "', which is no output"),
                    SuggestName(name, known, "name outputs only"));
  }
}

}  // namespace npuc::frontend
