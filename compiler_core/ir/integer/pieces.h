#ifndef NPUC_COMPILER_CORE_IR_INTEGER_PIECES_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_PIECES_H_

#include <cstdint>
#include <optional>

#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// Pieces of commands: commands on the same operands that each compute a part of the result, to the
// same bits. A convolve or pool of one image is cut between rows of its result; a combine, a move
// or a lookup between places of its outermost extent that has several.

// The axis of a walk that is cut: the outermost one with several places; the last one where none
// has.
int CutAxis(const Extents& extents);

// The units that a command's result is cut into. Unit u is bytes [u, u + 1) * unit_bytes from the
// result's place, and stores all of them.
struct Units {
  int64_t count = 0;
  int64_t unit_bytes = 0;
};
// Takes a command without problems (verify.h); null: it cannot be cut.
std::optional<Units> UnitsOf(const Body& body);

// The command that computes units [first, end) alone, 0 <= first < end <= count; its operands and
// its result begin where the piece does. Null where the windows of these rows lie in padding.
std::optional<Body> PieceOf(const Body& body, int64_t first, int64_t end);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_PIECES_H_
