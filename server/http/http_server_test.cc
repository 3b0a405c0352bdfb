#include "server/http/http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/http/tls_context.h"

namespace npuc::http {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A client that sends any bytes.
class Socket {
 public:
  explicit Socket(int port, in_addr_t source = INADDR_LOOPBACK)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(source);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool Send(absl::string_view bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Up to `text`, or to the end of the connection.
  std::string ReadTo(absl::string_view text) const {
    std::string got;
    char byte = 0;
    while (!absl::StrContains(got, text) && recv(fd_, &byte, 1, 0) == 1) got.push_back(byte);
    return got;
  }
  // True if the server says something, or ends the connection, within this time.
  bool Answers(milliseconds patience) const {
    pollfd ready{fd_, POLLIN, 0};
    return poll(&ready, 1, static_cast<int>(patience.count())) == 1;
  }
  std::string ReadAll() const {
    std::string got;
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd_, buffer, sizeof(buffer), 0)) > 0;) {
      got.append(buffer, static_cast<size_t>(n));
    }
    return got;
  }

 private:
  const int fd_;
};

// Tells "tick\n" for each Tick of the test, until the client goes.
class Ticker : public HttpStream {
 public:
  struct State {
    std::mutex mutex;
    int ticks = 0;
    std::function<void()> wake;
    std::atomic<int> open = 0;
  };
  explicit Ticker(State* state) : state_(state) { ++state_->open; }
  ~Ticker() override {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->wake = nullptr;
    --state_->open;
  }
  absl::StatusOr<Piece> Next() override {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->ticks == 0) return Piece{};
    --state_->ticks;
    return Piece{"tick\n"};
  }
  std::optional<uint64_t> size() const override { return std::nullopt; }
  void SetWake(std::function<void()> wake) override {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->wake = std::move(wake);
  }

 private:
  State* const state_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  explicit HttpServerTest(HttpLimits limits = {}) {
    auto server =
        HttpServer::Start({.listen = "127.0.0.1:0",
                           .limits = limits,
                           .admit = [this](const HttpRequest& head) { return Admit(head); },
                           .refuse =
                               [](int status, const std::string& why) {
                                 HttpResponse response{.status = status};
                                 response.SetBody(why, "text/plain");
                                 return response;
                               }},
                          nullptr);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  HttpAdmission Admit(const HttpRequest& head) {
    ++heads_;
    HttpResponse refused{.status = 401};
    if (head.path == "/refused") return {.answer = std::move(refused)};
    return {.max_body_bytes = 1000, .handle = [this](const HttpRequest& request) {
              HttpResponse response;
              if (request.path == "/ticks") {
                response.stream = std::make_unique<Ticker>(&ticker_);
              } else if (request.path == "/wait") {
                const std::lock_guard<std::mutex> wait(gate_);
                response.SetBody("waited", "text/plain");
              } else {
                response.SetBody(
                    absl::StrCat(request.method, " ", request.path, " [", request.body, "]"),
                    "text/plain");
              }
              return response;
            }};
  }

  std::string Talk(absl::string_view bytes) {
    const Socket client(server_->port());
    client.Send(bytes);
    return client.ReadAll();
  }

  std::atomic<int> heads_ = 0;
  std::mutex gate_;
  Ticker::State ticker_;
  std::unique_ptr<HttpServer> server_;
};

std::string Request(absl::string_view line, absl::string_view rest) {
  return absl::StrCat(line, " HTTP/1.1\r\nHost: localhost\r\n", rest);
}
size_t Answers(absl::string_view text) {
  return std::vector<absl::string_view>(absl::StrSplit(text, "\r\nDate: ")).size() - 1;
}

