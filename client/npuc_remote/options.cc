#include "client/npuc_remote/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/npuc_remote/command_docs.h"
#include "client/npuc_remote/output.h"
#include "compiler_core/base/suggest.h"

namespace npuc::remote {
namespace {

constexpr absl::Duration kMinTimeout = absl::Seconds(1);
constexpr absl::Duration kMaxTimeout = absl::Hours(24 * 7);
constexpr int kMaxLimit = 100000;

constexpr char kExitCodes[] =
    "Exit codes: 0 done; 1 the job failed (diagnostics shown); 2 wrong usage; 3 refused (quota,\n"
    "authorisation, invalid); 4 server unreachable or gone; 5 cancelled or timed out;\n"
    "130 interrupted.";

// "90", "90s", "10m", "2h", "1d", "1h30m".
bool ParseSpan(std::string text, absl::Duration& span) {
  double number = 0;
  const bool days = !text.empty() && text.back() == 'd';
  if (days) text.pop_back();
  if (absl::SimpleAtod(text, &number)) {
    if (!(number >= 0 && number <= 1e9)) return false;
    span = number * (days ? absl::Hours(24) : absl::Seconds(1));
    return true;
  }
  return !days && absl::ParseDuration(text, &span);
}

// A validator of CLI11: an error text, or none.
std::string CheckTimeout(const std::string& text) {
  absl::Duration span;
  if (ParseSpan(text, span) && span >= kMinTimeout && span <= kMaxTimeout) return "";
  return absl::StrCat("'", text, "' is no time from 1s to 7d, e.g. 90, 90s, 10m, 2h");
}

std::string CheckPatience(const std::string& text) {
  absl::Duration span;
  if (ParseSpan(text, span) && span >= absl::ZeroDuration() && span <= kMaxTimeout) return "";
  return absl::StrCat("'", text, "' is no time from 0 to 7d, e.g. 30, 30s, 10m");
}

std::string CheckSpan(const std::string& text) {
  absl::Duration span;
  if (ParseSpan(text, span) && span >= absl::ZeroDuration() && span <= absl::Hours(24 * 90)) {
    return "";
  }
  return absl::StrCat("'", text, "' is no time from 0 to 90d, e.g. 30s, 10m, 2h, 7d");
}

std::string CheckState(const std::string& text) {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  if (ParseState(text, state)) return "";
  return absl::StrCat("'", text,
                      "' is not QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED or EXPIRED");
}

// The orders of a list by the words of --sort.
constexpr std::pair<absl::string_view, v1::JobOrder> kOrders[] = {
    {"newest", v1::JOB_ORDER_UNSPECIFIED},  {"ended", v1::JOB_ORDER_END_TIME},
    {"name", v1::JOB_ORDER_NAME},           {"took", v1::JOB_ORDER_TOOK},
    {"state", v1::JOB_ORDER_STATE},         {"core", v1::JOB_ORDER_CORE},
    {"framework", v1::JOB_ORDER_FRAMEWORK}, {"tenant", v1::JOB_ORDER_TENANT}};

std::string CheckOrder(const std::string& text) {
  std::string known;
  for (const auto& [word, order] : kOrders) {
    if (text == word) return "";
    absl::StrAppend(&known, known.empty() ? "" : ", ", word);
  }
  return absl::StrCat("'", text, "' is no order; known: ", known);
}

std::string CheckLabel(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0) return "";
  return absl::StrCat("'", text, "' is not KEY=VALUE");
}

// A limit of a tenant by its name in the tenants file.
struct LimitName {
  absl::string_view name;
  void (v1::TenantLimits::*set)(int64_t value);
  bool is_bytes;
};
constexpr LimitName kLimitNames[] = {
    {"queued_jobs", &v1::TenantLimits::set_max_queued_jobs, false},
    {"running_jobs", &v1::TenantLimits::set_max_running_jobs, false},
    {"job_bytes", &v1::TenantLimits::set_max_job_bytes, true},
    {"stored_bytes", &v1::TenantLimits::set_max_stored_bytes, true},
    {"result_bytes", &v1::TenantLimits::set_max_result_bytes, true},
    {"upload_rate", &v1::TenantLimits::set_max_upload_rate, true},
    {"call_rate", &v1::TenantLimits::set_max_call_rate, false}};

// "running_jobs=4" or "stored_bytes=10GiB" into `limits`; an error text, or none.
std::string ReadLimit(const std::string& text, v1::TenantLimits& limits) {
  constexpr std::pair<const char*, int64_t> kUnits[] = {
      {"KiB", int64_t{1} << 10}, {"MiB", int64_t{1} << 20}, {"GiB", int64_t{1} << 30}};
  const size_t equals = std::min(text.find('='), text.size());
  std::string known;
  for (const LimitName& limit : kLimitNames) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", limit.name);
    if (text.substr(0, equals) != limit.name) continue;
    absl::string_view number = absl::string_view(text).substr(std::min(equals + 1, text.size()));
    int64_t unit = 1;
    for (const auto& [suffix, size] : kUnits) {
      if (limit.is_bytes && absl::ConsumeSuffix(&number, suffix)) unit = size;
    }
    int64_t value = 0;
    if (!absl::SimpleAtoi(number, &value) || value < 1 || value > (int64_t{1} << 50) / unit) {
      return absl::StrCat("'", text, "' is not ", limit.name, "=N",
                          limit.is_bytes ? ", N with KiB, MiB or GiB where you like" : "");
    }
    (limits.*limit.set)(value * unit);
    return "";
  }
  return absl::StrCat("'", text, "' is no limit; known: ", known);
}

