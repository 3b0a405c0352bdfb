#include "compiler_core/lowering/weight_store.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/find_rare.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/fp16_span.h"
#include "compiler_core/base/rounding.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace npuc {
namespace {

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

// Values that are looked at side by side, in registers.
constexpr size_t kLanes = 8;

// What storing does to the values of a weight.
struct StoringErrors {
  double max_abs = 0;
  double rms = 0;
  double sparsity = 0;
};

class ErrorSums {
 public:
  void Add(double stored, double value) {
    const double error = std::fabs(stored - value);
    max_abs_ = error > max_abs_ ? error : max_abs_;
    squares_ += error * error;
  }
  // zeros: values that are stored as 0, of `count`.
  StoringErrors Result(int64_t zeros, size_t count) const {
    const double all = static_cast<double>(count);
    return {max_abs_, std::sqrt(squares_ / all), static_cast<double>(zeros) / all};
  }

 private:
  double max_abs_ = 0;
  double squares_ = 0;
};

// std::count, by sums of a byte each.
int64_t CountOf(absl::Span<const uint8_t> codes, uint8_t code) {
  constexpr size_t kChunk = 240;  // fits a byte
  int64_t count = 0;
  for (size_t begin = 0; begin < codes.size(); begin += kChunk) {
    uint8_t here = 0;
    for (const uint8_t other : codes.subspan(begin, kChunk)) here += other == code ? 1 : 0;
    count += here;
  }
  return count;
}

// Of values stored as codes, one for each.
StoringErrors ErrorsOfCodes(absl::Span<const float> values, const CodeBook& book,
                            absl::Span<const uint8_t> codes) {
  std::array<double, 256> decoded{};  // what the unit makes of each code
  int64_t zeros = 0;
  for (size_t i = 0; i < decoded.size(); ++i) {
    const uint8_t code = static_cast<uint8_t>(i);
    decoded[i] = DecodeWeight(book, code);
    if (decoded[i] == 0) zeros += CountOf(codes, code);
  }
  ErrorSums sums;
  const uint8_t* code = codes.data();
  for (const float value : values) sums.Add(decoded[*code++], value);
  return sums.Result(zeros, values.size());
}

StoringErrors ErrorsOfHalves(absl::Span<const float> values) {
  constexpr size_t kChunk = 512;
  std::array<float, kChunk> chunk{};
  ErrorSums sums;
  int64_t zeros = 0;
  for (size_t begin = 0; begin < values.size(); begin += kChunk) {
    const absl::Span<const float> from = values.subspan(begin, kChunk);
    const absl::Span<float> stored(chunk.data(), from.size());
    std::copy(from.begin(), from.end(), stored.begin());
    RoundToHalves(stored);
    int32_t zeros_here = 0;
    for (const float value : stored) zeros_here += value == 0.0f ? 1 : 0;
    zeros += zeros_here;
    for (size_t i = 0; i < from.size(); ++i) sums.Add(stored[i], from[i]);
  }
  return sums.Result(zeros, values.size());
}

StoringErrors ErrorsOfFloats(absl::Span<const float> values, absl::Span<const uint16_t> stored,
                             int exponent_bits) {
  ErrorSums sums;
  int64_t zeros = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = Float16ToFloat(stored[i], exponent_bits);
    zeros += value == 0.0f ? 1 : 0;
    sums.Add(value, values[i]);
  }
  return sums.Result(zeros, values.size());
}

// "fp16", "16-bit floats with 3 exponent bits".
std::string FormatName(int exponent_bits) {
  if (exponent_bits == kHalfExponentBits) return "fp16";
  return absl::StrCat("16-bit floats with ", exponent_bits, " exponent bits");
}

// "fp16's +-65504".
std::string LargestText(int exponent_bits) {
  if (exponent_bits == kHalfExponentBits) return "fp16's +-65504";
  return absl::StrCat("the +-", LargestFloat16(exponent_bits), " of ", FormatName(exponent_bits));
}

// The first value out of the range of floats of so many exponent bits, if there is one.
std::optional<float> BeyondRange(absl::Span<const float> values, int exponent_bits) {
  const float largest = LargestFloat16(exponent_bits);
  const auto found = FindRare(values, [=](float value) { return !(std::fabs(value) <= largest); });
  if (found == values.end()) return std::nullopt;
  return *found;
}

