#!/usr/bin/python3
"""Compiles one model on an npucd: compile_one.py HOST:PORT CONFIG MODEL FOLDER

Exit code 0 where the job succeeded; its artifacts are in FOLDER.
"""

import hashlib
import os
import sys
import uuid

import grpc
from npuc.v1 import blob_pb2, blob_pb2_grpc, compile_pb2, compile_pb2_grpc

CHUNK = 256 << 10


def upload(blobs, digest, path):
    """Sends what the server does not hold, from the offset that it has."""
    if not blobs.FindMissingBlobs(blob_pb2.FindMissingBlobsRequest(digests=[digest])).missing:
        return
    offset = blobs.QueryUpload(blob_pb2.QueryUploadRequest(digest=digest)).committed_bytes

    def chunks():
        with open(path, "rb") as f:
            f.seek(offset)
            at = offset
            while data := f.read(CHUNK):
                yield blob_pb2.UploadBlobRequest(digest=digest, offset=at, data=data)
                at += len(data)

    if not blobs.UploadBlob(chunks()).complete:
        raise SystemExit("compile_one.py: the upload is not complete")


def fetch(blobs, job_id, artifact, folder):
    """Downloads one artifact, and checks it before it gets its name."""
    request = blob_pb2.DownloadArtifactRequest(job_id=job_id, artifact_name=artifact.name)
    data = b"".join(part.data for part in blobs.DownloadArtifact(request))
    if hashlib.sha256(data).hexdigest() != artifact.sha256:
        raise SystemExit(f"compile_one.py: {artifact.name} is damaged")
    with open(os.path.join(folder, os.path.basename(artifact.name)), "wb") as f:
        f.write(data)


def main():
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    server, config, model, folder = sys.argv[1:]
    with open(model, "rb") as f:
        content = f.read()
    digest = blob_pb2.BlobDigest(sha256=hashlib.sha256(content).hexdigest(),
                                 size_bytes=len(content))
    with open(config, encoding="utf-8") as f:
        spec = compile_pb2.CompileJobSpec(config_text=f.read(), config_name=config, model=digest)
    with grpc.insecure_channel(server) as channel:
        blobs = blob_pb2_grpc.BlobServiceStub(channel)
        jobs = compile_pb2_grpc.CompileServiceStub(channel)
        upload(blobs, digest, model)
        # Sent again with the same id, the request would make no second job.
        job = jobs.CreateCompileJob(compile_pb2.CreateCompileJobRequest(
            request_id=uuid.uuid4().hex, spec=spec)).job
        for response in jobs.WatchCompileJob(
                compile_pb2.WatchCompileJobRequest(
                    job_id=job.job_id, from_seq=1, batch_events=True)):
            for event in [response.event, *response.more_events]:
                if event.HasField("log_line"):
                    print(event.log_line.text)
        job = jobs.GetCompileJob(compile_pb2.GetCompileJobRequest(job_id=job.job_id)).job
        for diagnostic in job.diagnostics:
            print(f"{diagnostic.message} [{diagnostic.id}]", file=sys.stderr)
        if not job.HasField("succeeded"):
            return 1
        os.makedirs(folder, exist_ok=True)
        for artifact in job.artifacts:
            fetch(blobs, job.job_id, artifact, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
