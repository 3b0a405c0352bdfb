// Client: uploads and downloads, each resumed by offset.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/lib/client_impl.h"
#include "client/lib/service_error.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"

namespace npuc::client {
namespace {

constexpr int kMaxDigestsPerCall = 1000;
constexpr int64_t kSlowestHashBytesPerSecond = 10 << 20;

// Adds up the progress of several transfers. Never falls, although what a broken stream had sent
// may not have been committed.
class TotalProgress {
 public:
  TotalProgress(const TransferProgress& progress, int64_t total)
      : progress_(progress), total_(total) {}

  TransferProgress Part(int64_t before) {
    return [this, before](int64_t done, int64_t) { Tell(before + done); };
  }
  void Tell(int64_t done) {
    if (done <= last_) return;
    last_ = done;
    if (progress_) progress_(done, total_);
  }

 private:
  const TransferProgress& progress_;
  const int64_t total_;
  int64_t last_ = -1;
};

void SetDigest(const LocalFile& file, v1::BlobDigest& digest) {
  digest.set_sha256(file.sha256);
  digest.set_size_bytes(file.size_bytes);
}

absl::Status Changed(const LocalFile& file) {
  return absl::FailedPreconditionError(
      absl::StrCat("'", file.path, "' changed while it was uploaded; submit again"));
}

}  // namespace

absl::Status Client::Impl::UploadFrom(const LocalFile& file, int64_t offset,
                                      const TransferProgress& progress) {
  Call call(options);
  v1::UploadBlobResponse response;
  auto writer = server().blobs->PrepareAsyncUploadBlob(call.context(), &response, call.queue());
  writer->StartCall(call.tag());
  bool ok = call.Wait(options.silence_timeout);
  absl::Status local;
  // The first message goes out even where it has no bytes: it names the blob.
  for (bool first = true; ok && (first || offset < file.size_bytes); first = false) {
    const int64_t left = file.size_bytes - offset;
    const size_t wanted =
        static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(options.chunk_bytes)));
    absl::StatusOr<std::string> chunk = ReadRange(file, offset, wanted);
    local = !chunk.ok()               ? chunk.status()
            : chunk->size() != wanted ? Changed(file)
                                      : absl::OkStatus();
    if (!local.ok()) break;
    v1::UploadBlobRequest request;
    if (first) SetDigest(file, *request.mutable_digest());
    request.set_offset(offset);
    request.set_data(*std::move(chunk));
    writer->Write(request, call.tag());
    ok = call.Wait(options.silence_timeout);
    offset += static_cast<int64_t>(wanted);
    if (ok) progress(offset, file.size_bytes);
  }
  if (ok && local.ok()) {
    writer->WritesDone(call.tag());
    call.Wait(options.silence_timeout);
  } else if (!local.ok()) {
    call.context()->TryCancel();
  }
  grpc::Status finished;
  writer->Finish(&finished, call.tag());
  // A daemon that was restarted on the way reads all that had come before, for the digests.
  call.Wait(options.call_timeout + absl::Seconds(file.size_bytes / kSlowestHashBytesPerSecond));
  RETURN_IF_ERROR(local);
  RETURN_IF_ERROR(call.Status(finished));
  if (!response.complete()) {
    return absl::UnknownError(absl::StrCat("the server took ", response.committed_bytes(), " of ",
                                           file.size_bytes, " bytes of '", file.path, "'"));
  }
  return absl::OkStatus();
}

absl::Status Client::Impl::UploadOne(const LocalFile& file, const TransferProgress& progress) {
  v1::QueryUploadRequest request;
  SetDigest(file, *request.mutable_digest());
  Retrier retrier = NewRetrier();
  int64_t most_committed = -1;
  while (true) {
    v1::QueryUploadResponse known;
    absl::Status status = CallOnce(options, *server().blobs,
                                   &v1::BlobService::Stub::PrepareAsyncQueryUpload, request, known);
    if (status.ok()) {
      if (known.complete()) {
        progress(file.size_bytes, file.size_bytes);
        return status;
      }
      if (known.committed_bytes() < 0 || known.committed_bytes() > file.size_bytes) {
        return absl::InternalError("the server says that it has more than the whole file");
      }
      // Only new bytes on the server are progress: an answer to the query alone would let a server
      // that breaks each stream be asked for ever.
      if (known.committed_bytes() > most_committed) {
        most_committed = known.committed_bytes();
        retrier.Progress();
      }
      progress(known.committed_bytes(), file.size_bytes);
      status = UploadFrom(file, known.committed_bytes(), progress);
    }
    if (status.ok()) {
      had_contact = true;
      return status;
    }
    const std::string reason = ServiceErrorOf(status).reason;
    if (reason == "DIGEST_MISMATCH") return Changed(file);
    // Another stream of the same blob moved on: not a failure, but bounded like one.
    if (reason == "OFFSET_MISMATCH") status = absl::UnknownError(status.message());
    RETURN_IF_ERROR(Again(retrier, status));
  }
}

