#include "compiler_core/frontends/tflite/model_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/frontends/tflite/sparse.h"
#include "compiler_core/ops/quantize.h"
#include "flatbuffers/flatbuffers.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

namespace fb = ::npuc::fe::tflite;

constexpr const char* kFix = "convert the model again";

std::string TextOf(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str().substr(0, kMaxNameBytes);
}

}  // namespace

DType DTypeFromWire(int element_type) {
  switch (element_type) {
    case fb::ElementType_FLOAT32:
      return DType::kFloat32;
    case fb::ElementType_FLOAT16:
      return DType::kFloat16;
    case fb::ElementType_FLOAT64:
      return DType::kFloat64;
    case fb::ElementType_INT8:
      return DType::kInt8;
    case fb::ElementType_INT16:
      return DType::kInt16;
    case fb::ElementType_INT32:
      return DType::kInt32;
    case fb::ElementType_INT64:
      return DType::kInt64;
    case fb::ElementType_UINT8:
      return DType::kUint8;
    case fb::ElementType_UINT16:
      return DType::kUint16;
    case fb::ElementType_UINT32:
      return DType::kUint32;
    case fb::ElementType_BOOL:
      return DType::kBool;
    default:
      return DType::kInvalid;
  }
}

std::string ElementTypeName(int element_type) {
  const char* const name = fb::EnumNameElementType(static_cast<fb::ElementType>(element_type));
  return *name != '\0' ? name : absl::StrCat("element type ", element_type);
}

bool TensorView::is_dynamic() const {
  return std::any_of(signature.begin(), signature.end(), [](int64_t dim) { return dim < 0; });
}

// Reads a verified FlatBuffer into a ModelFile and checks what the verifier cannot know.
class ModelFile::Reader {
 public:
  Reader(ModelFile* model, absl::string_view file, Diagnostics* diagnostics)
      : model_(model), file_(file), diagnostics_(diagnostics) {}

  void Run(const fb::Model& root);

 private:
  // False, and reported: the subgraph is larger than one may be.
  bool Fits(const fb::SubGraph& graph);
  void Add(DiagnosticKind kind, std::string node, std::string message, std::string fix = kFix) {
    diagnostics_->Add({.kind = kind,
                       .message = std::move(message),
                       .file = file_,
                       .node = std::move(node),
                       .fix = std::move(fix)});
  }
  TensorView ReadTensor(const fb::Model& root, const fb::TensorInfo& raw, size_t number);
  absl::Status ReadShape(const fb::TensorInfo& raw, TensorView& tensor);
  // A buffer's bytes, inside of the FlatBuffer or elsewhere in the file; empty: it has none.
  absl::StatusOr<absl::Span<const uint8_t>> DataOf(const fb::Buffer& buffer) const;
  absl::Status ReadData(const fb::Model& root, const fb::TensorInfo& raw, TensorView& tensor);
  absl::Status ReadQuantization(const fb::TensorInfo& raw, TensorView& tensor);
  OperatorView ReadOperator(const fb::Model& root, const fb::Operator& raw, size_t number,
                            size_t tensors);
  // Reads a graph and those that its operators run, each once.
  void ReadSubgraphs(const fb::Model& root);
  SubgraphView ReadSubgraph(const fb::Model& root, const fb::SubGraph& graph);
  void ReadInitialValues(const fb::Model& root);
  // A list of tensor numbers, each in lowest..tensors - 1.
  std::vector<int> ReadIndices(const flatbuffers::Vector<int32_t>* raw, int lowest, size_t tensors,
                               absl::string_view what, const std::string& node);

  ModelFile* model_;
  std::string file_;
  Diagnostics* diagnostics_;
  int64_t unpacked_left_ = kMaxUnpackedBytes;
};

absl::Status ModelFile::Reader::ReadShape(const fb::TensorInfo& raw, TensorView& tensor) {
  if (raw.shape() != nullptr) {
    if (raw.shape()->size() > kMaxRank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has ", raw.shape()->size(), " dimensions; at most ", kMaxRank, " are allowed"));
    }
    tensor.type.shape.assign(raw.shape()->begin(), raw.shape()->end());
  }
  if (raw.shape_signature() != nullptr && raw.shape_signature()->size() <= kMaxRank) {
    tensor.signature.assign(raw.shape_signature()->begin(), raw.shape_signature()->end());
  }
  // Old converters put -1 into the shape itself.
  for (int64_t& dim : tensor.type.shape) {
    if (dim != -1) continue;
    if (tensor.signature.empty()) tensor.signature = tensor.type.shape;
    dim = 1;
  }
  return CheckShape(tensor.type.shape);
}

