#ifndef NPUC_COMPILER_CORE_TARGET_FAMILY_H_
#define NPUC_COMPILER_CORE_TARGET_FAMILY_H_

#include <cstdint>
#include <initializer_list>

#include "compiler_core/target/core_spec.h"

namespace npuc {

// The command set of a core, which decides the backend. The core's data file states it.
enum class NpuFamily : uint8_t {
  kUnpublished,  // no command encoding is known: its operators are listed, nothing compiles for it
  kFp16,         // GRUS's commands (ISA.md)
  kInteger,      // integers of 8 and 16 bits with scales (INTEGER_ISA.md)
  kFixedPoint,   // the integer commands on 16 bits, with a power of two as scale of each tensor
};

// `core` is one of AllCores().
NpuFamily FamilyOf(const CoreSpec& core);

// True where this compiler has a backend for the core.
inline bool IsCompiled(const CoreSpec& core) { return FamilyOf(core) != NpuFamily::kUnpublished; }

// The first core of a family; every family has one.
const CoreSpec& FirstCoreOf(NpuFamily family);

// Families as a set that data can name: {NpuFamily::kInteger, NpuFamily::kFixedPoint}.
class FamilySet {
 public:
  constexpr FamilySet() = default;
  constexpr FamilySet(std::initializer_list<NpuFamily> families) {
    for (const NpuFamily family : families) bits_ |= Bit(family);
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool Holds(NpuFamily family) const { return (bits_ & Bit(family)) != 0; }

 private:
  static constexpr uint32_t Bit(NpuFamily family) { return 1u << static_cast<uint32_t>(family); }
  uint32_t bits_ = 0;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TARGET_FAMILY_H_
