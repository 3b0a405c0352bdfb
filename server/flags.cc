#include "server/flags.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/base/yaml_tree.h"
#include "server/http_client/url.h"
#include "server/otlp/collector.h"

namespace npuc::daemon {
namespace {

constexpr absl::string_view kValueOptions[] = {"--data-dir",
                                               "--listen",
                                               "--http",
                                               "--workers",
                                               "--port-file",
                                               "--tls-cert",
                                               "--tls-key",
                                               "--client-ca",
                                               "--tenants",
                                               "--stop-seconds",
                                               "--max-queued",
                                               "--disk-reserve-mib",
                                               "--memory-mib",
                                               "--canary-seconds",
                                               "--sandbox",
                                               "--max-streams",
                                               "--cgroup",
                                               "--web",
                                               "--max-connections",
                                               "--spares",
                                               "--work-nice",
                                               "--blob-mib",
                                               "--tenant-blob-mib",
                                               "--tenant-uploads",
                                               "--upload-idle-seconds",
                                               "--address-call-rate",
                                               "--session-hours",
                                               "--cluster",
                                               "--cluster-secret-file",
                                               "--cluster-content-mib",
                                               "--cluster-content",
                                               "--cluster-content-credentials-file",
                                               "--cluster-content-ca-file",
                                               "--node-name",
                                               "--node-ttl-seconds",
                                               "--feature-wait-hours",
                                               "--oidc-issuer",
                                               "--oidc-client-id",
                                               "--oidc-client-secret-file",
                                               "--oidc-scopes",
                                               "--oidc-claim",
                                               "--oidc-page-url",
                                               "--oidc-ca-file",
                                               "--oidc-name",
                                               "--audit-syslog",
                                               "--otlp-endpoint",
                                               "--otlp-headers-file",
                                               "--otlp-ca-file",
                                               "--otlp-sampling-ratio",
                                               "--backup",
                                               "--restore",
                                               "--check",
                                               "--config"};
constexpr absl::string_view kSwitches[] = {"--insecure",       "--shared-cache", "--new-token",
                                           "--cluster-pooler", "--version",      "--help",
                                           "--migrate",        "--check-config"};
// Options that say what this call does, which a file cannot.
constexpr absl::string_view kOfACall[] = {"--config",    "--check-config", "--backup",
                                          "--restore",   "--check",        "--migrate",
                                          "--new-token", "--version",      "--help"};
constexpr int kMaxWorkers = 256;

template <size_t N>
bool IsOneOf(absl::string_view name, const absl::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

absl::Status UnknownOption(absl::string_view argument, absl::string_view name) {
  std::vector<absl::string_view> known(std::begin(kValueOptions), std::end(kValueOptions));
  known.insert(known.end(), std::begin(kSwitches), std::end(kSwitches));
  const std::string nearest = DidYouMean(name, known, "");
  return absl::InvalidArgumentError(absl::StrCat("unknown option '", Printable(argument), "'",
                                                 nearest.empty() ? "" : "; ", nearest));
}

absl::Status SetNumber(absl::string_view name, absl::string_view value, int min, int max,
                       int& number) {
  if (absl::SimpleAtoi(value, &number) && number >= min && number <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " '", Printable(value), "' is not a number of ", min, " to ", max));
}

absl::Status SetSandbox(Flags& flags, absl::string_view value) {
  if (value == "require") {
    flags.sandbox = worker::SandboxMode::kRequire;
  } else if (value == "best-effort") {
    flags.sandbox = worker::SandboxMode::kBestEffort;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--sandbox '", Printable(value), "' is neither require nor best-effort"));
  }
  return absl::OkStatus();
}

absl::Status SetCgroup(Flags& flags, absl::string_view value) {
  if (value == "auto") {
    flags.cgroup = Flags::Cgroup::kAuto;
  } else if (value == "require") {
    flags.cgroup = Flags::Cgroup::kRequire;
  } else if (value == "off") {
    flags.cgroup = Flags::Cgroup::kOff;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--cgroup '", Printable(value), "' is none of auto, require and off"));
  }
  return absl::OkStatus();
}

absl::Status SetEndpoint(Flags& flags, absl::string_view value) {
  const absl::Status read = otlp::TracesUrl(value).status();
  if (!read.ok())
    return absl::InvalidArgumentError(absl::StrCat("--otlp-endpoint ", read.message()));
  flags.otlp_endpoint = std::string(value);
  return absl::OkStatus();
}

absl::Status SetRatio(absl::string_view name, absl::string_view value, double& ratio) {
  // Not a number compares as false.
  if (absl::SimpleAtod(value, &ratio) && ratio >= 0 && ratio <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " '", Printable(value), "' is not a number of 0 to 1"));
}

// Takes the value where it is good; an error begins with the flag's name.
absl::Status SetChecked(absl::string_view name, absl::string_view value, const absl::Status& good,
                        std::string& text) {
  if (!good.ok()) return absl::InvalidArgumentError(absl::StrCat(name, " ", good.message()));
  text = std::string(value);
  return absl::OkStatus();
}

// Text that people read, or that stands in URLs.
absl::Status CheckPlainText(absl::string_view text) {
  constexpr size_t kMaxBytes = 255;
  const bool is_plain = std::all_of(text.begin(), text.end(),
                                    [](unsigned char c) { return !absl::ascii_iscntrl(c); });
  if (!text.empty() && text.size() <= kMaxBytes && is_plain) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", Printable(text), "' is not a text of 1 to ",
                                                 kMaxBytes, " bytes without control characters"));
}

