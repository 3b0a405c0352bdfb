#ifndef NPUC_TESTS_FAULT_SERVICE_LOAD_H_
#define NPUC_TESTS_FAULT_SERVICE_LOAD_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "client/npuc_remote/job_input.h"
#include "npuc/v1/compile.grpc.pb.h"

namespace npuc::fault {

// A config with what a quiet daemon made of it.
struct LoadVariant {
  remote::JobInput input;
  std::map<std::string, std::string> artifacts = {};  // SHA-256 by name; compile.log left out
};

// Reads configs; model_info's time is pinned, so that every compile of one makes the same bytes.
absl::StatusOr<std::vector<LoadVariant>> ReadVariants(const std::vector<std::string>& configs);

// A channel that comes back soon after the server does.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address);

// "REASON" of an error's ErrorInfo; empty where it has none.
std::string ReasonOf(const grpc::Status& status);

// Whether a client that gets this may and should try again: UNAVAILABLE, or RESOURCE_EXHAUSTED with
// RetryInfo.
bool IsRetryable(const grpc::Status& status);

struct LoadOptions {
  // One daemon, or the nodes of a cluster: then each call, and each connection of a watcher,
  // goes to any of them.
  std::vector<std::string> addresses;
  int clients = 8;
  // Every error that a client sees must be retryable (SIGTERM); else it need only say that the
  // connection is gone (SIGKILL).
  bool only_retryable = false;
  uint64_t seed = 1;
};

// Clients that submit, watch, cancel and fetch while the daemon comes and goes, and note every
// promise that was broken: an accepted job that is gone, has two ends or none; events with a gap, a
// repeat or another content than before; two jobs of one request id; other artifacts than those of
// a quiet run; an error that invites no retry.
class ServiceLoad {
 public:
  // `variants` with their artifacts; they must outlive this.
  ServiceLoad(LoadOptions options, const std::vector<LoadVariant>* variants);
  ~ServiceLoad();

  void Start();
  // Each client ends the job that it is at; the daemon must serve.
  void Finish();
  // Reads everything again: each accepted job, all of its events, and that the server has no
  // others.
  void Audit();

  struct Report {
    int64_t accepted = 0;
    int64_t succeeded = 0;
    int64_t cancelled = 0;
    int64_t cache_hits = 0;
    int64_t given_up = 0;    // ended FAILED since the daemon died too often under them
    int64_t run_again = 0;   // jobs with more than one attempt
    int64_t reconnects = 0;  // of watchers
    int64_t events = 0;
    int64_t repeated_sends = 0;
    int64_t fetched = 0;
    std::map<std::string, int64_t> errors;  // seen by clients, "CODE REASON"
    std::vector<std::string> broken;        // the promises, at most 100
    int64_t broken_count = 0;
  };
  Report report() const;

 private:
  struct Record;
  class Client;

  void Break(const std::string& what);
  // False: an answer that no repetition mends, which breaks a promise.
  bool CountError(const grpc::Status& status, const char* call);
  void SetCall(grpc::ClientContext& context, absl::Duration timeout) const;
  void AuditJob(v1::CompileService::Stub& stub, const Record& record);
  void AuditList(v1::CompileService::Stub& stub);

  std::vector<std::shared_ptr<grpc::Channel>> OpenChannels() const;

  const LoadOptions options_;
  const std::vector<LoadVariant>* const variants_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> abandoned_ = false;  // nobody asks any more how it ended
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  Report report_;                           // guarded by mutex_
  std::map<std::string, Record> accepted_;  // by job; guarded by mutex_
};

// Compiles each variant on a daemon and notes what comes out.
absl::Status CompileQuietly(const std::string& address, std::vector<LoadVariant>& variants);

}  // namespace npuc::fault

#endif  // NPUC_TESTS_FAULT_SERVICE_LOAD_H_
