/* The boxes of an object detector, decoded from its outputs. C99 without a library; no memory is
   taken. With the compiler's floating-point contraction off (-ffp-contract=off) the results are the
   same to the bit on every machine that has IEEE floats, and those of `npuc run --postprocess`. */

enum { kBoxesSsd, kBoxesYolo2, kBoxesYolo3, kBoxesYolo5, kBoxesYolo8, kBoxesRpn, kBoxesRcnn };
enum { kBoxesBins = 16 }; /* distances that a side of a YOLO8 box is spread over */

/* One output of a YOLO or an RPN: channels times rows times columns, with the steps between
   neighbours in elements. `sizes`: width and height of each anchor as parts of the picture. */
struct boxes_head {
  int output;
  int anchors, rows, columns;
  int channel_step, row_step, column_step;
  const float* sizes;
  float xy_scale; /* how far a YOLO's centre reaches beyond its cell; 1: not at all */
  /* RPN: the output that has the offsets, with its steps, and the middles of the anchors as parts
     of the picture: the first one, and from cell to cell. */
  int deltas, delta_channel_step, delta_row_step, delta_column_step;
  float first_x, first_y, step_x, step_y;
};

struct boxes_plan {
  int kind, classes, heads;
  const struct boxes_head* head;
  /* SSD: centre and size of each prior, as parts of the picture, and what its offsets count. */
  int location, confidence, priors;
  const float* prior;
  float variance[4]; /* of x, y, width, height */
  int rows_first;    /* the offsets are y, x, height, width */
  int first_class;   /* 1 where class 0 is the background */
  int label_shift;   /* from a class's place among the scores to its number */
  int best_class_only, across_classes;
  int regions; /* RCNN: the array, behind the outputs, of the regions that its offsets move */
  float obj_threshold, iou_threshold;
  int max_candidates, max_boxes;
};