absl::Status SetOidc(Flags& flags, absl::string_view name, absl::string_view value) {
  oidc::Settings& to = flags.oidc;
  if (name == "--oidc-issuer") {
    return SetChecked(name, value, oidc::CheckIssuer(value), to.issuer);
  }
  if (name == "--oidc-scopes") {
    return SetChecked(name, value, oidc::CheckScopes(value), to.scopes);
  }
  if (name == "--oidc-claim") {
    return SetChecked(name, value, oidc::CheckClaimName(value), to.claim);
  }
  if (name == "--oidc-page-url") {
    const absl::StatusOr<std::string> url = oidc::ReadPageUrl(value);
    return SetChecked(name, url.ok() ? *url : "", url.status(), to.page_url);
  }
  if (name == "--oidc-client-secret-file") flags.oidc_secret_file = std::string(value);
  if (name == "--oidc-ca-file") to.ca_file = std::string(value);
  if (name == "--oidc-client-id")
    return SetChecked(name, value, CheckPlainText(value), to.client_id);
  if (name == "--oidc-name") return SetChecked(name, value, CheckPlainText(value), to.name);
  return absl::OkStatus();
}

absl::Status SetCluster(Flags& flags, absl::string_view name, absl::string_view value) {
  if (name == "--cluster") flags.cluster = std::string(value);
  if (name == "--cluster-secret-file") flags.cluster_secret_file = std::string(value);
  if (name == "--cluster-content-mib") {
    return SetNumber(name, value, 1, 1 << 30, flags.cluster_content_mib);
  }
  if (name == "--cluster-content-credentials-file") {
    flags.cluster_content_credentials_file = std::string(value);
  }
  if (name == "--cluster-content-ca-file") flags.cluster_content_ca_file = std::string(value);
  if (name != "--cluster-content") return absl::OkStatus();
  absl::StatusOr<objects::Location> location = objects::ParseLocation(value);
  if (!location.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " ", location.status().message()));
  }
  flags.cluster_content = *std::move(location);
  return absl::OkStatus();
}

