#include "server/api/open_connections.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/executor/executor_test_util.h"

namespace npuc::api {
namespace {

// Two ends of a TCP connection on this machine.
struct Pair {
  Pair() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(listener, reinterpret_cast<sockaddr*>(&address), size);
    listen(listener, 1);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), size), 0);
    server = accept(listener, nullptr, nullptr);
    close(listener);
  }
  ~Pair() {
    close(client);
    close(server);
  }
  int client = -1;
  int server = -1;
};

class Gauges : public observe::NoMetrics {
 public:
  void Set(observe::Metric /*metric*/, Labels labels, double value) override {
    values[labels.size() == 0 ? "" : std::string(*labels.begin())] = value;
  }
  std::map<std::string, double> values;
};

const auth::Caller kCaller{"ci", "audio", auth::Rights::All()};

TEST(OpenConnectionsTest, KnowsWhatIsOpenAndWhoCalls) {
  OpenConnections book;
  const Pair quiet;
  const Pair busy;
  const auto first = book.Add(kGrpc, "127.0.0.1:1", quiet.server);
  auto second = book.Add(kHttp, "127.0.0.1:2", busy.server);
  const std::string bytes(1000, 'x');
  ASSERT_EQ(write(busy.client, bytes.data(), bytes.size()), 1000);
  char buffer[1000];
  ASSERT_EQ(recv(busy.server, buffer, sizeof(buffer), MSG_WAITALL), 1000);
  book.Note(kHttp, "127.0.0.1:2", kCaller, "GET /v1/jobs");
  book.Note(kHttp, "127.0.0.1:2", kCaller, "GET /v1/caller");
  book.Note(kGrpc, "127.0.0.1:2", kCaller, "of another protocol");
  const auto open = book.List(10);
  ASSERT_EQ(open.size(), 2u);
  EXPECT_EQ(open[0].peer, "127.0.0.1:2");
  EXPECT_EQ(open[0].received_bytes, 1000);
  EXPECT_EQ(open[0].calls, 2);
  EXPECT_EQ(open[0].identity, "ci");
  EXPECT_EQ(open[0].last_method, "GET /v1/caller");
  EXPECT_EQ(open[1].calls, 0);
  EXPECT_EQ(open[1].identity, "");
  EXPECT_EQ(book.List(1).size(), 1u);
  Gauges gauges;
  book.Sample(gauges);
  EXPECT_EQ(gauges.values[""], 1);
  second.reset();
  EXPECT_EQ(book.count(), 1u);
  book.Note(kHttp, "127.0.0.1:2", kCaller, "too late");
  EXPECT_EQ(book.count(), 1u);
}

TEST(OpenStreamsTest, KnowsWhatLasts) {
  OpenStreams book(nullptr);
  auto watch = book.Add(kGrpc, "WatchCompileJob", kCaller, "j1", false);
  const auto upload = book.Add(kHttp, "UploadBlob", kCaller, "", true);
  upload->Count(7);
  upload->SetObject("sha");
  const auto open = book.List(10);
  ASSERT_EQ(open.size(), 2u);
  EXPECT_EQ(open[0].object, "sha");
  EXPECT_EQ(open[0].bytes, 7);
  EXPECT_EQ(open[1].object, "j1");
  EXPECT_EQ(open[1].tenant, "audio");
  EXPECT_EQ(book.List(1).size(), 1u);
  watch.reset();
  EXPECT_EQ(book.count(), 1u);
  Gauges gauges;
  book.Sample(gauges);
  EXPECT_EQ(gauges.values["UploadBlob"], 1);
  EXPECT_EQ(gauges.values["WatchCompileJob"], 0);
}

TEST(OpenStreamsTest, TransfersOfATraceAreSpans) {
  executor::FakeTracer tracer;
  OpenStreams book(&tracer);
  auth::Caller caller = kCaller;
  const base::TraceContext job{
      .trace_id = std::string(32, 'a'), .span_id = std::string(16, 'b'), .sampled = true};
  book.Add(kGrpc, "UploadBlob", caller, "sha", true)->Count(1);
  EXPECT_TRUE(tracer.spans().empty());
  book.Add(kGrpc, "DownloadArtifact", caller, "j1/m.h", true)->SetTrace(job);
  ASSERT_EQ(tracer.spans().size(), 1u);
  EXPECT_EQ(tracer.spans()[0].parent_id, job.span_id);
  caller.trace = {
      .trace_id = std::string(32, 'c'), .span_id = std::string(16, 'd'), .sampled = true};
  book.Add(kGrpc, "DownloadArtifact", caller, "j1/m.h", true)->SetTrace(job);
  ASSERT_EQ(tracer.spans().size(), 2u);
  EXPECT_EQ(tracer.spans()[1].trace_id, caller.trace.trace_id);
  book.Add(kGrpc, "WatchCompileJob", caller, "j1", false);
  EXPECT_EQ(tracer.spans().size(), 2u);
}

}  // namespace
}  // namespace npuc::api
