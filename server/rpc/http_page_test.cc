// Tests of HTTP's calls for the page in a browser, which gRPC lacks: sessions, and one event stream
// of many jobs.
#include <httplib.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "server/http/event_streams.h"
#include "server/http/gateway.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReasonOf(const httplib::Result& result) {
  return json::parse(result->body)["details"][0]["reason"].get<std::string>();
}

std::string Token(const std::string& name) { return name + "-0123456789-0123456789-0123456789"; }

std::string TenantsFile() { return ::testing::TempDir() + "/page.tenants.yaml"; }

// `reader`, with the token of this name.
void WriteTenants(const std::string& token) {
  std::ofstream(TenantsFile())
      << "format: 1\ntenants:\n  a:\n    identities:\n      reader: {token_sha256: "
      << Sha256Hex(Token(token)) << ", rights: [read]}\n";
}

class PageTest : public RpcTest {
 protected:
  explicit PageTest(
      std::unique_ptr<auth::Authenticator> authenticator = auth::Authenticator::Everybody())
      : RpcTest(std::move(authenticator)) {
    auto gateway = http::Gateway::Start({.heartbeat = absl::Milliseconds(20)}, Dependencies());
    EXPECT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    client_ = std::make_unique<httplib::Client>("127.0.0.1", gateway_->port());
    client_->set_keep_alive(true);
  }

  std::unique_ptr<http::Gateway> gateway_;
  std::unique_ptr<httplib::Client> client_;
};

// One stream of several jobs has the events of each job's own stream, and ends after the last end.
TEST_F(PageTest, OneStreamTellsOfManyJobs) {
  const std::string first = Submit("one"), second = Submit("two");
  RunNext(3);
  RunNext(2);
  std::map<std::string, std::vector<std::string>> told;
  std::map<std::string, std::string> ends;
  const auto result = client_->Get(
      absl::StrCat("/v1/events?jobs=", first, "&jobs=", second, ":3&jobs=", kUnknownJob, ":1"));
  ASSERT_EQ(result->status, 200);
  for (const absl::string_view block : absl::StrSplit(result->body, "\n\n", absl::SkipEmpty())) {
    const std::vector<std::string> lines = absl::StrSplit(block, '\n');
    const json data = json::parse(lines.back().substr(lines.back().find(": ") + 2));
    const std::string job = data["jobId"];
    EXPECT_EQ(ends.count(job), 0u) << "something follows the end";
    if (lines.size() == 1) told[job].push_back(data["event"].dump());
    if (lines.size() == 2) ends[job] = lines[0];
    if (lines[0] == "event: error") {
      EXPECT_EQ(data["status"]["code"], 5) << "not NOT_FOUND";
    }
  }
  EXPECT_EQ(ends,
            (std::map<std::string, std::string>{
                {first, "event: end"}, {second, "event: end"}, {kUnknownJob, "event: error"}}));
  for (const auto& [job, from] : {std::pair(first, 1), std::pair(second, 3)}) {
    const auto alone = client_->Get(absl::StrCat("/v1/jobs/", job, "/events?fromSeq=", from));
    std::vector<std::string> expected;
    for (const absl::string_view line : absl::StrSplit(alone->body, '\n')) {
      if (absl::StartsWith(line, "data: {\""))
        expected.push_back(json::parse(line.substr(6)).dump());
    }
    EXPECT_GT(expected.size(), 2u);
    EXPECT_EQ(told[job], expected) << job;
  }
  for (const std::string& wrong :
       {std::string(), std::string("?job=x"), absl::StrCat("?jobs=", first, ":x"),
        absl::StrCat("?jobs=", first, ":-1"),
        absl::StrCat("?", absl::StrJoin(std::vector<std::string>(http::kMaxJobsOfAStream + 1,
                                                                 "jobs=" + first),
                                        "&"))}) {
    const auto refused = client_->Get("/v1/events" + wrong);
    EXPECT_EQ(refused->status, 400) << wrong;
  }
}

// A browser's side of a session: its cookie, and what it says of the page that asks.
class SessionTest : public PageTest {
 protected:
  SessionTest() : PageTest(Make()) {}

  static std::unique_ptr<auth::Authenticator> Make() {
    WriteTenants("reader");
    return *auth::Authenticator::FromFile(TenantsFile(), [] { return absl::Now(); });
  }
  std::string Own() const { return absl::StrCat("http://127.0.0.1:", gateway_->port()); }
  httplib::Headers FromPage(const std::string& cookie) const {
    return {{"Cookie", cookie}, {"Sec-Fetch-Site", "same-origin"}, {"Origin", Own()}};
  }
  std::string SignIn(const std::string& cookie = "") {
    httplib::Headers headers = FromPage(cookie);
    headers.emplace("Authorization", "Bearer " + Token("reader"));
    const auto result = client_->Post("/v1/session", headers, "", "");
    EXPECT_EQ(result->status, 200) << result->body;
    EXPECT_EQ(json::parse(result->body)["identity"], "reader");
    set_cookie_ = result->get_header_value("Set-Cookie");
    return set_cookie_.substr(0, set_cookie_.find(';'));
  }
  int StatusOf(const httplib::Headers& headers) {
    return client_->Get("/v1/caller", headers)->status;
  }
  std::string set_cookie_;
};

