#ifndef NPUC_CLIENT_NPUC_REMOTE_PROFILE_H_
#define NPUC_CLIENT_NPUC_REMOTE_PROFILE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/npuc_remote/options.h"

namespace npuc::remote {

// Options of the connection that the command line leaves out come from the environment, then from
// the profile, a file that `npuc-remote config` writes.

// $NPUC_PROFILE, else $XDG_CONFIG_HOME/npuc/remote.conf, else ~/.config/npuc/remote.conf. Empty:
// there is no home, and no profile.
std::string ProfilePath();

// Fills in what of server, ca, cert, key, token_file and tls is not given, and the traceparent. A
// field of the environment counts before the profile's. INVALID_ARGUMENT: the profile has a line
// that is none of its own; else why it cannot be read. A profile that is not there is none.
absl::Status FillConnection(Options& options);

// Writes the options that are given into the profile, which keeps its others; "NAME = VALUE" lines,
// for this user alone. Paths become absolute.
absl::Status WriteProfile(const Options& options);

// The profile's text; empty where there is none.
absl::StatusOr<std::string> ReadProfile();

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_PROFILE_H_
