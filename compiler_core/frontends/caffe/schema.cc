#include "compiler_core/frontends/caffe/schema.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/wire.h"

namespace npuc::caffe {
namespace {

enum class Type : uint8_t { kInt, kFloat, kString, kMessage, kBytes };

struct FieldRow;
using Rows = absl::Span<const FieldRow>;

struct FieldRow {
  uint32_t number;
  absl::string_view name;
  Type type;
  Rows (*message)() = nullptr;  // of kMessage
};

#define NPUC_CAFFE_MESSAGE(name, ...)                  \
  Rows name() {                                        \
    static constexpr FieldRow kRows[] = {__VA_ARGS__}; \
    return kRows;                                      \
  }

constexpr Type kInt = Type::kInt;
constexpr Type kFloat = Type::kFloat;
constexpr Type kString = Type::kString;
constexpr Type kMessage = Type::kMessage;

// The messages, by their names.
namespace message {

// Messages that nobody reads the inside of: fillers, what only training needs.
NPUC_CAFFE_MESSAGE(Unread, {1 << 28, "", kInt})
NPUC_CAFFE_MESSAGE(BlobShape, {1, "dim", kInt})
NPUC_CAFFE_MESSAGE(NetStateRule, {1, "phase", kInt}, {2, "min_level", kInt}, {3, "max_level", kInt},
                   {4, "stage", kString}, {5, "not_stage", kString})
NPUC_CAFFE_MESSAGE(NetState, {1, "phase", kInt}, {2, "level", kInt}, {3, "stage", kString})
NPUC_CAFFE_MESSAGE(Transform, {3, "crop_size", kInt})
NPUC_CAFFE_MESSAGE(ArgMax, {1, "out_max_val", kInt}, {2, "top_k", kInt}, {3, "axis", kInt})
NPUC_CAFFE_MESSAGE(Concat, {1, "concat_dim", kInt}, {2, "axis", kInt})
NPUC_CAFFE_MESSAGE(Convolution, {1, "num_output", kInt}, {2, "bias_term", kInt}, {3, "pad", kInt},
                   {4, "kernel_size", kInt}, {5, "group", kInt}, {6, "stride", kInt},
                   {7, "weight_filler", kMessage, Unread}, {8, "bias_filler", kMessage, Unread},
                   {9, "pad_h", kInt}, {10, "pad_w", kInt}, {11, "kernel_h", kInt},
                   {12, "kernel_w", kInt}, {13, "stride_h", kInt}, {14, "stride_w", kInt},
                   {15, "engine", kInt}, {16, "axis", kInt}, {17, "force_nd_im2col", kInt},
                   {18, "dilation", kInt})
NPUC_CAFFE_MESSAGE(Dropout, {1, "dropout_ratio", kFloat})
NPUC_CAFFE_MESSAGE(DummyData, {2, "num", kInt}, {3, "channels", kInt}, {4, "height", kInt},
                   {5, "width", kInt}, {6, "shape", kMessage, BlobShape})
NPUC_CAFFE_MESSAGE(Eltwise, {1, "operation", kInt}, {2, "coeff", kFloat},
                   {3, "stable_prod_grad", kInt})
NPUC_CAFFE_MESSAGE(Exp, {1, "base", kFloat}, {2, "scale", kFloat}, {3, "shift", kFloat})
NPUC_CAFFE_MESSAGE(InnerProduct, {1, "num_output", kInt}, {2, "bias_term", kInt},
                   {3, "weight_filler", kMessage, Unread}, {4, "bias_filler", kMessage, Unread},
                   {5, "axis", kInt}, {6, "transpose", kInt})
NPUC_CAFFE_MESSAGE(Lrn, {1, "local_size", kInt}, {2, "alpha", kFloat}, {3, "beta", kFloat},
                   {4, "norm_region", kInt}, {5, "k", kFloat}, {6, "engine", kInt})
NPUC_CAFFE_MESSAGE(MemoryData, {1, "batch_size", kInt}, {2, "channels", kInt}, {3, "height", kInt},
                   {4, "width", kInt})
NPUC_CAFFE_MESSAGE(Mvn, {1, "normalize_variance", kInt}, {2, "across_channels", kInt},
                   {3, "eps", kFloat})
NPUC_CAFFE_MESSAGE(Pooling, {1, "pool", kInt}, {2, "kernel_size", kInt}, {3, "stride", kInt},
                   {4, "pad", kInt}, {5, "kernel_h", kInt}, {6, "kernel_w", kInt},
                   {7, "stride_h", kInt}, {8, "stride_w", kInt}, {9, "pad_h", kInt},
                   {10, "pad_w", kInt}, {11, "engine", kInt}, {12, "global_pooling", kInt},
                   {13, "round_mode", kInt})
NPUC_CAFFE_MESSAGE(Power, {1, "power", kFloat}, {2, "scale", kFloat}, {3, "shift", kFloat})
NPUC_CAFFE_MESSAGE(Relu, {1, "negative_slope", kFloat}, {2, "engine", kInt})
NPUC_CAFFE_MESSAGE(Engine, {1, "engine", kInt})
NPUC_CAFFE_MESSAGE(Softmax, {1, "engine", kInt}, {2, "axis", kInt})
NPUC_CAFFE_MESSAGE(Slice, {1, "slice_dim", kInt}, {2, "slice_point", kInt}, {3, "axis", kInt})
NPUC_CAFFE_MESSAGE(Threshold, {1, "threshold", kFloat})
NPUC_CAFFE_MESSAGE(PRelu, {1, "filler", kMessage, Unread}, {2, "channel_shared", kInt})
NPUC_CAFFE_MESSAGE(Reshape, {1, "shape", kMessage, BlobShape}, {2, "axis", kInt},
                   {3, "num_axes", kInt})
NPUC_CAFFE_MESSAGE(Flatten, {1, "axis", kInt}, {2, "end_axis", kInt})
NPUC_CAFFE_MESSAGE(Reduction, {1, "operation", kInt}, {2, "axis", kInt}, {3, "coeff", kFloat})
NPUC_CAFFE_MESSAGE(Tile, {1, "axis", kInt}, {2, "tiles", kInt})
NPUC_CAFFE_MESSAGE(BatchNorm, {1, "use_global_stats", kInt}, {2, "moving_average_fraction", kFloat},
                   {3, "eps", kFloat})
NPUC_CAFFE_MESSAGE(Elu, {1, "alpha", kFloat})
NPUC_CAFFE_MESSAGE(Bias, {1, "axis", kInt}, {2, "num_axes", kInt}, {3, "filler", kMessage, Unread})
NPUC_CAFFE_MESSAGE(Embed, {1, "num_output", kInt}, {2, "input_dim", kInt}, {3, "bias_term", kInt},
                   {4, "weight_filler", kMessage, Unread}, {5, "bias_filler", kMessage, Unread})
NPUC_CAFFE_MESSAGE(Scale, {1, "axis", kInt}, {2, "num_axes", kInt}, {3, "filler", kMessage, Unread},
                   {4, "bias_term", kInt}, {5, "bias_filler", kMessage, Unread})
NPUC_CAFFE_MESSAGE(Input, {1, "shape", kMessage, BlobShape})
NPUC_CAFFE_MESSAGE(Crop, {1, "axis", kInt}, {2, "offset", kInt})
NPUC_CAFFE_MESSAGE(Recurrent, {1, "num_output", kInt}, {2, "weight_filler", kMessage, Unread},
                   {3, "bias_filler", kMessage, Unread}, {4, "debug_info", kInt},
                   {5, "expose_hidden", kInt})
NPUC_CAFFE_MESSAGE(Swish, {1, "beta", kFloat})
NPUC_CAFFE_MESSAGE(Clip, {1, "min", kFloat}, {2, "max", kFloat})
NPUC_CAFFE_MESSAGE(Permute, {1, "order", kInt})
NPUC_CAFFE_MESSAGE(PriorBox, {1, "min_size", kFloat}, {2, "max_size", kFloat},
                   {3, "aspect_ratio", kFloat}, {4, "flip", kInt}, {5, "clip", kInt},
                   {6, "variance", kFloat}, {7, "img_size", kInt}, {8, "img_h", kInt},
                   {9, "img_w", kInt}, {10, "step", kFloat}, {11, "step_h", kFloat},
                   {12, "step_w", kFloat}, {13, "offset", kFloat})
NPUC_CAFFE_MESSAGE(NonMaximumSuppression, {1, "nms_threshold", kFloat}, {2, "top_k", kInt},
                   {3, "eta", kFloat})
NPUC_CAFFE_MESSAGE(DetectionOutput, {1, "num_classes", kInt}, {2, "share_location", kInt},
                   {3, "background_label_id", kInt},
                   {4, "nms_param", kMessage, NonMaximumSuppression},
                   {5, "save_output_param", kMessage, Unread}, {6, "code_type", kInt},
                   {7, "keep_top_k", kInt}, {8, "variance_encoded_in_target", kInt},
                   {9, "confidence_threshold", kFloat}, {10, "visualize", kInt},
                   {11, "visualize_threshold", kFloat}, {12, "save_file", kString})
NPUC_CAFFE_MESSAGE(Normalize, {1, "across_spatial", kInt}, {2, "scale_filler", kMessage, Unread},
                   {3, "channel_shared", kInt}, {4, "eps", kFloat})

// The parameters of layers by number and name, in both forms of a layer.
#define NPUC_CAFFE_COMMON_PARAMETERS(n)                                                           \
  {n(103, 23), "argmax_param", kMessage, ArgMax}, {n(104, 9), "concat_param", kMessage, Concat},  \
      {n(106, 10), "convolution_param", kMessage, Convolution},                                   \
      {n(108, 12), "dropout_param", kMessage, Dropout},                                           \
      {n(109, 26), "dummy_data_param", kMessage, DummyData},                                      \
      {n(110, 24), "eltwise_param", kMessage, Eltwise}, {n(111, 41), "exp_param", kMessage, Exp}, \
      {n(117, 17), "inner_product_param", kMessage, InnerProduct},                                \
      {n(118, 18), "lrn_param", kMessage, Lrn},                                                   \
      {n(119, 22), "memory_data_param", kMessage, MemoryData},                                    \
      {n(120, 34), "mvn_param", kMessage, Mvn}, {n(121, 19), "pooling_param", kMessage, Pooling}, \
      {n(122, 21), "power_param", kMessage, Power}, {n(123, 30), "relu_param", kMessage, Relu},   \
      {n(124, 38), "sigmoid_param", kMessage, Engine},                                            \
      {n(125, 39), "softmax_param", kMessage, Softmax},                                           \
      {n(126, 31), "slice_param", kMessage, Slice}, {n(127, 37), "tanh_param", kMessage, Engine}, \
      {n(128, 25), "threshold_param", kMessage, Threshold},                                       \
      {n(101, 42), "loss_param", kMessage, Unread},                                               \
      {n(102, 27), "accuracy_param", kMessage, Unread},                                           \
      {n(105, 40), "contrastive_loss_param", kMessage, Unread},                                   \
      {n(107, 11), "data_param", kMessage, Unread},                                               \
      {n(112, 13), "hdf5_data_param", kMessage, Unread},                                          \
      {n(113, 14), "hdf5_output_param", kMessage, Unread},                                        \
      {n(114, 29), "hinge_loss_param", kMessage, Unread},                                         \
      {n(115, 15), "image_data_param", kMessage, Unread},                                         \
      {n(116, 16), "infogain_loss_param", kMessage, Unread},                                      \
      {n(129, 20), "window_data_param", kMessage, Unread}, {                                      \
    n(100, 36), "transform_param", kMessage, Transform                                            \
  }
#define NPUC_CAFFE_TODAY(v2, v1) v2
#define NPUC_CAFFE_OLD(v2, v1) v1

NPUC_CAFFE_MESSAGE(
    Layer, {1, "name", kString}, {2, "type", kString}, {3, "bottom", kString}, {4, "top", kString},
    {5, "loss_weight", kFloat}, {6, "param", kMessage, Unread}, {7, "blobs", Type::kBytes},
    {8, "include", kMessage, NetStateRule}, {9, "exclude", kMessage, NetStateRule},
    {10, "phase", kInt}, {11, "propagate_down", kInt},
    NPUC_CAFFE_COMMON_PARAMETERS(NPUC_CAFFE_TODAY), {130, "python_param", kMessage, Unread},
    {131, "prelu_param", kMessage, PRelu}, {132, "spp_param", kMessage, Unread},
    {133, "reshape_param", kMessage, Reshape}, {134, "log_param", kMessage, Exp},
    {135, "flatten_param", kMessage, Flatten}, {136, "reduction_param", kMessage, Reduction},
    {137, "embed_param", kMessage, Embed}, {138, "tile_param", kMessage, Tile},
    {139, "batch_norm_param", kMessage, BatchNorm}, {140, "elu_param", kMessage, Elu},
    {141, "bias_param", kMessage, Bias}, {142, "scale_param", kMessage, Scale},
    {143, "input_param", kMessage, Input}, {144, "crop_param", kMessage, Crop},
    {145, "parameter_param", kMessage, Input}, {146, "recurrent_param", kMessage, Recurrent},
    {147, "swish_param", kMessage, Swish}, {148, "clip_param", kMessage, Clip},
    {200, "annotated_data_param", kMessage, Unread}, {201, "multibox_loss_param", kMessage, Unread},
    {202, "permute_param", kMessage, Permute}, {203, "prior_box_param", kMessage, PriorBox},
    {204, "detection_output_param", kMessage, DetectionOutput},
    {205, "detection_evaluate_param", kMessage, Unread}, {206, "norm_param", kMessage, Normalize},
    {207, "video_data_param", kMessage, Unread})

NPUC_CAFFE_MESSAGE(V1Layer, {1, "layer", kMessage, Unread}, {2, "bottom", kString},
                   {3, "top", kString}, {4, "name", kString}, {5, "type", kInt},
                   {6, "blobs", Type::kBytes}, {7, "blobs_lr", kFloat}, {8, "weight_decay", kFloat},
                   {32, "include", kMessage, NetStateRule}, {33, "exclude", kMessage, NetStateRule},
                   {35, "loss_weight", kFloat}, {1001, "param", kString},
                   {1002, "blob_share_mode", kInt}, NPUC_CAFFE_COMMON_PARAMETERS(NPUC_CAFFE_OLD))

NPUC_CAFFE_MESSAGE(Net, {1, "name", kString}, {2, "layers", kMessage, V1Layer},
                   {3, "input", kString}, {4, "input_dim", kInt}, {5, "force_backward", kInt},
                   {6, "state", kMessage, NetState}, {7, "debug_info", kInt},
                   {8, "input_shape", kMessage, BlobShape}, {100, "layer", kMessage, Layer})

}  // namespace message

#undef NPUC_CAFFE_MESSAGE
#undef NPUC_CAFFE_COMMON_PARAMETERS
#undef NPUC_CAFFE_TODAY
#undef NPUC_CAFFE_OLD

class Decoder {
 public:
  // Recurses as deep as the tables nest, which is four messages.
  absl::StatusOr<std::unique_ptr<Message>> Decode(absl::string_view bytes, Rows rows) {
    auto message = std::make_unique<Message>();
    WireReader reader(bytes);
    WireField wire;
    while (!reader.AtEnd()) {
      if (!reader.Next(&wire)) {
        return absl::InvalidArgumentError("the file is cut short, or damaged");
      }
      RETURN_IF_ERROR(Add(*message, wire, rows));
    }
    return message;
  }