TEST_F(HttpServerTest, RequestsOneBehindTheOther) {
  const std::string text =
      Talk(Request("GET /a", "\r\n") + Request("POST /b", "Content-Length: 3\r\n\r\nxyz") +
           Request("POST /c",
                   "Transfer-Encoding: chunked\r\n\r\n2;name=value\r\nab\r\n1\r\nc\r\n0\r\n\r\n") +
           Request("HEAD /d", "\r\n") + Request("GET /e", "Connection: close\r\n\r\n"));
  EXPECT_EQ(Answers(text), 5u) << text;
  for (const char* part : {"GET /a []", "POST /b [xyz]", "POST /c [abc]", "GET /e []"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, HasSubstr("Content-Length: 10\r\nConnection: keep-alive\r\n\r\nHTTP/1.1"));
  EXPECT_THAT(Talk("GET /old HTTP/1.0\r\n\r\n"), HasSubstr("GET /old []"));
}

// Each is followed by what a lenient server would take for a second request.
TEST_F(HttpServerTest, WhatHasTwoReadingsIsRefusedAndEndsTheConnection) {
  const std::string smuggled = Request("GET /smuggled", "\r\n");
  const std::vector<std::string> requests = {
      Request("GET /a", absl::StrCat("Content-Length: ", smuggled.size(), "\r\n\r\n")),
      Request("POST /a", "Content-Length: 2\r\nContent-Length: 3\r\n\r\nxyz"),
      Request("POST /a", "Content-Length: 3\r\nContent-Length: 3\r\n\r\nxyz"),
      Request("POST /a", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      Request("POST /a", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
      Request("POST /a", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
      Request("POST /a", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
      Request("POST /a", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
      Request("POST /a", "Content-Length: +2\r\n\r\nxy"),
      Request("POST /a", "Content-Length: 2,2\r\n\r\nxy"),
      Request("POST /a", "Transfer-Encoding: chunked\r\n\r\n+2\r\nxy\r\n0\r\n\r\n"),
      Request("POST /a", "Transfer-Encoding: chunked\r\n\r\n2\r\nxyz\r\n0\r\n\r\n"),
      Request("GET /a", "Host: other\r\n\r\n"),
      "GET /a HTTP/1.1\r\n\r\n",
      "GET /a HTTP/1.1\nHost: localhost\n\n",
      "GET  /a HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /a HTTP/2.0\r\nHost: localhost\r\n\r\n",
      Request("GET http://localhost/a", "\r\n"),
      Request("GET /a", "X: a\rb\r\n\r\n"),
      Request("GET /a", absl::StrCat("X: a", absl::string_view("\0", 1), "b\r\n\r\n")),
      "NONSENSE\r\n\r\n",
  };
  for (const std::string& request : requests) {
    const std::string text = Talk(request + smuggled);
    EXPECT_THAT(text, StartsWith("HTTP/1.1 400 ")) << request;
    EXPECT_EQ(Answers(text), 1u) << request << text;
    EXPECT_THAT(text, HasSubstr("Connection: close")) << request;
  }
}

TEST_F(HttpServerTest, SizesAreRefusedByTheHead) {
  EXPECT_THAT(Talk(Request("POST /a", "Content-Length: 1001\r\n\r\n")), HasSubstr("HTTP/1.1 413 "));
  EXPECT_THAT(Talk(Request("POST /a", "Transfer-Encoding: chunked\r\n\r\n3e9\r\n")),
              HasSubstr("HTTP/1.1 413 "));
  EXPECT_THAT(Talk(Request("GET /a", "X: " + std::string(20'000, 'x') + "\r\n\r\n")),
              HasSubstr("HTTP/1.1 431 "));
  EXPECT_THAT(Talk(Request("POST /a", "Expect: wonders\r\n\r\n")), HasSubstr("HTTP/1.1 417 "));
}

TEST_F(HttpServerTest, NoByteOfABodyIsAwaitedBeforeAdmission) {
  const std::string refused =
      Talk(Request("POST /refused", "Content-Length: 900\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(refused, HasSubstr("Connection: close"));
  const Socket client(server_->port());
  client.Send(Request("POST /a", "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_EQ(client.ReadTo("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("xy");
  EXPECT_THAT(client.ReadTo("]"), HasSubstr("POST /a [xy]"));
}

TEST_F(HttpServerTest, AStreamIsWokenAndEndsWithItsClient) {
  {
    const Socket client(server_->port());
    client.Send(Request("GET /ticks", "\r\n"));
    EXPECT_THAT(client.ReadTo("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
    for (int i = 0; i < 3; ++i) {
      const absl::Time sent = absl::Now();
      {
        const std::lock_guard<std::mutex> lock(ticker_.mutex);
        ++ticker_.ticks;
        if (ticker_.wake) ticker_.wake();
      }
      EXPECT_EQ(client.ReadTo("tick\n\r\n"), "5\r\ntick\n\r\n");
      EXPECT_LT(absl::Now() - sent, absl::Milliseconds(900));  // not by the look of each second
    }
  }
  while (ticker_.open != 0) std::this_thread::yield();
}

class HttpServerDeadlineTest : public HttpServerTest {
 protected:
  HttpServerDeadlineTest()
      : HttpServerTest({.head = milliseconds(300), .request = milliseconds(600)}) {}

  // The time for which the server lets a client send a byte of `bytes` now and then.
  absl::Duration Drip(const Socket& client, absl::string_view bytes) {
    const absl::Time begin = absl::Now();
    for (const char byte : bytes) {
      if (!client.Send(absl::string_view(&byte, 1)) || client.Answers(milliseconds(20))) break;
    }
    client.ReadAll();
    return absl::Now() - begin;
  }
};

TEST_F(HttpServerDeadlineTest, AreOfARequestAndNotOfARead) {
  const Socket head(server_->port());
  EXPECT_LT(Drip(head, Request("GET /a", "X: " + std::string(200, 'x'))), absl::Seconds(3));
  const Socket body(server_->port());
  body.Send(Request("POST /a", "Content-Length: 900\r\n\r\n"));
  EXPECT_LT(Drip(body, std::string(200, 'x')), absl::Seconds(3));
  EXPECT_EQ(heads_, 1);
}

class HttpServerPlacesTest : public HttpServerTest {
 protected:
  HttpServerPlacesTest() : HttpServerTest({.connections = 8, .connections_of_address = 8}) {}
};

// Connections that only wait lose their places to those that ask; a request under way does not.
TEST_F(HttpServerPlacesTest, WhoOnlyWaitsMakesPlace) {
  const Socket working(server_->port());
  std::unique_lock<std::mutex> gate(gate_);
  working.Send(Request("GET /wait", "\r\n"));
  while (heads_ < 1) std::this_thread::yield();
  std::vector<std::unique_ptr<Socket>> slow;
  for (int i = 0; i < 40; ++i) {
    slow.push_back(std::make_unique<Socket>(server_->port()));
    slow.back()->Send(i % 2 == 0 ? "GET /hal" : "");
  }
  EXPECT_THAT(Talk(Request("GET /a", "Connection: close\r\n\r\n")), HasSubstr("GET /a []"));
  gate.unlock();
  EXPECT_THAT(working.ReadTo("waited"), HasSubstr("200 OK"));
}

TEST_F(HttpServerPlacesTest, WhereAllWorkAFurtherOneIsToldToComeBack) {
  std::unique_lock<std::mutex> gate(gate_);
  std::vector<std::unique_ptr<Socket>> working;
  for (int i = 0; i < 8; ++i) {
    working.push_back(std::make_unique<Socket>(server_->port()));
    working.back()->Send(Request("GET /wait", "\r\n"));
  }
  while (heads_ < 8) std::this_thread::yield();
  EXPECT_THAT(Socket(server_->port()).ReadAll(), StartsWith("HTTP/1.1 503 "));
  gate.unlock();
  for (const auto& client : working) EXPECT_THAT(client->ReadTo("waited"), HasSubstr("200 OK"));
}

class HttpServerAddressTest : public HttpServerTest {
 protected:
  HttpServerAddressTest() : HttpServerTest({.connections = 8, .connections_of_address = 2}) {}
};

TEST_F(HttpServerAddressTest, OneAddressCannotTakeThePlacesOfAnother) {
  std::unique_lock<std::mutex> gate(gate_);
  const Socket first(server_->port()), second(server_->port());
  for (const Socket* client : {&first, &second}) client->Send(Request("GET /wait", "\r\n"));
  while (heads_ < 2) std::this_thread::yield();
  EXPECT_THAT(Socket(server_->port()).ReadAll(), StartsWith("HTTP/1.1 503 "));
  const Socket other(server_->port(), INADDR_LOOPBACK + 1);
  other.Send(Request("GET /a", "Connection: close\r\n\r\n"));
  EXPECT_THAT(other.ReadAll(), HasSubstr("GET /a []"));
  gate.unlock();
}

class HttpServerBodiesTest : public HttpServerTest {
 protected:
  HttpServerBodiesTest() : HttpServerTest({.bodies_bytes = 1000}) {}
};

TEST_F(HttpServerBodiesTest, TogetherHaveABound) {
  const std::string head = Request("POST /a", "Content-Length: 900\r\n\r\n");
  const Socket first(server_->port());
  first.Send(head);
  while (heads_ < 1) std::this_thread::yield();
  EXPECT_THAT(Talk(head), StartsWith("HTTP/1.1 503 "));
  first.Send(std::string(900, 'x'));
  EXPECT_THAT(first.ReadTo("]"), HasSubstr("200 OK"));
  const Socket second(server_->port());  // the room is there again
  second.Send(head + std::string(900, 'y'));
  EXPECT_THAT(second.ReadTo("]"), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace npuc::http
