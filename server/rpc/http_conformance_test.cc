// The same service by HTTP/JSON: each method gives what gRPC gives, errors included, and streams of
// events resume anywhere.
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "npuc/rpc/http.pb.h"
#include "server/http/event_streams.h"
#include "server/http/gateway.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// google.rpc.Code in HTTP, as google/rpc/code.proto has it.
const std::map<grpc::StatusCode, int> kHttpStatus = {
    {grpc::StatusCode::INVALID_ARGUMENT, 400},  {grpc::StatusCode::FAILED_PRECONDITION, 400},
    {grpc::StatusCode::OUT_OF_RANGE, 400},      {grpc::StatusCode::UNAUTHENTICATED, 401},
    {grpc::StatusCode::PERMISSION_DENIED, 403}, {grpc::StatusCode::NOT_FOUND, 404},
    {grpc::StatusCode::ALREADY_EXISTS, 409},    {grpc::StatusCode::RESOURCE_EXHAUSTED, 429},
    {grpc::StatusCode::INTERNAL, 500},          {grpc::StatusCode::DATA_LOSS, 500},
    {grpc::StatusCode::UNAVAILABLE, 503}};

std::string JsonOf(const google::protobuf::Message& message) {
  std::string text;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(message, &text).ok());
  return text;
}

// What google.rpc.Status is in proto3 JSON, made here from gRPC's bytes by another way than the
// server's.
json ExpectedError(const grpc::Status& status) {
  rpc::Status wire;
  EXPECT_TRUE(wire.ParseFromString(status.error_details()));
  json details = json::array();
  for (const auto& any : wire.details()) {
    const std::string name = any.type_url().substr(any.type_url().rfind('.') + 1);
    const auto* type = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
        "npuc.rpc." + name);
    std::unique_ptr<google::protobuf::Message> detail(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    EXPECT_TRUE(detail->ParseFromString(any.value()));
    json fields = json::parse(JsonOf(*detail));
    fields["@type"] = any.type_url();
    details.push_back(fields);
  }
  return {{"code", static_cast<int>(status.error_code())},
          {"message", status.error_message()},
          {"details", details}};
}

void ExpectSameError(const grpc::Status& status, const httplib::Result& result) {
  ASSERT_TRUE(result);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(result->status, kHttpStatus.at(status.error_code())) << result->body;
  EXPECT_EQ(json::parse(result->body), ExpectedError(status));
  const bool retry = DetailOf<rpc::RetryInfo>(status).has_retry_delay();
  EXPECT_EQ(result->has_header("Retry-After"), retry);
}

void ExpectSame(const grpc::Status& status, const google::protobuf::Message& response,
                const httplib::Result& result) {
  ASSERT_TRUE(result);
  if (!status.ok()) {
    ExpectSameError(status, result);
    return;
  }
  ASSERT_EQ(result->status, 200) << result->body;
  EXPECT_EQ(result->get_header_value("Content-Type"), "application/json");
  const std::unique_ptr<google::protobuf::Message> got(response.New());
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result->body, got.get()).ok())
      << result->body;
  google::protobuf::util::MessageDifferencer differencer;
  // It moves with the clock.
  differencer.IgnoreField(v1::Queued::descriptor()->FindFieldByName("estimated_start_time"));
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(response, *got)) << difference;
}

class HttpTest : public RpcTest {
 protected:
  explicit HttpTest(
      std::unique_ptr<auth::Authenticator> authenticator = auth::Authenticator::Everybody(),
      absl::Duration max_stream_age = absl::Hours(1))
      : RpcTest(std::move(authenticator), QuickOptions(max_stream_age)) {
    auto gateway = http::Gateway::Start(
        {.heartbeat = absl::Milliseconds(20), .max_stream_age = max_stream_age}, Dependencies());
    EXPECT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    client_ = std::make_unique<httplib::Client>("127.0.0.1", gateway_->port());
    client_->set_keep_alive(true);
  }

  httplib::Result Post(const std::string& path, const google::protobuf::Message& body) {
    return client_->Post(path, JsonOf(body), "application/json");
  }
  httplib::Result PatchBlob(const cache::BlobDigest& digest, int64_t offset,
                            const std::string& bytes) {
    return client_->Patch(absl::StrCat("/v1/blobs/", digest.sha256,
                                       "?sizeBytes=", digest.size_bytes, "&offset=", offset),
                          bytes, "application/octet-stream");
  }

