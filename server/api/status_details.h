#ifndef NPUC_SERVER_API_STATUS_DETAILS_H_
#define NPUC_SERVER_API_STATUS_DETAILS_H_

#include <cstddef>
#include <limits>

#include "absl/status/status.h"
#include "npuc/rpc/status_details.pb.h"

namespace npuc::api {

// A status that is not OK as it goes to a client: code, message, ErrorInfo and what else the error
// has (ErrorDetailsOf), packed under google.rpc's names. An error without a reason of its own gets
// one by its code. Where the violations would make it larger than `max_bytes`, the last one says
// how many are left out.
rpc::Status ToStatusProto(const absl::Status& status,
                          size_t max_bytes = std::numeric_limits<size_t>::max());

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_STATUS_DETAILS_H_
