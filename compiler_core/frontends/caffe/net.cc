#include "compiler_core/frontends/caffe/net.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/caffe/schema.h"
#include "compiler_core/frontends/caffe/text_format.h"
#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::caffe {
namespace {

// The reason why a layer is no part of the net at inference.
enum class Role : uint8_t {
  kNone,
  kData,      // its tops are inputs
  kLoss,      // trains or measures
  kSilence,   // says that nobody reads its operands
  kDecoding,  // decodes boxes; the firmware does
};

struct RoleRow {
  absl::string_view type;
  Role role;
  size_t judged = 1;  // of a loss or a decoding: its first operands, results of the net
};
constexpr RoleRow kRoles[] = {
    {"Accuracy", Role::kLoss},
    {"AnnotatedData", Role::kData},
    {"ContrastiveLoss", Role::kLoss},
    {"Data", Role::kData},
    {"DetectionEvaluate", Role::kSilence},
    {"DetectionOutput", Role::kDecoding, 2},
    {"DummyData", Role::kData},
    {"EuclideanLoss", Role::kLoss},
    {"HDF5Data", Role::kData},
    {"HDF5Output", Role::kSilence},
    {"HingeLoss", Role::kLoss},
    {"ImageData", Role::kData},
    {"InfogainLoss", Role::kLoss},
    {"Input", Role::kData},
    {"MemoryData", Role::kData},
    {"MultiBoxLoss", Role::kLoss, 2},
    {"MultinomialLogisticLoss", Role::kLoss},
    {"SigmoidCrossEntropyLoss", Role::kLoss},
    {"Silence", Role::kSilence},
    {"SmoothL1Loss", Role::kLoss},
    {"SoftmaxWithLoss", Role::kLoss},
    {"VideoData", Role::kData},
    {"WindowData", Role::kData},
};

RoleRow RoleOf(absl::string_view type) {
  for (const RoleRow& row : kRoles) {
    if (row.type == type) return row;
  }
  return {type, Role::kNone, 0};
}

// For a diagnostic. A name over the limit is of no use: its beginning is enough.
std::string Shown(absl::string_view name) { return Printable(name, 200); }

std::vector<int64_t> Ints(const Message& message, absl::string_view name) {
  std::vector<int64_t> values;
  for (const Field* field : message.All(name)) {
    values.push_back(field->Int().value_or(-1));
    if (values.size() > kMaxRank) break;  // refused by its rank
  }
  return values;
}

// A level or a phase that a rule or a state gives.
int64_t IntOr(const Message& message, absl::string_view name, int64_t fallback) {
  const Field* field = message.Find(name);
  return field == nullptr ? fallback : field->Int().value_or(fallback);
}

// The state that the net runs in, as the net says; the phase is always TEST.
struct State {
  int64_t level = 0;
  std::vector<std::string> stages;
  bool Has(const std::string& stage) const {
    return std::find(stages.begin(), stages.end(), stage) != stages.end();
  }
};

bool Holds(const Message& rule, const State& state) {
  if (const Field* phase = rule.Find("phase"); phase != nullptr) {
    if (phase->text != "TEST" && phase->Int() != 1) return false;
  }
  if (rule.Find("min_level") != nullptr && state.level < IntOr(rule, "min_level", 0)) return false;
  if (rule.Find("max_level") != nullptr && state.level > IntOr(rule, "max_level", 0)) return false;
  for (const std::string& stage : rule.Texts("stage")) {
    if (!state.Has(stage)) return false;
  }
  for (const std::string& stage : rule.Texts("not_stage")) {
    if (state.Has(stage)) return false;
  }
  return true;
}

// With rules to include a layer, one of them must hold; else none of those that exclude it may.
bool IsIncluded(const Message& layer, const State& state) {
  const auto holds = [&](const Message* rule) { return Holds(*rule, state); };
  const std::vector<const Message*> include = layer.Messages("include");
  const std::vector<const Message*> exclude = layer.Messages("exclude");
  if (!include.empty()) return std::any_of(include.begin(), include.end(), holds);
  return std::none_of(exclude.begin(), exclude.end(), holds);
}

// The type as layers name it today; empty where an old form has none of the name.
std::string TypeOf(const Message& layer, bool is_v1) {
  const Field* type = layer.Find("type");
  if (type == nullptr) return "";
  if (!is_v1 || type->kind == Field::Kind::kString) return type->text;
  return std::string(type->kind == Field::Kind::kWord ? TypeOfV1(type->text)
                                                      : TypeOfV1(type->Int().value_or(-1)));
}

const Message kNoParameters;

}  // namespace

