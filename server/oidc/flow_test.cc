#include "server/oidc/flow.h"

#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "server/base/kept_text_test_util.h"
#include "server/jobs/service_error.h"
#include "server/oidc/oidc_test_util.h"

namespace npuc::oidc {
namespace {

using ::testing::HasSubstr;

constexpr char kHost[] = "127.0.0.1:8480";

std::string ReasonOf(const absl::Status& status) {
  const auto details = jobs::ErrorDetailsOf(status);
  return details.has_value() ? details->reason : status.ToString();
}

std::string ParameterOf(const std::string& url, const std::string& name) {
  const size_t at = url.find("&" + name + "=") + name.size() + 2;
  return url.substr(at, url.find('&', at) - at);
}

class FlowTest : public ::testing::Test {
 protected:
  // A node of a cluster: all have one text and one provider.
  std::unique_ptr<SignInFlow> Node() {
    auto node = std::make_unique<SignInFlow>(
        SignInFlow::Options{.page_url = "http://127.0.0.1:8480", .now = [this] { return now_; }},
        &provider_);
    EXPECT_TRUE(node->Attach(&text_).ok());
    return node;
  }
  // The provider's answer to a sign-in.
  SignInFlow::Return AnswerTo(const SignInFlow::Begun& begun) {
    fake_.tokens = {
        {"id_token", fake_.key.Sign(FakeProvider::Claims(ParameterOf(begun.location, "nonce")))}};
    return {.cookie = begun.cookie, .state = ParameterOf(begun.location, "state"), .code = "c"};
  }