absl::StatusOr<absl::Span<const uint8_t>> ModelFile::Reader::DataOf(
    const fb::Buffer& buffer) const {
  if (buffer.data() != nullptr && buffer.data()->size() > 0) {
    return absl::MakeConstSpan(buffer.data()->data(), buffer.data()->size());
  }
  if (buffer.offset() <= 1 || buffer.size() == 0) return absl::Span<const uint8_t>();
  const std::vector<uint8_t>& bytes = model_->bytes_;
  if (buffer.offset() > bytes.size() || buffer.size() > bytes.size() - buffer.offset()) {
    return absl::InvalidArgumentError(absl::StrCat("its data has ", buffer.size(),
                                                   " bytes at offset ", buffer.offset(),
                                                   "; the file has ", bytes.size(), " bytes"));
  }
  return absl::MakeConstSpan(bytes).subspan(buffer.offset(), buffer.size());
}

absl::Status ModelFile::Reader::ReadData(const fb::Model& root, const fb::TensorInfo& raw,
                                         TensorView& tensor) {
  const auto* buffers = root.buffers();
  const uint32_t count = buffers == nullptr ? 0 : buffers->size();
  if (raw.buffer() >= count) {
    if (raw.buffer() == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("it names buffer ", raw.buffer(), " of ", count));
  }
  ASSIGN_OR_RETURN(const absl::Span<const uint8_t> data, DataOf(*buffers->Get(raw.buffer())));
  if (data.empty()) return absl::OkStatus();
  // A type that the IR lacks is not read.
  if (tensor.type.dtype == DType::kInvalid) return absl::OkStatus();
  if (raw.sparsity() != nullptr) {
    ASSIGN_OR_RETURN(std::vector<uint8_t> dense,
                     UnpackSparse(*raw.sparsity(), data, tensor.type, unpacked_left_));
    unpacked_left_ -= static_cast<int64_t>(dense.size());
    tensor.data = model_->unpacked_.emplace_back(std::move(dense));
    return absl::OkStatus();
  }
  if (static_cast<int64_t>(data.size()) != tensor.type.size_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("its data has ", data.size(), " bytes; ",
                                                   TypeToString(tensor.type), " takes ",
                                                   tensor.type.size_bytes()));
  }
  if (tensor.type.dtype == DType::kBool &&
      std::any_of(data.begin(), data.end(), [](uint8_t b) { return b > 1; })) {
    return absl::InvalidArgumentError("a bool is neither 0 nor 1");
  }
  tensor.data = data;
  return absl::OkStatus();
}

absl::Status ModelFile::Reader::ReadQuantization(const fb::TensorInfo& raw, TensorView& tensor) {
  const fb::Quantization* q = raw.quantization();
  if (q == nullptr) return absl::OkStatus();
  if (const auto* const blocks = q->details_as_BlockwiseQuantization(); blocks != nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "it is quantized blockwise, with a scale for each ", blocks->block_size(), " values"));
  }
  if (q->scale() == nullptr || q->scale()->size() == 0) return absl::OkStatus();
  if (!IsInteger(tensor.type.dtype)) return absl::OkStatus();  // parameters of a float say nothing
  if (q->details_type() != 0) return absl::UnimplementedError("it has a custom quantization");
  QuantParams params;
  params.dtype = tensor.type.dtype;
  params.qmin = LowestOf(params.dtype);
  params.qmax = HighestOf(params.dtype);
  const size_t count = q->scale()->size();
  if (count > 1) {
    const int64_t rank = static_cast<int64_t>(tensor.type.shape.size());
    // A list has one dimension. Converters write the weight's dimension beside a bias, too.
    params.axis = rank == 1 ? 0 : q->quantized_dimension();
    if (params.axis < 0 || params.axis >= rank ||
        static_cast<int64_t>(count) != tensor.type.shape[static_cast<size_t>(params.axis)]) {
      return absl::InvalidArgumentError(absl::StrCat(count, " scales along dimension ",
                                                     q->quantized_dimension(), " of ",
                                                     TypeToString(tensor.type)));
    }
  }
  params.scale.assign(q->scale()->begin(), q->scale()->end());
  params.zero_point.assign(count, 0);
  if (q->zero_point() != nullptr && q->zero_point()->size() > 0) {
    const size_t given = q->zero_point()->size();
    if (given != count && given != 1) {
      return absl::InvalidArgumentError(absl::StrCat(given, " zero points, ", count, " scales"));
    }
    // Copied: the verifier aligns a vector's length, to four bytes, and not its elements.
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&params.zero_point[i],
                  q->zero_point()->Data() + sizeof(int64_t) * (given == 1 ? 0 : i),
                  sizeof(int64_t));
    }
  }
  // Converters give unused integers a scale of 0: they stand for themselves.
  if (std::all_of(params.scale.begin(), params.scale.end(), [](double s) { return s == 0; })) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckQuantParams(params, tensor.type));
  tensor.quant = std::move(params);
  return absl::OkStatus();
}

