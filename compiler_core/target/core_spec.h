#ifndef NPUC_COMPILER_CORE_TARGET_CORE_SPEC_H_
#define NPUC_COMPILER_CORE_TARGET_CORE_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/compile_options.h"

namespace npuc {

// What is known about each NPU core, as data: cores/*.yaml, which generate_cores.py turns into
// constant tables when the project is built. Nothing is parsed or allocated at run time. All of it
// is immutable and lives as long as the program, so pointers and views into it never dangle and
// every function here is thread-safe.

// A restriction's kind. What a checker evaluates depends on the kind alone; the facts of a node
// (name -> bool, integer or text) that it needs are named by SupportRule::facts:
//   kind                                            holds where
//   kConstInput kStaticShape kCompileTimeOnly
//   kOnlyInPattern kPositiveInput kSameShape
//   kTranspose2d kRequiresAttr kOneDimPerItem       facts[0] (a bool) is true
//   kLayout kPadding                                facts[0] (text) equals `text`
//   kRange kRank kMaxRank kEqualConst               lo <= facts[0] <= hi
//   kProductMax                                     the product of all facts, each rounded up to a
//                                                   multiple of round_up_to, is <= hi
//   kEqual                                          facts[0] == facts[1]
//   kNotBothOne                                     facts[0] != 1 or facts[1] != 1
//   kDivisible                                      facts[0] is a multiple of facts[1]
//   kOdd                                            facts[0] is odd
enum class RuleKind : uint8_t {
  kConstInput,
  kStaticShape,
  kCompileTimeOnly,
  kOnlyInPattern,
  kPositiveInput,
  kSameShape,
  kTranspose2d,
  kRequiresAttr,
  kOneDimPerItem,
  kLayout,
  kPadding,
  kRange,
  kRank,
  kMaxRank,
  kEqualConst,
  kProductMax,
  kEqual,
  kNotBothOne,
  kDivisible,
  kOdd,
};

// An integer fact that equals (or differs from) a value.
struct FactCondition {
  absl::string_view fact;
  bool equal = true;
  int64_t value = 0;
};

// One restriction on one operator.
struct SupportRule {
  absl::string_view id;  // "GRUS/TF/Conv2D/range/kernel_h@in_channels=1": unique and stable
  RuleKind kind;
  bool advisory = false;  // breaking it is slow, not wrong: a warning
  absl::Span<const absl::string_view> facts;
  int64_t lo = 0;
  int64_t hi = 0;
  int64_t round_up_to = 1;
  absl::string_view text;                // layout, padding; what kOnlyInPattern, kRequiresAttr name
  absl::Span<const FactCondition> when;  // the rule counts only where all of these hold
  absl::string_view note;                // for people; may be empty
  // Not empty: what this compiler does where the rule is broken ("the matrix is split"), so that
  // breaking it costs speed or memory, not the compile.
  absl::string_view rewrite;
  absl::string_view source;  // "compiler_core/target/cores/grus.yaml:57"
};

// An operator that a core accepts.
struct OpSupport {
  absl::string_view op;  // the framework's operator type (TF), the list's name for it (PT)
  absl::Span<const absl::string_view> torch_names;  // PT: the functions that it stands for
  absl::Span<const SupportRule> rules;
  absl::string_view note;
  absl::string_view source;  // the document that lists it
  // The vendor's documents do not list it: this compiler rewrites it into operators that they list.
  // `note` says into which.
  bool is_rewrite = false;
};

struct OpList {
  Framework framework;
  absl::Span<const OpSupport> ops;  // in ascending order of `op`
};

// The numbers that a command set imposes. Bytes, elements or bits, as the names say.
struct CoreLimits {
  int64_t macs;
  int64_t sram_bytes;
  int64_t npu_sram_bytes;  // the part of sram_bytes that the NPU has by default
  int64_t region_alignment_bytes;
  int64_t weight_alignment_bytes;
  int64_t address_bits;
  int64_t matrix_block;          // a weight matrix's sides are rounded up to multiples of this,
  int64_t matrix_product_limit;  // and the product must then be below this
  int64_t matrix_dim_bits;
  int64_t outer_extent_bits;
  int64_t middle_extent_bits;
  int64_t inner_extent_bits;
  int64_t stride_bits;
  int64_t immediate_bits;
  int64_t pool_window_max;
  int64_t weight_code_bits;
  int64_t vector_lanes;            // widest inner extent of a general computation command
  int64_t format_lanes;            // the same for fp16 -> fp32
  int64_t buffer_alignment_bytes;  // of buffers in data_content
  int64_t conv_side_max;           // kernel and stride sides of a convolution command
  int64_t plane_side_max;          // kernel sides of a depthwise or one-channel convolution
  int64_t plane_taps_max;          // and their product
  int64_t plane_stride_max;        // and its stride
  int64_t node_commands_max;       // copies, or parts of a broadcast, that one operator may become
};

// What a command costs in time: an estimate, since no vendor publishes timing. Whole numbers > 0.
// Computing is a command's multiply-adds at macs_per_cycle, or its elements at elements_per_cycle
// where it does not multiply; moving is the bytes that it reads and writes at bytes_per_cycle.
// With one set of command registers a command takes command_cycles + max(computing, moving). With
// two sets a core fetches its next command while one runs (README.md). Commands follow one another.
struct CycleModel {
  int64_t command_cycles;      // to fetch a command and set the unit up
  int64_t register_sets;       // of commands, 1 or 2
  int64_t macs_per_cycle;      // matrix and convolution commands
  int64_t elements_per_cycle;  // all others
  int64_t bytes_per_cycle;     // between memory and the units of a core
};

// What a core of the integer command set has (INTEGER_ISA.md). Whole numbers > 0.
struct IntegerLimits {
  int64_t cores;    // that run commands side by side, 1 to 8
  int64_t engines;  // of each
  int64_t sram_bytes;
  int64_t buffer_alignment_bytes;  // of buffers in data_content
};

// The command set of a core, which decides the back end. The core's data file states it.
enum class NpuFamily : uint8_t {
  kFp16,        // GRUS's commands (ISA.md)
  kFp16Books,   // the same with weights by code books of 4 to 8 bits: LEO (ISA.md, "LEO")
  kInteger,     // integers of 8 and 16 bits with scales (INTEGER_ISA.md)
  kFixedPoint,  // the integer commands on 16 bits, with a power of two as scale of each tensor:
                // gxnpuc's cores that need -q
};

struct CoreSpec {
  absl::string_view name;   // "GRUS"
  absl::string_view alias;  // "V150"
  NpuFamily family = NpuFamily::kFp16;
  absl::Span<const absl::string_view> chips;
  absl::Span<const absl::string_view> npu_units;  // empty: not published
  absl::Span<const absl::string_view> output_types;
  absl::string_view compute_type;  // "fp16"; empty: not published
  absl::string_view note;
  const CoreLimits* limits = nullptr;      // not null: a core of the fp16 command set
  const IntegerLimits* integer = nullptr;  // not null: a core of the integer command set
  const CycleModel* cycles = nullptr;      // null: no estimate; CyclesOf has that of a unit
  // One for each of npu_units, where these differ; else empty.
  absl::Span<const CycleModel> unit_cycles;
  // One per framework that has one; of a core of the integer command set, whose lowering decides,
  // none.
  absl::Span<const OpList> op_lists;
};

inline bool IsFixedPoint(const CoreSpec& core) { return core.family == NpuFamily::kFixedPoint; }
// True where weights are coded by books (ISA.md, "LEO").
inline bool HasCodeBooks(const CoreSpec& core) { return core.family == NpuFamily::kFp16Books; }

// The estimate for one of the core's NPU units; the core's own where units are alike or the name is
// none of them.
const CycleModel* CyclesOf(const CoreSpec& core, absl::string_view npu_unit);

// Every core, GRUS first.
absl::Span<const CoreSpec* const> AllCores();

// By name or alias, in the case that the documents use; null where unknown.
const CoreSpec* FindCore(absl::string_view name_or_alias);

// The cores that can run commands side by side: 1 where the name is unknown, too.
int64_t CoresOf(absl::string_view name_or_alias);
int64_t CoresOf(const CoreSpec& core);

// The operators that `core` accepts from `framework`; empty where it has no list of that one.
absl::Span<const OpSupport> OpsOf(const CoreSpec& core, Framework framework);

// Null where the core does not accept `op`.
const OpSupport* FindOp(const CoreSpec& core, Framework framework, absl::string_view op);

// The restriction as a sentence without a full stop: "where in_channels is 1, kernel_h must be
// 1..11".
std::string Describe(const SupportRule& rule);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TARGET_CORE_SPEC_H_
