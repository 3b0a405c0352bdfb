// A node of a cluster. Its threads read and change jobs of the shared store, and note each call,
// its answer and the times of both. cluster_histories.py says what must hold of all notes together.
// It ends where the node cannot join, and is to be started again.
//
// A line each, times of the machine's steady clock in nanoseconds:
//   I KEY FROM TAG BEGIN         a change of KEY from version FROM to the next was sent, as TAG
//   C KEY TAG END ok|no|unknown  its answer
//   R KEY VERSION TAG BEGIN END  KEY was read; version 0 is that it is not there, its tag "-"
// KEY is a job or a request id. Versions of a job are its revisions; version 1 of a request id is
// the job that it made.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"
#include "server/pg/node.h"
#include "server/pg/pg_job_store.h"

namespace npuc::fault {
namespace {

using jobs::Job;

// Keys of one time: few enough that threads meet. Each time has keys of its own, so that no record
// grows for long.
constexpr int64_t kTimeNs = int64_t{4'000'000'000};
constexpr int kJobs = 12;
constexpr int kRequests = 300;
constexpr char kTenant[] = "t";

enum class Plant { kNone, kStale, kBlind };

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Settings {
  std::string url;
  std::string secret_file;
  std::string name;
  std::string folder;
  double ttl_seconds = 2;
  int threads = 8;
  Plant plant = Plant::kNone;
};

// A thread's notes. Each is in the file before the call goes on, so that a process that is killed
// leaves no change that nobody sent.
class Notes {
 public:
  explicit Notes(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}

  bool is_open() const { return file_.get() >= 0; }
  void Sent(absl::string_view key, uint64_t from, absl::string_view tag, int64_t begin) {
    Write(absl::StrCat("I ", key, " ", from, " ", tag, " ", begin, "\n"));
  }
  void Answered(absl::string_view key, absl::string_view tag, absl::string_view answer) {
    Write(absl::StrCat("C ", key, " ", tag, " ", NowNs(), " ", answer, "\n"));
  }
  void Read(absl::string_view key, uint64_t version, absl::string_view tag, int64_t begin) {
    Write(absl::StrCat("R ", key, " ", version, " ", tag, " ", begin, " ", NowNs(), "\n"));
  }

 private:
  void Write(const std::string& line) {
    if (write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      std::perror("store_history");
      std::_Exit(1);
    }
  }

  cache::UniqueFd file_;
};

class Client {
 public:
  Client(const Settings& settings, pg::PgJobStore* store, int number)
      : plant_(settings.plant),
        store_(store),
        name_(absl::StrCat(settings.name, ".", getpid(), ".", number)),
        notes_(absl::StrCat(settings.folder, "/", name_, ".notes")),
        random_(std::random_device{}()) {}

  bool is_open() const { return notes_.is_open(); }

  void Loop() {
    while (true) Step();
  }

 private:
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  void Step() {
    const int64_t time = NowNs() / kTimeNs;
    const int dice = Below(10);
    if (dice == 0) return Request(absl::StrCat("q", time, "-", Below(kRequests)));
    if (time != time_) known_.clear();
    time_ = time;
    const std::string key = absl::StrCat("j", time, "-", Below(kJobs));
    if (dice < 5) return ReadJob(key);
    if (dice < 6) return ReadEvents(key);
    // Some change what they have just read, and some what they remember.
    if (dice < 9 || known_.find(key) == known_.end()) ReadJob(key);
    Change(key);
  }

  void ReadJob(const std::string& key) {
    const int64_t begin = NowNs();
    if (plant_ == Plant::kStale && known_.find(key) != known_.end() && Below(10) == 0) {
      const Job& old = known_[key];
      return notes_.Read(key, old.revision, old.revision == 0 ? "-" : old.reason, begin);
    }
    const absl::StatusOr<Job> job = store_->Read(key);
    if (job.ok()) {
      known_[key] = *job;
      notes_.Read(key, job->revision, job->reason, begin);
    } else if (absl::IsNotFound(job.status())) {
      known_[key] = Job();
      notes_.Read(key, 0, "-", begin);
    }
  }

  // Each change has one event, so that events show the version, too.
  void ReadEvents(const std::string& key) {
    const auto known = known_.find(key);
    const uint64_t revision = known == known_.end() ? 0 : known->second.revision;
    const int64_t from = revision == 0 ? 1 : static_cast<int64_t>(revision);
    const int64_t begin = NowNs();
    const auto events = store_->ReadEvents(key, from, 10000, size_t{1} << 26);
    if (!events.ok()) return;
    for (size_t i = 0; i < events->size(); ++i) {
      if ((*events)[i].seq != from + static_cast<int64_t>(i)) {
        return notes_.Read(key, 0, absl::StrCat("gap-at-", from + static_cast<int64_t>(i)), begin);
      }
    }
    if (events->empty()) return revision == 0 ? notes_.Read(key, 0, "-", begin) : void();
    const jobs::JobEvent& last = events->back();
    notes_.Read(key, static_cast<uint64_t>(last.seq), std::get<jobs::LogEvent>(last.body).text,
                begin);
  }

  void Change(const std::string& key) {
    const auto known = known_.find(key);
    if (known == known_.end()) return;  // PostgreSQL is away
    const uint64_t from = known->second.revision;
    jobs::JobChange change{.job = known->second};
    Job& job = change.job;
    if (from == 0) job = NewJob(key);
    job.revision = from + 1;
    job.reason = absl::StrCat(name_, ".", ++changes_);
    job.last_seq = static_cast<int64_t>(job.revision);
    change.events = {{.seq = job.last_seq, .body = jobs::LogEvent{job.reason}}};
    const std::string tag = job.reason;
    const Job after = job;
    if (Apply(key, from, tag, std::move(change))) known_[key] = after;
  }

  void Request(const std::string& key) {
    if (Below(2) == 0) {
      const int64_t begin = NowNs();
      const auto found = store_->FindRequest(kTenant, key);
      if (!found.ok()) return;
      return notes_.Read(key, found->has_value() ? 1 : 0, found->value_or("-"), begin);
    }
    const std::string id = absl::StrCat("n", name_, ".", ++changes_);
    jobs::JobChange change{.job = NewJob(id)};
    change.job.request_id = key;
    (void)Apply(key, 0, id, std::move(change));
  }

  Job NewJob(const std::string& id) {
    Job job;
    job.id = id;
    job.tenant = kTenant;
    job.revision = 1;
    job.spec.inputs = {{.role = "MODEL_FILE", .name = "m", .sha256 = "s", .md5 = "m"}};
    job.create_time = absl::Now();
    return job;
  }

  // True: it was made for certain.
  bool Apply(const std::string& key, uint64_t from, const std::string& tag,
             jobs::JobChange change) {
    if (from == 0) change.config_text = "";
    notes_.Sent(key, from, tag, NowNs());
    const absl::Status status = store_->ApplyAndWait(std::move(change));
    const bool is_refused = absl::IsAborted(status) || absl::IsAlreadyExists(status);
    if (is_refused && plant_ == Plant::kBlind && Below(100) == 0) {
      notes_.Answered(key, tag, "ok");
      return false;
    }
    notes_.Answered(key, tag, status.ok() ? "ok" : is_refused ? "no" : "unknown");
    return status.ok();
  }

  const Plant plant_;
  pg::PgJobStore* const store_;
  const std::string name_;
  Notes notes_;
  std::mt19937 random_;
  int64_t changes_ = 0;
  int64_t time_ = 0;
  std::map<std::string, Job> known_;  // of this time: what was read or written last
};

absl::Status Run(const Settings& settings) {
  pg::ConnectionOptions options{.url = settings.url};
  std::ifstream secret(settings.secret_file);
  std::getline(secret, options.password);
  pg::Sessions sessions(options);
  const absl::Duration ttl = absl::Seconds(settings.ttl_seconds);
  const pg::NodeOptions node_options{
      .name = settings.name, .ttl = ttl, .beat_period = ttl / 5, .steady_now = [] {
        return absl::FromUnixNanos(NowNs());
      }};
  ASSIGN_OR_RETURN(const std::unique_ptr<pg::Node> node, pg::Node::Join(&sessions, node_options));
  node->StartBeating();
  pg::PgJobStore store(&sessions, node.get());
  std::vector<std::thread> threads;
  for (int i = 0; i < settings.threads; ++i) {
    threads.emplace_back([&, i] {
      Client client(settings, &store, i);
      if (client.is_open()) client.Loop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return absl::InternalError("the notes cannot be written");
}

int Main(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, Plant> plants = {{"stale", Plant::kStale}, {"blind", Plant::kBlind}};
  CLI::App app("threads that use a shared store, and note all answers, until a signal",
               "store_history");
  app.add_option("--url", settings.url, "of the database")->required();
  app.add_option("--secret-file", settings.secret_file, "with its password")->required();
  app.add_option("--name", settings.name, "of the node")->required();
  app.add_option("--folder", settings.folder, "for the notes")->required();
  app.add_option("--ttl-seconds", settings.ttl_seconds, "of a node that is silent");
  app.add_option("--threads", settings.threads, "at once")->check(CLI::Range(1, 64));
  app.add_option("--plant", settings.plant,
                 "stale: some reads show what was read before; blind: some changes that were "
                 "refused are noted as made")
      ->transform(CLI::CheckedTransformer(plants));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(settings);
  std::fprintf(stderr, "store_history: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace npuc::fault

int main(int argc, char** argv) { return npuc::fault::Main(argc, argv); }
