#ifndef NPUC_SERVER_OIDC_FETCHER_H_
#define NPUC_SERVER_OIDC_FETCHER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace npuc::oidc {

// The most bytes of a document of the provider: discovery, keys, tokens, user info.
inline constexpr size_t kMaxDocumentBytes = size_t{256} << 10;

struct FetchRequest {
  std::string url;                                 // CheckProviderUrl says OK to it
  std::vector<std::string> headers = {};           // "NAME: VALUE"
  std::optional<std::string> form = std::nullopt;  // set: it is posted
  absl::Duration timeout = absl::Seconds(10);      // of all of it
};

struct FetchAnswer {
  int status = 0;
  std::string body;  // at most kMaxDocumentBytes
};

// Sends one request to the provider and waits for its answer. Thread-safe.
class Fetcher {
 public:
  virtual ~Fetcher() = default;
  // UNAVAILABLE: no connection, or nobody trusted is at its other end; DEADLINE_EXCEEDED;
  // INVALID_ARGUMENT: the answer is too long.
  virtual absl::StatusOr<FetchAnswer> Fetch(const FetchRequest& request) = 0;
};

// By libcurl: TLS of at least 1.2, each request on a connection of its own, no redirects, no proxy.
class CurlFetcher : public Fetcher {
 public:
  // `ca_file`: authorities (PEM) that may sign the provider's certificate; empty: the system's.
  explicit CurlFetcher(std::string ca_file);
  absl::StatusOr<FetchAnswer> Fetch(const FetchRequest& request) override;

 private:
  const std::string ca_file_;
};

}  // namespace npuc::oidc

#endif  // NPUC_SERVER_OIDC_FETCHER_H_
