#include "server/http/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::http {
namespace {

constexpr absl::Duration kLookPeriod = absl::Minutes(1);

absl::Status Unusable(const char* option, const std::string& path) {
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " ", Printable(path), " cannot be used for HTTP's TLS"));
}

// Changes when a file does.
std::string StampOf(const api::TlsFiles& files) {
  std::string stamp;
  for (const std::string* path : {&files.certificate, &files.key, &files.client_ca}) {
    struct stat found = {};
    if (path->empty() || stat(path->c_str(), &found) != 0) continue;
    absl::StrAppend(&stamp, found.st_ino, ".", found.st_size, ".", found.st_mtim.tv_sec, ".",
                    found.st_mtim.tv_nsec, ";");
  }
  return stamp;
}

absl::StatusOr<std::shared_ptr<SSL_CTX>> Load(const api::TlsFiles& files) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return absl::InternalError("OpenSSL gives no TLS context");
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  // A resumed session would have to be bound to the client's certificate; connections are kept
  // open instead.
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  // Without this OpenSSL would ask for a passphrase on the terminal.
  SSL_CTX_set_default_passwd_cb(raw, [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    return Unusable("--tls-cert", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(raw) != 1) {
    return Unusable("--tls-key", files.key);
  }
  if (files.client_ca.empty()) return context;
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(files.client_ca.c_str());
  if (names == nullptr ||
      SSL_CTX_load_verify_locations(raw, files.client_ca.c_str(), nullptr) != 1) {
    return Unusable("--client-ca", files.client_ca);
  }
  SSL_CTX_set_client_CA_list(raw, names);
  // Not required: a token is as good. One that is shown is verified.
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  return context;
}

std::string TextOf(const ASN1_STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

void AddAlternativeNames(const X509* certificate, std::vector<std::string>& names) {
  auto* const alternatives = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (alternatives == nullptr) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(alternatives); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(alternatives, i);
    if (name->type == GEN_DNS || name->type == GEN_EMAIL || name->type == GEN_URI) {
      names.push_back(TextOf(name->d.ia5));
    } else if (name->type == GEN_IPADD) {
      const std::string bytes = TextOf(name->d.iPAddress);
      char text[INET6_ADDRSTRLEN] = {};
      const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
      if ((bytes.size() == 4 || bytes.size() == 16) &&
          inet_ntop(family, bytes.data(), text, sizeof(text)) != nullptr) {
        names.emplace_back(text);
      }
    }
  }
  GENERAL_NAMES_free(alternatives);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Make(const api::TlsFiles& files) {
  auto made = std::unique_ptr<TlsContext>(new TlsContext(files));
  const MutexLock lock(made->mutex_);
  made->stamp_ = StampOf(files);
  ASSIGN_OR_RETURN(made->context_, Load(files));
  return made;
}

std::shared_ptr<SSL_CTX> TlsContext::Current(absl::Time now) {
  const MutexLock lock(mutex_);
  if (now - looked_ < kLookPeriod) return context_;
  looked_ = now;
  std::string stamp = StampOf(files_);
  if (stamp == stamp_) return context_;
  // While a new pair is being put there, certificate and key may differ; the next look sees both.
  if (auto loaded = Load(files_); loaded.ok()) {
    context_ = *std::move(loaded);
    stamp_ = std::move(stamp);
  }
  return context_;
}

std::vector<std::string> TlsContext::NamesOfPeer(const SSL* ssl) {
  std::vector<std::string> names;
  if (ssl == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return names;
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl),
                                                                X509_free);
  if (certificate == nullptr) return names;
  AddAlternativeNames(certificate.get(), names);
  const X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) names.push_back(TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  return names;
}

}  // namespace npuc::http