// How many values other than 0 are nearer to 0 than to any other float of so many exponent bits. A
// tie goes to 0, which is even.
int64_t UnderflowsOf(absl::Span<const float> values, int exponent_bits) {
  const float largest_lost = SmallestFloat16(exponent_bits) / 2;
  int64_t count = 0;
  for (const float value : values) {
    count += value != 0.0f && std::fabs(value) <= largest_lost ? 1 : 0;
  }
  return count;
}

void ClampAll(absl::Span<float> values, int exponent_bits) {
  const float largest = LargestFloat16(exponent_bits);
  for (float& value : values) value = std::clamp(value, -largest, largest);
}

// A constant's values, clamped to the range of floats of so many exponent bits; behind them those
// of `bias`, if any.
struct Values {
  absl::Span<const float> all;  // the constant's own, or `copy`
  std::vector<float> copy;
  size_t weight_count = 0;  // without the bias's
  std::optional<float> beyond, bias_beyond;
};

Values ValuesOf(const Graph& graph, ValueId value, ValueId bias, int exponent_bits) {
  Values values;
  const Tensor& weight = *graph.ConstantOf(value);
  if (weight.dtype() == DType::kFloat32) {
    values.all = weight.as<float>();
  } else {
    values.copy = weight.ToFloats();
    values.all = values.copy;
  }
  values.weight_count = values.all.size();
  values.beyond = BeyondRange(values.all, exponent_bits);
  std::vector<float> biases;
  if (bias.valid()) biases = graph.ConstantOf(bias)->ToFloats();
  values.bias_beyond = BeyondRange(biases, exponent_bits);
  const bool is_beyond = values.beyond.has_value() || values.bias_beyond.has_value();
  if (!is_beyond && biases.empty()) return values;
  if (values.copy.empty()) values.copy.assign(values.all.begin(), values.all.end());
  values.copy.insert(values.copy.end(), biases.begin(), biases.end());
  if (is_beyond) ClampAll(absl::MakeSpan(values.copy), exponent_bits);
  values.all = values.copy;
  return values;
}

struct Extremes {
  float low = 0;
  float high = 0;
};

// The extremes of every kLanes-th value each, and whether there is a NaN among these.
struct LaneExtremes {
  explicit LaneExtremes(float any) {
    low.fill(any);
    high.fill(any);
  }

  void LookAt(const float* at, size_t count) {
    for (size_t k = 0; k < count; ++k) low[k] = at[k] < low[k] ? at[k] : low[k];
    for (size_t k = 0; k < count; ++k) high[k] = at[k] > high[k] ? at[k] : high[k];
    for (size_t k = 0; k < count; ++k) unordered[k] |= at[k] != at[k] ? 1 : 0;
  }

  // values: a multiple of kLanes.
  void LookAtWhole(absl::Span<const float> values) {
#if defined(__SSE2__)
    // The same by instructions that say just this; compilers do not find them.
    constexpr size_t kInRegister = 4;
    for (size_t k = 0; k < kLanes; k += kInRegister) {
      __m128 lows = _mm_loadu_ps(low.data() + k);
      __m128 highs = _mm_loadu_ps(high.data() + k);
      __m128 nans = _mm_setzero_ps();
      for (size_t i = k; i < values.size(); i += kLanes) {
        const __m128 at = _mm_loadu_ps(values.data() + i);
        lows = _mm_min_ps(at, lows);
        highs = _mm_max_ps(at, highs);
        nans = _mm_or_ps(nans, _mm_cmpunord_ps(at, at));
      }
      _mm_storeu_ps(low.data() + k, lows);
      _mm_storeu_ps(high.data() + k, highs);
      if (_mm_movemask_ps(nans) != 0) unordered[k] = 1;
    }
#else
    for (size_t i = 0; i < values.size(); i += kLanes) LookAt(values.data() + i, kLanes);
#endif
  }

  std::array<float, kLanes> low, high;
  std::array<int32_t, kLanes> unordered{};
};

