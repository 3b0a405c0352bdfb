#include "compiler_core/base/digest.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

std::string FinishHex(EVP_MD_CTX* context) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  NPUC_CHECK(EVP_DigestFinal_ex(context, digest, &length) == 1);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), length));
}

struct ContextDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using ContextPtr = std::unique_ptr<EVP_MD_CTX, ContextDeleter>;

ContextPtr NewContext(const EVP_MD* algorithm) {
  ContextPtr context(EVP_MD_CTX_new());
  NPUC_CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), algorithm, nullptr) == 1);
  return context;
}

std::string HexOf(const EVP_MD* algorithm, absl::string_view bytes) {
  const ContextPtr context = NewContext(algorithm);
  NPUC_CHECK(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  return FinishHex(context.get());
}

}  // namespace

std::string Md5Hex(absl::string_view bytes) { return HexOf(EVP_md5(), bytes); }
std::string Sha256Hex(absl::string_view bytes) { return HexOf(EVP_sha256(), bytes); }

struct StreamDigest::State {
  ContextPtr md5 = NewContext(EVP_md5());
  ContextPtr sha256 = NewContext(EVP_sha256());
  uint64_t size_bytes = 0;
};

StreamDigest::StreamDigest() : state_(std::make_unique<State>()) {}
StreamDigest::~StreamDigest() = default;
StreamDigest::StreamDigest(StreamDigest&&) noexcept = default;
StreamDigest& StreamDigest::operator=(StreamDigest&&) noexcept = default;

void StreamDigest::Update(absl::string_view bytes) {
  NPUC_CHECK(EVP_DigestUpdate(state_->md5.get(), bytes.data(), bytes.size()) == 1);
  NPUC_CHECK(EVP_DigestUpdate(state_->sha256.get(), bytes.data(), bytes.size()) == 1);
  state_->size_bytes += bytes.size();
}

uint64_t StreamDigest::size_bytes() const { return state_->size_bytes; }

StreamDigest::Result StreamDigest::Finish() {
  return {FinishHex(state_->md5.get()), FinishHex(state_->sha256.get()), state_->size_bytes};
}

}  // namespace npuc
