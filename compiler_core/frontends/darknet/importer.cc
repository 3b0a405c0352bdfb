#include "compiler_core/frontends/darknet/importer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/darknet/heads.h"

namespace npuc::darknet {
namespace {

constexpr char kWeightsFix[] = "name the .weights that were trained with this .cfg in WEIGHTS_FILE";

// A declared shape as what an input may have, its items aside; nullopt where it is none.
std::optional<Size> SizeOfShape(const Shape& shape) {
  if (!CheckShape(shape).ok() || ElementCount(shape) < 1) return std::nullopt;
  if (shape.size() == 4) return Size::Image(shape[1], shape[2], shape[3]);
  if (shape.size() == 2) return Size::Row(shape[1]);
  return std::nullopt;
}

}  // namespace

Importer::Importer(const CfgFile& cfg, const ByteSource* weights, const CompileOptions& options,
                   Graph* graph, Diagnostics* diagnostics)
    : cfg_(cfg),
      weights_(weights),
      options_(options),
      state_(graph, diagnostics, options, "correct the .cfg"),
      endpoints_(options, &state_) {}

std::optional<int> Importer::Find(absl::string_view name) const {
  if (name == kInputName) return -1;
  for (size_t i = 0; i < plan_.layers.size(); ++i) {
    const Layer& layer = plan_.layers[i];
    if (layer.name != name) continue;
    const bool gives = layer.type != nullptr && layer.type->role == LayerRole::kComputes;
    return gives ? std::optional<int>(static_cast<int>(i)) : std::nullopt;
  }
  return std::nullopt;
}

std::string Importer::Suggestion(absl::string_view name) const {
  std::vector<absl::string_view> names = {kInputName};
  for (const Layer& layer : plan_.layers) names.emplace_back(layer.name);
  return frontend::SuggestName(
      name, names,
      absl::StrCat("the net's input is '", kInputName, "', its outputs are ",
                   absl::StrJoin(plan_.outputs, ", ", [this](std::string* out, int layer) {
                     absl::StrAppend(out, "'", NameOf(layer), "'");
                   })));
}

size_t Importer::LayersToPlan() const {
  const size_t all = cfg_.layers.size();
  size_t last = 0;
  for (const std::string& output : options_.outputs) {
    size_t layer = 0;
    while (layer < all && LayerName(cfg_, layer) != output) ++layer;
    if (layer == all) return all;
    last = std::max(last, layer + 1);
  }
  // A head behind the last output says what its numbers mean.
  while (last < all && IsHead(cfg_.layers[last].type)) ++last;
  return options_.outputs.empty() ? all : last;
}

Size Importer::ReadInputSize() {
  const Size stated = InputSize(cfg_, state_.file, *state_.diagnostics);
  for (const InputDecl& input : options_.inputs) {
    if (input.name != kInputName) continue;
    const std::optional<Size> declared = SizeOfShape(input.shape);
    if (declared.has_value() && declared->is_image() == stated.is_image()) {
      batch_ = input.shape[0];
      return *declared;
    }
    endpoints_.ReportConflict(input, ShapeToString(stated.Dims()));
  }
  return stated;
}

void Importer::ResolveInputs() {
  const auto exists = [this](absl::string_view name) { return Find(name).has_value(); };
  const auto suggest = [this](absl::string_view name) { return Suggestion(name); };
  for (const InputDecl& input : options_.inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest)) continue;
    const int layer = *Find(input.name);
    At(layer).is_cut = true;
    if (layer >= 0 && input.shape != SizeOf(layer).Dims(batch_)) {
      endpoints_.ReportConflict(input, ShapeToString(SizeOf(layer).Dims(batch_)));
    }
  }
}

void Importer::ResolveOutputs() {
  std::vector<std::string> stated;
  for (const int layer : plan_.outputs) stated.push_back(NameOf(layer));
  outputs_ = endpoints_.TakeOutputs(
      stated, [this](absl::string_view name) { return Find(name).has_value(); },
      [this](absl::string_view name) { return Suggestion(name); });
}

