#ifndef NPUC_SERVER_API_OPEN_CONNECTIONS_H_
#define NPUC_SERVER_API_OPEN_CONNECTIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/auth/caller.h"
#include "server/observe/metrics.h"
#include "server/observe/tracer.h"

namespace npuc::api {

inline constexpr char kGrpc[] = "gRPC";
inline constexpr char kHttp[] = "HTTP";

// The connections that clients have open, for an operator who asks. Thread-safe.
class OpenConnections {
 public:
  struct Connection {
    const char* protocol = kGrpc;
    std::string peer = {};      // "127.0.0.1:4711", "[::1]:4711"
    std::string identity = {};  // of the last call that was let in; empty: none was
    std::string tenant = {};
    std::string last_method = {};
    int64_t calls = 0;  // that were let in
    absl::Time since = absl::InfinitePast();
    int64_t received_bytes = 0;  // as the kernel counts them, TLS included
    int64_t sent_bytes = 0;
  };

  // One connection's place; leaves with it.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class OpenConnections;
    Place(OpenConnections* book, std::string key) : book_(book), key_(std::move(key)) {}
    OpenConnections* const book_;
    const std::string key_;
  };

  // `fd`, a socket, must stay open until the place is gone.
  std::unique_ptr<Place> Add(const char* protocol, const std::string& peer, int fd);
  // A call of this caller was let in. A peer that is not known is left alone.
  void Note(const char* protocol, absl::string_view peer, const auth::Caller& caller,
            absl::string_view method);
  // Those that carried the most bytes, at most `limit`.
  std::vector<Connection> List(size_t limit) const;
  size_t count() const;
  void Sample(observe::Metrics& metrics) const;

 private:
  struct Entry {
    Connection connection;
    int fd = -1;
  };
  mutable Mutex mutex_;
  // By protocol and peer, which no two connections to one port of this machine share.
  std::unordered_map<std::string, Entry> entries_ NPUC_GUARDED_BY(mutex_);
};

// The calls that last: watches, uploads and downloads. Thread-safe.
class OpenStreams {
 public:
  // The ended transfers of sampled traces are spans there; null: nowhere.
  explicit OpenStreams(observe::Tracer* tracer) : tracer_(tracer) {}

  struct Stream {
    const char* protocol = kGrpc;
    const char* method = "";
    std::string peer = {};  // the client's address
    std::string identity = {};
    std::string tenant = {};
    std::string object = {};  // the job, "JOB/ARTIFACT", or the upload's SHA-256; may be empty
    absl::Time since = absl::InfinitePast();
    int64_t bytes = 0;  // of the messages' content, sent or received
  };

  // One stream's place; leaves with it.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void Count(size_t bytes) { bytes_ += static_cast<int64_t>(bytes); }
    void SetObject(std::string object);
    // Makes a transfer a part of this trace, where the caller brought none that is sampled.
    void SetTrace(const base::TraceContext& trace);

   private:
    friend class OpenStreams;
    Place(OpenStreams* book, Stream stream, base::TraceContext trace, absl::Time start)
        : book_(book), stream_(std::move(stream)), trace_(std::move(trace)), start_(start) {}
    Stream Now() const;

    OpenStreams* const book_;
    Stream stream_;  // `object` under the book's mutex
    base::TraceContext trace_;
    const absl::Time start_;  // by the tracer's clock
    std::atomic<int64_t> bytes_ = 0;
  };

  // `is_transfer`: not a watch.
  std::unique_ptr<Place> Add(const char* protocol, const char* method, const auth::Caller& caller,
                             std::string object, bool is_transfer);
  // Those that carried the most bytes, at most `limit`.
  std::vector<Stream> List(size_t limit) const;
  size_t count() const;
  void Sample(observe::Metrics& metrics) const;

 private:
  observe::Tracer* const tracer_;
  mutable Mutex mutex_;
  std::unordered_set<Place*> places_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_OPEN_CONNECTIONS_H_
