#include "tests/bench/bare_server.h"

#include <grpcpp/grpcpp.h>
#include <rocksdb/db.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "npuc/v1/compile.grpc.pb.h"

namespace npuc::bench {
namespace {

constexpr char kResultKey[] = "result";

// Blocking work off gRPC's own threads, as any server needs it; enough threads that RocksDB can
// join their writes into one sync.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void Post(std::function<void()> work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      queue_.push_back(std::move(work));
    }
    wake_.notify_one();
  }

 private:
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

grpc::Status ToGrpc(const rocksdb::Status& status) {
  return status.ok() ? grpc::Status::OK
                     : grpc::Status(grpc::StatusCode::INTERNAL, status.ToString());
}

class BareService final : public v1::CompileService::CallbackService {
 public:
  explicit BareService(rocksdb::DB* db) : db_(db), pool_(32) {}

  grpc::ServerUnaryReactor* CreateCompileJob(grpc::CallbackServerContext* context,
                                             const v1::CreateCompileJobRequest* request,
                                             v1::CreateCompileJobResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    pool_.Post([this, request, response, reactor] {
      // A spec without a model is how the client puts the result there.
      const bool is_result = !request->spec().has_model();
      rocksdb::Status status;
      std::string result;
      if (!is_result && !request->spec().no_cache()) {
        status = db_->Get(rocksdb::ReadOptions(), kResultKey, &result);
        if (status.ok()) response->mutable_job()->ParseFromString(result);
      }
      rocksdb::WriteOptions synced;
      synced.sync = true;
      std::string stored;
      if (!is_result) {
        stored = request->SerializeAsString();
      } else if (!absl::Base64Unescape(request->spec().config_text(), &stored)) {
        status = rocksdb::Status::InvalidArgument("the result is not base64");
      }
      if (status.ok()) {
        status = db_->Put(synced, is_result ? kResultKey : request->request_id(), stored);
      }
      response->mutable_job()->set_request_id(request->request_id());
      reactor->Finish(ToGrpc(status));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* GetCompileJob(grpc::CallbackServerContext* context,
                                          const v1::GetCompileJobRequest* request,
                                          v1::GetCompileJobResponse* response) override {
    // In the block cache: no need to leave this thread.
    std::string result;
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), kResultKey, &result);
    if (status.ok()) response->mutable_job()->ParseFromString(result);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(status));
    return reactor;
  }

 private:
  rocksdb::DB* const db_;
  Pool pool_;
};

}  // namespace

int RunBareServer(const std::string& data_dir, const std::string& port_file) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(options, data_dir, &raw);
  if (!opened.ok()) {
    std::fprintf(stderr, "bare server: %s\n", opened.ToString().c_str());
    return 1;
  }
  const std::unique_ptr<rocksdb::DB> db(raw);
  BareService service(db.get());
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  {
    std::ofstream out(port_file + ".tmp");
    out << "grpc=127.0.0.1:" << port << "\n";
  }
  if (std::rename((port_file + ".tmp").c_str(), port_file.c_str()) != 0) return 1;
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  server->Shutdown();
  return 0;
}

}  // namespace npuc::bench
