// Compiles one model on an npucd: compile_one HOST:PORT CONFIG MODEL FOLDER
//
// The library uploads what the server does not hold, goes on after lost connections and restarts of
// the server, and puts verified artifacts into the folder.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "client/lib/client.h"

namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "compile_one: %s\n", status.ToString().c_str());
  return 1;
}

std::string ReadText(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: compile_one HOST:PORT CONFIG MODEL FOLDER\n");
    return 2;
  }
  npuc::client::ClientOptions options;
  options.server = argv[1];
  const auto client = npuc::client::Client::Create(options);
  if (!client.ok()) return Fail(client.status());
  const auto model = npuc::client::DescribeFile(argv[3]);
  if (!model.ok()) return Fail(model.status());

  npuc::v1::CompileJobSpec spec;
  spec.set_config_text(ReadText(argv[2]));
  spec.set_config_name(argv[2]);
  spec.mutable_model()->set_sha256(model->sha256);
  spec.mutable_model()->set_size_bytes(model->size_bytes);
  const auto submitted = (*client)->Submit(spec, {*model}, npuc::client::NewRequestId(), nullptr);
  if (!submitted.ok()) return Fail(submitted.status());
  const absl::Status watched =
      (*client)->Watch(submitted->job_id(), 1, [](const npuc::v1::JobEvent& event) {
        if (event.has_log_line()) std::printf("%s\n", event.log_line().text().c_str());
      });
  if (!watched.ok()) return Fail(watched);
  const auto job = (*client)->GetJob(submitted->job_id());
  if (!job.ok()) return Fail(job.status());
  for (const npuc::v1::Diagnostic& diagnostic : job->diagnostics()) {
    std::fprintf(stderr, "%s [%s]\n", diagnostic.message().c_str(), diagnostic.id().c_str());
  }
  if (!job->has_succeeded()) return 1;
  const std::vector<npuc::v1::Artifact> artifacts(job->artifacts().begin(), job->artifacts().end());
  const absl::Status fetched = (*client)->Fetch(job->job_id(), artifacts, argv[4], nullptr);
  return fetched.ok() ? 0 : Fail(fetched);
}