TEST_F(SessionTest, ATokenMakesACookieThatStandsForItUntilSignOut) {
  const auto how = client_->Get("/v1/sign-in");
  EXPECT_EQ(json::parse(how->body), json({{"needed", true}}));
  EXPECT_EQ(StatusOf(FromPage("")), 401);
  const std::string cookie = SignIn();
  EXPECT_THAT(set_cookie_, HasSubstr("; HttpOnly; SameSite=Strict"));
  EXPECT_THAT(set_cookie_, HasSubstr("; Path=/; Max-Age=43200;"));
  EXPECT_THAT(set_cookie_, Not(HasSubstr(Token("reader"))));
  EXPECT_EQ(StatusOf(FromPage(cookie)), 200);
  EXPECT_EQ(StatusOf({{"Cookie", "other=1; " + cookie + "; more=2"}}), 200);
  EXPECT_EQ(StatusOf(FromPage(cookie + "; " + cookie)), 401) << "which of two counts?";
  EXPECT_EQ(StatusOf(FromPage(cookie + "x")), 401);
  // A token counts before the cookie, and is not helped by it.
  EXPECT_EQ(StatusOf({{"Cookie", cookie}, {"Authorization", "Bearer " + Token("none")}}), 401);
  // Another sign-in of the same browser ends the session before it.
  const std::string second = SignIn(cookie);
  EXPECT_EQ(StatusOf(FromPage(cookie)), 401);
  EXPECT_EQ(StatusOf(FromPage(second)), 200);
  const auto out = client_->Post("/v1/session:end", FromPage(second), "", "");
  EXPECT_EQ(out->status, 200);
  EXPECT_THAT(out->get_header_value("Set-Cookie"), HasSubstr("Max-Age=0"));
  const auto ended = client_->Get("/v1/caller", FromPage(second));
  EXPECT_EQ(ended->status, 401);
  EXPECT_EQ(ReasonOf(ended), "SESSION_ENDED");
  EXPECT_EQ(client_->Post("/v1/session:end", FromPage(second), "", "")->status, 200);
}

// The browser sends the cookie whoever asks: what changes something must come from the own page.
TEST_F(SessionTest, ACookieAloneChangesNothing) {
  const std::string cookie = SignIn();
  const std::string path = absl::StrCat("/v1/jobs/", kUnknownJob, ":cancel");
  const auto cancel = [&](httplib::Headers headers) {
    headers.emplace("Cookie", cookie);
    return ReasonOf(client_->Post(path, headers, "{}", "application/json"));
  };
  EXPECT_EQ(cancel({}), "ORIGIN_REFUSED");
  EXPECT_EQ(cancel({{"Origin", "null"}}), "ORIGIN_REFUSED");
  EXPECT_EQ(cancel({{"Origin", "https" + Own().substr(4)}}), "ORIGIN_REFUSED");
  EXPECT_EQ(cancel({{"Sec-Fetch-Site", "none"}}), "ORIGIN_REFUSED");
  EXPECT_EQ(cancel({{"Sec-Fetch-Site", "same-site"}, {"Origin", Own()}}), "ORIGIN_REFUSED");
  EXPECT_EQ(cancel({{"Origin", Own()}}), "RIGHT_MISSING");
  EXPECT_EQ(cancel({{"Sec-Fetch-Site", "same-origin"}}), "RIGHT_MISSING");
  const auto out = client_->Post("/v1/session:end", {{"Cookie", cookie}}, "", "");
  EXPECT_EQ(ReasonOf(out), "ORIGIN_REFUSED");
  EXPECT_EQ(StatusOf(FromPage(cookie)), 200);
}

// The token that began it leaves the tenants file: the session ends with it.
TEST_F(SessionTest, ASessionHasTheRightsOfTheFileAsItIsNow) {
  const std::string cookie = SignIn();
  WriteTenants("another");
  ASSERT_TRUE(*authenticator_->Reload());
  const auto result = client_->Get("/v1/caller", FromPage(cookie));
  EXPECT_EQ(result->status, 401);
  EXPECT_EQ(ReasonOf(result), "SESSION_ENDED");
}

TEST_F(PageTest, WithoutIdentitiesNobodySignsIn) {
  EXPECT_EQ(json::parse(client_->Get("/v1/sign-in")->body), json({{"needed", false}}));
  const auto result = client_->Post("/v1/session", {}, "", "");
  EXPECT_EQ(result->status, 200);
  EXPECT_FALSE(result->has_header("Set-Cookie"));
}

}  // namespace
}  // namespace npuc::rpc
