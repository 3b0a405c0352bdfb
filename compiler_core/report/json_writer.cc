#include "compiler_core/report/json_writer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler_core/base/find_rare.h"

namespace npuc {

using Json = nlohmann::ordered_json;

void JsonWriter::Place() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  out_ += is_empty_ ? "\n" : ",\n";
  out_.append(depth_, ' ');
  is_empty_ = false;
}

void JsonWriter::Begin(char bracket) {
  Place();
  out_ += bracket;
  ++depth_;
  is_empty_ = true;
}

void JsonWriter::End(char bracket) {
  --depth_;
  if (!is_empty_) {
    out_ += '\n';
    out_.append(depth_, ' ');
  }
  out_ += bracket;
  is_empty_ = false;
}

void JsonWriter::AppendText(absl::string_view text) {
  const absl::Span<const char> chars(text.data(), text.size());
  const auto special =
      FindRare(chars, [](char c) { return c < 0x20 || c >= 0x7f || c == '"' || c == '\\'; });
  if (special != chars.end()) {
    out_ += Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  out_ += '"';
  out_.append(text.data(), text.size());
  out_ += '"';
}

void JsonWriter::Key(absl::string_view key) {
  Place();
  AppendText(key);
  out_ += ": ";
  after_key_ = true;
}

void JsonWriter::Scalar(absl::string_view text) {
  Place();
  out_.append(text.data(), text.size());
}

void JsonWriter::Value(absl::string_view text) {
  Place();
  AppendText(text);
}

void JsonWriter::Value(double number) {
  if (!std::isfinite(number)) {
    Scalar("null");
    return;
  }
  // nlohmann's own digits: the library's shortest ones may differ in the last.
  std::array<char, 64> digits;
  const char* end =
      nlohmann::detail::to_chars(digits.data(), digits.data() + digits.size(), number);
  Scalar(absl::string_view(digits.data(), static_cast<size_t>(end - digits.data())));
}

void JsonWriter::Value(absl::Span<const int64_t> numbers) {
  BeginArray();
  for (const int64_t number : numbers) Value(number);
  EndArray();
}

void JsonWriter::Value(const Json& part) {
  Place();
  for (const char c : part.dump(1, ' ', false, Json::error_handler_t::replace)) {
    out_ += c;
    if (c == '\n') out_.append(depth_, ' ');
  }
}

}  // namespace npuc
