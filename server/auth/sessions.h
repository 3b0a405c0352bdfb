#ifndef NPUC_SERVER_AUTH_SESSIONS_H_
#define NPUC_SERVER_AUTH_SESSIONS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/auth/caller.h"
#include "server/base/features.h"
#include "server/base/kept_state.h"

namespace npuc::auth {

inline constexpr size_t kMaxSessions = 4096;
inline constexpr size_t kMaxSessionsOfOne = 32;

// The sessions of people who signed in on the page. Each is named by 256 random bits, which only
// the browser has: memory and text have their SHA-256. The text is replaced at each sign-in and
// sign-out, so that sessions outlive the process, hold at all nodes of a cluster, and one that
// ended stays ended. Thread-safe.
class Sessions {
 public:
  struct Options {
    absl::Duration lifetime = absl::Hours(12);  // from sign-in to the end
    std::function<absl::Time()> now = nullptr;
    // Asked before a session is kept that older nodes cannot read; null: there are none.
    const base::Features* features = nullptr;
  };
  // None, until Attach.
  explicit Sessions(Options options) : options_(std::move(options)) {}

  // Takes what the text has, which must outlive this. FAILED_PRECONDITION: it is damaged.
  absl::Status Attach(base::KeptText* text);
  // Takes what began and ended at other nodes.
  absl::Status Refresh();

  // A new session; its secret name. Where a bound is reached, the oldest session goes: of those
  // with the same key, or of all. FAILED_PRECONDITION (FEATURE_NOT_YET): an older node of the
  // cluster could not read it.
  absl::StatusOr<std::string> Start(const SignIn& sign_in);
  // UNAUTHENTICATED (SESSION_ENDED): there is none of this name, or no longer. UNAVAILABLE
  // (RECORD_TOO_NEW): a newer node wrote it. For a name that is
  // not known here the text is read, since the session may just have begun at another node; not
  // more often than each 100 ms, whatever names are tried.
  absl::StatusOr<SignIn> Find(absl::string_view name);
  // False: the session whose name has this SHA-256 (Caller::session) has ended. A session that
  // ends at another node is noticed by Refresh.
  bool Holds(absl::string_view sha256);
  // No error where there is none.
  absl::Status End(absl::string_view name);

  absl::Duration lifetime() const { return options_.lifetime; }

 private:
  struct Session {
    SignIn sign_in;
    absl::Time began;
    std::string newer_way = {};  // a newer node wrote it, in place of SignIn::way; kept as it is
  };
  using Map = std::map<std::string, Session, std::less<>>;  // by the SHA-256 of the name, in hex

  static std::string Format(const Map& sessions);
  static absl::StatusOr<Map> Parse(absl::string_view text);
  bool HasEnded(const Session& session) const;
  // Removes those that have ended, and the oldest until one more has room.
  void MakeRoom(const SignIn& sign_in, Map& sessions) const;

  const Options options_;
  Mutex mutex_;
  // When Find last read the text for a name that is not known here.
  absl::Time looked_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
  base::KeptState<Map> sessions_ NPUC_GUARDED_BY(mutex_){Format, Parse};
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_SESSIONS_H_
