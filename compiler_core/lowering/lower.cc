#include "compiler_core/lowering/lower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/lowering/weight_store.h"
#include "compiler_core/ops/lower_context.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// Lowers one graph, node by node; see LowerContext for what the operators see of it.
class Lowerer : public LowerContext {
 public:
  Lowerer(const Graph& graph, const CoreSpec& core, const LowerOptions& options,
          Diagnostics& diagnostics)
      : graph_(graph),
        core_(core),
        options_(options),
        diagnostics_(diagnostics),
        weights_(&model_.program, &options, core.limits, &diagnostics),
        locations_(graph.value_count()),
        remaining_uses_(graph.UseCounts()) {
    limits_.max_middle = (1 << core.limits->middle_extent_bits) - 1;
    limits_.max_outer = (1 << core.limits->outer_extent_bits) - 1;
    limits_.max_stride = (1 << core.limits->stride_bits) - 1;
    limits_.max_window = static_cast<int>(core.limits->pool_window_max);
    limits_.max_conv_side = static_cast<int>(core.limits->conv_side_max);
    const int64_t block = core.limits->matrix_block;
    limits_.mask_block = static_cast<int>(block);
    limits_.max_mask_blocks =
        static_cast<int>((core.limits->matrix_product_limit - 1) / (block * block));
    limits_.max_plane_side = static_cast<int>(core.limits->plane_side_max);
    limits_.max_plane_taps = static_cast<int>(core.limits->plane_taps_max);
    limits_.max_plane_stride = static_cast<int>(core.limits->plane_stride_max);
    limits_.max_node_commands = static_cast<int>(core.limits->node_commands_max);
    limits_.max_data_bytes = core.limits->npu_sram_bytes;
    limits_.max_inner = static_cast<int>(core.limits->vector_lanes);
    limits_.max_format_inner = static_cast<int>(core.limits->format_lanes);
  }

  absl::StatusOr<LoweredModel> Run() {
    DeclareInputs();
    if (!options_.plain_commands) FindScaledChannels();
    for (const Node& node : graph_.nodes()) LowerNode(node);
    RETURN_IF_ERROR(diagnostics_.ToStatus());
    for (const GraphOutput& output : graph_.outputs()) RETURN_IF_ERROR(EmitOutput(output));
    if (model_.program.commands.empty()) {
      diagnostics_.Add({.kind = DiagnosticKind::kNotLowerable,
                        .message = "the model computes nothing: it has no command",
                        .file = options_.model_name,
                        .fix = "name outputs with elements that the model computes"});
      return diagnostics_.ToStatus();
    }
    if (commands_ > static_cast<int64_t>(kMaxCommands)) {
      diagnostics_.Add(
          {.kind = DiagnosticKind::kProgramTooLarge,
           .message = absl::StrCat("the model needs ", commands_, " commands, at most ",
                                   kMaxCommands, " are allowed"),
           .file = options_.model_name,
           .fix = "reduce broadcasting over leading dimensions or unrolled steps"});
      return diagnostics_.ToStatus();
    }
    weights_.PlaceRepeated();
    model_.weights = weights_.TakeRecords();
    return std::move(model_);
  }

  const VectorLimits& limits() const override { return limits_; }
  bool plain_commands() const override { return options_.plain_commands; }

  absl::StatusOr<Operand> Input(int i) override { return Locate(node_->inputs[i]); }

  Operand Output(int i) override {
    const ValueId value = node_->outputs[i];
    return locations_[value.value()] = NewData(graph_.type(value).element_count());
  }

  Operand OutputOver(int i, int operand) override { return PlaceOver(i, node_->inputs[operand]); }

  absl::Status AliasOutput(int i, int operand, int64_t offset_bytes) override {
    ASSIGN_OR_RETURN(const Operand place, Input(operand));
    locations_[node_->outputs[i].value()] = place.Plus(offset_bytes);
    ++views_[place.buffer];
    return absl::OkStatus();
  }

  Operand Temp(int64_t elements) override { return NewData(elements); }

  absl::StatusOr<Operand> Constant(absl::Span<const float> values) override {
    return weights_.Constant(values, node_->source.name);
  }

  Operand Repeated(float value, int64_t count) override {
    return weights_.Repeated(value, count, node_->source.name);
  }

  uint16_t Immediate(float value) override { return weights_.Immediate(value, node_->source.name); }
  float AwayFromZero(float value) override {
    return weights_.AwayFromZero(value, node_->source.name);
  }

  void Step() override { waits_ = true; }
  void Emit(VectorCommand command) override { Push(command); }
  void Emit(FullyConnectedCommand command) override { Push(command); }
  void Emit(RawCommand command) override { Push(std::move(command)); }

