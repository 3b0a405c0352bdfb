#include "compiler_core/quant/compass_ir/ir_writer.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/fixed_point.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/compass/check.h"
#include "compiler_core/ir/compass/stored_factor.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/stored_table.h"
#include "compiler_core/ops/window.h"
#include "compiler_core/quant/params.h"

namespace npuc {
namespace {

using compass::Block;
using compass::PrintShape;

// A name that can stand in a list of the text.
std::string Sound(absl::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '[' && c != ']' &&
                       c != ',' && c != '=';
    out.push_back(plain ? c : '_');
  }
  return out.empty() ? "_" : out;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class Writer {
 public:
  Writer(const Graph& graph, const QuantPlan& plan, std::string model_name)
      : graph_(graph), plan_(plan), model_name_(std::move(model_name)) {}

  IrFiles Run() {
    std::vector<std::string> outputs;
    for (const GraphOutput& output : graph_.outputs()) {
      outputs.push_back(Unique(output.name));
      if (graph_.def(output.value).op == Op::kPlaceholder) continue;
      output_names_.emplace(output.value, outputs.back());
    }
    for (const Layer& layer : plan_.layers) NarrowRange(layer);
    for (const Layer& layer : plan_.layers) WriteLayer(layer);
    for (const GraphOutput& output : graph_.outputs()) {
      if (graph_.ConstantOf(output.value) != nullptr) WriteConstant(output.value, output.name);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (NameOfValue(graph_.outputs()[i].value) != outputs[i]) {
        WriteCopy(graph_.outputs()[i].value, outputs[i]);
      }
    }
    Block head;
    head.Set("model_name", Sound(model_name_));
    head.Set("layer_number", absl::StrCat(files_.document.layers.size()));
    std::vector<std::string> inputs;
    for (const ValueId id : graph_.inputs()) inputs.push_back(NameOfValue(id));
    head.Set("input_tensors", List(inputs));
    head.Set("output_tensors", List(outputs));
    files_.document.head = std::move(head);
    return std::move(files_);
  }

  const Diagnostics& found() const { return found_; }

 private:
  static std::string List(const std::vector<std::string>& items) {
    return absl::StrCat("[", absl::StrJoin(items, ","), "]");
  }

  std::string Unique(absl::string_view name) {
    std::string unique = Sound(name);
    for (int i = 2; !taken_.insert(unique).second; ++i) unique = absl::StrCat(Sound(name), "_", i);
    return unique;
  }

  std::string NameOfValue(ValueId id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? "_" : found->second;
  }

  void Refuse(const Layer& layer, absl::string_view reason) {
    const Node& root = graph_.node(layer.root);
    found_.Add({.kind = DiagnosticKind::kNotLowerable,
                .message = absl::StrCat("Compass's IR files: ", reason),
                .file = model_name_,
                .node = layer.name,
                .op = OpNameOf(root),
                .fix = "end the model before it"});
  }

  const QuantParams* ParamsOf(ValueId id) const {
    const auto found = plan_.values.find(id);
    if (found != plan_.values.end()) return &found->second;
    const auto borrowed = borrowed_.find(id);
    return borrowed == borrowed_.end() ? nullptr : &borrowed->second;
  }

  std::string TypeOf(ValueId id) const {
    const QuantParams* params = ParamsOf(id);
    return std::string(compass::TypeName(params == nullptr ? DType::kFloat32 : params->dtype));
  }

  // The keys that every layer has. `name` is the layer's and its first top's.
  Block Common(const std::string& name, absl::string_view type, const std::vector<ValueId>& bottoms,
               const std::vector<ValueId>& tops) {
    Block block;
    block.Set("layer_id", absl::StrCat(files_.document.layers.size()));
    block.Set("layer_name", name);
    block.Set("layer_type", std::string(type));
    const auto lists = [&](const std::string& key, const std::vector<ValueId>& values) {
      std::vector<std::string> names;
      std::vector<std::string> shapes;
      std::vector<std::string> types;
      for (const ValueId id : values) {
        names.push_back(NameOfValue(id));
        shapes.push_back(PrintShape(graph_.type(id).shape));
        types.push_back(TypeOf(id));
      }
      block.Set(key, List(names));
      block.Set(key + "_shape", List(shapes));
      block.Set(key + "_type", List(types));
    };
    lists("layer_bottom", bottoms);
    for (size_t k = 0; k < tops.size(); ++k) {
      const auto output = output_names_.find(tops[k]);
      names_[tops[k]] = output != output_names_.end() ? output->second
                        : k == 0                      ? name
                                                      : Unique(absl::StrCat(name, "_", k));
    }
    lists("layer_top", tops);
    std::vector<std::string> ranges;
    std::vector<std::string> scales;
    std::vector<std::string> zeros;
    for (const ValueId id : tops) {
      const QuantParams* params = ParamsOf(id);
      if (params == nullptr || params->scale.size() != 1) return block;
      const auto narrowed = ranges_.find(id);
      ranges.push_back(narrowed != ranges_.end()
                           ? narrowed->second
                           : absl::StrCat("[", params->qmin, ",", params->qmax, "]"));
      // So many digits that the reciprocal of what is read is the scale again, to the bit.
      scales.push_back(absl::StrFormat("%.18g", 1 / static_cast<long double>(params->scale[0])));
      zeros.push_back(absl::StrCat(-params->zero_point[0]));
    }
    block.Set("layer_top_range", List(ranges));
    block.Set("layer_top_scale", List(scales));
    block.Set("layer_top_zp", List(zeros));
    return block;
  }

  void AddConstant(Block& block, const std::string& name, DType dtype, const Shape& shape,
                   const std::string& bytes) {
    block.Set(name + "_type", std::string(compass::TypeName(dtype)));
    block.Set(name + "_offset", absl::StrCat(files_.bin.size()));
    block.Set(name + "_size", absl::StrCat(bytes.size()));
    block.Set(name + "_shape", PrintShape(shape));
    files_.bin += bytes;
  }

  void WriteLayer(const Layer& layer) {
    const Node& root = graph_.node(layer.root);
    const std::string name = Unique(layer.name);
    if (ReadsConstantsAlone(layer)) {
      return Refuse(layer, "the layer reads constants alone, and is too large to be computed here");
    }
    const std::vector<ValueId> bottoms = BottomsOf(layer, root);
    Block block =
        Common(name, layer.type == "Identity" ? "Reshape" : layer.type, bottoms, layer.outputs);
    absl::Status status = AddOwn(layer, root, block);
    if (status.ok()) status = AddLut(layer, root, block);
    if (!status.ok()) Refuse(layer, status.message());
    if (status.ok()) AddSettings(layer, block);
    files_.document.layers.push_back(std::move(block));
  }

  const LayerQuant& SettingsOf(const Layer& layer) const {
    static constexpr LayerQuant kDefault;
    const size_t index = static_cast<size_t>(&layer - plan_.layers.data());
    return index < plan_.settings.size() ? plan_.settings[index] : kDefault;
  }

  // What differs from Compass's own numbers.
  void AddSettings(const Layer& layer, Block& block) const {
    const LayerQuant usual;
    const LayerQuant& settings = SettingsOf(layer);
    const auto set = [&](const char* key, int value, int usually) {
      if (value != usually) block.Set(key, absl::StrCat(value));
    };
    if (layer.type == "Input" || ParamsOf(layer.outputs[0]) == nullptr) return;
    set("multiplier_bits", settings.multiplier_bits, usual.multiplier_bits);
    set("lut_items_in_bits", settings.lut_bits, usual.lut_bits);
    set("bias_effective_bits", settings.bias_effective_bits, usual.bias_effective_bits);
  }

  // What a layer reads, in operand order. Of an element-wise one and of a concatenation constants
  // are layers of their own.
  std::vector<ValueId> BottomsOf(const Layer& layer, const Node& root) {
    const bool lists_constants = layer.type == "MatMul" || root.op == Op::kDiv ||
                                 root.op == Op::kPow || root.op == Op::kSquaredDifference;
    const bool joins = layer.type == "Eltwise" || layer.type == "Concat";
    if (!joins && !lists_constants) return layer.inputs;
    for (const ValueId input : root.inputs) {
      if (graph_.ConstantOf(input) == nullptr) continue;
      // Integers that have no parameters take those of what they become a part of.
      const QuantParams* result = ParamsOf(layer.outputs[0]);
      if (joins && result != nullptr && ParamsOf(input) == nullptr) {
        borrowed_.emplace(input, *result);
      }
      WriteConstant(input, absl::StrCat(layer.name, "_constant"));
    }
    return root.inputs;
  }

  // A constant as a layer; nothing where it is one already.
  void WriteConstant(ValueId constant, absl::string_view wanted_name) {
    if (names_.contains(constant)) return;
    const QuantParams* params = ParamsOf(constant);
    if (params != nullptr && params->scale.size() != 1) {
      found_.Add({.kind = DiagnosticKind::kNotLowerable,
                  .message = "Compass's IR files: a constant layer with a scale for each channel",
                  .file = model_name_,
                  .node = graph_.def(constant).source.name,
                  .op = "Const",
                  .fix = "quantize the constant with one scale"});
      return;
    }
    const auto output = output_names_.find(constant);
    const std::string name = output == output_names_.end() ? Unique(wanted_name) : output->second;
    Block block = Common(name, "Constant", {}, {constant});
    const Tensor values = Stored(constant);
    AddConstant(block, "weights", values.dtype(), values.shape(), BytesOfTensor(values));
    files_.document.layers.push_back(std::move(block));
  }

  // A value under a second name: of an output that is an input, or that is output twice.
  void WriteCopy(ValueId value, const std::string& name) {
    const std::string own = NameOfValue(value);
    output_names_[value] = name;
    Block block = Common(name, "Reshape", {value}, {value});
    names_[value] = own;
    block.Set("shape", PrintShape(graph_.type(value).shape));
    files_.document.layers.push_back(std::move(block));
  }

  static std::string BytesOfTensor(const Tensor& tensor) {
    return {reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()};
  }

  // A constant as the plan stores it, or in float.
  Tensor Stored(ValueId id) const {
    const auto given = plan_.constants.find(id);
    if (given != plan_.constants.end()) return given->second;
    const Tensor& real = *graph_.ConstantOf(id);
    const QuantParams* params = ParamsOf(id);
    if (params != nullptr) return QuantizeTensor(*params, real.ToFloats(), real.shape());
    return Tensor::FromFloats(real.shape(), real.ToFloats());
  }

  // The table of a function, of a softmax's exponential.
  absl::Status AddLut(const Layer& layer, const Node& root, Block& block) {
    const bool is_softmax = layer.type == "Softmax";
    const bool is_function = IsFunction(layer, root) && !ClampOf(graph_, root).has_value();
    if (!is_softmax && !is_function) return absl::OkStatus();
    const QuantParams* from = ParamsOf(layer.inputs[0]);
    const QuantParams* to = ParamsOf(layer.outputs[0]);
    if (from == nullptr || to == nullptr) return absl::OkStatus();
    if (is_softmax) {
      const StoredTable table = MakeExponentialTable(*from, to->scale[0], SettingsOf(layer));
      AddTable(table, DType::kUint32, block);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const StoredTable table,
                     MakeFunctionTable(graph_, layer, *from, *to, SettingsOf(layer)));
    AddTable(table, to->dtype, block);
    return absl::OkStatus();
  }

  void AddTable(const StoredTable& table, DType dtype, Block& block) {
    const auto count = static_cast<int64_t>(table.entries.size());
    AddConstant(block, "lut", dtype, {count},
                BytesOfTensor(CastTensor(Tensor::FromInts({count}, table.entries), dtype)));
  }

  absl::Status AddOwn(const Layer& layer, const Node& root, Block& block) {
    const std::string& type = layer.type;
    const Shape& bottom = root.inputs.empty() ? graph_.type(root.outputs[0]).shape
                                              : graph_.type(root.inputs[0]).shape;
    const int64_t rank = static_cast<int64_t>(bottom.size());
    if (type == "Input") return absl::OkStatus();
    if (!HasMethods(layer)) {
      return absl::UnimplementedError("a function that has no method there");
    }
    if (type == "Convolution" || type == "DepthwiseConv" || type == "FullyConnected") {
      return AddWeighted(layer, root, block);
    }
    if (type == "Pooling") {
      ASSIGN_OR_RETURN(const WindowGeometry window, MakePoolWindow(root, bottom));
      AddWindow(window, block);
      block.Set("ceil_mode", "false");
      block.Set("count_include_pad", "false");
      block.Set("method", std::string(TraitsOf(root.op).method));
    } else if (type == "Reshape" || type == "Identity") {
      block.Set("shape", PrintShape(graph_.type(root.outputs[0]).shape));
    } else if (type == "Softmax") {
      ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(root, "axis", rank, rank - 1));
      block.Set("axis", absl::StrCat(axis));
    } else if (type == "Concat") {
      ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(root, "axis", rank, 0));
      block.Set("axis", absl::StrCat(axis));
    } else if (type == "Transpose") {
      ASSIGN_OR_RETURN(const std::vector<int64_t> perm, IntsAttr(root, "perm"));
      block.Set("perm", PrintShape(perm));
    } else if (type == "Reduce") {
      ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntsAttr(root, "axes"));
      block.Set("axis", PrintShape(axes));
      block.Set("method", std::string(TraitsOf(root.op).method));
    } else if (type == "Activation" || type == "Eltwise") {
      block.Set("method", std::string(TraitsOf(root.op).method));
    } else if (!IsFunction(layer, root) || HasAttributes(root) || !compass::IsFunctionType(type)) {
      RETURN_IF_ERROR(AddMoved(root, bottom, block));
    }
    AddActivation(layer, block);
    return absl::OkStatus();
  }

  // True for an operator of one value, of which the name or Compass's for it is the layer's type.
  static bool IsFunction(const Layer& layer, const Node& root) {
    const OpTraits& traits = TraitsOf(root.op);
    return traits.is_pointwise && root.inputs.size() == 1 && layer.nodes.size() == 1 &&
           traits.layout == LayoutRule::kElementwise;
  }

  // Attributes of a function, which its layer would lose.
  static bool HasAttributes(const Node& node) {
    return std::any_of(node.attrs.begin(), node.attrs.end(), [](const auto& attribute) {
      return !absl::StartsWith(attribute.first, kFactPrefix);
    });
  }

  // Attributes of layers that move elements, and of the others that need none or few.
  absl::Status AddMoved(const Node& root, const Shape& bottom, Block& block) {
    const int64_t rank = static_cast<int64_t>(bottom.size());
    switch (root.op) {
      case Op::kPad: {
        ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, IntsAttr(root, "paddings"));
        std::vector<std::string> pairs;
        for (size_t i = 0; i + 1 < paddings.size(); i += 2) {
          pairs.push_back(PrintShape({paddings[i], paddings[i + 1]}));
        }
        block.Set("mode", "CONSTANT");
        block.Set("pads", List(pairs));
        block.Set("constant_value", absl::StrFormat("%.17g", FloatAttrOr(root, "value", 0)));
        return absl::OkStatus();
      }
      case Op::kSlice:
        return AddSlice(root, bottom, block);
      case Op::kSplit: {
        ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(root, "axis", rank, 0));
        ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, IntsAttr(root, "sizes"));
        block.Set("axis", absl::StrCat(axis));
        block.Set("splits", PrintShape(sizes));
        return absl::OkStatus();
      }
      case Op::kLogSoftmax: {
        ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(root, "axis", rank, rank - 1));
        block.Set("axis", absl::StrCat(axis));
        return absl::OkStatus();
      }
      case Op::kMatMul:
        block.Set("trans_a", BoolAttrOr(root, "transpose_a", false) ? "true" : "false");
        block.Set("trans_b", BoolAttrOr(root, "transpose_b", false) ? "true" : "false");
        return absl::OkStatus();
      case Op::kDiv:
      case Op::kPow:
      case Op::kSquaredDifference:
        return absl::OkStatus();
      default:
        return absl::UnimplementedError(
            absl::StrCat("no layer type is known for ", NameOf(root.op)));
    }
  }

  // `end` is behind the last element. A reader counts numbers below 0 from the end, so an end
  // before element 0 is written as a number that is before it even then.
  static absl::Status AddSlice(const Node& root, const Shape& bottom, Block& block) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> begin, IntsAttr(root, "begin"));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntsAttr(root, "size"));
    ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntsAttr(root, "strides"));
    std::vector<int64_t> end;
    for (size_t d = 0; d < begin.size(); ++d) {
      const int64_t behind = begin[d] + (size[d] - 1) * strides[d] + (strides[d] > 0 ? 1 : -1);
      end.push_back(behind < 0 ? -bottom[d] - 1 : behind);
    }
    block.Set("begin", PrintShape(begin));
    block.Set("end", PrintShape(end));
    block.Set("strides", PrintShape(strides));
    return absl::OkStatus();
  }

  // Not so of a function of several operators, nor of clamps by other bounds than RELU's and
  // RELU6's that the range of the integers cannot say.
  bool HasMethods(const Layer& layer) const {
    if (layer.type == "Activation") {
      const Node& root = graph_.node(layer.root);
      const absl::string_view method = TraitsOf(root.op).method;
      return layer.nodes.size() == 1 && method != "MAX" && method != "MIN" && !HasAttributes(root);
    }
    if (ClampsOf(graph_, layer) == ClampRange() || ActivationOf(layer) != "NONE") return true;
    const QuantParams* params = ParamsOf(layer.outputs[0]);
    if (params == nullptr || params->scale.size() != 1) return false;
    // A range of the IR holds two integers at least, and the zero point.
    const StoredRange range = StoredClamps(ClampsOf(graph_, layer), *params, SettingsOf(layer));
    return range.min < range.max && range.min <= params->zero_point[0] &&
           params->zero_point[0] <= range.max;
  }

  void AddActivation(const Layer& layer, Block& block) {
    if (layer.type == "Activation" || layer.nodes.size() < 2) return;
    block.Set("with_activation", ActivationOf(layer));
  }

  std::string ActivationOf(const Layer& layer) const {
    const ClampRange clamps = ClampsOf(graph_, layer);
    return clamps == kReluRange ? "RELU" : clamps == kRelu6Range ? "RELU6" : "NONE";
  }

  // Clamps that no with_activation names narrow the range of a layer result's integers.
  void NarrowRange(const Layer& layer) {
    const QuantParams* params = layer.outputs.size() == 1 ? ParamsOf(layer.outputs[0]) : nullptr;
    if (params == nullptr || params->scale.size() != 1 || ActivationOf(layer) != "NONE") return;
    const StoredRange range = StoredClamps(ClampsOf(graph_, layer), *params, SettingsOf(layer));
    ranges_[layer.outputs[0]] = absl::StrCat("[", range.min, ",", range.max, "]");
  }

  static void AddWindow(const WindowGeometry& w, Block& block) {
    const auto set = [&](const char* key, int64_t value) { block.Set(key, absl::StrCat(value)); };
    set("dilation_x", w.dilation[1]);
    set("dilation_y", w.dilation[0]);
    set("kernel_x", w.kernel[1]);
    set("kernel_y", w.kernel[0]);
    set("pad_bottom", w.pad_after[0]);
    set("pad_left", w.pad_before[1]);
    set("pad_right", w.pad_after[1]);
    set("pad_top", w.pad_before[0]);
    set("stride_x", w.stride[1]);
    set("stride_y", w.stride[0]);
  }

  // The order of a weight's dimensions in the .bin: [o,h,w,i], [c,h,w,1] or [o,i].
  struct Order {
    Shape shape;
    std::vector<int64_t> strides;  // of each of its dimensions in the graph's constant
    int64_t outputs = 0;
  };
  Order OrderOf(const Node& root, const Shape& w) const {
    if (root.op == Op::kMatMul) {
      const bool transposed = BoolAttrOr(root, "transpose_b", false);
      if (transposed) return {{w[0], w[1]}, {w[1], 1}, w[0]};
      return {{w[1], w[0]}, {1, w[1]}, w[1]};
    }
    if (root.op == Op::kDepthwiseConv2D) {
      const int64_t channels = w[2] * w[3];
      return {{channels, w[0], w[1], 1}, {1, w[1] * channels, channels, 0}, channels};
    }
    return {{w[3], w[0], w[1], w[2]}, {1, w[1] * w[2] * w[3], w[2] * w[3], w[3]}, w[3]};
  }

  static std::string Reordered(const Tensor& values, const Order& order) {
    const size_t size = static_cast<size_t>(SizeOf(values.dtype()));
    const char* from = reinterpret_cast<const char*>(values.bytes().data());
    std::string bytes;
    std::vector<int64_t> at(order.shape.size(), 0);
    for (int64_t i = 0; i < values.element_count(); ++i) {
      int64_t element = 0;
      for (size_t d = 0; d < at.size(); ++d) element += at[d] * order.strides[d];
      bytes.append(from + static_cast<size_t>(element) * size, size);
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < order.shape[d]) break;
        at[d] = 0;
      }
    }
    return bytes;
  }

  absl::Status AddWeighted(const Layer& layer, const Node& root, Block& block) {
    if (!layer.weight.valid()) return absl::UnimplementedError("weights computed at run time");
    if (root.op == Op::kMatMul && BoolAttrOr(root, "transpose_a", false)) {
      return absl::UnimplementedError("a matrix product of a transposed activation");
    }
    const Shape& shape = graph_.type(layer.weight).shape;
    const Order order = OrderOf(root, shape);
    AddBiases(layer, order, block);
    const Tensor weight = Stored(layer.weight);
    AddConstant(block, "weights", weight.dtype(), order.shape, Reordered(weight, order));
    AddScales(layer, order, block);
    if (root.op != Op::kMatMul) {
      const Shape& bottom = graph_.type(root.inputs[0]).shape;
      ASSIGN_OR_RETURN(const WindowGeometry window, MakeConvWindow(root, bottom, shape));
      AddWindow(window, block);
      const bool depthwise = root.op == Op::kDepthwiseConv2D;
      block.Set("group", absl::StrCat(depthwise ? shape[2] : bottom[3] / shape[2]));
      if (depthwise) block.Set("multiplier", absl::StrCat(shape[3]));
    }
    block.Set("num_output", absl::StrCat(order.outputs));
    block.Set("with_activation", ActivationOf(layer));
    return absl::OkStatus();
  }

  // The scale of weights of result channel o.
  static double ScaleAt(const QuantParams& weight, int64_t o, int64_t outputs) {
    const int64_t scales = static_cast<int64_t>(weight.scale.size());
    return weight.scale[static_cast<size_t>(scales == 1 ? 0 : o / (outputs / scales))];
  }

  void AddBiases(const Layer& layer, const Order& order, Block& block) {
    const QuantParams* weight = ParamsOf(layer.weight);
    const QuantParams* input = ParamsOf(layer.inputs[0]);
    const Tensor* real = layer.bias.valid() ? graph_.ConstantOf(layer.bias) : nullptr;
    if (weight == nullptr || input == nullptr) {
      std::vector<float> values(static_cast<size_t>(order.outputs), 0);
      if (real != nullptr) values = real->ToFloats();
      return AddConstant(block, "biases", DType::kFloat32, {order.outputs}, BytesOf(values));
    }
    const auto given = plan_.constants.find(layer.bias);
    std::vector<int64_t> wide(static_cast<size_t>(order.outputs), 0);
    bool narrow = true;
    for (int64_t o = 0; o < order.outputs; ++o) {
      int64_t q = 0;
      if (layer.bias.valid() && given != plan_.constants.end()) {
        q = given->second.int_at(o);
      } else if (real != nullptr) {
        constexpr int64_t kLargest = int64_t{1} << 46;
        q = std::clamp(
            RoundHalfEven(real->at(o) / (input->scale[0] * ScaleAt(*weight, o, order.outputs))),
            -kLargest, kLargest);
      }
      wide[static_cast<size_t>(o)] = q;
      narrow = narrow && q == static_cast<int32_t>(q);
    }
    if (!narrow) {
      return AddConstant(block, "biases", DType::kInt64, {order.outputs}, BytesOf(wide));
    }
    AddConstant(block, "biases", DType::kInt32, {order.outputs},
                BytesOf(std::vector<int32_t>(wide.begin(), wide.end())));
  }

  // Requantization: multiplier and right shift of each scale, and the scales themselves.
  void AddScales(const Layer& layer, const Order& order, Block& block) {
    const QuantParams* weight = ParamsOf(layer.weight);
    const QuantParams* input = ParamsOf(layer.inputs[0]);
    const QuantParams* output = ParamsOf(layer.outputs[0]);
    if (weight == nullptr || input == nullptr || output == nullptr) return;
    const LayerQuant& settings = SettingsOf(layer);
    const int bits = std::min(settings.multiplier_bits, compass::kStoredMultiplierBits);
    const int64_t count = weight->scale.size() == 1 ? 1 : order.outputs;
    std::vector<uint16_t> multipliers;
    std::vector<int8_t> shifts;
    std::vector<double> scales;
    for (int64_t o = 0; o < count; ++o) {
      const double scale = ScaleAt(*weight, o, order.outputs);
      Factor factor = MakeFactor(input->scale[0] * scale / output->scale[0], bits);
      if (!settings.factors.empty()) {
        factor = settings.factors[settings.factors.size() == 1 ? 0 : static_cast<size_t>(o)];
      }
      factor = compass::AsStored(factor);
      multipliers.push_back(static_cast<uint16_t>(factor.multiplier));
      shifts.push_back(static_cast<int8_t>(factor.shift));
      scales.push_back(1 / scale);
    }
    AddConstant(block, "scale", DType::kUint16, {count}, BytesOf(multipliers));
    AddConstant(block, "shift", DType::kInt8, {count}, BytesOf(shifts));
    AddConstant(block, "weights_scale", DType::kFloat64, {count}, BytesOf(scales));
    AddConstant(block, "weights_zp", DType::kInt32, {count},
                BytesOf(std::vector<int32_t>(static_cast<size_t>(count), 0)));
    // A bias has the scale of the sums: the operand's times the weight's.
    std::vector<float> of_biases;
    for (int64_t o = 0; o < count; ++o) {
      const double unit = input->scale[0] * ScaleAt(*weight, o, order.outputs);
      of_biases.push_back(static_cast<float>(1 / unit));
    }
    AddConstant(block, "biases_scale", DType::kFloat32, {count}, BytesOf(of_biases));
    AddConstant(block, "biases_zp", DType::kInt64, {1}, BytesOf(std::vector<int64_t>{0}));
  }

  const Graph& graph_;
  const QuantPlan& plan_;
  const std::string model_name_;
  IrFiles files_;
  Diagnostics found_;
  std::map<ValueId, std::string> names_;
  std::map<ValueId, std::string> ranges_;        // of integers, where clamps narrow them
  std::map<ValueId, std::string> output_names_;  // of the graph's outputs
  std::set<std::string> taken_;
  std::map<ValueId, QuantParams> borrowed_;  // of constants without parameters of their own
};

}  // namespace

absl::StatusOr<IrFiles> WriteIr(const Graph& graph, const QuantPlan& plan,
                                const std::string& model_name, Diagnostics& diagnostics) {
  Writer writer(graph, plan, model_name);
  IrFiles files = writer.Run();
  diagnostics.Append(writer.found());
  RETURN_IF_ERROR(writer.found().ToStatus());
  return files;
}

}  // namespace npuc
