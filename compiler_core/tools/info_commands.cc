#include "compiler_core/tools/info_commands.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/config/cfg_config.h"
#include "compiler_core/config/config_keys.h"
#include "compiler_core/config/quant_config.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/target/family.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> Strings(absl::Span<const absl::string_view> views) {
  return std::vector<std::string>(views.begin(), views.end());
}

// Those that a config for the core can name: every front end makes the same graph.
std::vector<std::string> FrameworksOf() {
  std::vector<std::string> names;
  for (const FrameworkInfo& info : AllFrameworks()) names.emplace_back(info.name);
  return names;
}

// "GRUS (V150)"; most integer cores have one name.
std::string NamesOf(const CoreSpec& core) {
  if (core.alias == core.name) return std::string(core.name);
  return absl::StrCat(core.name, " (", core.alias, ")");
}

std::string JoinedOr(absl::Span<const absl::string_view> names, const char* none) {
  return names.empty() ? none : absl::StrJoin(names, ", ");
}

absl::Status CheckNames(const std::string& core, const std::string& framework) {
  std::vector<absl::string_view> cores;
  for (const CoreSpec* spec : AllCores()) {
    cores.push_back(spec->name);
    if (spec->alias != spec->name) cores.push_back(spec->alias);
  }
  if (!core.empty() && FindCore(core) == nullptr) {
    const std::string known = absl::StrCat("known: ", absl::StrJoin(cores, ", "));
    return absl::InvalidArgumentError(
        absl::StrCat("unknown core '", Printable(core), "'; ", DidYouMean(core, cores, known)));
  }
  if (framework.empty() || FrameworkNamed(framework).has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("unknown framework '", Printable(framework), "'; known: ", FrameworkNames()));
}

// True where some core has a list of a framework's operators. The nodes of the other frameworks are
// judged by the operators that they become.
bool IsListed(Framework framework) {
  const auto cores = AllCores();
  return std::any_of(cores.begin(), cores.end(), [framework](const CoreSpec* core) {
    return !OpsOf(*core, framework).empty();
  });
}

// What the front end of a framework imports, where no core has a list of its own for it.
void AppendImported(const std::string& name, Json& document, std::string& text) {
  const std::optional<Framework> framework = FrameworkNamed(name);
  if (!framework.has_value() || IsListed(*framework)) return;
  const std::vector<std::string> imported = FrontEndOf(*framework).operators();
  Json ops = Json::array();
  absl::StrAppend(&text, name, ": ", imported.size(),
                  " operators are imported; a core judges each by what it becomes (-f TF)\n");
  for (const std::string& op : imported) {
    ops.push_back({{"op", op}});
    absl::StrAppend(&text, "  ", op, "\n");
  }
  document.push_back({{"core", ""}, {"framework", name}, {"operators", std::move(ops)}});
}

Json OperatorJson(const OpSupport& op) {
  Json rules = Json::array();
  for (const SupportRule& rule : op.rules) {
    rules.push_back({{"id", std::string(rule.id)},
                     {"rule", Describe(rule)},
                     {"advisory", rule.advisory},
                     {"rewrite", std::string(rule.rewrite)},
                     {"source", std::string(rule.source)}});
  }
  return {{"op", std::string(op.op)},
          {"torch", Strings(op.torch_names)},
          {"rules", std::move(rules)},
          {"note", std::string(op.note)},
          {"source", std::string(op.source)}};
}

// The functions that a front end turns into the operators of a list, in lines of at most 100
// columns.
std::string FunctionText(const std::vector<std::string>& functions) {
  std::string text = absl::StrCat("  ", functions.size(), " functions of torch become these:\n");
  size_t column = 0;
  for (const std::string& function : functions) {
    const bool breaks = column == 0 || column + function.size() + 2 > 100;
    if (breaks) column = 5;
    absl::StrAppend(&text, breaks ? (&function == &functions[0] ? "      " : ",\n      ") : ", ",
                    function);
    column += function.size() + 2;
  }
  return text + "\n";
}

// True where the entries of a list stand for functions of other names.
bool StandsForFunctions(const OpList& list) {
  return std::any_of(list.ops.begin(), list.ops.end(),
                     [](const OpSupport& op) { return !op.torch_names.empty(); });
}

