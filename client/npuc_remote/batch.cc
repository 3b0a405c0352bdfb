#include "client/npuc_remote/batch.h"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/lib/service_error.h"
#include "client/npuc_remote/job_input.h"
#include "client/npuc_remote/output.h"
#include "compiler_core/config/config.h"
#include "nlohmann/json.hpp"

namespace npuc::remote {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMaxConfigs = 10000;

// ASCII alone, as output.h has it, since a console escapes other characters for people.
std::string AsciiLine(const Json& json) { return json.dump(-1, ' ', /*ensure_ascii=*/true); }

bool IsConfigName(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml" || path.extension() == ".cfg";
}

// True for a config by its name. A .cfg of a Darknet net is a model.
bool IsConfig(const fs::path& path) {
  if (!IsConfigName(path)) return false;
  std::string head(4096, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return !IsDarknetNet(head);
}

absl::Status AddFolder(const std::string& path, std::vector<std::string>& configs) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (fs::is_regular_file(it->path()) && IsConfig(it->path())) {
      found.push_back(it->path().string());
    }
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot list '", Printable(path), "': ", error.message()));
  }
  if (found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("folder '", Printable(path), "' has no *.yaml, *.yml or *.cfg file"));
  }
  std::sort(found.begin(), found.end());
  configs.insert(configs.end(), found.begin(), found.end());
  return absl::OkStatus();
}

// The name that the last `parts` parts of a config's path give its folder: "b_model" of
// a/b/model.yaml and 2.
std::string FolderName(const std::string& config, int parts) {
  const fs::path path = fs::path(config).lexically_normal();
  std::vector<std::string> names = {path.stem().string()};
  fs::path above = path.parent_path();
  while (static_cast<int>(names.size()) < parts && !above.filename().empty()) {
    if (above.filename() != "." && above.filename() != "..") {
      names.push_back(above.filename().string());
    }
    above = above.parent_path();
  }
  std::reverse(names.begin(), names.end());
  return absl::StrJoin(names, "_");
}

absl::StatusOr<std::vector<BatchItem>> NameFolders(const std::vector<std::string>& configs) {
  constexpr int kMaxParts = 16;
  std::vector<BatchItem> items;
  for (const std::string& config : configs) items.push_back({config, ""});
  for (int parts = 1; parts <= kMaxParts; ++parts) {
    std::map<std::string, int> uses;
    for (BatchItem& item : items) {
      item.folder = FolderName(item.config, parts);
      ++uses[item.folder];
    }
    if (uses.size() == items.size()) return items;
  }
  return absl::InvalidArgumentError(
      "two configs have the same name and the same folders above; compile them one by one");
}

// The exit codes, the weightiest first.
ExitCode Weightier(ExitCode a, ExitCode b) {
  constexpr std::array<ExitCode, 7> kOrder = {kInterrupted, kUnreachable, kWrongUsage, kRefused,
                                              kCancelled,   kJobFailed,   kDone};
  return *std::find_if(kOrder.begin(), kOrder.end(),
                       [&](ExitCode code) { return code == a || code == b; });
}

class Batch {
 public:
  Batch(client::Client& client, const std::vector<BatchItem>& items, const Options& options,
        Console& console)
      : client_(client), items_(items), options_(options), console_(console) {}

  ExitCode Run() {
    const bool detach = options_.detach || options_.command == Command::kSubmit;
    for (size_t i = 0; i < items_.size() && !stopped_; ++i) {
      while (!detach && !stopped_ && static_cast<int>(open_.size()) >= options_.jobs)
        FinishOldest();
      if (!stopped_) Submit(i, detach);
    }
    while (!open_.empty() && !stopped_) FinishOldest();
    if (stopped_) ShowWayBack();
    if (!detach) Summarize();
    return code_;
  }

 private:
  struct Open {
    size_t item;
    std::string job_id;
    std::string folder;
  };

  std::string Label(size_t item) const {
    return absl::StrCat("[", item + 1, "/", items_.size(), "] ", Printable(items_[item].config));
  }

