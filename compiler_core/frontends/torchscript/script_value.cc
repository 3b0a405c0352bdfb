#include "compiler_core/frontends/torchscript/script_value.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::pt {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxText = 400;

void AppendText(const ScriptValue& value, int depth, std::string& text);

void AppendItems(const std::vector<ScriptValue>& items, int depth, std::string& text) {
  for (size_t i = 0; i < items.size() && text.size() < kMaxText; ++i) {
    if (i > 0) absl::StrAppend(&text, ", ");
    AppendText(items[i], depth + 1, text);
  }
}

void AppendText(const ScriptValue& value, int depth, std::string& text) {
  if (depth > kMaxDepth || text.size() > kMaxText) {
    absl::StrAppend(&text, "...");
    return;
  }
  switch (value.kind) {
    case ScriptKind::kNone:
      absl::StrAppend(&text, "None");
      break;
    case ScriptKind::kBool:
      absl::StrAppend(&text, value.integer != 0 ? "True" : "False");
      break;
    case ScriptKind::kInt:
      absl::StrAppend(&text, value.integer);
      break;
    case ScriptKind::kFloat:
      absl::StrAppend(&text, value.real);
      break;
    case ScriptKind::kString:
      absl::StrAppend(&text, Printable(*value.string));
      break;
    case ScriptKind::kList:
      absl::StrAppend(&text, "[");
      AppendItems(value.list->items, depth, text);
      absl::StrAppend(&text, "]");
      break;
    case ScriptKind::kTuple:
      absl::StrAppend(&text, "(");
      AppendItems(value.list->items, depth, text);
      absl::StrAppend(&text, ")");
      break;
    default:
      absl::StrAppend(&text, NameOf(value.kind));
  }
}

bool Equal(const ScriptValue& a, const ScriptValue& b, int depth, int& budget) {
  if (a.IsNumber() && b.IsNumber()) {
    const bool is_float = a.Is(ScriptKind::kFloat) || b.Is(ScriptKind::kFloat);
    return is_float ? a.AsDouble() == b.AsDouble() : a.integer == b.integer;
  }
  if (a.kind != b.kind || depth > kMaxDepth || --budget < 0) return false;
  switch (a.kind) {
    case ScriptKind::kNone:
    case ScriptKind::kDevice:
      return true;
    case ScriptKind::kString:
    case ScriptKind::kPath:
      return *a.string == *b.string;
    case ScriptKind::kList:
    case ScriptKind::kTuple: {
      if (a.list->items.size() != b.list->items.size()) return false;
      for (size_t i = 0; i < a.list->items.size(); ++i) {
        if (!Equal(a.list->items[i], b.list->items[i], depth + 1, budget)) return false;
      }
      return true;
    }
    default:
      return a.object == b.object;
  }
}

}  // namespace

std::string PathOf(const ScriptObject& object, absl::string_view name) {
  return absl::StrCat(object.path, object.path.empty() ? "" : ".", name);
}

absl::string_view NameOf(ScriptKind kind) {
  switch (kind) {
    case ScriptKind::kNone:
      return "None";
    case ScriptKind::kBool:
      return "a bool";
    case ScriptKind::kInt:
      return "an int";
    case ScriptKind::kFloat:
      return "a float";
    case ScriptKind::kString:
      return "a string";
    case ScriptKind::kList:
      return "a list";
    case ScriptKind::kTuple:
      return "a tuple";
    case ScriptKind::kDict:
      return "a dict";
    case ScriptKind::kTensor:
      return "a tensor";
    case ScriptKind::kObject:
      return "an object";
    case ScriptKind::kFunction:
      return "a function";
    case ScriptKind::kClass:
      return "a class";
    case ScriptKind::kPath:
      return "a name of torch";
    case ScriptKind::kDevice:
      return "a device";
    case ScriptKind::kUninitialized:
      return "an uninitialized value";
    case ScriptKind::kPoison:
      return "a value that was refused";
  }
  return "a value";
}

bool ScriptEqual(const ScriptValue& a, const ScriptValue& b) {
  int budget = 4096;
  return Equal(a, b, 0, budget);
}

std::string ScriptText(const ScriptValue& value) {
  std::string text;
  AppendText(value, 0, text);
  return text;
}

}  // namespace npuc::pt
