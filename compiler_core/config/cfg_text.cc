#include "compiler_core/config/cfg_text.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/config/cfg_keys.h"

namespace npuc {
namespace {

bool IsQuote(char c) { return c == '"' || c == '\''; }

// The line without the comment behind white space that is in no quotes.
CfgText WithoutComment(const CfgText& line) {
  char quote = '\0';
  for (size_t i = 0; i < line.text.size(); ++i) {
    const char c = line.text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (IsQuote(c)) {
      quote = c;
    } else if ((c == '#' || c == ';') && (i == 0 || absl::ascii_isspace(line.text[i - 1]))) {
      return line.Upto(i);
    }
  }
  // A quote without its partner is an apostrophe.
  const size_t comment = quote == '\0' ? line.text.npos : line.text.find(" #");
  return line.Upto(comment);
}

class LineReader {
 public:
  explicit LineReader(ConfigReporter& reporter) : reporter_(reporter) {}

  CfgFile Read(absl::string_view text) {
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      absl::ConsumeSuffix(&line, "\r");
      ReadLine({line, {++number, 1}});
    }
    return std::move(file_);
  }

 private:
  void ReadLine(const CfgText& line) {
    const CfgText all = WithoutComment(line).Stripped();
    if (all.text.empty()) return;
    if (all.text[0] == '[') return OpenSection(all);
    if (all.place.column > 1 && !section_.empty()) {
      return Syntax(all, "a line that begins with a space would go on with the line above",
                    "write each value on one line");
    }
    const size_t at = all.text.find_first_of("=:");
    if (at == absl::string_view::npos || at == 0) {
      return Syntax(all, absl::StrCat("'", Printable(all.text, 80), "' is no KEY = VALUE"),
                    "write KEY = VALUE");
    }
    if (skip_) return;
    const CfgText name = all.Upto(at).Stripped();
    std::string key = absl::AsciiStrToLower(name.text);
    if (IsTwice(absl::StrCat(section_, ".", key), "key", name.place)) return;
    file_.entries.push_back(
        {section_, std::move(key), name, all.From(at + 1).Stripped().Unquoted()});
  }

  void Syntax(const CfgText& at, const std::string& message, absl::string_view fix) {
    reporter_.Add(DiagnosticKind::kConfigSyntax, at.place,
                  absl::StrCat("not a well-formed .cfg file: ", message), std::string(fix));
  }

  void OpenSection(const CfgText& line) {
    skip_ = true;
    if (line.text.back() != ']') {
      return Syntax(line, absl::StrCat("section '", Printable(line.text, 80), "' is not closed"),
                    "write [Section]");
    }
    const CfgText name = line.From(1).Upto(line.text.size() - 2).Stripped();
    const auto* const known =
        std::find(std::begin(kCfgSections), std::end(kCfgSections), name.text);
    if (known == std::end(kCfgSections)) {
      return reporter_.Add(DiagnosticKind::kConfigUnknownKey, line.place,
                           absl::StrCat("unknown section '", Printable(name.text, 80), "'"),
                           reporter_.Suggest(name.text, kCfgSections, "remove the section"));
    }
    skip_ = IsTwice(absl::StrCat("[", name.text, "]"), "section", line.place);
    section_ = *known;
    if (!skip_) file_.sections.emplace_back(section_);
  }

  // True where `what` was there before, which is reported.
  bool IsTwice(const std::string& what, absl::string_view is, ConfigPlace place) {
    const auto [first, added] = lines_.emplace(what, place.line);
    if (added) return false;
    reporter_.Add(DiagnosticKind::kConfigDuplicate, place,
                  absl::StrCat(is, " '", Printable(what, 80), "' is given twice, first on line ",
                               first->second),
                  "keep one of the two");
    return true;
  }

  ConfigReporter& reporter_;
  CfgFile file_;
  absl::string_view section_;
  bool skip_ = true;  // lines of a section that was refused
  std::map<std::string, int> lines_;
};

}  // namespace

CfgText CfgText::From(size_t offset) const {
  return {text.substr(offset), {place.line, place.column + static_cast<int>(offset)}};
}

CfgText CfgText::Stripped() const {
  const size_t front = text.size() - absl::StripLeadingAsciiWhitespace(text).size();
  CfgText out = From(front);
  out.text = absl::StripTrailingAsciiWhitespace(out.text);
  return out;
}

CfgText CfgText::Unquoted() const {
  if (text.size() < 2 || !IsQuote(text.front()) || text.find(text.front(), 1) != text.size() - 1) {
    return *this;
  }
  return From(1).Upto(text.size() - 2);
}

std::vector<CfgText> SplitAtCommas(const CfgText& list) {
  std::vector<CfgText> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.text.size(); ++i) {
    const char c = i < list.text.size() ? list.text[i] : ',';
    if (c == '[' || c == '{' || c == '(') ++depth;
    if (c == ']' || c == '}' || c == ')') --depth;
    if (i < list.text.size() && (c != ',' || depth > 0)) continue;
    parts.push_back(list.From(begin).Upto(i - begin).Stripped().Unquoted());
    begin = i + 1;
  }
  return parts;
}

CfgFile ReadCfgText(absl::string_view text, ConfigReporter& reporter) {
  return LineReader(reporter).Read(text);
}

}  // namespace npuc
