#ifndef NPUC_COMPILER_CORE_TARGET_FAMILY_H_
#define NPUC_COMPILER_CORE_TARGET_FAMILY_H_

#include <cstdint>
#include <initializer_list>

#include "compiler_core/target/core_spec.h"

namespace npuc {

// The first core of a family, in the order of AllCores(); every family has one.
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
