#ifndef NPUC_SERVER_WORKER_PACKET_H_
#define NPUC_SERVER_WORKER_PACKET_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "cache/posix.h"
#include "server/worker/protocol.h"

namespace npuc {

// A control message with the descriptors that come along, over a SOCK_SEQPACKET socket.
struct ControlPacket {
  ControlMessage message;
  std::vector<UniqueFd> descriptors;
};

// Waits for the next one. Nullopt: the other end is closed, or what came is no control message;
// both mean that there is nobody to listen to.
std::optional<ControlPacket> ReceiveControl(int socket);

// 0, or errno. `flags`: MSG_DONTWAIT or none. A closed other end is EPIPE and no signal.
int SendControl(int socket, const ControlMessage& message, absl::Span<const int> descriptors,
                int flags);

}  // namespace npuc

#endif  // NPUC_SERVER_WORKER_PACKET_H_
