#include "compiler_core/base/json_tree.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/json_positions.h"
#include "compiler_core/base/utf8.h"

namespace npuc {
namespace {

using Json = nlohmann::json;
using JsonKind = JsonNode::Kind;

class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(absl::string_view text, const JsonLimits& limits, JsonNode& root, JsonError& error)
      : positions_(text), limits_(limits), root_(root), error_(error) {}

  bool Parse() { return positions_.Parse(*this); }

  bool null() override { return Put(JsonKind::kNull) != nullptr; }
  bool boolean(bool value) override {
    JsonNode* node = Put(JsonKind::kBool);
    if (node != nullptr) node->flag = value;
    return node != nullptr;
  }
  bool number_integer(number_integer_t value) override { return Integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    return Integer(static_cast<int64_t>(std::min<uint64_t>(value, kMost)));
  }
  bool number_float(number_float_t value, const string_t& written) override {
    JsonNode* node = Put(JsonKind::kFloat);
    if (node == nullptr) return false;
    node->number = value;
    node->text = written;
    return true;
  }
  bool string(string_t& value) override {
    JsonNode* node = Put(JsonKind::kString);
    if (node != nullptr) node->text = std::move(value);
    return node != nullptr;
  }
  bool binary(binary_t&) override { return false; }  // JSON text has no binary values
  bool start_object(std::size_t) override { return Open(JsonKind::kObject); }
  bool start_array(std::size_t) override { return Open(JsonKind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    const size_t offset = positions_.NextToken();
    if (++nodes_ > limits_.nodes)
      return Limit(offset, absl::StrCat("over ", limits_.nodes, " values"));
    open_.back()->keys.push_back({std::move(name), positions_.PlaceOf(offset)});
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    error_ = positions_.SyntaxError(position, exception);
    return false;
  }

 private:
  bool Integer(int64_t value) {
    JsonNode* node = Put(JsonKind::kInteger);
    if (node == nullptr) return false;
    node->integer = value;
    node->number = static_cast<double>(value);
    node->text = absl::StrCat(value);
    return true;
  }

  bool Limit(size_t offset, std::string message) {
    error_ = {false, positions_.PlaceOf(offset), std::move(message)};
    return false;
  }

  // A new value at this place; null beyond the limits. Valid until the next one.
  JsonNode* Put(JsonKind kind) {
    const size_t offset = positions_.NextToken();
    if (++nodes_ > limits_.nodes) {
      Limit(offset, absl::StrCat("over ", limits_.nodes, " values"));
      return nullptr;
    }
    JsonNode* node = &root_;
    if (!open_.empty()) {
      open_.back()->items.emplace_back();
      node = &open_.back()->items.back();
    }
    node->kind = kind;
    node->place = positions_.PlaceOf(offset);
    return node;
  }

  bool Open(JsonKind kind) {
    if (static_cast<int>(open_.size()) >= limits_.depth) {
      return Limit(positions_.NextToken(),
                   absl::StrCat("values nested deeper than ", limits_.depth));
    }
    JsonNode* node = Put(kind);
    if (node == nullptr) return false;
    open_.push_back(node);  // its parent's items do not grow while it is open
    return true;
  }

  bool Close() {
    positions_.NextToken();
    open_.pop_back();
    return true;
  }

  JsonPositions positions_;
  const JsonLimits& limits_;
  JsonNode& root_;
  JsonError& error_;
  std::vector<JsonNode*> open_;
  int64_t nodes_ = 0;
};

}  // namespace

bool ParseJsonTree(absl::string_view text, const JsonLimits& limits, JsonNode& root,
                   JsonError& error) {
  if (text.size() > limits.bytes) {
    error = {false, {}, absl::StrCat("it has ", text.size(), " bytes, over ", limits.bytes)};
    return false;
  }
  if (const size_t invalid = FirstInvalidUtf8(text); invalid != absl::string_view::npos) {
    error = {false,
             {},
             absl::StrCat("byte ", Printable(text.substr(invalid, 1)), " at offset ", invalid,
                          " is not UTF-8")};
    return false;
  }
  if (absl::StripAsciiWhitespace(text).empty()) {
    error = {false, {}, "it is empty"};
    return false;
  }
  TreeBuilder builder(text, limits, root, error);
  try {
    return builder.Parse();
  } catch (const std::exception& e) {
    error = {true, {}, absl::StrCat("the JSON reader failed: ", Printable(e.what()))};
    return false;
  }
}

std::string DescribeJson(const JsonNode& node) {
  switch (node.kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return node.flag ? "true" : "false";
    case JsonKind::kInteger:
    case JsonKind::kFloat:
      return Printable(node.text, 60);
    case JsonKind::kString:
      return absl::StrCat("the text '", Printable(node.text, 60), "'");
    case JsonKind::kArray:
      return "a list";
    case JsonKind::kObject:
      return "an object";
  }
  return "";
}

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  char buffer[40];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string out(buffer, end.ptr);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string JsonQuoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace npuc
