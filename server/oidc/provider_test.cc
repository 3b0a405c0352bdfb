#include "server/oidc/provider.h"

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "server/jobs/service_error.h"
#include "server/oidc/oidc_test_util.h"

namespace npuc::oidc {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRedirect[] = "https://npuc.farm.example/auth/callback";

std::string ReasonOf(const absl::Status& status) {
  const auto details = jobs::ErrorDetailsOf(status);
  return details.has_value() ? details->reason : status.ToString();
}

class ProviderTest : public ::testing::Test {
 protected:
  explicit ProviderTest(Settings settings = FakeProvider::MakeSettings())
      : provider_({.settings = std::move(settings),
                   .now = [] { return absl::Now(); },
                   .steady_now = [this] { return steady_; }},
                  &fake_) {
    fake_.tokens = {{"id_token", fake_.key.Sign(FakeProvider::Claims("n"))},
                    {"access_token", "access"},
                    {"token_type", "Bearer"}};
  }
  void SetClaims(const json& claims) { fake_.tokens["id_token"] = fake_.key.Sign(claims); }
  absl::StatusOr<Person> Redeem(const std::optional<std::string>& issuer = std::nullopt) {
    return provider_.Redeem("c/o", {.state = "s", .nonce = "n", .verifier = "v"}, kRedirect,
                            issuer);
  }
  absl::StatusOr<std::string> Url() {
    return provider_.AuthorizationUrl({.state = "s", .nonce = "n", .verifier = "v"}, kRedirect);
  }