 private:
  absl::Status Add(Message& message, const WireField& wire, Rows rows) {
    const FieldRow* row = nullptr;
    for (const FieldRow& candidate : rows) {
      if (candidate.number == wire.number) row = &candidate;
    }
    if (row == nullptr) return AddUnknown(message, wire);
    const bool is_bytes = wire.type == WireField::Type::kBytes;
    Field field{.name = row->name};
    switch (row->type) {
      case Type::kString:
        if (!is_bytes) return AddUnknown(message, wire);
        field.kind = Field::Kind::kString;
        field.text = std::string(wire.bytes);
        return Push(message, std::move(field));
      case Type::kBytes:
        if (!is_bytes) return AddUnknown(message, wire);
        field.kind = Field::Kind::kBytes;
        field.bytes = wire.bytes;
        return Push(message, std::move(field));
      case Type::kMessage:
        if (!is_bytes) return AddUnknown(message, wire);
        field.kind = Field::Kind::kMessage;
        if (row->message == message::Unread) {
          field.message = std::make_unique<Message>();
        } else {
          ASSIGN_OR_RETURN(field.message, Decode(wire.bytes, row->message()));
        }
        return Push(message, std::move(field));
      case Type::kInt:
      case Type::kFloat:
        return AddNumbers(message, wire, *row);
    }
    return absl::OkStatus();
  }

