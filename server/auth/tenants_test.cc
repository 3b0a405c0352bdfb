#include "server/auth/tenants.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kToken[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
constexpr char kOtherToken[] = "another-0123456789abcdefghijklmnopqrstuvwxyz";

std::string TwoTenants() {
  return absl::StrCat(R"(format: 1
tenants:
  audio:
    weight: 4
    quota: {queued_jobs: 10, running_jobs: 2, job_bytes: 64MiB, stored_bytes: 2GiB,
            result_bytes: 1GiB, upload_rate: 64KiB, call_rate: 50}
    shared_cache: true
    identities:
      ci:
        token_sha256: [)",
                      Sha256Hex(kToken), R"(]
        certificate: ['spiffe://farm/audio-ci']
        rights: [submit, read]
        expires: 2027-01-31
  vision:
    identities:
      boss:
        token_sha256: )",
                      Sha256Hex(kOtherToken), R"(
        rights: [admin]
)");
}

absl::Time At(const char* text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << error;
  return time;
}

TenantDirectory Directory(const std::string& text) {
  Diagnostics diagnostics;
  auto directory = TenantDirectory::Parse(text, "tenants.yaml", diagnostics);
  EXPECT_TRUE(directory.ok()) << directory.status();
  return *std::move(directory);
}

std::vector<std::string> Problems(const std::string& text) {
  Diagnostics diagnostics;
  const auto directory = TenantDirectory::Parse(text, "t.yaml", diagnostics);
  EXPECT_EQ(directory.ok(), diagnostics.list().empty());
  std::vector<std::string> problems;
  for (const Diagnostic& diagnostic : diagnostics.list()) problems.push_back(diagnostic.ToString());
  return problems;
}

std::string ReasonOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  return jobs::ErrorDetailsOf(status)->reason;
}

TEST(Tenants, AKeyInThePlaceOfTheFileIsNotRepeated) {
  const std::vector<std::string> problems =
      Problems("-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n");
  ASSERT_FALSE(problems.empty());
  for (const std::string& problem : problems) {
    EXPECT_THAT(problem, testing::Not(HasSubstr("MIGH"))) << problem;
  }
}

TEST(Tenants, ReadsWeightsAndQuotas) {
  const TenantDirectory directory = Directory(TwoTenants());
  const Tenant* audio = directory.Find("audio");
  ASSERT_NE(audio, nullptr);
  EXPECT_EQ(audio->weight, 4);
  EXPECT_EQ(audio->quota.queued_jobs, 10);
  EXPECT_EQ(audio->quota.running_jobs, 2);
  EXPECT_EQ(audio->quota.job_bytes, 64 << 20);
  EXPECT_EQ(audio->quota.stored_bytes, int64_t{2} << 30);
  EXPECT_EQ(audio->quota.result_bytes, 1 << 30);
  EXPECT_EQ(audio->quota.upload_rate, 64 << 10);
  EXPECT_EQ(audio->quota.call_rate, 50);
  EXPECT_TRUE(audio->shared_cache);
  const Tenant* vision = directory.Find("vision");
  ASSERT_NE(vision, nullptr);
  EXPECT_EQ(vision->weight, 1);
  EXPECT_EQ(vision->quota.queued_jobs, std::nullopt);
  EXPECT_EQ(vision->quota.stored_bytes, std::nullopt);
  EXPECT_FALSE(vision->shared_cache);
  EXPECT_EQ(directory.Find("nobody"), nullptr);
}

TEST(Tenants, TokensAndCertificatesNameTheirIdentity) {
  const TenantDirectory directory = Directory(TwoTenants());
  const absl::Time now = At("2026-11-20T12:00:00Z");
  const auto by_token = directory.Authenticate({kToken, {}}, now);
  ASSERT_TRUE(by_token.ok()) << by_token.status();
  EXPECT_EQ(by_token->identity, "ci");
  EXPECT_EQ(by_token->tenant, "audio");
  EXPECT_TRUE(by_token->rights.Has(Right::kSubmit));
  EXPECT_FALSE(by_token->rights.Has(Right::kCancel));
  const auto by_certificate =
      directory.Authenticate({"", {"unknown.example", "spiffe://farm/audio-ci"}}, now);
  ASSERT_TRUE(by_certificate.ok()) << by_certificate.status();
  EXPECT_EQ(by_certificate->identity, "ci");
}

constexpr char kClaims[] = R"(format: 1
tenants:
  audio:
    identities:
      alice: {oidc: alice@farm.example, rights: [submit]}
      team: {oidc: [audio, audio-guests], rights: [read]}
)";

