#include "server/http/health_endpoint.h"

#include <httplib.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(HealthEndpointTest, SaysWhetherTheDaemonServes) {
  std::atomic<bool> serving = false;
  auto endpoint = HealthEndpoint::Start("127.0.0.1:0", [&] { return serving.load(); });
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  httplib::Client client("127.0.0.1", (*endpoint)->port());
  EXPECT_EQ(client.Get("/healthz")->status, 503);
  serving = true;
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/other")->status, 404);
}

TEST(HealthEndpointTest, APortInUseIsAnError) {
  auto first = HealthEndpoint::Start("127.0.0.1:0", [] { return true; });
  ASSERT_TRUE(first.ok());
  auto second =
      HealthEndpoint::Start(absl::StrCat("127.0.0.1:", (*first)->port()), [] { return true; });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(HealthEndpoint::Start("nonsense", [] { return true; }).ok());
}

}  // namespace
}  // namespace npuc
