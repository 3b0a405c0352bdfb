#include "compiler_core/base/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/utf8.h"

namespace npuc {
namespace {

// yaml-cpp reads ahead to the end of a flow collection before its first event, at some hundred
// bytes a token, so tokens are bounded on the text.
constexpr int64_t kMaxFlowTokens = 3 * kMaxConfigNodes;

struct Place {
  int line = 0;
  int column = 0;
};

Place PlaceOf(absl::string_view text, size_t offset) {
  Place place{1, 1};
  for (size_t i = 0; i < offset; ++i) {
    ++place.column;
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    }
  }
  return place;
}

Diagnostic Problem(DiagnosticKind kind, absl::string_view name, Place place, std::string message,
                   std::string fix) {
  return {.kind = kind,
          .message = std::move(message),
          .file = std::string(name),
          .line = place.line,
          .column = place.column,
          .fix = std::move(fix)};
}

// Thrown by TreeBuilder through yaml-cpp, and caught by ParseConfigYaml, to end the reading.
struct StopReading {};

// Builds the tree from events, and refuses what configs may not use.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(absl::string_view name, Diagnostics& diagnostics)
      : name_(name), diagnostics_(diagnostics) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Refuse(mark, "a second YAML document", "keep one document", true);
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(Start(ConfigNode::Kind::kNull, mark, "", anchor));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(mark, "an alias (*name)", "write the value out", false);
    Add(Start(ConfigNode::Kind::kNull, mark, "", YAML::NullAnchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    ConfigNode node = Start(ConfigNode::Kind::kScalar, mark, tag, anchor);
    node.plain = tag != "!";  // yaml-cpp marks quoted scalars with the tag "!"
    node.text = value;
    if (!node.plain) last_quoted_ = mark;
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Start(ConfigNode::Kind::kSequence, mark, tag, anchor), mark);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Start(ConfigNode::Kind::kMapping, mark, tag, anchor), mark);
  }
  void OnMapEnd() override { Close(); }

  ConfigNode& root() { return root_; }
  // Where the last scalar that is not plain begins; null where there is none.
  const YAML::Mark& last_quoted() const { return last_quoted_; }

 private:
  ConfigNode Start(ConfigNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
                   YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) Refuse(mark, "an anchor (&name)", "remove it", false);
    if (!tag.empty() && tag != "!" && tag != "?") {
      Refuse(mark, absl::StrCat("the tag '", Printable(tag, 60), "'"), "remove it", false);
    }
    if (++nodes_ > kMaxConfigNodes) {
      Refuse(mark, absl::StrCat("more than ", kMaxConfigNodes, " values"), "shorten the config",
             true);
    }
    ConfigNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }
  void Open(ConfigNode node, const YAML::Mark& mark) {
    if (open_.size() >= kMaxConfigDepth) {
      Refuse(mark, absl::StrCat("values nested deeper than ", kMaxConfigDepth),
             "no key needs more than 3 levels", true);
    }
    open_.push_back(std::move(node));
  }
  void Close() {
    ConfigNode node = std::move(open_.back());
    open_.pop_back();
    Add(std::move(node));
  }
  void Add(ConfigNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().items.push_back(std::move(node));
    }
  }
  void Refuse(const YAML::Mark& mark, absl::string_view what, std::string fix, bool stop) {
    diagnostics_.Add(Problem(DiagnosticKind::kConfigYamlFeatureRefused, name_,
                             {mark.line + 1, mark.column + 1},
                             absl::StrCat("configs may not have ", what), std::move(fix)));
    if (stop) throw StopReading();
  }

  absl::string_view name_;
  Diagnostics& diagnostics_;
  int documents_ = 0;
  int nodes_ = 0;
  ConfigNode root_;
  std::vector<ConfigNode> open_;
  YAML::Mark last_quoted_ = YAML::Mark::null_mark();
};

// yaml-cpp takes the end of the text for a closing quote. Only the last quoted scalar can be open.
bool QuoteIsClosed(absl::string_view text, const YAML::Mark& start) {
  if (start.is_null() || static_cast<size_t>(start.pos) >= text.size()) return true;
  const char quote = text[start.pos];
  if (quote != '"' && quote != '\'') return true;  // a block scalar
  for (size_t i = start.pos + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) return true;
      ++i;  // a doubled single quote stands for one
    }
  }
  return false;
}

