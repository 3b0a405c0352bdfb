#include "server/api/open_connections.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace npuc::api {
namespace {

std::string KeyOf(const char* protocol, absl::string_view peer) {
  return absl::StrCat(protocol, " ", peer);
}

// Fills in the bytes that the kernel has counted of a socket.
void ReadBytes(int fd, OpenConnections::Connection& connection) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  connection.received_bytes = static_cast<int64_t>(info.tcpi_bytes_received);
  connection.sent_bytes = static_cast<int64_t>(info.tcpi_bytes_acked);
}

// Keeps the first `limit` of an order.
template <typename T, typename Before>
void KeepFirst(std::vector<T>& all, size_t limit, Before is_before) {
  const size_t kept = std::min(all.size(), limit);
  std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept), all.end(), is_before);
  all.resize(kept);
}

}  // namespace

OpenConnections::Place::~Place() {
  const MutexLock lock(book_->mutex_);
  book_->entries_.erase(key_);
}

std::unique_ptr<OpenConnections::Place> OpenConnections::Add(const char* protocol,
                                                             const std::string& peer, int fd) {
  std::string key = KeyOf(protocol, peer);
  const MutexLock lock(mutex_);
  Entry& entry = entries_[key];
  entry = {};
  entry.connection.protocol = protocol;
  entry.connection.peer = peer;
  entry.connection.since = absl::Now();
  entry.fd = fd;
  return std::unique_ptr<Place>(new Place(this, std::move(key)));
}

void OpenConnections::Note(const char* protocol, absl::string_view peer, const auth::Caller& caller,
                           absl::string_view method) {
  const std::string key = KeyOf(protocol, peer);
  const MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Connection& connection = found->second.connection;
  ++connection.calls;
  connection.identity = caller.identity;
  connection.tenant = caller.tenant;
  connection.last_method = std::string(method);
}

std::vector<OpenConnections::Connection> OpenConnections::List(size_t limit) const {
  std::vector<Connection> all;
  {
    const MutexLock lock(mutex_);
    all.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) {
      all.push_back(entry.connection);
      ReadBytes(entry.fd, all.back());
    }
  }
  KeepFirst(all, limit, [](const Connection& a, const Connection& b) {
    return std::make_tuple(-(a.received_bytes + a.sent_bytes), a.since, a.peer) <
           std::make_tuple(-(b.received_bytes + b.sent_bytes), b.since, b.peer);
  });
  return all;
}

size_t OpenConnections::count() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

void OpenConnections::Sample(observe::Metrics& metrics) const {
  int64_t by_http = 0;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      by_http += absl::string_view(entry.connection.protocol) == kHttp ? 1 : 0;
    }
  }
  metrics.Set(observe::Metric::kHttpConnections, {}, static_cast<double>(by_http));
}

OpenStreams::Place::~Place() {
  {
    const MutexLock lock(book_->mutex_);
    book_->places_.erase(this);
  }
  if (book_->tracer_ == nullptr || !trace_.sampled || trace_.empty()) return;
  const Stream ended = Now();
  book_->tracer_->Record({.trace_id = trace_.trace_id,
                          .span_id = observe::NewSpanId(),
                          .parent_id = trace_.span_id,
                          .name = ended.method,
                          .kind = observe::Span::Kind::kServer,
                          .start = start_,
                          .end = book_->tracer_->Now(),
                          .attributes = {{"npuc.tenant", ended.tenant},
                                         {"npuc.object", ended.object},
                                         {"npuc.bytes", ended.bytes}}});
}

void OpenStreams::Place::SetObject(std::string object) {
  const MutexLock lock(book_->mutex_);
  stream_.object = std::move(object);
}

void OpenStreams::Place::SetTrace(const base::TraceContext& trace) {
  if (!trace_.sampled) trace_ = trace;
}

OpenStreams::Stream OpenStreams::Place::Now() const {
  Stream stream = stream_;
  stream.bytes = bytes_.load();
  return stream;
}

std::unique_ptr<OpenStreams::Place> OpenStreams::Add(const char* protocol, const char* method,
                                                     const auth::Caller& caller, std::string object,
                                                     bool is_transfer) {
  Stream stream{.protocol = protocol,
                .method = method,
                .peer = caller.peer,
                .identity = caller.identity,
                .tenant = caller.tenant,
                .object = std::move(object),
                .since = absl::Now()};
  const absl::Time start = tracer_ == nullptr ? stream.since : tracer_->Now();
  std::unique_ptr<Place> place(
      new Place(this, std::move(stream), is_transfer ? caller.trace : base::TraceContext{}, start));
  const MutexLock lock(mutex_);
  places_.insert(place.get());
  return place;
}

std::vector<OpenStreams::Stream> OpenStreams::List(size_t limit) const {
  std::vector<Stream> all;
  {
    const MutexLock lock(mutex_);
    all.reserve(places_.size());
    for (const Place* place : places_) all.push_back(place->Now());
  }
  KeepFirst(all, limit, [](const Stream& a, const Stream& b) {
    return std::make_tuple(-a.bytes, a.since, absl::string_view(a.object)) <
           std::make_tuple(-b.bytes, b.since, absl::string_view(b.object));
  });
  return all;
}

size_t OpenStreams::count() const {
  const MutexLock lock(mutex_);
  return places_.size();
}

void OpenStreams::Sample(observe::Metrics& metrics) const {
  std::map<absl::string_view, int64_t> counts = {
      {"WatchCompileJob", 0}, {"UploadBlob", 0}, {"DownloadArtifact", 0}};
  {
    const MutexLock lock(mutex_);
    for (const Place* place : places_) ++counts[place->stream_.method];
  }
  for (const auto& [method, count] : counts) {
    metrics.Set(observe::Metric::kStreams, {method}, static_cast<double>(count));
  }
}

}  // namespace npuc::api