// Of a core and framework that both exist, but have no list in common.
std::string NoList(absl::string_view core, absl::string_view framework) {
  const CoreSpec& spec = *FindCore(core);  // without a core, every framework has a list
  if (spec.integer != nullptr) {
    return absl::StrCat(spec.name,
                        " has no list: it takes what its command set can express "
                        "(compiler_core/target/INTEGER_ISA.md), and a compile names every node "
                        "that it does not take\n");
  }
  return absl::StrCat(spec.name, " has no list for ", framework, "\n");
}

std::string OperatorText(const OpSupport& op) {
  std::string out = absl::StrCat("  ", std::string(op.op), "\n");
  for (const SupportRule& rule : op.rules) {
    absl::StrAppend(&out, "      ", rule.advisory ? "better: " : "", Describe(rule), "\n");
    if (!rule.rewrite.empty()) {
      absl::StrAppend(&out, "        else rewritten: ", std::string(rule.rewrite), "\n");
    }
  }
  if (!op.note.empty()) absl::StrAppend(&out, "      note: ", std::string(op.note), "\n");
  return out;
}

}  // namespace

absl::StatusOr<std::string> ListOperators(const std::string& core, const std::string& framework,
                                          bool json) {
  if (const absl::Status status = CheckNames(core, framework); !status.ok()) return status;
  Json document = Json::array();
  std::string text;
  for (const CoreSpec* spec : AllCores()) {
    if (!core.empty() && spec != FindCore(core)) continue;
    for (const OpList& list : spec->op_lists) {
      const std::string name = FrameworkName(list.framework);
      if (!framework.empty() && framework != name) continue;
      Json ops = Json::array();
      absl::StrAppend(&text, NamesOf(*spec), ", ", name, ": ", list.ops.size(), " operators\n");
      for (const OpSupport& op : list.ops) {
        ops.push_back(OperatorJson(op));
        text += OperatorText(op);
      }
      document.push_back(
          {{"core", std::string(spec->name)}, {"framework", name}, {"operators", std::move(ops)}});
      if (!StandsForFunctions(list)) continue;
      const std::vector<std::string> functions = FrontEndOf(list.framework).operators();
      document.back()["functions"] = functions;
      text += FunctionText(functions);
    }
  }
  if (document.empty()) AppendImported(framework, document, text);
  if (document.empty()) text = NoList(core, framework);
  return json ? document.dump() + "\n" : text;
}

std::string ListCompatibility(bool json) {
  Json document = Json::array();
  std::string text;
  for (const CoreSpec* spec : AllCores()) {
    document.push_back({{"core", std::string(spec->name)},
                        {"alias", std::string(spec->alias)},
                        {"chips", Strings(spec->chips)},
                        {"npu_units", Strings(spec->npu_units)},
                        {"frameworks", FrameworksOf()},
                        {"compute_type", std::string(spec->compute_type)}});
    absl::StrAppend(&text, NamesOf(*spec), "\n  chips      ",
                    JoinedOr(spec->chips, "not published"), "\n  NPU units  ",
                    JoinedOr(spec->npu_units, "not published"), "\n  frameworks ",
                    absl::StrJoin(FrameworksOf(), ", "), "\n");
  }
  return json ? document.dump() + "\n" : text;
}

std::string ListConfigKeys(bool json) {
  if (!json) {
    return absl::StrCat("Keys of a config:\n\n", ConfigHelp(), "\nKeys of its QUANT mapping:\n\n",
                        QuantConfigHelp(),
                        "\nKeys of a .cfg of aipubuild, and what each becomes:\n\n",
                        CfgConfigHelp());
  }
  const auto split = [](absl::string_view list) {
    const std::vector<std::string> parts = absl::StrSplit(list, '|', absl::SkipEmpty());
    return Json(parts);
  };
  Json keys = Json::array();
  for (const ConfigKey& key : AllConfigKeys()) {
    Json entry{{"key", std::string(key.name)},
               {"type", std::string(ConfigTypeName(key.type))},
               {"meaning", std::string(key.meaning)},
               {"example", std::string(key.example)},
               {"default", std::string(key.default_value)},
               {"choices", split(key.choices)},
               {"required_for", split(key.required_for)},
               {"cores", split(CoresOf(key.families))},
               {"frameworks", split(key.frameworks)}};
    if (key.hi > 0) entry["range"] = {key.lo, key.hi};
    keys.push_back(std::move(entry));
  }
  return absl::StrCat(keys.dump(1), "\n");
}

}  // namespace npuc
