#ifndef NPUC_SERVER_LOG_LOG_H_
#define NPUC_SERVER_LOG_LOG_H_

#include <cstdio>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace npuc::log {

enum class LogLevel : uint8_t { kInfo, kWarning, kError };

using LogFields = std::initializer_list<std::pair<absl::string_view, absl::string_view>>;

// The daemon's log: one JSON object a line, {"time":...,"level":...,"message":...} and fields such
// as "job". Never the content of a model or a config. Thread-safe; a line is written in one piece.
class Logger {
 public:
  // `out`, a file and not a stream in memory, must outlive this; null: nothing is written.
  Logger(std::FILE* out, std::function<absl::Time()> now) : out_(out), now_(std::move(now)) {}

  void Write(LogLevel level, absl::string_view message, LogFields fields = {}) const;
  void Info(absl::string_view message, LogFields fields = {}) const {
    Write(LogLevel::kInfo, message, fields);
  }
  void Warning(absl::string_view message, LogFields fields = {}) const {
    Write(LogLevel::kWarning, message, fields);
  }
  void Error(absl::string_view message, LogFields fields = {}) const {
    Write(LogLevel::kError, message, fields);
  }

 private:
  std::FILE* const out_;
  const std::function<absl::Time()> now_;
};

// `text` as a JSON string, quotes included. Bytes that are not UTF-8 come out as \u00NN.
std::string JsonString(absl::string_view text);

}  // namespace npuc::log

#endif  // NPUC_SERVER_LOG_LOG_H_