  absl::Time steady_ = absl::UnixEpoch() + absl::Hours(5);
  FakeProvider fake_;
  Provider provider_;
};

TEST_F(ProviderTest, TheBrowserIsSentWithStateNonceAndChallenge) {
  const auto url = Url();
  ASSERT_TRUE(url.ok()) << url.status();
  // The challenge is what `printf v | openssl dgst -sha256 -binary | base64` prints, for URLs.
  EXPECT_EQ(
      *url,
      "https://login.farm.example/auth?response_type=code&client_id=npuc&redirect_uri="
      "https%3A%2F%2Fnpuc.farm.example%2Fauth%2Fcallback&scope=openid%20email&state=s&nonce=n"
      "&code_challenge=TJRIXgwhrmxBzh3-e2v6zupato5AokdvUCCOUm9QYIA&code_challenge_method=S256");
  EXPECT_TRUE(Url().ok());
  EXPECT_EQ(fake_.requests.size(), 1u) << "its addresses are kept";
  steady_ += kDocumentAge;
  EXPECT_TRUE(Url().ok());
  EXPECT_EQ(fake_.requests.size(), 2u) << "for an hour";
  fake_.discovery["authorization_endpoint"] = "https://login.farm.example/auth?tenant=7";
  steady_ += kDocumentAge;
  EXPECT_THAT(*Url(), HasSubstr("/auth?tenant=7&response_type=code"));
}

TEST_F(ProviderTest, ACodeBecomesAPerson) {
  const auto person = Redeem();
  ASSERT_TRUE(person.ok()) << person.status();
  EXPECT_EQ(person->subject, "u-17");
  EXPECT_THAT(person->values, ElementsAre("alice@farm.example"));
  const http_client::Request& request = fake_.requests.at(1);
  EXPECT_EQ(FakeProvider::BodyOf(request),
            "grant_type=authorization_code&code=c%2Fo&redirect_uri=https%3A%2F%2Fnpuc.farm.example"
            "%2Fauth%2Fcallback&code_verifier=v");
  // "npuc:se%3Acret": RFC 6749, section 2.3.1, encodes both before they are joined.
  EXPECT_THAT(request.headers,
              testing::Contains(testing::Pair("Authorization", "Basic bnB1YzpzZSUzQWNyZXQ=")));
  EXPECT_EQ(fake_.Count("/me"), 0) << "the token has the claim";
}

TEST_F(ProviderTest, TheSecretGoesIntoTheFormWhereTheProviderWantsThat) {
  fake_.discovery["token_endpoint_auth_methods_supported"] = {"client_secret_post"};
  ASSERT_TRUE(Redeem().ok());
  EXPECT_THAT(FakeProvider::BodyOf(fake_.requests.at(1)),
              HasSubstr("&client_id=npuc&client_secret=se%3Acret"));
  EXPECT_THAT(fake_.requests.at(1).headers, Not(testing::Contains(testing::Key("Authorization"))));
}

TEST_F(ProviderTest, AClaimThatTheTokenLacksComesFromTheUserInfo) {
  json claims = FakeProvider::Claims("n");
  claims.erase("email");
  claims.erase("email_verified");
  SetClaims(claims);
  EXPECT_THAT(Redeem().status().message(), HasSubstr("says nothing of the claim 'email'"));
  fake_.discovery["userinfo_endpoint"] = "https://login.farm.example/me";
  steady_ += kDocumentAge;
  fake_.user_info = {{"sub", "u-17"}, {"email", "bob@farm.example"}, {"email_verified", true}};
  const auto person = Redeem();
  ASSERT_TRUE(person.ok()) << person.status();
  EXPECT_THAT(person->values, ElementsAre("bob@farm.example"));
  EXPECT_THAT(fake_.requests.back().headers,
              testing::Contains(testing::Pair("Authorization", "Bearer access")));
  fake_.user_info["sub"] = "u-18";
  EXPECT_THAT(Redeem().status().message(), HasSubstr("another person's"));
  // An access token that would end the header.
  fake_.tokens["access_token"] = "a\r\nX: y";
  EXPECT_EQ(ReasonOf(Redeem().status()), "PROVIDER_UNAVAILABLE");
}

TEST_F(ProviderTest, AnAddressCountsWhereTheProviderHasVerifiedIt) {
  for (const json& verified : {json(false), json("false"), json(nullptr), json(1)}) {
    json claims = FakeProvider::Claims("n");
    claims["email_verified"] = verified;
    SetClaims(claims);
    EXPECT_THAT(Redeem().status().message(), HasSubstr("email_verified")) << verified;
  }
  json claims = FakeProvider::Claims("n");
  claims["email_verified"] = "true";  // as some providers write it
  SetClaims(claims);
  EXPECT_TRUE(Redeem().ok());
}

TEST_F(ProviderTest, TokensThatDoNotStandForThisSignInAreRefused) {
  const SigningKey stranger("RS256", "first");
  json other_nonce = FakeProvider::Claims("another");
  json other_client = FakeProvider::Claims("n");
  other_client["aud"] = "another";
  json over = FakeProvider::Claims("n");
  over["exp"] = absl::ToUnixSeconds(absl::Now()) - 100;
  const std::string unsigned_token = "eyJhbGciOiJub25lIn0.e30.";
  for (const std::string& token :
       {stranger.Sign(FakeProvider::Claims("n")), fake_.key.Sign(other_nonce),
        fake_.key.Sign(other_client), fake_.key.Sign(over), unsigned_token, std::string("x"),
        std::string(kMaxTokenBytes + 1, 'x')}) {
    fake_.tokens["id_token"] = token;
    EXPECT_EQ(ReasonOf(Redeem().status()), "SIGN_IN_REFUSED") << token.substr(0, 60);
  }
}

TEST_F(ProviderTest, TheAnswerNamesItsProvider) {
  EXPECT_TRUE(Redeem().ok());
  EXPECT_TRUE(Redeem(FakeProvider::kIssuer).ok());
  EXPECT_EQ(ReasonOf(Redeem("https://evil").status()), "SIGN_IN_REFUSED");
  fake_.discovery["authorization_response_iss_parameter_supported"] = true;
  steady_ += kDocumentAge;
  EXPECT_EQ(ReasonOf(Redeem().status()), "SIGN_IN_REFUSED") << "RFC 9207, section 2.4";
  EXPECT_TRUE(Redeem(FakeProvider::kIssuer).ok());
}

TEST_F(ProviderTest, ANewKeyIsFoundAndUnknownOnesAskSeldom) {
  ASSERT_TRUE(Redeem().ok());
  const SigningKey second("ES256", "second"), none("RS256", "none");
  fake_.keys = {{"keys", {second.Public()}}};
  fake_.tokens["id_token"] = second.Sign(FakeProvider::Claims("n"));
  // Read a moment ago.
  EXPECT_EQ(ReasonOf(Redeem().status()), "SIGN_IN_REFUSED");
  EXPECT_EQ(fake_.Count("/keys"), 1);
  steady_ += kBetweenKeyReads;
  EXPECT_TRUE(Redeem().ok());
  EXPECT_EQ(fake_.Count("/keys"), 2);
  fake_.tokens["id_token"] = none.Sign(FakeProvider::Claims("n"));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Redeem().ok());
  EXPECT_EQ(fake_.Count("/keys"), 2);
  steady_ += kBetweenKeyReads;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Redeem().ok());
  EXPECT_EQ(fake_.Count("/keys"), 3);
  // A key that the provider withdrew is out within the hour.
  fake_.tokens["id_token"] = second.Sign(FakeProvider::Claims("n"));
  fake_.keys = {{"keys", {none.Public()}}};
  EXPECT_TRUE(Redeem().ok());
  steady_ += kDocumentAge;
  EXPECT_FALSE(Redeem().ok());
}

