#include "server/oidc/id_token.h"

#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "server/oidc/json_document.h"
#include "server/oidc/oidc_test_util.h"

namespace npuc::oidc {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

json Good() {
  return {{"iss", "https://login"}, {"aud", "npuc"},     {"sub", "u-17"},
          {"nonce", "n"},           {"iat", 1799999990}, {"exp", 1800000300}};
}

absl::StatusOr<JsonNode> Check(const json& claims) {
  return CheckClaims(claims.dump(), {.issuer = "https://login", .client_id = "npuc", .nonce = "n"},
                     kNow);
}

TEST(IdTokenTest, ARightOneIsRead) {
  const auto claims = Check(Good());
  ASSERT_TRUE(claims.ok()) << claims.status();
  EXPECT_EQ(TextIn(*claims, "sub"), "u-17");
  json more = Good();
  more["aud"] = {"other", "npuc"};
  more["azp"] = "npuc";
  more["nbf"] = 1'800'000'030;  // within the skew
  more["exp"] = 1'799'999'950.5;
  EXPECT_TRUE(Check(more).ok()) << Check(more).status();
}

TEST(IdTokenTest, EachWrongClaimIsNamed) {
  const struct {
    const char* name;
    json value;  // null: it is left out
  } wrong[] = {
      {"iss", "https://login/"},
      {"iss", nullptr},
      {"aud", "another"},
      {"aud", json::array()},
      {"aud", {"npuc", "other"}},  // without azp
      {"aud", nullptr},
      {"azp", "another"},
      {"azp", 7},
      {"exp", 1799999940},
      {"exp", "1900000000"},
      {"exp", nullptr},
      {"exp", 1e300},
      {"exp", -1},
      {"iat", 1800000061},
      {"iat", nullptr},
      {"nbf", 1800000061},
      {"nbf", "soon"},
      {"nonce", "m"},
      {"nonce", nullptr},
      {"nonce", {"n"}},
      {"sub", ""},
      {"sub", std::string(256, 'x')},
      {"sub", nullptr},
      {"sub", 17},
  };
  for (const auto& [name, value] : wrong) {
    json claims = Good();
    claims.erase(name);
    if (!value.is_null()) claims[name] = value;
    const absl::Status status = Check(claims).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name << " " << value;
    // One document with several faults names the first.
    EXPECT_THAT(status.message(), HasSubstr(std::string("the ID token's ") + name))
        << name << " " << value;
  }
}

TEST(IdTokenTest, PayloadsThatAreNone) {
  const Expected expected{.issuer = "https://login", .client_id = "npuc", .nonce = "n"};
  std::string twice = Good().dump();
  twice.insert(1, R"("sub":"another",)");
  for (const std::string& wrong :
       {std::string(), std::string("[]"), std::string("7"), twice, std::string("{\"a\":\xff}"),
        std::string(kMaxDocumentBytes + 1, ' ')}) {
    EXPECT_EQ(CheckClaims(wrong, expected, kNow).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong.substr(0, 80);
  }
  // A sign-in without a nonce takes no token.
  json no_nonce = Good();
  no_nonce["nonce"] = "";
  EXPECT_FALSE(CheckClaims(no_nonce.dump(),
                           {.issuer = "https://login", .client_id = "npuc", .nonce = ""}, kNow)
                   .ok());
}

}  // namespace
}  // namespace npuc::oidc
