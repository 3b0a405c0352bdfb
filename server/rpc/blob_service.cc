#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "npuc/v1/blob.grpc.pb.h"
#include "server/api/admin.h"
#include "server/api/convert.h"
#include "server/jobs/service_error.h"
#include "server/rpc/call.h"
#include "server/rpc/services.h"

namespace npuc::rpc {
namespace {

// One upload: reads a chunk, stores it on the pool, reads the next one. One chunk in memory.
class UploadStream : public grpc::ServerReadReactor<v1::UploadBlobRequest> {
 public:
  UploadStream(const RpcDependencies* dependencies, base::WorkPool* pool, auth::Caller caller,
               v1::UploadBlobResponse* response)
      : deps_(*dependencies),
        pool_(pool),
        caller_(std::move(caller)),
        response_(response),
        place_(api::AddStream(deps_, api::kGrpc, "UploadBlob", caller_, "", true)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    pool_->Post([this, ok] {
      absl::Status status = ok ? Store() : Conclude();
      if (ok && status.ok()) {
        StartRead(&request_);
      } else {
        Finish(EndCall(*deps_.log, "UploadBlob", status));
      }
    });
  }

  void OnDone() override { delete this; }

 private:
  absl::Status Store() {
    RETURN_IF_ERROR(deps_.lifecycle->CheckWrites());
    if (!digest_.has_value()) {
      if (!request_.has_digest()) {
        jobs::FieldChecker check;
        check.Add("digest", "is not set in the first message");
        return check.ToStatus();
      }
      ASSIGN_OR_RETURN(cache::BlobDigest digest, api::FromProto(request_.digest(), "digest"));
      ASSIGN_OR_RETURN(state_, deps_.uploads->Begin(caller_.tenant, digest));
      if (place_ != nullptr) place_->SetObject(digest.sha256);
      digest_ = std::move(digest);
    }
    if (place_ != nullptr) place_->Count(request_.data().size());
    if (state_.complete && request_.data().empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(state_, deps_.uploads->Append(caller_.tenant, *digest_, request_.offset(),
                                                   request_.data()));
    api::CountUsage(deps_, caller_.tenant,
                    {.uploaded_bytes = static_cast<int64_t>(request_.data().size())});
    return absl::OkStatus();
  }

  // The client sent its last message, or is gone; in the latter case nobody reads this.
  absl::Status Conclude() {
    if (!digest_.has_value()) {
      jobs::FieldChecker check;
      check.Add("digest", "the stream ended without a message");
      return check.ToStatus();
    }
    response_->set_committed_bytes(static_cast<int64_t>(state_.committed_bytes));
    response_->set_complete(state_.complete);
    return absl::OkStatus();
  }

  const RpcDependencies& deps_;
  base::WorkPool* const pool_;
  const auth::Caller caller_;
  v1::UploadBlobResponse* const response_;
  const std::unique_ptr<api::OpenStreams::Place> place_;  // null: nobody keeps it
  v1::UploadBlobRequest request_;
  std::optional<cache::BlobDigest> digest_;
  cache::UploadState state_;
};

// One download: reads a chunk on the pool, writes it, reads the next one. One chunk in memory.
class DownloadStream : public grpc::ServerWriteReactor<v1::DownloadArtifactResponse> {
 public:
  DownloadStream(const RpcDependencies* dependencies, base::WorkPool* pool, auth::Caller caller,
                 const v1::DownloadArtifactRequest& request)
      : deps_(*dependencies),
        pool_(pool),
        caller_(std::move(caller)),
        request_(request),
        place_(api::AddStream(deps_, api::kGrpc, "DownloadArtifact", caller_,
                              absl::StrCat(request.job_id(), "/", request.artifact_name()), true)) {
    pool_->Post([this] { Next(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the client went away"));
      return;
    }
    pool_->Post([this] { Next(); });
  }

  void OnDone() override { delete this; }

 private:
  void Next() {
    const absl::StatusOr<bool> more = ReadChunk();
    if (more.ok() && *more) {
      StartWrite(&response_);
    } else {
      Finish(EndCall(*deps_.log, "DownloadArtifact", more.status()));
    }
  }

  // False at the end.
  absl::StatusOr<bool> ReadChunk() {
    response_.Clear();
    if (reader_ == nullptr) {
      ASSIGN_OR_RETURN(reader_, api::OpenArtifact(deps_, caller_, request_, place_.get()));
      offset_ = static_cast<uint64_t>(request_.offset());
      response_.set_sha256(reader_->info().sha256);
    }
    ASSIGN_OR_RETURN(std::string bytes, executor::Downloads::Read(*reader_, offset_));
    if (bytes.empty()) return false;
    response_.set_offset(static_cast<int64_t>(offset_));
    response_.set_size_bytes(static_cast<int64_t>(reader_->info().size_bytes));
    offset_ += bytes.size();
    if (place_ != nullptr) place_->Count(bytes.size());
    response_.set_data(std::move(bytes));
    return true;
  }

  const RpcDependencies& deps_;
  base::WorkPool* const pool_;
  const auth::Caller caller_;
  const v1::DownloadArtifactRequest request_;
  const std::unique_ptr<api::OpenStreams::Place> place_;  // null: nobody keeps it
  std::unique_ptr<cache::ArtifactReader> reader_;
  uint64_t offset_ = 0;
  v1::DownloadArtifactResponse response_;
};

class BlobService : public v1::BlobService::CallbackService {
 public:
  BlobService(const RpcDependencies* dependencies, base::WorkPool* pool)
      : deps_(*dependencies), pool_(pool) {}

  grpc::ServerUnaryReactor* FindMissingBlobs(grpc::CallbackServerContext* context,
                                             const v1::FindMissingBlobsRequest* request,
                                             v1::FindMissingBlobsResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kFindMissingBlobs, request, response);
  }

  grpc::ServerReadReactor<v1::UploadBlobRequest>* UploadBlob(
      grpc::CallbackServerContext* context, v1::UploadBlobResponse* response) override {
    return StartStream<grpc::ServerReadReactor<v1::UploadBlobRequest>>(
        *context, deps_, "UploadBlob", auth::Right::kSubmit, [&](auth::Caller caller) {
          return new UploadStream(&deps_, pool_, std::move(caller), response);
        });
  }

  grpc::ServerUnaryReactor* QueryUpload(grpc::CallbackServerContext* context,
                                        const v1::QueryUploadRequest* request,
                                        v1::QueryUploadResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kQueryUpload, request, response);
  }

  grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* DownloadArtifact(
      grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) override {
    return StartStream<grpc::ServerWriteReactor<v1::DownloadArtifactResponse>>(
        *context, deps_, "DownloadArtifact", auth::Right::kRead, [&](auth::Caller caller) {
          return new DownloadStream(&deps_, pool_, std::move(caller), *request);
        });
  }

 private:
  const RpcDependencies& deps_;
  base::WorkPool* const pool_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeBlobService(const RpcDependencies* dependencies,
                                               base::WorkPool* pool) {
  return std::make_unique<BlobService>(dependencies, pool);
}

}  // namespace npuc::rpc
