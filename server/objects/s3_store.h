#ifndef NPUC_SERVER_OBJECTS_S3_STORE_H_
#define NPUC_SERVER_OBJECTS_S3_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "server/http_client/http_client.h"
#include "server/objects/location.h"
#include "server/objects/object_store.h"
#include "server/objects/signature.h"

namespace npuc::objects {

struct S3Options {
  Location location;  // kS3
  std::string ca_file = {};
  http_client::Limits limits = {.whole = absl::Minutes(15)};  // answer_bytes is not read
  // Asked for each request, so that new credentials need no restart.
  std::function<absl::StatusOr<Credentials>()> credentials;
  std::function<absl::Time()> now;
  // Between two tries of a request.
  std::function<void(absl::Duration)> sleep;
};

// Objects in a bucket of S3 or of a store that speaks its protocol. Requests that fail by a line
// that broke, by status 429 or by a status from 500 on are made again, a bounded number of times,
// after pauses of random lengths. Where this machine's clock is wrong the server's time is taken.
class S3Store : public ObjectStore {
 public:
  static constexpr int kMaxTries = 3;
  // The bound of an answer that is no object.
  static constexpr size_t kMaxAnswerBytes = size_t{4} << 20;

  explicit S3Store(S3Options options);

  absl::Status Put(absl::string_view name, uint64_t bytes, const base::ByteReader& read) override;
  absl::StatusOr<std::string> Read(absl::string_view name, uint64_t offset,
                                   size_t max_bytes) override;
  absl::Status Remove(absl::string_view name) override;
  absl::StatusOr<Listing> List(absl::string_view folder, absl::string_view after) override;

 private:
  // A request without host and signature.
  struct Call {
    std::string method = "GET";
    std::string key = {};  // empty: the bucket itself
    std::map<std::string, std::string> query = {};
    std::map<std::string, std::string> headers = {};
    std::string payload_sha256;
    uint64_t body_bytes = 0;
    base::ByteReader body = nullptr;
    size_t max_answer_bytes = kMaxAnswerBytes;
  };
  absl::StatusOr<http_client::Answer> SendOnce(const Call& call);
  absl::StatusOr<http_client::Answer> Send(const Call& call);
  void TakeTimeOf(const http_client::Answer& answer);
  std::string KeyOf(absl::string_view name) const;

  const S3Options options_;
  const std::string empty_sha256_;
  http_client::CurlClient client_;
  std::atomic<int64_t> clock_offset_s_ = 0;  // the server's time less this machine's
};

}  // namespace npuc::objects

#endif  // NPUC_SERVER_OBJECTS_S3_STORE_H_
