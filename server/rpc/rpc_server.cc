#include "server/rpc/rpc_server.h"

#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/base/work_pool.h"
#include "server/log/line_rate.h"
#include "server/rpc/call_counter.h"
#include "server/rpc/connection_listener.h"
#include "server/rpc/server_credentials.h"
#include "server/rpc/services.h"
#include "server/rpc/watch_stream.h"

namespace npuc::rpc {
namespace {

constexpr int kMaxRequestBytes = 4 << 20;
constexpr int kMaxMetadataBytes = 16 << 10;
constexpr int kMaxStreamsPerConnection = 4096;
// A connection that does not speak, or on which no call was under way for long, gives its place
// back. Clients connect again by themselves.
constexpr int kHandshakeMs = 20 * 1000;
constexpr int kIdleMs = 10 * 60 * 1000;
// A call may wait long for a disk; all threads of the pool at once may not.
constexpr absl::Duration kPoolPatience = absl::Seconds(30);
constexpr absl::Duration kTickerPatience = absl::Seconds(60);

// In the order of the health service's names; "" is the server as a whole.
constexpr const char* kHealthNames[] = {"", "npuc.v1.CompileService", "npuc.v1.BlobService",
                                        "npuc.v1.ServerInfoService", "npuc.v1.AdminService"};

// gRPC's log is the process's.
std::atomic<const log::Logger*> grpc_log = nullptr;

// Lines a second; any client can cause them.
constexpr int kGrpcLines = 20;
struct GrpcLines {
  Mutex mutex;
  log::LineRate rate NPUC_GUARDED_BY(mutex){kGrpcLines};
};

// Never as errors, which wake somebody: any client can cause them.
void LogFromGrpc(gpr_log_func_args* args) {
  const log::Logger* const log = grpc_log.load();
  if (log == nullptr) return;
  static auto* const lines = new GrpcLines;
  uint64_t left_out = 0;
  {
    const MutexLock lock(lines->mutex);
    if (!lines->rate.Takes(absl::Now())) return;
    left_out = lines->rate.TakeLeftOut();
  }
  if (left_out > 0) {
    log->Warning("gRPC said more than the log takes", {{"left_out", absl::StrCat(left_out)}});
  }
  const absl::string_view file = args->file;
  log->Write(
      args->severity == GPR_LOG_SEVERITY_ERROR ? log::LogLevel::kWarning : log::LogLevel::kInfo,
      "gRPC says",
      {{"text", args->message},
       {"from", absl::StrCat(file.substr(file.rfind('/') + 1), ":", args->line)}});
}

}  // namespace

GrpcLog::GrpcLog(const log::Logger* log) {
  grpc_log = log;
  gpr_set_log_function(LogFromGrpc);
}

GrpcLog::~GrpcLog() {
  gpr_set_log_function(nullptr);
  grpc_log = nullptr;
}

struct RpcServer::Impl {
  Impl(RpcServerOptions server_options, RpcDependencies dependencies)
      : options(std::move(server_options)),
        deps(std::move(dependencies)),
        streams(options.max_watch_streams),
        pool(options.blocking_threads, options.max_waiting_calls) {}

  // False: it stops.
  bool AwaitTick() {
    const SteadyTime next = SteadyTimeAfter(absl::ToChronoNanoseconds(options.tick));
    const MutexLock lock(mutex);
    while (!stopping && wake.WaitUntil(mutex, next)) {
    }
    return !stopping;
  }

  void TickLoop() {
    while (AwaitTick()) {
      streams.Tick(base::SteadyNow());
      WatchPool();
      CountConnections();
    }
  }

  // A task that does nothing, sent after the calls: where it does not come round, nothing does.
  void WatchPool() {
    if (deps.watchdog == nullptr) return;
    deps.watchdog->Beat("rpc ticker", kTickerPatience);
    if (pool_is_probed.exchange(true)) return;
    auto scope =
        std::make_shared<observe::Watchdog::Scope>(deps.watchdog->Enter("rpc pool", kPoolPatience));
    pool.Post([this, scope = std::move(scope)] { pool_is_probed = false; });
  }

