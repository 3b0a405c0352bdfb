#include "client/npuc_remote/command_docs.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace npuc::remote {
namespace {

// roff reads backslashes, dashes, and dots and apostrophes at the start of a line.
std::string Roff(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string safe = absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}});
    if (!safe.empty() && (safe[0] == '.' || safe[0] == '\'')) safe.insert(0, "\\&");
    lines.push_back(std::move(safe));
  }
  return absl::StrJoin(lines, "\n");
}

std::vector<std::string> Flags(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back(absl::StrCat("-", name));
  for (const std::string& name : option.get_lnames()) flags.push_back(absl::StrCat("--", name));
  return flags;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// ".TP" with the option's flags and value, and its description.
void AppendOption(const CLI::Option& option, std::string& page) {
  std::string head;
  if (Flags(option).empty()) {
    head = absl::StrCat("\\fI", Roff(option.get_name(/*positional=*/true)), "\\fR");
  } else {
    std::vector<std::string> flags;
    for (const std::string& flag : Flags(option)) {
      flags.push_back(absl::StrCat("\\fB", Roff(flag), "\\fR"));
    }
    head = absl::StrJoin(flags, ", ");
    if (TakesValue(option)) absl::StrAppend(&head, " \\fI", Roff(option.get_type_name()), "\\fR");
  }
  absl::StrAppend(&page, ".TP\n", head, "\n", Roff(option.get_description()), "\n");
}

void AppendText(absl::string_view text, std::string& page) {
  absl::StrAppend(&page, ".PP\n.nf\n", Roff(text), "\n.fi\n");
}

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The words that may follow a command, options and those of every command.
std::string Words(const CLI::App& app, const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* source : {&command, &app}) {
    for (const CLI::Option* option : source->get_options()) {
      for (const std::string& flag : Flags(*option)) {
        if (flag.size() > 2) words.push_back(flag);
      }
    }
  }
  return absl::StrJoin(words, " ");
}

std::string Names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : Commands(app)) names.push_back(command->get_name());
  return absl::StrJoin(names, " ");
}

// Files where nothing better is known: configs, folders and artifacts are files.
std::string BashScript(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : Commands(app)) {
    absl::StrAppend(&cases, "    ", command->get_name(), ") words=\"", Words(app, *command),
                    "\" ;;\n");
  }
  std::vector<std::string> globals;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& flag : Flags(*option)) globals.push_back(flag);
  }
  return absl::StrCat(
      "_npuc_remote() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \" ",
      Names(app),
      " \" in *\" $word \"*) command=$word; break ;; esac\n"
      "  done\n"
      "  local words\n"
      "  case $command in\n"
      "    '') words=\"",
      Names(app), " ", absl::StrJoin(globals, " "), "\" ;;\n", cases,
      "  esac\n"
      "  COMPREPLY=()\n"
      "  if [[ $before == --state ]]; then\n"
      "    COMPREPLY=($(compgen -W 'QUEUED RUNNING SUCCEEDED FAILED CANCELLED EXPIRED' -- "
      "\"$current\"))\n"
      "  elif [[ $command == completion && $current != -* ]]; then\n"
      "    COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$current\"))\n"
      "  elif [[ -z $command || $current == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  fi\n"
      "}\n"
      "complete -o default -F _npuc_remote npuc-remote\n");
}

std::string FishQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}, {"\n", " "}}),
                      "'");
}

void AppendFishOptions(const CLI::App& app, absl::string_view condition, std::string& script) {
  for (const CLI::Option* option : app.get_options()) {
    if (Flags(*option).empty()) continue;
    absl::StrAppend(&script, "complete -c npuc-remote", condition);
    for (const std::string& name : option->get_snames()) absl::StrAppend(&script, " -s ", name);
    for (const std::string& name : option->get_lnames()) absl::StrAppend(&script, " -l ", name);
    absl::StrAppend(&script, TakesValue(*option) ? " -r" : "", " -d ",
                    FishQuoted(option->get_description()), "\n");
  }
}

std::string FishScript(const CLI::App& app) {
  std::string script;
  AppendFishOptions(app, "", script);
  for (const CLI::App* command : Commands(app)) {
    absl::StrAppend(&script, "complete -c npuc-remote -n __fish_use_subcommand -f -a ",
                    command->get_name(), " -d ", FishQuoted(command->get_description()), "\n");
    AppendFishOptions(*command,
                      absl::StrCat(" -n '__fish_seen_subcommand_from ", command->get_name(), "'"),
                      script);
  }
  return script;
}

}  // namespace

std::string ManPage(const CLI::App& app) {
  std::string page =
      ".TH NPUC\\-REMOTE 1 \"\" \"npuc\" \"User Commands\"\n"
      ".SH NAME\nnpuc\\-remote \\- compile models for NPUs on an npucd server\n"
      ".SH SYNOPSIS\n\\fBnpuc\\-remote\\fR [\\fIOPTION\\fR]... \\fICOMMAND\\fR "
      "[\\fIARGUMENT\\fR]...\n"
      ".SH DESCRIPTION\n";
  absl::StrAppend(&page, Roff(app.get_description()), "\n.SH OPTIONS\n");
  for (const CLI::Option* option : app.get_options()) AppendOption(*option, page);
  absl::StrAppend(&page, ".SH COMMANDS\n");
  for (const CLI::App* command : Commands(app)) {
    absl::StrAppend(&page, ".SS ", Roff(command->get_name()), "\n",
                    Roff(command->get_description()), "\n");
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_name() != "--help") AppendOption(*option, page);
    }
    AppendText(command->get_footer(), page);
  }
  absl::StrAppend(
      &page,
      ".SH ENVIRONMENT\n"
      ".TP\n\\fBNPUC_SERVER\\fR\nThe server, where \\-\\-server is not given.\n"
      ".TP\n\\fBNPUC_TOKEN_FILE\\fR\nThe token's file, where \\-\\-token\\-file is not "
      "given.\n"
      ".TP\n\\fBSOURCE_DATE_EPOCH\\fR\nSeconds since 1970 for the header's model_info.\n"
      ".TP\n\\fBNO_COLOR\\fR\nSet to anything: no colours on a terminal.\n"
      ".SH EXIT STATUS AND EXAMPLES\n");
  AppendText(app.get_footer(), page);
  absl::StrAppend(&page, ".SH SEE ALSO\n\\fBnpuc\\fR(1), \\fBnpucd\\fR(8)\n");
  return page;
}

std::string CompletionScript(const CLI::App& app, absl::string_view shell) {
  if (shell == "bash") return BashScript(app);
  if (shell == "zsh") {
    return absl::StrCat("#compdef npuc-remote\nautoload -U +X bashcompinit && bashcompinit\n",
                        BashScript(app));
  }
  if (shell == "fish") return FishScript(app);
  return "";
}

}  // namespace npuc::remote