  void Submit(size_t i, bool detach) {
    Diagnostics diagnostics;
    absl::StatusOr<JobInput> input = ReadJobInput(items_[i].config, diagnostics);
    if (!input.ok()) {
      std::vector<v1::Diagnostic> wire;
      for (const Diagnostic& diagnostic : diagnostics.list()) wire.push_back(ToWire(diagnostic));
      return Refuse(i, input.status(), kRefused, wire);
    }
    for (const Diagnostic& warning : diagnostics.list()) console_.Err(warning.ToString());
    if (const absl::Status added = AddOptions(options_, input->spec); !added.ok()) {
      return Refuse(i, added, kWrongUsage, {});
    }
    const std::string folder = options_.output_folder.has_value()
                                   ? (fs::path(*options_.output_folder) / items_[i].folder).string()
                                   : input->output_folder;
    const std::string request_id = client::NewRequestId();
    while (true) {
      console_.progress().Show("submitting", Standing());
      const absl::StatusOr<v1::CompileJob> job =
          client_.Submit(input->spec, input->files, request_id, nullptr);
      if (job.ok()) return Accepted(i, *job, folder, detach);
      // A quota that our own jobs use up frees itself as they end.
      const bool quota = absl::IsResourceExhausted(job.status()) &&
                         !client::ServiceErrorOf(job.status()).retry_delay.has_value();
      if (!quota || open_.empty() || detach) {
        return Refuse(i, job.status(), ExitCodeOf(job.status()), {});
      }
      FinishOldest();
      if (stopped_) return;
    }
  }

  void Accepted(size_t i, const v1::CompileJob& job, const std::string& folder, bool detach) {
    if (!detach) {
      open_.push_back({i, job.job_id(), folder});
    } else if (options_.json) {
      PrintJob(i, job);
    } else {
      console_.Out(Printable(job.job_id()));
    }
  }

  // A config that became no job.
  void Refuse(size_t i, const absl::Status& status, ExitCode code,
              const std::vector<v1::Diagnostic>& diagnostics) {
    for (const DiagnosticLine& line : LinesOf(diagnostics)) console_.Err(line);
    for (const std::string& problem : client::ServiceErrorOf(status).problems) {
      console_.Err(problem);
    }
    console_.Err(Console::Tone::kBad, absl::StrCat(Label(i), ": refused: ", status.message()));
    if (options_.json) {
      Json object = Json::parse(ErrorJson(status, diagnostics));
      object["config"] = Printable(items_[i].config);
      console_.Out(AsciiLine(object));
    }
    Count("REFUSED", code);
    if (code == kUnreachable || code == kInterrupted) stopped_ = true;
  }

  // Waits for the oldest job on the server, fetches its artifacts, tells.
  void FinishOldest() {
    const Open open = open_.front();
    console_.progress().Show("compiling", Standing());
    const absl::Status watched = client_.Watch(open.job_id, 1, [](const v1::JobEvent&) {});
    const absl::StatusOr<v1::CompileJob> job = watched.ok() ? client_.GetJob(open.job_id) : watched;
    if (!job.ok()) {
      const ExitCode code = console_.Fail(job.status(), /*json=*/false);
      code_ = Weightier(code_, code);
      // Where the server is gone or the user is, the others cannot be waited for, either.
      stopped_ = code == kUnreachable || code == kInterrupted;
      if (!stopped_) {
        Count("LOST", code);
        open_.pop_front();
      }
      return;
    }
    open_.pop_front();
    if (!job->has_succeeded()) {
      for (const DiagnosticLine& line : LinesOf(job->diagnostics())) console_.Err(line);
    }
    ExitCode code = ExitCodeOf(*job);
    std::string state = StateName(StateOf(*job));
    if (job->has_succeeded()) {
      code = Fetch(open, *job);
      if (code != kDone) state = "NOT_FETCHED";
    }
    console_.Err(
        code == kDone ? Console::Tone::kGood : Console::Tone::kBad,
        absl::StrCat(Label(open.item), ": ", state, job->cache_hit() ? " (from the cache)" : "",
                     "  ", Printable(job->job_id())));
    if (options_.json) PrintJob(open.item, *job);
    Count(state, code);
    if (job->cache_hit()) ++cache_hits_;
  }

