#include "server/rpc/server_credentials.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace npuc::rpc {
namespace {

constexpr size_t kMaxPemBytes = 4 << 20;
constexpr unsigned kRefreshSeconds = 60;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::StatusOr<std::string> ReadPem(const std::string& option, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxPemBytes + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", Printable(path), ": ", std::strerror(errno)));
  }
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMaxPemBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", Printable(path), " has over ", kMaxPemBytes, " bytes"));
  }
  return text;
}

absl::StatusOr<Certificate> ReadCertificate(const std::string& option, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadPem(option, path));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
  if (certificate != nullptr) return certificate;
  return absl::InvalidArgumentError(
      absl::StrCat(option, " ", Printable(path), " holds no PEM certificate"));
}

absl::Status CheckKey(const std::string& path, X509* certificate) {
  ASSIGN_OR_RETURN(const std::string text, ReadPem("--tls-key", path));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  // An empty passphrase: without it OpenSSL would ask on the terminal.
  std::string passphrase;
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, passphrase.data()),
                EVP_PKEY_free);
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls-key ", Printable(path), " holds no PEM private key without a passphrase"));
  }
  if (X509_check_private_key(certificate, key.get()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key ", Printable(path), " is not the key of the certificate"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const api::TlsFiles& files) {
  if (files.certificate.empty()) return grpc::InsecureServerCredentials();
  ASSIGN_OR_RETURN(const Certificate certificate, ReadCertificate("--tls-cert", files.certificate));
  RETURN_IF_ERROR(CheckKey(files.key, certificate.get()));
  if (!files.client_ca.empty()) {
    RETURN_IF_ERROR(ReadCertificate("--client-ca", files.client_ca).status());
  }
  namespace tls = grpc::experimental;
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.client_ca, kRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    // Not required: a token is as good. One that is shown is verified.
    options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return tls::TlsServerCredentials(options);
}

}  // namespace npuc::rpc