  void CountConnections() {
    if (deps.metrics == nullptr) return;
    const ConnectionListener::Counts counts = listener->counts();
    deps.metrics->Set(observe::Metric::kConnections, {}, static_cast<double>(counts.open));
    deps.metrics->Set(observe::Metric::kConnectionsRefused, {},
                      static_cast<double>(counts.refused));
  }

  // Its own where the daemon has none.
  api::OpenConnections* connections() {
    return deps.connections != nullptr ? deps.connections : &own_connections;
  }

  const RpcServerOptions options;
  const RpcDependencies deps;
  api::OpenConnections own_connections;
  std::atomic<bool> pool_is_probed = false;
  WatchStreams streams;
  // The services before the server that calls them; the pool outlives both, since streams post to
  // it until the last one is done.
  base::WorkPool pool;
  std::unique_ptr<grpc::Service> compile_service;
  std::unique_ptr<grpc::Service> blob_service;
  std::unique_ptr<grpc::Service> info_service;
  std::unique_ptr<grpc::Service> admin_service;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  // Hands connections to the acceptor: ends before it.
  std::unique_ptr<ConnectionListener> listener;

  Mutex mutex;
  CondVar wake;
  bool stopping NPUC_GUARDED_BY(mutex) = false;
  std::thread ticker;
};

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(RpcServerOptions options,
                                                            RpcDependencies dependencies) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                   MakeServerCredentials(options.tls));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(dependencies));
  ASSIGN_OR_RETURN(impl->listener,
                   ConnectionListener::Listen(impl->options.listen, impl->options.max_connections));
  const WatchContext watch{.dependencies = &impl->deps,
                           .pool = &impl->pool,
                           .streams = &impl->streams,
                           .heartbeat = impl->options.heartbeat,
                           .max_age = impl->options.max_stream_age};
  impl->compile_service = MakeCompileService(&impl->deps, &impl->pool, watch);
  impl->blob_service = MakeBlobService(&impl->deps, &impl->pool);
  impl->info_service = MakeServerInfoService(&impl->deps);
  impl->admin_service = MakeAdminService(&impl->deps, &impl->pool);

  grpc::EnableDefaultHealthCheckService(true);
  // For good and for every server of the process, but a process has one.
  if (impl->options.reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  // gRPC would inflate a message before it looks at its size, and before a call is asked who calls.
  // A call whose messages are compressed ends with UNIMPLEMENTED, its message is not inflated.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // What a client has sent and a daemon that dies has not stored is sent again. Left alone, gRPC
  // opens the window as far as the line is fast, up to megabytes; so it is one message and 64 KiB.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  impl->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  builder.RegisterService(impl->compile_service.get());
  builder.RegisterService(impl->blob_service.get());
  builder.RegisterService(impl->info_service.get());
  builder.RegisterService(impl->admin_service.get());
  if (impl->deps.metrics != nullptr) {
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> counters;
    counters.push_back(CountCalls(impl->deps.metrics));
    builder.experimental().SetInterceptorCreators(std::move(counters));
  }
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr) return absl::InternalError("gRPC does not start a server");
  Impl* const raw = impl.get();
  impl->listener->Start(impl->connections(), [raw](cache::UniqueFd connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.Release();
    raw->acceptor->HandleNewConnection(&parameters);
  });
  raw->ticker = std::thread([raw] { raw->TickLoop(); });
  auto server = std::unique_ptr<RpcServer>(new RpcServer(std::move(impl)));
  server->SetServing(false);
  return server;
}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

int RpcServer::port() const { return impl_->listener->port(); }

void RpcServer::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = impl_->server->GetHealthCheckService();
  if (health == nullptr) return;
  for (const char* name : kHealthNames) health->SetServingStatus(name, serving);
}

void RpcServer::EndStreams() { impl_->streams.EndAll(); }

void RpcServer::Shutdown(absl::Duration patience) {
  {
    const MutexLock lock(impl_->mutex);
    if (impl_->stopping) return;
    impl_->stopping = true;
  }
  impl_->wake.NotifyAll();
  if (impl_->ticker.joinable()) impl_->ticker.join();
  if (impl_->deps.watchdog != nullptr) impl_->deps.watchdog->Retire("rpc ticker");
  impl_->listener->Stop();
  EndStreams();
  impl_->server->Shutdown(absl::ToChronoTime(absl::Now() + patience));
}

}  // namespace npuc::rpc
