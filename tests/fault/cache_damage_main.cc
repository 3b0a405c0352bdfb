// Damages what npucd keeps of results, and asks for them again: no damaged byte may be served, and
// each result must be compiled again. README.md says how to run it.

#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/client.h"
#include "client/npuc_remote/job_input.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "npuc/v1/blob.grpc.pb.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "rocksdb/db.h"
#include "tests/bench/child.h"
#include "tests/fault/daemon_process.h"

namespace npuc::fault {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::string npucd;
  std::string config;
  int damages = 200;
  int entries = 100;  // results at a time; each is damaged once in a round
  int workers = 2;
  unsigned seed = 1;
};

// A result as it was first made: name and SHA-256 of each artifact.
using Digests = std::map<std::string, std::string>;

struct Entry {
  int number = 0;
  std::string job_id;  // the newest job that has it
  Digests good;
};

struct Counts {
  std::atomic<int> refused_downloads = 0;  // of a damaged result by its old job
  std::atomic<int> good_downloads = 0;     // of what the damage had spared
  std::atomic<int> recompiled = 0;
  std::atomic<int> made_again = 0;  // for an old job, and then found by the new one
  std::atomic<int> served_from_cache = 0;
  std::atomic<int> wrong_bytes = 0;
};

// --- The damage ----------------------------------------------------------------------------------

// Changes `value` in one of the ways in which bytes go wrong; false: now it is to be deleted.
bool Spoil(std::string& value, const std::string& other, std::mt19937& random) {
  const auto at = [&] { return value.empty() ? 0 : random() % value.size(); };
  switch (value.empty() ? 4 : random() % 7) {
    case 0:
      value[at()] ^= static_cast<char>(1u << (random() % 8));
      return true;
    case 1:
      value[at()] ^= static_cast<char>(1 + random() % 255);
      return true;
    case 2:
      value.resize(at());
      return true;
    case 3:
      for (size_t i = at(), end = std::min(value.size(), i + 512); i < end; ++i) value[i] = '\0';
      return true;
    case 4:
      value.push_back(static_cast<char>(random()));
      return true;
    case 5:
      value = other;  // a good value, but of another key
      return true;
    default:
      return false;
  }
}

// Damages one stored value of each entry, with the daemon stopped. Returns how many.
absl::StatusOr<int> DamageAll(const std::string& path, std::mt19937& random) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : {"default", "entries", "chunks", "access"}) {
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* raw = nullptr;
  const auto check = [](const rocksdb::Status& status) {
    return status.ok() ? absl::OkStatus() : absl::InternalError(status.ToString());
  };
  RETURN_IF_ERROR(check(rocksdb::DB::Open(rocksdb::DBOptions(), path, families, &handles, &raw)));
  const std::unique_ptr<rocksdb::DB> db(raw);
  // Keys by entry: the manifest, and the chunks of metadata and artifacts.
  std::map<std::string, std::vector<std::pair<rocksdb::ColumnFamilyHandle*, std::string>>> keys;
  constexpr size_t kDigits = 64;
  for (rocksdb::ColumnFamilyHandle* family : {handles[1], handles[2]}) {
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), family));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      const std::string key = it->key().ToString();
      if (key.rfind("default/", 0) != 0) continue;  // the canary's, which the daemon asks for
      keys[key.substr(0, key.find('/') + 1 + kDigits)].emplace_back(family, key);
    }
  }
  int damaged = 0;
  std::string other = "nothing yet";
  absl::Status status;
  for (const auto& [entry, values] : keys) {
    const auto& [family, key] = values[random() % values.size()];
    std::string value;
    status = check(db->Get(rocksdb::ReadOptions(), family, key, &value));
    if (!status.ok()) break;
    const std::string before = value;
    bool keep = true;
    do {
      value = before;
      keep = Spoil(value, other, random);
    } while (keep && value == before);  // zeros over zeros, an equal value
    other = before;
    status = check(keep ? db->Put(rocksdb::WriteOptions(), family, key, value)
                        : db->Delete(rocksdb::WriteOptions(), family, key));
    if (!status.ok()) break;
    ++damaged;
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
  RETURN_IF_ERROR(status);
  return damaged;
}

// --- The daemon and what it is asked -------------------------------------------------------------