// *minmax_element, without the branches that no processor foresees in weights. Nothing of nothing.
Extremes ExtremesOf(absl::Span<const float> values) {
  if (values.empty()) return {};
  LaneExtremes lanes(values[0]);
  const size_t whole = values.size() / kLanes * kLanes;
  lanes.LookAtWhole(values.first(whole));
  lanes.LookAt(values.data() + whole, values.size() - whole);
  const Extremes found{*std::min_element(lanes.low.begin(), lanes.low.end()),
                       *std::max_element(lanes.high.begin(), lanes.high.end())};
  const bool is_ordered =
      std::all_of(lanes.unordered.begin(), lanes.unordered.end(), std::logical_not<>());
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

void WeightStore::WarnOutOfRange(std::optional<float> beyond, const std::string& node,
                                 int exponent_bits) {
  if (!beyond.has_value()) return;
  diagnostics_->Add({.kind = DiagnosticKind::kConstantBeyondFp16,
                     .message = absl::StrCat("constant holds ", *beyond, ", beyond ",
                                             LargestText(exponent_bits), "; it was clamped"),
                     .file = options_->model_name,
                     .node = node,
                     .fix = "scale the weights, or use a smaller masking constant"});
}

void WeightStore::WarnUnderflow(int64_t underflows, size_t count, const std::string& node,
                                int exponent_bits) {
  if (underflows == 0 || !underflow_warned_.insert(node).second) return;
  diagnostics_->Add(
      {.kind = DiagnosticKind::kConstantBelowFp16,
       .message = absl::StrCat(
           underflows, " of ", count, " values of the constant are too small for ",
           FormatName(exponent_bits), ", whose smallest is ",
           absl::StrFormat("%.3g", SmallestFloat16(exponent_bits)), "; they are stored as 0"),
       .file = options_->model_name,
       .node = node,
       .fix = "scale the weights up and what follows down, or set them to 0"});
}

std::vector<uint16_t> WeightStore::HalvesOf(absl::Span<const float> values, int64_t times,
                                            const std::string& node) {
  const std::optional<float> beyond = BeyondRange(values, kHalfExponentBits);
  WarnOutOfRange(beyond, node, kHalfExponentBits);
  WarnUnderflow(times * UnderflowsOf(values, kHalfExponentBits),
                static_cast<size_t>(times) * values.size(), node, kHalfExponentBits);
  std::vector<float> clamped;
  if (beyond.has_value()) {
    clamped.assign(values.begin(), values.end());
    ClampAll(absl::MakeSpan(clamped), kHalfExponentBits);
    values = clamped;
  }
  return FloatsToHalves(values);
}

Operand WeightStore::Constant(absl::Span<const float> values, const std::string& node) {
  static_assert(std::endian::native == std::endian::little, "halves are stored as they are");
  const std::vector<uint16_t> halves = HalvesOf(values, /*times=*/1, node);
  const auto [it, inserted] = constants_.try_emplace(
      std::string(reinterpret_cast<const char*>(halves.data()), 2 * halves.size()));
  if (inserted) {
    const auto* data = reinterpret_cast<const uint8_t*>(it->first.data());
    it->second = Place(absl::MakeConstSpan(data, it->first.size()), node);
  }
  return it->second;
}

Operand WeightStore::Repeated(float value, int64_t count, const std::string& node) {
  const uint16_t half = HalvesOf(absl::MakeConstSpan(&value, 1), count, node).front();
  const auto [it, inserted] = repeated_.try_emplace(half);
  if (inserted) it->second = Place({}, node).buffer;
  int64_t& size_bytes = program_->buffers[it->second.value()].size_bytes;
  size_bytes = std::max(size_bytes, count * kHalfBytes);
  return {it->second, 0};
}

uint16_t WeightStore::Immediate(float value, const std::string& node) {
  return HalvesOf(absl::MakeConstSpan(&value, 1), /*times=*/1, node).front();
}

float WeightStore::AwayFromZero(float value, const std::string& node) {
  if (UnderflowsOf(absl::MakeConstSpan(&value, 1), kHalfExponentBits) == 0) return value;
  const float smallest = SmallestFloat16(kHalfExponentBits);
  if (underflow_warned_.insert(node).second) {
    diagnostics_->Add(
        {.kind = DiagnosticKind::kConstantBelowFp16,
         .message = absl::StrFormat("the number %g is too small for fp16, whose smallest is %.3g; "
                                    "it became that one, so that it still keeps results from 0",
                                    value, smallest),
         .file = options_->model_name,
         .node = node,
         .fix = "use a number of at least 6e-08"});
  }
  return std::copysign(smallest, value);
}

void WeightStore::PlaceRepeated() {
  for (const auto& [half, id] : repeated_) {
    Buffer& buffer = program_->buffers[id.value()];
    const std::vector<uint16_t> halves(static_cast<size_t>(buffer.size_bytes / kHalfBytes), half);
    const std::string bytes(reinterpret_cast<const char*>(halves.data()), 2 * halves.size());
    // A constant that begins so has the values already.
    const auto same = constants_.lower_bound(bytes);
    if (same != constants_.end() && same->first.starts_with(bytes)) {
      buffer.offset_bytes = program_->buffers[same->second.buffer.value()].offset_bytes;
      continue;
    }
    buffer.offset_bytes = static_cast<int64_t>(program_->weights.size());
    program_->weights.insert(program_->weights.end(), bytes.begin(), bytes.end());
  }
}

WeightStore::CodedWeight WeightStore::Code(const Graph& graph, ValueId value, ValueId bias,
                                           bool is_convolution) const {
  const auto it = options_->weight_choices.find(graph.def(value).source.name);
  const WeightChoice& choice = it != options_->weight_choices.end() ? it->second
                               : is_convolution                     ? options_->conv_choice
                                                                    : options_->default_choice;
  CodedWeight coded;
  coded.exponent_bits = choice.compress ? kHalfExponentBits : options_->exponent_bits;
  const Values values = ValuesOf(graph, value, bias, coded.exponent_bits);
  coded.beyond = values.beyond;
  coded.bias_beyond = values.bias_beyond;
  const Extremes extremes = ExtremesOf(values.all);
  coded.min = extremes.low;
  coded.max = extremes.high;
  CodeBook& book = coded.stored.book;
  if (choice.compress) {
    coded.min = choice.min.value_or(coded.min);
    coded.max = choice.max.value_or(coded.max);
    book = options_->book_bits == 0
               ? MakeCodeBook(coded.min, coded.max)
               : MakeValueBook(options_->book_spacing, choice.bits.value_or(options_->book_bits),
                               coded.min, coded.max);
    coded.is_refused = !book.usable();
    if (coded.is_refused) book = {};
  }
  StoreAndMeasure(values.all, values.weight_count, coded);
  return coded;
}

WeightForm WeightStore::FormOf(const CodeBook& book) const {
  WeightForm form;
  if (book.usable()) {
    form.book_bits = static_cast<uint8_t>(book.values.empty() ? 0 : book.bits());
  } else if (options_->exponent_bits != kHalfExponentBits) {
    form.exponent_bits = static_cast<uint8_t>(options_->exponent_bits);
  }
  return form;
}

void WeightStore::StoreAndMeasure(absl::Span<const float> values, size_t weight_count,
                                  CodedWeight& coded) const {
  StoredWeight& stored = coded.stored;
  stored.codes.clear();
  stored.halves.clear();
  const absl::Span<const float> weights = values.first(weight_count);
  StoringErrors errors;
  if (stored.book.usable()) {
    stored.codes = EncodeWeights(stored.book, values);
    if (!weights.empty()) {
      errors = ErrorsOfCodes(weights, stored.book,
                             absl::MakeConstSpan(stored.codes).first(weight_count));
    }
  } else {
    // A weight that has no book is stored as the uncompressed ones are.
    coded.exponent_bits = options_->exponent_bits;
    coded.underflows = UnderflowsOf(values, coded.exponent_bits);
    if (coded.exponent_bits == kHalfExponentBits) {
      stored.halves = FloatsToHalves(values);
      if (!weights.empty()) errors = ErrorsOfHalves(weights);
    } else {
      for (const float value : values) {
        stored.halves.push_back(FloatToFloat16(value, coded.exponent_bits));
      }
      if (!weights.empty()) errors = ErrorsOfFloats(weights, stored.halves, coded.exponent_bits);
    }
  }
  coded.max_abs_error = errors.max_abs;
  coded.rms_error = errors.rms;
  coded.sparsity = errors.sparsity;
}

const WeightStore::CodedWeight& WeightStore::CodedOf(const Graph& graph, ValueId value,
                                                     ValueId bias, bool is_convolution) {
  const auto [it, inserted] = coded_.try_emplace({value, bias, is_convolution});
  CodedWeight& coded = it->second;
  if (inserted) coded = Code(graph, value, bias, is_convolution);
  const std::string& name = graph.def(value).source.name;
  WarnOutOfRange(coded.beyond, name, coded.exponent_bits);
  if (coded.underflows > 0) {
    const int64_t biases = bias.valid() ? graph.type(bias).element_count() : 0;
    WarnUnderflow(coded.underflows, static_cast<size_t>(graph.type(value).element_count() + biases),
                  name, coded.exponent_bits);
  }
  if (bias.valid()) {
    WarnOutOfRange(coded.bias_beyond, graph.def(bias).source.name, coded.exponent_bits);
  }
  if (coded.is_refused) {
    diagnostics_->Add(
        {.kind = DiagnosticKind::kWeightNotCompressible,
         .message = absl::StrCat("weight range [", coded.min, ", ", coded.max,
                                 "] leaves no fp16 step; the weight is stored as fp16"),
         .file = options_->model_name,
         .node = name,
         .fix = "give a range by WEIGHT_MIN_MAX, or list it in EXCLUDE_COMPRESS_OPS"});
  }
  return coded;
}

WeightStore::Placed WeightStore::PlaceMatrix(const StoredWeight& weight, const Extents& extents,
                                             const Cut& cut, WeightRecord& record) {
  const auto encode = [&](const auto& stored, const auto& encode_matrix) {
    using T = typename std::decay_t<decltype(stored)>::value_type;
    const absl::Span<const T> all(stored);
    const int64_t rows_of_all = extents.taps * extents.k;
    // Several taps are cut by columns alone.
    const MatrixCut<T> part(all, extents.n, cut.first_row,
                            extents.taps > 1 ? rows_of_all : cut.rows, cut.first_column,
                            cut.columns);
    absl::Span<const T> bias = all.subspan(rows_of_all * extents.n);
    if (!bias.empty()) bias = bias.subspan(cut.first_column, cut.columns);
    return encode_matrix(WeightMatrix<T>{part.values(), cut.rows, cut.columns, extents.taps, bias});
  };
  const int64_t block = limits_->matrix_block;
  EncodedMatrix encoded =
      weight.book.usable() ? encode(weight.codes,
                                    [&](const WeightMatrix<uint8_t>& matrix) {
                                      return CompressMatrix(matrix, weight.book.zero_code, block);
                                    })
                           : encode(weight.halves, [&](const WeightMatrix<uint16_t>& matrix) {
                               return PlainMatrix(matrix, block);
                             });
  if (!weight.book.values.empty()) encoded.codes = WithBook(weight.book, encoded);
  Placed placed;
  if (!encoded.mask.empty()) placed.mask = Place(encoded.mask, record.name);
  placed.codes = Place(encoded.codes, record.name);
  placed.mask_bytes = static_cast<int64_t>(encoded.mask.size());
  record.mask_bytes += placed.mask_bytes;
  record.code_bytes += static_cast<int64_t>(encoded.codes.size());
  return placed;
}

void WeightStore::CutIntoParts(const StoredWeight& weight, const Extents& extents,
                               WeightRecord& record, std::vector<Part>& parts) {
  const CodeBook& book = weight.book;
  const int64_t k = extents.k;
  const int64_t n = extents.n;
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
      const Placed placed =
          PlaceMatrix(weight, extents, {k_first, part.k, n_first, part.n}, record);
      part.command.mask = placed.mask;
      part.command.codes = placed.codes;
      part.command.k = static_cast<uint16_t>(part.k);
      part.command.n = static_cast<uint16_t>(part.n);
      SetCoding(book, part.command);
      parts.push_back(part);
    }
  }
}

