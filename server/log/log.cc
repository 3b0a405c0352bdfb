#include "server/log/log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::log {
namespace {

constexpr size_t kMaxFieldBytes = 4096;

absl::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
  }
  return "UNKNOWN";
}

}  // namespace

std::string JsonString(absl::string_view text) {
  const bool is_plain =
      text.size() <= kMaxFieldBytes && std::all_of(text.begin(), text.end(), [](char c) {
        return c >= ' ' && c <= '~' && c != '"' && c != '\\';
      });
  if (is_plain) return absl::StrCat("\"", text, "\"");
  // Printable leaves valid UTF-8 without control characters.
  std::string out = "\"";
  for (const char c : Printable(text, kMaxFieldBytes)) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
  return out;
}

void Logger::Write(LogLevel level, absl::string_view message, LogFields fields) const {
  if (out_ == nullptr) return;
  std::string line = absl::StrCat(
      "{\"time\":\"", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", now_(), absl::UTCTimeZone()),
      "\",\"level\":\"", LevelName(level), "\",\"message\":", JsonString(message));
  for (const auto& [key, value] : fields) {
    absl::StrAppend(&line, ",", JsonString(key), ":", JsonString(value));
  }
  absl::StrAppend(&line, "}\n");
  // Past the stream, whose lock would be held while the line is written: threads that were woken at
  // once, by a sync that they share, would stand in line there. One write is one piece.
  const int fd = fileno(out_);
  absl::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // there is nobody left to tell
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace npuc::log