absl::Status SetValue(Flags& flags, absl::string_view name, absl::string_view value) {
  if (absl::StartsWith(name, "--oidc-")) return SetOidc(flags, name, value);
  if (absl::StartsWith(name, "--cluster")) return SetCluster(flags, name, value);
  if (name == "--data-dir") flags.data_dir = std::string(value);
  if (name == "--listen") flags.listen = std::string(value);
  if (name == "--http") flags.http = std::string(value);
  if (name == "--web") flags.web = std::string(value);
  if (name == "--port-file") flags.port_file = std::string(value);
  if (name == "--tls-cert") flags.tls_cert = std::string(value);
  if (name == "--tls-key") flags.tls_key = std::string(value);
  if (name == "--client-ca") flags.client_ca = std::string(value);
  if (name == "--tenants") flags.tenants = std::string(value);
  if (name == "--node-name") flags.node_name = std::string(value);
  if (name == "--feature-wait-hours") {
    return SetNumber(name, value, 0, 24 * 365, flags.feature_wait_hours);
  }
  if (name == "--node-ttl-seconds") return SetNumber(name, value, 2, 3600, flags.node_ttl_seconds);
  if (name == "--audit-syslog") flags.audit_syslog = std::string(value);
  if (name == "--otlp-endpoint") return SetEndpoint(flags, value);
  if (name == "--otlp-headers-file") flags.otlp_headers_file = std::string(value);
  if (name == "--otlp-ca-file") flags.otlp_ca_file = std::string(value);
  if (name == "--otlp-sampling-ratio") return SetRatio(name, value, flags.otlp_sampling_ratio);
  if (name == "--backup") flags.backup = std::string(value);
  if (name == "--restore") flags.restore = std::string(value);
  if (name == "--check") flags.check = std::string(value);
  if (name == "--sandbox") return SetSandbox(flags, value);
  if (name == "--cgroup") return SetCgroup(flags, value);
  if (name == "--workers") return SetNumber(name, value, 1, kMaxWorkers, flags.workers);
  if (name == "--spares") return SetNumber(name, value, 0, 2 * kMaxWorkers, flags.spares);
  if (name == "--work-nice") return SetNumber(name, value, 0, 19, flags.work_nice);
  if (name == "--stop-seconds") return SetNumber(name, value, 1, 3600, flags.stop_seconds);
  if (name == "--max-queued") return SetNumber(name, value, 1, 10000000, flags.max_queued);
  if (name == "--max-streams") return SetNumber(name, value, 1, 1000000, flags.max_streams);
  if (name == "--max-connections") {
    return SetNumber(name, value, 1, 100000, flags.max_connections);
  }
  if (name == "--disk-reserve-mib") {
    return SetNumber(name, value, 0, 1 << 30, flags.disk_reserve_mib);
  }
  if (name == "--blob-mib") return SetNumber(name, value, 1, 1 << 30, flags.blob_mib);
  if (name == "--tenant-blob-mib") {
    return SetNumber(name, value, 1, 1 << 30, flags.tenant_blob_mib);
  }
  if (name == "--tenant-uploads") return SetNumber(name, value, 1, 4096, flags.tenant_uploads);
  if (name == "--upload-idle-seconds") {
    return SetNumber(name, value, 1, 86400, flags.upload_idle_seconds);
  }
  if (name == "--address-call-rate") {
    return SetNumber(name, value, 0, 1 << 20, flags.address_call_rate);
  }
  if (name == "--session-hours") return SetNumber(name, value, 1, 720, flags.session_hours);
  if (name == "--memory-mib") return SetNumber(name, value, 0, 1 << 30, flags.memory_mib);
  if (name == "--canary-seconds") return SetNumber(name, value, 1, 86400, flags.canary_seconds);
  return absl::OkStatus();
}

absl::Status CheckAddress(absl::string_view option, absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " '", Printable(address), "' is not HOST:PORT"));
  }
  return absl::OkStatus();
}

// Who can connect could read every model: without TLS only this machine may.
absl::Status CheckLoopback(absl::string_view option, absl::string_view address,
                           absl::string_view why) {
  const absl::string_view host = address.substr(0, address.rfind(':'));
  if (host == "127.0.0.1" || host == "localhost" || host == "[::1]") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " '", Printable(address), "': ", why,
                   " this machine alone; use 127.0.0.1, [::1] or localhost"));
}