  absl::Status ConstantMatMul(Operand a, Operand d, int64_t rows, int weight_operand,
                              bool transposed) override {
    const ValueId value = node_->inputs[weight_operand];
    const Shape& shape = graph_.type(value).shape;
    if (graph_.ConstantOf(value) == nullptr || shape.size() != 2) {
      return absl::InternalError("the weight of a fully connected command must be a matrix");
    }
    const int64_t k = transposed ? shape[1] : shape[0];
    const int64_t n = transposed ? shape[0] : shape[1];
    const auto& parts = weights_.Matrix(graph_, value, transposed, node_->source.name);
    if (rows > 1 && parts.size() == 1 && !options_.plain_commands) {
      EmitRowsAsPixels(parts[0], a, d, rows);
    } else {
      EmitParts(parts, a, d, rows, k, n);
    }
    return absl::OkStatus();
  }

  absl::Status ConstantConvolution(Operand a, Operand d, const Convolution& convolution,
                                   int weight_operand) override {
    const ValueId value = node_->inputs[weight_operand];
    if (graph_.ConstantOf(value) == nullptr) {
      return absl::UnimplementedError("the convolution's weight is computed at run time");
    }
    if (convolution.in_c > kMaxBlockExtent) {
      return absl::UnimplementedError(absl::StrCat("the convolution gathers ", convolution.in_c,
                                                   " inputs for each output; at most ",
                                                   kMaxBlockExtent, " fit the unit"));
    }
    if (std::max(convolution.in_h, convolution.in_w) > kMaxImageSide ||
        std::max(convolution.out_h(), convolution.out_w()) > kMaxImageSide) {
      return absl::UnimplementedError(
          absl::StrCat("the convolution's image has ", convolution.in_h, " x ", convolution.in_w,
                       " pixels; the unit takes at most ", kMaxImageSide, " on each side"));
    }
    if (std::max(convolution.in_h * convolution.in_w * convolution.in_c,
                 convolution.out_h() * convolution.out_w() *
                     std::min(convolution.columns, kMaxBlockExtent)) > kMaxUnitElements) {
      return absl::UnimplementedError(
          absl::StrCat("the convolution's image or result has more than ", kMaxUnitElements,
                       " elements, the most that the unit takes"));
    }
    const int64_t taps = convolution.kernel_h * convolution.kernel_w;
    const ValueId bias =
        convolution.bias_operand < 0 ? ValueId() : node_->inputs[convolution.bias_operand];
    const auto& parts = weights_.Convolution(graph_, value, bias, taps, convolution.first,
                                             convolution.columns, node_->source.name);
    const int64_t pixels = convolution.out_h() * convolution.out_w();
    for (const WeightStore::ConvolutionPart& part : parts) {
      const bool whole = part.columns == convolution.columns;
      const Operand target = whole ? d : Temp(pixels * part.columns);
      EmitConvolution(a, target, convolution, part);
      if (whole) continue;
      EmitCopyRows(*this, target, part.columns,
                   d.Plus((part.first - convolution.first) * kHalfBytes), convolution.columns,
                   pixels, part.columns);
    }
    return absl::OkStatus();
  }

  absl::Status DynamicMatMul(Operand a, Operand b, Operand d, int64_t rows, int64_t k,
                             int64_t n) override {
    // Published headers never give the fully connected unit weights from data_content. What they do
    // with two run-time operands is multiply as vectors, then reduce; so [n,k] times each row.
    ASSIGN_OR_RETURN(const Operand columns, TransposedView(*this, b, k, n));
    for (int64_t row = 0; row < rows; ++row) {
      const Operand products = Temp(k * n);
      EmitVector(*this, Arithmetic::kMul, columns, a.Plus(row * k * kHalfBytes), products, n, k);
      EmitSumOverMiddle(*this, products, d.Plus(row * n * kHalfBytes), n, k, 1, 1.0f);
    }
    return absl::OkStatus();
  }

 private:
  const Buffer& buffer(Operand place) const { return model_.program.buffers[place.buffer.value()]; }

  // A place for output i, perhaps over a value of the same size that dies here.
  Operand PlaceOver(int i, ValueId from) {
    const ValueId to = node_->outputs[i];
    const Operand place = locations_[from.value()];
    const bool dies = place.present() && remaining_uses_[from.value()] == 1 &&
                      buffer(place).slot == Slot::kData && SoleView(place.buffer);
    const bool same_size = graph_.type(from).element_count() == graph_.type(to).element_count();
    if (!options_.in_place || !dies || !same_size) return Output(i);
    return locations_[to.value()] = place;
  }

