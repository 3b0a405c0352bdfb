#ifndef NPUC_COMPILER_CORE_IR_CMD_RAW_FORMS_H_
#define NPUC_COMPILER_CORE_IR_CMD_RAW_FORMS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler_core/ir/cmd/command.h"

namespace npuc {

// What the payload words of opcodes 0x41 to 0x43 mean. Each field's evidence is in
// compiler_core/target/ISA.md. The parsers are strict: a word that no published header shows, or
// that disagrees with the others, is INVALID_ARGUMENT naming it, since its meaning is unknown.

// The word +12 of opcodes 0x40 and 0x41: book_bits | exponent_bits << 8. Refused is what a command
// cannot have: a book without a mask, a plain form with one, other widths.
uint32_t WordOf(const WeightForm& form);
absl::StatusOr<WeightForm> ParseWeightForm(uint32_t word, bool is_compressed);

// Opcode 0x41. a [in_h,in_w,in_c] -> d [out_h,out_w,out_c], both dense. Weights: kernel position
// (row by row) outermost, then the 32 x 32 blocks of a fully connected [in_c,out_c] matrix;
// with bias, out_c further values behind them.
struct ConvolutionForm {
  int in_h = 0, in_w = 0, in_c = 0;
  int out_h = 0, out_w = 0, out_c = 0;
  int kernel_h = 0, kernel_w = 0;
  int stride_h = 0, stride_w = 0;
  int pad_left = 0;  // columns of zeros before each row, and as many behind it
  bool bias = false;
  bool compressed = false;
  uint16_t min = 0;  // fp16
  uint16_t step = 0;
  WeightForm weights;
  int64_t mask_bits = 0;  // of weights and bias, rounded up as the mask is; 0 where plain
};
absl::StatusOr<ConvolutionForm> ParseConvolution(const RawCommand& command);

// Opcode 0x42. a [channels,in_h,in_w] -> d [channels * multiplier,out_h,out_w]: every output
// channel sees one input channel. Weights: for each output channel kernel_h * kernel_w fp16
// values, then its bias where there is one.
struct DepthwiseForm {
  int in_h = 0, in_w = 0;
  int out_h = 0, out_w = 0;
  int channels = 0;
  int multiplier = 0;  // 1, or any where there is one channel
  int kernel_h = 0, kernel_w = 0;
  int stride_h = 0, stride_w = 0;
  bool bias = false;
};
absl::StatusOr<DepthwiseForm> ParseDepthwise(const RawCommand& command);

// Opcode 0x43. a [rows,columns] -> d [columns,rows].
struct TransposeForm {
  int rows = 0, columns = 0;
};
absl::StatusOr<TransposeForm> ParseTranspose(const RawCommand& command);

// The inverse: the opcode and payload words of a form, without operands. Parsing what comes out
// gives the form back (CHECKed, so the form must be one that the parser accepts; `compressed` says
// that the command will have a mask).
RawCommand MakeConvolution(const ConvolutionForm& form);
RawCommand MakeDepthwise(const DepthwiseForm& form);
RawCommand MakeTranspose(const TransposeForm& form);

// Longest row or column of a matrix in blocks of 32: a byte counts the blocks.
inline constexpr int64_t kMaxBlockExtent = 32 * 255;
// Largest height and width of an image: their fields have 16 bits.
inline constexpr int64_t kMaxImageSide = 0xffff;
// Most channels, or results of one channel, of a depthwise command.
inline constexpr int64_t kMaxDepthwisePlanes = 0xffff;
// Most tiles along one side of the image of a depthwise command: a byte counts them.
inline constexpr int64_t kMaxDepthwiseTiles = 0xff;
// The tiles that so many pixels, at least `kernel`, make along one side.
int64_t DepthwiseTiles(int64_t pixels, int64_t kernel, int64_t stride);
// Elements that one slot can hold: no operand is larger.
inline constexpr int64_t kMaxUnitElements = int64_t{1} << 27;

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_CMD_RAW_FORMS_H_