void Importer::MarkNeeded() {
  for (const frontend::Endpoints::Output& output : outputs_)
    At(*Find(output.name)).is_wanted = true;
  for (int layer = static_cast<int>(plan_.layers.size()); layer-- > 0;) {
    if (!At(layer).is_wanted || At(layer).is_cut) continue;
    for (const int source : LayerAt(layer).sources) At(source).is_wanted = true;
  }
  for (const InputDecl& input : options_.inputs) {
    const std::optional<int> layer = Find(input.name);
    if (layer.has_value() && !At(*layer).is_wanted) endpoints_.ReportUnused(input.name);
  }
}

// Source: parser.c, load_weights_upto: i32 major, minor, revision, then the pictures that training
// saw, of 64 bits from version 0.2 on.
bool Importer::OpenWeights() {
  const auto refuse = [this](std::string message) {
    state_.AddError(DiagnosticKind::kDarknetWeights, {}, std::move(message), kWeightsFix);
    return false;
  };
  if (weights_ == nullptr) return refuse("the net has weights, and no file of them is given");
  constexpr int64_t kVersionBytes = 12;
  std::array<int32_t, 3> version = {};
  std::array<char, kVersionBytes> head = {};
  if (!weights_->Read(0, absl::MakeSpan(head)).ok()) {
    return refuse(absl::StrCat("the .weights have ", weights_->size(),
                               " bytes, too few for their head of 16"));
  }
  std::memcpy(version.data(), head.data(), head.size());
  const int64_t major = version[0];
  const int64_t minor = version[1];
  const bool is_versioned = major >= 0 && minor >= 0 && major < 1000 && minor < 1000;
  const bool is_turned = major > 1000 || minor > 1000;
  // Other numbers are the begin of another kind of file.
  if (!(is_versioned || is_turned) || major < 0 || minor < 0 || major > 100000 || minor > 100000) {
    return refuse(absl::StrCat("the .weights begin with version ", major, ".", minor,
                               ", which no Darknet writes"));
  }
  const bool has_wide_counter = is_versioned && major * 10 + minor >= 2;
  state_.weights = {weights_, kVersionBytes + (has_wide_counter ? 8 : 4), is_turned};
  int64_t needed = 0;
  for (size_t i = 0; i < plan_.layers.size(); ++i) {
    const Layer& layer = plan_.layers[i];
    const bool is_made = At(static_cast<int>(i)).is_wanted && !At(static_cast<int>(i)).is_cut;
    if (is_made) needed = std::max(needed, layer.weights_at + layer.weight_count);
  }
  const int64_t bytes = weights_->size() - state_.weights.begin;
  const int64_t floats = bytes / static_cast<int64_t>(sizeof(float));
  if (floats < needed) {
    return refuse(absl::StrCat("the .weights hold ", std::max<int64_t>(floats, 0),
                               " numbers, and the layers need ", needed));
  }
  if (plan_.layers.size() == cfg_.layers.size() &&
      bytes != plan_.weight_count * static_cast<int64_t>(sizeof(float))) {
    state_.diagnostics->Add(
        {.kind = DiagnosticKind::kDarknetWeightsLength,
         .message = absl::StrCat("the .weights hold ", bytes,
                                 " bytes of numbers, and the layers of "
                                 "the .cfg have ",
                                 plan_.weight_count, " numbers of 4 bytes"),
         .file = state_.file,
         .fix = "make sure that they were trained with this .cfg; the end of a longer net may be "
                "left out"});
  }
  return true;
}

void Importer::AddInput(int layer) {
  const Shape shape = SizeOf(layer).Dims(batch_);
  const std::string name = NameOf(layer);
  if (endpoints_.CheckShapeOf(name, shape)) {
    At(layer).value = state_.AddInput(name, {DType::kFloat32, shape});
  }
}

