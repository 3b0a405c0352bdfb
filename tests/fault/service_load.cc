#include "tests/fault/service_load.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/client.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "npuc/rpc/status_details.pb.h"
#include "npuc/v1/blob.grpc.pb.h"
#include "tests/fault/daemon_process.h"

namespace npuc::fault {
namespace {

constexpr char kLogArtifact[] = "compile.log";  // its content depends on when and where it was made
constexpr int64_t kModelInfoTime = 1700000000;
constexpr absl::Duration kCallTimeout = absl::Seconds(30);
constexpr absl::Duration kStreamTimeout = absl::Seconds(60);
// Where another node can answer, one that is silent is left sooner.
constexpr absl::Duration kNodePatience = absl::Seconds(8);
constexpr absl::Duration kJobPatience = absl::Minutes(3);
constexpr size_t kMaxBroken = 100;
// A job that is under way as the daemon dies so often ends FAILED (RetryLimits of server/jobs).
constexpr int kDaemonLosses = 10;

bool IsEnd(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED || state == v1::JOB_STATE_EXPIRED;
}

v1::JobState StateOf(const v1::CompileJob& job) {
  if (job.has_succeeded()) return v1::JOB_STATE_SUCCEEDED;
  if (job.has_failed()) return v1::JOB_STATE_FAILED;
  if (job.has_cancelled()) return v1::JOB_STATE_CANCELLED;
  if (job.has_expired()) return v1::JOB_STATE_EXPIRED;
  return job.has_running() ? v1::JOB_STATE_RUNNING : v1::JOB_STATE_QUEUED;
}

std::map<std::string, std::string> DigestsOf(const v1::CompileJob& job) {
  std::map<std::string, std::string> digests;
  for (const v1::Artifact& artifact : job.artifacts()) {
    if (artifact.name() != kLogArtifact) digests[artifact.name()] = artifact.sha256();
  }
  return digests;
}

template <typename Detail>
std::optional<Detail> DetailOf(const grpc::Status& status) {
  rpc::Status details;
  details.ParseFromString(status.error_details());
  Detail detail;
  const std::string url = "type.googleapis.com/google.rpc." + detail.GetDescriptor()->name();
  for (const auto& any : details.details()) {
    if (any.type_url() == url && detail.ParseFromString(any.value())) return detail;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::vector<LoadVariant>> ReadVariants(const std::vector<std::string>& configs) {
  std::vector<LoadVariant> variants;
  for (const std::string& config : configs) {
    Diagnostics diagnostics;
    ASSIGN_OR_RETURN(remote::JobInput input, remote::ReadJobInput(config, diagnostics));
    input.spec.mutable_model_info_time()->set_seconds(kModelInfoTime);
    variants.push_back({.input = std::move(input)});
  }
  return variants;
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // The middle one is also how long a connection may take, which is long on a machine under load.
  // As an address and no name: names are resolved again every 30 s at most.
  return grpc::CreateCustomChannel("ipv4:" + address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

std::string ReasonOf(const grpc::Status& status) {
  const auto info = DetailOf<rpc::ErrorInfo>(status);
  return info.has_value() ? info->reason() : "";
}

bool IsRetryable(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return true;
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
         DetailOf<rpc::RetryInfo>(status).has_value();
}

// A job that was accepted, and what was seen of it.
struct ServiceLoad::Record {
  std::string job_id = {};
  std::string request_id = {};
  size_t variant = 0;
  bool cancel_sent = false;
  std::vector<std::string> events = {};  // serialized, by seq - 1
};

// One client: one job after another, on a connection of its own.
class ServiceLoad::Client {
 public:
  Client(ServiceLoad* load, uint64_t seed)
      : load_(load), random_(seed), channels_(load->OpenChannels()) {
    for (const auto& channel : channels_) {
      stubs_.push_back(v1::CompileService::NewStub(channel));
      blobs_.push_back(v1::BlobService::NewStub(channel));
    }
  }

  void Loop() {
    while (!load_->stop_) OneJob();
  }

 private:
  bool Percent(uint64_t percent) { return random_() % 100 < percent; }
  v1::CompileService::Stub& AnyNode() { return *stubs_[random_() % stubs_.size()]; }

  // Calls until OK, or a code that `ends`, or patience is out. False: it is out.
  template <typename Call>
  bool Persist(const char* name, Call call) {
    const absl::Time limit = absl::Now() + kJobPatience;
    while (absl::Now() < limit) {
      if (load_->abandoned_) return false;
      const grpc::Status status = call();
      if (status.ok()) return true;
      if (!load_->CountError(status, name)) return false;
      Pause(absl::Milliseconds(static_cast<int64_t>(5 + random_() % 40)));
    }
    load_->Break(
        absl::StrCat(name, " finds no answer within ", absl::FormatDuration(kJobPatience)));
    return false;
  }

  void OneJob() {
    Record record{.request_id = client::NewRequestId(),
                  .variant = random_() % load_->variants_->size()};
    v1::CreateCompileJobRequest request;
    request.set_request_id(record.request_id);
    *request.mutable_spec() = (*load_->variants_)[record.variant].input.spec;
    request.mutable_spec()->set_no_cache(Percent(60));
    request.mutable_spec()->set_priority(static_cast<int32_t>(random_() % 5));
    if (!Submit(request, record)) return;
    if (Percent(20) && !Submit(request, record)) return;
    if (Percent(15)) Cancel(record);
    const bool fetches = Percent(15);
    if (Watch(record)) CheckEnd(record, fetches);
    const std::lock_guard<std::mutex> lock(load_->mutex_);
    load_->accepted_[record.job_id] = std::move(record);
  }

  bool Submit(const v1::CreateCompileJobRequest& request, Record& record) {
    v1::CreateCompileJobResponse response;
    const bool answered = Persist("CreateCompileJob", [&] {
      grpc::ClientContext context;
      load_->SetCall(context, kCallTimeout);
      return AnyNode().CreateCompileJob(&context, request, &response);
    });
    if (!answered) return false;
    const std::string& id = response.job().job_id();
    const std::lock_guard<std::mutex> lock(load_->mutex_);
    if (record.job_id.empty()) {
      record.job_id = id;
      ++load_->report_.accepted;
      load_->accepted_[id] = record;  // from now on it may not be lost
      return true;
    }
    ++load_->report_.repeated_sends;
    if (record.job_id != id || !response.already_existed()) {
      load_->report_.broken.push_back(absl::StrCat("request ", record.request_id, " made job ",
                                                   record.job_id, " and job ", id));
      ++load_->report_.broken_count;
    }
    return true;
  }

  void Cancel(Record& record) {
    record.cancel_sent = true;
    Pause(absl::Milliseconds(static_cast<int64_t>(random_() % 40)));
    v1::CancelCompileJobRequest request;
    request.set_job_id(record.job_id);
    Persist("CancelCompileJob", [&] {
      grpc::ClientContext context;
      load_->SetCall(context, kCallTimeout);
      v1::CancelCompileJobResponse response;
      return AnyNode().CancelCompileJob(&context, request, &response);
    });
  }

  // Every event to the end, over however many connections. False: it is not to be had.
  bool Watch(Record& record) {
    int streams = 0;
    const bool ended = Persist("WatchCompileJob", [&] {
      ++streams;
      grpc::ClientContext context;
      load_->SetCall(context, kStreamTimeout);
      v1::WatchCompileJobRequest request;
      request.set_job_id(record.job_id);
      request.set_from_seq(static_cast<int64_t>(record.events.size()) + 1);
      request.set_batch_events((streams + record.job_id.back()) % 2 == 0);
      const auto reader = AnyNode().WatchCompileJob(&context, request);
      v1::WatchCompileJobResponse response;
      while (reader->Read(&response)) {
        Note(response.event(), record);
        for (const v1::JobEvent& event : response.more_events()) Note(event, record);
      }
      return reader->Finish();
    });
    const std::lock_guard<std::mutex> lock(load_->mutex_);
    load_->report_.reconnects += streams - 1;
    load_->report_.events += static_cast<int64_t>(record.events.size());
    return ended;
  }

  void Note(const v1::JobEvent& event, Record& record) {
    if (event.seq() == 0) return;
    if (event.seq() != static_cast<int64_t>(record.events.size()) + 1) {
      load_->Break(absl::StrCat("job ", record.job_id, ": event ", event.seq(), " after ",
                                record.events.size()));
    }
    record.events.push_back(event.SerializeAsString());
  }

  void CheckEnd(const Record& record, bool fetches) {
    v1::GetCompileJobResponse response;
    v1::GetCompileJobRequest request;
    request.set_job_id(record.job_id);
    const bool answered = Persist("GetCompileJob", [&] {
      grpc::ClientContext context;
      load_->SetCall(context, kCallTimeout);
      return AnyNode().GetCompileJob(&context, request, &response);
    });
    if (!answered) return;
    const v1::CompileJob& job = response.job();
    const v1::JobState state = StateOf(job);
    if (state == v1::JOB_STATE_SUCCEEDED) {
      if (DigestsOf(job) != (*load_->variants_)[record.variant].artifacts) {
        load_->Break(absl::StrCat("job ", job.job_id(), ": other artifacts than the quiet run's"));
      }
      if (fetches) Fetch(job);
    } else if (job.failed().kind() == v1::FAILURE_KIND_WORKER_DIED &&
               job.attempts() >= kDaemonLosses) {
      const std::lock_guard<std::mutex> lock(load_->mutex_);
      ++load_->report_.given_up;
      return;
    } else if (state != v1::JOB_STATE_CANCELLED || !record.cancel_sent) {
      load_->Break(absl::StrCat("job ", job.job_id(), " ended ", v1::JobState_Name(state), ": ",
                                job.failed().message()));
    }
    const std::lock_guard<std::mutex> lock(load_->mutex_);
    ServiceLoad::Report& report = load_->report_;
    ++(state == v1::JOB_STATE_CANCELLED ? report.cancelled : report.succeeded);
    if (job.cache_hit()) ++report.cache_hits;
    if (job.attempts() > 1) ++report.run_again;
  }

  void Fetch(const v1::CompileJob& job) {
    for (const v1::Artifact& artifact : job.artifacts()) {
      if (artifact.name() == kLogArtifact) continue;
      std::string bytes;
      const bool fetched = Persist("DownloadArtifact", [&] {
        grpc::ClientContext context;
        load_->SetCall(context, kStreamTimeout);
        v1::DownloadArtifactRequest request;
        request.set_job_id(job.job_id());
        request.set_artifact_name(artifact.name());
        request.set_offset(static_cast<int64_t>(bytes.size()));
        const auto reader = blobs_[random_() % blobs_.size()]->DownloadArtifact(&context, request);
        v1::DownloadArtifactResponse response;
        while (reader->Read(&response)) bytes += response.data();
        return reader->Finish();
      });
      if (fetched && Sha256Hex(bytes) != artifact.sha256()) {
        load_->Break(absl::StrCat("job ", job.job_id(), ": ", artifact.name(),
                                  " was served with other bytes"));
      }
    }
    const std::lock_guard<std::mutex> lock(load_->mutex_);
    ++load_->report_.fetched;
  }

  ServiceLoad* const load_;
  std::mt19937_64 random_;
  const std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<v1::CompileService::Stub>> stubs_;
  std::vector<std::unique_ptr<v1::BlobService::Stub>> blobs_;
};

void ServiceLoad::SetCall(grpc::ClientContext& context, absl::Duration timeout) const {
  const bool is_alone = options_.addresses.size() == 1;
  context.set_wait_for_ready(is_alone);  // while the daemon is away
  // Where nodes stop by the rules, silence for so long is a mistake of theirs.
  if (!is_alone && !options_.only_retryable) timeout = std::min(timeout, kNodePatience);
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

std::vector<std::shared_ptr<grpc::Channel>> ServiceLoad::OpenChannels() const {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (const std::string& address : options_.addresses) channels.push_back(OpenChannel(address));
  return channels;
}

ServiceLoad::ServiceLoad(LoadOptions options, const std::vector<LoadVariant>* variants)
    : options_(std::move(options)), variants_(variants) {}

ServiceLoad::~ServiceLoad() {
  stop_ = true;
  abandoned_ = true;
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ServiceLoad::Start() {
  for (int i = 0; i < options_.clients; ++i) {
    clients_.push_back(
        std::make_unique<Client>(this, options_.seed * 1000 + static_cast<uint64_t>(i)));
    threads_.emplace_back([client = clients_.back().get()] { client->Loop(); });
  }
}

void ServiceLoad::Finish() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

void ServiceLoad::Break(const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++report_.broken_count;
  if (report_.broken.size() < kMaxBroken) report_.broken.push_back(what);
}

bool ServiceLoad::CountError(const grpc::Status& status, const char* call) {
  const std::string reason = ReasonOf(status);
  const std::string text =
      absl::StrCat(absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code())),
                   " ", reason.empty() ? status.error_message() : reason);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++report_.errors[text];
  }
  if (IsRetryable(status)) return true;
  // What gRPC itself says of a connection that broke carries no reason of the service.
  if (!options_.only_retryable && reason.empty()) return true;
  Break(absl::StrCat(call, ": ", text, ": ", status.error_message()));
  return false;
}

void ServiceLoad::AuditJob(v1::CompileService::Stub& stub, const Record& record) {
  grpc::ClientContext context;
  SetCall(context, kJobPatience);
  v1::WatchCompileJobRequest request;
  request.set_job_id(record.job_id);
  const auto reader = stub.WatchCompileJob(&context, request);
  v1::WatchCompileJobResponse response;
  size_t seen = 0;
  int ends = 0;
  bool last_is_end = false;
  while (reader->Read(&response)) {
    const v1::JobEvent& event = response.event();
    if (event.seq() == 0) continue;
    if (event.seq() != static_cast<int64_t>(++seen)) {
      Break(
          absl::StrCat("audit: job ", record.job_id, ": event ", event.seq(), " as number ", seen));
    }
    if (seen <= record.events.size() && record.events[seen - 1] != event.SerializeAsString()) {
      Break(absl::StrCat("audit: job ", record.job_id, ": event ", seen, " has changed"));
    }
    last_is_end = event.has_state_changed() && IsEnd(event.state_changed().state());
    if (last_is_end) ++ends;
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) {
    Break(absl::StrCat("audit: job ", record.job_id,
                       " was accepted and is: ", status.error_message()));
  } else if (ends != 1 || !last_is_end) {
    Break(absl::StrCat("audit: job ", record.job_id, " has ", ends, " ends"));
  } else if (seen < record.events.size()) {
    Break(absl::StrCat("audit: job ", record.job_id, " has lost events"));
  }
}

void ServiceLoad::AuditList(v1::CompileService::Stub& stub) {
  std::set<std::string> requests;
  size_t listed = 0;
  v1::ListCompileJobsRequest request;
  request.set_page_size(500);
  while (true) {
    grpc::ClientContext context;
    SetCall(context, kCallTimeout);
    v1::ListCompileJobsResponse response;
    const grpc::Status status = stub.ListCompileJobs(&context, request, &response);
    if (!status.ok()) {
      Break(absl::StrCat("audit: list: ", status.error_message()));
      return;
    }
    for (const v1::CompileJob& job : response.jobs()) {
      if (job.request_id().empty()) continue;
      if (!requests.insert(job.request_id()).second) {
        Break(absl::StrCat("audit: two jobs of request ", job.request_id()));
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      listed += accepted_.count(job.job_id());
    }
    if (response.next_page_token().empty()) break;
    request.set_page_token(response.next_page_token());
  }
  const size_t accepted = accepted_.size();
  if (listed != accepted) {
    Break(absl::StrCat("audit: ", accepted, " jobs were accepted, ", listed, " are listed"));
  }
}

void ServiceLoad::Audit() {
  std::vector<std::unique_ptr<v1::CompileService::Stub>> stubs;
  for (const auto& channel : OpenChannels()) {
    stubs.push_back(v1::CompileService::NewStub(channel));
  }
  size_t next = 0;
  for (const auto& [id, record] : accepted_) AuditJob(*stubs[next++ % stubs.size()], record);
  AuditList(*stubs[0]);
}

ServiceLoad::Report ServiceLoad::report() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return report_;
}

absl::Status CompileQuietly(const std::string& address, std::vector<LoadVariant>& variants) {
  ASSIGN_OR_RETURN(const auto client, client::Client::Create({.server = address}));
  for (LoadVariant& variant : variants) {
    ASSIGN_OR_RETURN(
        const v1::CompileJob first,
        client->Submit(variant.input.spec, variant.input.files, client::NewRequestId(), nullptr));
    RETURN_IF_ERROR(client->Watch(first.job_id(), 1, [](const v1::JobEvent&) {}));
    ASSIGN_OR_RETURN(const v1::CompileJob job, client->GetJob(first.job_id()));
    if (!job.has_succeeded()) {
      return absl::InternalError(absl::StrCat("a quiet compile failed: ", job.failed().message()));
    }
    variant.artifacts = DigestsOf(job);
  }
  return absl::OkStatus();
}

}  // namespace npuc::fault