  // True where `node` is op of a value and a constant that has one number a channel.
  bool IsByChannel(const Node& node, Op op) const {
    if (node.op != op || graph_.ConstantOf(node.inputs[1]) == nullptr) return false;
    const Shape& shape = graph_.type(node.inputs[0]).shape;
    const Shape& constant = graph_.type(node.inputs[1]).shape;
    return !shape.empty() && !constant.empty() && constant.size() <= shape.size() &&
           graph_.ConstantOf(node.inputs[0]) == nullptr && constant.back() == shape.back() &&
           ElementCount(constant) == shape.back() && ElementCount(shape) > 0;
  }

  // Products with a factor a channel that the sum with an offset a channel reads and no other node:
  // batch_norm computes both, by no more commands. A product that is an output is computed, too.
  void FindScaledChannels() {
    scaled_.assign(static_cast<size_t>(graph_.value_count()), nullptr);
    for (const Node& add : graph_.nodes()) {
      if (!IsByChannel(add, Op::kAdd)) continue;
      const ValueId product = add.inputs[0];
      const Node& mul = graph_.def(product);
      const Shape& shape = graph_.type(product).shape;
      const int64_t commands_a_row = (shape.back() + limits_.max_inner - 1) / limits_.max_inner;
      // Channels of one row are walked as one long row by each of the two commands.
      const int64_t most = ElementCount(shape) > shape.back() ? commands_a_row : 2;
      if (!IsByChannel(mul, Op::kMul) || shape.back() <= 1 || commands_a_row > most) continue;
      const int as_output = UsesAsOutput(product);
      if (remaining_uses_[product.value()] != 1 + as_output) continue;
      scaled_[static_cast<size_t>(product.value())] = &mul;
      if (as_output == 0) continue;
      for (const ValueId input : mul.inputs) ++remaining_uses_[input.value()];
    }
  }

  int UsesAsOutput(ValueId value) const {
    return static_cast<int>(
        std::count_if(graph_.outputs().begin(), graph_.outputs().end(),
                      [value](const GraphOutput& output) { return output.value == value; }));
  }

  // The product that is a part of a batch_norm, nullptr where the value is none.
  const Node* Scaled(ValueId value) const {
    return scaled_.empty() ? nullptr : scaled_[static_cast<size_t>(value.value())];
  }

  absl::Status LowerBatchNorm(const Node& mul, const Node& add) {
    ASSIGN_OR_RETURN(const Operand a, Locate(mul.inputs[0]));
    ASSIGN_OR_RETURN(const Operand factors, Locate(mul.inputs[1]));
    ASSIGN_OR_RETURN(const Operand offsets, Locate(add.inputs[1]));
    const int64_t channels = graph_.type(add.inputs[0]).shape.back();
    const int64_t rows = graph_.type(add.inputs[0]).element_count() / channels;
    EmitBatchNorm(*this, a, factors, offsets, PlaceOver(0, mul.inputs[0]), rows, channels);
    for (const ValueId input : mul.inputs) --remaining_uses_[input.value()];
    return absl::OkStatus();
  }

  bool SoleView(BufferId id) const {
    const auto it = views_.find(id);
    return it == views_.end() || it->second == 0;
  }

  Operand NewBuffer(Slot slot, int64_t size_bytes, int64_t offset_bytes, const std::string& name) {
    model_.program.buffers.push_back({slot, size_bytes, offset_bytes, name});
    return {BufferId(static_cast<int32_t>(model_.program.buffers.size() - 1)), 0};
  }

  Operand NewData(int64_t elements) {
    return NewBuffer(Slot::kData, elements * kHalfBytes, -1, node_->source.name);
  }

  void DeclareInputs() {
    int64_t offset = 0;
    for (const ValueId value : graph_.inputs()) {
      const TensorType& type = graph_.type(value);
      PortTensor port;
      port.name = graph_.def(value).source.name;
      port.shape = type.shape;
      port.offset_bytes = offset;
      const int64_t size = type.element_count() * kHalfBytes;
      locations_[value.value()] = NewBuffer(Slot::kInput, size, offset, port.name);
      offset += size;
      model_.program.inputs.push_back(std::move(port));
    }
  }

  // Constants are placed where they are first asked for.
  absl::StatusOr<Operand> Locate(ValueId value) {
    Operand& place = locations_[value.value()];
    if (place.present()) return place;
    const Tensor* tensor = graph_.ConstantOf(value);
    if (tensor == nullptr) return absl::InternalError("a value is used before it is computed");
    place = weights_.Constant(tensor->ToFloats(), graph_.def(value).source.name);
    return place;
  }

