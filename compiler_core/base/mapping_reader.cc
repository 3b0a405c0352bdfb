#include "compiler_core/base/mapping_reader.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/suggest.h"

namespace npuc {

using Kind = ConfigNode::Kind;

void MappingReader::Report(DiagnosticKind kind, const ConfigNode& at, std::string message,
                           std::string fix) {
  diagnostics_.Add({.kind = kind,
                    .message = std::move(message),
                    .file = std::string(file_),
                    .line = at.line,
                    .column = at.column,
                    .fix = std::move(fix)});
}

const ConfigNode* MappingReader::Find(absl::string_view key) {
  asked_.emplace(key);
  for (size_t i = 0; i + 1 < mapping_.items.size(); i += 2) {
    if (mapping_.items[i].kind == Kind::kScalar && mapping_.items[i].text == key) {
      return &mapping_.items[i + 1];
    }
  }
  return nullptr;
}

const ConfigNode* MappingReader::Needed(absl::string_view key) {
  const ConfigNode* const value = Find(key);
  if (value == nullptr) {
    Report(DiagnosticKind::kConfigMissingKey, mapping_, absl::StrCat(what_, " lack ", key),
           absl::StrCat("add a line ", key, ": ..."));
  }
  return value;
}

void MappingReader::Text(absl::string_view key, std::string& to) {
  const ConfigNode* const value = Needed(key);
  if (value == nullptr) return;
  if (value->kind != Kind::kScalar || value->text.empty() || value->text.size() > 1024) {
    return WrongType(key, *value, "a name");
  }
  to = value->text;
}

void MappingReader::Flag(absl::string_view key, bool& to) {
  const ConfigNode* const value = Find(key);
  if (value == nullptr) return;
  if (value->kind == Kind::kScalar && (value->text == "true" || value->text == "false")) {
    to = value->text == "true";
    return;
  }
  WrongType(key, *value, "true or false");
}

void MappingReader::Number(absl::string_view key, double above, double most, double& to) {
  const ConfigNode* const value = Find(key);
  if (value != nullptr) ReadNumber(key, *value, above, most, to);
}

void MappingReader::Whole(absl::string_view key, int64_t least, int64_t most, int64_t& to) {
  const ConfigNode* const value = Find(key);
  if (value != nullptr) ReadWhole(key, *value, least, most, to);
}

void MappingReader::Numbers(absl::string_view key, double above, double most,
                            std::vector<double>& to) {
  const ConfigNode* const value = Find(key);
  if (value == nullptr) return;
  to.clear();
  if (value->kind != Kind::kSequence) return WrongType(key, *value, "a list of numbers");
  for (const ConfigNode& item : value->items) {
    const bool is_list = item.kind == Kind::kSequence;
    for (const ConfigNode& number : is_list ? item.items : std::vector<ConfigNode>{item}) {
      if (to.size() == kMaxNumbers) {
        return WrongType(key, *value, absl::StrCat("at most ", kMaxNumbers, " numbers"));
      }
      ReadNumber(key, number, above, most, to.emplace_back());
    }
  }
}

void MappingReader::Wholes(absl::string_view key, size_t count, int64_t most,
                           std::vector<int64_t>& to) {
  const ConfigNode* const value = Needed(key);
  if (value == nullptr) return;
  if (value->kind != Kind::kSequence || value->items.size() != count) {
    return WrongType(key, *value, absl::StrCat("a list of ", count, " integers"));
  }
  for (const ConfigNode& item : value->items) ReadWhole(key, item, 1, most, to.emplace_back(1));
}

void MappingReader::Mappings(
    absl::string_view key, size_t most,
    const std::function<void(MappingReader& one, const ConfigNode& at)>& read) {
  const ConfigNode* const list = Needed(key);
  if (list == nullptr) return;
  if (list->kind != Kind::kSequence || list->items.empty() || list->items.size() > most) {
    return WrongType(key, *list, absl::StrCat("a list of 1 to ", most, " mappings"));
  }
  for (const ConfigNode& item : list->items) {
    if (item.kind != Kind::kMapping) {
      WrongType(key, item, "mappings");
      continue;
    }
    MappingReader one(item, what_, file_, diagnostics_);
    read(one, item);
    one.Finish();
  }
}

void MappingReader::WrongType(absl::string_view key, const ConfigNode& value,
                              absl::string_view wanted) {
  Report(DiagnosticKind::kConfigWrongType, value,
         absl::StrCat(key, " takes ", wanted, ", found ", DescribeNode(value)),
         "write one of these");
}

void MappingReader::NotAllowed(absl::string_view key, const ConfigNode& value,
                               std::string allowed) {
  Report(DiagnosticKind::kConfigValueNotAllowed, value,
         absl::StrCat(key, " is ", DescribeNode(value), "; allowed: ", allowed),
         "write one of these");
}

void MappingReader::Finish() {
  const std::vector<absl::string_view> known(asked_.begin(), asked_.end());
  Suggester suggester;
  for (size_t i = 0; i + 1 < mapping_.items.size(); i += 2) {
    const ConfigNode& key = mapping_.items[i];
    if (key.kind != Kind::kScalar || asked_.contains(key.text)) continue;
    Report(DiagnosticKind::kConfigUnknownKey, key,
           absl::StrCat("unknown key '", Printable(key.text, 80), "' in ", what_),
           suggester.DidYouMean(key.text, known, "remove the line"));
  }
}

void MappingReader::ReadNumber(absl::string_view key, const ConfigNode& value, double above,
                               double most, double& to) {
  double number = 0;
  if (value.kind != Kind::kScalar || !absl::SimpleAtod(value.text, &number)) {
    return WrongType(key, value, "a number");
  }
  if (!(number > above && number <= most)) {
    return NotAllowed(key, value, absl::StrCat("above ", above, ", at most ", most));
  }
  to = number;
}

void MappingReader::ReadWhole(absl::string_view key, const ConfigNode& value, int64_t least,
                              int64_t most, int64_t& to) {
  int64_t number = 0;
  if (value.kind != Kind::kScalar || !absl::SimpleAtoi(value.text, &number)) {
    return WrongType(key, value, "an integer");
  }
  if (number < least || number > most) {
    return NotAllowed(key, value, absl::StrCat(least, " to ", most));
  }
  to = number;
}

}  // namespace npuc
