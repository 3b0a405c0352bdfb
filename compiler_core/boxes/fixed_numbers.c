/* Numbers of decode_boxes.c as integers, for processors without floats: a number is so many
   65536ths, and lies within +-8192; what would lie beyond becomes that bound, so that sums of a few
   numbers never overflow. C99 without a library; the results are the same to the bit everywhere. */

#include <stdint.h>

typedef int32_t boxes_number;
typedef int64_t boxes_area; /* so many 2^-32 */
typedef struct npuc_fixed_box boxes_box;
#define BOXES_ONE 65536
#define BOXES_HALF 32768
#define BOXES_MOST (8192 * 65536)

enum { kBoxesI8, kBoxesU8, kBoxesI16, kBoxesU16, kBoxesHalf, kBoxesFloat, kBoxesNumber };

/* An output as the model stores it. Of an integer the number is
   (stored - zero) * factor / 2^shift; 0 <= shift <= 62. */
typedef struct boxes_source {
  const void* data;
  int type;
  int32_t zero, factor;
  int shift;
} boxes_source;

static boxes_number boxes_bound(int64_t x) {
  return x > BOXES_MOST ? BOXES_MOST : x < -BOXES_MOST ? -BOXES_MOST : (boxes_number)x;
}

/* The nearest whole of x / 2^shift; of two, the one away from zero. */
static int64_t boxes_round(int64_t x, int shift) {
  const int64_t half = shift > 0 ? (int64_t)1 << (shift - 1) : 0;
  return x < 0 ? -((-x + half) >> shift) : (x + half) >> shift;
}

/* A binary float by its parts: mantissa * 2^exponent. */
static boxes_number boxes_of_parts(int is_negative, int64_t mantissa, int exponent) {
  int64_t x = 0;
  exponent += 16;
  if (mantissa == 0 || exponent < -40) {
    x = 0;
  } else if (exponent > 29) {
    x = BOXES_MOST;
  } else {
    x = exponent < 0 ? boxes_round(mantissa, -exponent) : mantissa << exponent;
  }
  return boxes_bound(is_negative ? -x : x);
}

static boxes_number boxes_of_half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int64_t mantissa = (bits & 1023) | (exponent > 0 ? 1024 : 0);
  if (exponent == 31 && (bits & 1023) != 0) return 0; /* no number */
  return boxes_of_parts(bits >> 15, mantissa, (exponent > 0 ? exponent : 1) - 25);
}

static boxes_number boxes_of_float(uint32_t bits) {
  const int exponent = (int)((bits >> 23) & 255);
  const int64_t mantissa = (int64_t)(bits & 8388607) | (exponent > 0 ? 8388608 : 0);
  if (exponent == 255 && (bits & 8388607) != 0) return 0; /* no number */
  return boxes_of_parts((int)(bits >> 31), mantissa, (exponent > 0 ? exponent : 1) - 150);
}

static boxes_number boxes_at(boxes_source from, int at) {
  int32_t stored;
  switch (from.type) {
    case kBoxesI8:
      stored = ((const uint8_t*)from.data)[at];
      if (stored > 127) stored -= 256;
      break;
    case kBoxesU8:
      stored = ((const uint8_t*)from.data)[at];
      break;
    case kBoxesI16:
      stored = ((const int16_t*)from.data)[at];
      break;
    case kBoxesU16:
      stored = ((const uint16_t*)from.data)[at];
      break;
    case kBoxesHalf:
      return boxes_of_half(((const uint16_t*)from.data)[at]);
    case kBoxesFloat:
      return boxes_of_float(((const uint32_t*)from.data)[at]);
    default:
      return boxes_bound(((const int32_t*)from.data)[at]);
  }
  return boxes_bound(boxes_round((int64_t)(stored - from.zero) * from.factor, from.shift));
}

static boxes_number boxes_whole(int n) { return boxes_bound((int64_t)n * BOXES_ONE); }

static boxes_number boxes_mul(boxes_number a, boxes_number b) {
  return boxes_bound(boxes_round((int64_t)a * b, 16));
}

static boxes_number boxes_div(boxes_number a, boxes_number b) {
  if (b == 0) return a < 0 ? -BOXES_MOST : BOXES_MOST;
  return boxes_bound((int64_t)a * BOXES_ONE / b);
}

/* Sides count as 16 pictures at most, so that a sum of areas can be multiplied by 65536. */
static boxes_number boxes_side(boxes_number x) {
  const boxes_number most = 16 * BOXES_ONE;
  return x > most ? most : x < -most ? -most : x;
}

static boxes_area boxes_area_of(boxes_number width, boxes_number height) {
  return (boxes_area)boxes_side(width) * boxes_side(height);
}

static boxes_number boxes_ratio(boxes_area a, boxes_area b) {
  return boxes_bound(a * BOXES_ONE / b);
}

static boxes_number boxes_exp(boxes_number x) {
  /* 2^n * 2^f: x * log2(e) as so many 2^-46, then a polynomial in f, in 2^-30. */
  static const int32_t factors[] = {16377,    165394,    1431680,   10327387,
                                    59597083, 257941248, 744261118, 1073741824};
  const int64_t power = (int64_t)x * 1549082005;
  const int64_t whole = (int64_t)1 << 46;
  const int n = (int)(power < 0 ? -((-power + whole - 1) / whole) : power / whole);
  const int64_t f = (power - n * whole) >> 16;
  int64_t sum = 0;
  int i;
  for (i = 0; i < 8; ++i) sum = ((sum * f) >> 30) + factors[i];
  if (n > 13) return BOXES_MOST;
  if (n < -18) return 0;
  return boxes_bound(boxes_round(sum, 14 - n));
}

/* By the exponential of a number that is not above 0, which keeps within the bound. */
static boxes_number boxes_sigmoid(boxes_number x) {
  const boxes_number e = boxes_exp(x > 0 ? -x : x);
  return boxes_div(x > 0 ? BOXES_ONE : e, BOXES_ONE + e);
}
