#include "compiler_core/ir/cmd/raw_forms.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr size_t kConvolutionWords = 14;
constexpr size_t kDepthwiseWords = 11;
constexpr size_t kTransposeWords = 5;
constexpr size_t kTilingWord = 4;  // the first of a depthwise command's tiling

absl::Status WrongWord(const RawCommand& command, size_t word, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrFormat("opcode 0x%02x: payload word +%u is 0x%08x; %s",
                                                    command.opcode, 4 * word, command.words[word],
                                                    expected));
}

absl::Status CheckWords(const RawCommand& command, size_t count) {
  if (command.words.size() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("opcode 0x%02x with %u payload words; has %u",
                                                    command.opcode, command.words.size(), count));
}

absl::Status CheckWord(const RawCommand& command, size_t word, uint32_t expected) {
  if (command.words[word] == expected) return absl::OkStatus();
  return WrongWord(command, word, absl::StrFormat("known is 0x%08x", expected));
}

uint32_t Blocks(uint32_t extent) { return (extent + 31) / 32; }
uint32_t LastBlock(uint32_t extent) { return extent - 32 * (Blocks(extent) - 1); }

// Width of the last block, height of the last block, counts of blocks: as in opcode 0x40.
uint32_t BlockWord(uint32_t columns, uint32_t rows) {
  return Blocks(rows) << 24 | Blocks(columns) << 16 | LastBlock(rows) << 8 | LastBlock(columns);
}

int Low(uint32_t word) { return static_cast<int>(word & 0xffff); }
int High(uint32_t word) { return static_cast<int>(word >> 16); }
int Nibble(uint32_t word, int index) { return static_cast<int>(word >> (4 * index) & 15); }

// 1 to 8160: what the 8-bit block counts can say.
bool BlockExtent(int extent) { return extent >= 1 && extent <= 32 * 255; }

bool OperandFits(int64_t a, int64_t b, int64_t c) { return a * b * c <= kMaxUnitElements; }

constexpr uint32_t kConvolutionBias = 0x00800000u;
constexpr uint32_t kDepthwiseBias = 0x80000000u;

uint32_t Word(int64_t low, int64_t high) {
  return static_cast<uint32_t>(high) << 16 | static_cast<uint32_t>(low);
}

uint32_t Bytes(int64_t b0, int64_t b1, int64_t b2, int64_t b3) {
  return Word(b1 << 8 | b0, b3 << 8 | b2);
}

// How the depthwise unit walks one axis in tiles of 32 inputs (ISA.md, 0x42).
struct Tiling {
  int64_t count = 1;     // tiles
  int64_t last_in = 0;   // inputs of the last tile
  int64_t last_out = 0;  // outputs of the last tile
  int64_t full_out = 0;  // outputs of a whole tile
  int64_t step_out = 0;  // outputs from one tile's start to the next
  int64_t step_in = 0;   // inputs from one tile's start to the next
};

Tiling TilingOf(int64_t in, int64_t kernel, int64_t stride) {
  constexpr int64_t kTile = 32;
  const int64_t span = kTile - kernel + 1;
  Tiling tiling;
  tiling.step_out = span / stride;
  tiling.full_out = (span + stride - 1) / stride;
  tiling.step_in = tiling.step_out * stride;
  if (in > kTile) tiling.count += (in - kTile + tiling.step_in - 1) / tiling.step_in;
  tiling.last_in = in - (tiling.count - 1) * tiling.step_in;
  tiling.last_out = (tiling.last_in - kernel) / stride + 1;
  return tiling;
}

// The words +16 to +24 of a depthwise command.
std::array<uint32_t, 3> TilingWords(const DepthwiseForm& form) {
  const Tiling x = TilingOf(form.in_w, form.kernel_w, form.stride_w);
  const Tiling y = TilingOf(form.in_h, form.kernel_h, form.stride_h);
  return {Bytes(x.last_in, y.last_in, x.count, y.count),
          Bytes(x.last_out, y.last_out, x.full_out, y.full_out),
          Bytes(x.step_out, y.step_out, x.step_in, y.step_in)};
}

}  // namespace

int64_t DepthwiseTiles(int64_t pixels, int64_t kernel, int64_t stride) {
  return TilingOf(pixels, kernel, stride).count;
}

uint32_t WordOf(const WeightForm& form) {
  return uint32_t{form.exponent_bits} << 8 | form.book_bits;
}

absl::StatusOr<WeightForm> ParseWeightForm(uint32_t word, bool is_compressed) {
  WeightForm form;
  form.book_bits = static_cast<uint8_t>(word);
  form.exponent_bits = static_cast<uint8_t>(word >> 8);
  const int bits = form.book_bits;
  const int exponent = form.exponent_bits;
  const bool is_known = bits == 0 ? exponent == 0 || exponent == 3 || exponent == 4 || exponent == 6
                                  : bits >= 4 && bits <= 8 && exponent == 0;
  if (WordOf(form) != word || !is_known || (bits > 0 && !is_compressed) ||
      (exponent > 0 && is_compressed)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("payload word +12 is 0x%08x, of %s weights; known are 0, of compressed "
                        "weights 4 to 8, and of plain ones 0x300, 0x400 and 0x600",
                        word, is_compressed ? "compressed" : "plain"));
  }
  return form;
}

