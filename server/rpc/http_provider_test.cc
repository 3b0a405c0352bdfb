// Tests of signing in by an OpenID Connect provider over HTTP, as a browser does it: the provider
// is one in memory. tests/e2e/run_e2e.py oidc has a real one.
#include <google/protobuf/util/json_util.h>
#include <httplib.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/http/gateway.h"
#include "server/oidc/flow.h"
#include "server/oidc/oidc_test_util.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

using nlohmann::json;
using oidc::FakeProvider;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ProviderSignInTest : public RpcTest {
 protected:
  ProviderSignInTest() : RpcTest(Make()) {
    EXPECT_TRUE(flow_.Attach(&key_).ok());
    api::ApiDependencies dependencies = Dependencies();
    dependencies.sign_ins = &flow_;
    gateway_ = *http::Gateway::Start({.heartbeat = absl::Milliseconds(20)}, dependencies);
    flow_.SetPageUrl(Own());
    client_ = std::make_unique<httplib::Client>("127.0.0.1", gateway_->port());
    client_->set_keep_alive(true);
  }

  static std::string TenantsFile() {
    return absl::StrCat(::testing::TempDir(), "/provider.tenants.yaml");
  }
  static std::unique_ptr<auth::Authenticator> Make() {
    WriteTenants("alice@farm.example");
    return *auth::Authenticator::FromFile(TenantsFile(), [] { return absl::Now(); });
  }
  static void WriteTenants(const std::string& address) {
    std::ofstream(TenantsFile())
        << "format: 1\ntenants:\n  default:\n    identities:\n      alice: {oidc: " << address
        << ", rights: [submit, read]}\n";
  }
  std::string Own() const { return absl::StrCat("http://127.0.0.1:", gateway_->port()); }

  // Keeps the cookies of an answer by name, as a browser does. An empty value removes one.
  void Keep(const httplib::Result& result) {
    for (const auto& [name, value] : result->headers) {
      if (name != "Set-Cookie") continue;
      const size_t equals = value.find('='), end = value.find(';');
      cookies_[value.substr(0, equals)] = value.substr(equals + 1, end - equals - 1);
      set_cookie_ = value;
    }
  }
  httplib::Headers Cookies() const {
    std::string text;
    for (const auto& [name, value] : cookies_) {
      if (!value.empty()) absl::StrAppend(&text, text.empty() ? "" : "; ", name, "=", value);
    }
    return {{"Cookie", text}, {"Sec-Fetch-Site", "same-origin"}};
  }
  // Visits, as the provider's page makes a browser do it.
  httplib::Result Visit(const std::string& path) {
    httplib::Headers headers = Cookies();
    headers.erase("Sec-Fetch-Site");
    headers.emplace("Sec-Fetch-Site", "cross-site");
    auto result = client_->Get(path, headers);
    Keep(result);
    return result;
  }
  // Goes to the provider, where the person of these claims signs in; the path to come back to.
  std::string SignInThere(const json& more = json::object(), const std::string& to = "/%23/jobs") {
    const auto result = Visit("/auth/start?to=" + to);
    EXPECT_EQ(result->status, 303) << result->body;
    location_ = result->get_header_value("Location");
    const auto parameter = [this](const std::string& name) {
      const size_t at = location_.find("&" + name + "=") + name.size() + 2;
      return location_.substr(at, location_.find('&', at) - at);
    };
    json claims = FakeProvider::Claims(parameter("nonce"));
    claims.update(more);
    fake_.tokens = {{"id_token", fake_.key.Sign(claims)}};
    return absl::StrCat("/auth/callback?code=c&state=", parameter("state"));
  }
  json Ways() {
    const auto result = client_->Get("/v1/sign-in", Cookies());
    Keep(result);
    return json::parse(result->body);
  }

  base::MemoryText key_;
  FakeProvider fake_;
  oidc::Provider provider_{{.settings = FakeProvider::MakeSettings(),
                            .now = [] { return absl::Now(); },
                            .steady_now = [] { return absl::Now(); }},
                           &fake_};
  oidc::SignInFlow flow_{{.page_url = "", .now = [] { return absl::Now(); }}, &provider_};
  std::unique_ptr<http::Gateway> gateway_;
  std::unique_ptr<httplib::Client> client_;
  std::map<std::string, std::string> cookies_;
  std::string set_cookie_, location_;
};

