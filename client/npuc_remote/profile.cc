#include "client/npuc_remote/profile.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/lib/local_file.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::remote {
namespace {

constexpr size_t kMaxProfileBytes = 64 << 10;

// A field of the profile, the variable that counts before it, and where it goes.
struct Field {
  const char* name;
  const char* variable;
  std::string Options::*option;
  bool is_path;
};
constexpr Field kFields[] = {
    {"server", "NPUC_SERVER", &Options::server, false},
    {"ca", "NPUC_CA", &Options::ca_file, true},
    {"cert", "NPUC_CERT", &Options::cert_file, true},
    {"key", "NPUC_KEY", &Options::key_file, true},
    {"token_file", "NPUC_TOKEN_FILE", &Options::token_file, true},
};
constexpr char kTls[] = "tls";

std::string Environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

absl::StatusOr<std::map<std::string, std::string>> Parse(const std::string& text,
                                                         const std::string& path) {
  std::map<std::string, std::string> values;
  int number = 0;
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line[0] == '#') continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    const std::string name(absl::StripAsciiWhitespace(parts.first));
    bool is_known = name == kTls;
    for (const Field& field : kFields) is_known = is_known || name == field.name;
    if (!is_known || line.find('=') == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": '", Printable(line, 80),
                       "' is no NAME = VALUE of server, ca, cert, key, token_file and tls"));
    }
    values[name] = std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return values;
}

absl::StatusOr<std::map<std::string, std::string>> ReadValues() {
  ASSIGN_OR_RETURN(const std::string text, ReadProfile());
  return Parse(text, ProfilePath());
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool is_written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  if (is_written) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write the profile ", path, ": ", strerror(error)));
}

}  // namespace

std::string ProfilePath() {
  if (const std::string path = Environment("NPUC_PROFILE"); !path.empty()) return path;
  if (const std::string folder = Environment("XDG_CONFIG_HOME"); !folder.empty()) {
    return folder + "/npuc/remote.conf";
  }
  const std::string home = Environment("HOME");
  return home.empty() ? "" : home + "/.config/npuc/remote.conf";
}

absl::StatusOr<std::string> ReadProfile() {
  const std::string path = ProfilePath();
  if (path.empty()) return "";
  absl::StatusOr<std::string> text = client::ReadWholeFile(path, kMaxProfileBytes);
  if (absl::IsNotFound(text.status())) return "";
  return text;
}

absl::Status FillConnection(Options& options) {
  ASSIGN_OR_RETURN(const auto profile, ReadValues());
  const auto value = [&profile](const char* name) {
    const auto found = profile.find(name);
    return found == profile.end() ? std::string() : found->second;
  };
  options.traceparent = Environment("TRACEPARENT");
  // A token of the environment stands for a token file that nobody named.
  if (options.token_file.empty()) options.token = Environment("NPUC_TOKEN");
  for (const Field& field : kFields) {
    std::string& option = options.*field.option;
    if (option.empty()) option = Environment(field.variable);
    const bool is_token = field.option == &Options::token_file;
    if (is_token && !options.token.empty()) continue;
    if (option.empty()) option = value(field.name);
  }
  if (!options.token_file.empty()) options.token.clear();
  options.tls = options.tls || value(kTls) == "true";
  return absl::OkStatus();
}

absl::Status WriteProfile(const Options& options) {
  const std::string path = ProfilePath();
  if (path.empty()) {
    return absl::FailedPreconditionError("there is no home for a profile; set NPUC_PROFILE");
  }
  ASSIGN_OR_RETURN(auto values, ReadValues());
  std::error_code error;
  for (const Field& field : kFields) {
    const std::string& given = options.*field.option;
    if (given.empty()) continue;
    values[field.name] =
        field.is_path ? std::filesystem::absolute(given, error).lexically_normal().string() : given;
  }
  if (options.tls) values[kTls] = "true";
  std::string text = "# Written by npuc-remote config.\n";
  for (const auto& [name, value] : values) absl::StrAppend(&text, name, " = ", value, "\n");
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  return WriteText(path, text);
}

}  // namespace npuc::remote
