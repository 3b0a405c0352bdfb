#ifndef NPUC_SERVER_STARTUP_H_
#define NPUC_SERVER_STARTUP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/log/log.h"
#include "server/objects/signature.h"
#include "server/oidc/settings.h"
#include "server/otlp/collector.h"

namespace npuc::daemon {

// The files that npucd finds, holds and leaves as it starts, and what an operator can do where it
// cannot.

// Makes the data directory where it is missing, its parent being there, and holds it for this
// process. The lock goes with the process, however that ends. *is_new: it was made, or was empty.
// FAILED_PRECONDITION: another process holds it, it cannot be used, or a part of it is a symbolic
// link: what clears or fills that part would work on another folder.
absl::Status LockDataDir(const std::string& dir, bool* is_new);

// Renamed into its place, so that who waits for the file never reads half of it.
absl::Status WritePortFile(const std::string& path, const std::string& text);

// An old one would say that this daemon serves; where none can be written nobody would learn that
// it does. An empty path: nothing.
absl::Status ClearPortFile(const std::string& path);

// SOURCE_DATE_EPOCH, as reproducible builds have it; nullopt where it is not set.
absl::StatusOr<std::optional<int64_t>> SourceDateEpoch();

// The first line of a file with a secret, without its end; `flag` names the file. INVALID_ARGUMENT:
// it cannot be read, is empty or too long, or users beside its owner and group may read it. No
// error has its text.
absl::StatusOr<std::string> ReadSecret(const char* flag, const std::string& path);

// The settings of --oidc-issuer with the client's secret. Errors as of ReadSecret.
absl::StatusOr<oidc::Settings> ReadOidcSettings(const oidc::Settings& settings,
                                                const std::string& secret_file);

// The headers that --otlp-headers-file names; none of an empty path. Errors as of ReadSecret.
absl::StatusOr<http_client::Headers> ReadOtlpHeaders(const std::string& path);

// The credentials that --cluster-content-credentials-file names. Errors as of ReadSecret.
absl::StatusOr<objects::Credentials> ReadS3Credentials(const std::string& path);

// The name of this daemon among others, where none was given: made of the machine's name at the
// first start, and kept in the data directory.
absl::StatusOr<std::string> KeptNodeName(const std::string& data_dir);

// npuc-worker is beside npucd, in a build the dashboard's files are, too.
std::string BesideThisProgram(const char* name);
// Where it is installed (cmake/install.cmake) it is among the files that do not run.
std::string DashboardFolder();

// Of a store that cannot be read (DATA_LOSS), with `advice` behind it; others as they are.
absl::Status WithAdvice(const absl::Status& status, absl::string_view advice);

// Of a port that cannot be had (UNAVAILABLE), with the flag that asked for it and the fix; others
// as they are.
absl::Status OfFlag(absl::string_view flag, const absl::Status& status);
template <typename T>
absl::StatusOr<T> OfFlag(absl::string_view flag, absl::StatusOr<T> made) {
  if (!made.ok()) return OfFlag(flag, made.status());
  return made;
}

// Calls until it succeeds, fails for another reason than that the shared store is away
// (UNAVAILABLE), or a minute has passed: a daemon that starts while PostgreSQL restarts or fails
// over waits for it. The log says so once. For the start alone, which any signal ends.
absl::Status AwaitStore(const log::Logger* log, absl::FunctionRef<absl::Status()> attempt);

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_STARTUP_H_
