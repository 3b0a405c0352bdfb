/* The boxes of an object detector, decoded from its outputs, in the numbers of the file in front of
   it. C99 without a library; no memory is taken. The results are those of `npuc run --postprocess`.
 */

enum { kBoxesSsd, kBoxesYolo2, kBoxesYolo3, kBoxesYolo5, kBoxesYolo8, kBoxesRpn, kBoxesRcnn };
enum { kBoxesBins = 16 }; /* distances that a side of a YOLO8 box is spread over */

/* One output of a YOLO or an RPN: channels times rows times columns, with the steps between
   neighbours in elements. `sizes`: width and height of each anchor as parts of the picture. */
struct boxes_head {
  int output;
  int anchors, rows, columns;
  int channel_step, row_step, column_step;
  const boxes_number* sizes;
  boxes_number xy_scale; /* how far a YOLO's centre reaches beyond its cell; 1: not at all */
  /* RPN: the output that has the offsets, with its steps, and the middles of the anchors as parts
     of the picture: the first one, and from cell to cell. */
  int deltas, delta_channel_step, delta_row_step, delta_column_step;
  boxes_number first_x, first_y, step_x, step_y;
};

struct boxes_plan {
  int kind, classes, heads;
  const struct boxes_head* head;
  /* SSD: centre and size of each prior, as parts of the picture, and what its offsets count. */
  int location, confidence, priors;
  const boxes_number* prior;
  boxes_number variance[4]; /* of x, y, width, height */
  int rows_first;           /* the offsets are y, x, height, width */
  int first_class;          /* 1 where class 0 is the background */
  int label_shift;          /* from a class's place among the scores to its number */
  int best_class_only, across_classes;
  int regions; /* RCNN: the array, behind the outputs, of the regions that its offsets move */
  boxes_number obj_threshold, iou_threshold;
  int max_candidates, max_boxes;
};

/* Puts a candidate behind those of its score or a higher one; the lowest falls out of a full list.
   Returns the number of candidates. */
