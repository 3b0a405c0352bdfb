#ifndef NPUC_CLIENT_LIB_SERVICE_ERROR_H_
#define NPUC_CLIENT_LIB_SERVICE_ERROR_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace npuc::client {

// What the service says beside an error's code and message (proto/API.md lists the reasons).
struct ServiceError {
  std::string reason;  // "QUEUE_FULL"; empty: the error is not the service's own
  std::map<std::string, std::string> metadata;
  std::optional<absl::Duration> retry_delay;  // set: the service invites a retry after this
  // What is wrong with the request or must be done first, one sentence each.
  std::vector<std::string> problems;
};

// The details that travelled with a status of Client; empty where there are none.
ServiceError ServiceErrorOf(const absl::Status& status);

// A status that carries `serialized`, the bytes of a google.rpc.Status ("grpc-status-details-bin").
// Bytes that are none are left out.
absl::Status WithServiceError(absl::StatusCode code, absl::string_view message,
                              absl::string_view serialized);

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_SERVICE_ERROR_H_
