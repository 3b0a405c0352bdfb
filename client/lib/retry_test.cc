#include "client/lib/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/lib/service_error.h"
#include "npuc/rpc/status_details.pb.h"

namespace npuc::client {
namespace {

// The status of an npucd error with this reason and, where it is not negative, a RetryInfo.
absl::Status ErrorWith(absl::StatusCode code, const std::string& reason, int retry_seconds = -1) {
  npuc::rpc::Status details;
  npuc::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("npuc");
  google::protobuf::Any* any = details.add_details();
  any->set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  any->set_value(info.SerializeAsString());
  if (retry_seconds >= 0) {
    npuc::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(retry_seconds);
    any = details.add_details();
    any->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
    any->set_value(retry.SerializeAsString());
  }
  return WithServiceError(code, "text", details.SerializeAsString());
}

class RetryTest : public testing::Test {
 protected:
  RetryTest() {
    policy_.now = [this] { return now_; };
    policy_.sleep = [this](absl::Duration d) { now_ += d; };
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  RetryPolicy policy_;
  bool had_contact_ = false;
};

TEST_F(RetryTest, ClassifiesByCodeAndReason) {
  EXPECT_EQ(Classify(absl::UnavailableError("gone")), RetryClass::kUnreachable);
  EXPECT_EQ(Classify(absl::InternalError("RST_STREAM")), RetryClass::kOdd);
  EXPECT_EQ(Classify(ErrorWith(absl::StatusCode::kInternal, "STORE_FAILED")), RetryClass::kNever);
  EXPECT_EQ(Classify(ErrorWith(absl::StatusCode::kResourceExhausted, "QUOTA")), RetryClass::kNever);
  EXPECT_EQ(Classify(ErrorWith(absl::StatusCode::kResourceExhausted, "QUEUE_FULL", 1)),
            RetryClass::kLater);
  EXPECT_EQ(Classify(absl::NotFoundError("no")), RetryClass::kNever);
}

TEST_F(RetryTest, EachServerIsTriedBeforeTheWait) {
  Retrier retrier(policy_, had_contact_, /*servers=*/3);
  const absl::Time begin = now_;
  EXPECT_TRUE(retrier.Wait(absl::UnavailableError("gone")).ok());
  EXPECT_TRUE(retrier.Wait(absl::UnavailableError("gone")).ok());
  EXPECT_EQ(now_, begin);
  EXPECT_TRUE(retrier.Wait(absl::UnavailableError("gone")).ok());
  EXPECT_GT(now_, begin);
  // A full queue is the cluster's.
  const absl::Time before = now_;
  EXPECT_TRUE(retrier.Wait(ErrorWith(absl::StatusCode::kResourceExhausted, "QUEUE_FULL", 1)).ok());
  EXPECT_GE(now_, before + absl::Seconds(1));
  int tries = 0;
  while (retrier.Wait(absl::UnavailableError("gone")).ok()) ++tries;
  EXPECT_GT(tries, 9);
  EXPECT_LE(now_ - begin, policy_.reconnect_wait + absl::Seconds(1));
}

TEST_F(RetryTest, GivesUpWhenPatienceEnds) {
  Retrier retrier(policy_, had_contact_);
  const absl::Time begin = now_;
  int tries = 0;
  while (retrier.Wait(absl::UnavailableError("gone")).ok()) ++tries;
  EXPECT_GT(tries, 3);
  EXPECT_LE(now_ - begin, policy_.connect_wait);
  EXPECT_GT(now_ - begin, policy_.connect_wait / 3);
}

TEST_F(RetryTest, IsMorePatientWithAServerThatWasThere) {
  had_contact_ = true;
  Retrier retrier(policy_, had_contact_);
  const absl::Time begin = now_;
  while (retrier.Wait(absl::UnavailableError("gone")).ok()) {
  }
  EXPECT_GT(now_ - begin, policy_.connect_wait);
  EXPECT_LE(now_ - begin, policy_.reconnect_wait);
}

TEST_F(RetryTest, ProgressBeginsANewOutage) {
  Retrier retrier(policy_, had_contact_);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(retrier.Wait(absl::UnavailableError("gone")).ok());
    retrier.Progress();
  }
}

TEST_F(RetryTest, OddFailuresAreBoundedByNumber) {
  Retrier retrier(policy_, had_contact_);
  int tries = 0;
  while (retrier.Wait(absl::InternalError("RST_STREAM")).ok()) ++tries;
  EXPECT_EQ(tries, policy_.max_odd_failures);
}

TEST_F(RetryTest, WaitsAtLeastWhatTheServerAsks) {
  Retrier retrier(policy_, had_contact_);
  const absl::Time begin = now_;
  EXPECT_TRUE(retrier.Wait(ErrorWith(absl::StatusCode::kUnavailable, "STARTING", 4)).ok());
  EXPECT_GE(now_ - begin, absl::Seconds(4));
}

TEST_F(RetryTest, AnInterruptEndsTheWait) {
  bool interrupted = false;
  policy_.is_interrupted = [&] { return interrupted; };
  policy_.sleep = [&](absl::Duration d) { interrupted = true; };
  Retrier retrier(policy_, had_contact_);
  EXPECT_EQ(retrier.Wait(absl::UnavailableError("gone")).code(), absl::StatusCode::kCancelled);
}

TEST_F(RetryTest, TellsOfAnOutageOnce) {
  int told = 0;
  policy_.on_outage = [&](const absl::Status&, absl::Duration patience) {
    EXPECT_EQ(patience, policy_.connect_wait);
    ++told;
  };
  Retrier retrier(policy_, had_contact_);
  ASSERT_TRUE(retrier.Wait(absl::UnavailableError("gone")).ok());
  ASSERT_TRUE(retrier.Wait(absl::UnavailableError("gone")).ok());
  EXPECT_EQ(told, 1);
}

TEST(ServiceErrorTest, DamagedDetailsAreLeftOut) {
  const absl::Status status =
      WithServiceError(absl::StatusCode::kInternal, "a\x1b[31mb", "\xff\xff\xff");
  EXPECT_EQ(ServiceErrorOf(status).reason, "");
  EXPECT_THAT(std::string(status.message()), testing::Not(testing::HasSubstr("\x1b")));
}

}  // namespace
}  // namespace npuc::client
