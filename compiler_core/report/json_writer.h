#ifndef NPUC_COMPILER_CORE_REPORT_JSON_WRITER_H_
#define NPUC_COMPILER_CORE_REPORT_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"

namespace npuc {

// Writes JSON as text at once, to the byte what nlohmann's dump(1, ' ', false, replace) makes of
// the same document. For documents of thousands of entries: building those as a tree takes ten
// times as long. The caller pairs Begin and End, and gives each value of an object a key.
class JsonWriter {
 public:
  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }
  void Key(absl::string_view key);

  void Value(absl::string_view text);
  void Value(const char* text) { Value(absl::string_view(text)); }
  void Value(const std::string& text) { Value(absl::string_view(text)); }
  void Value(double number);  // null where it is not finite
  void Value(absl::Span<const int64_t> numbers);
  void Value(const std::vector<int64_t>& numbers) { Value(absl::MakeConstSpan(numbers)); }
  void Value(const nlohmann::ordered_json& part);
  template <std::same_as<bool> Bool>
  void Value(Bool value) {
    Scalar(value ? "true" : "false");
  }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) void Value(Integer number) {
    Scalar(std::to_string(number));
  }

  template <typename T>
  void Member(absl::string_view key, const T& value) {
    Key(key);
    Value(value);
  }
  // Members one by one: key, value, key, value ...
  template <typename T, typename... Rest>
  void Members(absl::string_view key, const T& value, const Rest&... rest) {
    Member(key, value);
    if constexpr (sizeof...(rest) > 0) Members(rest...);
  }

  std::string Take() { return std::move(out_); }

 private:
  void Begin(char bracket);
  void End(char bracket);
  // A new line for what follows, unless that is the value of a key.
  void Place();
  void Scalar(absl::string_view text);
  void AppendText(absl::string_view text);

  std::string out_;
  size_t depth_ = 0;
  bool is_empty_ = true;    // what was begun last holds nothing yet
  bool after_key_ = false;  // the next value stands behind its key
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_JSON_WRITER_H_
