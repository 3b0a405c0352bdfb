#include "compiler_core/lowering/weight_store.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"

namespace npuc {
namespace {

constexpr float kLargestHalf = 65504.0f;

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

std::vector<float> Transposed(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> out(values.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) out[c * rows + r] = values[r * columns + c];
  }
  return out;
}

// What the unit makes of each code.
std::vector<float> DecodedByCode(const CodeBook& book) {
  std::vector<float> decoded;
  for (int code = 0; code < 256; ++code) {
    decoded.push_back(DecodeWeight(book, static_cast<uint8_t>(code)));
  }
  return decoded;
}

// What storing does to a weight's values.
struct ErrorSums {
  double max_abs = 0;
  double squares = 0;
  int64_t zeros = 0;
};

template <typename Stored>
ErrorSums SumErrors(absl::Span<const float> values, const Stored& stored_of) {
  ErrorSums sums;
  for (const float value : values) {
    const float stored = stored_of(value);
    sums.zeros += stored == 0.0f ? 1 : 0;
    const double error = std::fabs(static_cast<double>(stored) - value);
    sums.max_abs = std::max(sums.max_abs, error);
    sums.squares += error * error;
  }
  return sums;
}

ErrorSums ErrorsOf(absl::Span<const float> values, CodeTable& table) {
  if (!table.book().usable()) return SumErrors(values, RoundToHalf);
  const std::vector<float> decoded = DecodedByCode(table.book());
  return SumErrors(values, [&](float value) { return decoded[table.CodeOf(value)]; });
}

// Rows and columns of a row-major matrix; no copy where that is all of it.
class MatrixCut {
 public:
  MatrixCut(absl::Span<const float> values, int64_t row_length, int64_t first_row, int64_t rows,
            int64_t first_column, int64_t columns) {
    if (columns == row_length) {
      span_ = values.subspan(first_row * row_length, rows * row_length);
      return;
    }
    copy_.resize(rows * columns);
    for (int64_t row = 0; row < rows; ++row) {
      const auto from = values.begin() + (first_row + row) * row_length + first_column;
      std::copy(from, from + columns, copy_.begin() + row * columns);
    }
    span_ = copy_;
  }
  absl::Span<const float> values() const { return span_; }

 private:
  std::vector<float> copy_;
  absl::Span<const float> span_;
};

}  // namespace

WeightStore::WeightStore(Program* program, const LowerOptions* options, const CoreLimits* limits,
                         Diagnostics* diagnostics)
    : program_(program), options_(options), limits_(limits), diagnostics_(diagnostics) {}

Operand WeightStore::Place(absl::Span<const uint8_t> bytes, const std::string& name) {
  Buffer buffer;
  buffer.slot = Slot::kWeight;
  buffer.size_bytes = static_cast<int64_t>(bytes.size());
  buffer.offset_bytes = static_cast<int64_t>(program_->weights.size());
  buffer.name = name;
  program_->weights.insert(program_->weights.end(), bytes.begin(), bytes.end());
  program_->buffers.push_back(std::move(buffer));
  return {BufferId(static_cast<int32_t>(program_->buffers.size() - 1)), 0};
}

void WeightStore::WarnOutOfRange(const std::vector<float>& values, const std::string& node) {
  const auto beyond = std::find_if(values.begin(), values.end(),
                                   [](float value) { return !(std::fabs(value) <= kLargestHalf); });
  if (beyond == values.end()) return;
  diagnostics_->Add({.kind = DiagnosticKind::kConstantBeyondFp16,
                     .message = absl::StrCat("constant holds ", *beyond,
                                             ", beyond fp16's +-65504; it was clamped"),
                     .file = options_->model_name,
                     .node = node,
                     .fix = "scale the weights, or use a smaller masking constant"});
}

Operand WeightStore::Constant(absl::Span<const float> values, const std::string& node) {
  WarnOutOfRange(std::vector<float>(values.begin(), values.end()), node);
  std::string bytes;
  bytes.reserve(2 * values.size());
  for (const float value : values) {
    const uint16_t half = FloatToHalf(std::clamp(value, -kLargestHalf, kLargestHalf));
    bytes.push_back(static_cast<char>(half & 0xff));
    bytes.push_back(static_cast<char>(half >> 8));
  }
  const auto [it, inserted] = constants_.try_emplace(std::move(bytes));
  if (inserted) {
    const auto* data = reinterpret_cast<const uint8_t*>(it->first.data());
    it->second = Place(absl::MakeConstSpan(data, it->first.size()), node);
  }
  return it->second;
}