  ExitCode Fetch(const Open& open, const v1::CompileJob& job) {
    if (!PrepareFolder(open.folder, console_)) return kWrongUsage;
    const std::vector<v1::Artifact> artifacts(job.artifacts().begin(), job.artifacts().end());
    const absl::Status status = client_.Fetch(job.job_id(), artifacts, open.folder, nullptr);
    if (status.ok()) return kDone;
    console_.Err(absl::StrCat("npuc-remote: to fetch them again: npuc-remote fetch ",
                              Printable(job.job_id()), " -o ", Printable(open.folder)));
    return console_.Fail(status, /*json=*/false);
  }

  void PrintJob(size_t i, const v1::CompileJob& job) {
    Json object = Json::parse(JobJson(job));
    object["config"] = Printable(items_[i].config);
    console_.Out(AsciiLine(object));
  }

  void Count(const std::string& state, ExitCode code) {
    ++states_[state];
    ++ended_;
    code_ = Weightier(code_, code);
  }

  std::string Standing() const {
    std::string text = absl::StrCat(ended_, " of ", items_.size(), " done");
    for (const auto& [state, count] : states_) {
      if (state != "SUCCEEDED") absl::StrAppend(&text, ", ", count, " ", state);
    }
    return text;
  }

  void ShowWayBack() {
    if (open_.empty()) return;
    console_.Err(
        "npuc-remote: these jobs go on without this client; the same command again finds "
        "their results in the cache:");
    for (const Open& open : open_) {
      console_.Err(
          absl::StrCat("  ", Printable(open.job_id), "  ", Printable(items_[open.item].config)));
    }
  }

  void Summarize() {
    console_.progress().Clear();
    const double seconds = absl::ToDoubleSeconds(absl::Now() - started_);
    if (options_.json) {
      Json counts = Json::object();
      for (const auto& [state, count] : states_) counts[state] = count;
      console_.Out(AsciiLine({{"summary",
                               {{"configs", items_.size()},
                                {"ended", ended_},
                                {"states", counts},
                                {"cache_hits", cache_hits_},
                                {"seconds", seconds},
                                {"exit_code", static_cast<int>(code_)}}}}));
    }
    std::string line = absl::StrCat("npuc-remote: ", Standing());
    if (states_.count("SUCCEEDED") > 0) {
      absl::StrAppend(&line, ", ", states_["SUCCEEDED"], " SUCCEEDED (", cache_hits_,
                      " from the cache)");
    }
    console_.Err(absl::StrFormat("%s in %.1f s", line, seconds));
  }

  client::Client& client_;
  const std::vector<BatchItem>& items_;
  const Options& options_;
  Console& console_;
  const absl::Time started_ = absl::Now();
  std::deque<Open> open_;
  std::map<std::string, int> states_;
  size_t ended_ = 0;
  int cache_hits_ = 0;
  bool stopped_ = false;
  ExitCode code_ = kDone;
};

}  // namespace

absl::StatusOr<std::vector<BatchItem>> ExpandConfigs(const std::vector<std::string>& paths) {
  std::vector<std::string> configs;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      if (const absl::Status added = AddFolder(path, configs); !added.ok()) return added;
    } else {
      configs.push_back(path);
    }
  }
  std::set<std::string> seen;
  for (const std::string& config : configs) {
    if (config == "-" && configs.size() > 1) {
      return absl::InvalidArgumentError("standard input ('-') cannot stand among other configs");
    }
    if (!seen.insert(fs::path(config).lexically_normal().string()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("config '", Printable(config), "' is named twice"));
    }
  }
  if (configs.size() > kMaxConfigs) {
    return absl::InvalidArgumentError(
        absl::StrCat(configs.size(), " configs; at most ", kMaxConfigs, " go into one call"));
  }
  return NameFolders(configs);
}

ExitCode RunBatch(client::Client& client, const std::vector<BatchItem>& items,
                  const Options& options, Console& console) {
  return Batch(client, items, options, console).Run();
}

}  // namespace npuc::remote
