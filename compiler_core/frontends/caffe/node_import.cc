#include "compiler_core/frontends/caffe/node_import.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/blob.h"

namespace npuc::caffe {
namespace {

constexpr int64_t kMaxBounded = int64_t{1} << 20;

// The shape without its dimensions of 1.
Shape Squeezed(Shape shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

}  // namespace

absl::StatusOr<int64_t> LayerImporter::ChoiceOr(absl::string_view name,
                                                absl::Span<const absl::string_view> words,
                                                int64_t fallback, int64_t first) {
  const absl::StatusOr<int64_t> value = node().Choice(name, words, first);
  if (absl::IsNotFound(value.status())) return fallback;
  if (!value.ok()) return BadAttribute(value.status());
  return value;
}

absl::StatusOr<int64_t> LayerImporter::BoundedOr(absl::string_view name, int64_t fallback,
                                                 int64_t lo) {
  ASSIGN_OR_RETURN(const int64_t value, IntOr(name, fallback));
  if (value >= lo && value <= kMaxBounded) return value;
  return BadAttribute(absl::InvalidArgumentError(absl::StrCat(
      "parameter '", name, "' is ", value, "; allowed are ", lo, " to ", kMaxBounded)));
}

absl::Status LayerImporter::BadBlob(int i, absl::string_view message) {
  return Fail(DiagnosticKind::kBadTensor, absl::StrCat("blob ", i, " of the layer: ", message),
              "name the .caffemodel and the .prototxt of one net");
}

absl::Status LayerImporter::ExpectBlobs(int count) {
  if (blob_count() == count) return absl::OkStatus();
  return Fail(DiagnosticKind::kBadTensor,
              absl::StrCat("the .caffemodel has ", blob_count(),
                           " blobs for the layer; with its parameters it has ", count),
              "name the .caffemodel and the .prototxt of one net");
}

absl::StatusOr<Shape> LayerImporter::BlobShape(int i) {
  absl::StatusOr<Shape> dims = BlobDims(node().layer().blobs[static_cast<size_t>(i)]);
  if (!dims.ok()) return BadBlob(i, dims.status().message());
  return dims;
}

absl::StatusOr<ValueRef> LayerImporter::Blob(int i, absl::string_view what, Shape shape) {
  const absl::string_view bytes = node().layer().blobs[static_cast<size_t>(i)];
  ASSIGN_OR_RETURN(const Shape stated, BlobShape(i));
  if (!CheckShape(shape).ok() || Squeezed(stated) != Squeezed(shape)) {
    return BadBlob(i, absl::StrCat("the ", what, " is ", ShapeToString(stated),
                                   " in the .caffemodel; it must be ", ShapeToString(shape)));
  }
  absl::StatusOr<Tensor> tensor = DecodeBlob(bytes, state().constant_bytes_left);
  if (absl::IsResourceExhausted(tensor.status())) {
    return Fail(DiagnosticKind::kModelLimitExceeded, std::string(tensor.status().message()),
                "compile a smaller model");
  }
  if (!tensor.ok()) return BadBlob(i, tensor.status().message());
  state().constant_bytes_left -= tensor->type().size_bytes();
  return Reshaped(frontend::ConstantValue(*std::move(tensor),
                                          {absl::StrCat(source().name, "/", what), "Constant"}),
                  std::move(shape));
}

ValueRef LayerImporter::StateBefore(absl::string_view what, Shape shape) {
  return state().AddInput(absl::StrCat(source().name, "_", what),
                          {DType::kFloat32, std::move(shape)});
}

void LayerImporter::SetStateAfter(absl::string_view what, ValueRef value) {
  next_states_->emplace_back(absl::StrCat(source().name, "_", what, "_out"), std::move(value));
}

frontend::RuleTable<ImportRule> AllRules() {
  return {ActivationRules(), ArithmeticRules(), DetectionRules(), NormRules(),
          RecurrentRules(),  ShapeRules(),      WindowRules()};
}

}  // namespace npuc::caffe