CodeBook WeightStore::ChooseCodeBook(const std::vector<float>& values, const WeightChoice& fallback,
                                     WeightRecord& record) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  record.min = values.empty() ? 0 : *low;
  record.max = values.empty() ? 0 : *high;
  const auto it = options_->weight_choices.find(record.name);
  const WeightChoice& choice = it != options_->weight_choices.end() ? it->second : fallback;
  if (!choice.compress) return {};
  record.min = choice.min.value_or(record.min);
  record.max = choice.max.value_or(record.max);
  const CodeBook book = MakeCodeBook(record.min, record.max);
  record.compressed = book.usable();
  if (book.usable()) {
    record.step = HalfToFloat(book.step);
    return book;
  }
  diagnostics_->Add({.kind = DiagnosticKind::kWeightNotCompressible,
                     .message = absl::StrCat("weight range [", record.min, ", ", record.max,
                                             "] leaves no fp16 step; the weight is stored as fp16"),
                     .file = options_->model_name,
                     .node = record.name,
                     .fix = "give a range by WEIGHT_MIN_MAX, or list it in EXCLUDE_COMPRESS_OPS"});
  return {};
}

void WeightStore::MeasureErrors(const std::vector<float>& values, CodeTable& table,
                                WeightRecord& record) {
  if (values.empty()) return;
  const ErrorSums sums = ErrorsOf(values, table);
  const double count = static_cast<double>(values.size());
  record.max_abs_error = std::max(record.max_abs_error, sums.max_abs);
  record.rms_error = std::sqrt(sums.squares / count);
  record.sparsity = static_cast<double>(sums.zeros) / count;
}

WeightStore::Placed WeightStore::PlaceMatrix(const WeightMatrix& matrix, CodeTable& table,
                                             WeightRecord& record) {
  const int64_t block = limits_->matrix_block;
  const EncodedMatrix encoded =
      table.book().usable() ? CompressMatrix(matrix, table, block) : PlainMatrix(matrix, block);
  Placed placed;
  if (!encoded.mask.empty()) placed.mask = Place(encoded.mask, record.name);
  placed.codes = Place(encoded.codes, record.name);
  placed.mask_bytes = static_cast<int64_t>(encoded.mask.size());
  record.mask_bytes += placed.mask_bytes;
  record.code_bytes += static_cast<int64_t>(encoded.codes.size());
  return placed;
}

void WeightStore::CutIntoParts(const std::vector<float>& values, int64_t k, int64_t n,
                               CodeTable& table, WeightRecord& record, std::vector<Part>& parts) {
  const CodeBook& book = table.book();
  const int64_t block = limits_->matrix_block;
  // Blocks along K times blocks along N of one command stay below this.
  const int64_t blocks_max = (limits_->matrix_product_limit - 1) / (block * block);
  constexpr int64_t kByteMax = 255;  // block counts are bytes in the command
  const int64_t n_blocks = RoundUp(n, block) / block;
  const int64_t k_part = std::min<int64_t>(RoundUp(k, block) / block,
                                           std::min(kByteMax, std::max<int64_t>(1, blocks_max)));
  const int64_t n_part = std::min({n_blocks, kByteMax, std::max<int64_t>(1, blocks_max / k_part)});
  for (int64_t k_first = 0; k_first < k; k_first += k_part * block) {
    for (int64_t n_first = 0; n_first < n; n_first += n_part * block) {
      Part part{k_first,
                std::min(k_part * block, k - k_first),
                n_first,
                std::min(n_part * block, n - n_first),
                {}};
      const MatrixCut cut(values, n, k_first, part.k, n_first, part.n);
      const Placed placed = PlaceMatrix({cut.values(), part.k, part.n}, table, record);
      part.command.mask = placed.mask;
      part.command.codes = placed.codes;
      part.command.k = static_cast<uint16_t>(part.k);
      part.command.n = static_cast<uint16_t>(part.n);
      part.command.min = book.usable() ? book.min : 0;
      part.command.step = book.step;
      parts.push_back(part);
    }
  }
}

std::vector<float> WeightStore::ValuesOf(const Tensor& tensor, const std::string& name) {
  std::vector<float> values = tensor.ToFloats();
  WarnOutOfRange(values, name);
  for (float& element : values) element = std::clamp(element, -kLargestHalf, kLargestHalf);
  return values;
}

WeightRecord& WeightStore::RecordOf(const Graph& graph, ValueId value, const std::string& user,
                                    bool* is_new) {
  const auto [it, inserted] = record_index_.try_emplace(value, records_.size());
  *is_new = inserted;
  if (inserted) {
    WeightRecord record;
    record.value = value;
    record.name = graph.def(value).source.name;
    record.used_by = user;
    record.shape = graph.ConstantOf(value)->shape();
    records_.push_back(std::move(record));
  }
  return records_[it->second];
}

