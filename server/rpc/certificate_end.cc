#include "server/rpc/certificate_end.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::rpc {
namespace {

constexpr absl::Duration kSoon = absl::Hours(24 * 14);

}  // namespace

absl::StatusOr<absl::Time> CertificateEnd(const std::string& path) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> file(BIO_new_file(path.c_str(), "r"), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      file == nullptr ? nullptr : PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr),
      X509_free);
  std::tm end = {};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(path), " holds no PEM certificate with an end"));
  }
  return absl::FromTM(end, absl::UTCTimeZone());
}

void TellCertificateEnd(const std::string& path, absl::Time now, const log::Logger& log) {
  const absl::StatusOr<absl::Time> end = CertificateEnd(path);
  if (!end.ok() || *end > now + kSoon) return;
  const bool over = *end <= now;
  log.Write(
      over ? log::LogLevel::kError : log::LogLevel::kWarning,
      over ? "the server's certificate has expired; clients refuse it"
           : "the server's certificate expires soon",
      {{"file", path},
       {"end", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", *end, absl::UTCTimeZone())},
       {"fix", "put a new certificate and key in their place; they are read within a minute"}});
}

}  // namespace npuc::rpc
