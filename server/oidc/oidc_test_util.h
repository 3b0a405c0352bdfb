#ifndef NPUC_SERVER_OIDC_OIDC_TEST_UTIL_H_
#define NPUC_SERVER_OIDC_OIDC_TEST_UTIL_H_

#include <cjose/cjose.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/http_client/http_client.h"
#include "server/oidc/settings.h"

namespace npuc::oidc {

// A key pair that signs tokens.
class SigningKey {
 public:
  // "RS256" or "ES256". `id`: its kid; empty: none.
  SigningKey(std::string algorithm, std::string id, size_t rsa_bits = 2048)
      : algorithm_(std::move(algorithm)), id_(std::move(id)) {
    cjose_err error = {};
    const uint8_t exponent[] = {1, 0, 1};
    key_ = algorithm_ == "RS256"
               ? cjose_jwk_create_RSA_random(rsa_bits, exponent, sizeof(exponent), &error)
               : cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, &error);
  }
  ~SigningKey() { cjose_jwk_release(key_); }
  SigningKey(const SigningKey&) = delete;
  SigningKey& operator=(const SigningKey&) = delete;

  // The public key as an element of a key set.
  nlohmann::json Public() const {
    cjose_err error = {};
    char* const text = cjose_jwk_to_json(key_, false, &error);
    nlohmann::json key = nlohmann::json::parse(text);
    cjose_get_dealloc()(text);
    if (!id_.empty()) key["kid"] = id_;
    return key;
  }

  std::string Sign(const nlohmann::json& payload) const {
    cjose_err error = {};
    cjose_header_t* const header = cjose_header_new(&error);
    cjose_header_set(header, CJOSE_HDR_ALG, algorithm_.c_str(), &error);
    if (!id_.empty()) cjose_header_set(header, CJOSE_HDR_KID, id_.c_str(), &error);
    const std::string text = payload.dump();
    cjose_jws_t* const jws = cjose_jws_sign(
        key_, header, reinterpret_cast<const uint8_t*>(text.data()), text.size(), &error);
    const char* token = nullptr;
    cjose_jws_export(jws, &token, &error);
    std::string copy = token;
    cjose_jws_release(jws);
    cjose_header_release(header);
    return copy;
  }

 private:
  const std::string algorithm_;
  const std::string id_;
  cjose_jwk_t* key_ = nullptr;
};

// A provider in memory. It answers by URL and remembers the requests. Tests change its parts.
class FakeProvider : public http_client::Client {
 public:
  static constexpr char kIssuer[] = "https://login.farm.example";

  static Settings MakeSettings() {
    return {.issuer = kIssuer,
            .client_id = "npuc",
            .client_secret = "se:cret",
            .page_url = "http://127.0.0.1:8480",
            .name = "the farm"};
  }

  // One for all tests, since it takes a second to make.
  static const SigningKey& SharedKey() {
    static const auto* const kKey = new SigningKey("RS256", "first");
    return *kKey;
  }

  FakeProvider() {
    discovery = {{"issuer", kIssuer},
                 {"authorization_endpoint", absl::StrCat(kIssuer, "/auth")},
                 {"token_endpoint", absl::StrCat(kIssuer, "/token")},
                 {"jwks_uri", absl::StrCat(kIssuer, "/keys")}};
    keys = {{"keys", {key.Public()}}};
  }

  // The claims of a token that is right for `nonce`.
  static nlohmann::json Claims(const std::string& nonce) {
    const int64_t now = absl::ToUnixSeconds(absl::Now());
    return {{"iss", kIssuer},
            {"aud", "npuc"},
            {"sub", "u-17"},
            {"nonce", nonce},
            {"iat", now},
            {"exp", now + 300},
            {"email", "alice@farm.example"},
            {"email_verified", true}};
  }

  absl::StatusOr<http_client::Answer> Send(const http_client::Request& request) override {
    std::function<void()> wait;
    {
      const MutexLock lock(mutex);
      requests.push_back(request);
      wait = before_answer;
    }
    if (wait) wait();
    const MutexLock lock(mutex);
    if (!error.ok()) return error;
    const auto answer = [&](const std::string& path) -> std::string {
      if (absl::EndsWith(request.url, "/.well-known/openid-configuration")) return discovery.dump();
      if (path == "/keys") return keys.dump();
      if (path == "/token") return tokens.dump();
      return path == "/me" ? user_info.dump() : "{}";
    };
    const std::string path = request.url.substr(request.url.rfind('/'));
    const auto status = statuses.find(path);
    return http_client::Answer{status == statuses.end() ? 200 : status->second, answer(path)};
  }

  // Requests so far whose URL ends so.
  int Count(absl::string_view end) {
    const MutexLock lock(mutex);
    int count = 0;
    for (const auto& request : requests) count += absl::EndsWith(request.url, end) ? 1 : 0;
    return count;
  }

  static std::string BodyOf(const http_client::Request& request) {
    return *request.body(0, request.body_bytes);
  }

  Mutex mutex;
  const SigningKey& key = SharedKey();
  nlohmann::json discovery, keys, tokens, user_info;
  std::map<std::string, int> statuses;  // by the last part of the path; others: 200
  absl::Status error;
  std::function<void()> before_answer;
  std::vector<http_client::Request> requests;
};

}  // namespace npuc::oidc

#endif  // NPUC_SERVER_OIDC_OIDC_TEST_UTIL_H_
