#ifndef NPUC_COMPILER_CORE_BASE_FIELD_COUNT_H_
#define NPUC_COMPILER_CORE_BASE_FIELD_COUNT_H_

#include <cstddef>
#include <optional>

namespace npuc {
namespace field_count {

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Converts to whatever type a field has. An optional converts from it by its own constructor; a
// second way would be ambiguous.
struct AnyField {
  template <typename T>
  requires(!kIsOptional<T>) constexpr operator T() const { return T(); }
};

}  // namespace field_count

// The number of fields of a struct without base classes, constructors and arrays, so that a list of
// its fields can be checked to be complete.
template <typename T, typename... Fields>
consteval size_t FieldCount() {
  if constexpr (requires { T{Fields()..., field_count::AnyField()}; }) {
    return FieldCount<T, Fields..., field_count::AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FIELD_COUNT_H_
