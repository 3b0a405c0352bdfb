#ifndef NPUC_SERVER_WORKER_PACKET_H_
#define NPUC_SERVER_WORKER_PACKET_H_

#include <sys/types.h>

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "cache/posix.h"
#include "server/worker/protocol.h"

namespace npuc::worker {

// recvmsg of one packet over a SOCK_SEQPACKET socket, `flags` as its own; the descriptors that come
// along are appended. The packet's bytes; 0: the other end is closed; -1 with errno.
ssize_t ReceivePacket(int socket, absl::Span<char> bytes, int flags,
                      std::vector<cache::UniqueFd>& descriptors);

// A control message with the descriptors that come along, over a SOCK_SEQPACKET socket.
struct ControlPacket {
  ControlMessage message;
  std::vector<cache::UniqueFd> descriptors;
};

// Waits for the next one. Nullopt: the other end is closed, or what came is no control message;
// both mean that there is nobody to listen to.
std::optional<ControlPacket> ReceiveControl(int socket);

// 0, or errno. `flags`: MSG_DONTWAIT or none. A closed other end is EPIPE and no signal.
int SendControl(int socket, const ControlMessage& message, absl::Span<const int> descriptors,
                int flags);

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_PACKET_H_
