#ifndef NPUC_COMPILER_CORE_QUANT_COUNTING_ITERATOR_H_
#define NPUC_COMPILER_CORE_QUANT_COUNTING_ITERATOR_H_

#include <cstddef>
#include <iterator>

namespace npuc {

// Hands bytes to nlohmann's lexer and counts them, since SAX events carry no position.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* consumed) : at_(at), consumed_(consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* consumed_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_COUNTING_ITERATOR_H_
