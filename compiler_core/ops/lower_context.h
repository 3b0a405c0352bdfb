#ifndef NPUC_COMPILER_CORE_OPS_LOWER_CONTEXT_H_
#define NPUC_COMPILER_CORE_OPS_LOWER_CONTEXT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// The widths of the units' fields, from the core's data file.
struct VectorLimits {
  int max_inner = 64;               // inner extent; 64 is the widest in any published header
  int max_format_inner = 32;        // the same for fp16 -> fp32
  int max_middle = 4095;            // 12 bits
  int max_outer = 4095;             // 12 bits
  int max_stride = 65535;           // 16 bits, elements
  int max_window = 15;              // pooling, 4 bits
  int max_conv_side = 15;           // convolution: kernel, stride and columns of zeros
  int mask_block = 32;              // compressed weights: columns of a block of their mask,
  int max_mask_blocks = 63;         // and blocks of one command's mask
  int max_plane_side = 11;          // depthwise or one channel: kernel,
  int max_plane_taps = 49;          // taps,
  int max_plane_stride = 4;         // and stride
  int max_node_commands = 65536;    // of one operator that is cut into many
  int64_t max_data_bytes = 131072;  // of data: a map that needs more is computed in bands
};

// What an operator's Lower function may do: ask where its operands lie, say where its results lie,
// and emit commands. Every tensor is dense, row-major fp16. One context serves one node at a time;
// lowering/lower.cc implements it.
class LowerContext {
 public:
  virtual ~LowerContext() = default;

  virtual const VectorLimits& limits() const = 0;
  // MEMORY_PLAN: compatible: the simplest forms alone.
  virtual bool plain_commands() const = 0;

  // Where operand i lies. A constant is placed in weight_content on the first call.
  virtual absl::StatusOr<Operand> Input(int i) = 0;
  // A new buffer for output i, sized by its type.
  virtual Operand Output(int i) = 0;
  // The buffer for output i of an element-wise node: under MEMORY_PLAN: in_place that of operand
  // `operand` where it dies at this node and has the same size, else a new one.
  virtual Operand OutputOver(int i, int operand) = 0;
  // Output i is operand `operand` seen otherwise, from offset_bytes on; no command needed.
  virtual absl::Status AliasOutput(int i, int operand, int64_t offset_bytes) = 0;
  // Scratch memory that lives from its first to its last use.
  virtual Operand Temp(int64_t elements) = 0;
  // fp16 constants in weight_content; equal contents are placed once.
  virtual absl::StatusOr<Operand> Constant(absl::Span<const float> values) = 0;
  // `value`, `count` times, as fp16 in weight_content: all that ask for one value share the
  // longest.
  virtual Operand Repeated(float value, int64_t count) = 0;
  // A command's immediate: `value` as fp16, clamped to its range as constants are, with their
  // warnings.
  virtual uint16_t Immediate(float value) = 0;
  // `value`; where fp16 would make it 0, the least number of fp16 with its sign, with a warning.
  // For what keeps sums, divisors and bounds away from 0.
  virtual float AwayFromZero(float value) = 0;

  // The next command waits for all earlier ones. Each helper below and in vector_emit.h calls it
  // once before its first command; commands up to the next call must not depend on each other.
  virtual void Step() = 0;
  virtual void Emit(VectorCommand command) = 0;
  virtual void Emit(FullyConnectedCommand command) = 0;
  virtual void Emit(RawCommand command) = 0;

  // d [rows,n] = a [rows,k] x operand `weight_operand` of the node, which is a constant [k,n], or
  // [n,k] where transposed. Compresses and records the weight as the options say; splits what is
  // over the unit's limits.
  virtual absl::Status ConstantMatMul(Operand a, Operand d, int64_t rows, int weight_operand,
                                      bool transposed) = 0;
  // d [out_h,out_w,columns] = the convolution of a [in_h,in_w,in_c] with columns [first, first +
  // columns) of the constant weight [kernel_h,kernel_w,in_c,n] that operand `weight_operand` is,
  // with pad_columns columns of zeros left and right of `a`. Compresses and records the weight as
  // the options say. The kernel may be given as one tap of kernel_h * kernel_w * in_c channels
  // where `a` is gathered so.
  struct Convolution {
    int64_t in_h = 1, in_w = 1, in_c = 1;
    int64_t kernel_h = 1, kernel_w = 1;
    int64_t stride_h = 1, stride_w = 1;
    int64_t pad_columns = 0;
    int64_t first = 0, columns = 1;
    int bias_operand = -1;  // a constant of n numbers, added to the sums; -1: none
    int64_t out_h() const { return (in_h - kernel_h) / stride_h + 1; }
    int64_t out_w() const { return (in_w + 2 * pad_columns - kernel_w) / stride_w + 1; }
  };
  virtual absl::Status ConstantConvolution(Operand a, Operand d, const Convolution& convolution,
                                           int weight_operand) = 0;
  // d [rows,n] = a [rows,k] x b [k,n] with weights that are computed at run time.
  virtual absl::Status DynamicMatMul(Operand a, Operand b, Operand d, int64_t rows, int64_t k,
                                     int64_t n) = 0;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_LOWER_CONTEXT_H_
