#ifndef NPUC_SERVER_AUTH_CLIENT_ADDRESS_H_
#define NPUC_SERVER_AUTH_CLIENT_ADDRESS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace npuc::auth {

// The key under which clients are counted: an IPv4 address, or the /64 network of an IPv6
// address, since one host has all of those. IPv4 in IPv6 counts as IPv4; other text stays as it is.
std::string AddressGroup(absl::string_view address);

// "127.0.0.1:4711" or "[::1]:4711" of a gRPC peer; other text stays.
std::string EndpointOfGrpcPeer(absl::string_view peer);

// The address of a gRPC peer, "ipv4:127.0.0.1:4711" or "ipv6:%5B::1%5D:4711"; other text stays.
std::string AddressOfGrpcPeer(absl::string_view peer);

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_CLIENT_ADDRESS_H_