absl::StatusOr<ConvolutionForm> ParseConvolution(const RawCommand& command) {
  RETURN_IF_ERROR(CheckWords(command, kConvolutionWords));
  const std::vector<uint32_t>& w = command.words;
  ConvolutionForm form;
  form.out_c = Low(w[5]);
  form.in_c = High(w[5]);
  if (!BlockExtent(form.out_c) || !BlockExtent(form.in_c)) {
    return WrongWord(command, 5, "channels are 1 to 8160");
  }
  ASSIGN_OR_RETURN(form.weights, ParseWeightForm(w[3], command.mask.present()));
  RETURN_IF_ERROR(CheckWord(
      command, 6, BlockWord(static_cast<uint32_t>(form.out_c), static_cast<uint32_t>(form.in_c))));
  form.in_w = Low(w[7]);
  form.in_h = High(w[7]);
  form.kernel_w = Nibble(w[8], 0);
  form.kernel_h = Nibble(w[8], 1);
  form.bias = (w[8] & kConvolutionBias) != 0;
  if ((w[8] & ~(kConvolutionBias | 0xffu)) != 0x01001100u || form.kernel_w == 0 ||
      form.kernel_h == 0) {
    return WrongWord(command, 8, "known is 0x010011KK or 0x018011KK, KK the kernel's sides");
  }
  form.pad_left = Nibble(w[9], 0);
  form.stride_w = Nibble(w[9], 6);
  form.stride_h = Nibble(w[9], 7);
  if ((w[9] & 0x00ffff00u) != 0 || Nibble(w[9], 1) != form.pad_left || form.stride_w == 0 ||
      form.stride_h == 0) {
    return WrongWord(command, 9, "known is 0xSS0000PP, SS strides, PP equal pads left and right");
  }
  form.out_w = Low(w[10]);
  form.out_h = High(w[10]);
  const int padded_w = form.in_w + 2 * form.pad_left;
  if (padded_w < form.kernel_w || form.in_h < form.kernel_h ||
      form.out_w != (padded_w - form.kernel_w) / form.stride_w + 1 ||
      form.out_h != (form.in_h - form.kernel_h) / form.stride_h + 1) {
    return WrongWord(command, 10, "input size, kernel, stride and padding imply another size");
  }
  if (!OperandFits(form.in_h, form.in_w, form.in_c) ||
      !OperandFits(form.out_h, form.out_w, form.out_c)) {
    return WrongWord(command, 10, "an operand is larger than a slot");
  }
  RETURN_IF_ERROR(CheckWord(command, 11, 0));
  form.min = static_cast<uint16_t>(Low(w[12]));
  form.step = static_cast<uint16_t>(High(w[12]));
  form.compressed = command.mask.present();
  if (!form.compressed || form.weights.book_bits > 0) {
    RETURN_IF_ERROR(CheckWord(command, 12, 0));
  }
  if (!form.compressed) {
    RETURN_IF_ERROR(CheckWord(command, 13, 0));
    return form;
  }
  const int64_t columns = 32 * int64_t{Blocks(static_cast<uint32_t>(form.out_c))};
  const int64_t rows = 32 * int64_t{Blocks(static_cast<uint32_t>(form.in_c))};
  form.mask_bits = form.kernel_h * form.kernel_w * rows * columns + (form.bias ? columns : 0);
  if (form.mask_bits > 0xffff || w[13] != (0x80000000u | static_cast<uint32_t>(form.mask_bits))) {
    return WrongWord(command, 13, absl::StrCat("the mask has ", form.mask_bits, " bits"));
  }
  return form;
}