class Net::Reader {
 public:
  Reader(Net* net, const CaffeFiles& files, Diagnostics* diagnostics)
      : net_(*net), files_(files), diagnostics_(*diagnostics) {}

  void Read() {
    if (!ReadFiles()) return;
    const Message& message = net_.is_from_text_ ? *net_.text_ : *net_.model_;
    net_.name_ = message.Text("name");
    if (net_.is_from_text_) CollectBlobs();
    if (const Field* state = message.Find("state"); state != nullptr && state->message) {
      state_.level = IntOr(*state->message, "level", 0);
      state_.stages = state->message->Texts("stage");
    }
    AddInputs(message);
    for (const Field& field : message.fields) {
      const bool is_v1 = field.name == "layers";
      if ((is_v1 || field.name == "layer") && field.message != nullptr) {
        AddLayer(*field.message, is_v1);
      }
      if (net_.layers_.size() > kMaxLayers) {
        Report(DiagnosticKind::kModelLimitExceeded,
               absl::StrCat("the net has more than ", kMaxLayers, " layers"),
               "compile a smaller model");
        return;
      }
    }
    FinishLosses();
    NameTensors();
  }

 private:
  void Report(DiagnosticKind kind, std::string message, std::string fix,
              absl::string_view layer = {}, absl::string_view type = {}) {
    diagnostics_.Add(
        {.kind = kind,
         .message = std::move(message),
         .file = std::string(net_.is_from_text_ ? files_.text_name : files_.model_name),
         .node = std::string(layer),
         .op = std::string(type),
         .fix = std::move(fix)});
  }
  // False, and reported: the model's file as a whole.
  bool Refuse(DiagnosticKind kind, std::string message, std::string fix) {
    RefuseFile(kind, files_.model_name, std::move(message), std::move(fix), diagnostics_);
    return false;
  }
  bool ReadFiles();
  bool ReadModel();
  bool ReadText();
  void CollectBlobs();
  void AddInputs(const Message& message);
  void AddLayer(const Message& message, bool is_v1);
  bool CheckNames(const Layer& layer, absl::Span<const std::string> tops);
  void TakeParameters(Layer& layer, const Message& message);
  void Place(Layer layer, const std::vector<std::string>& tops);
  void PlaceLoss(Layer layer, const std::vector<std::string>& tops, size_t judged);
  // A .caffemodel has the net as it was trained: its data may come from a layer of that phase
  // alone, which then stands for an input.
  void AddTrainingData(const std::string& blob);
  void AddData(const Layer& layer, const Message& message);
  void FinishLosses();
  void NameTensors();
  int AddTensor(const std::string& blob, int layer);
  void MarkRead(int tensor) {
    if (tensor >= 0) net_.tensors_[static_cast<size_t>(tensor)].is_read = true;
  }

  Net& net_;
  const CaffeFiles& files_;
  Diagnostics& diagnostics_;
  State state_;
  absl::flat_hash_map<std::string, std::vector<absl::string_view>> blobs_;  // by layer
  absl::flat_hash_map<std::string, int> latest_;  // the tensor that a name means at this layer
  std::vector<Layer> softmax_losses_;
  // Layers of training that read data, by what they give; whether they are of the old form.
  absl::flat_hash_map<std::string, std::pair<const Message*, bool>> training_data_;
};