// The record of a weight, new or, where it was used before, the old one.
WeightRecord& WeightStore::RecordOf(const Graph& graph, ValueId value, const std::string& user,
                                    const CodedWeight& coded) {
  const auto [it, inserted] = record_index_.try_emplace(value, records_.size());
  if (inserted) {
    WeightRecord record;
    record.value = value;
    record.name = graph.def(value).source.name;
    record.used_by = user;
    record.shape = graph.ConstantOf(value)->shape();
    record.max_abs_error = coded.max_abs_error;
    record.rms_error = coded.rms_error;
    record.sparsity = coded.sparsity;
    records_.push_back(std::move(record));
  }
  WeightRecord& record = records_[it->second];
  record.min = coded.min;
  record.max = coded.max;
  const CodeBook& book = coded.stored.book;
  if (book.usable() || coded.is_refused) record.bits = book.usable() ? book.bits() : 16;
  if (book.usable()) record.step = HalfToFloat(book.step);
  return record;
}

const std::vector<WeightStore::Part>& WeightStore::Matrix(const Graph& graph, ValueId value,
                                                          bool transposed,
                                                          const std::string& user) {
  const auto [it, inserted] = matrices_.try_emplace({value, transposed});
  if (!inserted) return it->second;
  const CodedWeight& coded = CodedOf(graph, value, ValueId(), /*is_convolution=*/false);
  WeightRecord& record = RecordOf(graph, value, user, coded);
  const Shape& shape = graph.ConstantOf(value)->shape();
  if (!transposed) {
    CutIntoParts(coded.stored, {shape[0], shape[1]}, record, it->second);
    return it->second;
  }
  const StoredWeight turned{coded.stored.book, Transposed(coded.stored.codes, shape[0], shape[1]),
                            Transposed(coded.stored.halves, shape[0], shape[1])};
  CutIntoParts(turned, {shape[1], shape[0]}, record, it->second);
  return it->second;
}