absl::StatusOr<DepthwiseForm> ParseDepthwise(const RawCommand& command) {
  RETURN_IF_ERROR(CheckWords(command, kDepthwiseWords));
  const std::vector<uint32_t>& w = command.words;
  DepthwiseForm form;
  RETURN_IF_ERROR(CheckWord(command, 3, 0));
  form.in_w = Low(w[7]);
  form.in_h = High(w[7]);
  form.bias = (w[8] & kDepthwiseBias) != 0;
  form.channels = Low(w[8]);
  if ((w[8] >> 16 & 0x7fff) != 1 || form.channels == 0) {
    return WrongWord(command, 8, "known is 0x0001CCCC or 0x8001CCCC, CCCC the channels");
  }
  form.out_w = Low(w[9]);
  form.out_h = High(w[9]);
  form.stride_w = Nibble(w[10], 0);
  form.stride_h = Nibble(w[10], 1);
  form.kernel_w = Nibble(w[10], 2);
  form.kernel_h = Nibble(w[10], 3);
  form.multiplier = High(w[10]);
  if (form.stride_w == 0 || form.stride_h == 0 || form.kernel_w == 0 || form.kernel_h == 0 ||
      form.multiplier == 0 || (form.multiplier > 1 && form.channels > 1)) {
    return WrongWord(command, 10,
                     "known are one channel with any multiplier, and any channels with "
                     "multiplier 1, with kernel and stride sides of 1 to 15");
  }
  if (form.in_w < form.kernel_w || form.in_h < form.kernel_h ||
      form.out_w != (form.in_w - form.kernel_w) / form.stride_w + 1 ||
      form.out_h != (form.in_h - form.kernel_h) / form.stride_h + 1) {
    return WrongWord(command, 9, "input size, kernel and stride imply another output size");
  }
  if (!OperandFits(form.in_h, form.in_w, form.channels) ||
      !OperandFits(form.out_h, form.out_w, int64_t{1} * form.channels * form.multiplier)) {
    return WrongWord(command, 9, "an operand is larger than a slot");
  }
  if (std::max(DepthwiseTiles(form.in_w, form.kernel_w, form.stride_w),
               DepthwiseTiles(form.in_h, form.kernel_h, form.stride_h)) > kMaxDepthwiseTiles) {
    return WrongWord(
        command, 7,
        absl::StrCat("the image has more than ", kMaxDepthwiseTiles, " tiles along one side"));
  }
  const std::array<uint32_t, 3> tiling = TilingWords(form);
  for (size_t i = 0; i < tiling.size(); ++i) {
    RETURN_IF_ERROR(CheckWord(command, kTilingWord + i, tiling[i]));
  }
  return form;
}

absl::StatusOr<TransposeForm> ParseTranspose(const RawCommand& command) {
  RETURN_IF_ERROR(CheckWords(command, kTransposeWords));
  TransposeForm form;
  form.columns = Low(command.words[4]);
  form.rows = High(command.words[4]);
  if (!BlockExtent(form.columns) || !BlockExtent(form.rows)) {
    return WrongWord(command, 4, "rows and columns are 1 to 8160");
  }
  RETURN_IF_ERROR(CheckWord(command, 2, 1));
  RETURN_IF_ERROR(
      CheckWord(command, 3,
                BlockWord(static_cast<uint32_t>(form.columns), static_cast<uint32_t>(form.rows))));
  return form;
}

RawCommand MakeConvolution(const ConvolutionForm& form) {
  RawCommand command;
  command.opcode = 0x41;
  command.words.assign(kConvolutionWords, 0);
  std::vector<uint32_t>& w = command.words;
  w[3] = WordOf(form.weights);
  w[5] = Word(form.out_c, form.in_c);
  w[6] = BlockWord(static_cast<uint32_t>(form.out_c), static_cast<uint32_t>(form.in_c));
  w[7] = Word(form.in_w, form.in_h);
  w[8] = 0x01001100u | static_cast<uint32_t>(form.kernel_h << 4 | form.kernel_w) |
         (form.bias ? kConvolutionBias : 0);
  w[9] = static_cast<uint32_t>(form.stride_h << 4 | form.stride_w) << 24 |
         static_cast<uint32_t>(form.pad_left << 4 | form.pad_left);
  w[10] = Word(form.out_w, form.out_h);
  if (form.compressed) {
    w[12] = Word(form.min, form.step);
    w[13] = 0x80000000u | static_cast<uint32_t>(form.mask_bits);
    command.mask = {BufferId(0), 0};
  }
  NPUC_CHECK(ParseConvolution(command).ok());
  command.mask = {};
  return command;
}

RawCommand MakeDepthwise(const DepthwiseForm& form) {
  RawCommand command;
  command.opcode = 0x42;
  command.words.assign(kDepthwiseWords, 0);
  std::vector<uint32_t>& w = command.words;
  const std::array<uint32_t, 3> tiling = TilingWords(form);
  std::copy(tiling.begin(), tiling.end(), w.begin() + kTilingWord);
  w[7] = Word(form.in_w, form.in_h);
  w[8] = Word(form.channels, 1) | (form.bias ? kDepthwiseBias : 0);
  w[9] = Word(form.out_w, form.out_h);
  w[10] = Word(form.kernel_h << 12 | form.kernel_w << 8 | form.stride_h << 4 | form.stride_w,
               form.multiplier);
  NPUC_CHECK(ParseDepthwise(command).ok());
  return command;
}

RawCommand MakeTranspose(const TransposeForm& form) {
  RawCommand command;
  command.opcode = 0x43;
  command.words.assign(kTransposeWords, 0);
  command.words[2] = 1;
  command.words[3] =
      BlockWord(static_cast<uint32_t>(form.columns), static_cast<uint32_t>(form.rows));
  command.words[4] = Word(form.columns, form.rows);
  NPUC_CHECK(ParseTranspose(command).ok());
  return command;
}

}  // namespace npuc
