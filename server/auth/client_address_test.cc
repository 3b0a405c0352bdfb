#include "server/auth/client_address.h"

#include "gtest/gtest.h"

namespace npuc::auth {
namespace {

TEST(ClientAddressTest, AHostOfIpv6IsItsNetwork) {
  EXPECT_EQ(AddressGroup("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(AddressGroup("::ffff:10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(AddressGroup("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(AddressGroup("2001:db8:1:2:ffff::"), AddressGroup("2001:db8:1:2::1"));
  EXPECT_EQ(AddressGroup("fe80::1%eth0"), "fe80::/64");
  EXPECT_EQ(AddressGroup("nonsense"), "nonsense");
  EXPECT_EQ(AddressGroup(""), "");
}

TEST(ClientAddressTest, GrpcPeers) {
  EXPECT_EQ(AddressOfGrpcPeer("ipv4:127.0.0.1:4711"), "127.0.0.1");
  EXPECT_EQ(AddressOfGrpcPeer("ipv6:%5B2001:db8::1%5D:4711"), "2001:db8::1");
  EXPECT_EQ(AddressOfGrpcPeer("ipv6:[::1]:4711"), "::1");
  EXPECT_EQ(AddressOfGrpcPeer("unix:/run/x"), "unix:/run/x");
  EXPECT_EQ(AddressOfGrpcPeer("ipv4:"), "");
  EXPECT_EQ(AddressOfGrpcPeer(""), "");
}

}  // namespace
}  // namespace npuc::auth
