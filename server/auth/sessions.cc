#include "server/auth/sessions.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/posix.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/auth/authenticator.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

constexpr size_t kMaxFileBytes = size_t{16} << 20;
constexpr std::pair<SignIn::Way, const char*> kWays[] = {
    {SignIn::Way::kToken, "token"},
    {SignIn::Way::kCertificate, "certificate"},
};

const char* NameOf(SignIn::Way way) {
  for (const auto& [known, name] : kWays) {
    if (known == way) return name;
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sessions>> Sessions::Open(Options options) {
  auto sessions = std::unique_ptr<Sessions>(new Sessions(std::move(options)));
  const MutexLock lock(sessions->mutex_);
  RETURN_IF_ERROR(sessions->Read());
  return sessions;
}

// Lines: SHA-256 of the name, the way, when it began in seconds, and the key with escapes.
absl::Status Sessions::Read() {
  std::ifstream in(options_.path, std::ios::binary);
  if (!in) return absl::OkStatus();  // nobody has signed in yet
  std::string text(kMaxFileBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    Session session;
    int64_t began = 0;
    const auto* way = std::find_if(std::begin(kWays), std::end(kWays), [&](const auto& known) {
      return parts.size() == 4 && parts[1] == known.second;
    });
    if (way == std::end(kWays) || !absl::SimpleAtoi(parts[2], &began) ||
        !absl::CUnescape(parts[3], &session.sign_in.key)) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.path, " is damaged; remove it, and people sign in again"));
    }
    session.sign_in.way = way->first;
    session.began = absl::FromUnixSeconds(began);
    sessions_.emplace(parts[0], std::move(session));
  }
  return absl::OkStatus();
}

absl::Status Sessions::Save() {
  std::string text;
  for (const auto& [name, session] : sessions_) {
    absl::StrAppend(&text, name, "\t", NameOf(session.sign_in.way), "\t",
                    absl::ToUnixSeconds(session.began), "\t", absl::CEscape(session.sign_in.key),
                    "\n");
  }
  const std::string fresh = options_.path + ".new";
  ASSIGN_OR_RETURN(const cache::UniqueFd file,
                   cache::OpenFile(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  RETURN_IF_ERROR(cache::WriteAllAt(file.get(), text, 0, fresh));
  if (std::rename(fresh.c_str(), options_.path.c_str()) == 0) return absl::OkStatus();
  return cache::ErrnoStatus(errno, "cannot write", options_.path);
}

bool Sessions::HasEnded(const Session& session) const {
  return options_.now() >= session.began + options_.lifetime;
}

void Sessions::MakeRoom(const SignIn& sign_in) {
  std::erase_if(sessions_, [this](const auto& entry) { return HasEnded(entry.second); });
  const auto drop_oldest = [this](size_t limit, const auto& counts) {
    std::vector<Map::iterator> found;
    for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
      if (counts(it->second)) found.push_back(it);
    }
    if (found.size() < limit) return;
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a->second.began < b->second.began; });
    for (size_t i = 0; i <= found.size() - limit; ++i) sessions_.erase(found[i]);
  };
  drop_oldest(kMaxSessionsOfOne, [&](const Session& one) { return one.sign_in == sign_in; });
  drop_oldest(kMaxSessions, [](const Session&) { return true; });
}

absl::StatusOr<std::string> Sessions::Start(const SignIn& sign_in) {
  std::string name = NewToken();
  const MutexLock lock(mutex_);
  MakeRoom(sign_in);
  sessions_.emplace(Sha256Hex(name), Session{sign_in, options_.now()});
  RETURN_IF_ERROR(Save());
  return name;
}

absl::StatusOr<SignIn> Sessions::Find(absl::string_view name) const {
  const MutexLock lock(mutex_);
  const auto it = sessions_.find(Sha256Hex(name));
  if (it != sessions_.end() && !HasEnded(it->second)) return it->second.sign_in;
  return jobs::ServiceError(absl::StatusCode::kUnauthenticated,
                            "the session has ended; sign in again", {.reason = "SESSION_ENDED"});
}

absl::Status Sessions::End(absl::string_view name) {
  const MutexLock lock(mutex_);
  return sessions_.erase(Sha256Hex(name)) == 0 ? absl::OkStatus() : Save();
}

}  // namespace npuc::auth