static int boxes_insert(boxes_box* list, int count, int most, const boxes_box* box) {
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

static boxes_number boxes_overlap(const boxes_box* a, const boxes_box* b) {
  const boxes_number x0 = a->x0 > b->x0 ? a->x0 : b->x0;
  const boxes_number y0 = a->y0 > b->y0 ? a->y0 : b->y0;
  const boxes_number x1 = a->x1 < b->x1 ? a->x1 : b->x1;
  const boxes_number y1 = a->y1 < b->y1 ? a->y1 : b->y1;
  const boxes_area shared = x1 > x0 && y1 > y0 ? boxes_area_of(x1 - x0, y1 - y0) : 0;
  const boxes_area area_a = boxes_area_of(a->x1 - a->x0, a->y1 - a->y0);
  const boxes_area area_b = boxes_area_of(b->x1 - b->x0, b->y1 - b->y0);
  const boxes_area both = area_a + area_b - shared;
  return both > 0 ? boxes_ratio(shared, both) : 0;
}

/* Keeps of each class the boxes that no better one of the class overlaps, in front of the list;
   with across_classes no better one of any class. */
static int boxes_suppress(const struct boxes_plan* plan, boxes_box* list, int count) {
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

static void boxes_around(boxes_box* box, boxes_number x, boxes_number y, boxes_number width,
                         boxes_number height) {
  box->x0 = x - boxes_mul(width, BOXES_HALF);
  box->y0 = y - boxes_mul(height, BOXES_HALF);
  box->x1 = x + boxes_mul(width, BOXES_HALF);
  box->y1 = y + boxes_mul(height, BOXES_HALF);
}

/* The box of an anchor in a cell; at: its first channel. */
static void boxes_of_anchor(const struct boxes_plan* plan, const struct boxes_head* head,
                            boxes_source from, int at, int anchor, int row, int column,
                            boxes_box* box) {
  const int step = head->channel_step;
  const boxes_number reach = head->xy_scale;
  const boxes_number shift = boxes_mul(head->xy_scale - BOXES_ONE, BOXES_HALF);
  const boxes_number x =
      boxes_whole(column) + boxes_mul(boxes_sigmoid(boxes_at(from, at)), reach) - shift;
  const boxes_number y =
      boxes_whole(row) + boxes_mul(boxes_sigmoid(boxes_at(from, at + step)), reach) - shift;
  boxes_number width = boxes_at(from, at + 2 * step), height = boxes_at(from, at + 3 * step);
  if (plan->kind == kBoxesYolo5) {
    width = 2 * boxes_sigmoid(width);
    height = 2 * boxes_sigmoid(height);
    width = boxes_mul(width, width);
    height = boxes_mul(height, height);
  } else {
    width = boxes_exp(width);
    height = boxes_exp(height);
  }
  boxes_around(box, boxes_div(x, boxes_whole(head->columns)), boxes_div(y, boxes_whole(head->rows)),
               boxes_mul(width, head->sizes[2 * anchor]),
               boxes_mul(height, head->sizes[2 * anchor + 1]));
}

/* The mean distance of a side by the shares of its bins. */
static boxes_number boxes_distance(boxes_source from, int at, int step) {
  boxes_number most = boxes_at(from, at), sum = 0, mean = 0;
  int i;
  for (i = 1; i < kBoxesBins; ++i) {
    if (boxes_at(from, at + i * step) > most) most = boxes_at(from, at + i * step);
  }
  for (i = 0; i < kBoxesBins; ++i) {
    const boxes_number share = boxes_exp(boxes_at(from, at + i * step) - most);
    sum += share;
    mean += boxes_mul(share, boxes_whole(i));
  }
  return boxes_div(mean, sum);
}

static void boxes_of_cell(const struct boxes_head* head, boxes_source from, int at, int row,
                          int column, boxes_box* box) {
  const int step = head->channel_step, side = kBoxesBins * head->channel_step;
  const boxes_number x = boxes_whole(column) + BOXES_HALF, y = boxes_whole(row) + BOXES_HALF;
  const boxes_number columns = boxes_whole(head->columns), rows = boxes_whole(head->rows);
  box->x0 = boxes_div(x - boxes_distance(from, at, step), columns);
  box->y0 = boxes_div(y - boxes_distance(from, at + side, step), rows);
  box->x1 = boxes_div(x + boxes_distance(from, at + 2 * side, step), columns);
  box->y1 = boxes_div(y + boxes_distance(from, at + 3 * side, step), rows);
}

/* The candidates of one anchor in one cell, a box for each class above the threshold. */
static int boxes_of_place(const struct boxes_plan* plan, const struct boxes_head* head,
                          boxes_source from, int at, int anchor, int row, int column,
                          boxes_box* list, int count) {
  const int step = head->channel_step;
  const int has_object = plan->kind != kBoxesYolo8;
  const int scores = at + (has_object ? 5 : 4 * kBoxesBins) * step;
  boxes_number object = BOXES_ONE, most = boxes_at(from, scores), sum = 0;
  boxes_box box;
  int has_box = 0, k;
  if (has_object) {
    object = boxes_sigmoid(boxes_at(from, at + 4 * step));
    if (!(object > plan->obj_threshold)) return count;
  }
  if (plan->kind == kBoxesYolo2) { /* a softmax over the classes */
    for (k = 1; k < plan->classes; ++k) {
      if (boxes_at(from, scores + k * step) > most) most = boxes_at(from, scores + k * step);
    }
    for (k = 0; k < plan->classes; ++k) {
      sum += boxes_exp(boxes_at(from, scores + k * step) - most);
    }
  }
  for (k = 0; k < plan->classes; ++k) {
    const boxes_number value = boxes_at(from, scores + k * step);
    const boxes_number share =
        plan->kind == kBoxesYolo2 ? boxes_div(boxes_exp(value - most), sum) : boxes_sigmoid(value);
    const boxes_number score = boxes_mul(object, share);
    if (!(score > plan->obj_threshold)) continue;
    if (!has_box) {
      if (has_object) {
        boxes_of_anchor(plan, head, from, at, anchor, row, column, &box);
      } else {
        boxes_of_cell(head, from, at, row, column, &box);
      }
      has_box = 1;
    }
    box.score = score;
    box.class_id = k;
    count = boxes_insert(list, count, plan->max_candidates, &box);
  }
  return count;
}

static int boxes_of_heads(const struct boxes_plan* plan, const boxes_source* outputs,
                          boxes_box* list) {
  int count = 0, h, anchor, row, column;
  for (h = 0; h < plan->heads; ++h) {
    const struct boxes_head* const head = &plan->head[h];
    const int channels = plan->classes + (plan->kind == kBoxesYolo8 ? 4 * kBoxesBins : 5);
    for (anchor = 0; anchor < head->anchors; ++anchor) {
      for (row = 0; row < head->rows; ++row) {
        for (column = 0; column < head->columns; ++column) {
          const int at = anchor * channels * head->channel_step + row * head->row_step +
                         column * head->column_step;
          count = boxes_of_place(plan, head, outputs[head->output], at, anchor, row, column, list,
                                 count);
        }
      }
    }
  }
  return count;
}

static boxes_number boxes_within(boxes_number x) {
  return x < 0 ? 0 : x > BOXES_ONE ? BOXES_ONE : x;
}

/* Cuts a box off at the picture's edges. */
static void boxes_cut(boxes_box* box) {
  box->x0 = boxes_within(box->x0);
  box->y0 = boxes_within(box->y0);
  box->x1 = boxes_within(box->x1);
  box->y1 = boxes_within(box->y1);
}

/* The regions of an RPN, cut off at the picture's edges. */
static int boxes_of_regions(const struct boxes_plan* plan, const boxes_source* outputs,
                            boxes_box* list) {
  int count = 0, h, anchor, row, column;
  for (h = 0; h < plan->heads; ++h) {
    const struct boxes_head* const head = &plan->head[h];
    const boxes_source deltas = outputs[head->deltas];
    const int step = head->delta_channel_step;
    for (anchor = 0; anchor < head->anchors; ++anchor) {
      const boxes_number width = head->sizes[2 * anchor], height = head->sizes[2 * anchor + 1];
      for (row = 0; row < head->rows; ++row) {
        for (column = 0; column < head->columns; ++column) {
          const boxes_number score = boxes_at(
              outputs[head->output], (head->anchors + anchor) * head->channel_step +
                                         row * head->row_step + column * head->column_step);
          const int at =
              4 * anchor * step + row * head->delta_row_step + column * head->delta_column_step;
          boxes_box box;
          if (!(score > plan->obj_threshold)) continue;
          boxes_around(&box,
                       head->first_x + boxes_mul(boxes_whole(column), head->step_x) +
                           boxes_mul(boxes_at(deltas, at), width),
                       head->first_y + boxes_mul(boxes_whole(row), head->step_y) +
                           boxes_mul(boxes_at(deltas, at + step), height),
                       boxes_mul(boxes_exp(boxes_at(deltas, at + 2 * step)), width),
                       boxes_mul(boxes_exp(boxes_at(deltas, at + 3 * step)), height));
          boxes_cut(&box);
          box.score = score;
          box.class_id = 0;
          count = boxes_insert(list, count, plan->max_candidates, &box);
        }
      }
    }
  }
  return count;
}

/* Element i of four offsets at `at`, times its variance. */
static boxes_number boxes_offset(const struct boxes_plan* plan, boxes_source from, int at, int i,
                                 int variance) {
  return boxes_mul(plan->variance[variance], boxes_at(from, at + i));
}

/* The boxes of an RCNN, each class's own offset from each region, cut off at the edges. */
static int boxes_in_regions(const struct boxes_plan* plan, const boxes_source* outputs,
                            boxes_box* list) {
  const boxes_source regions = outputs[plan->regions], deltas = outputs[plan->location];
  int count = 0, i, k;
  for (i = 0; i < plan->priors; ++i) {
    const boxes_number x0 = boxes_at(regions, 4 * i), y0 = boxes_at(regions, 4 * i + 1);
    const boxes_number width = boxes_at(regions, 4 * i + 2) - x0;
    const boxes_number height = boxes_at(regions, 4 * i + 3) - y0;
    for (k = 1; k < plan->classes; ++k) {
      const boxes_number score = boxes_at(outputs[plan->confidence], plan->classes * i + k);
      const int at = 4 * (plan->classes * i + k);
      boxes_box box;
      if (!(score > plan->obj_threshold) || !(width > 0) || !(height > 0)) continue;
      boxes_around(&box,
                   x0 + boxes_mul(width, BOXES_HALF) +
                       boxes_mul(boxes_offset(plan, deltas, at, 0, 0), width),
                   y0 + boxes_mul(height, BOXES_HALF) +
                       boxes_mul(boxes_offset(plan, deltas, at, 1, 1), height),
                   boxes_mul(boxes_exp(boxes_offset(plan, deltas, at, 2, 2)), width),
                   boxes_mul(boxes_exp(boxes_offset(plan, deltas, at, 3, 3)), height));
      boxes_cut(&box);
      box.score = score;
      box.class_id = k;
      count = boxes_insert(list, count, plan->max_candidates, &box);
    }
  }
  return count;
}

static int boxes_of_priors(const struct boxes_plan* plan, const boxes_source* outputs,
                           boxes_box* list) {
  const boxes_source offsets = outputs[plan->location], scores = outputs[plan->confidence];
  const int first = plan->rows_first ? 1 : 0;
  int count = 0, i, k;
  for (i = 0; i < plan->priors; ++i) {
    const boxes_number* const prior = plan->prior + 4 * i;
    const int score = plan->classes * i;
    int from = plan->first_class, to = plan->classes, has_box = 0;
    boxes_box box;
    if (plan->best_class_only) {
      for (k = from; k < plan->classes; ++k) {
        if (boxes_at(scores, score + k) > boxes_at(scores, score + from)) from = k;
      }
      to = from + 1;
    }
    for (k = from; k < to; ++k) {
      box.score = boxes_at(scores, score + k);
      if (!(box.score > plan->obj_threshold)) continue;
      if (!has_box) {
        boxes_around(
            &box, prior[0] + boxes_mul(boxes_offset(plan, offsets, 4 * i, first, 0), prior[2]),
            prior[1] + boxes_mul(boxes_offset(plan, offsets, 4 * i, 1 - first, 1), prior[3]),
            boxes_mul(prior[2], boxes_exp(boxes_offset(plan, offsets, 4 * i, 2 + first, 2))),
            boxes_mul(prior[3], boxes_exp(boxes_offset(plan, offsets, 4 * i, 3 - first, 3))));
        has_box = 1;
      }
      box.class_id = k + plan->label_shift;
      count = boxes_insert(list, count, plan->max_candidates, &box);
    }
  }
  return count;
}

/* `list` has room for plan->max_candidates boxes; the first ones are the result, best first. */
static int boxes_decode(const struct boxes_plan* plan, const boxes_source* outputs,
                        boxes_box* list) {
  const int count = plan->kind == kBoxesSsd    ? boxes_of_priors(plan, outputs, list)
                    : plan->kind == kBoxesRpn  ? boxes_of_regions(plan, outputs, list)
                    : plan->kind == kBoxesRcnn ? boxes_in_regions(plan, outputs, list)
                                               : boxes_of_heads(plan, outputs, list);
  return boxes_suppress(plan, list, count);
}
