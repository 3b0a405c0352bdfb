/* Numbers of decode_boxes.c as floats. C99 without a library. With the compiler's floating-point
   contraction off (-ffp-contract=off) the results are the same to the bit on every machine that has
   IEEE floats. */

typedef float boxes_number;
typedef float boxes_area;
typedef const float* boxes_source;
typedef struct npuc_box boxes_box;
#define BOXES_ONE 1.0f
#define BOXES_HALF 0.5f

static boxes_number boxes_at(boxes_source from, int at) { return from[at]; }
static boxes_number boxes_whole(int n) { return (float)n; }
static boxes_number boxes_mul(boxes_number a, boxes_number b) { return a * b; }
static boxes_number boxes_div(boxes_number a, boxes_number b) { return a / b; }
static boxes_area boxes_area_of(boxes_number width, boxes_number height) { return width * height; }
static boxes_number boxes_ratio(boxes_area a, boxes_area b) { return a / b; }

static boxes_number boxes_exp(boxes_number x) {
  /* 2^n * e^r with |r| <= ln(2) / 2: ln(2) in two parts, then Taylor's polynomial. */
  union {
    float value;
    unsigned bits;
  } power;
  float r, sum;
  int n;
  if (x != x) return x; /* no number */
  if (x > 88.0f) x = 88.0f;
  if (x < -87.0f) x = -87.0f;
  n = (int)(x * 1.44269504f + (x < 0 ? -0.5f : 0.5f));
  r = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
  sum = 1.0f / 5040.0f;
  sum = sum * r + 1.0f / 720.0f;
  sum = sum * r + 1.0f / 120.0f;
  sum = sum * r + 1.0f / 24.0f;
  sum = sum * r + 1.0f / 6.0f;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  power.bits = (unsigned)(n + 127) << 23;
  return sum * power.value;
}

static boxes_number boxes_sigmoid(boxes_number x) { return 1.0f / (1.0f + boxes_exp(-x)); }
