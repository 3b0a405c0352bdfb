#ifndef NPUC_CLIENT_LIB_CLIENT_IMPL_H_
#define NPUC_CLIENT_LIB_CLIENT_IMPL_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "client/lib/atomic_file.h"
#include "client/lib/call.h"
#include "client/lib/client.h"
#include "client/lib/retry.h"
#include "compiler_core/base/status.h"
#include "npuc/v1/admin.grpc.pb.h"
#include "npuc/v1/blob.grpc.pb.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "npuc/v1/server_info.grpc.pb.h"

namespace npuc::client {

// Internal to the library.

// One of the servers that were named.
struct Server {
  std::unique_ptr<v1::CompileService::Stub> jobs;
  std::unique_ptr<v1::BlobService::Stub> blobs;
  std::unique_ptr<v1::ServerInfoService::Stub> info;
  std::unique_ptr<v1::AdminService::Stub> admin;
};

struct Client::Impl {
  ClientOptions options;
  std::vector<Server> servers;  // at least one
  size_t at = 0;                // of the one that is called
  bool had_contact = false;

  Server& server() { return servers[at]; }
  Retrier NewRetrier() { return Retrier(options.retry, had_contact, servers.size()); }

  // After a failure: OK where another try is due, at the next server where this one is not
  // reachable.
  absl::Status Again(Retrier& retrier, const absl::Status& failure) {
    const RetryClass kind = Classify(failure);
    if (kind == RetryClass::kUnreachable || kind == RetryClass::kOdd) {
      at = (at + 1) % servers.size();
    }
    return retrier.Wait(failure);
  }

  // A call that may be repeated, tried as the policy says. PREPARE: &Stub::PrepareAsyncX.
  template <typename Stub, typename Prepare, typename Request, typename Response>
  absl::Status Retried(const ClientOptions& call_options, std::unique_ptr<Stub> Server::*stub,
                       Prepare prepare, const Request& request, Response& response) {
    Retrier retrier = NewRetrier();
    while (true) {
      const absl::Status status =
          CallOnce(call_options, *(server().*stub), prepare, request, response);
      if (status.ok()) {
        had_contact = true;
        return status;
      }
      RETURN_IF_ERROR(Again(retrier, status));
    }
  }
  template <typename Stub, typename Prepare, typename Request, typename Response>
  absl::Status Retried(std::unique_ptr<Stub> Server::*stub, Prepare prepare, const Request& request,
                       Response& response) {
    return Retried(options, stub, prepare, request, response);
  }

  // transfer.cc
  absl::Status UploadOne(const LocalFile& file, const TransferProgress& progress);
  absl::Status UploadFrom(const LocalFile& file, int64_t offset, const TransferProgress& progress);
  absl::Status DownloadOne(absl::string_view job_id, const v1::Artifact& artifact, AtomicFile& file,
                           const TransferProgress& progress);
};

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_CLIENT_IMPL_H_
