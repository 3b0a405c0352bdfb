#include "client/lib/channel.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::client {
namespace {

constexpr int kMaxReceiveBytes = 64 << 20;
constexpr int kConnectTimeoutMs = 10000;
// Where there is another server to go on with.
constexpr int kConnectTimeoutOfManyMs = 2000;
constexpr size_t kMaxServers = 64;
constexpr size_t kMaxTokenBytes = 4096;
constexpr size_t kMaxPemBytes = 4 << 20;

// gRPC itself repeats a call that met a short gap; Retrier waits out the long ones.
// CreateCompileJob is here because every submission of this library has a request id.
constexpr char kServiceConfig[] = R"({"methodConfig": [{
  "name": [{"service": "npuc.v1.BlobService", "method": "FindMissingBlobs"},
           {"service": "npuc.v1.BlobService", "method": "QueryUpload"},
           {"service": "npuc.v1.CompileService", "method": "CreateCompileJob"},
           {"service": "npuc.v1.CompileService", "method": "GetCompileJob"},
           {"service": "npuc.v1.CompileService", "method": "ListCompileJobs"},
           {"service": "npuc.v1.CompileService", "method": "CancelCompileJob"},
           {"service": "npuc.v1.ServerInfoService"}],
  "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "0.5s",
                  "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]})";

// The host of HOST:PORT, "[::1]" with its brackets; empty where malformed.
absl::string_view HostOf(absl::string_view server) {
  const size_t colon = server.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return "";
  const absl::string_view host = server.substr(0, colon);
  int port = 0;
  if (!absl::SimpleAtoi(server.substr(colon + 1), &port) || port < 1 || port > 65535) return "";
  const bool bracketed = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
  if (!bracketed && absl::StrContains(host, ':')) return "";
  const bool plain = std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return absl::ascii_isgraph(c) && c != '/' && c != '@' && c != ',';
  });
  return plain ? host : "";
}

absl::Status CheckToken(const ClientOptions& options, const std::string& server) {
  if (options.token.empty()) return absl::OkStatus();
  const bool printable = std::all_of(options.token.begin(), options.token.end(),
                                     [](unsigned char c) { return absl::ascii_isgraph(c); });
  if (!printable || options.token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(
        "the token is not one line of printable characters, at most 4096");
  }
  if (!options.tls && options.ca_file.empty() && !IsLoopback(server)) {
    return absl::FailedPreconditionError(
        absl::StrCat("refusing to send a token unencrypted to ", Printable(server),
                     "; use TLS (--tls, or --ca FILE for a private certificate authority)"));
  }
  return absl::OkStatus();
}

// The text of a PEM file that holds a `what`.
absl::StatusOr<std::string> ReadPem(const std::string& path, absl::string_view what) {
  absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxPemBytes);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  if (absl::StrContains(*text, "-----BEGIN ") && absl::StrContains(*text, what)) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("'", Printable(path), "' holds no PEM ", absl::AsciiStrToLower(what)));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ClientOptions& options) {
  if (options.cert_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError(
        "a client certificate needs its key, and the key its "
        "certificate: give --cert and --key");
  }
  if (!options.cert_file.empty() && !options.tls && options.ca_file.empty()) {
    return absl::InvalidArgumentError("--cert is shown over TLS only: add --ca FILE or --tls");
  }
  if (!options.tls && options.ca_file.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  if (!options.ca_file.empty()) {
    ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadPem(options.ca_file, "CERTIFICATE"));
  }
  if (!options.cert_file.empty()) {
    ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadPem(options.cert_file, "CERTIFICATE"));
    ASSIGN_OR_RETURN(ssl.pem_private_key, ReadPem(options.key_file, "PRIVATE KEY"));
  }
  return grpc::SslCredentials(ssl);
}

}  // namespace

bool IsLoopback(absl::string_view server) {
  if (absl::StartsWith(server, "unix:")) return true;
  const absl::string_view host = HostOf(server);
  if (host == "localhost" || host == "[::1]") return true;
  // 127.x.y.z in numbers only: 127.example.com is some other machine.
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  return parts.size() == 4 && parts[0] == "127" &&
         std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
           int value = 0;
           return absl::SimpleAtoi(part, &value) && value >= 0 && value <= 255;
         });
}

namespace {

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const ClientOptions& options, const std::string& server, int connect_timeout_ms,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  if (!absl::StartsWith(server, "unix:") && HostOf(server).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server '", Printable(server), "' is not of the form HOST:PORT"));
  }
  RETURN_IF_ERROR(CheckToken(options, server));
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // By its name a pause, in truth also how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, connect_timeout_ms);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Connections are this client's own, so that one Client's trouble is not another's.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (IsLoopback(server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> MakeChannels(
    const ClientOptions& options) {
  const std::vector<std::string> servers = absl::StrSplit(options.server, ',');
  if (servers.size() > kMaxServers) {
    return absl::InvalidArgumentError(
        absl::StrCat(servers.size(), " servers are named, at most ", kMaxServers, " may be"));
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                   MakeCredentials(options));
  const int connect_timeout_ms = servers.size() == 1 ? kConnectTimeoutMs : kConnectTimeoutOfManyMs;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (const std::string& server : servers) {
    ASSIGN_OR_RETURN(channels.emplace_back(),
                     MakeChannel(options, server, connect_timeout_ms, credentials));
  }
  return channels;
}

}  // namespace npuc::client
