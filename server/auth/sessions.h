#ifndef NPUC_SERVER_AUTH_SESSIONS_H_
#define NPUC_SERVER_AUTH_SESSIONS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/auth/caller.h"

namespace npuc::auth {

inline constexpr size_t kMaxSessions = 4096;
inline constexpr size_t kMaxSessionsOfOne = 32;

// The sessions of people who signed in on the page. Each is named by 256 random bits, which only
// the browser has: memory and file have their SHA-256. The file is written anew at each sign-in and
// sign-out, so that sessions outlive the process, and one that ended stays ended. Thread-safe.
class Sessions {
 public:
  struct Options {
    std::string path;                           // of the file
    absl::Duration lifetime = absl::Hours(12);  // from sign-in to the end
    std::function<absl::Time()> now = nullptr;
  };
  // FAILED_PRECONDITION: the file is damaged, or cannot be read.
  static absl::StatusOr<std::unique_ptr<Sessions>> Open(Options options);

  // A new session; its secret name. Where a bound is reached, the oldest session goes: of those
  // with the same key, or of all.
  absl::StatusOr<std::string> Start(const SignIn& sign_in);
  // UNAUTHENTICATED (SESSION_ENDED): there is none of this name, or no longer.
  absl::StatusOr<SignIn> Find(absl::string_view name) const;
  // No error where there is none.
  absl::Status End(absl::string_view name);

  absl::Duration lifetime() const { return options_.lifetime; }

 private:
  struct Session {
    SignIn sign_in;
    absl::Time began;
  };
  using Map = std::map<std::string, Session, std::less<>>;

  explicit Sessions(Options options) : options_(std::move(options)) {}
  absl::Status Read() NPUC_REQUIRES(mutex_);
  absl::Status Save() NPUC_REQUIRES(mutex_);
  bool HasEnded(const Session& session) const;
  // Removes those that have ended, and the oldest until one more has room.
  void MakeRoom(const SignIn& sign_in) NPUC_REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  Map sessions_ NPUC_GUARDED_BY(mutex_);  // by the SHA-256 of the name, in hex
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_SESSIONS_H_