static float boxes_exp(float x) {
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

static float boxes_sigmoid(float x) { return 1.0f / (1.0f + boxes_exp(-x)); }

/* Puts a candidate behind those of its score or a higher one; the lowest falls out of a full list.
   Returns the number of candidates. */
static int boxes_insert(struct npuc_box* list, int count, int most, const struct npuc_box* box) {
  int at = count;
  if (count == most) {
    if (!(box->score > list[count - 1].score)) return count;
    at = --count;
  }
  while (at > 0 && list[at - 1].score < box->score) {
    list[at] = list[at - 1];
    --at;
  }
  list[at] = *box;
  return count + 1;
}

static float boxes_overlap(const struct npuc_box* a, const struct npuc_box* b) {
  const float x0 = a->x0 > b->x0 ? a->x0 : b->x0;
  const float y0 = a->y0 > b->y0 ? a->y0 : b->y0;
  const float x1 = a->x1 < b->x1 ? a->x1 : b->x1;
  const float y1 = a->y1 < b->y1 ? a->y1 : b->y1;
  const float shared = x1 > x0 && y1 > y0 ? (x1 - x0) * (y1 - y0) : 0.0f;
  const float area_a = (a->x1 - a->x0) * (a->y1 - a->y0);
  const float area_b = (b->x1 - b->x0) * (b->y1 - b->y0);
  const float both = area_a + area_b - shared;
  return both > 0.0f ? shared / both : 0.0f;
}

/* Keeps of each class the boxes that no better one of the class overlaps, in front of the list;
   with across_classes no better one of any class. */
static int boxes_suppress(const struct boxes_plan* plan, struct npuc_box* list, int count) {
  int kept = 0, i, k;
  for (i = 0; i < count && kept < plan->max_boxes; ++i) {
    int is_best = 1;
    for (k = 0; k < kept && is_best; ++k) {
      if ((plan->across_classes || list[k].class_id == list[i].class_id) &&
          boxes_overlap(&list[k], &list[i]) > plan->iou_threshold) {
        is_best = 0;
      }
    }
    if (is_best) list[kept++] = list[i];
  }
  return kept;
}

static void boxes_around(struct npuc_box* box, float x, float y, float width, float height) {
  box->x0 = x - width * 0.5f;
  box->y0 = y - height * 0.5f;
  box->x1 = x + width * 0.5f;
  box->y1 = y + height * 0.5f;
}

/* The box of an anchor in a cell; v: its first channel. */
static void boxes_of_anchor(const struct boxes_plan* plan, const struct boxes_head* head,
                            const float* v, int anchor, int row, int column, struct npuc_box* box) {
  const int step = head->channel_step;
  const float reach = head->xy_scale, shift = (head->xy_scale - 1.0f) * 0.5f;
  const float x = (float)column + boxes_sigmoid(v[0]) * reach - shift;
  const float y = (float)row + boxes_sigmoid(v[step]) * reach - shift;
  float width, height;
  if (plan->kind == kBoxesYolo5) {
    width = 2.0f * boxes_sigmoid(v[2 * step]);
    height = 2.0f * boxes_sigmoid(v[3 * step]);
    width = width * width;
    height = height * height;
  } else {
    width = boxes_exp(v[2 * step]);
    height = boxes_exp(v[3 * step]);
  }
  boxes_around(box, x / (float)head->columns, y / (float)head->rows,
               width * head->sizes[2 * anchor], height * head->sizes[2 * anchor + 1]);
}

/* The mean distance of a side by the shares of its bins. */
static float boxes_distance(const float* v, int step) {
  float most = v[0], sum = 0.0f, mean = 0.0f;
  int i;
  for (i = 1; i < kBoxesBins; ++i) {
    if (v[i * step] > most) most = v[i * step];
  }
  for (i = 0; i < kBoxesBins; ++i) {
    const float share = boxes_exp(v[i * step] - most);
    sum += share;
    mean += share * (float)i;
  }
  return mean / sum;
}

static void boxes_of_cell(const struct boxes_head* head, const float* v, int row, int column,
                          struct npuc_box* box) {
  const int side = kBoxesBins * head->channel_step;
  const float x = (float)column + 0.5f, y = (float)row + 0.5f;
  box->x0 = (x - boxes_distance(v, head->channel_step)) / (float)head->columns;
  box->y0 = (y - boxes_distance(v + side, head->channel_step)) / (float)head->rows;
  box->x1 = (x + boxes_distance(v + 2 * side, head->channel_step)) / (float)head->columns;
  box->y1 = (y + boxes_distance(v + 3 * side, head->channel_step)) / (float)head->rows;
}

/* The candidates of one anchor in one cell, a box for each class above the threshold. */
static int boxes_of_place(const struct boxes_plan* plan, const struct boxes_head* head,
                          const float* v, int anchor, int row, int column, struct npuc_box* list,
                          int count) {
  const int step = head->channel_step;
  const int has_object = plan->kind != kBoxesYolo8;
  const float* const scores = v + (has_object ? 5 : 4 * kBoxesBins) * step;
  float object = 1.0f, most = scores[0], sum = 0.0f;
  struct npuc_box box;
  int has_box = 0, k;
  if (has_object) {
    object = boxes_sigmoid(v[4 * step]);
    if (!(object > plan->obj_threshold)) return count;
  }
  if (plan->kind == kBoxesYolo2) { /* a softmax over the classes */
    for (k = 1; k < plan->classes; ++k) {
      if (scores[k * step] > most) most = scores[k * step];
    }
    for (k = 0; k < plan->classes; ++k) sum += boxes_exp(scores[k * step] - most);
  }
  for (k = 0; k < plan->classes; ++k) {
    const float score = plan->kind == kBoxesYolo2
                            ? object * (boxes_exp(scores[k * step] - most) / sum)
                            : object * boxes_sigmoid(scores[k * step]);
    if (!(score > plan->obj_threshold)) continue;
    if (!has_box) {
      if (has_object) {
        boxes_of_anchor(plan, head, v, anchor, row, column, &box);
      } else {
        boxes_of_cell(head, v, row, column, &box);
      }
      has_box = 1;
    }
    box.score = score;
    box.class_id = k;
    count = boxes_insert(list, count, plan->max_candidates, &box);
  }
  return count;
}

static int boxes_of_heads(const struct boxes_plan* plan, const float* const* outputs,
                          struct npuc_box* list) {
  int count = 0, h, anchor, row, column;
  for (h = 0; h < plan->heads; ++h) {
    const struct boxes_head* const head = &plan->head[h];
    const int channels = plan->classes + (plan->kind == kBoxesYolo8 ? 4 * kBoxesBins : 5);
    for (anchor = 0; anchor < head->anchors; ++anchor) {
      for (row = 0; row < head->rows; ++row) {
        for (column = 0; column < head->columns; ++column) {
          const float* const v = outputs[head->output] + anchor * channels * head->channel_step +
                                 row * head->row_step + column * head->column_step;
          count = boxes_of_place(plan, head, v, anchor, row, column, list, count);
        }
      }
    }
  }
  return count;
}

static float boxes_within(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }

/* The regions of an RPN, cut off at the picture's edges. */
static int boxes_of_regions(const struct boxes_plan* plan, const float* const* outputs,
                            struct npuc_box* list) {
  int count = 0, h, anchor, row, column;
  for (h = 0; h < plan->heads; ++h) {
    const struct boxes_head* const head = &plan->head[h];
    for (anchor = 0; anchor < head->anchors; ++anchor) {
      const float width = head->sizes[2 * anchor], height = head->sizes[2 * anchor + 1];
      for (row = 0; row < head->rows; ++row) {
        for (column = 0; column < head->columns; ++column) {
          const float score =
              outputs[head->output][(head->anchors + anchor) * head->channel_step +
                                    row * head->row_step + column * head->column_step];
          const float* const v = outputs[head->deltas] + 4 * anchor * head->delta_channel_step +
                                 row * head->delta_row_step + column * head->delta_column_step;
          const int step = head->delta_channel_step;
          struct npuc_box box;
          if (!(score > plan->obj_threshold)) continue;
          boxes_around(&box, head->first_x + (float)column * head->step_x + v[0] * width,
                       head->first_y + (float)row * head->step_y + v[step] * height,
                       boxes_exp(v[2 * step]) * width, boxes_exp(v[3 * step]) * height);
          box.x0 = boxes_within(box.x0);
          box.y0 = boxes_within(box.y0);
          box.x1 = boxes_within(box.x1);
          box.y1 = boxes_within(box.y1);
          box.score = score;
          box.class_id = 0;
          count = boxes_insert(list, count, plan->max_candidates, &box);
        }
      }
    }
  }
  return count;
}

/* The boxes of an RCNN, each class's own offset from each region, cut off at the edges. */
static int boxes_in_regions(const struct boxes_plan* plan, const float* const* outputs,
                            struct npuc_box* list) {
  int count = 0, i, k;
  for (i = 0; i < plan->priors; ++i) {
    const float* const region = outputs[plan->regions] + 4 * i;
    const float width = region[2] - region[0], height = region[3] - region[1];
    for (k = 1; k < plan->classes; ++k) {
      const float score = outputs[plan->confidence][plan->classes * i + k];
      const float* const v = outputs[plan->location] + 4 * (plan->classes * i + k);
      struct npuc_box box;
      if (!(score > plan->obj_threshold) || !(width > 0.0f) || !(height > 0.0f)) continue;
      boxes_around(&box, region[0] + width * 0.5f + plan->variance[0] * v[0] * width,
                   region[1] + height * 0.5f + plan->variance[1] * v[1] * height,
                   boxes_exp(plan->variance[2] * v[2]) * width,
                   boxes_exp(plan->variance[3] * v[3]) * height);
      box.x0 = boxes_within(box.x0);
      box.y0 = boxes_within(box.y0);
      box.x1 = boxes_within(box.x1);
      box.y1 = boxes_within(box.y1);
      box.score = score;
      box.class_id = k;
      count = boxes_insert(list, count, plan->max_candidates, &box);
    }
  }
  return count;
}

static int boxes_of_priors(const struct boxes_plan* plan, const float* const* outputs,
                           struct npuc_box* list) {
  int count = 0, i, k;
  for (i = 0; i < plan->priors; ++i) {
    const float* const offset = outputs[plan->location] + 4 * i;
    const float* const score = outputs[plan->confidence] + plan->classes * i;
    const float* const prior = plan->prior + 4 * i;
    const int first = plan->rows_first ? 1 : 0;
    int from = plan->first_class, to = plan->classes, has_box = 0;
    struct npuc_box box;
    if (plan->best_class_only) {
      for (k = from; k < plan->classes; ++k) {
        if (score[k] > score[from]) from = k;
      }
      to = from + 1;
    }
    for (k = from; k < to; ++k) {
      if (!(score[k] > plan->obj_threshold)) continue;
      if (!has_box) {
        boxes_around(&box, prior[0] + plan->variance[0] * offset[first] * prior[2],
                     prior[1] + plan->variance[1] * offset[1 - first] * prior[3],
                     prior[2] * boxes_exp(plan->variance[2] * offset[2 + first]),
                     prior[3] * boxes_exp(plan->variance[3] * offset[3 - first]));
        has_box = 1;
      }
      box.score = score[k];
      box.class_id = k + plan->label_shift;
      count = boxes_insert(list, count, plan->max_candidates, &box);
    }
  }
  return count;
}

/* `list` has room for plan->max_candidates boxes; the first ones are the result, best first. */
static int boxes_decode(const struct boxes_plan* plan, const float* const* outputs,
                        struct npuc_box* list) {
  const int count = plan->kind == kBoxesSsd    ? boxes_of_priors(plan, outputs, list)
                    : plan->kind == kBoxesRpn  ? boxes_of_regions(plan, outputs, list)
                    : plan->kind == kBoxesRcnn ? boxes_in_regions(plan, outputs, list)
                                               : boxes_of_heads(plan, outputs, list);
  return boxes_suppress(plan, list, count);
}