bool Net::Reader::ReadModel() {
  if (files_.model.empty()) {
    return Refuse(DiagnosticKind::kEmptyModel, "the model file is empty", "save the model again");
  }
  if (files_.model.size() > kMaxModelBytes) {
    return Refuse(
        DiagnosticKind::kModelLimitExceeded,
        absl::StrCat("the model has ", files_.model.size(), " bytes; allowed are ", kMaxModelBytes),
        "compile a smaller model");
  }
  absl::StatusOr<std::unique_ptr<Message>> model = ParseBinary(files_.model);
  if (absl::IsResourceExhausted(model.status())) {
    return Refuse(DiagnosticKind::kModelLimitExceeded, std::string(model.status().message()),
                  "compile a smaller model");
  }
  const bool is_net = model.ok() && std::any_of((*model)->fields.begin(), (*model)->fields.end(),
                                                [](const Field& f) { return !f.name.empty(); });
  if (is_net) {
    net_.model_ = *std::move(model);
    return true;
  }
  FileGuess guess = GuessFileKind(files_.model);
  if (guess.what.empty() || guess.what == kCaffeGuess) {
    guess = {"a damaged file or one of another format",
             "download or save the model again, or set FRAMEWORK to what it is"};
  }
  return Refuse(DiagnosticKind::kNotACaffeModel,
                absl::StrCat("the file is no .caffemodel; it looks like ", guess.what), guess.fix);
}

bool Net::Reader::ReadText() {
  absl::StatusOr<std::unique_ptr<Message>> text = ParseTextFormat(*files_.text);
  if (text.ok()) {
    net_.text_ = *std::move(text);
    return true;
  }
  const bool is_limit = absl::IsResourceExhausted(text.status());
  Report(is_limit ? DiagnosticKind::kModelLimitExceeded : DiagnosticKind::kCaffeTextSyntax,
         absl::StrCat("the net cannot be read: ", text.status().message()),
         is_limit ? "name the .prototxt of the net alone" : "correct the .prototxt");
  return false;
}

bool Net::Reader::ReadFiles() {
  net_.is_from_text_ = files_.text.has_value();
  const bool has_text = !files_.text.has_value() || ReadText();
  if (files_.is_text_alone) {
    net_.model_ = std::make_unique<Message>();
    return has_text;
  }
  return ReadModel() && has_text;
}

void Net::Reader::CollectBlobs() {
  for (const Field& field : net_.model_->fields) {
    if ((field.name != "layer" && field.name != "layers") || field.message == nullptr) continue;
    std::vector<absl::string_view>& blobs = blobs_[field.message->Text("name")];
    if (!blobs.empty()) continue;
    for (const Field* blob : field.message->All("blobs")) blobs.push_back(blob->bytes);
  }
}

int Net::Reader::AddTensor(const std::string& blob, int layer) {
  const int tensor = static_cast<int>(net_.tensors_.size());
  net_.tensors_.push_back({.blob = blob, .layer = layer});
  latest_[blob] = tensor;
  return tensor;
}

// Inputs of the old form: names, and beside them shapes, or four dimensions each.
void Net::Reader::AddInputs(const Message& message) {
  const std::vector<std::string> names = message.Texts("input");
  const std::vector<const Message*> shapes = message.Messages("input_shape");
  const std::vector<const Field*> dims = message.All("input_dim");
  for (size_t i = 0; i < names.size() && i < kMaxLayers; ++i) {
    NetTensor& input = net_.tensors_[static_cast<size_t>(AddTensor(names[i], -1))];
    if (i < shapes.size()) {
      input.dims = Ints(*shapes[i], "dim");
    } else if (4 * i + 4 <= dims.size()) {
      input.dims.emplace();
      for (size_t k = 4 * i; k < 4 * i + 4; ++k) {
        input.dims->push_back(dims[k]->Int().value_or(-1));
      }
    }
  }
}

bool Net::Reader::CheckNames(const Layer& layer, absl::Span<const std::string> tops) {
  const auto is_long = [](const std::string& name) { return name.size() > kMaxNodeNameBytes; };
  std::string problem;
  if (layer.type.empty()) problem = "the layer has no type, or one that no Caffe has";
  if (is_long(layer.name) || is_long(layer.type) ||
      std::any_of(layer.bottom_names.begin(), layer.bottom_names.end(), is_long) ||
      std::any_of(tops.begin(), tops.end(), is_long)) {
    problem = absl::StrCat("a name of the layer has more than ", kMaxNodeNameBytes, " bytes");
  }
  if (problem.empty()) return true;
  Report(DiagnosticKind::kMalformedNode, std::move(problem), "correct the net", Shown(layer.name),
         Shown(layer.type));
  return false;
}

