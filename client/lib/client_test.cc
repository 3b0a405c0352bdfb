#include "client/lib/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/lib/fake_server.h"
#include "client/lib/service_error.h"
#include "compiler_core/base/digest.h"

namespace npuc::client {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// Bytes that differ from place to place, so that a chunk in the wrong place shows.
std::string SomeBytes(size_t count) {
  std::string bytes(count, '\0');
  uint32_t x = 12345;
  for (char& c : bytes) {
    x = x * 1664525 + 1013904223;
    c = static_cast<char>(x >> 24);
  }
  return bytes;
}

class ClientTest : public testing::TestWithParam<FakeServer::Break> {
 protected:
  ClientTest() {
    folder_ = testing::TempDir() + "client_test_" + NewRequestId();
    fs::create_directories(folder_);
    server_.Succeed(SomeBytes(50000));
    options_.server = server_.address();
    options_.chunk_bytes = 1000;
    options_.retry.first_delay = absl::Milliseconds(1);
  }
  ~ClientTest() override { fs::remove_all(folder_); }

  Client& client() {
    if (client_ == nullptr) {
      auto made = Client::Create(options_);
      EXPECT_TRUE(made.ok()) << made.status();
      client_ = *std::move(made);
    }
    return *client_;
  }

  LocalFile WriteFile(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    auto file = DescribeFile(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return *file;
  }

  std::string ReadBack(const std::string& name) {
    auto bytes = ReadWholeFile(folder_ + "/" + name, 1 << 20);
    return bytes.ok() ? *bytes : bytes.status().ToString();
  }

  v1::CompileJobSpec SpecOf(const LocalFile& file) {
    v1::CompileJobSpec spec;
    spec.mutable_model()->set_sha256(file.sha256);
    spec.mutable_model()->set_size_bytes(file.size_bytes);
    return spec;
  }

  // A job on the server.
  v1::CompileJob SomeJob() {
    const LocalFile file = WriteFile("model.pb", "model");
    auto job = client().Submit(SpecOf(file), {file}, NewRequestId(), nullptr);
    EXPECT_TRUE(job.ok()) << job.status();
    return *job;
  }

  std::vector<v1::Artifact> ArtifactsOf(const v1::CompileJob& job) {
    return {job.artifacts().begin(), job.artifacts().end()};
  }

  size_t FilesInFolder() {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_;
  FakeServer server_;
  ClientOptions options_;
  std::unique_ptr<Client> client_;
};

INSTANTIATE_TEST_SUITE_P(Breaks, ClientTest,
                         testing::Values(FakeServer::Break::kUnavailable,
                                         FakeServer::Break::kReset),
                         [](const auto& info) {
                           return info.param == FakeServer::Break::kReset ? "Reset" : "Unavailable";
                         });

TEST_P(ClientTest, UploadGoesOnAtTheCommittedOffset) {
  const LocalFile file = WriteFile("model.pb", SomeBytes(100500));
  server_.script.how = GetParam();
  server_.script.break_uploads = 7;
  server_.script.break_upload_after = 12000;
  int64_t last = -1;
  ASSERT_TRUE(client()
                  .Upload({file},
                          [&](int64_t done, int64_t total) {
                            EXPECT_GT(done, last);
                            EXPECT_EQ(total, 100500);
                            last = done;
                          })
                  .ok());
  EXPECT_EQ(last, 100500);
  EXPECT_EQ(server_.blobs[file.sha256], ReadBack("model.pb"));
  EXPECT_EQ(server_.upload_streams, 8);
  // Of each broken stream the chunk that met the break came twice, and no more.
  EXPECT_EQ(server_.uploaded_bytes, 100500 + 7 * 1000);
}

TEST_P(ClientTest, UploadsOnlyWhatIsMissing) {
  const LocalFile one = WriteFile("one", "first");
  const LocalFile two = WriteFile("two", "second");
  const LocalFile empty = WriteFile("empty", "");
  server_.blobs[one.sha256] = "first";
  ASSERT_TRUE(client().Upload({one, two, empty, two}, nullptr).ok());
  EXPECT_EQ(server_.uploaded_bytes, 6);
  EXPECT_EQ(server_.blobs.count(empty.sha256), 1);
}

TEST_P(ClientTest, UploadGivesUpOnAServerThatBreaksEveryStreamAtOnce) {
  const LocalFile file = WriteFile("model.pb", SomeBytes(5000));
  server_.script.how = GetParam();
  server_.script.break_uploads = 1 << 30;
  absl::Time now = absl::FromUnixSeconds(1000);
  options_.retry.now = [&] { return now; };
  options_.retry.sleep = [&](absl::Duration d) { now += d; };
  const absl::Status status = client().Upload({file}, nullptr);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(Classify(status), RetryClass::kNever) << status;
}

TEST_P(ClientTest, AFileThatChangedIsNotSubmitted) {
  LocalFile file = WriteFile("model.pb", SomeBytes(5000));
  WriteFile("model.pb", SomeBytes(4999));
  EXPECT_EQ(client().Upload({file}, nullptr).code(), absl::StatusCode::kFailedPrecondition);
  WriteFile("model.pb", std::string(5000, 'x'));
  EXPECT_EQ(client().Upload({file}, nullptr).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(ClientTest, ALostAnswerMakesNoSecondJob) {
  const LocalFile file = WriteFile("model.pb", "model");
  server_.script.how = GetParam();
  server_.script.lose_create_answers = 5;
  const auto job = client().Submit(SpecOf(file), {file}, "request-1", nullptr);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->job_id(), "j1");
  EXPECT_EQ(server_.jobs.size(), 1);
  EXPECT_EQ(server_.create_calls, 6);
}

TEST_P(ClientTest, BlobsThatWereEvictedAreUploadedAgain) {
  const LocalFile file = WriteFile("model.pb", "model");
  server_.script.forget_blobs_at_create = 2;
  EXPECT_TRUE(client().Submit(SpecOf(file), {file}, "r", nullptr).ok());
  EXPECT_EQ(server_.upload_streams, 3);
  server_.script.forget_blobs_at_create = 1 << 30;
  const auto job = client().Submit(SpecOf(file), {file}, "s", nullptr);
  EXPECT_EQ(ServiceErrorOf(job.status()).reason, "BLOB_MISSING");
}

TEST_P(ClientTest, WatchHasEachEventOnceWhateverBreaks) {
  const v1::CompileJob job = SomeJob();
  server_.script.how = GetParam();
  server_.script.break_watches = 5;
  server_.script.break_watch_after = 1;
  std::vector<int64_t> seqs;
  ASSERT_TRUE(
      client()
          .Watch(job.job_id(), 0, [&](const v1::JobEvent& event) { seqs.push_back(event.seq()); })
          .ok());
  EXPECT_THAT(seqs, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(server_.watch_streams, 6);
}

TEST_P(ClientTest, AStreamThatGotOldIsBegunAnewWithoutAWord) {
  int outages = 0;
  options_.retry.on_outage = [&](const absl::Status&, absl::Duration) { ++outages; };
  options_.retry.reconnect_wait = absl::Milliseconds(100);
  const v1::CompileJob job = SomeJob();
  server_.script.how = FakeServer::Break::kReattach;
  server_.script.break_watches = 5;
  server_.script.break_watch_after = 1;
  std::vector<int64_t> seqs;
  const auto note = [&](const v1::JobEvent& event) { seqs.push_back(event.seq()); };
  ASSERT_TRUE(client().Watch(job.job_id(), 0, note).ok());
  EXPECT_THAT(seqs, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(outages, 0);
  // A server that asks for it at once, again and again, is given up.
  server_.script.break_watches = 1000000;
  server_.script.break_watch_after = 0;
  EXPECT_FALSE(client().Watch(job.job_id(), 0, note).ok());
  EXPECT_EQ(outages, 1);
}

TEST_P(ClientTest, WatchBeginsWhereItIsTold) {
  const v1::CompileJob job = SomeJob();
  std::vector<int64_t> seqs;
  ASSERT_TRUE(
      client()
          .Watch(job.job_id(), 4, [&](const v1::JobEvent& event) { seqs.push_back(event.seq()); })
          .ok());
  EXPECT_THAT(seqs, ElementsAre(4, 5, 6));
}

TEST_P(ClientTest, WatchGoesOnAfterTheServerWasRestarted) {
  const v1::CompileJob job = SomeJob();
  std::vector<int64_t> seqs;
  ASSERT_TRUE(client()
                  .Watch(job.job_id(), 1,
                         [&](const v1::JobEvent& event) {
                           seqs.push_back(event.seq());
                           if (event.seq() == 1 || event.seq() == 4) server_.Restart();
                         })
                  .ok());
  EXPECT_THAT(seqs, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_P(ClientTest, AGapInTheEventsIsAnError) {
  const v1::CompileJob job = SomeJob();
  server_.script.skip_seq = 3;
  std::vector<int64_t> seqs;
  const absl::Status status = client().Watch(
      job.job_id(), 1, [&](const v1::JobEvent& event) { seqs.push_back(event.seq()); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(seqs, ElementsAre(1, 2));
}

TEST_P(ClientTest, AnInterruptEndsAWatch) {
  const v1::CompileJob job = SomeJob();
  client_ = nullptr;
  server_.script.hang_watches = true;
  bool interrupted = false;
  options_.retry.is_interrupted = [&] { return interrupted; };
  int beats = 0;
  const absl::Status status = client().Watch(job.job_id(), 1, [&](const v1::JobEvent& event) {
    interrupted = interrupted || (event.has_heartbeat() && ++beats == 3);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST_P(ClientTest, ASilentServerIsLeft) {
  const v1::CompileJob job = SomeJob();
  client_ = nullptr;
  options_.retry.max_odd_failures = 1;
  options_.silence_timeout = absl::Milliseconds(30);
  // The handler waits for this lock before it sends anything.
  server_.mutex.lock();
  const absl::Status status = client().Watch(job.job_id(), 1, [](const v1::JobEvent&) {});
  server_.mutex.unlock();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(ClientTest, FetchGoesOnAtTheOffsetReached) {
  const v1::CompileJob job = SomeJob();
  server_.script.how = GetParam();
  server_.script.break_downloads = 9;
  server_.script.break_download_after = 3000;
  ASSERT_TRUE(client().Fetch(job.job_id(), ArtifactsOf(job), folder_, nullptr).ok());
  EXPECT_EQ(ReadBack("model.h"), SomeBytes(50000));
  if (GetParam() == FakeServer::Break::kUnavailable) {
    EXPECT_EQ(server_.downloaded_bytes, 50000);  // not one byte twice
  }
}

TEST_P(ClientTest, FetchGoesOnAfterTheServerWasRestarted) {
  const v1::CompileJob job = SomeJob();
  bool restarted = false;
  ASSERT_TRUE(client()
                  .Fetch(job.job_id(), ArtifactsOf(job), folder_,
                         [&](int64_t done, int64_t) {
                           if (done < 20000 || restarted) return;
                           restarted = true;
                           server_.Restart();
                         })
                  .ok());
  EXPECT_TRUE(restarted);
  EXPECT_EQ(ReadBack("model.h"), SomeBytes(50000));
}

TEST_P(ClientTest, DamagedBytesReplaceNothing) {
  const v1::CompileJob job = SomeJob();
  WriteFile("model.h", "what was there before");
  const size_t files = FilesInFolder();
  server_.script.corrupt_downloads = true;
  EXPECT_EQ(client().Fetch(job.job_id(), ArtifactsOf(job), folder_, nullptr).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadBack("model.h"), "what was there before");
  EXPECT_EQ(FilesInFolder(), files);
}

TEST_P(ClientTest, NoArtifactIsPutInPlaceBeforeAllAreThere) {
  v1::CompileJob job = SomeJob();
  v1::Artifact* missing = job.add_artifacts();
  *missing = job.artifacts(0);
  missing->set_name("other.h");  // the server has no bytes of it
  const size_t files = FilesInFolder();
  options_.retry.max_odd_failures = 1;
  client_ = nullptr;
  EXPECT_FALSE(client().Fetch(job.job_id(), ArtifactsOf(job), folder_, nullptr).ok());
  EXPECT_EQ(FilesInFolder(), files);
}

TEST_P(ClientTest, NamesThatLeaveTheFolderAreRefused) {
  v1::CompileJob job = SomeJob();
  for (const char* name : {"../evil", "/etc/evil", ".hidden", "", "a\nb", "a/b"}) {
    job.mutable_artifacts(0)->set_name(name);
    EXPECT_EQ(client().Fetch(job.job_id(), ArtifactsOf(job), folder_, nullptr).code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
}

TEST_P(ClientTest, ShortOutagesOfUnaryCallsAreNotSeen) {
  const v1::CompileJob job = SomeJob();
  server_.script.how = GetParam();
  server_.script.fail_unary = 4;
  EXPECT_TRUE(client().GetJob(job.job_id()).ok());
  server_.script.fail_unary = 4;
  EXPECT_TRUE(client().CancelJob(job.job_id(), "why").ok());
  EXPECT_EQ(client().GetJob("j999").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ServiceErrorOf(client().GetJob("j999").status()).reason, "JOB_NOT_FOUND");
}

TEST_P(ClientTest, ListsOverPages) {
  for (int i = 0; i < 3; ++i) SomeJob();
  EXPECT_EQ(client().ListJobs({}, 100)->size(), 3);
  EXPECT_EQ(client().ListJobs({}, 2)->size(), 2);
}

TEST_P(ClientTest, AServerThatIsNotThereIsUnavailable) {
  server_.Stop();
  absl::Time now = absl::FromUnixSeconds(1000);
  options_.retry.now = [&] { return now; };
  options_.retry.sleep = [&](absl::Duration d) { now += d; };
  EXPECT_EQ(client().GetServerInfo().status().code(), absl::StatusCode::kUnavailable);
}

TEST_P(ClientTest, ATraceparentGoesWithEachCallWhereItIsOne) {
  options_.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  ASSERT_TRUE(client().GetServerInfo().ok());
  EXPECT_EQ(server_.traceparent, options_.traceparent);
}

TEST_P(ClientTest, AMalformedTraceparentIsNotSent) {
  options_.traceparent = "nonsense\n";
  ASSERT_TRUE(client().GetServerInfo().ok());
  EXPECT_EQ(server_.traceparent, "");
}

TEST_P(ClientTest, ATokenGoesToThisMachineOrOverTlsOnly) {
  options_.token = "secret";
  ASSERT_TRUE(client().GetServerInfo().ok());
  EXPECT_EQ(server_.authorization, "Bearer secret");
  options_.server = "example.com:443";
  const absl::Status status = Client::Create(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::Not(testing::HasSubstr("secret")));
  options_.tls = true;
  EXPECT_TRUE(Client::Create(options_).ok());
  options_.token = "two\nlines";
  EXPECT_EQ(Client::Create(options_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(ClientTest, GoesOnAtAnotherServerWithoutWaiting) {
  FakeServer second;
  second.Succeed(SomeBytes(50000));
  options_.server = absl::StrCat(server_.address(), ",", second.address());
  int waits = 0;
  options_.retry.sleep = [&](absl::Duration) { ++waits; };
  const v1::CompileJob job = SomeJob();
  EXPECT_EQ(server_.create_calls, 1);
  // Both are nodes of one cluster.
  second.jobs = server_.jobs;
  server_.Stop();
  EXPECT_TRUE(client().GetJob(job.job_id()).ok());
  std::vector<int64_t> seqs;
  ASSERT_TRUE(
      client()
          .Watch(job.job_id(), 0, [&](const v1::JobEvent& event) { seqs.push_back(event.seq()); })
          .ok());
  EXPECT_THAT(seqs, testing::ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_TRUE(client().Fetch(job.job_id(), ArtifactsOf(job), folder_, nullptr).ok());
  EXPECT_EQ(ReadBack("model.h"), SomeBytes(50000));
  EXPECT_EQ(waits, 0);
}

TEST_P(ClientTest, AStreamThatBreaksGoesOnAtAnotherServer) {
  FakeServer second;
  second.Succeed(SomeBytes(50000));
  options_.server = absl::StrCat(server_.address(), ",", second.address());
  const v1::CompileJob job = SomeJob();
  second.jobs = server_.jobs;
  server_.script.how = GetParam();
  server_.script.break_watches = 1;
  server_.script.break_watch_after = 3;
  server_.script.break_downloads = 1;
  server_.script.break_download_after = 20000;
  ASSERT_TRUE(client().Fetch(job.job_id(), ArtifactsOf(job), folder_, nullptr).ok());
  EXPECT_EQ(ReadBack("model.h"), SomeBytes(50000));
  EXPECT_EQ(second.downloaded_bytes > 0 && second.downloaded_bytes < 50000, true);
}

TEST(ClientOptionsTest, AddressesAreChecked) {
  for (const char* server : {"", "host", "host:", "host:0", "host:99999", ":1", "a/b:1", "::1:5",
                             "a:1,", "a:1,b", ",a:1", "a:1, b:2"}) {
    EXPECT_FALSE(Client::Create({.server = server}).ok()) << server;
  }
  for (const char* server : {"127.0.0.1:1", "localhost:80", "[::1]:80", "unix:/tmp/x"}) {
    EXPECT_TRUE(Client::Create({.server = server}).ok()) << server;
    EXPECT_TRUE(IsLoopback(server)) << server;
  }
  EXPECT_TRUE(Client::Create({.server = "127.0.0.1:1,localhost:80"}).ok());
  // A token goes to no server of a list that is another machine.
  EXPECT_FALSE(Client::Create({.server = "127.0.0.1:1,example.com:80", .token = "t"}).ok());
  for (const char* server : {"10.0.0.1:1", "127.example.com:80", "localhost.evil.org:80"}) {
    EXPECT_FALSE(IsLoopback(server)) << server;
  }
}

TEST(LocalFileTest, OnlyRegularFilesAreRead) {
  EXPECT_EQ(DescribeFile("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DescribeFile(testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DescribeFile("/nonexistent/file").status().code(), absl::StatusCode::kNotFound);
}

TEST(LocalFileTest, AWholeFileIsReadUpToItsLimit) {
  const std::string path = testing::TempDir() + "/whole_file";
  for (const size_t size : {0, 1, 1 << 20, (1 << 20) + 1, 5 << 20}) {
    const std::string bytes = SomeBytes(size);
    std::ofstream(path, std::ios::binary) << bytes;
    for (const size_t limit : {size, size + 1, size_t{1} << 30}) {
      const auto read = ReadWholeFile(path, limit);
      ASSERT_TRUE(read.ok()) << size << " of " << limit << ": " << read.status();
      EXPECT_EQ(*read, bytes) << size << " of " << limit;
    }
    if (size == 0) continue;
    EXPECT_EQ(ReadWholeFile(path, size - 1).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

}  // namespace
}  // namespace npuc::client