  // One number, or packed ones.
  absl::Status AddNumbers(Message& message, const WireField& wire, const FieldRow& row) {
    const bool is_float = row.type == Type::kFloat;
    if (wire.type == WireField::Type::kBytes) {
      WireReader reader(wire.bytes);
      absl::string_view floats = wire.bytes;
      while (is_float ? !floats.empty() : !reader.AtEnd()) {
        Field field{.name = row.name};
        uint64_t value = 0;
        if (is_float ? floats.size() < 4 : !reader.Varint(&value)) {
          return absl::InvalidArgumentError("a list of numbers is cut short, or damaged");
        }
        field.number = is_float ? static_cast<double>(FloatAt(floats))
                                : static_cast<double>(static_cast<int64_t>(value));
        if (is_float) floats.remove_prefix(4);
        RETURN_IF_ERROR(Push(message, std::move(field)));
      }
      return absl::OkStatus();
    }
    const WireField::Type wanted = is_float ? WireField::Type::kFixed32 : WireField::Type::kVarint;
    if (wire.type != wanted) return AddUnknown(message, wire);
    Field field{.name = row.name};
    field.number = is_float ? static_cast<double>(FloatAt(wire.bytes))
                            : static_cast<double>(static_cast<int64_t>(wire.varint));
    return Push(message, std::move(field));
  }