absl::Status CheckSecurity(const Flags& flags) {
  const bool any_tls = !flags.tls_cert.empty() || !flags.tls_key.empty();
  if (flags.insecure && (any_tls || !flags.client_ca.empty())) {
    return absl::InvalidArgumentError(
        "--insecure and TLS exclude each other: leave out --insecure, or --tls-cert, --tls-key and "
        "--client-ca");
  }
  if (flags.insecure) return absl::OkStatus();
  if (flags.tls_cert.empty() || flags.tls_key.empty()) {
    return absl::InvalidArgumentError(
        "--tls-cert FILE and --tls-key FILE are required, or --insecure to serve this machine "
        "alone without encryption");
  }
  if (flags.tenants.empty()) {
    return absl::InvalidArgumentError(
        "--tenants FILE is required beside TLS: it says who may do what, and nobody may by "
        "default");
  }
  return absl::OkStatus();
}

// Names stand in logs, metrics and the database.
bool IsNodeName(absl::string_view name) {
  constexpr size_t kMaxBytes = 128;
  return name.size() <= kMaxBytes && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

absl::Status CheckContent(const Flags& flags) {
  const bool is_s3 = flags.cluster_content.kind == objects::Location::Kind::kS3;
  if (is_s3 && flags.cluster_content_credentials_file.empty()) {
    return absl::InvalidArgumentError(
        "--cluster-content s3://... needs --cluster-content-credentials-file FILE");
  }
  if (is_s3 ||
      (flags.cluster_content_credentials_file.empty() && flags.cluster_content_ca_file.empty())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--cluster-content-credentials-file and --cluster-content-ca-file need --cluster-content "
      "s3://BUCKET/PREFIX?region=NAME");
}

absl::Status CheckCluster(const Flags& flags) {
  RETURN_IF_ERROR(CheckContent(flags));
  if (flags.cluster.empty()) {
    const bool any = flags.migrate || flags.cluster_pooler || !flags.cluster_secret_file.empty() ||
                     !flags.node_name.empty() ||
                     flags.cluster_content.kind != objects::Location::Kind::kPostgres;
    if (!any) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--migrate, --cluster-pooler, --cluster-secret-file, --cluster-content and --node-name "
        "need --cluster "
        "postgres://USER@HOST:PORT/DATABASE");
  }
  if (IsNodeName(flags.node_name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--node-name '", Printable(flags.node_name),
                   "' has other characters than letters, digits, '-', '_' and '.', or more than "
                   "128"));
}

// A sign-in provider needs a page to sign in on, and a file that says what people may do.
absl::Status CheckOidc(Flags& flags) {
  oidc::Settings& provider = flags.oidc;
  if (provider.issuer.empty()) {
    const oidc::Settings defaults;
    const bool any = provider.scopes != defaults.scopes || provider.claim != defaults.claim ||
                     !provider.client_id.empty() || !flags.oidc_secret_file.empty() ||
                     !provider.page_url.empty() || !provider.ca_file.empty() ||
                     !provider.name.empty();
    if (!any) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the options --oidc-... need --oidc-issuer https://HOST, the provider's URL");
  }
  if (provider.client_id.empty() || flags.web.empty() || flags.tenants.empty()) {
    return absl::InvalidArgumentError(
        "--oidc-issuer needs --oidc-client-id ID, as the provider knows this server, --web "
        "HOST:PORT with the page, and --tenants FILE, which gives people their rights");
  }
  const absl::string_view web = flags.web;
  if (provider.page_url.empty() && !http_client::IsLoopback(web)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--oidc-page-url https://HOST[:PORT] is required beside --web ", flags.web,
                     ": the address at which browsers have the page, as the provider knows it"));
  }
  if (provider.name.empty()) provider.name = std::string(http_client::AuthorityOf(provider.issuer));
  return absl::OkStatus();
}

