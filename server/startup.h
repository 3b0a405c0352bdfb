#ifndef NPUC_SERVER_STARTUP_H_
#define NPUC_SERVER_STARTUP_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// The files that npucd holds and leaves as it starts, and what an operator can do where it cannot.

// Makes the data directory and holds it for this process. The lock goes with the process, however
// that ends.
absl::Status LockDataDir(const std::string& dir);

// Renamed into its place, so that who waits for the file never reads half of it.
absl::Status WritePortFile(const std::string& path, const std::string& text);

// An old one would say that this daemon serves; where none can be written nobody would learn that
// it does. An empty path: nothing.
absl::Status ClearPortFile(const std::string& path);

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

}  // namespace npuc

#endif  // NPUC_SERVER_STARTUP_H_
