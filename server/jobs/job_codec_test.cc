// Records of a newer build: what this one does not know is no damage.
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "npuc/store/v1/job.pb.h"
#include "server/jobs/job.h"
#include "server/jobs/service_error.h"

namespace npuc::jobs {
namespace {

namespace pb = ::npuc::store::v1;

// An enumerator of any kind that a build after this one may store.
constexpr int kNewer = 99;
template <typename Enum>
Enum Newer() {
  return static_cast<Enum>(kNewer);
}

pb::JobRecord Record() {
  pb::JobRecord record;
  record.set_id("j1");
  record.set_revision(1);
  record.set_state(pb::JOB_STATE_QUEUED);
  record.mutable_spec()->add_inputs()->set_name("model.pb");
  return record;
}

template <typename Change>
absl::Status JobWith(Change change) {
  pb::JobRecord record = Record();
  change(record);
  return DecodeJobRecord(record.SerializeAsString()).status();
}

template <typename Change>
absl::Status EventWith(Change change) {
  pb::Events events;
  events.add_events()->set_seq(1);
  change(*events.mutable_events(0));
  return DecodeEvents(events.SerializeAsString()).status();
}

TEST(JobCodecTest, EnumeratorsOfANewerBuildAreNoDamage) {
  ASSERT_TRUE(JobWith([](pb::JobRecord&) {}).ok());
  ASSERT_TRUE(EventWith([](pb::Event& event) {
                event.mutable_state_changed()->set_state(pb::JOB_STATE_QUEUED);
              }).ok());
  pb::LiveJob live;
  live.set_state(Newer<pb::JobState>());
  pb::ResultMetadata result;
  result.add_diagnostics()->set_severity(Newer<pb::Severity>());
  const std::vector<std::pair<const char*, absl::Status>> all = {
      {"job", JobWith([](pb::JobRecord& r) { r.set_state(Newer<pb::JobState>()); })},
      {"failure", JobWith([](pb::JobRecord& r) { r.set_failure_kind(Newer<pb::FailureKind>()); })},
      {"deadline", JobWith([](pb::JobRecord& r) { r.set_expired_in(Newer<pb::JobState>()); })},
      {"diagnostic",
       JobWith([](pb::JobRecord& r) { r.add_diagnostics()->set_severity(Newer<pb::Severity>()); })},
      {"live job", DecodeLiveJob("j1", live.SerializeAsString()).status()},
      {"kind of an event", EventWith([](pb::Event& e) {
         e.GetReflection()->MutableUnknownFields(&e)->AddVarint(200, 1);
       })},
      {"state of an event", EventWith([](pb::Event& e) {
         e.mutable_state_changed()->set_state(Newer<pb::JobState>());
       })},
      {"failure of an event", EventWith([](pb::Event& e) {
         e.mutable_state_changed()->set_state(pb::JOB_STATE_FAILED);
         e.mutable_state_changed()->set_failure_kind(Newer<pb::FailureKind>());
       })},
      {"diagnostic of an event", EventWith([](pb::Event& e) {
         e.mutable_diagnostic()->set_severity(Newer<pb::Severity>());
       })},
      {"diagnostic of a result", DecodeResultMetadata(result.SerializeAsString()).status()},
  };
  for (const auto& [what, status] : all) {
    EXPECT_TRUE(IsRecordTooNew(status)) << what << ": " << status;
    EXPECT_EQ(ErrorDetailsOf(status)->reason, "RECORD_TOO_NEW");
  }
}

TEST(JobCodecTest, WhatNoBuildStoresIsDamage) {
  for (const absl::Status& status :
       {JobWith([](pb::JobRecord& r) { r.set_state(pb::JOB_STATE_UNSPECIFIED); }),
        JobWith([](pb::JobRecord& r) { r.set_failure_kind(static_cast<pb::FailureKind>(-1)); }),
        EventWith([](pb::Event&) {})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
}

}  // namespace
}  // namespace npuc::jobs
