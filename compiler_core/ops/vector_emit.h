#ifndef NPUC_COMPILER_CORE_OPS_VECTOR_EMIT_H_
#define NPUC_COMPILER_CORE_OPS_VECTOR_EMIT_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ops/lower_context.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// Emission of element-wise, reducing and copying work on dense fp16 tensors, cut into commands that
// fit the unit's extents and strides. All sizes are in elements; element counts of 0 emit nothing.
// a and d may be the same place where the function says so.

// d = f(a) over n elements. d may be a.
void EmitActivation(LowerContext& context, Activation activation, Operand a, Operand d, int64_t n);
// d = a op immediate (a alone for kExp and kLog) over n elements. d may be a.
void EmitScalar(LowerContext& context, Arithmetic arithmetic, Operand a, float immediate, Operand d,
                int64_t n);
// The same for rows of n elements that lie `stride` elements apart on both sides. d may be a.
void EmitScalarRows(LowerContext& context, Arithmetic arithmetic, Operand a, float immediate,
                    Operand d, int64_t stride, int64_t rows, int64_t n);
// d = immediate op a. d may be a.
void EmitScalarFirst(LowerContext& context, Arithmetic arithmetic, float immediate, Operand a,
                     Operand d, int64_t n);
// d = a op b over n elements. d may be a or b.
void EmitTensor(LowerContext& context, Arithmetic arithmetic, Operand a, Operand b, Operand d,
                int64_t n);
// d [rows,n] = a [rows,n] op b [n]. d may be a.
void EmitVector(LowerContext& context, Arithmetic arithmetic, Operand a, Operand b, Operand d,
                int64_t rows, int64_t n);
// d [rows,n] = a [rows,n] x factors [n] + offsets [n], rounded once. d may be a.
void EmitBatchNorm(LowerContext& context, Operand a, Operand factors, Operand offsets, Operand d,
                   int64_t rows, int64_t n);
// d = a over n elements.
void EmitCopy(LowerContext& context, Operand a, Operand d, int64_t n);
// d row r = a row r, for rows of n elements that lie a_stride and d_stride elements apart.
void EmitCopyRows(LowerContext& context, Operand a, int64_t a_stride, Operand d, int64_t d_stride,
                  int64_t rows, int64_t n);
// d [outer,middle,n] = a, element by element, by commands that walk all of outer and middle; the
// strides are of outer and middle. False, and nothing is emitted, where extents or strides do not
// fit the unit or copies row by row are as few.
bool EmitCopyBoxes(LowerContext& context, Operand a, const std::array<int64_t, 2>& a_strides,
                   Operand d, const std::array<int64_t, 2>& d_strides, int64_t outer,
                   int64_t middle, int64_t n);
// d row r = n times the constant `value`, for rows that lie d_stride elements apart.
void EmitFillRows(LowerContext& context, float value, Operand d, int64_t d_stride, int64_t rows,
                  int64_t n);
// d [times,n] = a [n] repeated: by one command that reads a again for each, where n and times fit
// one, else in ceil(log2(times)) + 1 steps.
void EmitRepeat(LowerContext& context, Operand a, Operand d, int64_t times, int64_t n);
// d [n] float32 = a [n] fp16.
void EmitFormat(LowerContext& context, Operand a, Operand d, int64_t n);

// d [outer,inner] = maximum over the middle axis of a [outer,middle,inner], by levels of
// max-pooling with windows up to 15x15. Exact for any extents.
absl::Status EmitMaxOverMiddle(LowerContext& context, Operand a, Operand d, int64_t outer,
                               int64_t middle, int64_t inner);
// d [outer,inner] = scale * sum over the middle axis of a [outer,middle,inner]. The unit rounds to
// fp16 once a command; partial sums of at most max_inner or max_middle terms.
void EmitSumOverMiddle(LowerContext& context, Operand a, Operand d, int64_t outer, int64_t middle,
                       int64_t inner, float scale);

// d = a op b with numpy broadcasting, for the element-wise operators with two operands: picks
// immediates, vectors and repeats by the operands' shapes.
absl::Status LowerBroadcast(const OpView& view, LowerContext& context, Arithmetic arithmetic);
// The same into d, which must not be an operand.
absl::Status LowerBroadcastTo(const OpView& view, LowerContext& context, Arithmetic arithmetic,
                              Operand d);
// The one-operand forms.
absl::Status LowerActivation(const OpView& view, LowerContext& context, Activation activation);
absl::Status LowerScalar(const OpView& view, LowerContext& context, Arithmetic arithmetic,
                         float immediate);

// The error of an operator that needs more commands than limits.max_node_commands:
// RESOURCE_EXHAUSTED, by which the caller knows it. `what` says what needs them: "moving the data
// needs".
absl::Status TooManyCommands(const VectorLimits& limits, absl::string_view what);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_VECTOR_EMIT_H_