// --backup, --restore and --check: one of them, on a data directory.
absl::Status CheckTask(const Flags& flags) {
  const int tasks = static_cast<int>(!flags.backup.empty()) +
                    static_cast<int>(!flags.restore.empty()) +
                    static_cast<int>(!flags.check.empty());
  if (tasks > 1) {
    return absl::InvalidArgumentError(
        "--backup, --restore and --check exclude each other: give one of them");
  }
  if (flags.check.empty() && flags.data_dir.empty()) {
    return absl::InvalidArgumentError("--data-dir DIR is required: what to back up or to fill");
  }
  return absl::OkStatus();
}

absl::Status Check(Flags& flags) {
  RETURN_IF_ERROR(CheckCluster(flags));
  if (flags.migrate) return absl::OkStatus();
  for (const auto& [flag, value] : {std::pair("--otlp-headers-file", &flags.otlp_headers_file),
                                    std::pair("--otlp-ca-file", &flags.otlp_ca_file)}) {
    if (value->empty() || !flags.otlp_endpoint.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " needs --otlp-endpoint https://HOST:4318"));
  }
  if (flags.data_dir.empty()) return absl::InvalidArgumentError("--data-dir DIR is required");
  RETURN_IF_ERROR(CheckSecurity(flags));
  RETURN_IF_ERROR(CheckAddress("--listen", flags.listen));
  if (flags.insecure) {
    RETURN_IF_ERROR(CheckLoopback("--listen", flags.listen, "--insecure serves"));
  }
  if (!flags.http.empty()) {
    RETURN_IF_ERROR(CheckAddress("--http", flags.http));
    RETURN_IF_ERROR(CheckLoopback("--http", flags.http, "it has no TLS yet and serves"));
  }
  if (!flags.web.empty()) {
    RETURN_IF_ERROR(CheckAddress("--web", flags.web));
    if (flags.insecure) RETURN_IF_ERROR(CheckLoopback("--web", flags.web, "--insecure serves"));
  }
  RETURN_IF_ERROR(CheckOidc(flags));
  if (!flags.sandbox.has_value()) {
    flags.sandbox =
        flags.insecure ? worker::SandboxMode::kBestEffort : worker::SandboxMode::kRequire;
  }
  if (flags.workers == 0) {
    flags.workers = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 64u));
  }
  if (flags.tenant_blob_mib == 0) {
    flags.tenant_blob_mib =
        flags.tenants.empty() ? flags.blob_mib : std::max(1, flags.blob_mib / 4);
  }
  // One more than can be wanted at once, so that a run finds one though the last one was just
  // taken.
  if (flags.spares < 0) flags.spares = flags.workers + 1;
  return absl::OkStatus();
}

// Problems, a line each.
class Problems {
 public:
  void Add(absl::string_view where, const absl::Status& status) {
    if (!status.ok()) Add(absl::StrCat(where, status.message()));
  }
  void Add(std::string line) { lines_.push_back(std::move(line)); }
  absl::Status ToStatus() const {
    if (lines_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
  }

 private:
  std::vector<std::string> lines_;
};

void SetSwitch(Flags& flags, absl::string_view name, bool on) {
  if (name == "--insecure") flags.insecure = on;
  if (name == "--shared-cache") flags.shared_cache = on;
  if (name == "--new-token") flags.new_token = on;
  if (name == "--version") flags.version = on;
  if (name == "--help") flags.help = on;
  if (name == "--migrate") flags.migrate = on;
  if (name == "--cluster-pooler") flags.cluster_pooler = on;
  if (name == "--check-config") flags.check_config = on;
}

// One `name: value` of the file.
absl::Status SetFromFile(Flags& flags, const ConfigNode& key, const ConfigNode& value) {
  const std::string name = absl::StrCat("--", key.text);
  if (IsOneOf(name, kOfACall)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(key.text), "' is an option of a call, none of the file"));
  }
  if (value.kind != ConfigNode::Kind::kScalar) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(key.text), "' takes a value, found ", DescribeNode(value)));
  }
  if (IsOneOf(name, kValueOptions)) return SetValue(flags, name, value.text);
  if (!IsOneOf(name, kSwitches)) return UnknownOption(key.text, name);
  if (value.text != "true" && value.text != "false") {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", Printable(key.text), "' takes true or false, found ", DescribeNode(value)));
  }
  SetSwitch(flags, name, value.text == "true");
  return absl::OkStatus();
}