void Importer::ImportLayer(int index) {
  const Layer& layer = LayerAt(index);
  std::vector<ValueRef> inputs;
  for (const int source : layer.sources) {
    if (At(source).value == nullptr) return;  // it failed, which was reported
    inputs.push_back(At(source).value);
  }
  LayerOptions options(layer.section, &layer.name, &state_.file, state_.diagnostics);
  LayerImporter node(&state_, &layer, &options, std::move(inputs));
  absl::Status status = layer.type->import(node);
  if (status.ok() && node.outputs()[0]->type.shape != layer.out.Dims(batch_)) {
    status = absl::InternalError("the layer became another size than Darknet's");
  }
  if (!status.ok()) {
    return node.ReportMismatch(status, "correct the layer, or the shape in INPUT_OPS");
  }
  if (state_.ConstantsFit(node.source())) At(index).value = node.outputs()[0];
}

std::optional<BoxSettings> Importer::BoxesOfHeads() {
  if (batch_ != 1 || plan_.heads.empty() || !plan_.input.is_image()) return std::nullopt;
  BoxSettings settings{.image_size = {plan_.input.h, plan_.input.w}};
  for (const int head : plan_.heads) {
    const Layer& layer = LayerAt(head);
    const std::string source = NameOf(layer.sources[0]);
    const bool is_output =
        std::any_of(outputs_.begin(), outputs_.end(),
                    [&](const frontend::Endpoints::Output& o) { return o.name == source; });
    if (!is_output) return std::nullopt;
    LayerOptions options(layer.section, &layer.name, &state_.file, state_.diagnostics);
    if (!AddHeadTo(options, source, head == plan_.heads[0], settings)) {
      return std::nullopt;
    }
  }
  return settings;
}

void Importer::NoteHeads(bool are_decoded) {
  for (const int head : plan_.heads) {
    const Layer& layer = LayerAt(head);
    LayerOptions options(layer.section, &layer.name, &state_.file, state_.diagnostics);
    state_.diagnostics->Add({.kind = DiagnosticKind::kDecodingLeftOut,
                             .message = DescribeHead(options, layer, NameOf(layer.sources[0])),
                             .file = state_.file,
                             .line = layer.section->line,
                             .node = layer.name,
                             .op = layer.section->type,
                             .fix = are_decoded ? "the C code that the compile writes decodes them"
                                                : "decode them in the application"});
  }
}

void Importer::AddOutputs() {
  for (auto& [name, value] : state_.next_states) state_.AddOutput(name, value, false);
  for (const frontend::Endpoints::Output& output : outputs_) {
    const int layer = *Find(output.name);
    if (layer < 0 || At(layer).is_cut) {
      endpoints_.ReportInputAsOutput(output.name);
    } else if (At(layer).value != nullptr) {  // else it was reported
      state_.AddOutput(output.name, At(layer).value, output.fp16);
    }
  }
}

void Importer::Run(std::optional<BoxSettings>* boxes) {
  plan_ = PlanNet(cfg_, LayersToPlan(), ReadInputSize(), state_.file, *state_.diagnostics);
  if (state_.diagnostics->has_errors()) return;
  state_.dialect = plan_.dialect;
  tensors_.resize(plan_.layers.size() + 1);
  ResolveInputs();
  ResolveOutputs();
  if (state_.diagnostics->has_errors()) return;
  MarkNeeded();
  if (!OpenWeights()) return;
  for (int layer = -1; layer < static_cast<int>(plan_.layers.size()); ++layer) {
    if (layer < 0 ? At(layer).is_wanted : At(layer).is_cut) {
      AddInput(layer);
    } else if (At(layer).is_wanted) {
      ImportLayer(layer);
    }
  }
  const std::optional<BoxSettings> found = BoxesOfHeads();
  if (boxes != nullptr) *boxes = found;
  if (options_.outputs.empty()) NoteHeads(found.has_value());
  AddOutputs();
}

}  // namespace npuc::darknet