TensorView ModelFile::Reader::ReadTensor(const fb::Model& root, const fb::TensorInfo& raw,
                                         size_t number) {
  TensorView tensor;
  tensor.name = TextOf(raw.name());
  if (tensor.name.empty()) tensor.name = absl::StrCat("tensor_", number);
  tensor.element_type = raw.type();
  tensor.type.dtype = DTypeFromWire(raw.type());
  tensor.is_variable = raw.is_variable();
  absl::Status status = ReadShape(raw, tensor);
  if (status.ok()) status = ReadData(root, raw, tensor);
  if (status.ok()) status = ReadQuantization(raw, tensor);
  if (!status.ok()) {
    Add(DiagnosticKind::kBadTensor, tensor.name,
        absl::StrCat("tensor ", number, " '", Printable(tensor.name), "': ", status.message()),
        absl::IsUnimplemented(status)
            ? "quantize the model again with one scale for a tensor or a channel"
            : kFix);
  }
  return tensor;
}

std::vector<int> ModelFile::Reader::ReadIndices(const flatbuffers::Vector<int32_t>* raw, int lowest,
                                                size_t tensors, absl::string_view what,
                                                const std::string& node) {
  std::vector<int> indices;
  if (raw == nullptr) return indices;
  const int count = static_cast<int>(tensors);
  if (raw->size() > kMaxOperandsPerOperator) {
    Add(DiagnosticKind::kModelLimitExceeded, node,
        absl::StrCat(raw->size(), " ", what, "; at most ", kMaxOperandsPerOperator, " are allowed"),
        "compile a smaller model");
    return indices;
  }
  for (const int32_t index : *raw) {
    if (index < lowest || index >= count) {
      Add(DiagnosticKind::kMalformedNode, node,
          absl::StrCat(what, " name tensor ", index, "; the model has ", count));
      return indices;
    }
    indices.push_back(index);
  }
  return indices;
}

