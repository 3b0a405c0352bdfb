#ifndef NPUC_COMPILER_CORE_BASE_STRONG_INT_H_
#define NPUC_COMPILER_CORE_BASE_STRONG_INT_H_

#include <compare>
#include <cstdint>
#include <functional>

namespace npuc {

// An integer that does not mix with other kinds of integers: node ids, value ids, byte offsets.
// Tag is any (incomplete) type; Rep the storage. A default-constructed id is invalid (-1).
template <typename Tag, typename Rep = int32_t>
class StrongInt {
 public:
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr bool valid() const { return value_ >= 0; }
  constexpr auto operator<=>(const StrongInt&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const StrongInt& id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_ = -1;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_STRONG_INT_H_
