#ifndef NPUC_COMPILER_CORE_BOXES_NPUC_FIXED_BOX_H_
#define NPUC_COMPILER_CORE_BOXES_NPUC_FIXED_BOX_H_
/* Corners as 65536ths of the picture's width and height; they may lie beyond it. The score is so
   many 65536ths, too. */
struct npuc_fixed_box {
  int x0, y0, x1, y1;
  int score;
  int class_id;
};
#endif
