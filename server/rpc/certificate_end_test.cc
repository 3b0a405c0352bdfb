#include "server/rpc/certificate_end.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>
#include <string>

#include "gmock/gmock.h"

namespace npuc::rpc {
namespace {

using ::testing::HasSubstr;

const absl::Time kEnd = absl::FromUnixSeconds(1'700'000'000);  // 2023-11-14T22:13:20Z

// A certificate that ends then, unsigned: nothing here verifies it.
std::string Write() {
  const std::string path = ::testing::TempDir() + "/certificate_end.pem";
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
  ASN1_TIME_set(X509_getm_notBefore(made.get()), 1'600'000'000);
  ASN1_TIME_set(X509_getm_notAfter(made.get()), absl::ToTimeT(kEnd));
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509_set_pubkey(made.get(), key);
  X509_sign(made.get(), key, EVP_sha256());
  EVP_PKEY_free(key);
  std::FILE* const file = std::fopen(path.c_str(), "w");
  PEM_write_X509(file, made.get());
  std::fclose(file);
  return path;
}

std::string LogOf(const std::string& path, absl::Time now) {
  std::FILE* const out = std::tmpfile();
  TellCertificateEnd(path, now, log::Logger(out, [] { return kEnd; }));
  std::string text(4096, '\0');
  std::rewind(out);
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  return text;
}

TEST(CertificateEndTest, IsReadAndToldInTime) {
  const std::string path = Write();
  const auto end = CertificateEnd(path);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, kEnd);
  EXPECT_EQ(LogOf(path, kEnd - absl::Hours(24 * 15)), "");
  EXPECT_THAT(LogOf(path, kEnd - absl::Hours(24)), HasSubstr("\"WARNING\""));
  const std::string over = LogOf(path, kEnd);
  EXPECT_THAT(over, HasSubstr("\"ERROR\""));
  EXPECT_THAT(over, HasSubstr("has expired"));
  EXPECT_THAT(over, HasSubstr("2023-11-14T22:13:20Z"));
  EXPECT_FALSE(CertificateEnd(path + ".none").ok());
}

}  // namespace
}  // namespace npuc::rpc