struct Connection {
  std::unique_ptr<client::Client> client;
  std::unique_ptr<v1::BlobService::Stub> blobs;
};

absl::StatusOr<Connection> Connect(const std::string& address) {
  Connection made;
  ASSIGN_OR_RETURN(made.client, client::Client::Create({.server = address}));
  made.blobs =
      v1::BlobService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  return made;
}

// The SHA-256 of an artifact's bytes as they come; the status with which the stream ends.
grpc::Status Download(Connection& to, const std::string& job_id, const std::string& name,
                      std::string& sha256) {
  grpc::ClientContext context;
  v1::DownloadArtifactRequest request;
  request.set_job_id(job_id);
  request.set_artifact_name(name);
  const auto reader = to.blobs->DownloadArtifact(&context, request);
  v1::DownloadArtifactResponse response;
  StreamDigest digest;
  while (reader->Read(&response)) digest.Update(response.data());
  sha256 = digest.Finish().sha256_hex;
  return reader->Finish();
}

absl::StatusOr<v1::CompileJob> Compile(Connection& to, const remote::JobInput& input, int number) {
  v1::CompileJobSpec spec = input.spec;
  // What makes each entry another one.
  spec.mutable_model_info_time()->set_seconds(1'000'000 + number);
  ASSIGN_OR_RETURN(const v1::CompileJob job,
                   to.client->Submit(spec, input.files, client::NewRequestId(), nullptr));
  RETURN_IF_ERROR(to.client->Watch(job.job_id(), 1, [](const v1::JobEvent&) {}));
  ASSIGN_OR_RETURN(v1::CompileJob done, to.client->GetJob(job.job_id()));
  if (!done.has_succeeded()) {
    return absl::InternalError(
        absl::StrCat("job ", job.job_id(), " did not succeed: ", done.failed().message()));
  }
  return done;
}

absl::Status Fill(Connection& to, const remote::JobInput& input, Entry& entry) {
  ASSIGN_OR_RETURN(const v1::CompileJob job, Compile(to, input, entry.number));
  entry.job_id = job.job_id();
  for (const v1::Artifact& artifact : job.artifacts()) {
    std::string sha256;
    const grpc::Status status = Download(to, job.job_id(), artifact.name(), sha256);
    if (!status.ok() || sha256 != artifact.sha256()) {
      return absl::InternalError(
          absl::StrCat("a new artifact cannot be read: ", status.error_message()));
    }
    entry.good[artifact.name()] = sha256;
  }
  return absl::OkStatus();
}

// What may differ between two runs of one job.
bool IsCompared(const std::string& name) { return name != "compile.log"; }

// Asks for a damaged result: of every second one by its old job first, then by a new one.
absl::Status Ask(Connection& to, const remote::JobInput& input, bool old_first, Entry& entry,
                 Counts& counts) {
  for (const auto& [name, good] : old_first ? entry.good : Digests()) {
    std::string sha256;
    const grpc::Status status = Download(to, entry.job_id, name, sha256);
    if (!status.ok()) {
      ++counts.refused_downloads;
    } else {
      ++(sha256 == good ? counts.good_downloads : counts.wrong_bytes);
    }
  }
  ASSIGN_OR_RETURN(const v1::CompileJob job, Compile(to, input, entry.number));
  if (!job.cache_hit()) {
    ++counts.recompiled;
  } else {
    ++(old_first ? counts.made_again : counts.served_from_cache);
  }
  entry.job_id = job.job_id();
  if (static_cast<size_t>(job.artifacts_size()) != entry.good.size()) ++counts.wrong_bytes;
  for (const v1::Artifact& artifact : job.artifacts()) {
    std::string sha256;
    const grpc::Status status = Download(to, job.job_id(), artifact.name(), sha256);
    std::string& good = entry.good[artifact.name()];
    if (!IsCompared(artifact.name())) good = artifact.sha256();
    if (!status.ok() || sha256 != good) ++counts.wrong_bytes;
  }
  return absl::OkStatus();
}

