#ifndef NPUC_SERVER_API_METHODS_H_
#define NPUC_SERVER_API_METHODS_H_

#include <memory>
#include <optional>
#include <string>

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

namespace npuc {

// What each unary call does, on the wire's messages: gRPC and HTTP run the same functions, so that
// they cannot differ. All may block on the store.
template <typename Request, typename Response>
struct Method {
  const char* name;
  // What the caller must have; nullopt: any identity.
  std::optional<Right> right;
  absl::Status (*run)(const ApiDependencies& deps, const Caller& caller, const Request& request,
                      Response* response);
  // The same without waiting for the store to write, where that is worth it; else null. Without
  // may_wait it returns false, and has done nothing, where it would have to wait otherwise. `done`
  // is called once, on any thread, and must not wait; request and response must live until then.
  // `later` runs what may wait on another thread.
  using Done = absl::AnyInvocable<void(absl::Status)>;
  bool (*start)(const ApiDependencies& deps, const Caller& caller, const Request& request,
                Response* response, const JobService::Later& later, bool may_wait,
                Done&& done) = nullptr;
};

extern const Method<v1::CreateCompileJobRequest, v1::CreateCompileJobResponse> kCreateCompileJob;
extern const Method<v1::GetCompileJobRequest, v1::GetCompileJobResponse> kGetCompileJob;
extern const Method<v1::ListCompileJobsRequest, v1::ListCompileJobsResponse> kListCompileJobs;
extern const Method<v1::CancelCompileJobRequest, v1::CancelCompileJobResponse> kCancelCompileJob;
extern const Method<v1::FindMissingBlobsRequest, v1::FindMissingBlobsResponse> kFindMissingBlobs;
extern const Method<v1::QueryUploadRequest, v1::QueryUploadResponse> kQueryUpload;
extern const Method<v1::GetServerInfoRequest, v1::GetServerInfoResponse> kGetServerInfo;
extern const Method<v1::ListOperatorsRequest, v1::ListOperatorsResponse> kListOperators;
// UploadBlob with a stream of one message.
extern const Method<v1::UploadBlobRequest, v1::UploadBlobResponse> kUploadChunk;

// DownloadArtifact, up to the bytes, which are Downloads::Read's. Its right is kRead.
absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(
    const ApiDependencies& deps, const Caller& caller, const v1::DownloadArtifactRequest& request);

// The trace id of a W3C traceparent header, "00-<32 hex digits>-<16>-<2>"; empty where it has none.
std::string TraceIdOf(absl::string_view traceparent);

// Logs what is the server's own fault.
void LogFault(const Logger& log, const char* method, const absl::Status& status);

// Too much is under way; RESOURCE_EXHAUSTED (SERVER_BUSY).
absl::Status ServerBusy();

}  // namespace npuc

#endif  // NPUC_SERVER_API_METHODS_H_
