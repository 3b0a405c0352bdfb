#include "server/rpc/connection_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::rpc {
namespace {

using ::testing::HasSubstr;

cache::UniqueFd Connect(int port) {
  cache::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.Reset();
  return fd;
}

bool Within5s(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Whether the other side closed the connection; waits for that, or for `patience_ms`.
bool IsClosed(const cache::UniqueFd& fd, int patience_ms) {
  pollfd readable = {.fd = fd.get(), .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, patience_ms) != 1) return false;
  char byte;
  return recv(fd.get(), &byte, 1, MSG_DONTWAIT) <= 0;
}

class ConnectionListenerTest : public ::testing::Test {
 protected:
  void Start(size_t max_connections, const std::string& address = "127.0.0.1:0") {
    auto made = ConnectionListener::Listen(address, max_connections);
    ASSERT_TRUE(made.ok()) << made.status();
    listener_ = *std::move(made);
    listener_->Start(&book_, [this](cache::UniqueFd fd) {
      const std::lock_guard<std::mutex> lock(mutex_);
      taken_.push_back(std::move(fd));
    });
  }
  size_t taken() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return taken_.size();
  }
  // As gRPC ends a connection.
  void EndTaken(size_t i) {
    const std::lock_guard<std::mutex> lock(mutex_);
    shutdown(taken_[i].get(), SHUT_RDWR);
    taken_[i].Reset();
  }

  std::mutex mutex_;
  std::vector<cache::UniqueFd> taken_;  // guarded by mutex_
  api::OpenConnections book_;
  std::unique_ptr<ConnectionListener> listener_;
};

TEST_F(ConnectionListenerTest, HandsOnUpToTheLimitAndClosesFurtherOnes) {
  Start(3);
  std::vector<cache::UniqueFd> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(Connect(listener_->port()));
  EXPECT_TRUE(Within5s([&] { return taken() == 3; }));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(IsClosed(Connect(listener_->port()), 5000));
  EXPECT_EQ(taken(), 3u);
  EXPECT_EQ(listener_->counts().open, 3u);
  EXPECT_EQ(listener_->counts().refused, 5u);
  for (const cache::UniqueFd& client : clients) EXPECT_FALSE(IsClosed(client, 0));
}

TEST_F(ConnectionListenerTest, EitherSideGivesThePlaceBack) {
  Start(1);
  for (int round = 0; round < 20; ++round) {
    const cache::UniqueFd client = Connect(listener_->port());
    ASSERT_TRUE(Within5s([&] { return taken() == static_cast<size_t>(round) + 1; })) << round;
    EXPECT_EQ(listener_->counts().open, 1u);
    EndTaken(static_cast<size_t>(round));
    EXPECT_TRUE(IsClosed(client, 5000)) << "though the count had a descriptor of it, too";
    ASSERT_TRUE(Within5s([&] { return listener_->counts().open == 0; })) << round;
  }
  // The client goes by a reset; the server does not look.
  {
    const cache::UniqueFd client = Connect(listener_->port());
    ASSERT_TRUE(Within5s([&] { return taken() == 21; }));
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  EXPECT_TRUE(Within5s([&] { return listener_->counts().open == 0; }));
  EXPECT_EQ(listener_->counts().refused, 0u);
}

TEST_F(ConnectionListenerTest, AfterStopNobodyIsTakenOrLeftWaiting) {
  Start(10);
  const cache::UniqueFd before = Connect(listener_->port());
  ASSERT_TRUE(Within5s([&] { return taken() == 1; }));
  listener_->Stop();
  EXPECT_FALSE(Connect(listener_->port()).valid());
  EXPECT_FALSE(IsClosed(before, 0)) << "whoever took it decides that";
}

TEST_F(ConnectionListenerTest, ManyAtOnceOnBothFamilies) {
  Start(50, "localhost:0");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) Connect(listener_->port());
    });
  }
  for (std::thread& thread : threads) thread.join();
  // They went; the server's ends are still there, as the taken are kept. None is over the limit.
  EXPECT_TRUE(Within5s([&] { return taken() + listener_->counts().refused == 400; }));
  EXPECT_EQ(taken(), listener_->counts().open);
  EXPECT_LE(listener_->counts().open, 50u);
}

TEST_F(ConnectionListenerTest, AddressesThatAreNone) {
  Start(1);
  const std::string taken = absl::StrCat("127.0.0.1:", listener_->port());
  for (const std::string& address : {taken, std::string("no-such-host.invalid:1"),
                                     std::string("127.0.0.1"), std::string("192.0.2.1:0")}) {
    const auto made = ConnectionListener::Listen(address, 1);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kUnavailable) << address;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr(address));
  }
}

}  // namespace
}  // namespace npuc::rpc