std::string CheckLimit(const std::string& text) {
  v1::TenantLimits limits;
  return ReadLimit(text, limits);
}

// Texts that are turned into values once parsing went well.
struct Texts {
  std::string timeout;
  std::string patience = "60";
  std::vector<std::string> states;
  std::string since;
  std::string order;
  std::vector<std::string> labels;
  std::vector<std::string> side_inputs;
  std::string output_folder;
  std::string span;
  std::string grace;
  std::vector<std::string> limits;
};

class Builder {
 public:
  Builder(CLI::App& app, Options& options, Texts& texts)
      : app_(app), options_(options), texts_(texts) {}

  void Build() {
    AddGlobals();
    AddCompile();
    AddSubmit();
    AddWatch();
    AddLogs();
    AddStatus();
    AddRetry();
    AddList();
    AddCancel();
    AddFetch();
    AddInspect();
    AddAdmin();
    AddUsage();
    Add(Command::kQuota, "quota", "show your tenant's share, limits and jobs",
        "  npuc-remote quota --json\n");
    AddServer();
    AddConfigCommand();
    AddDocs();
    app_.require_subcommand(1);
  }

 private:
  CLI::App* Add(Command command, const char* name, const char* what, const char* examples) {
    CLI::App* sub = app_.add_subcommand(name, what);
    sub->fallthrough();  // options of every command may stand behind the command, too
    sub->footer(
        absl::StrCat("Examples:\n", examples, "\nOptions of every command: npuc-remote --help\n"));
    sub->callback([this, command] { options_.command = command; });
    return sub;
  }

