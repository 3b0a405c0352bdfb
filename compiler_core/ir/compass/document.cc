#include "compiler_core/ir/compass/document.h"

#include <array>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace npuc::compass {
namespace {

constexpr std::array<std::pair<DType, absl::string_view>, 11> kTypes = {{
    {DType::kFloat16, "float16"},
    {DType::kFloat32, "float32"},
    {DType::kFloat64, "float64"},
    {DType::kInt8, "int8"},
    {DType::kInt16, "int16"},
    {DType::kInt32, "int32"},
    {DType::kInt64, "int64"},
    {DType::kUint8, "uint8"},
    {DType::kUint16, "uint16"},
    {DType::kUint32, "uint32"},
    {DType::kBool, "bool"},
}};

bool IsKey(absl::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

class Parser {
 public:
  explicit Parser(absl::string_view file_name) : file_name_(file_name) {}

  Document Run(absl::string_view text) {
    Document document;
    Block block;
    int line = 0;
    bool head = true;
    const auto finish = [&] {
      if (head) {
        document.head = std::move(block);
      } else {
        document.layers.push_back(std::move(block));
      }
      head = false;
      block = Block();
      keys_.clear();
    };
    while (!text.empty()) {
      ++line;
      const size_t end = text.find('\n');
      if (end == absl::string_view::npos) {
        Report(line, "the last line has no end (cut short?)");
        break;
      }
      const absl::string_view content = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (!content.empty()) {
        TakeLine(content, line, block);
      } else if (block.line == 0) {
        Report(line, "an empty line that ends nothing");
      } else {
        finish();
      }
    }
    if (block.line != 0 && !found_.has_errors()) {
      Report(line, "the last layer has no empty line behind it (cut short?)");
    }
    if (head && !found_.has_errors()) Report(1, "there are no lines");
    return document;
  }

  const Diagnostics& found() const { return found_; }

 private:
  void Report(int line, std::string message) {
    found_.Add({.kind = DiagnosticKind::kModelFileInvalid,
                .message = std::move(message),
                .file = file_name_,
                .line = line});
  }

  void TakeLine(absl::string_view content, int line, Block& block) {
    if (block.line == 0) block.line = line;
    const size_t equals = content.find('=');
    if (equals == absl::string_view::npos || !IsKey(content.substr(0, equals))) {
      return Report(line, absl::StrCat("'", Printable(content), "' is no KEY=VALUE"));
    }
    const std::string key(content.substr(0, equals));
    if (!keys_.insert(key).second) {
      return Report(line, absl::StrCat("a second ", key, " in the same block"));
    }
    block.entries.push_back({key, std::string(content.substr(equals + 1)), line});
  }

  std::string file_name_;
  Diagnostics found_;
  std::set<std::string> keys_;  // of the block
};

void AppendBlock(const Block& block, std::string& out) {
  for (const Entry& entry : block.entries) {
    absl::StrAppend(&out, entry.key, "=", entry.value, "\n");
  }
  out.push_back('\n');
}

}  // namespace

const Entry* Block::Find(absl::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

std::string Block::ValueOr(absl::string_view key, absl::string_view fallback) const {
  const Entry* entry = Find(key);
  return entry == nullptr ? std::string(fallback) : entry->value;
}

void Block::Set(std::string key, std::string value) {
  entries.push_back({std::move(key), std::move(value), 0});
}

absl::StatusOr<Document> ParseDocument(absl::string_view text, absl::string_view file_name,
                                       Diagnostics& diagnostics) {
  if (text.size() > kMaxTextBytes) {
    Diagnostics found;
    found.Add({.kind = DiagnosticKind::kModelFileInvalid,
               .message = absl::StrCat("a text of ", text.size(), " bytes; at most ", kMaxTextBytes,
                                       " are read"),
               .file = std::string(file_name)});
    diagnostics.Append(found);
    return found.ToStatus();
  }
  Parser parser(file_name);
  Document document = parser.Run(text);
  diagnostics.Append(parser.found());
  if (parser.found().has_errors()) return parser.found().ToStatus();
  return document;
}

std::string PrintDocument(const Document& document) {
  std::string out;
  AppendBlock(document.head, out);
  for (const Block& layer : document.layers) AppendBlock(layer, out);
  return out;
}

std::optional<std::vector<std::string>> ParseList(absl::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::string> items;
  if (text.empty()) return items;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    if (item.empty() || item.find_first_of("[]") != absl::string_view::npos) return std::nullopt;
    items.emplace_back(item);
  }
  return items;
}

std::optional<int64_t> ParseInt(absl::string_view text) {
  constexpr size_t kMaxDigits = 18;
  int64_t value = 0;
  // SimpleAtoi skips spaces and takes a plus, which the form does not have.
  const size_t digits = text.size() - (absl::StartsWith(text, "-") ? 1 : 0);
  if (digits == 0 || digits > kMaxDigits ||
      text.find_first_not_of("-0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(text, &value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::vector<int64_t>> ParseInts(absl::string_view text) {
  const std::optional<std::vector<std::string>> items = ParseList(text);
  if (!items.has_value()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const std::string& item : *items) {
    const std::optional<int64_t> number = ParseInt(item);
    if (!number.has_value()) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::vector<std::vector<int64_t>>> ParseIntLists(absl::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::vector<int64_t>> lists;
  while (!text.empty()) {
    if (!lists.empty()) {
      if (text.front() != ',') return std::nullopt;
      text.remove_prefix(1);
    }
    const size_t end = text.find(']');
    if (end == absl::string_view::npos) return std::nullopt;
    std::optional<std::vector<int64_t>> list = ParseInts(text.substr(0, end + 1));
    if (!list.has_value()) return std::nullopt;
    lists.push_back(*std::move(list));
    text.remove_prefix(end + 1);
  }
  return lists;
}

std::string PrintShape(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

DType TypeFromName(absl::string_view name) {
  for (const auto& [dtype, known] : kTypes) {
    if (known == name) return dtype;
  }
  return DType::kInvalid;
}

absl::string_view TypeName(DType dtype) {
  for (const auto& [known, name] : kTypes) {
    if (known == dtype) return name;
  }
  return "";
}

}  // namespace npuc::compass