absl::Status Client::Upload(absl::Span<const LocalFile> files, const TransferProgress& progress) {
  std::set<std::pair<std::string, int64_t>> missing;
  for (size_t begin = 0; begin < files.size(); begin += kMaxDigestsPerCall) {
    v1::FindMissingBlobsRequest request;
    for (const LocalFile& file : files.subspan(begin, kMaxDigestsPerCall)) {
      SetDigest(file, *request.add_digests());
    }
    v1::FindMissingBlobsResponse response;
    RETURN_IF_ERROR(impl_->Retried(
        &Server::blobs, &v1::BlobService::Stub::PrepareAsyncFindMissingBlobs, request, response));
    for (const v1::BlobDigest& digest : response.missing()) {
      missing.emplace(digest.sha256(), digest.size_bytes());
    }
  }
  std::vector<const LocalFile*> wanted;
  int64_t total = 0;
  for (const LocalFile& file : files) {
    // erase: a file that the config names twice goes once.
    if (missing.erase({file.sha256, file.size_bytes}) == 0) continue;
    wanted.push_back(&file);
    total += file.size_bytes;
  }
  TotalProgress all(progress, total);
  int64_t before = 0;
  for (const LocalFile* file : wanted) {
    RETURN_IF_ERROR(impl_->UploadOne(*file, all.Part(before)));
    before += file->size_bytes;
  }
  return absl::OkStatus();
}

absl::Status Client::Impl::DownloadOne(absl::string_view job_id, const v1::Artifact& artifact,
                                       AtomicFile& file, const TransferProgress& progress) {
  const std::string name = Printable(artifact.name());
  StreamDigest digest;
  int64_t offset = 0;
  Retrier retrier = NewRetrier();
  while (true) {
    Call call(options);
    v1::DownloadArtifactRequest request;
    request.set_job_id(std::string(job_id));
    request.set_artifact_name(artifact.name());
    request.set_offset(offset);
    auto reader =
        server().blobs->PrepareAsyncDownloadArtifact(call.context(), request, call.queue());
    reader->StartCall(call.tag());
    call.Wait(options.silence_timeout);
    absl::Status local;
    v1::DownloadArtifactResponse response;
    while (local.ok()) {
      response.Clear();
      reader->Read(&response, call.tag());
      if (!call.Wait(options.silence_timeout)) break;
      const int64_t count = static_cast<int64_t>(response.data().size());
      if (response.offset() != offset || count > artifact.size_bytes() - offset) {
        local = absl::DataLossError(
            absl::StrCat("the server sent bytes that are not of '", name, "' at offset ", offset));
        break;
      }
      local = file.Append(response.data());
      digest.Update(response.data());
      offset += count;
      if (count > 0) retrier.Progress();
      progress(offset, artifact.size_bytes());
    }
    if (!local.ok()) call.context()->TryCancel();
    grpc::Status finished;
    reader->Finish(&finished, call.tag());
    call.Wait(options.silence_timeout);
    RETURN_IF_ERROR(local);
    absl::Status status = call.Status(finished);
    // All bytes are here, whatever became of the stream after them.
    if (offset == artifact.size_bytes() && (offset > 0 || status.ok())) break;
    if (status.ok()) {
      status = absl::UnknownError(
          absl::StrCat("'", name, "' ended at byte ", offset, " of ", artifact.size_bytes()));
    }
    RETURN_IF_ERROR(Again(retrier, status));
  }
  if (digest.Finish().sha256_hex != artifact.sha256()) {
    return absl::DataLossError(
        absl::StrCat("the bytes of '", name, "' do not match their SHA-256"));
  }
  return file.Sync();
}

absl::Status Client::Fetch(absl::string_view job_id, absl::Span<const v1::Artifact> artifacts,
                           const std::string& folder, const TransferProgress& progress) {
  int64_t total = 0;
  std::set<std::string> names;
  for (const v1::Artifact& artifact : artifacts) {
    if (!IsSafeFileName(artifact.name()) || !names.insert(artifact.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the artifact name '", Printable(artifact.name()), "' is repeated or no safe file name"));
    }
    total += artifact.size_bytes();
  }
  TotalProgress all(progress, total);
  std::vector<AtomicFile> files;
  int64_t before = 0;
  for (const v1::Artifact& artifact : artifacts) {
    ASSIGN_OR_RETURN(AtomicFile file,
                     AtomicFile::Create(absl::StrCat(folder, "/", artifact.name())));
    RETURN_IF_ERROR(impl_->DownloadOne(job_id, artifact, file, all.Part(before)));
    files.push_back(std::move(file));
    before += artifact.size_bytes();
  }
  for (AtomicFile& file : files) RETURN_IF_ERROR(file.Commit());
  return absl::OkStatus();
}

}  // namespace npuc::client
