#include "compiler_core/lowering/weight_store.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/fp16_span.h"

namespace npuc {
namespace {

constexpr float kLargestHalf = 65504.0f;

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// Nothing of nothing.
template <typename T>
std::vector<T> Transposed(const std::vector<T>& values, int64_t rows, int64_t columns) {
  std::vector<T> out(values.size());
  if (values.empty()) return out;
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

// What storing does to the `values` of a weight. decode(begin, to): what the unit makes of the
// values from `begin` on, as many as fit.
template <typename Decode>
void MeasureErrors(absl::Span<const float> values, const Decode& decode, WeightRecord& record) {
  if (values.empty()) return;
  constexpr size_t kChunk = 512;
  std::array<float, kChunk> chunk{};
  double max_abs = record.max_abs_error;
  double squares = 0;
  int64_t zeros = 0;
  for (size_t begin = 0; begin < values.size(); begin += kChunk) {
    const absl::Span<float> stored(chunk.data(), std::min(kChunk, values.size() - begin));
    decode(begin, stored);
    for (size_t i = 0; i < stored.size(); ++i) {
      zeros += stored[i] == 0.0f ? 1 : 0;
      const double error = std::fabs(static_cast<double>(stored[i]) - values[begin + i]);
      max_abs = std::max(max_abs, error);
      squares += error * error;
    }
  }
  const double count = static_cast<double>(values.size());
  record.max_abs_error = max_abs;
  record.rms_error = std::sqrt(squares / count);
  record.sparsity = static_cast<double>(zeros) / count;
}

// codes: of the values, where the book is usable.
void MeasureErrors(absl::Span<const float> values, const CodeBook& book,
                   absl::Span<const uint8_t> codes, WeightRecord& record) {
  if (book.usable()) {
    const std::vector<float> decoded = DecodedByCode(book);
    const auto decode = [&](size_t begin, absl::Span<float> to) {
      for (size_t i = 0; i < to.size(); ++i) to[i] = decoded[codes[begin + i]];
    };
    MeasureErrors(values, decode, record);
  } else {
    const auto round = [&](size_t begin, absl::Span<float> to) {
      std::copy_n(values.begin() + begin, to.size(), to.begin());
      RoundToHalves(to);
    };
    MeasureErrors(values, round, record);
  }
}

struct Extremes {
  float low = 0;
  float high = 0;
};

// *minmax_element, without the branches that no processor foresees in weights. Nothing of nothing.
Extremes ExtremesOf(absl::Span<const float> values) {
  if (values.empty()) return {};
  Extremes found{values[0], values[0]};
  bool is_ordered = true;
  for (const float value : values) {
    found.low = value < found.low ? value : found.low;
    found.high = value > found.high ? value : found.high;
    is_ordered &= value == value;
  }
  // Which zero it is, or where a NaN stands, is told by the order of the values.
  if (is_ordered && found.low != 0 && found.high != 0) return found;
  const auto [first, last] = std::minmax_element(values.begin(), values.end());
  return {*first, *last};
}

// Some columns of rows that follow each other, row-major; no copy where that is all columns.
template <typename T>
class MatrixCut {
 public:
  MatrixCut(absl::Span<const T> values, int64_t row_length, int64_t first_row, int64_t rows,
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
  absl::Span<const T> values() const { return span_; }

 private:
  std::vector<T> copy_;
  absl::Span<const T> span_;
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

bool WeightStore::WarnOutOfRange(absl::Span<const float> values, const std::string& node) {
  const auto is_beyond = [](float value) { return !(std::fabs(value) <= kLargestHalf); };
  bool any = false;  // without a branch: nearly no weight has one
  for (const float value : values) any |= is_beyond(value);
  if (!any) return false;
  const auto beyond = std::find_if(values.begin(), values.end(), is_beyond);
  diagnostics_->Add({.kind = DiagnosticKind::kConstantBeyondFp16,
                     .message = absl::StrCat("constant holds ", *beyond,
                                             ", beyond fp16's +-65504; it was clamped"),
                     .file = options_->model_name,
                     .node = node,
                     .fix = "scale the weights, or use a smaller masking constant"});
  return true;
}

Operand WeightStore::Constant(absl::Span<const float> values, const std::string& node) {
  WarnOutOfRange(values, node);
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

CodeBook WeightStore::ChooseCodeBook(absl::Span<const float> values, const WeightChoice& fallback,
                                     WeightRecord& record) {
  const Extremes extremes = ExtremesOf(values);
  record.min = extremes.low;
  record.max = extremes.high;
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

WeightStore::StoredWeight WeightStore::Store(absl::Span<const float> values, const CodeBook& book) {
  StoredWeight weight;
  weight.book = book;
  if (book.usable()) {
    weight.codes = EncodeWeights(book, values);
  } else {
    weight.halves = FloatsToHalves(values);
  }
  return weight;
}

WeightStore::Placed WeightStore::PlaceMatrix(const StoredWeight& weight, const Cut& cut,
                                             WeightRecord& record) {
  const auto encode = [&](const auto& stored, const auto& encode_matrix) {
    using T = typename std::decay_t<decltype(stored)>::value_type;
    const absl::Span<const T> all(stored);
    const int64_t rows_of_all = weight.taps * weight.k;
    // Several taps are cut by columns alone.
    const MatrixCut<T> part(all, weight.n, cut.first_row, weight.taps > 1 ? rows_of_all : cut.rows,
                            cut.first_column, cut.columns);
    absl::Span<const T> bias = all.subspan(rows_of_all * weight.n);
    if (!bias.empty()) bias = bias.subspan(cut.first_column, cut.columns);
    return encode_matrix(WeightMatrix<T>{part.values(), cut.rows, cut.columns, weight.taps, bias});
  };
  const int64_t block = limits_->matrix_block;
  const EncodedMatrix encoded =
      weight.book.usable() ? encode(weight.codes,
                                    [&](const WeightMatrix<uint8_t>& matrix) {
                                      return CompressMatrix(matrix, weight.book.zero_code, block);
                                    })
                           : encode(weight.halves, [&](const WeightMatrix<uint16_t>& matrix) {
                               return PlainMatrix(matrix, block);
                             });
  Placed placed;
  if (!encoded.mask.empty()) placed.mask = Place(encoded.mask, record.name);
  placed.codes = Place(encoded.codes, record.name);
  placed.mask_bytes = static_cast<int64_t>(encoded.mask.size());
  record.mask_bytes += placed.mask_bytes;
  record.code_bytes += static_cast<int64_t>(encoded.codes.size());
  return placed;
}

void WeightStore::CutIntoParts(const StoredWeight& weight, WeightRecord& record,
                               std::vector<Part>& parts) {
  const CodeBook& book = weight.book;
  const int64_t k = weight.k;
  const int64_t n = weight.n;
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
      const Placed placed = PlaceMatrix(weight, {k_first, part.k, n_first, part.n}, record);
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
  if (!WarnOutOfRange(values, name)) return values;
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
  const std::vector<float> values = ValuesOf(tensor, record.name);
  const int64_t k = tensor.shape()[0];
  const int64_t n = tensor.shape()[1];
  StoredWeight stored = Store(values, ChooseCodeBook(values, options_->default_choice, record));
  if (is_new) MeasureErrors(values, stored.book, stored.codes, record);
  stored.k = k;
  stored.n = n;
  if (transposed) {
    stored.codes = Transposed(stored.codes, k, n);
    stored.halves = Transposed(stored.halves, k, n);
    std::swap(stored.k, stored.n);
  }
  CutIntoParts(stored, record, it->second);
  return it->second;
}

void WeightStore::CutColumns(const StoredWeight& whole, int64_t first, int64_t columns,
                             WeightRecord& record, std::vector<ConvolutionPart>& parts) {
  const CodeBook& book = whole.book;
  const bool has_bias = std::max(whole.codes.size(), whole.halves.size()) >
                        static_cast<size_t>(whole.taps * whole.k * whole.n);
  const int64_t block = limits_->matrix_block;
  const int64_t rows = RoundUp(whole.k, block);
  // Bits of the mask of one block of columns; the mask's length is a field of 16 bits.
  const int64_t block_bits = whole.taps * rows * block + (has_bias ? block : 0);
  constexpr int64_t kByteMax = 255;
  const int64_t fit = book.usable() ? (limits_->matrix_product_limit - 1) / block_bits : kByteMax;
  const int64_t step = std::min(kByteMax, std::max<int64_t>(1, fit)) * block;
  for (int64_t at = first; at < first + columns; at += step) {
    ConvolutionPart part;
    part.first = at;
    part.columns = std::min(step, first + columns - at);
    const Placed placed = PlaceMatrix(whole, {0, whole.k, at, part.columns}, record);
    part.mask = placed.mask;
    part.codes = placed.codes;
    part.min = book.usable() ? book.min : 0;
    part.step = book.step;
    part.has_bias = has_bias;
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
  std::vector<float> values = ValuesOf(tensor, record.name);
  const size_t weight_count = values.size();
  if (bias.valid()) {
    const std::vector<float> biases =
        ValuesOf(*graph.ConstantOf(bias), graph.def(bias).source.name);
    values.insert(values.end(), biases.begin(), biases.end());
  }
  const int64_t k = shape[0] * shape[1] * shape[2] / taps;
  CodeBook book = ChooseCodeBook(values, options_->conv_choice, record);
  const int64_t block = limits_->matrix_block;
  const int64_t bias_bits = values.size() == weight_count ? 0 : block;
  if (book.usable() &&
      taps * RoundUp(k, block) * block + bias_bits >= limits_->matrix_product_limit) {
    diagnostics_->Add(
        {.kind = DiagnosticKind::kWeightNotCompressible,
         .message = absl::StrCat("a mask of ", taps, " x ", k, " x ", block,
                                 " weights is over 65535 bits; the weight is stored as fp16"),
         .file = options_->model_name,
         .node = record.name,
         .fix = "use a smaller kernel or fewer input channels"});
    book = {};
    record.compressed = false;
    record.step = 0;
  }
  StoredWeight stored = Store(values, book);
  stored.k = k;
  stored.n = shape[3];
  stored.taps = taps;
  if (is_new) {
    MeasureErrors(absl::MakeConstSpan(values).first(weight_count), book, stored.codes, record);
  }
  CutColumns(stored, first, columns, record, it->second);
  return it->second;
}

}  // namespace npuc