OperatorView ModelFile::Reader::ReadOperator(const fb::Model& root, const fb::Operator& raw,
                                             size_t number, size_t tensors) {
  OperatorView op;
  op.index = static_cast<int>(number);
  op.raw = &raw;
  const std::string node = absl::StrCat("operator ", op.index);
  const auto* codes = root.operator_codes();
  const uint32_t count = codes == nullptr ? 0 : codes->size();
  if (raw.opcode_index() >= count) {
    Add(DiagnosticKind::kMalformedNode, node,
        absl::StrCat("it has operator code ", raw.opcode_index(), " of ", count));
  } else {
    const fb::OperatorCode& code = *codes->Get(raw.opcode_index());
    op.builtin_code = std::max<int>(code.builtin_code(), code.old_builtin_code());
    op.op = op.builtin_code == kCustomOperator ? TextOf(code.custom_code())
                                               : BuiltinName(op.builtin_code);
    if (op.op.empty()) op.op = "CUSTOM";
  }
  op.inputs = ReadIndices(raw.inputs(), -1, tensors, "its operands", node);
  op.outputs = ReadIndices(raw.outputs(), 0, tensors, "its results", node);
  const fb::VarHandleOptions* handle = raw.options_as_VarHandleOptions();
  if (handle != nullptr) {  // a resource's identity: container and name (kernels/var_handle.cc)
    const std::string container = TextOf(handle->container());
    op.variable =
        absl::StrCat(container, container.empty() ? "" : "/", TextOf(handle->shared_name()));
  }
  const fb::WhileOptions* loop = raw.options_as_WhileOptions();
  if (loop != nullptr) op.subgraphs = {loop->cond_subgraph_index(), loop->body_subgraph_index()};
  const fb::IfOptions* choice = raw.options_as_IfOptions();
  if (choice != nullptr) {
    op.subgraphs = {choice->then_subgraph_index(), choice->else_subgraph_index()};
  }
  const fb::StableHloCompositeOptions* composite = raw.options_2_as_StableHloCompositeOptions();
  if (composite != nullptr) {
    op.composite = TextOf(composite->name());
    // The main graph, 0, is the format's default and nothing's decomposition.
    const int graph = composite->decomposition_subgraph_index();
    if (graph > 0) op.subgraphs = {graph};
  }
  return op;
}

SubgraphView ModelFile::Reader::ReadSubgraph(const fb::Model& root, const fb::SubGraph& graph) {
  SubgraphView view;
  const size_t tensors = graph.tensors() == nullptr ? 0 : graph.tensors()->size();
  const size_t operators = graph.operators() == nullptr ? 0 : graph.operators()->size();
  for (size_t i = 0; i < tensors; ++i) {
    view.tensors.push_back(ReadTensor(root, *graph.tensors()->Get(static_cast<uint32_t>(i)), i));
  }
  for (size_t i = 0; i < operators; ++i) {
    view.operators.push_back(
        ReadOperator(root, *graph.operators()->Get(static_cast<uint32_t>(i)), i, tensors));
  }
  view.inputs = ReadIndices(graph.inputs(), 0, tensors, "the graph's inputs", "");
  view.outputs = ReadIndices(graph.outputs(), 0, tensors, "the graph's outputs", "");
  return view;
}

void ModelFile::Reader::ReadSubgraphs(const fb::Model& root) {
  const int count = static_cast<int>(root.subgraphs()->size());
  std::set<int> waiting = {0};
  while (!waiting.empty() && !diagnostics_->has_errors()) {
    const int number = *waiting.begin();
    waiting.erase(waiting.begin());
    const fb::SubGraph& graph = *root.subgraphs()->Get(static_cast<uint32_t>(number));
    if (!Fits(graph)) return;
    const SubgraphView& view =
        model_->subgraphs_.emplace(number, ReadSubgraph(root, graph)).first->second;
    for (const OperatorView& op : view.operators) {
      for (const int called : op.subgraphs) {
        if (called < 1 || called >= count) {
          Add(DiagnosticKind::kMalformedNode, absl::StrCat("operator ", op.index),
              absl::StrCat("it runs subgraph ", called, " of ", count));
          return;
        }
        if (!model_->subgraphs_.contains(called)) waiting.insert(called);
      }
    }
  }
}

// Reads the subgraph that CALL_ONCE runs, as far as it assigns constants to variables.
void ModelFile::Reader::ReadInitialValues(const fb::Model& root) {
  std::set<int> seen;
  for (const OperatorView& call : model_->operators()) {
    const fb::CallOnceOptions* options = call.raw->options_as_CallOnceOptions();
    if (options == nullptr || !seen.insert(options->init_subgraph_index()).second) continue;
    const int index = options->init_subgraph_index();
    if (index < 1 || index >= static_cast<int>(root.subgraphs()->size())) {
      Add(DiagnosticKind::kMalformedNode, absl::StrCat("operator ", call.index),
          absl::StrCat("it calls subgraph ", index, " of ", root.subgraphs()->size()));
      return;
    }
    const fb::SubGraph& graph = *root.subgraphs()->Get(static_cast<uint32_t>(index));
    if (!Fits(graph)) return;
    const SubgraphView view = ReadSubgraph(root, graph);
    std::map<int, std::string> handles;
    for (const OperatorView& op : view.operators) {
      if (op.op == "VAR_HANDLE" && op.outputs.size() == 1) handles[op.outputs[0]] = op.variable;
      if (op.op != "ASSIGN_VARIABLE" || op.inputs.size() != 2 || op.inputs[1] < 0) continue;
      const auto handle = handles.find(op.inputs[0]);
      if (handle == handles.end()) continue;
      model_->initial_values_[handle->second] = view.tensor(op.inputs[1]);
    }
  }
}