// The parameters of the layer's type, and its blobs.
void Net::Reader::TakeParameters(Layer& layer, const Message& message) {
  const absl::string_view parameter = ParameterOf(layer.type);
  const Field* params = parameter.empty() ? nullptr : message.Find(parameter);
  layer.params = params != nullptr && params->message ? params->message.get() : &kNoParameters;
  if (net_.is_from_text_) {
    const auto blobs = blobs_.find(layer.name);
    if (blobs != blobs_.end()) layer.blobs = blobs->second;
    return;
  }
  for (const Field* blob : message.All("blobs")) layer.blobs.push_back(blob->bytes);
  const bool may_hide = params == nullptr && IsOfAFork(layer.type);
  for (const Field& field : message.fields) {
    const bool is_unknown = field.kind == Field::Kind::kUnknown && field.number >= 100;
    const bool is_other = may_hide && field.kind == Field::Kind::kMessage &&
                          field.name != "param" && field.name != "include" &&
                          field.name != "exclude";
    layer.has_foreign_params |= is_unknown || is_other;
  }
}

void Net::Reader::Place(Layer layer, const std::vector<std::string>& tops) {
  for (const int bottom : layer.bottoms) MarkRead(bottom);
  for (const std::string& top : tops) {
    layer.tops.push_back(AddTensor(top, static_cast<int>(net_.layers_.size())));
  }
  net_.layers_.push_back(std::move(layer));
}

void Net::Reader::PlaceLoss(Layer layer, const std::vector<std::string>& tops, size_t judged) {
  for (size_t i = judged; i < layer.bottoms.size(); ++i) MarkRead(layer.bottoms[i]);
  if (layer.type != "SoftmaxWithLoss" || layer.bottoms.empty()) return;
  layer.bottom_names.resize(1);
  layer.bottoms.resize(1);
  if (!tops.empty()) layer.name = tops[0];
  softmax_losses_.push_back(std::move(layer));
}

void Net::Reader::AddTrainingData(const std::string& blob) {
  const auto found = training_data_.find(blob);
  if (found == training_data_.end()) return;
  const auto [message, is_v1] = found->second;
  Layer layer{.name = message->Text("name"), .type = TypeOf(*message, is_v1)};
  TakeParameters(layer, *message);
  AddData(layer, *message);
}

void Net::Reader::AddLayer(const Message& message, bool is_v1) {
  if (!IsIncluded(message, state_)) {
    if (RoleOf(TypeOf(message, is_v1)).role == Role::kData) {
      for (const std::string& top : message.Texts("top")) training_data_[top] = {&message, is_v1};
    }
    return;
  }
  Layer layer{.name = message.Text("name"), .type = TypeOf(message, is_v1)};
  if (is_v1 && message.Find("layer") != nullptr) {
    Report(DiagnosticKind::kMalformedNode, "the layer is of Caffe's oldest form (V0)",
           "convert the files by Caffe's upgrade_net_proto_text and upgrade_net_proto_binary",
           Shown(layer.name));
    return;
  }
  layer.bottom_names = message.Texts("bottom");
  const std::vector<std::string> tops = message.Texts("top");
  if (!CheckNames(layer, tops)) return;
  for (const std::string& name : layer.bottom_names) {
    if (!latest_.contains(name)) AddTrainingData(name);
    const auto it = latest_.find(name);
    layer.bottoms.push_back(it == latest_.end() ? -1 : it->second);
  }
  TakeParameters(layer, message);
  const RoleRow row = RoleOf(layer.type);
  switch (row.role) {
    case Role::kNone:
      return Place(std::move(layer), tops);
    case Role::kData:
      return AddData(layer, message);
    case Role::kLoss:
      return PlaceLoss(std::move(layer), tops, row.judged);
    case Role::kSilence:
      for (const int bottom : layer.bottoms) MarkRead(bottom);
      return;
    case Role::kDecoding: {
      for (size_t i = row.judged; i < layer.bottoms.size(); ++i) MarkRead(layer.bottoms[i]);
      const int priors = layer.bottoms.size() > row.judged ? layer.bottoms[row.judged] : -1;
      layer.bottoms.resize(std::min(layer.bottoms.size(), row.judged));
      for (const int raw : layer.bottoms) {
        if (raw >= 0) net_.tensors_[static_cast<size_t>(raw)].is_decoded = true;
      }
      net_.decodings_.push_back({std::move(layer), tops, priors});
      return;
    }
  }
}

