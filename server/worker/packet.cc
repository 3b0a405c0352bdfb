#include "server/worker/packet.h"

#include <sys/socket.h>

#include <cstring>
#include <string>

namespace npuc::worker {

ssize_t ReceivePacket(int socket, absl::Span<char> bytes, int flags,
                      std::vector<cache::UniqueFd>& descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
  iovec part = {bytes.data(), bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t n =
      cache::RetryOnEintr([&] { return recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags); });
  if (n <= 0) return n;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
  return n;
}

std::optional<ControlPacket> ReceiveControl(int socket) {
  char bytes[kMaxControlBytes];
  ControlPacket packet;
  const ssize_t n = ReceivePacket(socket, absl::MakeSpan(bytes), 0, packet.descriptors);
  if (n <= 0) return std::nullopt;
  const auto message = DecodeControl(absl::string_view(bytes, static_cast<size_t>(n)));
  // Who sends is of the same build and trusted; anything else means that we are lost.
  if (!message.ok()) return std::nullopt;
  packet.message = *message;
  return packet;
}

int SendControl(int socket, const ControlMessage& message, absl::Span<const int> descriptors,
                int flags) {
  const std::string bytes = EncodeControl(message);
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  std::vector<char> control(CMSG_SPACE(sizeof(int) * descriptors.size()));
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(c), descriptors.data(), sizeof(int) * descriptors.size());
  }
  return cache::RetryOnEintr([&] { return sendmsg(socket, &header, MSG_NOSIGNAL | flags); }) < 0
             ? errno
             : 0;
}

}  // namespace npuc::worker