TEST(Tenants, ValuesOfAClaimNameTheirIdentity) {
  const TenantDirectory directory = Directory(kClaims);
  const absl::Time now = At("2026-11-20T12:00:00Z");
  EXPECT_EQ(*directory.FindClaimValue("groups", {"staff", "audio", "audio-guests"}),
            "audio-guests");
  for (const char* key : {"https://login email\nalice@farm.example\nu-17",
                          "https://login email\nalice@farm.example"}) {
    Credentials credentials;
    credentials.session = SignIn{SignIn::Way::kProvider, key};
    const auto caller = directory.Authenticate(credentials, now);
    ASSERT_TRUE(caller.ok()) << caller.status();
    EXPECT_EQ(caller->identity, "alice");
    EXPECT_EQ(caller->sign_in, *credentials.session);
    // Its text is no certificate's name.
    credentials.session->way = SignIn::Way::kCertificate;
    EXPECT_FALSE(directory.Authenticate(credentials, now).ok());
  }
  for (const char* key : {"alice@farm.example", "https://login email\n", "\n\nalice@farm.example",
                          "https://login email\nalice", ""}) {
    Credentials credentials;
    credentials.session = SignIn{SignIn::Way::kProvider, key};
    EXPECT_FALSE(directory.Authenticate(credentials, now).ok()) << key;
  }
}

TEST(Tenants, AnUnknownPersonIsToldWhatAnOperatorAdds) {
  const TenantDirectory directory = Directory(kClaims);
  const absl::Status unknown = directory.FindClaimValue("email", {"eve@farm.example"}).status();
  EXPECT_EQ(ReasonOf(unknown), "UNKNOWN_IDENTITY");
  EXPECT_EQ(unknown.message(),
            "the provider knows you, this server does not: the claim 'email' is "
            "'eve@farm.example'; an operator adds oidc: 'eve@farm.example' to an identity of the "
            "tenants file");
  const absl::Status many =
      directory.FindClaimValue("groups", {"a", "b", "c", "d", "e", "f"}).status();
  EXPECT_THAT(many.message(), HasSubstr("'a', 'b', 'c', 'd', 'e', ...;"));
  const absl::Status two =
      directory.FindClaimValue("groups", {"audio", "alice@farm.example"}).status();
  EXPECT_EQ(ReasonOf(two), "AMBIGUOUS_IDENTITY");
  EXPECT_THAT(two.message(), HasSubstr("'audio' and 'alice@farm.example'"));
}

TEST(Tenants, OneValueOfAClaimIsOneIdentitys) {
  EXPECT_THAT(Problems("format: 1\ntenants: {a: {identities: {b: {rights: read, oidc: x}, c: "
                       "{rights: read, oidc: [y, x, '']}}}}"),
              ElementsAre(HasSubstr("tenants.a.identities.c.oidc: 'x' stands in the file twice"),
                          HasSubstr("oidc: a name has 1 to 1024 characters, not 0")));
}

TEST(Tenants, RefusesWhomItDoesNotKnow) {
  const TenantDirectory directory = Directory(TwoTenants());
  const absl::Time now = At("2026-11-20T12:00:00Z");
  EXPECT_EQ(ReasonOf(directory.Authenticate({}, now).status()), "NO_IDENTITY");
  EXPECT_EQ(ReasonOf(directory.Authenticate({std::string(40, 'x'), {}}, now).status()),
            "UNKNOWN_IDENTITY");
  EXPECT_EQ(ReasonOf(directory.Authenticate({"short", {}}, now).status()), "UNKNOWN_IDENTITY");
  EXPECT_EQ(ReasonOf(directory.Authenticate({std::string(1 << 20, 'x'), {}}, now).status()),
            "UNKNOWN_IDENTITY");
  EXPECT_EQ(ReasonOf(directory.Authenticate({"", {"spiffe://else"}}, now).status()),
            "UNKNOWN_IDENTITY");
  // A wrong token is not helped by the right certificate.
  EXPECT_EQ(
      ReasonOf(
          directory.Authenticate({std::string(40, 'x'), {"spiffe://farm/audio-ci"}}, now).status()),
      "UNKNOWN_IDENTITY");
}

TEST(Tenants, AnIdentityEndsOnItsDay) {
  const TenantDirectory directory = Directory(TwoTenants());
  EXPECT_TRUE(directory.Authenticate({kToken, {}}, At("2027-01-30T23:59:59Z")).ok());
  EXPECT_EQ(ReasonOf(directory.Authenticate({kToken, {}}, At("2027-01-31T00:00:00Z")).status()),
            "IDENTITY_EXPIRED");
  EXPECT_TRUE(directory.Authenticate({kOtherToken, {}}, At("2099-01-01T00:00:00Z")).ok());
}

