#ifndef NPUC_SERVER_API_METHODS_H_
#define NPUC_SERVER_API_METHODS_H_

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "npuc/v1/blob.pb.h"
#include "npuc/v1/compile.pb.h"
#include "npuc/v1/server_info.pb.h"
#include "server/api/dependencies.h"
#include "server/auth/caller.h"
#include "server/jobs/job_service.h"

namespace npuc::api {

// What each unary call does, on the wire's messages: gRPC and HTTP run the same functions, so that
// they cannot differ. All may block on the store.
template <typename Request, typename Response>
struct Method {
  const char* name;
  // What the caller must have; nullopt: any identity.
  std::optional<auth::Right> right;
  // One of the two. `start` does not wait for the store's write: `done` is called once, on any
  // thread, and must not wait; request and response must live until then.
  using Done = absl::AnyInvocable<void(absl::Status)>;
  absl::Status (*run)(const ApiDependencies& deps, const auth::Caller& caller,
                      const Request& request, Response* response) = nullptr;
  void (*start)(const ApiDependencies& deps, const auth::Caller& caller, const Request& request,
                Response* response, Done done) = nullptr;

  void Start(const ApiDependencies& deps, const auth::Caller& caller, const Request& request,
             Response* response, Done done) const {
    if (start != nullptr) return start(deps, caller, request, response, std::move(done));
    done(run(deps, caller, request, response));
  }
  absl::Status RunAndWait(const ApiDependencies& deps, const auth::Caller& caller,
                          const Request& request, Response* response) const {
    std::promise<absl::Status> answer;
    std::future<absl::Status> answered = answer.get_future();
    Start(deps, caller, request, response,
          [&answer](absl::Status status) { answer.set_value(std::move(status)); });
    return answered.get();
  }
};

extern const Method<v1::CreateCompileJobRequest, v1::CreateCompileJobResponse> kCreateCompileJob;
extern const Method<v1::GetCompileJobRequest, v1::GetCompileJobResponse> kGetCompileJob;
extern const Method<v1::ListCompileJobsRequest, v1::ListCompileJobsResponse> kListCompileJobs;
extern const Method<v1::CancelCompileJobRequest, v1::CancelCompileJobResponse> kCancelCompileJob;
extern const Method<v1::InspectModelRequest, v1::InspectModelResponse> kInspectModel;
extern const Method<v1::FindMissingBlobsRequest, v1::FindMissingBlobsResponse> kFindMissingBlobs;
extern const Method<v1::QueryUploadRequest, v1::QueryUploadResponse> kQueryUpload;
extern const Method<v1::GetServerInfoRequest, v1::GetServerInfoResponse> kGetServerInfo;
extern const Method<v1::GetCallerRequest, v1::GetCallerResponse> kGetCaller;
extern const Method<v1::ListOperatorsRequest, v1::ListOperatorsResponse> kListOperators;
// UploadBlob with a stream of one message.
extern const Method<v1::UploadBlobRequest, v1::UploadBlobResponse> kUploadChunk;

// Calls visit(method) with each of the above. HTTP's routes follow from it.
template <typename Visit>
void ForEachMethod(Visit visit) {
  visit(kCreateCompileJob);
  visit(kGetCompileJob);
  visit(kListCompileJobs);
  visit(kCancelCompileJob);
  visit(kInspectModel);
  visit(kFindMissingBlobs);
  visit(kQueryUpload);
  visit(kGetServerInfo);
  visit(kGetCaller);
  visit(kListOperators);
  visit(kUploadChunk);
}

// DownloadArtifact, up to the bytes, which are Downloads::Read's. Its right is kRead.
// `place`: the stream's, which becomes a part of the job's trace; may be null.
absl::StatusOr<std::unique_ptr<cache::ArtifactReader>> OpenArtifact(
    const ApiDependencies& deps, const auth::Caller& caller,
    const v1::DownloadArtifactRequest& request, OpenStreams::Place* place);

// The place of a call that lasts; null where nobody keeps it.
std::unique_ptr<OpenStreams::Place> AddStream(const ApiDependencies& deps, const char* protocol,
                                              const char* method, const auth::Caller& caller,
                                              std::string object, bool is_transfer);

// Logs what is the server's own fault.
void LogFault(const log::Logger& log, const char* method, const absl::Status& status);

// Too much is under way; RESOURCE_EXHAUSTED (SERVER_BUSY).
absl::Status ServerBusy();

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_METHODS_H_