TEST_F(ProviderSignInTest, APersonHasASessionAndComesBackToTheLink) {
  EXPECT_EQ(Ways(), json({{"needed", true}, {"provider", "the farm"}}));
  const std::string back = SignInThere();
  EXPECT_THAT(location_, HasSubstr("https://login.farm.example/auth?response_type=code"));
  EXPECT_THAT(set_cookie_, HasSubstr("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax"));
  const auto result = Visit(back);
  EXPECT_EQ(result->status, 303);
  EXPECT_EQ(result->get_header_value("Location"), "/#/jobs");
  EXPECT_THAT(result->get_header_value("Cache-Control"), HasSubstr("no-store"));
  const auto caller = client_->Get("/v1/caller", Cookies());
  EXPECT_EQ(caller->status, 200);
  EXPECT_EQ(json::parse(caller->body)["identity"], "alice");
  EXPECT_THAT(AuditLines({"\"sign_in\"", "alice", "sub=u-17"}), SizeIs(1));
  // The sign-in is over: nothing of it is left, and its way back is none.
  for (const auto& [name, value] : cookies_) {
    EXPECT_EQ(value.empty(), absl::StrContains(name, "provider")) << name;
  }
  EXPECT_EQ(Visit(back)->get_header_value("Location"), "/");
  EXPECT_THAT(std::string(Ways()["problem"]), HasSubstr("has not begun this sign-in"));
  EXPECT_EQ(client_->Get("/v1/caller", Cookies())->status, 200) << "it ends no session";
}

TEST_F(ProviderSignInTest, AReplayWithItsCookieIsRefused) {
  const std::string back = SignInThere();
  const auto kept = cookies_;
  Visit(back);
  cookies_ = kept;
  Visit(back);
  EXPECT_THAT(std::string(Ways()["problem"]), HasSubstr("came back before"));
  EXPECT_EQ(client_->Get("/v1/caller", Cookies())->status, 401);
  EXPECT_EQ(fake_.Count("/token"), 1);
}

TEST_F(ProviderSignInTest, AnUnknownPersonIsToldWhatToAskFor) {
  const auto result = Visit(SignInThere({{"email", "eve@farm.example"}}));
  EXPECT_EQ(result->get_header_value("Location"), "/#/jobs");
  const std::string problem = Ways()["problem"];
  EXPECT_THAT(problem, HasSubstr("the claim 'email' is 'eve@farm.example'"));
  EXPECT_THAT(problem, HasSubstr("adds oidc: 'eve@farm.example'"));
  EXPECT_FALSE(Ways().contains("problem")) << "it is shown once";
  EXPECT_EQ(client_->Get("/v1/caller", Cookies())->status, 401);
  EXPECT_THAT(AuditLines({"\"refused\"", "UNKNOWN_IDENTITY", "/auth/callback"}), SizeIs(1));
}

TEST_F(ProviderSignInTest, ASessionFollowsTheTenantsFile) {
  Visit(SignInThere());
  EXPECT_EQ(client_->Get("/v1/caller", Cookies())->status, 200);
  WriteTenants("bob@farm.example");
  ASSERT_TRUE(*authenticator_->Reload());
  EXPECT_EQ(client_->Get("/v1/caller", Cookies())->status, 401);
}

TEST_F(ProviderSignInTest, LinksOfOthersLeadToThePage) {
  for (const char* to : {"https://evil.example/", "//evil.example", "%2F%2Fevil.example",
                         "/%5Cevil.example", "/v1/jobs", "/%23%0d%0aX:%20y", ""}) {
    EXPECT_EQ(Visit(SignInThere(json::object(), to))->get_header_value("Location"), "/") << to;
  }
}