  template <typename Body>
  void Push(Body body) {
    Command command;
    command.body = std::move(body);
    command.waits = waits_;
    command.node = node_->source.name;
    waits_ = false;
    // A model with more is refused; the number of commands alone counts then.
    if (++commands_ <= static_cast<int64_t>(kMaxCommands)) {
      model_.program.commands.push_back(std::move(command));
    }
  }

  void EmitParts(const std::vector<WeightStore::Part>& parts, Operand a, Operand d, int64_t rows,
                 int64_t k, int64_t n) {
    for (const WeightStore::Part& part : parts) {
      const bool first_of_k = part.k_first == 0;
      const Operand target = first_of_k ? d : Temp(rows * part.n);
      const int64_t target_stride = first_of_k ? n : part.n;
      Step();
      for (int64_t row = 0; row < rows; ++row) {
        FullyConnectedCommand command = part.command;
        command.a = a.Plus((row * k + part.k_first) * kHalfBytes);
        command.d =
            target.Plus((row * target_stride + (first_of_k ? part.n_first : 0)) * kHalfBytes);
        Emit(command);
      }
      if (first_of_k) continue;
      // Too many inputs for one command: the products of the further ones are added.
      for (int64_t row = 0; row < rows; ++row) {
        const Operand sum = d.Plus((row * n + part.n_first) * kHalfBytes);
        EmitTensor(*this, Arithmetic::kAdd, sum, target.Plus(row * part.n * kHalfBytes), sum,
                   part.n);
      }
    }
  }

  // One command multiplies all rows: they are the pixels of an image under a kernel of one tap.
  // Both commands store weights in the same form.
  void EmitRowsAsPixels(const WeightStore::Part& part, Operand a, Operand d, int64_t rows) {
    WeightStore::ConvolutionPart whole;
    whole.columns = part.n;
    whole.codes = part.command.codes;
    whole.mask = part.command.mask;
    whole.min = part.command.min;
    whole.step = part.command.step;
    whole.form = part.command.form;
    const int64_t block = core_.limits->matrix_block;
    whole.mask_bits = (part.k + block - 1) / block * ((part.n + block - 1) / block) * block * block;
    Convolution pixels;
    pixels.in_c = part.k;
    pixels.columns = part.n;
    for (int64_t first = 0; first < rows; first += pixels.in_w) {
      pixels.in_w =
          std::min({rows - first, kMaxImageSide, kMaxUnitElements / std::max(part.k, part.n)});
      EmitConvolution(a.Plus(first * part.k * kHalfBytes), d.Plus(first * part.n * kHalfBytes),
                      pixels, whole);
    }
  }

  void EmitConvolution(Operand a, Operand d, const Convolution& convolution,
                       const WeightStore::ConvolutionPart& part) {
    ConvolutionForm form;
    form.in_h = static_cast<int>(convolution.in_h);
    form.in_w = static_cast<int>(convolution.in_w);
    form.in_c = static_cast<int>(convolution.in_c);
    form.out_h = static_cast<int>(convolution.out_h());
    form.out_w = static_cast<int>(convolution.out_w());
    form.out_c = static_cast<int>(part.columns);
    form.kernel_h = static_cast<int>(convolution.kernel_h);
    form.kernel_w = static_cast<int>(convolution.kernel_w);
    form.stride_h = static_cast<int>(convolution.stride_h);
    form.stride_w = static_cast<int>(convolution.stride_w);
    form.pad_left = static_cast<int>(convolution.pad_columns);
    form.bias = part.has_bias;
    form.compressed = part.mask.present();
    form.min = part.min;
    form.step = part.step;
    form.weights = part.form;
    form.mask_bits = part.mask_bits;
    RawCommand command = MakeConvolution(form);
    command.a = a;
    command.weights = part.codes;
    command.mask = part.mask;
    command.d = d;
    Step();
    Emit(std::move(command));
  }

