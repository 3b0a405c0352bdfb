#include "server/oidc/key_set.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/oidc/json_document.h"
#include "server/oidc/oidc_test_util.h"

namespace npuc::oidc {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// RFC 7515, appendices A.2 and A.3.
constexpr char kRfcRsaKey[] =
    R"({"keys":[{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}]})";
constexpr char kRfcRsaToken[] =
    "eyJhbGciOiJSUzI1NiJ9."
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5j"
    "ujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L0"
    "7Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUip"
    "UTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
constexpr char kRfcEcKey[] =
    R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})";
constexpr char kRfcEcToken[] =
    "eyJhbGciOiJFUzI1NiJ9."
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
constexpr char kRfcPayload[] =
    "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";

absl::Status ErrorOf(const KeySet& keys, absl::string_view token) {
  return keys.Verify(token).status();
}

// `header`.`payload`.`signature`, none of which is checked.
std::string Token(const std::string& header, absl::string_view signature = "c2ln") {
  return absl::StrCat(absl::WebSafeBase64Escape(header), ".", absl::WebSafeBase64Escape("{}"), ".",
                      signature);
}

TEST(KeySetTest, VerifiesTheExamplesOfRfc7515) {
  for (const auto& [document, token] :
       {std::pair(kRfcRsaKey, kRfcRsaToken), std::pair(kRfcEcKey, kRfcEcToken)}) {
    const auto keys = KeySet::Parse(document);
    ASSERT_TRUE(keys.ok()) << keys.status();
    const auto payload = keys->Verify(token);
    ASSERT_TRUE(payload.ok()) << payload.status();
    EXPECT_EQ(*payload, kRfcPayload);
    // Any bit of payload or signature.
    const std::string good = token;
    for (const size_t at : {good.find('.') + 5, good.rfind('.') + 7}) {
      std::string wrong = good;
      wrong[at] = wrong[at] == 'A' ? 'B' : 'A';
      EXPECT_THAT(ErrorOf(*keys, wrong).message(), HasSubstr("not the provider's")) << at;
    }
  }
}

TEST(KeySetTest, SignaturesByOtherKeysAndAlgorithmsAreRefused) {
  const SigningKey rsa("RS256", "r"), ec("ES256", "e"), other("RS256", "r"), stranger("RS256", "s");
  const auto keys = KeySet::Parse(json{{"keys", {rsa.Public(), ec.Public()}}}.dump());
  ASSERT_TRUE(keys.ok()) << keys.status();
  const json payload = {{"sub", "x"}};
  EXPECT_EQ(*keys->Verify(rsa.Sign(payload)), payload.dump());
  EXPECT_EQ(*keys->Verify(ec.Sign(payload)), payload.dump());
  EXPECT_THAT(ErrorOf(*keys, other.Sign(payload)).message(), HasSubstr("not the provider's"));
  EXPECT_EQ(ErrorOf(*keys, stranger.Sign(payload)).code(), absl::StatusCode::kNotFound);
  // The algorithm is the key's, not what the token wishes.
  for (const char* algorithm : {"none", "None", "HS256", "HS512", "RS512", "PS256", "ES384", ""}) {
    const absl::Status status =
        ErrorOf(*keys, Token(absl::StrCat(R"({"kid":"r","alg":")", algorithm, R"("})")));
    EXPECT_THAT(status.message(), HasSubstr("RS256 and ES256 are taken")) << algorithm;
  }
  EXPECT_EQ(ErrorOf(*keys, Token(R"({"kid":"e","alg":"RS256"})")).code(),
            absl::StatusCode::kNotFound);
}

TEST(KeySetTest, TokensThatAreNone) {
  const auto keys = KeySet::Parse(kRfcRsaKey);
  const std::string unsigned_token = Token(R"({"alg":"none"})", "");
  EXPECT_THAT(ErrorOf(*keys, unsigned_token).message(), HasSubstr("not signed"));
  const std::string good = kRfcRsaToken;
  for (const std::string& wrong :
       {std::string(), std::string("a"), std::string("a.b"), std::string("a.b.c.d"),
        std::string(".."), good + "=", good + ".x", good + "\n", " " + good,
        good + std::string(kMaxTokenBytes, 'A'), Token("{}"), Token("no JSON"), Token("[]"),
        Token(R"({"alg":"RS256","alg":"none"})"), Token(R"({"alg":"RS256","crit":["x"]})"),
        Token(R"({"alg":"RS256","b64":false})"), Token(std::string(4096, ' '))}) {
    EXPECT_EQ(ErrorOf(*keys, wrong).code(), absl::StatusCode::kInvalidArgument)
        << wrong.substr(0, 80);
  }
}

TEST(KeySetTest, AKeyOfAnotherKindOrUseIsNone) {
  const SigningKey rsa("RS256", "r"), ec("ES256", "e"), weak("RS256", "w", 1024);
  json encrypts = rsa.Public(), other_algorithm = rsa.Public(), other_curve = ec.Public();
  encrypts["use"] = "enc";
  other_algorithm["alg"] = "RS512";
  other_curve["crv"] = "P-384";
  json off_curve = ec.Public();
  off_curve["y"] = off_curve["x"];
  const json secret = {{"kty", "oct"}, {"k", "c2VjcmV0"}, {"kid", "r"}, {"alg", "HS256"}};
  json strange = rsa.Public();
  strange["n"] = "\"},{\"";
  for (const json& key : {encrypts, other_algorithm, other_curve, off_curve, secret, strange,
                          weak.Public(), json{{"kty", "RSA"}}, json::object(), json("x")}) {
    EXPECT_FALSE(KeySet::Parse(json{{"keys", {key}}}.dump()).ok()) << key;
    // Beside it a good one is found.
    EXPECT_EQ(KeySet::Parse(json{{"keys", {key, rsa.Public()}}}.dump())->size(), 1u) << key;
  }
}

TEST(KeySetTest, DocumentsThatAreNone) {
  json many = json::array();
  for (size_t i = 0; i <= kMaxKeys; ++i) many.push_back(json::object());
  std::string deep = "{\"keys\":";
  for (int i = 0; i < 100; ++i) deep += "[";
  for (const std::string& wrong :
       {std::string(), std::string("{}"), std::string("[]"), std::string("{\"keys\":{}}"),
        std::string("{\"keys\":[]}"), json{{"keys", many}}.dump(), deep,
        std::string("{\"keys\":[],\"keys\":[]}"),
        absl::StrCat("{\"keys\":[\"", std::string(kMaxDocumentBytes, 'x'), "\"]}")}) {
    EXPECT_EQ(KeySet::Parse(wrong).status().code(), absl::StatusCode::kInvalidArgument)
        << wrong.substr(0, 80);
  }
}

TEST(KeySetTest, WithoutAKeyIdThereMustBeOneKey) {
  const SigningKey one("RS256", ""), two("RS256", "two");
  const json payload = {{"sub", "x"}};
  EXPECT_TRUE(KeySet::Parse(json{{"keys", {one.Public()}}}.dump())->Verify(one.Sign(payload)).ok());
  const auto both = KeySet::Parse(json{{"keys", {one.Public(), two.Public()}}}.dump());
  EXPECT_EQ(ErrorOf(*both, one.Sign(payload)).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(both->Verify(two.Sign(payload)).ok());
}

}  // namespace
}  // namespace npuc::oidc
