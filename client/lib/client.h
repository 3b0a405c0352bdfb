#ifndef NPUC_CLIENT_LIB_CLIENT_H_
#define NPUC_CLIENT_LIB_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/lib/local_file.h"
#include "client/lib/retry.h"
#include "npuc/v1/admin.pb.h"
#include "npuc/v1/compile.pb.h"
#include "npuc/v1/server_info.pb.h"

namespace npuc::client {

struct ClientOptions {
  // HOST:PORT or unix:PATH; or several of one cluster, separated by commas: where one is not
  // reachable, the client goes on at the next, from where it was.
  std::string server = {};
  bool tls = false;  // encrypted, the server's certificate checked against the system's roots
  std::string ca_file = {};  // encrypted, checked against this PEM file of roots
  // PEM files of a client certificate and its key, over TLS; both or neither.
  std::string cert_file = {};
  std::string key_file = {};
  // A bearer token, sent with each call; only over TLS, or to this machine itself.
  std::string token = {};
  // A W3C `traceparent` ("00-TRACE_ID-SPAN_ID-FLAGS"), sent with each call, so that the server's
  // log and traces are of the caller's trace. One that is malformed is not sent.
  std::string traceparent = {};

  RetryPolicy retry = {};
  absl::Duration call_timeout = absl::Seconds(30);  // of a call that is no stream
  // A stream on which nothing comes or goes for this long is broken. Servers send a heartbeat at
  // least every 15 s.
  absl::Duration silence_timeout = absl::Seconds(45);
  // Of one message of an upload; at most 1 MiB. That and a window of 64 KiB are under way at once
  // (on a line with a round trip of 50 ms, 9 MB/s), and go again where the connection breaks: less
  // than 512 KiB in all, which tests/e2e/uploads.py holds it to.
  size_t chunk_bytes = 384 << 10;
};

// Bytes done of bytes in all.
using TransferProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// A connection to npucd, or to a cluster of them. Every call is tried again, as far as that is safe
// and ClientOptions::retry allows, after lost connections and restarts of the daemon; what had got
// across is not sent or fetched again.
//
// Errors are absl::Status with the service's code; service_error.h reads the rest. UNAVAILABLE: not
// reachable within the policy's patience. CANCELLED: interrupted (retry.is_interrupted).
// Not thread-safe; any number of Clients may be used at once.
class Client {
 public:
  // INVALID_ARGUMENT: malformed server, bad token, unreadable PEM file. FAILED_PRECONDITION: a
  // token for another machine without TLS. Connects only with the first call.
  static absl::StatusOr<std::unique_ptr<Client>> Create(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Uploads those of the files that the server does not hold. INVALID_ARGUMENT where a file is
  // larger than the server takes; FAILED_PRECONDITION where one changed since it was described.
  absl::Status Upload(absl::Span<const LocalFile> files, const TransferProgress& progress);

  // Submits `spec`, whose digests are those of `files`, after uploading what is missing.
  // `request_id` makes a repetition harmless: NewRequestId() for each submission.
  absl::StatusOr<v1::CompileJob> Submit(const v1::CompileJobSpec& spec,
                                        absl::Span<const LocalFile> files,
                                        absl::string_view request_id,
                                        const TransferProgress& progress);

  // Inspects the model of `request`, after uploading those of `files` that are missing; the digests
  // of the request are theirs. UNIMPLEMENTED: the server is older than that.
  absl::StatusOr<v1::InspectModelResponse> InspectModel(const v1::InspectModelRequest& request,
                                                        absl::Span<const LocalFile> files,
                                                        const TransferProgress& progress);

  absl::StatusOr<v1::CompileJob> GetJob(absl::string_view job_id);

  // The first `limit` jobs that match, in the order of the request, without config text and
  // diagnostics. The page fields of the request are this function's.
  absl::StatusOr<std::vector<v1::CompileJob>> ListJobs(v1::ListCompileJobsRequest request,
                                                       int limit);

  absl::StatusOr<v1::CompileJob> CancelJob(absl::string_view job_id, absl::string_view reason);

  // Calls on_event with each event from from_seq on (0 and 1: all), the kept ones exactly once and
  // in order however often the connection is lost; those of a live stream alone have seq 0. OK
  // after the last event of a job that has ended.
  absl::Status Watch(absl::string_view job_id, int64_t from_seq,
                     const std::function<void(const v1::JobEvent&)>& on_event);

  // Fetches artifacts of a job into `folder`, which must exist, under their own names. All of them
  // are complete and verified before the first is put in its place; what was there before stays
  // until then. INVALID_ARGUMENT: a name that is no safe file name. DATA_LOSS: bytes that do not
  // match their SHA-256.
  absl::Status Fetch(absl::string_view job_id, absl::Span<const v1::Artifact> artifacts,
                     const std::string& folder, const TransferProgress& progress);

  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo();

  // UNIMPLEMENTED: the server is older than that.
  absl::StatusOr<v1::GetCallerResponse> GetCaller();

  // Actions of an operator; each needs the right `admin`. `filter`: its page fields are these
  // functions'.
  absl::StatusOr<v1::DispatchState> SetDispatch(bool paused, absl::string_view reason);
  // The number of jobs that were cancelled.
  absl::StatusOr<int64_t> CancelJobs(const v1::ListCompileJobsRequest& filter,
                                     absl::string_view reason);
  // All pages together.
  absl::StatusOr<v1::RequeueJobsResponse> RequeueJobs(v1::ListCompileJobsRequest filter);
  absl::StatusOr<v1::ListTenantsResponse> ListTenants();
  // UNIMPLEMENTED, as the next four: the server is older than that. The cordon is that of the
  // server that answers.
  absl::StatusOr<v1::CordonState> SetCordon(bool cordoned, absl::string_view reason);
  absl::StatusOr<v1::TenantState> SetTenantLimits(const v1::SetTenantLimitsRequest& request);
  absl::StatusOr<v1::RotateTokenResponse> RotateToken(const v1::RotateTokenRequest& request);
  absl::StatusOr<v1::DropUploadsResponse> DropUploads(const v1::DropUploadsRequest& request);
  absl::StatusOr<v1::EvictContentResponse> EvictContent(const v1::EvictContentRequest& request);
  // UNIMPLEMENTED: the server is older than that.
  absl::StatusOr<v1::ListConnectionsResponse> ListConnections(int limit);
  // Entries of the audit log up to `limit`, the newest first, of as many pages as that takes.
  absl::StatusOr<std::vector<v1::AuditEntry>> ListAuditEntries(v1::ListAuditEntriesRequest request,
                                                               int limit);
  // Needs the right `read`. UNIMPLEMENTED: the server is older than that.
  absl::StatusOr<std::vector<v1::TenantUsage>> GetUsage(const v1::GetUsageRequest& request);
  // Returns the caller's own tenant. UNIMPLEMENTED: the server is older than that.
  absl::StatusOr<v1::TenantState> GetQuota();

  // `core` and `framework` may be empty, for all. UNIMPLEMENTED: the server is older than that.
  absl::StatusOr<std::vector<v1::Operator>> ListOperators(absl::string_view core,
                                                          absl::string_view framework);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// 32 random hexadecimal digits.
std::string NewRequestId();

// A token that nobody can guess, of 64 hexadecimal digits, for RotateToken, which
// sends its SHA-256 alone. UNAVAILABLE: the kernel gives no random bytes.
absl::StatusOr<std::string> NewToken();

// True where `server` names this machine: localhost, 127.0.0.0/8, [::1] or unix:PATH.
bool IsLoopback(absl::string_view server);

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_CLIENT_H_