// The inputs that a layer stands for, with the dimensions that it states.
void Net::Reader::AddData(const Layer& layer, const Message& message) {
  const std::vector<const Message*> shapes = layer.params->Messages("shape");
  std::optional<std::vector<int64_t>> dims;
  if (layer.type == "MemoryData" || layer.type == "DummyData") {
    const absl::string_view items = layer.type == "MemoryData" ? "batch_size" : "num";
    dims = {IntOr(*layer.params, items, -1), IntOr(*layer.params, "channels", -1),
            IntOr(*layer.params, "height", -1), IntOr(*layer.params, "width", -1)};
  } else if (layer.type != "Input") {
    const std::vector<const Message*> transform = message.Messages("transform_param");
    const int64_t crop = transform.empty() ? 0 : IntOr(*transform[0], "crop_size", 0);
    if (crop > 0) dims = {-1, -1, crop, crop};
  }
  const std::vector<std::string> tops = message.Texts("top");
  for (size_t i = 0; i < tops.size() && i < kMaxLayers; ++i) {
    NetTensor& input = net_.tensors_[static_cast<size_t>(AddTensor(tops[i], -1))];
    if (!shapes.empty()) {
      input.dims = Ints(*shapes[std::min(i, shapes.size() - 1)], "dim");
    } else if (i == 0) {
      input.dims = dims;
    }
  }
}

// A SoftmaxWithLoss computes the probabilities where no layer of the net does.
void Net::Reader::FinishLosses() {
  for (Layer& loss : softmax_losses_) {
    const bool has_softmax =
        std::any_of(net_.layers_.begin(), net_.layers_.end(), [&](const Layer& layer) {
          return layer.type == "Softmax" && layer.bottom_names == loss.bottom_names;
        });
    if (has_softmax) continue;
    MarkRead(loss.bottoms[0]);
    loss.tops.push_back(AddTensor(loss.name, static_cast<int>(net_.layers_.size())));
    net_.layers_.push_back(std::move(loss));
  }
}

// A blob's last value has its name. The others are named by the layers that make them.
void Net::Reader::NameTensors() {
  for (size_t i = 0; i < net_.tensors_.size(); ++i) {
    NetTensor& tensor = net_.tensors_[i];
    if (latest_[tensor.blob] == static_cast<int>(i)) {
      tensor.name = tensor.blob;
      net_.by_name_.emplace(tensor.name, static_cast<int>(i));
    }
  }
  for (const Layer& layer : net_.layers_) {
    for (size_t top = 0; top < layer.tops.size(); ++top) {
      NetTensor& tensor = net_.tensors_[static_cast<size_t>(layer.tops[top])];
      const std::string by_layer = absl::StrCat(layer.name, ":", top);
      if (tensor.name.empty()) tensor.name = by_layer;
      net_.by_name_.emplace(by_layer, layer.tops[top]);
      if (top == 0) net_.by_name_.emplace(layer.name, layer.tops[top]);
    }
  }
  for (NetTensor& tensor : net_.tensors_) {
    if (tensor.name.empty()) tensor.name = tensor.blob;  // an input that a layer writes over
  }
}

std::unique_ptr<Net> Net::Parse(const CaffeFiles& files, Diagnostics& diagnostics) {
  std::unique_ptr<Net> net(new Net());
  const size_t errors_before = diagnostics.error_count();
  Reader(net.get(), files, &diagnostics).Read();
  if (diagnostics.error_count() != errors_before) return nullptr;
  return net;
}

std::vector<int> Net::Outputs() const {
  std::vector<int> outputs;
  for (const Layer& layer : layers_) {
    for (const int top : layer.tops) {
      const NetTensor& tensor = tensors_[static_cast<size_t>(top)];
      const bool is_last = !tensor.is_read && tensor.name == tensor.blob;
      if (is_last || tensor.is_decoded) outputs.push_back(top);
    }
  }
  return outputs;
}

int Net::Find(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? -1 : it->second;
}

std::vector<absl::string_view> Net::TensorNames() const {
  std::vector<absl::string_view> names;
  for (const NetTensor& tensor : tensors_) names.emplace_back(tensor.name);
  return names;
}

}  // namespace npuc::caffe
