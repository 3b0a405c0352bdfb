#include "server/auth/sessions.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/auth/authenticator.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
constexpr std::pair<SignIn::Way, const char*> kWays[] = {
    {SignIn::Way::kToken, "token"},
    {SignIn::Way::kCertificate, "certificate"},
    {SignIn::Way::kProvider, "provider"},
};

const char* NameOf(SignIn::Way way) {
  for (const auto& [known, name] : kWays) {
    if (known == way) return name;
  }
  return "";
}

}  // namespace

// Lines: SHA-256 of the name, the way, when it began in seconds, and the key with escapes.
std::string Sessions::Format(const Map& sessions) {
  std::string text;
  for (const auto& [name, session] : sessions) {
    const absl::string_view way = session.newer_way.empty()
                                      ? absl::string_view(NameOf(session.sign_in.way))
                                      : absl::string_view(session.newer_way);
    absl::StrAppend(&text, name, "\t", way, "\t", absl::ToUnixSeconds(session.began), "\t",
                    absl::CEscape(session.sign_in.key), "\n");
  }
  return text;
}

absl::StatusOr<Sessions::Map> Sessions::Parse(absl::string_view text) {
  Map sessions;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    Session session;
    int64_t began = 0;
    if (parts.size() != 4 || parts[1].empty() || !absl::SimpleAtoi(parts[2], &began) ||
        !absl::CUnescape(parts[3], &session.sign_in.key)) {
      return absl::FailedPreconditionError(
          "the sessions of the page (sessions) are damaged; remove them, and people sign in again");
    }
    const auto* way = std::find_if(std::begin(kWays), std::end(kWays),
                                   [&](const auto& known) { return parts[1] == known.second; });
    if (way == std::end(kWays)) {
      session.newer_way = parts[1];
    } else {
      session.sign_in.way = way->first;
    }
    session.began = absl::FromUnixSeconds(began);
    sessions.emplace(parts[0], std::move(session));
  }
  return sessions;
}

absl::Status Sessions::Attach(base::KeptText* text) {
  const MutexLock lock(mutex_);
  return sessions_.Attach(text);
}

absl::Status Sessions::Refresh() {
  const MutexLock lock(mutex_);
  return sessions_.Read().status();
}

bool Sessions::HasEnded(const Session& session) const {
  return options_.now() >= session.began + options_.lifetime;
}

void Sessions::MakeRoom(const SignIn& sign_in, Map& sessions) const {
  std::erase_if(sessions, [this](const auto& entry) { return HasEnded(entry.second); });
  const auto drop_oldest = [&sessions](size_t limit, const auto& counts) {
    std::vector<Map::iterator> found;
    for (auto it = sessions.begin(); it != sessions.end(); ++it) {
      if (counts(it->second)) found.push_back(it);
    }
    if (found.size() < limit) return;
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a->second.began < b->second.began; });
    for (size_t i = 0; i <= found.size() - limit; ++i) sessions.erase(found[i]);
  };
  drop_oldest(kMaxSessionsOfOne, [&](const Session& one) { return one.sign_in == sign_in; });
  drop_oldest(kMaxSessions, [](const Session&) { return true; });
}

absl::StatusOr<std::string> Sessions::Start(const SignIn& sign_in) {
  const bool is_readable = sign_in.way != SignIn::Way::kProvider || options_.features == nullptr ||
                           options_.features->Allows(base::Feature::kProviderSessions);
  if (!is_readable) {
    return jobs::ServiceError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("nobody can sign in by a provider yet: the cluster is at feature level ",
                     options_.features->level(), ", and it takes ",
                     static_cast<int64_t>(base::Feature::kProviderSessions),
                     "; upgrade all nodes (npucd --feature-wait-hours says when the level rises)"),
        {.reason = "FEATURE_NOT_YET"});
  }
  std::string name = NewToken();
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(sessions_.Change([&](Map& sessions) {
    MakeRoom(sign_in, sessions);
    sessions.emplace(Sha256Hex(name), Session{sign_in, options_.now()});
    return absl::OkStatus();
  }));
  return name;
}

absl::StatusOr<SignIn> Sessions::Find(absl::string_view name) {
  const std::string sha256 = Sha256Hex(name);
  const MutexLock lock(mutex_);
  if (!sessions_.Get().contains(sha256) && options_.now() >= looked_ + kBetweenLooks) {
    looked_ = options_.now();
    RETURN_IF_ERROR(sessions_.Read().status());
  }
  const auto it = sessions_.Get().find(sha256);
  if (it != sessions_.Get().end() && !HasEnded(it->second)) {
    if (it->second.newer_way.empty()) return it->second.sign_in;
    return jobs::ServiceError(
        absl::StatusCode::kUnavailable,
        absl::StrCat("the session began in a way that this npucd does not know (",
                     it->second.newer_way, "); upgrade it, or ask another node"),
        {.reason = "RECORD_TOO_NEW", .retry_delay = absl::Seconds(2)});
  }
  return jobs::ServiceError(absl::StatusCode::kUnauthenticated,
                            "the session has ended; sign in again", {.reason = "SESSION_ENDED"});
}

bool Sessions::Holds(absl::string_view sha256) {
  const MutexLock lock(mutex_);
  const auto it = sessions_.Get().find(sha256);
  return it != sessions_.Get().end() && !HasEnded(it->second);
}

absl::Status Sessions::End(absl::string_view name) {
  const std::string sha256 = Sha256Hex(name);
  const MutexLock lock(mutex_);
  return sessions_.Change([&](Map& sessions) {
    sessions.erase(sha256);
    return absl::OkStatus();
  });
}

}  // namespace npuc::auth