  void LowerNode(const Node& node) {
    node_ = &node;
    waits_ = true;
    if (node.op == Op::kPlaceholder || node.op == Op::kConst) return;
    if (Scaled(node.outputs[0]) != nullptr && UsesAsOutput(node.outputs[0]) == 0) return;
    const OpDef& def = DefOf(node.op);
    absl::Status status;
    if (def.lower == nullptr) {
      status = absl::UnimplementedError(absl::StrCat(
          "operator ", NameOf(node.op), " has no commands on core ", std::string(core_.name)));
    } else if (std::any_of(node.inputs.begin(), node.inputs.end(), [this](ValueId input) {
                 return graph_.type(input).element_count() == 0;
               })) {
      status = absl::UnimplementedError("an operand has no elements");
    } else if (!PoisonedOperand(node)) {
      std::vector<TensorType> types;
      std::vector<const Tensor*> constants;
      for (const ValueId input : node.inputs) {
        types.push_back(graph_.type(input));
        constants.push_back(graph_.ConstantOf(input));
      }
      const OpView view{node, types, constants};
      const Node* product = node.inputs.empty() ? nullptr : Scaled(node.inputs[0]);
      status = product != nullptr ? LowerBatchNorm(*product, node) : def.lower(view, *this);
      for (const ValueId input : node.inputs) --remaining_uses_[input.value()];
    }
    if (!status.ok()) Refuse(node, status);
  }

  void Refuse(const Node& node, const absl::Status& status) {
    Diagnostic refusal{.kind = DiagnosticKind::kNotLowerable,
                       .message = std::string(status.message()),
                       .file = options_.model_name,
                       .node = node.source.name,
                       .op = OpNameOf(node),
                       .fix = "replace the operator, or leave it out of the model"};
    if (status.code() == absl::StatusCode::kInternal) {
      refusal.kind = DiagnosticKind::kInternalError;
    } else if (status.code() == absl::StatusCode::kResourceExhausted) {
      refusal.kind = DiagnosticKind::kTooManyCommands;
      refusal.limit_source = absl::StrCat(std::string(core_.name), " node_commands_max");
    }
    diagnostics_.Add(std::move(refusal));
  }

  // A node whose operand could not be lowered is passed over: its cause was told already.
  bool PoisonedOperand(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      const Node* product = Scaled(input);
      if (product != nullptr) input = product->inputs[0];
      return !locations_[input.value()].present() && graph_.ConstantOf(input) == nullptr;
    });
  }

  absl::Status EmitOutput(const GraphOutput& output) {
    node_ = &graph_.def(output.value);
    const TensorType& type = graph_.type(output.value);
    PortTensor port;
    port.name = output.name;
    port.shape = type.shape;
    port.dtype = output.fp16 ? DType::kFloat16 : DType::kFloat32;
    if (!model_.program.outputs.empty()) {
      const PortTensor& last = model_.program.outputs.back();
      port.offset_bytes = last.offset_bytes + ElementCount(last.shape) * SizeOf(last.dtype);
    }
    ASSIGN_OR_RETURN(const Operand from, Locate(output.value));
    const int64_t count = type.element_count();
    const Operand to =
        NewBuffer(Slot::kOutput, count * SizeOf(port.dtype), port.offset_bytes, port.name);
    if (output.fp16) {
      EmitCopy(*this, from, to, count);
    } else {
      EmitFormat(*this, from, to, count);
    }
    model_.program.outputs.push_back(std::move(port));
    return absl::OkStatus();
  }

  const Graph& graph_;
  const CoreSpec& core_;
  const LowerOptions& options_;
  Diagnostics& diagnostics_;
  LoweredModel model_;
  WeightStore weights_;
  VectorLimits limits_;
  std::vector<Operand> locations_;  // by value id
  std::vector<int> remaining_uses_;
  std::vector<const Node*> scaled_;  // by value id: the product that is a part of a batch_norm
  std::map<BufferId, int> views_;    // further values that lie in a buffer
  const Node* node_ = nullptr;
  bool waits_ = true;
  int64_t commands_ = 0;  // emitted
};

}  // namespace

std::vector<WeightName> WeightNames(const Graph& graph) {
  std::vector<WeightName> names;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kMatMul && node.op != Op::kConv2D) continue;
    if (graph.ConstantOf(node.inputs[1]) == nullptr) continue;
    const std::string& name = graph.def(node.inputs[1]).source.name;
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const WeightName& weight) { return weight.name == name; });
    if (!known) names.push_back({name, node.op == Op::kConv2D});
  }
  return names;
}

absl::StatusOr<LoweredModel> Lower(const Graph& graph, const CoreSpec& core,
                                   const LowerOptions& options, Diagnostics& diagnostics) {
  if (core.limits == nullptr) {
    diagnostics.Add({.kind = DiagnosticKind::kNotLowerable,
                     .message = absl::StrCat("core ", std::string(core.name),
                                             " has no public command encoding"),
                     .file = options.model_name,
                     .fix = "set CORENAME: GRUS"});
    return diagnostics.ToStatus();
  }
  return Lowerer(graph, core, options, diagnostics).Run();
}

}  // namespace npuc
