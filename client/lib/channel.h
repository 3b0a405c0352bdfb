#ifndef NPUC_CLIENT_LIB_CHANNEL_H_
#define NPUC_CLIENT_LIB_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/lib/client.h"

namespace npuc::client {

// Internal to the library. Checks the options (errors: Client::Create) and makes a channel
// to each server, whose service config retries calls that may be repeated. Does not connect.
absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> MakeChannels(
    const ClientOptions& options);

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_CHANNEL_H_
