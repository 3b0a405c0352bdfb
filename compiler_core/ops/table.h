#ifndef NPUC_COMPILER_CORE_OPS_TABLE_H_
#define NPUC_COMPILER_CORE_OPS_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace npuc {

// The points of the operator Table, a function of one number that is known by its values: 0, and on
// either side of it 2^lowest to 2^highest, where each power of two is followed by 2^bits - 1 points
// at equal distances. So the points are the floats of `bits` bits behind the leading one. Between
// two points the function is a straight line, and beyond the last ones it keeps their values.
struct TableGrid {
  int64_t lowest = 0;
  int64_t highest = 1;
  int64_t bits = 0;
};

// INVALID_ARGUMENT where the powers are none of float32, not in order, or the bits not 0..16.
absl::Status CheckTableGrid(const TableGrid& grid);
// The number of points above 0. The grid must be a valid one.
int64_t TableSide(const TableGrid& grid);
// 0, the points above 0 with rising size, those below 0 with rising size: the order of `values`.
std::vector<float> TablePoints(const TableGrid& grid);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_TABLE_H_
