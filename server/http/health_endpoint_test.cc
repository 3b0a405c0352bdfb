#include "server/http/health_endpoint.h"

#include <httplib.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

TEST(HealthEndpointTest, MakesAPageForEachGet) {
  std::atomic<int> calls = 0;
  auto endpoint =
      HealthEndpoint::Start("127.0.0.1:0", {{"/healthz", [] { return HttpPage{.body = "ok\n"}; }},
                                            {"/readyz", [&] {
                                               return HttpPage{.status = 503,
                                                               .content_type = "application/json",
                                                               .body = std::to_string(++calls)};
                                             }}});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  httplib::Client client("127.0.0.1", (*endpoint)->port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/healthz")->body, "ok\n");
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  const auto second = client.Get("/readyz");
  EXPECT_EQ(second->body, "2");
  EXPECT_EQ(second->get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(client.Get("/other")->status, 404);
}

TEST(HealthEndpointTest, APortInUseIsAnError) {
  auto first = HealthEndpoint::Start("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok());
  auto second = HealthEndpoint::Start(absl::StrCat("127.0.0.1:", (*first)->port()), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(HealthEndpoint::Start("nonsense", {}).ok());
}

}  // namespace
}  // namespace npuc
