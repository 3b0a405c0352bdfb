#ifndef NPUC_COMPILER_CORE_BASE_DIGEST_H_
#define NPUC_COMPILER_CORE_BASE_DIGEST_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc {

// MD5 identifies a model as the users' headers expect; SHA-256 decides. Both from OpenSSL.
// Results are lower-case hex.
std::string Md5Hex(absl::string_view bytes);
std::string Sha256Hex(absl::string_view bytes);

// SHA-256 of bytes that come one piece after the other. Move-only; not thread-safe.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  Sha256Stream(Sha256Stream&&) noexcept;
  Sha256Stream& operator=(Sha256Stream&&) noexcept;

  void Update(absl::string_view bytes);
  // Once, after the last Update.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// MD5 and SHA-256 of a stream, in one pass. Move-only; not thread-safe.
class StreamDigest {
 public:
  StreamDigest();
  ~StreamDigest();
  StreamDigest(StreamDigest&&) noexcept;
  StreamDigest& operator=(StreamDigest&&) noexcept;

  void Update(absl::string_view bytes);
  uint64_t size_bytes() const;
  // May be called once, after the last Update.
  struct Result {
    std::string md5_hex;
    std::string sha256_hex;
    uint64_t size_bytes;
  };
  Result Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_DIGEST_H_