TEST_F(ProviderTest, DocumentsThatAreNoGoodAreTheProvidersFault) {
  const json good = fake_.discovery;
  for (const auto& [name, value] : std::vector<std::pair<std::string, json>>{
           {"issuer", "https://login.farm.example/"},
           {"issuer", nullptr},
           {"token_endpoint", "http://login.farm.example/token"},
           {"authorization_endpoint", "javascript:alert(1)"},
           {"jwks_uri", nullptr},
           {"userinfo_endpoint", "file:///etc/passwd"}}) {
    fake_.discovery = good;
    fake_.discovery[name] = value;
    EXPECT_EQ(ReasonOf(Url().status()), "PROVIDER_UNAVAILABLE") << name << " " << value;
  }
  fake_.discovery = good;
  fake_.statuses["/openid-configuration"] = 404;
  EXPECT_THAT(Url().status().message(), HasSubstr("HTTP status 404"));
  fake_.statuses.clear();
  fake_.keys = json::object();
  EXPECT_EQ(ReasonOf(Redeem().status()), "PROVIDER_UNAVAILABLE");
  fake_.tokens = {{"access_token", "x"}};
  EXPECT_THAT(Redeem().status().message(), HasSubstr("no id_token"));
}

TEST_F(ProviderTest, RefusalsOfTheTokenEndpoint) {
  fake_.tokens = {{"error", "invalid_grant"}, {"error_description", "used <b>before</b>\n"}};
  fake_.statuses["/token"] = 400;
  const absl::Status used = Redeem().status();
  EXPECT_EQ(ReasonOf(used), "SIGN_IN_REFUSED");
  EXPECT_THAT(used.message(), HasSubstr("invalid_grant (used <b>before</b>"));
  EXPECT_THAT(used.message(), Not(HasSubstr("\n")));
  fake_.tokens = {{"error", "invalid_client"}};
  fake_.statuses["/token"] = 401;
  const absl::Status client = Redeem().status();
  EXPECT_EQ(ReasonOf(client), "PROVIDER_UNAVAILABLE") << "an operator mends it";
  EXPECT_THAT(client.message(), HasSubstr("invalid_client"));
  EXPECT_THAT(client.message(), Not(HasSubstr("cret")));
}

TEST_F(ProviderTest, AProviderThatIsAbsentOrSlowIsReportedInTime) {
  fake_.error = absl::UnavailableError("connection refused");
  const absl::Status absent = Url().status();
  EXPECT_EQ(ReasonOf(absent), "PROVIDER_UNAVAILABLE");
  EXPECT_THAT(absent.message(), HasSubstr("connection refused"));
  fake_.error = absl::OkStatus();
  // Each request takes seconds: all together have one deadline.
  fake_.before_answer = [this] { steady_ += absl::Seconds(6); };
  const absl::Status slow = Redeem().status();
  EXPECT_EQ(ReasonOf(slow), "PROVIDER_UNAVAILABLE");
  EXPECT_THAT(slow.message(), HasSubstr("no answer in time"));
  EXPECT_EQ(fake_.requests.size(), 3u);
  EXPECT_EQ(fake_.requests[1].limits.whole, kSignInDeadline);
  EXPECT_EQ(fake_.requests[2].limits.whole, kSignInDeadline - absl::Seconds(6));
}

// A provider that hangs holds so many threads of the HTTP port and no more.
TEST_F(ProviderTest, AFewWaitAndOthersAreToldAtOnce) {
  std::atomic<int> waiting = 0;
  std::atomic<bool> go = false;
  fake_.before_answer = [&] {
    ++waiting;
    go.wait(false);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kMaxWaiting; ++i) {
    threads.emplace_back([this] { EXPECT_TRUE(Url().ok()); });
  }
  while (waiting < kMaxWaiting) std::this_thread::yield();
  EXPECT_EQ(ReasonOf(Url().status()), "SERVER_BUSY");
  EXPECT_EQ(ReasonOf(Redeem().status()), "SERVER_BUSY");
  go = true;
  go.notify_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Redeem().ok()) << "places are given back";
}

class GroupsTest : public ProviderTest {
 protected:
  GroupsTest()
      : ProviderTest([] {
          Settings settings = FakeProvider::MakeSettings();
          settings.claim = "groups";
          settings.client_secret.clear();
          return settings;
        }()) {}
};

TEST_F(GroupsTest, AClaimMayHaveSeveralValues) {
  json claims = FakeProvider::Claims("n");
  claims["groups"] = {"audio", 7, "", "a\nb", std::string(kMaxClaimValueBytes + 1, 'x'), "vision"};
  SetClaims(claims);
  EXPECT_THAT(Redeem()->values, ElementsAre("audio", "vision"));
  EXPECT_THAT(FakeProvider::BodyOf(fake_.requests.at(1)), HasSubstr("&client_id=npuc"))
      << "a public client";
  EXPECT_THAT(fake_.requests.at(1).headers, Not(testing::Contains(testing::Key("Authorization"))));
  json many = json::array();
  for (size_t i = 0; i <= kMaxClaimValues; ++i) many.push_back(absl::StrCat("group", i));
  claims["groups"] = many;
  SetClaims(claims);
  EXPECT_THAT(Redeem().status().message(), HasSubstr("at most 512"));
}

}  // namespace
}  // namespace npuc::oidc