  absl::Time now_ = absl::Now();
  base::MemoryText text_;
  FakeProvider fake_;
  Provider provider_{{.settings = FakeProvider::MakeSettings(),
                      .now = [] { return absl::Now(); },
                      .steady_now = [] { return absl::Now(); }},
                     &fake_};
  std::unique_ptr<SignInFlow> flow_ = Node();
};

TEST_F(FlowTest, APersonComesBackToTheLink) {
  const auto begun = flow_->Begin("/#/job/j1?tab=log", kHost);
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_THAT(begun->location,
              HasSubstr("redirect_uri=http%3A%2F%2F127.0.0.1%3A8480%2Fauth%2Fcallback"));
  EXPECT_EQ(SignInFlow::LinkOf(begun->cookie), "/#/job/j1?tab=log");
  const auto person = flow_->End(AnswerTo(*begun));
  ASSERT_TRUE(person.ok()) << person.status();
  EXPECT_EQ(person->subject, "u-17");
  // The verifier that goes to the provider is the one whose hash the browser carried.
  const std::string form = FakeProvider::BodyOf(fake_.requests.at(1));
  const std::string verifier = form.substr(form.find("code_verifier=") + 14);
  const auto url = provider_.AuthorizationUrl({.verifier = verifier}, "x");
  EXPECT_EQ(ParameterOf(*url + "&", "code_challenge"),
            ParameterOf(begun->location, "code_challenge"));
  EXPECT_GE(verifier.size(), 43u);
}

TEST_F(FlowTest, SecretsAreNewEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 3; ++i) {
    const auto begun = flow_->Begin("/", kHost);
    for (const char* name : {"state", "nonce", "code_challenge"}) {
      const std::string value = ParameterOf(begun->location, name);
      EXPECT_EQ(value.size(), 43u);
      EXPECT_TRUE(seen.insert(value).second) << name;
      EXPECT_EQ(begun->cookie.find(value), std::string::npos);
    }
  }
}

TEST_F(FlowTest, AStateCountsOnce) {
  const auto answer = AnswerTo(*flow_->Begin("/", kHost));
  EXPECT_TRUE(flow_->End(answer).ok());
  const absl::Status again = flow_->End(answer).status();
  EXPECT_EQ(ReasonOf(again), "SIGN_IN_UNKNOWN");
  EXPECT_THAT(again.message(), HasSubstr("came back before"));
  EXPECT_EQ(fake_.Count("/token"), 1);
}

TEST_F(FlowTest, AStateIsOneBrowsers) {
  const auto mine = AnswerTo(*flow_->Begin("/", kHost));
  const auto other = AnswerTo(*flow_->Begin("/", kHost));
  const std::vector<std::string> parts = absl::StrSplit(mine.cookie, '.');
  const std::string later =
      absl::StrCat(parts[0], ".", absl::ToUnixSeconds(now_ + absl::Hours(1)), ".", parts[2]);
  const std::string elsewhere = absl::StrCat(parts[0], ".", parts[1], ".",
                                             absl::WebSafeBase64Escape("https://evil.example/"));
  for (const auto& [cookie, state] :
       std::vector<std::pair<std::string, std::string>>{{"", mine.state},
                                                        {mine.cookie, ""},
                                                        {mine.cookie, other.state},
                                                        {other.cookie, mine.state},
                                                        {mine.cookie, mine.state + "x"},
                                                        {later, mine.state},
                                                        {elsewhere, mine.state},
                                                        {mine.cookie + ".", mine.state},
                                                        {std::string(1 << 16, 'x'), mine.state},
                                                        {"..", ""}}) {
    EXPECT_EQ(ReasonOf(flow_->End({.cookie = cookie, .state = state, .code = "c"}).status()),
              "SIGN_IN_UNKNOWN")
        << cookie.substr(0, 80);
  }
  EXPECT_EQ(fake_.Count("/token"), 0) << "nobody makes this server ask the provider";
  EXPECT_TRUE(flow_->End(other).ok());
}

TEST_F(FlowTest, ASignInHasItsTime) {
  const auto answer = AnswerTo(*flow_->Begin("/", kHost));
  now_ += kSignInAge;
  EXPECT_THAT(flow_->End(answer).status().message(), HasSubstr("more than 10 minutes ago"));
}

TEST_F(FlowTest, ManyStatesAreRememberedAndTheOldestGoes) {
  const auto first = AnswerTo(*flow_->Begin("/", kHost));
  const auto refuse = [this](SignInFlow::Return answer) {
    answer.error = "access_denied";
    return ReasonOf(flow_->End(answer).status());
  };
  EXPECT_EQ(refuse(first), "SIGN_IN_REFUSED");
  for (size_t i = 1; i < kMaxUsedStates; ++i) {
    const auto begun = flow_->Begin("/", kHost);
    ASSERT_EQ(refuse({.cookie = begun->cookie, .state = ParameterOf(begun->location, "state")}),
              "SIGN_IN_REFUSED");
  }
  const auto last = AnswerTo(*flow_->Begin("/", kHost));
  EXPECT_EQ(refuse(last), "SIGN_IN_REFUSED");
  EXPECT_EQ(refuse(last), "SIGN_IN_UNKNOWN");
  // Forgotten: the provider, which takes no code twice, is the one that refuses it now.
  EXPECT_EQ(refuse(first), "SIGN_IN_REFUSED");
}

TEST_F(FlowTest, ErrorsOfTheProviderAreShownToItsBrowserAlone) {
  auto answer = AnswerTo(*flow_->Begin("/", kHost));
  answer.code.clear();
  answer.error = "access_denied";
  answer.error_description = "<b>no</b>\x01" + std::string(2000, 'x');
  auto stranger = answer;
  stranger.cookie.clear();
  EXPECT_THAT(flow_->End(stranger).status().message(), testing::Not(HasSubstr("access_denied")));
  const std::string message(flow_->End(answer).status().message());
  EXPECT_THAT(message, HasSubstr("the farm has refused the sign-in: access_denied (<b>no</b>"));
  EXPECT_LT(message.size(), 500u);
  EXPECT_EQ(message.find('\x01'), std::string::npos);
}

TEST_F(FlowTest, LinksLeadNowhereElse) {
  for (const char* good : {"/", "/#/", "/#/job/j1", "/#/jobs?state=FAILED&text=%22a%22"}) {
    EXPECT_TRUE(SignInFlow::IsLink(good)) << good;
  }
  for (const char* wrong :
       {"", "//evil.example", "/\\evil.example", "https://evil.example", "/v1/jobs", "/evil#/",
        "#/", "/#\\x", "/#a b", "/#\r\nX: y", "javascript:alert(1)", "/?x#", "/%23"}) {
    EXPECT_FALSE(SignInFlow::IsLink(wrong)) << wrong;
    EXPECT_EQ(SignInFlow::LinkOf(flow_->Begin(wrong, kHost)->cookie), "/") << wrong;
  }
  EXPECT_FALSE(SignInFlow::IsLink("/#" + std::string(kMaxLinkBytes, 'x')));
}

TEST_F(FlowTest, NodesOfAClusterContinueEachOthersSignIns) {
  const auto there = Node();
  const auto answer = AnswerTo(*flow_->Begin("/#/jobs", kHost));
  EXPECT_TRUE(there->End(answer).ok());
  EXPECT_EQ(there->OpenProblem(flow_->SealProblem("why")), "why");
  // One of another cluster has another key.
  base::MemoryText other_text;
  SignInFlow other({.page_url = "http://127.0.0.1:8480", .now = [this] { return now_; }},
                   &provider_);
  ASSERT_TRUE(other.Attach(&other_text).ok());
  EXPECT_EQ(ReasonOf(other.End(AnswerTo(*flow_->Begin("/", kHost))).status()), "SIGN_IN_UNKNOWN");
  EXPECT_EQ(other.OpenProblem(flow_->SealProblem("why")), "");
  other_text.text = "damaged";
  EXPECT_EQ(other.Attach(&other_text).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(FlowTest, ThePageShowsNoStrangersTexts) {
  const std::string sealed = flow_->SealProblem("a <b>text</b>\xff");
  EXPECT_EQ(flow_->OpenProblem(sealed), "a <b>text</b>\xff");
  for (const std::string& wrong : {std::string(), std::string("."), std::string("eA.x"),
                                   sealed + "x", "x" + sealed, std::string(1 << 16, 'x')}) {
    EXPECT_EQ(flow_->OpenProblem(wrong), "") << wrong.substr(0, 80);
  }
  // Not even a state, which is a MAC by the same key.
  const std::string state = ParameterOf(flow_->Begin("/", kHost)->location, "state");
  EXPECT_EQ(flow_->OpenProblem(absl::StrCat("eA.", state)), "");
  EXPECT_EQ(flow_->OpenProblem(flow_->SealProblem(std::string(5000, 'x'))).size(),
            kMaxProblemBytes);
}

TEST_F(FlowTest, AnotherAddressOfThePageIsSaid) {
  const absl::Status status = flow_->Begin("/", "localhost:8480").status();
  EXPECT_EQ(ReasonOf(status), "WRONG_ADDRESS");
  EXPECT_THAT(status.message(), HasSubstr("at http://127.0.0.1:8480, not at this address"));
  SignInFlow starting({.page_url = "", .now = [this] { return now_; }}, &provider_);
  ASSERT_TRUE(starting.Attach(&text_).ok());
  EXPECT_EQ(ReasonOf(starting.Begin("/", kHost).status()), "SERVER_BUSY");
  starting.SetPageUrl("https://127.0.0.1:8480");
  EXPECT_TRUE(starting.Begin("/", kHost).ok());
}

TEST_F(FlowTest, StrangersCannotFillTheLog) {
  now_ = absl::FromUnixSeconds(1'800'000'000);
  EXPECT_TRUE(flow_->TakesLogLine());
  EXPECT_FALSE(flow_->TakesLogLine());
  now_ += absl::Seconds(1);
  EXPECT_TRUE(flow_->TakesLogLine());
}

TEST_F(FlowTest, AProofIsOfOneProviderAndClaim) {
  const std::string key = flow_->KeyOf("alice@farm.example", "u-17");
  EXPECT_EQ(key, "https://login.farm.example email\nalice@farm.example\nu-17");
  EXPECT_TRUE(flow_->IsOwnKey(key));
  EXPECT_FALSE(flow_->IsOwnKey("https://login.farm.example sub\nalice@farm.example"));
  EXPECT_FALSE(flow_->IsOwnKey("alice@farm.example"));
}

}  // namespace
}  // namespace npuc::oidc