  void AddGlobals() {
    app_.description(
        "npuc-remote: compiles models on an npucd server.\n\n"
        "Every command goes on by itself after a lost connection or a restart of the server.");
    app_.footer(
        absl::StrCat("Examples:\n"
                     "  npuc-remote --server 127.0.0.1:8470 compile config.yaml -o out\n"
                     "  npuc-remote compile config.yaml --detach\n"
                     "  npuc-remote watch JOB\n"
                     "  npuc-remote COMMAND --help\n\n",
                     kExitCodes));
    app_.add_option("--server", options_.server,
                    "the daemon's gRPC address, or several of one cluster, separated by commas "
                    "(env NPUC_SERVER)")
        ->type_name("HOST:PORT");
    app_.add_option("--token-file", options_.token_file,
                    "file with a bearer token (env NPUC_TOKEN_FILE; NPUC_TOKEN has a token "
                    "itself); sent over TLS, or to this machine, only")
        ->type_name("FILE");
    app_.add_option("--ca", options_.ca_file,
                    "use TLS; trust the authorities in this PEM file (env NPUC_CA)")
        ->type_name("FILE");
    app_.add_option("--cert", options_.cert_file,
                    "PEM file of a client certificate, over TLS (env NPUC_CERT)")
        ->type_name("FILE");
    app_.add_option("--key", options_.key_file, "PEM file of its private key (env NPUC_KEY)")
        ->type_name("FILE");
    app_.add_flag("--tls", options_.tls, "use TLS; trust the system's authorities");
    app_.add_option("--patience", texts_.patience,
                    "how long to wait for a server that went away (default 60s)")
        ->type_name("TIME")
        ->check(CheckPatience);
    app_.add_flag("-q,--quiet", options_.quiet,
                  "no log lines, progress and hints: results and errors alone");
    app_.add_flag("--json", options_.json,
                  "one JSON object a line on standard output; everything else on standard error");
  }

