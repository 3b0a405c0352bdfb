#include "server/flags.h"

#include <algorithm>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr absl::string_view kValueOptions[] = {"--data-dir", "--listen", "--http", "--workers",
                                               "--port-file"};
constexpr absl::string_view kUnsupported[] = {"--tls-cert", "--tls-key", "--client-ca", "--tenants",
                                              "--config"};
constexpr int kMaxWorkers = 256;

template <size_t N>
bool IsOneOf(absl::string_view name, const absl::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

absl::Status SetValue(Flags& flags, absl::string_view name, absl::string_view value) {
  if (name == "--data-dir") flags.data_dir = std::string(value);
  if (name == "--listen") flags.listen = std::string(value);
  if (name == "--http") flags.http = std::string(value);
  if (name == "--port-file") flags.port_file = std::string(value);
  if (name == "--workers" && (!absl::SimpleAtoi(value, &flags.workers) || flags.workers < 1 ||
                              flags.workers > kMaxWorkers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workers '", Printable(value), "' is not a number of 1 to ", kMaxWorkers));
  }
  return absl::OkStatus();
}

// Who can connect could read every model: without TLS only this machine may.
absl::Status CheckLoopback(absl::string_view option, absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " '", Printable(address), "' is not HOST:PORT"));
  }
  const absl::string_view host = address.substr(0, colon);
  if (host == "127.0.0.1" || host == "localhost" || host == "[::1]") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " '", Printable(address),
                   "': --insecure serves this machine alone; use 127.0.0.1, [::1] or localhost"));
}

absl::Status Check(Flags& flags) {
  if (flags.data_dir.empty()) return absl::InvalidArgumentError("--data-dir DIR is required");
  if (!flags.insecure) {
    return absl::InvalidArgumentError(
        "--insecure is required: this version has no TLS and no identities, and serves this "
        "machine alone");
  }
  RETURN_IF_ERROR(CheckLoopback("--listen", flags.listen));
  if (!flags.http.empty()) RETURN_IF_ERROR(CheckLoopback("--http", flags.http));
  if (flags.workers == 0) {
    flags.workers = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Flags> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    const bool has_value = equals != absl::string_view::npos;
    if (IsOneOf(name, kUnsupported)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is not supported by this version; it runs with --insecure only"));
    }
    if (IsOneOf(name, kValueOptions)) {
      if (!has_value && i + 1 == argc) {
        return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
      }
      const absl::string_view value = has_value ? argument.substr(equals + 1) : argv[++i];
      RETURN_IF_ERROR(SetValue(flags, name, value));
    } else if (argument == "--insecure") {
      flags.insecure = true;
    } else if (argument == "--help" || argument == "-h") {
      flags.help = true;
    } else if (argument == "--version") {
      flags.version = true;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown option '", Printable(argument), "'"));
    }
  }
  if (!flags.help && !flags.version) RETURN_IF_ERROR(Check(flags));
  return flags;
}

std::string FlagsHelp() {
  return "usage: npucd --data-dir DIR --insecure [options]\n"
         "  --data-dir DIR      where jobs, models and artifacts are kept; one npucd at a time\n"
         "  --insecure          no TLS, no identities; serves this machine alone (required)\n"
         "  --listen HOST:PORT  gRPC; port 0 picks one (default 127.0.0.1:8470)\n"
         "  --http HOST:PORT    HTTP: /healthz answers 200 while serving, else 503 (default: "
         "none)\n"
         "  --workers N         compiles at once (default: one a CPU)\n"
         "  --port-file FILE    gets grpc=HOST:PORT and http=HOST:PORT lines once it serves\n"
         "  --version, --help\n"
         "SIGTERM drains: nothing new is taken, what runs may finish, the rest stays queued.\n";
}

}  // namespace npuc