TEST(Caller, RightsAreDeniedByDefault) {
  Caller caller{"ci", "audio", {}};
  for (const Right right : kAllRights) {
    const absl::Status status = caller.Require(right);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(jobs::ErrorDetailsOf(status)->reason, "RIGHT_MISSING");
    EXPECT_EQ(jobs::ErrorDetailsOf(status)->metadata.at("right"), std::string(RightName(right)));
  }
  caller.rights.Add(Right::kRead);
  EXPECT_TRUE(caller.Require(Right::kRead).ok());
  EXPECT_FALSE(caller.Require(Right::kCancel).ok());
  EXPECT_TRUE(caller.Sees("audio"));
  EXPECT_FALSE(caller.Sees("vision"));
}

TEST(Caller, AnAdminReadsAndCancelsEverywhereButSubmitsNot) {
  Caller caller{"boss", "vision", {}};
  caller.rights.Add(Right::kAdmin);
  EXPECT_TRUE(caller.Require(Right::kRead).ok());
  EXPECT_TRUE(caller.Require(Right::kCancel).ok());
  EXPECT_FALSE(caller.Require(Right::kSubmit).ok());
  EXPECT_TRUE(caller.Sees("audio"));
}

TEST(Tenants, TellsAllProblemsOfAFileWithTheirPlaces) {
  EXPECT_THAT(
      Problems(R"(format: 2
tennants: {}
tenants:
  Audio: {}
  audio:
    weight: 0
    quota: {queued_job: 5, job_bytes: 1TiB}
    identities:
      ci:
        rights: [submit, reed]
        expires: tomorrow
      token:
        token_sha256: secret
        rights: []
)"),
      ElementsAre(
          "t.yaml:2:1: the file has an unknown key 'tennants'; did you mean tenants? [NPUC1003]",
          "t.yaml:1:9: format is '2', not a number from 1 to 1; write a whole number [NPUC1007]",
          HasSubstr("t.yaml:4:3: 'Audio' is no name of a tenant; use 1 to 63 of a-z"),
          HasSubstr("t.yaml:6:13: tenants.audio.weight is '0', not a number from 1 to 1000"),
          HasSubstr(
              "t.yaml:7:13: tenants.audio.quota has an unknown key 'queued_job'; did you mean "
              "queued_jobs?"),
          HasSubstr("t.yaml:7:39: tenants.audio.quota.job_bytes is '1TiB', not a number of bytes"),
          HasSubstr("t.yaml:10:26: tenants.audio.identities.ci.rights: 'reed' is no right; did you "
                    "mean read?"),
          HasSubstr("t.yaml:11:18: tenants.audio.identities.ci.expires is 'tomorrow', not a date"),
          HasSubstr("t.yaml:9:7: tenants.audio.identities.ci has none of token_sha256,"),
          HasSubstr("t.yaml:14:17: tenants.audio.identities.token.rights is"),
          HasSubstr("t.yaml:13:23: tenants.audio.identities.token.token_sha256: a text of 6 "
                    "characters is no SHA-256")));
}

TEST(Tenants, NoTokenIsShownInAMessage) {
  for (const std::string& problem : Problems("format: 1\ntenants: {a: {identities: {b: {rights: "
                                             "read, token_sha256: my-secret-token}}}}")) {
    EXPECT_THAT(problem, Not(HasSubstr("my-secret-token")));
  }
}

TEST(Tenants, OneTokenIsOneIdentitys) {
  const std::string hash = Sha256Hex(kToken);
  EXPECT_THAT(Problems(absl::StrCat("format: 1\ntenants: {a: {identities: {b: {rights: read, "
                                    "token_sha256: ",
                                    hash, "}, c: {rights: read, token_sha256: ", hash, "}}}}")),
              ElementsAre(HasSubstr("the token stands in the file twice")));
}

TEST(Tenants, MalformedFilesAreRefused) {
  for (const char* text :
       {"", "just text", "[1, 2]", "format: 1", "format: 1\ntenants:", "format: 1\ntenants: []",
        "format: 1\ntenants: {a: 5}", "tenants: {a: {}}",
        "format: 1\ntenants: {a: {identities: []}}", "a: &x 1\nb: *x",
        "format: 1\ntenants: {a: {identities: {b: {rights: {}}}}}"}) {
    EXPECT_THAT(Problems(text), Not(IsEmpty())) << text;
  }
}

}  // namespace
}  // namespace npuc::auth