// Calls `work` for each entry, from two threads with a connection each.
absl::Status ForEach(const std::string& address, std::vector<Entry>& entries,
                     const std::function<absl::Status(Connection&, Entry&)>& work) {
  std::atomic<size_t> next = 0;
  std::vector<absl::Status> results(2);
  std::vector<std::thread> threads;
  for (absl::Status& result : results) {
    threads.emplace_back([&] {
      absl::StatusOr<Connection> connection = Connect(address);
      result = connection.status();
      for (size_t i = next++; result.ok() && i < entries.size(); i = next++) {
        result = work(*connection, entries[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

struct Server {
  bench::Child child;
  std::string address;
};

absl::StatusOr<Server> Start(const Settings& settings, const std::string& folder) {
  const std::string port_file = folder + "/port";
  fs::remove(port_file);
  ASSIGN_OR_RETURN(bench::Child child,
                   bench::Child::Start({settings.npucd, "--data-dir", folder + "/data", "--listen",
                                        "127.0.0.1:0", "--insecure", "--workers",
                                        absl::StrCat(settings.workers), "--port-file", port_file},
                                       folder + "/npucd.log"));
  ASSIGN_OR_RETURN(const std::string address, child.WaitForAddress(port_file));
  return Server{std::move(child), address};
}

absl::Status Run(const Settings& settings, const std::string& folder) {
  Diagnostics diagnostics;
  ASSIGN_OR_RETURN(const remote::JobInput input,
                   remote::ReadJobInput(settings.config, diagnostics));
  std::mt19937 random(settings.seed);
  std::vector<Entry> entries(static_cast<size_t>(settings.entries));
  for (size_t i = 0; i < entries.size(); ++i) entries[i].number = static_cast<int>(i);
  {
    ASSIGN_OR_RETURN(const Server server, Start(settings, folder));
    RETURN_IF_ERROR(ForEach(server.address, entries,
                            [&](Connection& to, Entry& entry) { return Fill(to, input, entry); }));
  }  // killed
  Counts counts;
  int damaged = 0;
  while (damaged < settings.damages) {
    ASSIGN_OR_RETURN(const int now, DamageAll(folder + "/data/artifacts", random));
    if (now != settings.entries) {
      return absl::InternalError(absl::StrCat("the cache has ", now, " entries"));
    }
    damaged += now;
    ASSIGN_OR_RETURN(const Server server, Start(settings, folder));
    RETURN_IF_ERROR(ForEach(server.address, entries, [&](Connection& to, Entry& entry) {
      return Ask(to, input, entry.number % 2 == 0, entry, counts);
    }));
  }
  std::printf(
      "cache_damage: %d corruptions (seed %u): %d recompiled, %d made again for old jobs, "
      "%d served "
      "from the cache, %d answers with wrong bytes; downloads by old jobs: %d refused, %d right\n",
      damaged, settings.seed, counts.recompiled.load(), counts.made_again.load(),
      counts.served_from_cache.load(), counts.wrong_bytes.load(), counts.refused_downloads.load(),
      counts.good_downloads.load());
  const bool good = counts.recompiled + counts.made_again == damaged && counts.made_again > 0 &&
                    counts.served_from_cache == 0 && counts.wrong_bytes == 0;
  return good ? absl::OkStatus() : absl::InternalError("a damaged result was served, see above");
}

int Main(int argc, char** argv) {
  Settings settings;
  const fs::path self = fs::read_symlink("/proc/self/exe");
  settings.npucd = (self.parent_path() / "npucd").string();
  settings.config = (self.parent_path() / "../../deploy/samples/kws/config.yaml").string();
  CLI::App app("damages cached results, and sees that none is served", "cache_damage");
  app.add_option("--damages", settings.damages, "so many at least")->check(CLI::Range(1, 1000000));
  app.add_option("--entries", settings.entries, "damaged at once")->check(CLI::Range(1, 10000));
  app.add_option("--workers", settings.workers, "of npucd")->check(CLI::Range(1, 64));
  app.add_option("--seed", settings.seed, "of what is damaged, and how");
  app.add_option("--npucd", settings.npucd, "the daemon (default: beside this program)");
  app.add_option("--config", settings.config, "what to compile (default: the sample)");
  CLI11_PARSE(app, argc, argv);
  return RunInFolder("cache_damage", "",
                     [&](const std::string& folder) { return Run(settings, folder); });
}

}  // namespace
}  // namespace npuc::fault

int main(int argc, char** argv) { return npuc::fault::Main(argc, argv); }