  template <typename Request, typename Response, typename Stub>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    Stub* stub, const Request& request, Response* response) {
    grpc::ClientContext context;
    response->Clear();
    return (stub->*method)(&context, request, response);
  }

  void CompareGet(const std::string& job_id) {
    v1::GetCompileJobRequest request;
    request.set_job_id(job_id);
    v1::GetCompileJobResponse response;
    const grpc::Status status =
        Call(&v1::CompileService::Stub::GetCompileJob, compile_.get(), request, &response);
    ExpectSame(status, response, client_->Get("/v1/jobs/" + job_id));
  }

  void CompareCancel(const std::string& job_id, const std::string& reason) {
    v1::CancelCompileJobRequest request;
    request.set_reason(reason);
    // HTTP first: it cancels, gRPC then tells how the job ended.
    const auto result = Post("/v1/jobs/" + job_id + ":cancel", request);
    request.set_job_id(job_id);
    v1::CancelCompileJobResponse response;
    const grpc::Status status =
        Call(&v1::CompileService::Stub::CancelCompileJob, compile_.get(), request, &response);
    ExpectSame(status, response, result);
  }

  void CompareList(const v1::ListCompileJobsRequest& request, const std::string& query) {
    v1::ListCompileJobsResponse response;
    const grpc::Status status =
        Call(&v1::CompileService::Stub::ListCompileJobs, compile_.get(), request, &response);
    ExpectSame(status, response, client_->Get("/v1/jobs" + query));
  }

  void CompareCreate(const v1::CreateCompileJobRequest& request) {
    const auto result = Post("/v1/jobs", request);
    v1::CreateCompileJobResponse response;
    const grpc::Status status = Create(request, &response);
    if (status.ok()) response.set_already_existed(false);  // gRPC came second
    ExpectSame(status, response, result);
  }

  std::unique_ptr<http::Gateway> gateway_;
  std::unique_ptr<httplib::Client> client_;
};

TEST_F(HttpTest, CreateIsWhatGrpcHas) {
  CompareCreate(Request("r1"));
  v1::CreateCompileJobRequest reused = Request("r1");
  reused.mutable_spec()->set_priority(7);
  CompareCreate(reused);  // ALREADY_EXISTS
  v1::CreateCompileJobRequest request = Request();
  request.mutable_spec()->set_priority(1000);
  CompareCreate(request);
  request = Request();
  request.mutable_spec()->set_config_text("bad");
  CompareCreate(request);  // INVALID_CONFIG with its violations
  request = Request();
  request.mutable_spec()->mutable_model()->set_sha256(std::string(64, 'f'));
  CompareCreate(request);  // BLOB_MISSING
  request = Request();
  request.mutable_spec()->mutable_model()->set_size_bytes(-1);
  CompareCreate(request);
  Submit("two");
  Submit("three");
  CompareCreate(Request("r2"));  // QUEUE_FULL, with Retry-After
  lifecycle_.Enter(executor::Lifecycle::Phase::kDraining);
  CompareCreate(Request("r3"));
  lifecycle_.Enter(executor::Lifecycle::Phase::kStarting);
  CompareCreate(Request("r3"));
}