void ReadFlagsFile(const std::string& path, Flags& flags, Problems& problems) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxFlagsFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (!in.is_open() || in.bad()) {
    return problems.Add(absl::StrCat("--config: cannot read ", path, ": ", std::strerror(errno)));
  }
  if (text.size() > kMaxFlagsFileBytes) {
    return problems.Add(
        absl::StrCat("--config: ", path, " has more than ", kMaxFlagsFileBytes, " bytes"));
  }
  Diagnostics found;
  std::optional<ConfigNode> root;
  if (CheckConfigText(text, path, found)) root = ParseConfigYaml(text, path, found);
  for (const Diagnostic& diagnostic : found.list()) problems.Add(diagnostic.ToString());
  if (!root.has_value() || root->kind == ConfigNode::Kind::kNull) return;
  if (root->kind != ConfigNode::Kind::kMapping) {
    return problems.Add(
        absl::StrCat("--config: ", path, " is no mapping; write lines NAME: value"));
  }
  for (size_t i = 0; i + 1 < root->items.size(); i += 2) {
    const ConfigNode& key = root->items[i];
    if (key.kind != ConfigNode::Kind::kScalar) continue;  // reported with the syntax
    problems.Add(absl::StrCat(path, ":", key.line, ": "),
                 SetFromFile(flags, key, root->items[i + 1]));
  }
}

// The value of --config on the command line; empty: none.
std::string FlagsFile(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--config=")) return std::string(argument);
    if (argument == "--config" && i + 1 < argc) return argv[i + 1];
  }
  return "";
}

void ReadArguments(int argc, const char* const* argv, Flags& flags, Problems& problems) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    const bool has_value = equals != absl::string_view::npos;
    if (IsOneOf(name, kValueOptions)) {
      if (!has_value && i + 1 == argc) {
        return problems.Add(absl::StrCat(name, " needs a value"));
      }
      const absl::string_view value = has_value ? argument.substr(equals + 1) : argv[++i];
      problems.Add("", SetValue(flags, name, value));
    } else if (IsOneOf(argument, kSwitches)) {
      SetSwitch(flags, argument, true);
    } else if (argument == "-h") {
      flags.help = true;
    } else {
      problems.Add("", UnknownOption(argument, name));
      // The word behind it is its value, and no problem of its own.
      const bool is_option = absl::StartsWith(name, "--") && !has_value;
      if (is_option && i + 1 < argc && !absl::StartsWith(argv[i + 1], "-")) ++i;
    }
  }
}

// The options that do something else than to serve.
std::string TasksHelp() {
  return "  --backup DIR        writes a backup of --data-dir into DIR, a new or an empty folder, "
         "while\n"
         "                      a daemon serves it or while none runs, and ends\n"
         "  --restore DIR       fills --data-dir, a new or an empty folder, from the backup in "
         "DIR, "
         "and\n"
         "                      ends\n"
         "  --check DIR         reads everything of the data directory DIR, on which none runs, "
         "says "
         "what\n"
         "                      is damaged, removes what can be made again, and ends; exit 1 "
         "where\n"
         "                      jobs cannot be read\n"
         "  --config FILE       YAML: lines NAME: value for the options above, which the command "
         "line\n"
         "                      overrides; switches take true or false\n"
         "  --check-config      says whether these options and the tenants file would do, and "
         "ends\n";
}

}  // namespace

absl::StatusOr<Flags> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  Problems problems;
  const std::string file = FlagsFile(argc, argv);
  if (!file.empty()) ReadFlagsFile(file, flags, problems);
  ReadArguments(argc, argv, flags, problems);
  RETURN_IF_ERROR(problems.ToStatus());
  if (flags.help || flags.version || flags.new_token) return flags;
  RETURN_IF_ERROR(flags.has_data_task() ? CheckTask(flags) : Check(flags));
  return flags;
}

