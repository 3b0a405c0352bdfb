#include "server/systemd.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace npuc::daemon {
namespace {

TEST(SystemdNotifierTest, TellsTheSocketThatTheEnvironmentNames) {
  const std::string path = ::testing::TempDir() + "/notify_" + std::to_string(getpid());
  const cache::UniqueFd listener(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(at.sun_path));
  memcpy(at.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  const SystemdNotifier notifier = SystemdNotifier::FromEnvironment();
  EXPECT_EQ(getenv("NOTIFY_SOCKET"), nullptr);  // not for workers
  notifier.Send("READY=1");
  char buffer[64] = {};
  const ssize_t size = recv(listener.get(), buffer, sizeof(buffer), 0);
  EXPECT_EQ(std::string(buffer, size > 0 ? static_cast<size_t>(size) : 0), "READY=1");
  unlink(path.c_str());
  notifier.Send("WATCHDOG=1");  // nobody listens any more
}

TEST(SystemdNotifierTest, WithoutAServiceManagerItIsSilent) {
  for (const char* name : {"", "relative", "vsock:2:1"}) {
    setenv("NOTIFY_SOCKET", name, 1);
    SystemdNotifier::FromEnvironment().Send("READY=1");
  }
  unsetenv("NOTIFY_SOCKET");
  SystemdNotifier::FromEnvironment().Send("READY=1");
}

}  // namespace
}  // namespace npuc::daemon
