#include "server/executor/inspections.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/executor/executor_test_util.h"
#include "server/executor/submission.h"
#include "server/jobs/service_error.h"

namespace npuc::executor {
namespace {

using ::testing::HasSubstr;
using Kind = worker::WorkerOutcome::Kind;

std::string ReasonOf(const absl::Status& status) {
  const auto details = jobs::ErrorDetailsOf(status);
  return details.has_value() ? details->reason : status.ToString();
}

class InspectionsTest : public ::testing::Test {
 protected:
  InspectionsTest() : inspections_({.work_dir = ::testing::TempDir()}, &inputs_, &workers_) {
    request_.tenant = "a";
    request_.model = inputs_.PutFile("model bytes", "a");
    request_.model.name = "net.onnx";
    Succeed("{}", "text");
  }

  void Succeed(const std::string& json, const std::string& text) {
    workers_.Set([json, text](const worker::WorkerJob&, worker::WorkerEvents&) {
      return SucceedWith({{"inspection.json", json}, {"inspection.txt", text}});
    });
  }
  void End(Kind kind, const std::string& text) {
    workers_.Set([kind, text](const worker::WorkerJob&, worker::WorkerEvents&) {
      worker::WorkerOutcome outcome;
      outcome.kind = kind;
      outcome.code = absl::StatusCode::kInvalidArgument;
      outcome.text = text;
      return outcome;
    });
  }
  std::string Refusal() { return ReasonOf(inspections_.Run(request_).status()); }

  FakeInputs inputs_;
  FakeWorkers workers_;
  Inspections inspections_;
  InspectionRequest request_;
};

TEST_F(InspectionsTest, AWorkerReadsTheModelWithinLimits) {
  request_.side_inputs = {inputs_.PutFile("weights", "a")};
  request_.side_inputs[0].role = "WEIGHTS_FILE";
  request_.side_inputs[0].name = "net.weights";
  request_.stated.shapes = {"1,40"};
  worker::WorkerJob seen;
  workers_.Set([&](const worker::WorkerJob& job, worker::WorkerEvents&) {
    seen = job;
    return SucceedWith({{"inspection.json", "{}"}, {"inspection.txt", "a\x1b\nb\n"}});
  });
  const auto inspection = inspections_.Run(request_);
  ASSERT_TRUE(inspection.ok()) << inspection.status();
  EXPECT_TRUE(inspection->is_model);
  EXPECT_EQ(inspection->json, "{}");
  EXPECT_EQ(inspection->text, "a\\x1b\nb\n");
  ASSERT_EQ(seen.inputs.size(), 2u);
  EXPECT_EQ(seen.inputs[0].file.role, "MODEL_FILE");
  EXPECT_EQ(seen.inputs[0].file.name, "net.onnx");
  EXPECT_EQ(seen.inputs[1].file.role, "WEIGHTS_FILE");
  EXPECT_EQ(seen.inspection->shapes, request_.stated.shapes);
  EXPECT_LT(seen.limits.wall, worker::WorkerLimits().wall);
  EXPECT_EQ(inputs_.held(), 0);
}

TEST_F(InspectionsTest, WhatIsNoModelHasDiagnosticsAndNoTexts) {
  workers_.Set([](const worker::WorkerJob&, worker::WorkerEvents&) {
    worker::WorkerOutcome outcome;
    outcome.kind = Kind::kFailed;
    outcome.diagnostics.push_back({DiagnosticKind::kEmptyModel, "no bytes"});
    return outcome;
  });
  const auto inspection = inspections_.Run(request_);
  ASSERT_TRUE(inspection.ok()) << inspection.status();
  EXPECT_FALSE(inspection->is_model);
  EXPECT_EQ(inspection->diagnostics.at(0).message, "no bytes");
  End(Kind::kFailed, "'1,x' is no shape");
  EXPECT_EQ(Refusal(), "INVALID_FIELD");
}

TEST_F(InspectionsTest, HowARunEndsIsWhatTheCallerGets) {
  End(Kind::kLimit, "memory limit reached");
  EXPECT_EQ(Refusal(), "INSPECTION_LIMIT");
  End(Kind::kLost, "killed");
  EXPECT_EQ(Refusal(), "WORKER_LOST");
  End(Kind::kCancelled, "cancelled");
  EXPECT_EQ(Refusal(), "DRAINING");
  End(Kind::kCrashed, "signal 11");
  EXPECT_TRUE(absl::IsInternal(inspections_.Run(request_).status()));
  workers_.Set([](const worker::WorkerJob&, worker::WorkerEvents&) {
    return absl::StatusOr<worker::WorkerOutcome>(absl::UnavailableError("no warm parent"));
  });
  EXPECT_EQ(Refusal(), "WORKER_LOST");
  Succeed(std::string(kMaxInspectionBytes + 1, 'x'), "");
  EXPECT_EQ(Refusal(), "INSPECTION_LIMIT");
}

TEST_F(InspectionsTest, RefusalsNameWhatIsWrong) {
  InspectionRequest other = request_;
  other.tenant = "b";
  EXPECT_EQ(ReasonOf(inspections_.Run(other).status()), "BLOB_MISSING");
  const InspectionRequest good = request_;
  request_.model.name = "";
  EXPECT_EQ(Refusal(), "INVALID_FIELD");
  request_ = good;
  request_.side_inputs.assign(kMaxSideInputs + 1, good.model);
  EXPECT_EQ(Refusal(), "INVALID_FIELD");
  request_.side_inputs.resize(1);
  request_.side_inputs[0].role = "MODEL_FILE";
  EXPECT_EQ(Refusal(), "INVALID_FIELD");
  request_ = good;
  request_.stated.dims.assign(kMaxStatedTexts + 1, "t=1");
  EXPECT_EQ(Refusal(), "INVALID_FIELD");
  request_.stated.dims = {std::string(kMaxStatedBytes + 1, 'x')};
  EXPECT_EQ(Refusal(), "INVALID_FIELD");
  EXPECT_EQ(workers_.runs(), 0);
}

// Nested as deep as there are tenants, so that all are under way at once.
TEST_F(InspectionsTest, ATenantHasOneAndAllTogetherTwo) {
  std::vector<std::string> refusals;
  const auto run_as = [&](const std::string& tenant) {
    InspectionRequest request = request_;
    request.tenant = tenant;
    inputs_.PutFile("model bytes", tenant);
    return inspections_.Run(request);
  };
  workers_.Set([&](const worker::WorkerJob&, worker::WorkerEvents&) {
    if (workers_.runs() == 1) {
      refusals.push_back(ReasonOf(run_as("a").status()));
      EXPECT_TRUE(run_as("b").ok());
    } else {
      refusals.push_back(ReasonOf(run_as("c").status()));
    }
    return SucceedWith({{"inspection.json", "{}"}, {"inspection.txt", ""}});
  });
  EXPECT_TRUE(run_as("a").ok());
  EXPECT_EQ(refusals, std::vector<std::string>({"SERVER_BUSY", "SERVER_BUSY"}));
  EXPECT_EQ(workers_.runs(), 2);
}

}  // namespace
}  // namespace npuc::executor