void WeightStore::CutColumns(const StoredWeight& whole, const Extents& extents, int64_t first,
                             int64_t columns, WeightRecord& record,
                             std::vector<ConvolutionPart>& parts) {
  const CodeBook& book = whole.book;
  const bool has_bias = std::max(whole.codes.size(), whole.halves.size()) >
                        static_cast<size_t>(extents.taps * extents.k * extents.n);
  const int64_t block = limits_->matrix_block;
  const int64_t rows = RoundUp(extents.k, block);
  // Bits of the mask of one block of columns; the mask's length is a field of 16 bits.
  const int64_t block_bits = extents.taps * rows * block + (has_bias ? block : 0);
  constexpr int64_t kByteMax = 255;
  const int64_t fit = book.usable() ? (limits_->matrix_product_limit - 1) / block_bits : kByteMax;
  const int64_t step = std::min(kByteMax, std::max<int64_t>(1, fit)) * block;
  for (int64_t at = first; at < first + columns; at += step) {
    ConvolutionPart part;
    part.first = at;
    part.columns = std::min(step, first + columns - at);
    const Placed placed = PlaceMatrix(whole, extents, {0, extents.k, at, part.columns}, record);
    part.mask = placed.mask;
    part.codes = placed.codes;
    SetCoding(book, part);
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
  const Shape& shape = graph.ConstantOf(value)->shape();
  const Extents extents{shape[0] * shape[1] * shape[2] / taps, shape[3], taps};
  const CodedWeight& coded = CodedOf(graph, value, bias, /*is_convolution=*/true);
  const int64_t block = limits_->matrix_block;
  const int64_t mask_bits = taps * RoundUp(extents.k, block) * block + (bias.valid() ? block : 0);
  if (!coded.stored.book.usable() || mask_bits < limits_->matrix_product_limit) {
    WeightRecord& record = RecordOf(graph, value, user, coded);
    CutColumns(coded.stored, extents, first, columns, record, it->second);
    return it->second;
  }
  diagnostics_->Add(
      {.kind = DiagnosticKind::kWeightNotCompressible,
       .message = absl::StrCat("a mask of ", taps, " x ", extents.k, " x ", block,
                               " weights is over 65535 bits; the weight is stored as fp16"),
       .file = options_->model_name,
       .node = graph.def(value).source.name,
       .fix = "use a smaller kernel or fewer input channels"});
  CodedWeight plain = coded;
  plain.stored.book = {};
  const Values values = ValuesOf(graph, value, bias, options_->exponent_bits);
  StoreAndMeasure(values.all, values.weight_count, plain);
  WeightRecord& record = RecordOf(graph, value, user, plain);
  record.bits = 16;
  record.step = 0;
  CutColumns(plain.stored, extents, first, columns, record, it->second);
  return it->second;
}

}  // namespace npuc