  absl::Status AddUnknown(Message& message, const WireField& wire) {
    Field field{.name = "", .kind = Field::Kind::kUnknown};
    field.number = wire.number;
    return Push(message, std::move(field));
  }

  absl::Status Push(Message& message, Field field) {
    if (++field_count_ > kMaxFields) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the file has more than ", kMaxFields, " fields"));
    }
    message.fields.push_back(std::move(field));
    return absl::OkStatus();
  }

  int field_count_ = 0;
};

struct V1Type {
  absl::string_view enumerator;
  absl::string_view type;
};
constexpr V1Type kV1Types[] = {
    {"NONE", ""},
    {"ACCURACY", "Accuracy"},
    {"BNLL", "BNLL"},
    {"CONCAT", "Concat"},
    {"CONVOLUTION", "Convolution"},
    {"DATA", "Data"},
    {"DROPOUT", "Dropout"},
    {"EUCLIDEAN_LOSS", "EuclideanLoss"},
    {"FLATTEN", "Flatten"},
    {"HDF5_DATA", "HDF5Data"},
    {"HDF5_OUTPUT", "HDF5Output"},
    {"IM2COL", "Im2col"},
    {"IMAGE_DATA", "ImageData"},
    {"INFOGAIN_LOSS", "InfogainLoss"},
    {"INNER_PRODUCT", "InnerProduct"},
    {"LRN", "LRN"},
    {"MULTINOMIAL_LOGISTIC_LOSS", "MultinomialLogisticLoss"},
    {"POOLING", "Pooling"},
    {"RELU", "ReLU"},
    {"SIGMOID", "Sigmoid"},
    {"SOFTMAX", "Softmax"},
    {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
    {"SPLIT", "Split"},
    {"TANH", "TanH"},
    {"WINDOW_DATA", "WindowData"},
    {"ELTWISE", "Eltwise"},
    {"POWER", "Power"},
    {"SIGMOID_CROSS_ENTROPY_LOSS", "SigmoidCrossEntropyLoss"},
    {"HINGE_LOSS", "HingeLoss"},
    {"MEMORY_DATA", "MemoryData"},
    {"ARGMAX", "ArgMax"},
    {"THRESHOLD", "Threshold"},
    {"DUMMY_DATA", "DummyData"},
    {"SLICE", "Slice"},
    {"MVN", "MVN"},
    {"ABSVAL", "AbsVal"},
    {"SILENCE", "Silence"},
    {"CONTRASTIVE_LOSS", "ContrastiveLoss"},
    {"EXP", "Exp"},
    {"DECONVOLUTION", "Deconvolution"},
};

struct TypeParameter {
  absl::string_view type;
  absl::string_view field;
  bool is_of_a_fork = false;
};
constexpr TypeParameter kParameters[] = {
    {"ArgMax", "argmax_param"},
    {"BatchNorm", "batch_norm_param"},
    {"Bias", "bias_param"},
    {"Clip", "clip_param"},
    {"Concat", "concat_param"},
    {"Convolution", "convolution_param"},
    {"ConvolutionDepthwise", "convolution_param", true},
    {"Crop", "crop_param"},
    {"Deconvolution", "convolution_param"},
    {"DepthwiseConvolution", "convolution_param", true},
    {"DetectionOutput", "detection_output_param", true},
    {"Dropout", "dropout_param"},
    {"DummyData", "dummy_data_param"},
    {"ELU", "elu_param"},
    {"Eltwise", "eltwise_param"},
    {"Embed", "embed_param"},
    {"Exp", "exp_param"},
    {"Flatten", "flatten_param"},
    {"InnerProduct", "inner_product_param"},
    {"Input", "input_param"},
    {"Interp", "interp_param", true},
    {"LRN", "lrn_param"},
    {"LSTM", "recurrent_param"},
    {"Log", "log_param"},
    {"MVN", "mvn_param"},
    {"MemoryData", "memory_data_param"},
    {"Normalize", "norm_param", true},
    {"PReLU", "prelu_param"},
    {"Parameter", "parameter_param"},
    {"Permute", "permute_param", true},
    {"Pooling", "pooling_param"},
    {"Power", "power_param"},
    {"PriorBox", "prior_box_param", true},
    {"RNN", "recurrent_param"},
    {"ReLU", "relu_param"},
    {"ReLU6", "relu6_param", true},
    {"Reduction", "reduction_param"},
    {"Reshape", "reshape_param"},
    {"Scale", "scale_param"},
    {"ShuffleChannel", "shuffle_channel_param", true},
    {"Sigmoid", "sigmoid_param"},
    {"Slice", "slice_param"},
    {"Softmax", "softmax_param"},
    {"SoftmaxWithLoss", "softmax_param"},
    {"Swish", "swish_param"},
    {"TanH", "tanh_param"},
    {"Tile", "tile_param"},
    {"Upsample", "upsample_param", true},
};

const TypeParameter* RowOf(absl::string_view type) {
  for (const TypeParameter& row : kParameters) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Message>> ParseBinary(absl::string_view bytes) {
  return Decoder().Decode(bytes, message::Net());
}

absl::string_view TypeOfV1(int64_t number) {
  constexpr int64_t kCount = static_cast<int64_t>(std::size(kV1Types));
  return number >= 0 && number < kCount ? kV1Types[number].type : "";
}

absl::string_view TypeOfV1(absl::string_view enumerator) {
  for (const V1Type& row : kV1Types) {
    if (row.enumerator == enumerator) return row.type;
  }
  return "";
}

absl::string_view ParameterOf(absl::string_view type) {
  const TypeParameter* row = RowOf(type);
  return row == nullptr ? "" : row->field;
}

bool IsOfAFork(absl::string_view type) {
  const TypeParameter* row = RowOf(type);
  return row != nullptr && row->is_of_a_fork;
}

}  // namespace npuc::caffe
