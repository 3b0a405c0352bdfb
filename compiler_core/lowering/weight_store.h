#ifndef NPUC_COMPILER_CORE_LOWERING_WEIGHT_STORE_H_
#define NPUC_COMPILER_CORE_LOWERING_WEIGHT_STORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/lowering/weights.h"

namespace npuc {

// Fills weight_content: constants and weight matrices in order of first use, equal ones once.
// Owned by one lowering; `program` and `diagnostics` must outlive it.
class WeightStore {
 public:
  WeightStore(Program* program, const LowerOptions* options, const CoreLimits* limits,
              Diagnostics* diagnostics);

  // fp16 constants; values beyond fp16 become +-65504, and those below it
  // 0, with a warning that names `node`.
  Operand Constant(absl::Span<const float> values, const std::string& node);

  // `value`, `count` times, as a constant. All users of one value share a buffer that is as long as
  // the longest of them needs; PlaceRepeated() places it, behind all else.
  Operand Repeated(float value, int64_t count, const std::string& node);
  // A number of a command, as fp16: clamped, and with the same warnings.
  uint16_t Immediate(float value, const std::string& node);
  // `value`, or the least number of fp16 with its sign where fp16 would make it 0, with a warning.
  float AwayFromZero(float value, const std::string& node);
  // To be called once, when nothing else is placed any more.
  void PlaceRepeated();

  // A [k,n] part of a weight, ready for one fully connected command.
  struct Part {
    int64_t k_first = 0, k = 0;
    int64_t n_first = 0, n = 0;
    FullyConnectedCommand command;  // codes, mask, n, k, min, step and form are set
  };
  // The weight of the constant `value` of `graph`, [k,n], or [n,k] where transposed, cut into parts
  // that fit the unit: all of n for the first part of k, and so on.
  const std::vector<Part>& Matrix(const Graph& graph, ValueId value, bool transposed,
                                  const std::string& user);

  // Columns of a convolution weight, ready for one command.
  struct ConvolutionPart {
    int64_t first = 0, columns = 0;  // output channels
    Operand codes, mask;
    uint16_t min = 0, step = 0;
    WeightForm form;
    int64_t mask_bits = 0;
    bool has_bias = false;
  };
  // Columns [first, first + columns) of the constant `value`, [kh,kw,c,n]; seen as `taps` matrices
  // (kh*kw of [c,n], or 1 of [kh*kw*c,n]). `bias` is a constant of n numbers that goes with them,
  // or not valid; compressed, it shares the weight's codes, whose range then covers it, too.
  const std::vector<ConvolutionPart>& Convolution(const Graph& graph, ValueId value, ValueId bias,
                                                  int64_t taps, int64_t first, int64_t columns,
                                                  const std::string& user);

  std::vector<WeightRecord> TakeRecords() { return std::move(records_); }

 private:
  Operand Place(absl::Span<const uint8_t> bytes, const std::string& name);
  // A constant as it is stored: codes, or fp16 where the book is not usable.
  struct StoredWeight {
    CodeBook book;
    std::vector<uint8_t> codes;
    std::vector<uint16_t> halves;  // of LowerOptions::exponent_bits
  };
  // How its user sees it: rows [taps * k, n], and behind them the bias's n values, if any.
  struct Extents {
    int64_t k = 0, n = 0, taps = 1;
  };
  // Rows of each tap, and columns.
  struct Cut {
    int64_t first_row = 0, rows = 0;
    int64_t first_column = 0, columns = 0;
  };
  // A matrix in the unit's form, placed.
  struct Placed {
    Operand codes, mask;
    int64_t mask_bytes = 0;
  };
  Placed PlaceMatrix(const StoredWeight& weight, const Extents& extents, const Cut& cut,
                     WeightRecord& record);
  // A weight in its stored form, and what is to be told of it. All follows from the constants and
  // the options, so that several can be made at once.
  struct CodedWeight {
    StoredWeight stored;
    double min = 0, max = 0;                   // the range in force
    int exponent_bits = kHalfExponentBits;     // of the floats that bound the values
    bool is_refused = false;                   // asked to be compressed, and has no code book
    std::optional<float> beyond, bias_beyond;  // a value out of fp16's range, if there is one
    int64_t underflows = 0;                    // values, the bias's too, that fp16 makes 0
    double sparsity = 0, max_abs_error = 0, rms_error = 0;
  };
  // bias: not valid where there is none. is_convolution: whose default choice holds.
  CodedWeight Code(const Graph& graph, ValueId value, ValueId bias, bool is_convolution) const;
  void StoreAndMeasure(absl::Span<const float> values, size_t weight_count,
                       CodedWeight& coded) const;
  WeightForm FormOf(const CodeBook& book) const;
  // Sets what a command, or a part that becomes one, says of how its weights are coded.
  template <typename Coded>
  void SetCoding(const CodeBook& book, Coded& coded) const {
    coded.form = FormOf(book);
    if (!book.usable() || coded.form.book_bits > 0) return;
    coded.min = book.min;
    coded.step = book.step;
  }
  // The same, made at most once, with its warnings.
  const CodedWeight& CodedOf(const Graph& graph, ValueId value, ValueId bias, bool is_convolution);
  // The record of a weight, new or, where other columns of it were used before, the old one.
  WeightRecord& RecordOf(const Graph& graph, ValueId value, const std::string& user,
                         const CodedWeight& coded);
  // Numbers as they are stored, each so many times, with warnings that name `node`.
  std::vector<uint16_t> HalvesOf(absl::Span<const float> values, int64_t times,
                                 const std::string& node);
  // exponent_bits: of the floats that the constant is stored in.
  void WarnOutOfRange(std::optional<float> beyond, const std::string& node, int exponent_bits);
  // Once a node.
  void WarnUnderflow(int64_t underflows, size_t count, const std::string& node, int exponent_bits);
  void CutColumns(const StoredWeight& whole, const Extents& extents, int64_t first, int64_t columns,
                  WeightRecord& record, std::vector<ConvolutionPart>& parts);
  void CutIntoParts(const StoredWeight& weight, const Extents& extents, WeightRecord& record,
                    std::vector<Part>& parts);

  Program* program_;
  const LowerOptions* options_;
  const CoreLimits* limits_;
  Diagnostics* diagnostics_;
  std::map<std::string, Operand> constants_;  // by bytes
  std::map<uint16_t, BufferId> repeated_;     // by value, as fp16
  std::set<std::string> underflow_warned_;    // nodes
  std::map<std::pair<ValueId, bool>, std::vector<Part>> matrices_;
  // By weight, bias, taps, first column and columns.
  std::map<std::tuple<ValueId, ValueId, int64_t, int64_t, int64_t>, std::vector<ConvolutionPart>>
      convolutions_;
  using CodedKey = std::tuple<ValueId, ValueId, bool>;  // weight, bias, is_convolution
  std::map<CodedKey, CodedWeight> coded_;
  std::map<ValueId, size_t> record_index_;
  std::vector<WeightRecord> records_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_WEIGHT_STORE_H_
