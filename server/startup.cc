#include "server/startup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/status.h"
#include "server/base/steady_clock.h"

namespace npuc::daemon {
namespace {

absl::Status WriteText(const std::string& path, absl::string_view text) {
  errno = 0;
  std::ofstream out(path, std::ios::trunc);
  out << text;
  if (out.flush()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

absl::Status OfFile(absl::string_view flag, const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " '", path, "': ", why));
}

// A file that other users may not read; no error has its text.
absl::StatusOr<std::string> ReadPrivateFile(absl::string_view flag, const std::string& path,
                                            size_t max_bytes) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return OfFile(flag, path, std::strerror(errno));
  if ((info.st_mode & S_IRWXO) != 0) {
    return OfFile(flag, path, "other users may read it; take their rights away (chmod o= FILE)");
  }
  errno = 0;
  std::ifstream in(path);
  std::string text(max_bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) return OfFile(flag, path, std::strerror(errno));
  if (text.size() <= max_bytes) return text;
  return OfFile(flag, path, absl::StrCat("it has more than ", max_bytes, " bytes"));
}

// The parts of a data directory (deploy/OPERATIONS.md).
constexpr const char* kParts[] = {"jobs",    "artifacts", "blobs", "work",
                                  "bundles", "snapshots", "LOCK"};

absl::Status CheckParts(const std::string& dir) {
  for (const char* part : kParts) {
    const std::string path = absl::StrCat(dir, "/", part);
    std::error_code error;
    if (!std::filesystem::is_symlink(path, error)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("data directory: ", path,
                     " is a symbolic link; put the folder itself there, or mount it there"));
  }
  return absl::OkStatus();
}

std::string TemporaryOf(const std::string& port_file) { return port_file + ".tmp"; }

}  // namespace

absl::Status LockDataDir(const std::string& dir, bool* is_new) {
  if (mkdir(dir.c_str(), 0700) != 0 && errno == ENOENT) {
    return absl::FailedPreconditionError(absl::StrCat("data directory ", dir,
                                                      ": the folder above it is missing; correct "
                                                      "--data-dir, or make that folder"));
  }
  RETURN_IF_ERROR(CheckParts(dir));
  std::error_code error;
  *is_new = std::filesystem::is_empty(dir, error);
  const std::string path = dir + "/LOCK";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot use data directory ", dir, ": ",
                                                      std::strerror(errno),
                                                      "; give a writable one with --data-dir"));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("data directory ", dir,
                     " is in use by another npucd; stop that one, or "
                     "give another --data-dir"));
  }
  return absl::OkStatus();  // fd stays open until the process ends
}

absl::Status WritePortFile(const std::string& path, const std::string& text) {
  RETURN_IF_ERROR(WriteText(TemporaryOf(path), text));
  std::error_code error;
  std::filesystem::rename(TemporaryOf(path), path, error);
  if (error) return absl::InternalError(absl::StrCat("cannot write ", path, ": ", error.message()));
  return absl::OkStatus();
}

absl::Status ClearPortFile(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  if (const absl::Status status = WriteText(TemporaryOf(path), ""); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--port-file: ", status.message()));
  }
  std::error_code error;
  for (const std::string& old : {TemporaryOf(path), path}) std::filesystem::remove(old, error);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> SourceDateEpoch() {
  const char* const text = std::getenv("SOURCE_DATE_EPOCH");
  if (text == nullptr) return std::nullopt;
  int64_t seconds = 0;
  if (!absl::SimpleAtoi(text, &seconds) || seconds < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("SOURCE_DATE_EPOCH '", text, "' is not a number of seconds since 1970"));
  }
  return seconds;
}

absl::StatusOr<std::string> ReadSecret(const char* flag, const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadPrivateFile(flag, path, 1024));
  text.resize(std::min(text.size(), text.find_first_of("\r\n\0", 0, 3)));
  if (text.empty()) return OfFile(flag, path, "its first line, the secret, is empty");
  return text;
}

absl::StatusOr<oidc::Settings> ReadOidcSettings(const oidc::Settings& settings,
                                                const std::string& secret_file) {
  oidc::Settings with_secret = settings;
  if (secret_file.empty()) return with_secret;
  ASSIGN_OR_RETURN(with_secret.client_secret, ReadSecret("--oidc-client-secret-file", secret_file));
  return with_secret;
}

absl::StatusOr<http_client::Headers> ReadOtlpHeaders(const std::string& path) {
  constexpr char kFlag[] = "--otlp-headers-file";
  if (path.empty()) return http_client::Headers();
  ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(kFlag, path, size_t{64} << 10));
  absl::StatusOr<http_client::Headers> headers = otlp::ParseHeaders(text);
  if (!headers.ok()) return OfFile(kFlag, path, headers.status().message());
  return headers;
}

absl::StatusOr<objects::Credentials> ReadS3Credentials(const std::string& path) {
  constexpr char kFlag[] = "--cluster-content-credentials-file";
  ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(kFlag, path, size_t{16} << 10));
  absl::StatusOr<objects::Credentials> credentials = objects::ParseCredentials(text);
  if (!credentials.ok()) return OfFile(kFlag, path, credentials.status().message());
  return credentials;
}

absl::StatusOr<std::string> KeptNodeName(const std::string& data_dir) {
  const std::string path = data_dir + "/node_name";
  std::string name;
  if (std::ifstream in(path); in >> name) return name;
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  std::random_device random;
  name = absl::StrCat(host, "-", absl::Hex(random(), absl::kZeroPad8));
  RETURN_IF_ERROR(WritePortFile(path, name + "\n"));
  return name;
}

std::string BesideThisProgram(const char* name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

std::string DashboardFolder() {
  std::error_code error;
  const std::string beside = BesideThisProgram("dashboard");
  return std::filesystem::exists(beside, error) ? beside
                                                : BesideThisProgram("../share/npuc/dashboard");
}

absl::Status WithAdvice(const absl::Status& status, absl::string_view advice) {
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(status.message(), "; ", advice));
}

absl::Status OfFlag(absl::string_view flag, const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return status;
  return absl::UnavailableError(absl::StrCat(
      flag, ": ", status.message(),
      "; give an address of this machine with a port that nobody else has, or port 0 for any"));
}

absl::Status AwaitStore(const log::Logger* log, absl::FunctionRef<absl::Status()> attempt) {
  constexpr absl::Duration kPatience = absl::Minutes(1);
  constexpr absl::Duration kPause = absl::Milliseconds(250);
  const absl::Time limit = base::SteadyNow() + kPatience;
  bool is_told = false;
  while (true) {
    absl::Status status = attempt();
    if (!absl::IsUnavailable(status) || base::SteadyNow() >= limit) return status;
    if (!std::exchange(is_told, true)) {
      log->Warning("the store is away; this daemon waits for it",
                   {{"error", status.message()}, {"limit", absl::FormatDuration(kPatience)}});
    }
    absl::SleepFor(kPause);
  }
}

}  // namespace npuc::daemon
