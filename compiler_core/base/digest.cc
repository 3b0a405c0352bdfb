// The plain functions of MD5 and SHA-256: through EVP, OpenSSL 3 first sets up its providers, which
// is a tenth of the time that a small net takes to compile. They are deprecated, not gone.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "compiler_core/base/digest.h"

#include <openssl/md5.h>
#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

// One digest with the same three steps for both algorithms.
struct Md5 {
  Md5() { NPUC_CHECK(MD5_Init(&context) == 1); }
  void Update(absl::string_view bytes) {
    NPUC_CHECK(MD5_Update(&context, bytes.data(), bytes.size()) == 1);
  }
  std::string FinishHex() {
    unsigned char digest[MD5_DIGEST_LENGTH];
    NPUC_CHECK(MD5_Final(digest, &context) == 1);
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
  }
  MD5_CTX context;
};

struct Sha256 {
  Sha256() { NPUC_CHECK(SHA256_Init(&context) == 1); }
  void Update(absl::string_view bytes) {
    NPUC_CHECK(SHA256_Update(&context, bytes.data(), bytes.size()) == 1);
  }
  std::string FinishHex() {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    NPUC_CHECK(SHA256_Final(digest, &context) == 1);
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
  }
  SHA256_CTX context;
};

template <typename Algorithm>
std::string HexOf(absl::string_view bytes) {
  Algorithm algorithm;
  algorithm.Update(bytes);
  return algorithm.FinishHex();
}

}  // namespace

std::string Md5Hex(absl::string_view bytes) { return HexOf<Md5>(bytes); }
std::string Sha256Hex(absl::string_view bytes) { return HexOf<Sha256>(bytes); }

struct Sha256Stream::State {
  Sha256 sha256;
};

Sha256Stream::Sha256Stream() : state_(std::make_unique<State>()) {}
Sha256Stream::~Sha256Stream() = default;
Sha256Stream::Sha256Stream(Sha256Stream&&) noexcept = default;
Sha256Stream& Sha256Stream::operator=(Sha256Stream&&) noexcept = default;

void Sha256Stream::Update(absl::string_view bytes) { state_->sha256.Update(bytes); }
std::string Sha256Stream::FinishHex() { return state_->sha256.FinishHex(); }

struct StreamDigest::State {
  Md5 md5;
  Sha256 sha256;
  uint64_t size_bytes = 0;
};

StreamDigest::StreamDigest() : state_(std::make_unique<State>()) {}
StreamDigest::~StreamDigest() = default;
StreamDigest::StreamDigest(StreamDigest&&) noexcept = default;
StreamDigest& StreamDigest::operator=(StreamDigest&&) noexcept = default;

void StreamDigest::Update(absl::string_view bytes) {
  state_->md5.Update(bytes);
  state_->sha256.Update(bytes);
  state_->size_bytes += bytes.size();
}

uint64_t StreamDigest::size_bytes() const { return state_->size_bytes; }

StreamDigest::Result StreamDigest::Finish() {
  return {state_->md5.FinishHex(), state_->sha256.FinishHex(), state_->size_bytes};
}

}  // namespace npuc
