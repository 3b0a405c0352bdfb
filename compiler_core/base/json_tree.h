#ifndef NPUC_COMPILER_CORE_BASE_JSON_TREE_H_
#define NPUC_COMPILER_CORE_BASE_JSON_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace npuc {

// JSON as a tree that knows where each value stands and keeps duplicate keys, which nlohmann's own
// document drops: side inputs that people edit are checked against it.
struct JsonPlace {
  int line = 0;  // 1-based
  int column = 0;
};

struct JsonNode {
  enum class Kind : uint8_t { kNull, kBool, kInteger, kFloat, kString, kArray, kObject };
  struct Key {
    std::string name;
    JsonPlace place;
  };
  Kind kind = Kind::kNull;
  bool flag = false;            // kBool
  double number = 0;            // kInteger, kFloat
  int64_t integer = 0;          // kInteger; clamped to int64
  std::string text;             // kString; of numbers as written
  std::vector<JsonNode> items;  // kArray: elements; kObject: values of `keys`
  std::vector<Key> keys;        // kObject
  JsonPlace place;

  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kFloat; }
};

struct JsonError {
  bool is_syntax = false;  // else it is a limit, or no UTF-8
  JsonPlace place;
  std::string message;
};

struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int depth = 16;
  int64_t nodes = 1 << 20;
};

// False with `error` filled where `text` is no JSON within the limits. Thread-safe.
bool ParseJsonTree(absl::string_view text, const JsonLimits& limits, JsonNode& root,
                   JsonError& error);

// What a value is, for messages: "the text 'abc'", "12", "a list".
std::string DescribeJson(const JsonNode& node);

// The shortest decimal that reads back to the same double, as Python writes it ("1.0", "2e-05");
// "null" where JSON has no number.
std::string JsonNumber(double value);
// With quotes; what is no UTF-8 as U+FFFD.
std::string JsonQuoted(const std::string& text);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_JSON_TREE_H_