TEST_F(HttpTest, GetListAndCancelAreWhatGrpcHas) {
  const std::string done = Submit("one");
  RunNext(3);
  const std::string waits = Submit("two");
  const std::string next = Submit("three");
  for (const std::string& id : {done, waits, next, std::string(kUnknownJob), std::string("x")}) {
    CompareGet(id);
  }
  CompareList({}, "");
  v1::ListCompileJobsRequest list;
  list.set_page_size(1);
  CompareList(list, "?pageSize=1");
  list.set_page_token(waits);
  CompareList(list, "?page_size=1&page_token=" + waits);
  list.Clear();
  list.add_states(v1::JOB_STATE_QUEUED);
  list.add_states(v1::JOB_STATE_SUCCEEDED);
  CompareList(list, "?states=JOB_STATE_QUEUED&states=3");
  list.set_page_size(5000);
  list.set_page_token("nonsense");
  list.add_states(static_cast<v1::JobState>(99));
  CompareList(list, "?states=1&states=3&states=99&pageSize=5000&pageToken=nonsense");
  list.Clear();
  list.add_cores("GRUS");
  list.add_labels("a");
  list.set_text("conf");
  list.mutable_created_from()->set_seconds(1'700'000'000);
  list.set_order(v1::JOB_ORDER_TOOK);
  list.set_reverse(true);
  list.set_with_totals(true);
  CompareList(list,
              "?cores=GRUS&labels=a&text=conf&createdFrom=2023-11-14T22:13:20Z"
              "&order=JOB_ORDER_TOOK&reverse=true&withTotals=true");
  list.Clear();
  list.set_mine(true);
  list.set_with_totals(true);
  CompareList(list, "?mine=true&with_totals=true");
  CompareCancel(next, "not needed");
  CompareCancel(done, "too late");
  CompareCancel(kUnknownJob, "");
  CompareCancel("x", "");
  CompareCancel(waits, std::string(1025, 'r'));
  CompareGet(next);
}

TEST_F(HttpTest, BlobsAreWhatGrpcHas) {
  const cache::BlobDigest digest{Sha256Hex(big_), big_.size()};
  v1::FindMissingBlobsRequest find;
  *find.add_digests() = Chunk(digest, 0, "").digest();
  *find.add_digests() = Chunk(digest, 0, "").digest();
  v1::FindMissingBlobsResponse missing;
  auto status = Call(&v1::BlobService::Stub::FindMissingBlobs, blobs_.get(), find, &missing);
  ExpectSame(status, missing, Post("/v1/blobs:findMissing", find));
  find.mutable_digests(1)->set_sha256("short");
  status = Call(&v1::BlobService::Stub::FindMissingBlobs, blobs_.get(), find, &missing);
  ExpectSame(status, missing, Post("/v1/blobs:findMissing", find));

  // A chunk by HTTP, repeated by gRPC: the same answer. Then one with a gap, by both.
  v1::UploadBlobResponse uploaded;
  auto result = PatchBlob(digest, 0, big_.substr(0, 1000));
  status = Upload({Chunk(digest, 0, big_.substr(0, 1000))}, &uploaded);
  ExpectSame(status, uploaded, result);
  EXPECT_EQ(uploaded.committed_bytes(), 1000);
  result = PatchBlob(digest, 2000, "x");
  ExpectSame(Upload({Chunk(digest, 2000, "x")}, &uploaded), uploaded, result);
  v1::QueryUploadRequest query;
  *query.mutable_digest() = find.digests(0);
  v1::QueryUploadResponse state;
  status = Call(&v1::BlobService::Stub::QueryUpload, blobs_.get(), query, &state);
  const std::string path =
      absl::StrCat("/v1/blobs/", digest.sha256, "?sizeBytes=", digest.size_bytes);
  ExpectSame(status, state, client_->Get(path));
  result = PatchBlob(digest, 1000, big_.substr(1000));
  status = Upload({Chunk(digest, 0, "")}, &uploaded);
  EXPECT_TRUE(uploaded.complete());
  ExpectSame(status, uploaded, result);

  const cache::BlobDigest of_a{Sha256Hex("a"), 1};
  ExpectSame(Upload({Chunk({"short", 1}, 0, "a")}, &uploaded), uploaded,
             PatchBlob({"short", 1}, 0, "a"));
  ExpectSame(Upload({Chunk(of_a, 0, "b")}, &uploaded), uploaded, PatchBlob(of_a, 0, "b"));
  ExpectSame(Upload({Chunk(of_a, -1, "a")}, &uploaded), uploaded, PatchBlob(of_a, -1, "a"));
  const std::string large((1 << 20) + 1, 'l');
  const cache::BlobDigest of_large{Sha256Hex(large), large.size()};
  ExpectSame(Upload({Chunk(of_large, 0, large)}, &uploaded), uploaded,
             PatchBlob(of_large, 0, large));
  inputs_.SetFull();
  ExpectSame(Upload({Chunk(of_a, 0, "a")}, &uploaded), uploaded, PatchBlob(of_a, 0, "a"));
}

TEST_F(HttpTest, InspectionsAreWhatGrpcHas) {
  v1::InspectModelRequest request;
  const auto compare = [&] {
    v1::InspectModelResponse response;
    const auto result = Post("/v1/models:inspect", request);
    const grpc::Status status =
        Call(&v1::CompileService::Stub::InspectModel, compile_.get(), request, &response);
    ExpectSame(status, response, result);
    return response;
  };
  const auto answer = [&](const std::string& json) {
    workers_.Set([json](const worker::WorkerJob&, worker::WorkerEvents&) {
      return executor::SucceedWith({{"inspection.json", json}, {"inspection.txt", "a text"}});
    });
  };
  compare();  // INVALID_FIELD
  const cache::BlobDigest model = inputs_.Put("model bytes", auth::kLocalTenant);
  request.set_model_name("net.onnx");
  request.mutable_model()->set_sha256(std::string(64, 'f'));
  compare();  // BLOB_MISSING
  request.mutable_model()->set_sha256(model.sha256);
  request.mutable_model()->set_size_bytes(static_cast<int64_t>(model.size_bytes));
  answer(R"({"format": "ONNX", "inputs": [{"shape": [1, null]}], "weights": 12345678901})");
  const v1::InspectModelResponse inspected = compare();
  EXPECT_EQ(inspected.inspection().fields().at("weights").number_value(), 12345678901);
  EXPECT_EQ(inspected.text(), "a text\n");
  // A hostile worker's.
  for (const char* const broken : {"", "no JSON", "[1]", "{\"a\": \"\xff\"}"}) {
    answer(broken);
    compare();
  }
  answer(std::string(500'000, '['));
  compare();
  workers_.Set([](const worker::WorkerJob&, worker::WorkerEvents&) {
    worker::WorkerOutcome outcome;
    outcome.kind = worker::WorkerOutcome::Kind::kFailed;
    outcome.diagnostics.push_back({DiagnosticKind::kEmptyModel, "no bytes"});
    return outcome;
  });
  const v1::InspectModelResponse refused = compare();
  EXPECT_FALSE(refused.has_inspection());
  EXPECT_EQ(refused.diagnostics(0).message(), "no bytes");
}

TEST_F(HttpTest, ServerInfoAndOperatorsAreWhatGrpcHas) {
  v1::GetServerInfoResponse info;
  auto status = Call(&v1::ServerInfoService::Stub::GetServerInfo, info_.get(), {}, &info);
  ExpectSame(status, info, client_->Get("/v1/server"));
  v1::GetServerInfoResponse cores;
  *cores.mutable_cores() = info.cores();
  ExpectSame(status, cores, client_->Get("/v1/cores"));
  v1::ListOperatorsRequest request;
  v1::ListOperatorsResponse ops;
  status = Call(&v1::ServerInfoService::Stub::ListOperators, info_.get(), request, &ops);
  ExpectSame(status, ops, client_->Get("/v1/ops"));
  EXPECT_GT(ops.operators_size(), 10);
  request.set_core("GRUS");
  request.set_framework("TF");
  status = Call(&v1::ServerInfoService::Stub::ListOperators, info_.get(), request, &ops);
  ExpectSame(status, ops, client_->Get("/v1/ops?core=GRUS&framework=TF"));
  v1::GetCallerResponse caller;
  status = Call(&v1::ServerInfoService::Stub::GetCaller, info_.get(), {}, &caller);
  ExpectSame(status, caller, client_->Get("/v1/caller"));
  EXPECT_EQ(caller.rights_size(), 4);
  request.set_core("NONE");
  status = Call(&v1::ServerInfoService::Stub::ListOperators, info_.get(), request, &ops);
  ExpectSame(status, ops, client_->Get("/v1/ops?core=NONE&framework=TF"));
}

TEST_F(HttpTest, ArtifactsAreWhatGrpcHas) {
  const std::string id = Submit();
  const std::string path = absl::StrCat("/v1/jobs/", id, "/artifacts/");
  std::string bytes;
  ExpectSameError(Download(id, "model.h", 0, &bytes), client_->Get(path + "model.h"));
  RunNext(0);
  const auto whole = client_->Get(path + "model.h");
  ASSERT_EQ(whole->status, 200);
  EXPECT_EQ(whole->body, big_);
  const std::string etag = absl::StrCat("\"", Sha256Hex(big_), "\"");
  EXPECT_EQ(whole->get_header_value("ETag"), etag);
  EXPECT_THAT(whole->get_header_value("Content-Disposition"), HasSubstr("attachment"));
  ExpectSameError(Download(id, "other.h", 0, &bytes), client_->Get(path + "other.h"));
  ExpectSameError(Download(id, "model.h", -1, &bytes), client_->Get(path + "model.h?offset=-1"));
  ExpectSameError(Download(id, "model.h", 750'001, &bytes),
                  client_->Get(path + "model.h?offset=750001"));
  for (const int64_t offset : {0, 1, 262'144, 699'999, 750'000}) {
    const auto rest = client_->Get(absl::StrCat(path, "model.h?offset=", offset));
    EXPECT_EQ(rest->body, big_.substr(static_cast<size_t>(offset)));
  }
  // cpp-httplib does not know that 304 has no body: on a connection of its own, which ends with it.
  EXPECT_EQ(httplib::Client("127.0.0.1", gateway_->port())
                .Get(path + "model.h", {{"If-None-Match", etag}})
                ->status,
            304);
  EXPECT_EQ(client_->Get(path + "model.h", {{"If-None-Match", "\"other\""}})->status, 200);
  const auto head = client_->Head(path + "model.h");
  EXPECT_EQ(head->get_header_value("Content-Length"), "750000");
  EXPECT_EQ(head->body, "");
  cache_.Clear();
  ExpectSameError(Download(id, "model.h", 0, &bytes), client_->Get(path + "model.h"));
}

TEST_F(HttpTest, RangesOfArtifacts) {
  const std::string id = Submit();
  RunNext(0);
  const std::string path = absl::StrCat("/v1/jobs/", id, "/artifacts/model.h");
  const auto get = [&](const std::string& range) { return client_->Get(path, {{"Range", range}}); };
  const auto part = get("bytes=699998-700001");
  EXPECT_EQ(part->status, 206);
  EXPECT_EQ(part->body, "aabb");
  EXPECT_EQ(part->get_header_value("Content-Range"), "bytes 699998-700001/750000");
  EXPECT_EQ(get("bytes=749999-")->body, "b");
  EXPECT_EQ(get("bytes=-3")->body, "bbb");
  EXPECT_EQ(get("bytes=0-9999999")->body, big_);
  const auto past = get("bytes=750000-");
  EXPECT_EQ(past->status, 416);
  EXPECT_EQ(past->get_header_value("Content-Range"), "bytes */750000");
  EXPECT_EQ(get("bytes=0-0,2-3")->body, big_);  // several: the whole
  const auto stale = client_->Get(path, {{"Range", "bytes=0-1"}, {"If-Range", "\"other\""}});
  EXPECT_EQ(stale->status, 200);
  EXPECT_EQ(stale->body, big_);
}

// Reads an event stream as a browser does: whole events alone count, the newest id is kept.
class EventReader {
 public:
  // False once `limit` bytes came: the connection breaks in the middle of whatever it is.
  bool Take(absl::string_view bytes, size_t limit) {
    const size_t fits = std::min(bytes.size(), limit - taken_);
    taken_ += fits;
    text_.append(bytes.data(), fits);
    for (size_t end = text_.find("\n\n"); end != std::string::npos; end = text_.find("\n\n")) {
      Event(text_.substr(0, end));
      text_.erase(0, end + 2);
    }
    return taken_ < limit;
  }
  void Reconnect() {
    text_.clear();
    taken_ = 0;
  }

  int64_t last_id = 0;
  std::vector<std::string> events;  // the JSON of kept ones
  std::string end;                  // "end" or "error"

 private:
  void Event(const std::string& block) {
    std::string id, data;
    for (const absl::string_view line : absl::StrSplit(block, '\n')) {
      if (absl::StartsWith(line, "id: ")) id = std::string(line.substr(4));
      if (absl::StartsWith(line, "data: ")) data = std::string(line.substr(6));
      if (absl::StartsWith(line, "event: ")) end = std::string(line.substr(7));
    }
    if (id.empty()) return;
    EXPECT_TRUE(absl::SimpleAtoi(id, &last_id));
    EXPECT_EQ(json::parse(data)["seq"], id);
    events.push_back(data);
  }

  std::string text_;
  size_t taken_ = 0;
};

TEST_F(HttpTest, EventsResumedAtAHundredRandomPointsLoseAndRepeatNothing) {
  constexpr int kLines = 400;
  constexpr int kCuts = 100;
  const std::string id = Submit();
  std::thread run([&] { RunNext(kLines); });  // while it is watched
  std::mt19937 random(20261121);              // NOLINT(*-msc51-cpp): the same cuts each time
  EventReader reader;
  int cuts = 0;
  while (reader.end != "end") {
    // Cut anywhere, also within the first bytes; the last connection lives to the end.
    const size_t limit = cuts < kCuts ? 1 + random() % 900 : SIZE_MAX;
    httplib::Headers headers;
    if (reader.last_id != 0) headers.emplace("Last-Event-ID", absl::StrCat(reader.last_id));
    reader.Reconnect();
    httplib::Client client("127.0.0.1", gateway_->port());
    bool served = false;
    client.Get(
        absl::StrCat("/v1/jobs/", id, "/events"), headers,
        [&](const httplib::Response& response) { return served = response.status == 200; },
        [&](const char* bytes, size_t size) {
          return reader.Take({bytes, size}, limit);
        });
    if (served && cuts < kCuts) ++cuts;
    ASSERT_NE(reader.end, "error");
  }
  run.join();
  EXPECT_EQ(cuts, kCuts);
  grpc::ClientContext context;
  v1::WatchCompileJobRequest request;
  request.set_job_id(id);
  const auto watch = compile_->WatchCompileJob(&context, request);
  v1::WatchCompileJobResponse response;
  std::vector<std::string> expected;
  while (watch->Read(&response)) {
    if (response.event().seq() != 0) expected.push_back(JsonOf(response.event()));
  }
  EXPECT_EQ(expected.size(), kLines + 4u);
  EXPECT_EQ(reader.events, expected);
}

TEST_F(HttpTest, EventErrorsAreWhatGrpcHas) {
  const std::string id = Submit();
  RunNext(1);
  std::string text;
  const auto events = [&](const std::string& job, const std::string& rest) {
    return client_->Get(absl::StrCat("/v1/jobs/", job, "/events", rest));
  };
  ExpectSameError(Watch(kUnknownJob, 1, &text), events(kUnknownJob, ""));
  ExpectSameError(Watch("x", 1, &text), events("x", ""));
  ExpectSameError(Watch(id, -1, &text), events(id, "?fromSeq=-1"));
  ExpectSameError(Watch(id, 99, &text), events(id, "?from_seq=99"));
  EXPECT_EQ(
      client_->Get(absl::StrCat("/v1/jobs/", id, "/events"), {{"Last-Event-ID", "x"}})->status,
      400);
  lifecycle_.Enter(executor::Lifecycle::Phase::kStarting);
  ExpectSameError(Watch(id, 1, &text), events(id, ""));
}

TEST_F(HttpTest, SilentStreamsHaveHeartbeatsAndDrainingEndsThem) {
  const std::string id = Submit();
  std::string text;
  bool drained = false;
  client_->Get(absl::StrCat("/v1/jobs/", id, "/events"), [&](const char* bytes, size_t size) {
    text.append(bytes, size);
    if (absl::StrContains(text, "heartbeat") && !drained) {
      drained = true;
      gateway_->EndStreams();
    }
    return true;
  });
  EXPECT_THAT(text, HasSubstr("queuePosition"));
  EXPECT_THAT(text, HasSubstr("event: error\ndata: {\"code\":14"));
  EXPECT_THAT(text, HasSubstr("DRAINING"));
  while (jobs_.hub().subscription_count() != 0) std::this_thread::yield();
}

class HttpOldStreamTest : public HttpTest {
 protected:
  HttpOldStreamTest() : HttpTest(auth::Authenticator::Everybody(), absl::Milliseconds(100)) {}
};

// As of gRPC, it ends with where to go on; the client comes back with Last-Event-ID anyway.
TEST_F(HttpOldStreamTest, StreamsHaveAGreatestAge) {
  const std::string id = Submit();
  std::string text;
  client_->Get(absl::StrCat("/v1/jobs/", id, "/events"), [&](const char* bytes, size_t size) {
    text.append(bytes, size);
    return true;
  });
  EXPECT_THAT(text, HasSubstr("id: 1\n"));
  EXPECT_THAT(text, HasSubstr("event: error\ndata: {\"code\":14"));
  EXPECT_THAT(text, HasSubstr("\"reason\":\"REATTACH\""));
  EXPECT_THAT(text, HasSubstr("\"next_seq\":\"2\""));
}

TEST_F(HttpTest, TooManyStreamsOfOneAreRefusedAndOthersStillServed) {
  const std::string id = Submit();
  std::vector<std::thread> watchers;
  for (size_t i = 0; i < http::kMaxEventStreamsOfOne; ++i) {
    watchers.emplace_back([&] {
      httplib::Client client("127.0.0.1", gateway_->port());
      client.Get(absl::StrCat("/v1/jobs/", id, "/events"),
                 [](const char*, size_t) { return true; });
    });
  }
  while (jobs_.hub().subscription_count() < http::kMaxEventStreamsOfOne) std::this_thread::yield();
  const auto refused = client_->Get(absl::StrCat("/v1/jobs/", id, "/events"));
  EXPECT_EQ(refused->status, 429);
  EXPECT_EQ(refused->get_header_value("Retry-After"), "1");
  EXPECT_EQ(client_->Get("/v1/server")->status, 200);
  gateway_->EndStreams();
  for (std::thread& watcher : watchers) watcher.join();
}

std::string ReasonOf(const httplib::Result& result) {
  return json::parse(result->body)["details"][0]["reason"].get<std::string>();
}

// What the server answers to bytes that no client library would send.
std::string Raw(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  shutdown(fd, SHUT_WR);
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return answer;
}

TEST_F(HttpTest, EachRouteOfTheProtosIsServed) {
  size_t routes = 0;
  for (const char* const file : {"blob", "compile", "server_info", "admin"}) {
    const auto* const proto = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
        absl::StrCat("npuc/v1/", file, ".proto"));
    ASSERT_NE(proto, nullptr) << file;
    for (int s = 0; s < proto->service_count(); ++s) {
      for (int m = 0; m < proto->service(s)->method_count(); ++m) {
        const auto* const method = proto->service(s)->method(m);
        for (const rpc::HttpRoute& route : method->options().GetRepeatedExtension(rpc::http)) {
          const std::string path = std::regex_replace(route.path(), std::regex("\\{[^}]*\\}"), "x");
          const auto result = client_->Delete(path);  // which no route has, so that nothing runs
          ASSERT_TRUE(result) << path;
          const std::vector<std::string> allowed =
              absl::StrSplit(result->get_header_value("Allow"), ", ");
          EXPECT_THAT(allowed, ::testing::Contains(route.method()))
              << method->full_name() << ": is it in ForEachMethod or ForEachAdminMethod?";
          ++routes;
        }
      }
    }
  }
  EXPECT_GT(routes, 15);
}

TEST_F(HttpTest, WhatIsNotValidHttpIsTyped) {
  EXPECT_THAT(Raw(gateway_->port(), "NONSENSE\r\n\r\n"), HasSubstr("INVALID_HTTP"));
  EXPECT_THAT(Raw(gateway_->port(),
                  "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  "Content-Type: application/json\r\nContent-Length: 4194305\r\n\r\n"),
              HasSubstr("BODY_TOO_LARGE"));
}

TEST_F(HttpTest, BadRequestsAreTyped) {
  const auto reason = ReasonOf;
  auto result = client_->Post("/v1/jobs", "{", "application/json");
  EXPECT_EQ(result->status, 400);
  EXPECT_EQ(reason(result), "INVALID_JSON");
  EXPECT_EQ(reason(client_->Post("/v1/jobs", "{\"nonsense\": 1}", "application/json")),
            "INVALID_JSON");
  const std::string deep(100'000, '[');
  EXPECT_EQ(reason(client_->Post("/v1/jobs", deep, "application/json")), "INVALID_JSON");
  EXPECT_EQ(reason(client_->Post("/v1/jobs", "{}", "text/plain")), "WRONG_CONTENT_TYPE");
  EXPECT_EQ(reason(client_->Get("/v1/jobs?nonsense=1")), "INVALID_FIELD");
  EXPECT_EQ(reason(client_->Get("/v1/jobs?pageSize=x")), "INVALID_FIELD");
  EXPECT_EQ(reason(client_->Get("/v1/nothing")), "NO_SUCH_PATH");
  result = client_->Delete("/v1/jobs");
  EXPECT_EQ(result->status, 405);
  EXPECT_EQ(result->get_header_value("Allow"), "POST, GET");
  EXPECT_EQ(reason(result), "WRONG_METHOD");
  result = client_->Post("/v1/jobs", std::string((4 << 20) + 1, ' '), "application/json");
  if (result) {
    EXPECT_EQ(result->status, 413);
  }  // else the server hung up on it
  httplib::Headers many;
  for (int i = 0; i < 4000; ++i) many.emplace(absl::StrCat("X-", i), "v");
  httplib::Client greedy("127.0.0.1", gateway_->port());
  const auto refused = greedy.Get("/v1/server", many);
  EXPECT_TRUE(!refused || refused->status == 431);
  result = client_->Get("/" + std::string(2000, 'p'));
  EXPECT_EQ(result->status, 414);
  EXPECT_EQ(reason(result), "PATH_TOO_LONG");
  result = client_->Post("/v1/jobs", {{"Content-Encoding", "gzip"}}, "{}", "application/json");
  EXPECT_EQ(result->status, 415);
  EXPECT_EQ(reason(result), "WRONG_CONTENT_ENCODING");
}

TEST_F(HttpTest, PagesOfOtherSitesAreRefused) {
  const auto refused = client_->Get("/v1/server", {{"Host", "evil.example"}});
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(ReasonOf(refused), "ORIGIN_REFUSED");
  EXPECT_EQ(client_->Get("/v1/server", {{"Origin", "https://evil.example"}})->status, 403);
  EXPECT_EQ(client_->Get("/v1/server", {{"Sec-Fetch-Site", "cross-site"}})->status, 403);
  const std::string own = absl::StrCat("http://127.0.0.1:", gateway_->port());
  EXPECT_EQ(client_->Get("/v1/server", {{"Origin", own}})->status, 200);
  const auto page = client_->Get("/");
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, HasSubstr("dashboard is not built"));
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  for (const char* path : {"/", "/v1/server", "/v1/nothing"}) {
    const auto result = client_->Get(path);
    EXPECT_EQ(result->get_header_value("X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(result->get_header_value("X-Frame-Options"), "DENY") << path;
    EXPECT_TRUE(result->has_header("Content-Security-Policy")) << path;
  }
}

std::string Token(const std::string& name) { return name + "-0123456789-0123456789-0123456789"; }

class HttpTokensTest : public HttpTest {
 protected:
  HttpTokensTest() : HttpTest(Make()) {}

  static std::unique_ptr<auth::Authenticator> Make() {
    const std::string path = ::testing::TempDir() + "/http.tenants.yaml";
    std::ofstream(path)
        << "format: 1\ntenants:\n  a:\n    identities:\n      reader: {token_sha256: "
        << Sha256Hex(Token("reader")) << ", rights: [read]}\n";
    return *auth::Authenticator::FromFile(path, [] { return absl::Now(); });
  }
};

TEST_F(HttpTokensTest, IdentitiesAreThoseOfGrpc) {
  for (const char* name : {"none", "unknown", "reader"}) {
    const bool none = absl::string_view(name) == "none";
    httplib::Headers headers;
    if (!none) headers.emplace("Authorization", "Bearer " + Token(name));
    const auto add = [&](grpc::ClientContext& context) {
      if (!none) context.AddMetadata("authorization", "Bearer " + Token(name));
    };
    grpc::ClientContext list_context;
    add(list_context);
    v1::ListCompileJobsResponse jobs;
    ExpectSame(compile_->ListCompileJobs(&list_context, {}, &jobs), jobs,
               client_->Get("/v1/jobs", headers));
    grpc::ClientContext create_context;
    add(create_context);
    v1::CreateCompileJobResponse created;
    ExpectSame(compile_->CreateCompileJob(&create_context, {}, &created), created,
               client_->Post("/v1/jobs", headers, "{}", "application/json"));
  }
  EXPECT_EQ(client_->Get("/v1/jobs")->get_header_value("WWW-Authenticate"), "Bearer");
}

// Which of two counts would be a guess; both refuse, though the first is right.
TEST_F(HttpTokensTest, TwoTokensAreRefused) {
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + Token("reader"));
  context.AddMetadata("authorization", "Bearer " + Token("other"));
  v1::ListCompileJobsResponse jobs;
  const grpc::Status status = compile_->ListCompileJobs(&context, {}, &jobs);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(rpc::ReasonOf(status), "AMBIGUOUS_IDENTITY");
  ExpectSameError(status, client_->Get("/v1/jobs", {{"Authorization", "Bearer " + Token("reader")},
                                                    {"Authorization", "Bearer x"}}));
}

// No byte of a body is asked for, or waited for, before the identity is known.
TEST_F(HttpTokensTest, TheIdentityComesBeforeTheBody) {
  const std::string head =
      "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 4000000\r\n";
  EXPECT_THAT(Raw(gateway_->port(), head + "\r\n"), HasSubstr("401 Unauthorized"));
  EXPECT_THAT(Raw(gateway_->port(), head + "Content-Encoding: gzip\r\n\r\n"),
              HasSubstr("401 Unauthorized"));
}

TEST_F(HttpTokensTest, ManyWrongTokensAreToldToComeLaterAndRightOnesAreServed) {
  const httplib::Headers wrong = {{"Authorization", "Bearer " + Token("guess")}};
  int later = 0;
  for (int i = 0; i < 60; ++i) {
    const auto result = client_->Get("/v1/jobs", wrong);
    ASSERT_TRUE(result);
    if (result->status != 429) continue;
    ++later;
    EXPECT_EQ(ReasonOf(result), "TOO_MANY_ATTEMPTS");
    EXPECT_TRUE(result->has_header("Retry-After"));
    EXPECT_EQ(result->get_header_value("Connection"), "close");
  }
  EXPECT_GE(later, 30);
  EXPECT_EQ(client_->Get("/v1/jobs", {{"Authorization", "Bearer " + Token("reader")}})->status,
            200);
}

TEST_F(HttpTest, AListIsCompressedCheaplyAndCachesAreTold) {
  const auto plain = client_->Get("/v1/ops", {{"Accept-Encoding", "identity"}});
  EXPECT_EQ(plain->get_header_value("Vary"), "Accept-Encoding");
  EXPECT_FALSE(plain->has_header("Content-Encoding"));
  const auto packed = client_->Get("/v1/ops", {{"Accept-Encoding", "gzip, br"}});
  EXPECT_EQ(packed->get_header_value("Vary"), "Accept-Encoding");
  EXPECT_EQ(packed->get_header_value("Content-Encoding"), "gzip");
  EXPECT_EQ(packed->body, plain->body);  // the client inflates
}

}  // namespace
}  // namespace npuc::rpc