  void AddConfig(CLI::App* sub) {
    sub->add_option(
           "CONFIG", options_.configs,
           "gxnpuc YAML or aipubuild .cfg configs, or folders of them; - reads standard input")
        ->required();
    sub->add_option("--jobs", options_.jobs,
                    "of many configs, how many are on the server at a time (default 64)")
        ->type_name("N")
        ->check(CLI::Range(1, 1000));
    sub->add_option("--priority", options_.priority, "-100 to 100, higher is earlier (default 0)")
        ->type_name("P")
        ->check(CLI::Range(-100, 100));
    sub->add_option("--timeout", texts_.timeout,
                    "how long the job may take, waiting included, e.g. 90s, 10m, 2h (default: the "
                    "server's, which npuc-remote server shows)")
        ->type_name("T")
        ->check(CheckTimeout);
    sub->add_flag("--no-cache", options_.no_cache, "compile even where the result is known");
    sub->add_option("--label", texts_.labels, "a note on the job; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false)  // which would be configs
        ->check(CheckLabel);
  }

  void AddCompile() {
    CLI::App* sub =
        Add(Command::kCompile, "compile", "upload, compile, follow, and fetch the artifacts",
            "  npuc-remote compile config.yaml -o out\n"
            "  npuc-remote compile config.yaml --timeout 10m --priority 5\n"
            "  npuc-remote compile configs/ -o out --json     # each into out/NAME/\n"
            "  JOB=$(npuc-remote compile config.yaml --detach)\n");
    AddConfig(sub);
    sub->add_option(
           "-o,--output", texts_.output_folder,
           "folder for the artifacts (default: that of OUTPUT_FILE); of many configs, each "
           "has a folder in it")
        ->type_name("DIR");
    sub->add_flag("--detach", options_.detach, "print the job's id and do not wait for it");
  }

  void AddSubmit() {
    AddConfig(Add(Command::kSubmit, "submit", "upload and submit; print the job's id",
                  "  npuc-remote submit config.yaml\n"));
  }

  void AddJob(CLI::App* sub) { sub->add_option("JOB", options_.job, "the job's id")->required(); }

  void AddWatch() {
    CLI::App* sub = Add(Command::kWatch, "watch", "show a job's log until the job has ended",
                        "  npuc-remote watch JOB\n"
                        "  npuc-remote watch JOB --from 20 --json\n");
    AddJob(sub);
    sub->add_option("--from", options_.from_seq, "number of the first event (default 1)")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
  }

  void AddLogs() {
    AddJob(Add(Command::kLogs, "logs", "print a job's log; of one that has not ended, to its end",
               "  npuc-remote logs JOB | grep warning\n"));
  }

  void AddRetry() {
    AddJob(Add(Command::kRetry, "retry",
               "submit a job's config and files again; print the new job's id",
               "  npuc-remote watch $(npuc-remote retry JOB)\n"));
  }

  void AddConfigCommand() {
    Add(Command::kConfig, "config",
        "keep the given connection options in a profile, for every later call; without any, show "
        "it",
        "  npuc-remote config --server farm:8470 --ca ca.pem --token-file ~/npuc.token\n"
        "  npuc-remote config\n");
  }

  void AddStatus() {
    AddJob(Add(Command::kStatus, "status", "show a job", "  npuc-remote status JOB --json\n"));
  }

  // Which jobs a command is about.
  void AddFilter(CLI::App* sub) {
    sub->add_option("--state", texts_.states,
                    "only jobs in this state: QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED or "
                    "EXPIRED; may be repeated")
        ->type_name("S")
        ->check(CheckState);
    v1::ListCompileJobsRequest& filter = options_.filter;
    const auto add_list = [&](const char* name, const char* type, const char* what, auto* values) {
      sub->add_option_function<std::vector<std::string>>(
             name,
             [values](const std::vector<std::string>& texts) {
               values->Assign(texts.begin(), texts.end());
             },
             absl::StrCat(what, "; may be repeated"))
          ->type_name(type)
          ->allow_extra_args(false);
    };
    add_list("-c,--core", "CORE", "only jobs for this core", filter.mutable_cores());
    add_list("-f,--framework", "FW", "only jobs of this framework", filter.mutable_frameworks());
    add_list("--tenant", "NAME", "only jobs of this tenant", filter.mutable_tenants());
    add_list("--label", "KEY[=VALUE]", "only jobs with this label", filter.mutable_labels());
    sub->add_option_function<std::string>(
           "--text", [&filter](const std::string& text) { filter.set_text(text); },
           "only jobs in whose name, labels, tenant or submitter it stands")
        ->type_name("TEXT");
    sub->add_flag_callback(
        "--mine", [&filter] { filter.set_mine(true); }, "only jobs that you submitted");
    sub->add_option("--since", texts_.since, "only jobs accepted within this time, e.g. 2h, 7d")
        ->type_name("TIME")
        ->check(CheckPatience);
  }

  void AddList() {
    CLI::App* sub = Add(Command::kList, "list", "list jobs, the newest first",
                        "  npuc-remote list --state FAILED --limit 10\n"
                        "  npuc-remote list --mine --since 1d --label branch=main --sort took\n");
    AddFilter(sub);
    v1::ListCompileJobsRequest& filter = options_.filter;
    sub->add_option("--sort", texts_.order,
                    "newest (default), ended, name, took, state, core, framework or tenant")
        ->type_name("BY")
        ->check(CheckOrder);
    sub->add_flag_callback(
        "--reverse", [&filter] { filter.set_reverse(true); }, "the other way round");
    sub->add_option("--limit", options_.limit, "at most this many (default 50)")
        ->type_name("N")
        ->check(CLI::Range(1, kMaxLimit));
  }

  void AddCancel() {
    CLI::App* sub = Add(Command::kCancel, "cancel", "cancel a job", "  npuc-remote cancel JOB\n");
    AddJob(sub);
    sub->add_option("--reason", options_.reason, "why, for those who look later");
  }

  void AddFetch() {
    CLI::App* sub = Add(Command::kFetch, "fetch", "download a job's artifacts",
                        "  npuc-remote fetch JOB -o out\n"
                        "  npuc-remote fetch JOB model.h\n");
    AddJob(sub);
    sub->add_option("NAME", options_.names, "only these artifacts (default: all)");
    sub->add_option("-o,--output", texts_.output_folder, "folder to put them in (default: .)")
        ->type_name("DIR");
  }

  void AddAdmin() {
    CLI::App* sub =
        Add(Command::kAdmin, "admin", "operate the server; needs the right `admin`",
            "  npuc-remote admin pause --reason 'disk is swapped'\n"
            "  npuc-remote admin resume\n"
            "  npuc-remote admin cancel --tenant audio --reason flood\n"
            "  npuc-remote admin requeue --since 12h\n"
            "  npuc-remote admin tenants --json\n"
            "  npuc-remote admin connections --limit 20\n"
            "  npuc-remote admin audit --since 1d --identity ops --limit 200\n"
            "  npuc-remote --server node3:8470 admin cordon --reason 'new memory'\n"
            "  npuc-remote admin limit --tenant audio --weight 5 --quota running_jobs=8 "
            "--for 2h\n"
            "  npuc-remote admin rotate-token --tenant audio --identity ci -o new.token\n"
            "  npuc-remote admin drop-uploads --tenant audio --for 10m\n"
            "  npuc-remote admin evict --job JOB\n");
    sub->add_option(
           "ACTION", options_.admin_action,
           "pause or resume the start of jobs at all nodes; cordon or uncordon the node that "
           "answers, which then starts none; cancel jobs; requeue jobs that failed, each once, as "
           "new ones; list tenants; limit a tenant for a time, or unlimit it; rotate-token of an "
           "identity; drop-uploads that are under way; evict a blob or a result; list the "
           "connections and streams that are open; audit: what callers did, of a cluster at all "
           "nodes, the newest first")
        ->required()
        ->check(CLI::IsMember({"pause", "resume", "cordon", "uncordon", "cancel", "requeue",
                               "tenants", "limit", "unlimit", "rotate-token", "drop-uploads",
                               "evict", "connections", "audit"}));
    AddAdminDetails(sub);
    AddFilter(sub);
    sub->add_option("--reason", options_.reason, "why, for those who look later");
    sub->add_flag("--all", options_.all,
                  "cancel, requeue or drop-uploads without a filter: those of everybody");
    sub->add_option("--limit", options_.limit,
                    "connections, and streams: at most so many of each, those that carried the "
                    "most bytes; audit: at most so many entries (default 50)")
        ->check(CLI::Range(1, 1000));
  }

  // Adds the options of limit, rotate-token, drop-uploads and evict.
  void AddAdminDetails(CLI::App* sub) {
    sub->add_option_function<int32_t>(
           "--weight", [this](int32_t weight) { options_.limits.set_weight(weight); },
           "limit: the tenant's share of the workers beside other tenants")
        ->type_name("N")
        ->check(CLI::Range(1, 1000));
    sub->add_option("--quota", texts_.limits,
                    "limit: one of the tenants file's quota, e.g. running_jobs=8 or "
                    "stored_bytes=10GiB; may be repeated. What is not named is as the file has it")
        ->type_name("LIMIT=N")
        ->allow_extra_args(false)
        ->check(CheckLimit);
    sub->add_option("--for", texts_.span,
                    "limit: for how long, 1s to 90d; drop-uploads: only those without a byte for "
                    "so long")
        ->type_name("TIME")
        ->check(CheckSpan);
    sub->add_option("--identity", options_.identity,
                    "rotate-token: whose; audit: only actions of this one")
        ->type_name("NAME");
    v1::ListAuditEntriesRequest& audit = options_.audit;
    const auto add_audit = [sub](const char* name, const char* help, const char* type,
                                 const std::function<void(const std::string&)>& set) {
      sub->add_option_function<std::string>(name, set, help)->type_name(type);
    };
    add_audit("--action", "audit: only this action, e.g. admin.pause", "NAME",
              [&audit](const std::string& name) { audit.set_action(name); });
    add_audit("--at-node", "audit: only calls that this node of a cluster answered", "NAME",
              [&audit](const std::string& name) { audit.set_node(name); });
    add_audit("--about", "audit: only this object, e.g. a job's id", "TEXT",
              [&audit](const std::string& text) { audit.set_object(text); });
    sub->add_option("--grace", texts_.grace,
                    "rotate-token: for how long the old tokens are valid yet (default 24h)")
        ->type_name("TIME")
        ->check(CheckSpan);
    sub->add_option("-o,--output", texts_.output_folder,
                    "rotate-token: a new file for the token (default: standard output)")
        ->type_name("FILE");
    sub->add_option("--blob", options_.blob,
                    "evict: an uploaded file, of --tenant or of all that have it")
        ->type_name("SHA256");
    sub->add_option("--result", options_.result, "evict: a result of the cache")
        ->type_name("SCOPE/KEY");
    sub->add_option("--job", options_.job, "evict: the result of this job")->type_name("JOB");
  }

  void AddUsage() {
    CLI::App* sub = Add(Command::kUsage, "usage", "show what tenants used, by day",
                        "  npuc-remote usage --from 2026-11-01 --csv > november.csv\n");
    const auto add = [sub](const char* name, const char* type, const char* what, auto set) {
      sub->add_option_function<std::string>(name, set, what)->type_name(type);
    };
    v1::GetUsageRequest& usage = options_.usage;
    add("--from", "DAY", "the first day, e.g. 2026-11-01 (UTC)",
        [&usage](const std::string& day) { usage.set_from_day(day); });
    add("--to", "DAY", "the last day (default: today)",
        [&usage](const std::string& day) { usage.set_to_day(day); });
    add("--tenant", "NAME", "only of this tenant",
        [&usage](const std::string& name) { usage.set_tenant(name); });
    sub->add_flag("--csv", options_.csv, "comma-separated values, as numbers");
  }

  void AddInspect() {
    CLI::App* sub = Add(Command::kInspect, "inspect",
                        "upload a model and show what it is and which cores take it",
                        "  npuc-remote inspect kws.onnx\n"
                        "  npuc-remote inspect kws.onnx -c GRUS > kws.yaml   # a config for it\n"
                        "  npuc-remote inspect net.pb --input-shape 1,40,98 --json\n");
    sub->add_option("MODEL", options_.model, "the model's file")->required();
    sub->add_option("-c,--core", options_.core, "print a config for this core in place of all that")
        ->type_name("CORE");
    sub->add_option("--input-shape", options_.input_shapes,
                    "shape of an input that the model leaves open: 1,40,98, or NAME=1,40,98; may "
                    "be repeated")
        ->type_name("SHAPE")
        ->allow_extra_args(false);
    sub->add_option("--dim", options_.dims, "size of a named dimension; may be repeated")
        ->type_name("NAME=N")
        ->allow_extra_args(false);
    sub->add_option("--const", options_.constants, "value of an input; may be repeated")
        ->type_name("NAME=VALUE")
        ->allow_extra_args(false);
    sub->add_option("--with", texts_.side_inputs,
                    "a further file of the model, by the config key that names it (default: the "
                    "one beside the model, where its format has one); may be repeated")
        ->type_name("KEY=FILE")
        ->allow_extra_args(false)
        ->check(CheckLabel);
  }

  void AddServer() {
    Add(Command::kServer, "server", "show the server's version, limits, load and readiness",
        "  npuc-remote server --json\n");
    Add(Command::kWhoami, "whoami", "show who you are to the server, and what you may do",
        "  npuc-remote whoami\n");
    Add(Command::kHealth, "health", "tell whether the server is ready, and if not (exit 4) why",
        "  npuc-remote --patience 0 health\n");
    Add(Command::kCores, "cores", "list the cores that the server compiles for",
        "  npuc-remote cores\n");
    CLI::App* sub = Add(Command::kOps, "ops", "list the operators that the cores accept",
                        "  npuc-remote ops -c GRUS -f TF\n");
    sub->add_option("-c,--core", options_.core, "only of this core")->type_name("CORE");
    sub->add_option("-f,--framework", options_.framework, "only of this framework")
        ->type_name("FW");
  }

  void AddDocs() {
    CLI::App* sub = Add(Command::kCompletion, "completion", "print a shell's completion script",
                        "  npuc-remote completion bash > /etc/bash_completion.d/npuc-remote\n"
                        "  npuc-remote completion fish > ~/.config/fish/completions/"
                        "npuc-remote.fish\n");
    sub->add_option("SHELL", options_.shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    Add(Command::kMan, "man", "print the manual page",
        "  npuc-remote man > npuc-remote.1 && man -l npuc-remote.1\n");
  }

  CLI::App& app_;
  Options& options_;
  Texts& texts_;
};

// CLI11 says of a command that there is none only that one is required. Empty: that is not it.
std::string UnknownCommand(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  const auto word = std::find_if(rest.begin(), rest.end(),
                                 [](const std::string& r) { return !absl::StartsWith(r, "-"); });
  if (!app.get_subcommands().empty() || word == rest.end()) return "";
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return NoSuchCommand("npuc-remote", *word, names);
}

// CLI11 keeps an option's absence apart from an empty value only by its count.
bool Given(const CLI::App& app, const char* option) {
  for (const CLI::App* sub : app.get_subcommands()) {
    const CLI::Option* found = sub->get_option_no_throw(option);
    if (found != nullptr && found->count() > 0) return true;
  }
  return false;
}

void Finish(const CLI::App& app, const Texts& texts, Options& options) {
  absl::Duration span;
  if (!texts.timeout.empty() && ParseSpan(texts.timeout, span)) options.timeout = span;
  if (ParseSpan(texts.patience, span)) options.patience = span;
  if (!texts.span.empty() && ParseSpan(texts.span, span)) options.span = span;
  if (!texts.grace.empty() && ParseSpan(texts.grace, span)) options.grace = span;
  for (const std::string& text : texts.limits) ReadLimit(text, options.limits);
  for (const std::string& text : texts.states) {
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    if (ParseState(text, state)) options.filter.add_states(state);
  }
  if (!texts.since.empty() && ParseSpan(texts.since, span)) {
    options.filter.mutable_created_from()->set_seconds(absl::ToUnixSeconds(absl::Now() - span));
  }
  for (const auto& [word, order] : kOrders) {
    if (texts.order == word) options.filter.set_order(order);
  }
  const auto take_pairs = [](const std::vector<std::string>& pairs, auto& map) {
    for (const std::string& text : pairs) {
      const size_t equals = text.find('=');
      map[text.substr(0, equals)] = text.substr(equals + 1);
    }
  };
  take_pairs(texts.labels, options.labels);
  take_pairs(texts.side_inputs, options.side_inputs);
  if (Given(app, "--output")) options.output_folder = texts.output_folder;
}

}  // namespace

Parsed ParseCommandLine(const std::vector<std::string>& arguments, std::ostream& out,
                        std::ostream& err) {
  Options options;
  Texts texts;
  CLI::App app("", "npuc-remote");
  Builder builder(app, options, texts);  // its callbacks run in parse()
  builder.Build();
  try {
    // CLI11 takes them in reverse.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    const std::string unknown = help ? "" : UnknownCommand(app);
    err << unknown;
    if (unknown.empty()) app.exit(error, out, err);
    return {std::nullopt, help ? kDone : kWrongUsage};
  }
  Finish(app, texts, options);
  if (options.command == Command::kMan || options.command == Command::kCompletion) {
    out << (options.command == Command::kMan ? ManPage(app) : CompletionScript(app, options.shell));
    return {std::nullopt, kDone};
  }
  return {std::move(options), kDone};
}

}  // namespace npuc::remote