void ModelFile::Reader::Run(const fb::Model& root) {
  if (root.version() != 3) {
    Add(DiagnosticKind::kTfLiteDamaged, "",
        absl::StrCat("the model has schema version ", root.version(), "; 3 is read"));
    return;
  }
  if (root.subgraphs() == nullptr || root.subgraphs()->size() == 0) {
    Add(DiagnosticKind::kTfLiteDamaged, "", "the model has no subgraph");
    return;
  }
  ReadSubgraphs(root);
  if (!diagnostics_->has_errors()) ReadInitialValues(root);
}

bool ModelFile::Reader::Fits(const fb::SubGraph& graph) {
  const size_t tensors = graph.tensors() == nullptr ? 0 : graph.tensors()->size();
  const size_t operators = graph.operators() == nullptr ? 0 : graph.operators()->size();
  if (tensors <= kMaxTensors && operators <= kMaxOperators) return true;
  Add(DiagnosticKind::kModelLimitExceeded, "",
      absl::StrCat("the model has ", tensors, " tensors and ", operators, " operators; at most ",
                   kMaxTensors, " and ", kMaxOperators, " are allowed"),
      "compile a smaller model");
  return false;
}

namespace {

std::nullptr_t RefuseNoModel(absl::string_view bytes, absl::string_view file,
                             Diagnostics& diagnostics) {
  if (bytes.empty()) {
    return RefuseFile(DiagnosticKind::kEmptyModel, file, "the model file is empty",
                      "check MODEL_FILE", diagnostics);
  }
  const FileGuess guess = GuessFileKind(bytes);
  return RefuseFile(
      DiagnosticKind::kNotATfLiteModel, file,
      guess.what.empty() ? "the file has no TFL3 mark; a TFLite model has it at byte 4"
                         : absl::StrCat("the file looks like ", guess.what),
      guess.fix.empty() ? "set FRAMEWORK to what the model is" : guess.fix, diagnostics);
}

}  // namespace

std::unique_ptr<ModelFile> ModelFile::Parse(absl::string_view bytes, absl::string_view file,
                                            Diagnostics& diagnostics) {
  if (bytes.size() < 8 || bytes.substr(4, 4) != "TFL3") {
    return RefuseNoModel(bytes, file, diagnostics);
  }
  if (bytes.size() > kMaxModelBytes) {
    return RefuseFile(DiagnosticKind::kModelLimitExceeded, file,
                      absl::StrCat("the file has ", bytes.size(), " bytes; at most ",
                                   kMaxModelBytes, " are allowed"),
                      "compile a smaller model", diagnostics);
  }
  auto model = std::make_unique<ModelFile>();
  model->bytes_.assign(bytes.begin(), bytes.end());
  flatbuffers::Verifier verifier(model->bytes_.data(), model->bytes_.size(), kMaxDepth, kMaxTables);
  if (!fb::VerifyModelBuffer(verifier)) {
    return RefuseFile(DiagnosticKind::kTfLiteDamaged, file,
                      "the FlatBuffer points outside of the file, is not aligned, or has more "
                      "tables than a model may have",
                      "copy the file again, or convert the model again", diagnostics);
  }
  Diagnostics found;
  Reader(model.get(), file, &found).Run(*fb::GetModel(model->bytes_.data()));
  diagnostics.Append(found);
  if (found.has_errors()) return nullptr;
  return model;
}

const TensorView* ModelFile::FindInitialValue(absl::string_view variable) const {
  const auto it = initial_values_.find(std::string(variable));
  return it == initial_values_.end() ? nullptr : &it->second;
}

int ModelFile::FindTensor(absl::string_view name) const {
  for (size_t i = 0; i < tensors().size(); ++i) {
    if (tensors()[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace npuc::tflite
