#include "server/http/health_endpoint.h"

#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::http {
namespace {

TEST(HealthEndpointTest, MakesAPageForEachGet) {
  std::atomic<int> calls = 0;
  auto endpoint =
      HealthEndpoint::Start("127.0.0.1:0", {{"/healthz", {[] { return HttpPage{.body = "ok\n"}; }}},
                                            {"/readyz", {[&] {
                                               return HttpPage{.status = 503,
                                                               .content_type = "application/json",
                                                               .body = std::to_string(++calls)};
                                             }}}});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  httplib::Client client("127.0.0.1", (*endpoint)->port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/healthz")->body, "ok\n");
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  const auto second = client.Get("/readyz");
  EXPECT_EQ(second->body, "2");
  EXPECT_EQ(second->get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(client.Get("/other")->status, 404);
}

// Connects and sends; the caller closes.
int Dial(int port, const std::string& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  return fd;
}

// Scrapers that keep their connections, half requests, and a metrics page that waits for a lock.
TEST(HealthEndpointTest, NothingThatWaitsKeepsHealthFromAnswering) {
  std::mutex stuck;
  std::unique_lock<std::mutex> lock(stuck);
  auto endpoint =
      HealthEndpoint::Start("127.0.0.1:0", {{"/healthz", {[] { return HttpPage{.body = "ok\n"}; }}},
                                            {"/metrics",
                                             {[&] {
                                                const std::lock_guard<std::mutex> wait(stuck);
                                                return HttpPage{.body = "1\n"};
                                              },
                                              true}}});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  std::vector<int> held;
  for (int i = 0; i < 10; ++i) {
    const char* const half[] = {"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", "GET /he", "",
                                "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"};
    for (const char* const bytes : half) held.push_back(Dial((*endpoint)->port(), bytes));
  }
  httplib::Client client("127.0.0.1", (*endpoint)->port());
  client.set_keep_alive(true);
  client.set_read_timeout(2);
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.Get("/healthz");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "ok\n");
  }
  EXPECT_EQ(client.Post("/healthz")->status, 405);
  lock.unlock();
  EXPECT_EQ(client.Get("/metrics")->body, "1\n");
  for (const int fd : held) close(fd);
}

TEST(HealthEndpointTest, APortInUseIsAnError) {
  auto first = HealthEndpoint::Start("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok());
  auto second = HealthEndpoint::Start(absl::StrCat("127.0.0.1:", (*first)->port()), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(HealthEndpoint::Start("nonsense", {}).ok());
}

}  // namespace
}  // namespace npuc::http
