#ifndef NPUC_COMPILER_CORE_BOXES_NPUC_BOX_H_
#define NPUC_COMPILER_CORE_BOXES_NPUC_BOX_H_
/* Corners as parts of the picture's width and height; they may lie beyond it. */
struct npuc_box {
  float x0, y0, x1, y1;
  float score;
  int class_id;
};
#endif
