#include "server/auth/client_address.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace npuc::auth {

std::string AddressGroup(absl::string_view address) {
  const std::string text(address.substr(0, address.find('%')));  // without a zone
  in6_addr v6 = {};
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return std::string(address);
  char shown[INET6_ADDRSTRLEN] = {};
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    inet_ntop(AF_INET, &v6.s6_addr[12], shown, sizeof(shown));
    return shown;
  }
  std::fill(std::begin(v6.s6_addr) + 8, std::end(v6.s6_addr), 0);
  inet_ntop(AF_INET6, &v6, shown, sizeof(shown));
  return absl::StrCat(shown, "/64");
}

std::string EndpointOfGrpcPeer(absl::string_view peer) {
  const std::string decoded = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view endpoint = decoded;
  if (!absl::ConsumePrefix(&endpoint, "ipv4:") && !absl::ConsumePrefix(&endpoint, "ipv6:")) {
    return std::string(peer);
  }
  return std::string(endpoint);
}

std::string AddressOfGrpcPeer(absl::string_view peer) {
  const std::string endpoint = EndpointOfGrpcPeer(peer);
  if (endpoint == peer) return endpoint;
  absl::string_view address = endpoint;
  address = address.substr(0, address.rfind(':'));
  absl::ConsumePrefix(&address, "[");
  absl::ConsumeSuffix(&address, "]");
  return std::string(address);
}

}  // namespace npuc::auth