namespace {

// The lines about room for uploads, and about uploads and calls of one client.
std::string StorageHelp() {
  return absl::StrCat(
      "  --disk-reserve-mib N  not ready while less is free, and no uploads (default: 256)\n"
      "  --blob-mib N        uploaded models kept, of all tenants (default: 40960)\n"
      "  --tenant-blob-mib N  the same of a tenant whose quota stored_bytes does not say "
      "(default:\n"
      "                      a quarter of --blob-mib; all of it without --tenants)\n"
      "  --tenant-uploads N  uploads under way at once, of one tenant (default: 64)\n"
      "  --upload-idle-seconds N  an upload to which nothing was added for so long ends "
      "(default: 300)\n"
      "  --address-call-rate N  calls a second of one client address (default: 0, no bound);\n"
      "                      what a tenant may make is its quota call_rate\n");
}

std::string SignInHelp() {
  return "  --session-hours N   how long a sign-in on the dashboard lasts (1 to 720; default: 12)\n"
         "  --oidc-issuer URL   people sign in on the dashboard by this OpenID Connect provider "
         "too:\n"
         "                      https://HOST/PATH as it writes itself (default: none)\n"
         "  --oidc-client-id ID  this server's name at the provider\n"
         "  --oidc-client-secret-file FILE  its secret in the first line (default: none, a public\n"
         "                      client)\n"
         "  --oidc-page-url URL  https://HOST:PORT at which browsers have the dashboard; the "
         "provider\n"
         "                      sends them to /auth/callback there (default: the address of "
         "--web,\n"
         "                      if that is this machine's own)\n"
         "  --oidc-scopes TEXT  what is asked of the provider (default: \"openid email\")\n"
         "  --oidc-claim NAME   the claim whose value an identity of the tenants file has as "
         "oidc:\n"
         "                      (default: email)\n"
         "  --oidc-ca-file FILE  PEM: authorities that may sign the provider's certificate "
         "(default: the system's)\n"
         "  --oidc-name TEXT    the provider's name on the page (default: its host)\n";
}

std::string ClusterHelp() {
  return "  --cluster URL       share jobs, uploads and results with other npucds by a "
         "PostgreSQL:\n"
         "                      postgres://USER@HOST:PORT/DATABASE, without a password. The data\n"
         "                      directory is a cache then (deploy/OPERATIONS.md, \"Cluster\")\n"
         "  --cluster-secret-file FILE  the first line is the password (default: PGPASSFILE)\n"
         "  --cluster-pooler    --cluster leads to a pooler in transaction mode, such as "
         "pgbouncer\n"
         "  --migrate           makes or upgrades the tables of --cluster, and ends\n"
         "  --node-name NAME    of this npucd among the others, the same after a restart "
         "(default:\n"
         "                      made once, and kept in the data directory)\n"
         "  --node-ttl-seconds N  an npucd that is silent for so long is dead to the others, "
         "which\n"
         "                      take its jobs over (default: 10)\n"
         "  --feature-wait-hours N  so long after all nodes know a higher feature level the "
         "cluster's\n"
         "                      rises, and older npucds cannot come back (default: 24)\n"
         "  --cluster-content-mib N  uploads and results that a cluster keeps (default: 51200)\n"
         "  --cluster-content WHERE  they are put into PostgreSQL (pg, the default), a folder "
         "that all\n"
         "                      nodes mount (file:///FOLDER), or S3 "
         "(s3://BUCKET/PREFIX?region=NAME,\n"
         "                      of others than Amazon with &endpoint=https://HOST:PORT and\n"
         "                      &style=path or virtual)\n"
         "  --cluster-content-credentials-file FILE  of S3: lines aws_access_key_id = ID and\n"
         "                      aws_secret_access_key = SECRET; a change needs no restart\n"
         "  --cluster-content-ca-file FILE  PEM: authorities that may sign S3's certificate\n"
         "                      (default: the system's)\n";
}

std::string TraceHelp() {
  return "  --audit-syslog SOCKET  sends each line of the audit log to a syslog, too: /dev/log\n"
         "                      (default: none)\n"
         "  --otlp-endpoint URL  sends traces of jobs to an OpenTelemetry collector by OTLP/HTTP "
         "with\n"
         "                      JSON: https://HOST:4318, or http:// (default: none)\n"
         "  --otlp-ca-file FILE  PEM: authorities that may sign the collector's certificate "
         "(default:\n"
         "                      the system's)\n"
         "  --otlp-headers-file FILE  lines NAME: VALUE, headers of each request to it\n"
         "  --otlp-sampling-ratio R  the share of jobs that are traced where the client brings no\n"
         "                      trace of its own (0 to 1; default: 1)\n";
}

}  // namespace

