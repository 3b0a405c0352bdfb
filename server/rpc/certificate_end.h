#ifndef NPUC_SERVER_RPC_CERTIFICATE_END_H_
#define NPUC_SERVER_RPC_CERTIFICATE_END_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/log/log.h"

namespace npuc::rpc {

// Until when the first certificate of a PEM file holds. INVALID_ARGUMENT: there is none.
absl::StatusOr<absl::Time> CertificateEnd(const std::string& path);

// Says it where that is over (an error), or will be within two weeks (a warning).
void TellCertificateEnd(const std::string& path, absl::Time now, const log::Logger& log);

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_CERTIFICATE_END_H_