TEST_F(ProviderSignInTest, AnswersThatNobodyAskedForAreRefused) {
  for (const char* path :
       {"/auth/callback", "/auth/callback?code=c&state=x",
        "/auth/callback?error=%3Cscript%3E&state=", "/auth/callback?code=c&state=a&state=b"}) {
    const auto result = Visit(path);
    EXPECT_EQ(result->status, 303) << path;
    EXPECT_EQ(result->get_header_value("Location"), "/");
    EXPECT_THAT(std::string(Ways()["problem"]), Not(HasSubstr("script"))) << path;
  }
  EXPECT_THAT(fake_.requests, IsEmpty());
  // Neither does another way to call it.
  EXPECT_EQ(client_->Post("/auth/callback", "", "text/plain")->status, 405);
  // A state of one browser beside the cookie of another.
  const std::string mine = SignInThere();
  const auto kept = cookies_;
  cookies_.clear();
  SignInThere();
  EXPECT_EQ(Visit(mine)->status, 303);
  EXPECT_THAT(std::string(Ways()["problem"]), HasSubstr("has not begun this sign-in"));
}

TEST_F(ProviderSignInTest, ErrorsOfTheProviderAreShown) {
  const std::string back = SignInThere();
  Visit(absl::StrCat("/auth/callback?error=access_denied&error_description=%3Cb%3Eno",
                     back.substr(back.find("&state="))));
  EXPECT_THAT(std::string(Ways()["problem"]),
              HasSubstr("the farm has refused the sign-in: access_denied (<b>no)"));
  fake_.error = absl::UnavailableError("connection refused");
  Visit(SignInThere());
  fake_.error = absl::OkStatus();
  EXPECT_THAT(std::string(Ways()["problem"]), HasSubstr("connection refused"));
}

// People who wait for a provider that hangs do not hold the port.
TEST_F(ProviderSignInTest, AProviderThatHangsHoldsAFewThreadsAlone) {
  std::atomic<bool> go = false;
  fake_.before_answer = [&] { go.wait(false); };
  constexpr int kPeople = 24;  // more than the port has threads
  std::vector<std::thread> people;
  std::atomic<int> refused = 0;
  for (int i = 0; i < kPeople; ++i) {
    people.emplace_back([&] {
      httplib::Client client("127.0.0.1", gateway_->port());
      const auto result = client.Get("/auth/start");
      if (!absl::StrContains(result->get_header_value("Location"), "login.farm")) ++refused;
    });
  }
  while (refused < kPeople - oidc::kMaxWaiting) {
    EXPECT_EQ(client_->Get("/v1/sign-in")->status, 200);
  }
  EXPECT_EQ(client_->Get("/v1/sign-in")->status, 200);
  go = true;
  go.notify_all();
  for (std::thread& person : people) person.join();
  EXPECT_EQ(refused, kPeople - oidc::kMaxWaiting);
}

// Events of a job end with the session, not an hour later.
TEST_F(ProviderSignInTest, AStreamEndsWithItsSession) {
  Visit(SignInThere());
  const auto headers = Cookies();
  std::string request;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(Request(), &request).ok());
  const auto created = client_->Post("/v1/jobs", headers, request, "application/json");
  ASSERT_EQ(created->status, 200) << created->body;
  const std::string job = json::parse(created->body)["job"]["jobId"];
  std::string text;
  bool is_out = false;
  const auto path = absl::StrCat("/v1/events?jobs=", job);
  client_->Get(path, headers, [&](const char* bytes, size_t size) {
    text.append(bytes, size);
    if (is_out) return true;
    is_out = true;
    httplib::Client other("127.0.0.1", gateway_->port());
    EXPECT_EQ(other.Post("/v1/session:end", headers, "", "")->status, 200);
    return true;
  });
  EXPECT_THAT(text, HasSubstr("event: error"));
  EXPECT_THAT(text, HasSubstr("SESSION_ENDED"));
}

}  // namespace
}  // namespace npuc::rpc
