#ifndef NPUC_CLIENT_LIB_CLIENT_IMPL_H_
#define NPUC_CLIENT_LIB_CLIENT_IMPL_H_

#include <memory>

#include "client/lib/atomic_file.h"
#include "client/lib/call.h"
#include "client/lib/client.h"
#include "npuc/v1/admin.grpc.pb.h"
#include "npuc/v1/blob.grpc.pb.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "npuc/v1/server_info.grpc.pb.h"

namespace npuc::client {

// Internal to the library.
struct Client::Impl {
  ClientOptions options;
  std::unique_ptr<v1::CompileService::Stub> jobs;
  std::unique_ptr<v1::BlobService::Stub> blobs;
  std::unique_ptr<v1::ServerInfoService::Stub> info;
  std::unique_ptr<v1::AdminService::Stub> admin;
  bool had_contact = false;

  template <typename Stub, typename Prepare, typename Request, typename Response>
  absl::Status Retried(Stub& stub, Prepare prepare, const Request& request, Response& response) {
    return CallRetried(options, had_contact, stub, prepare, request, response);
  }

  // transfer.cc
  absl::Status UploadOne(const LocalFile& file, const TransferProgress& progress);
  absl::Status UploadFrom(const LocalFile& file, int64_t offset, const TransferProgress& progress);
  absl::Status DownloadOne(absl::string_view job_id, const v1::Artifact& artifact, AtomicFile& file,
                           const TransferProgress& progress);
};

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_CLIENT_IMPL_H_