const std::vector<WeightStore::Part>& WeightStore::Matrix(const Graph& graph, ValueId value,
                                                          bool transposed,
                                                          const std::string& user) {
  const auto [it, inserted] = matrices_.try_emplace({value, transposed});
  if (!inserted) return it->second;
  const Tensor& tensor = *graph.ConstantOf(value);
  bool is_new = false;
  WeightRecord& record = RecordOf(graph, value, user, &is_new);
  std::vector<float> values = ValuesOf(tensor, record.name);
  int64_t k = tensor.shape()[0];
  int64_t n = tensor.shape()[1];
  CodeTable table(ChooseCodeBook(values, options_->default_choice, record));
  if (is_new) MeasureErrors(values, table, record);
  if (transposed) {
    values = Transposed(values, k, n);
    std::swap(k, n);
  }
  CutIntoParts(values, k, n, table, record, it->second);
  return it->second;
}

void WeightStore::CutColumns(const WeightMatrix& whole, CodeTable& table, int64_t first,
                             int64_t columns, WeightRecord& record,
                             std::vector<ConvolutionPart>& parts) {
  const CodeBook& book = table.book();
  const int64_t block = limits_->matrix_block;
  const int64_t rows = RoundUp(whole.k, block);
  // Bits of the mask of one block of columns; the mask's length is a field of 16 bits.
  const int64_t block_bits = whole.taps * rows * block + (whole.bias.empty() ? 0 : block);
  constexpr int64_t kByteMax = 255;
  const int64_t fit = book.usable() ? (limits_->matrix_product_limit - 1) / block_bits : kByteMax;
  const int64_t step = std::min(kByteMax, std::max<int64_t>(1, fit)) * block;
  for (int64_t at = first; at < first + columns; at += step) {
    ConvolutionPart part;
    part.first = at;
    part.columns = std::min(step, first + columns - at);
    const MatrixCut cut(whole.values, whole.n, 0, whole.taps * whole.k, at, part.columns);
    const absl::Span<const float> bias =
        whole.bias.empty() ? whole.bias : whole.bias.subspan(at, part.columns);
    const Placed placed =
        PlaceMatrix({cut.values(), whole.k, part.columns, whole.taps, bias}, table, record);
    part.mask = placed.mask;
    part.codes = placed.codes;
    part.min = book.usable() ? book.min : 0;
    part.step = book.step;
    part.has_bias = !bias.empty();
    part.mask_bits = placed.mask_bytes * 8;
    parts.push_back(part);
  }
}

const std::vector<WeightStore::ConvolutionPart>& WeightStore::Convolution(
    const Graph& graph, ValueId value, ValueId bias, int64_t taps, int64_t first, int64_t columns,
    const std::string& user) {
  const auto [it, inserted] = convolutions_.try_emplace({value, bias, taps, first, columns});
  if (!inserted) return it->second;
  const Tensor& tensor = *graph.ConstantOf(value);
  const Shape& shape = tensor.shape();
  bool is_new = false;
  WeightRecord& record = RecordOf(graph, value, user, &is_new);
  const std::vector<float> values = ValuesOf(tensor, record.name);
  std::vector<float> biases;
  if (bias.valid()) biases = ValuesOf(*graph.ConstantOf(bias), graph.def(bias).source.name);
  const WeightMatrix whole{values, shape[0] * shape[1] * shape[2] / taps, shape[3], taps, biases};
  std::vector<float> coded = values;
  coded.insert(coded.end(), biases.begin(), biases.end());
  CodeBook book = ChooseCodeBook(coded, options_->conv_choice, record);
  const int64_t block = limits_->matrix_block;
  const int64_t bias_bits = biases.empty() ? 0 : block;
  if (book.usable() &&
      taps * RoundUp(whole.k, block) * block + bias_bits >= limits_->matrix_product_limit) {
    diagnostics_->Add(
        {.kind = DiagnosticKind::kWeightNotCompressible,
         .message = absl::StrCat("a mask of ", taps, " x ", whole.k, " x ", block,
                                 " weights is over 65535 bits; the weight is stored as fp16"),
         .file = options_->model_name,
         .node = record.name,
         .fix = "use a smaller kernel or fewer input channels"});
    book = {};
    record.compressed = false;
    record.step = 0;
  }
  CodeTable table(book);
  if (is_new) MeasureErrors(values, table, record);
  CutColumns(whole, table, first, columns, record, it->second);
  return it->second;
}

}  // namespace npuc
