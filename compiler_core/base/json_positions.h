#ifndef NPUC_COMPILER_CORE_BASE_JSON_POSITIONS_H_
#define NPUC_COMPILER_CORE_BASE_JSON_POSITIONS_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/json_tree.h"

namespace npuc {

// Where the tokens of a JSON text stand, which the events of nlohmann's SAX parser do not say. The
// text outlives it. Used once.
class JsonPositions {
 public:
  explicit JsonPositions(absl::string_view text) : text_(text) {}

  // Parses the text; an event's handler calls NextToken once.
  template <typename Handler>
  bool Parse(Handler& handler) {
    return nlohmann::json::sax_parse(CountingIterator(text_.data(), &consumed_),
                                     CountingIterator(text_.data() + text_.size(), &consumed_),
                                     &handler);
  }

  // Offset of the token that was just read: what follows the last token, without separators.
  size_t NextToken() {
    size_t offset = token_end_;
    while (offset < text_.size() &&
           (absl::ascii_isspace(text_[offset]) || text_[offset] == ',' || text_[offset] == ':')) {
      ++offset;
    }
    token_end_ = consumed_;
    return offset;
  }

  // Lines are counted once, so offsets must not fall from call to call.
  JsonPlace PlaceOf(size_t offset) {
    for (; line_offset_ < offset; ++line_offset_) {
      if (text_[line_offset_] != '\n') continue;
      ++line_;
      line_start_ = line_offset_ + 1;
    }
    return {line_, static_cast<int>(std::max(offset, line_start_) - line_start_) + 1};
  }

  // The place and message of a parse_error event.
  JsonError SyntaxError(std::size_t position, const nlohmann::detail::exception& error) {
    // "[json.exception...] parse error at line 1, column 2: syntax error while ..."
    absl::string_view what = error.what();
    const size_t id_end = what.find("] ");
    if (id_end != absl::string_view::npos) what.remove_prefix(id_end + 2);
    if (absl::StartsWith(what, "parse error at ")) {
      const size_t colon = what.find(": ");
      if (colon != absl::string_view::npos) what.remove_prefix(colon + 2);
    }
    return {true, PlaceOf(std::min(position > 0 ? position - 1 : 0, text_.size())),
            absl::StrCat("not well-formed JSON: ", Printable(what))};
  }

 private:
  // Hands bytes to the lexer and counts them.
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

  absl::string_view text_;
  size_t consumed_ = 0;     // bytes that the lexer took
  size_t token_end_ = 0;    // consumed_ after the last token
  size_t line_offset_ = 0;  // where the counting of lines got to
  int line_ = 1;
  size_t line_start_ = 0;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_JSON_POSITIONS_H_