// Mappings have scalar keys, each once. Recursion is bounded by kMaxConfigDepth.
void CheckMappings(const ConfigNode& node, absl::string_view name, Diagnostics& diagnostics) {
  if (node.kind == ConfigNode::Kind::kMapping) {
    std::map<absl::string_view, int> first_line;
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const ConfigNode& key = node.items[i];
      const Place place{key.line, key.column};
      if (key.kind != ConfigNode::Kind::kScalar) {
        diagnostics.Add(Problem(DiagnosticKind::kConfigWrongType, name, place,
                                absl::StrCat("a key must be a name, found ", DescribeNode(key)),
                                "write KEY: value"));
        continue;
      }
      const auto [it, inserted] = first_line.emplace(key.text, key.line);
      if (inserted) continue;
      diagnostics.Add(Problem(DiagnosticKind::kConfigDuplicate, name, place,
                              absl::StrCat("key '", Printable(key.text),
                                           "' is given twice, first on line ", it->second),
                              "keep one of the two"));
    }
  }
  for (const ConfigNode& item : node.items) CheckMappings(item, name, diagnostics);
}

}  // namespace

bool CheckConfigText(absl::string_view text, absl::string_view name, Diagnostics& diagnostics) {
  const auto fail = [&](size_t offset, std::string message, std::string fix) {
    diagnostics.Add(Problem(DiagnosticKind::kConfigUnreadable, name, PlaceOf(text, offset),
                            std::move(message), std::move(fix)));
    return false;
  };
  if (text.size() > kMaxYamlBytes) {
    return fail(0, absl::StrCat("the config has ", text.size(), " bytes, over ", kMaxYamlBytes),
                "name the config, not the model");
  }
  const size_t invalid = FirstInvalidUtf8(text);
  if (invalid != absl::string_view::npos) {
    return fail(invalid, absl::StrCat("byte ", Printable(text.substr(invalid, 1)), " is not UTF-8"),
                "save the config as UTF-8");
  }
  int64_t flow_tokens = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
      return fail(i, absl::StrCat("control character ", Printable(text.substr(i, 1))),
                  "save the config as plain text");
    }
    if ((c == '[' || c == '{' || c == ',') && ++flow_tokens > kMaxFlowTokens) {
      return fail(i, absl::StrCat("more than ", kMaxFlowTokens, " of the characters [ { ,"),
                  "shorten the config");
    }
  }
  return true;
}

std::optional<ConfigNode> ParseConfigYaml(absl::string_view text, absl::string_view name,
                                          Diagnostics& diagnostics) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // a byte order mark
  if (!CheckConfigText(text, name, diagnostics)) return std::nullopt;
  const size_t errors_before = diagnostics.error_count();
  TreeBuilder builder(name, diagnostics);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    const YAML::Mark& quoted = builder.last_quoted();
    if (!QuoteIsClosed(text, quoted)) {
      diagnostics.Add(
          Problem(DiagnosticKind::kConfigSyntax, name, {quoted.line + 1, quoted.column + 1},
                  "not well-formed YAML: the quoted text is not closed", "close the quote"));
    }
  } catch (const StopReading&) {  // the diagnostic is there already
  } catch (const YAML::Exception& e) {
    diagnostics.Add(Problem(DiagnosticKind::kConfigSyntax, name,
                            e.mark.is_null() ? Place{} : Place{e.mark.line + 1, e.mark.column + 1},
                            absl::StrCat("not well-formed YAML: ", Printable(e.msg)),
                            "correct the syntax at this place or just before it"));
  } catch (const std::exception& e) {
    diagnostics.Add(Problem(DiagnosticKind::kConfigSyntax, name, {},
                            absl::StrCat("the YAML reader failed: ", Printable(e.what())),
                            "simplify the config"));
  }
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  CheckMappings(builder.root(), name, diagnostics);
  return std::move(builder.root());
}

std::string DescribeNode(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "nothing";
    case ConfigNode::Kind::kSequence:
      return "a list";
    case ConfigNode::Kind::kMapping:
      return "a mapping";
    case ConfigNode::Kind::kScalar:
      break;
  }
  return absl::StrCat(node.plain ? "'" : "the quoted text '", Printable(node.text, 80), "'");
}

}  // namespace npuc
