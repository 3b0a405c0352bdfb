#ifndef NPUC_CLIENT_LIB_FAKE_SERVER_H_
#define NPUC_CLIENT_LIB_FAKE_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "npuc/v1/blob.grpc.pb.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "npuc/v1/server_info.grpc.pb.h"

namespace npuc::client {

// For tests: a server in this process that speaks the wire of npucd, keeps its state in memory over
// Restart(), and breaks calls as its script says. All fields are guarded by `mutex` while it
// serves.
class FakeServer final : public v1::CompileService::Service,
                         public v1::BlobService::Service,
                         public v1::ServerInfoService::Service {
 public:
  FakeServer();
  ~FakeServer() override;

  const std::string& address() const { return address_; }
  // Ends every call under way and listens again on the same port, as a daemon after kill -9.
  void Restart();
  void Stop();

  // How a scripted failure ends a call: as a draining daemon does, or as a lost connection.
  // Or as a server that wants an old watch to begin anew.
  enum class Break { kUnavailable, kReset, kReattach };

  struct Script {
    Break how = Break::kUnavailable;
    int fail_unary = 0;                // so many calls answer UNAVAILABLE before they do anything
    int lose_create_answers = 0;       // so many jobs are stored, but the answer is UNAVAILABLE
    int forget_blobs_at_create = 0;    // so many submissions find the blobs evicted
    int break_uploads = 0;             // so many uploads break after ...
    int64_t break_upload_after = 0;    // ... so many bytes of the stream, which are committed
    int break_watches = 0;             // so many watches break after ...
    int break_watch_after = 0;         // ... so many events of the stream
    int break_downloads = 0;           // so many downloads break after ...
    int64_t break_download_after = 0;  // ... so many bytes of the stream
    int skip_seq = 0;                  // this event is never sent
    bool corrupt_downloads = false;    // the last byte differs
    bool hang_watches = false;         // a watch sends nothing and does not end until cancelled
    grpc::Status create_error;         // not OK: what CreateCompileJob answers
    std::map<std::string, std::string> conditions = {};  // of readiness, and why each does not hold
  };

  std::mutex mutex;
  Script script;
  std::map<std::string, std::string> blobs;  // committed bytes by SHA-256
  // What each submitted job becomes at once, but for its id; artifact bytes by name.
  v1::CompileJob outcome;
  std::vector<v1::JobEvent> events;
  std::map<std::string, std::string> artifact_bytes;
  std::map<std::string, v1::CompileJob> jobs;  // by request id
  v1::CreateCompileJobRequest last_create;
  v1::ListCompileJobsRequest last_list;
  v1::InspectModelRequest last_inspect;
  v1::InspectModelResponse inspection;  // what InspectModel answers
  int create_calls = 0;
  int64_t uploaded_bytes = 0;  // received in all streams
  int64_t downloaded_bytes = 0;
  int upload_streams = 0;
  int watch_streams = 0;
  std::string traceparent;    // of the last call
  std::string authorization;  // of the last call

  // An outcome that SUCCEEDED with one artifact, model.h, of the given bytes, and six events.
  void Succeed(const std::string& bytes);
  // An outcome that FAILED with one diagnostic.
  void Fail();

 private:
  grpc::Status CreateCompileJob(grpc::ServerContext* context,
                                const v1::CreateCompileJobRequest* request,
                                v1::CreateCompileJobResponse* response) override;
  grpc::Status GetCompileJob(grpc::ServerContext* context, const v1::GetCompileJobRequest* request,
                             v1::GetCompileJobResponse* response) override;
  grpc::Status ListCompileJobs(grpc::ServerContext* context,
                               const v1::ListCompileJobsRequest* request,
                               v1::ListCompileJobsResponse* response) override;
  grpc::Status CancelCompileJob(grpc::ServerContext* context,
                                const v1::CancelCompileJobRequest* request,
                                v1::CancelCompileJobResponse* response) override;
  grpc::Status InspectModel(grpc::ServerContext* context, const v1::InspectModelRequest* request,
                            v1::InspectModelResponse* response) override;
  grpc::Status WatchCompileJob(grpc::ServerContext* context,
                               const v1::WatchCompileJobRequest* request,
                               grpc::ServerWriter<v1::WatchCompileJobResponse>* writer) override;
  grpc::Status FindMissingBlobs(grpc::ServerContext* context,
                                const v1::FindMissingBlobsRequest* request,
                                v1::FindMissingBlobsResponse* response) override;
  grpc::Status UploadBlob(grpc::ServerContext* context,
                          grpc::ServerReader<v1::UploadBlobRequest>* reader,
                          v1::UploadBlobResponse* response) override;
  grpc::Status QueryUpload(grpc::ServerContext* context, const v1::QueryUploadRequest* request,
                           v1::QueryUploadResponse* response) override;
  grpc::Status DownloadArtifact(grpc::ServerContext* context,
                                const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::DownloadArtifactResponse>* writer) override;
  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::GetServerInfoResponse* response) override;

  grpc::Status GetCaller(grpc::ServerContext* context, const v1::GetCallerRequest* request,
                         v1::GetCallerResponse* response) override;

  void Start(const std::string& address);
  grpc::Status BreakCall(grpc::ServerContext* context) const;
  // Counts down; mutex held.
  bool FailUnary(grpc::ServerContext* context);
  const v1::CompileJob* FindJob(const std::string& id) const;

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// An error as npucd makes it: ErrorInfo with a reason, and one violation where `problem` is given.
grpc::Status ServiceStatus(grpc::StatusCode code, const std::string& message,
                           const std::string& reason, const std::string& problem = "");

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_FAKE_SERVER_H_
