#include "compiler_core/frontends/darknet/cfg_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/frontends/common/sniff.h"

namespace npuc::darknet {
namespace {

constexpr char kFix[] =
    "name the .cfg of a Darknet net as MODEL_FILE, its .weights as WEIGHTS_FILE";

// A line without its white space; empty for comments.
std::string Stripped(absl::string_view line) {
  std::string text;
  for (const char c : line) {
    if (!absl::ascii_isspace(static_cast<unsigned char>(c))) text.push_back(c);
  }
  if (!text.empty() && (text[0] == '#' || text[0] == ';')) text.clear();
  return text;
}

bool IsNetSection(absl::string_view line) { return line == "[net]" || line == "[network]"; }

// Reads lines into sections; problems are reported with their line.
class Reader {
 public:
  Reader(absl::string_view file, Diagnostics* diagnostics)
      : file_(file), diagnostics_(*diagnostics) {}

  std::vector<Section> Read(absl::string_view bytes) {
    int number = 0;
    for (const absl::string_view line : absl::StrSplit(bytes, '\n')) {
      ++number;
      const std::string text = Stripped(line);
      if (!text.empty() && !TakeLine(text, number)) break;
    }
    return std::move(sections_);
  }

 private:
  // False: a limit is reached.
  bool TakeLine(const std::string& text, int number) {
    if (text[0] == '[') return OpenSection(text, number);
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0) {
      Report(number, absl::StrCat("'", Printable(text, 80), "' is no key=value"),
             "write key=value, or begin the line with # to make it a comment");
      return true;
    }
    if (sections_.empty()) {
      Report(number, "a key in front of the first section", "begin the file with [net]");
      return false;
    }
    Section& section = sections_.back();
    if (section.options.size() == kMaxOptions) {
      Refuse(absl::StrCat("a section has more than ", kMaxOptions, " keys"));
      return false;
    }
    section.options.push_back({text.substr(0, at), text.substr(at + 1), number});
    return true;
  }

  bool OpenSection(const std::string& text, int number) {
    if (text.back() != ']' || text.size() < 3) {
      Report(number, absl::StrCat("'", Printable(text, 80), "' is no [section]"),
             "write the section's name between [ and ]");
      return true;
    }
    if (sections_.size() > kMaxLayers) {
      Refuse(absl::StrCat("the net has more than ", kMaxLayers, " layers"));
      return false;
    }
    sections_.push_back({text.substr(1, text.size() - 2), number});
    return true;
  }

  void Report(int line, std::string message, std::string fix) {
    diagnostics_.Add({.kind = DiagnosticKind::kDarknetSyntax,
                      .message = std::move(message),
                      .file = std::string(file_),
                      .line = line,
                      .fix = std::move(fix)});
  }
  void Refuse(std::string message) {
    (void)RefuseFile(DiagnosticKind::kModelLimitExceeded, file_, std::move(message),
                     "compile a smaller model", diagnostics_);
  }

  const absl::string_view file_;
  Diagnostics& diagnostics_;
  std::vector<Section> sections_;
};

}  // namespace

const Option* Section::Find(absl::string_view key) const {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [key](const Option& option) { return option.key == key; });
  return found == options.end() ? nullptr : &*found;
}

bool IsDarknetCfg(absl::string_view bytes) {
  if (!IsMostlyText(bytes)) return false;
  for (const absl::string_view line : absl::StrSplit(bytes.substr(0, kMaxCfgBytes), '\n')) {
    const std::string text = Stripped(line);
    if (!text.empty()) return IsNetSection(text);
  }
  return false;
}

std::optional<CfgFile> ParseCfg(absl::string_view bytes, absl::string_view file,
                                Diagnostics& diagnostics) {
  const auto refuse = [&](DiagnosticKind kind, std::string message, std::string fix) {
    (void)RefuseFile(kind, file, std::move(message), std::move(fix), diagnostics);
    return std::nullopt;
  };
  if (bytes.empty()) return refuse(DiagnosticKind::kEmptyModel, "the model file is empty", kFix);
  if (bytes.size() > kMaxCfgBytes) {
    return refuse(DiagnosticKind::kModelLimitExceeded,
                  absl::StrCat("the .cfg has ", bytes.size(), " bytes; allowed are ", kMaxCfgBytes),
                  kFix);
  }
  if (!IsDarknetCfg(bytes)) {
    const FileGuess guess = GuessFileKind(bytes);
    const bool is_known = !guess.what.empty() && guess.what != "text";
    return refuse(
        DiagnosticKind::kNotADarknetCfg,
        absl::StrCat("the file is no Darknet net, which begins with [net]; it looks like ",
                     is_known ? guess.what : "something else"),
        is_known ? guess.fix : kFix);
  }
  const size_t errors_before = diagnostics.error_count();
  std::vector<Section> sections = Reader(file, &diagnostics).Read(bytes);
  if (diagnostics.error_count() != errors_before) return std::nullopt;
  CfgFile cfg{.net = std::move(sections.front()), .layers = {}};
  cfg.layers.assign(std::make_move_iterator(sections.begin() + 1),
                    std::make_move_iterator(sections.end()));
  if (cfg.layers.empty()) {
    return refuse(DiagnosticKind::kNotADarknetCfg, "the net has no layers", kFix);
  }
  return cfg;
}

}  // namespace npuc::darknet