std::string FlagsHelp() {
  return absl::StrCat(
      "usage: npucd --data-dir DIR (--insecure | --tls-cert F --tls-key F --tenants F) "
      "[options]\n"
      "  --data-dir DIR      where jobs, models and artifacts are kept; one npucd at a time\n"
      "  --insecure          no encryption; serves this machine alone\n"
      "  --tls-cert FILE     PEM: the server's certificate chain; read again when it changes\n"
      "  --tls-key FILE      PEM: its private key\n"
      "  --client-ca FILE    PEM: who signs clients' certificates (mutual TLS)\n"
      "  --tenants FILE      identities and their rights (deploy/OPERATIONS.md); read again on "
      "SIGHUP and\n"
      "                      when it changes. With --insecure alone everybody may everything\n"
      "  --shared-cache      lets tenants with shared_cache: true use each other's results\n"
      "  --new-token         prints a token for a client and its line for the tenants file\n"
      "  --listen HOST:PORT  gRPC; port 0 picks one (default 127.0.0.1:8470)\n"
      "  --http HOST:PORT    HTTP: /healthz, /readyz, /metrics (default: none)\n"
      "  --web HOST:PORT     the HTTP/JSON API and the dashboard, with TLS and identities as "
      "gRPC\n"
      "                      has them (default: none)\n",
      SignInHelp(),
      "  --workers N         compiles at once (default: one a CPU)\n"
      "  --spares N          workers kept ready for the next compiles, which saves each some "
      "ms\n"
      "                      (default: one more than --workers)\n"
      "  --work-nice N       how much compiles give way to the daemon's answers, as nice(1) "
      "says it\n"
      "                      (0 to 19; default: 5)\n"
      "  --max-queued N      jobs that may wait, of all tenants (default: 100000)\n"
      "  --max-streams N     watch streams at once, of all clients (default: 20000)\n"
      "  --max-connections N gRPC connections at once, of all clients (default: 4096)\n"
      "  --memory-mib N      no new work when the daemon itself comes close to this (default: "
      "0,\n"
      "                      no limit)\n",
      StorageHelp(),
      "  --canary-seconds N  between two compiles of its own, by which npucd knows that it can\n"
      "                      (default: 300)\n"
      "  --stop-seconds N    from SIGTERM to the end of the process, at most (default: 25)\n"
      "  --sandbox MODE      require: refuse to start where this host lacks a wall around the\n"
      "                      workers (deploy/OPERATIONS.md lists them); best-effort: warn and "
      "go\n"
      "                      on. Default: require, with --insecure best-effort\n"
      "  --cgroup MODE       limits for all workers together by cgroup v2: auto (where the "
      "host\n"
      "                      has it, else a warning; default), require or off\n",
      ClusterHelp(), TraceHelp(),
      "  --port-file FILE    gets grpc=, http= and web=HOST:PORT lines once it serves; until "
      "then\n"
      "                      there is none\n",
      TasksHelp(),
      "  --version, --help\n"
      "SIGTERM drains: nothing new is taken, what runs may finish, the rest stays queued.\n");
}

}  // namespace npuc::daemon
