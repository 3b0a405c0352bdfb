#!/usr/bin/python3
"""Signatures of random S3 requests against Amazon's own botocore: the same Authorization headers.

    signature_oracle_test.py SIGN_REQUESTS [COUNT [SEED]]

Exit 77, skipped, where python3-botocore is not installed.
"""

import os
import random
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests",
                                "e2e"))
import aws_signer  # noqa: E402

KEY_LETTERS = "abcXYZ019-_.~ +%/$&=@:,;!*'()[]é水"
REGIONS = ["us-east-1", "eu-central-1", "a"]


def text(chance, letters, least, most):
    return "".join(chance.choice(letters) for _ in range(chance.randint(least, most)))


def make(chance):
    path = "/" + "/".join(text(chance, KEY_LETTERS.replace("/", ""), 1, 12)
                          for _ in range(chance.randint(1, 4)))
    query = {text(chance, "abz-_ é", 1, 8): text(chance, KEY_LETTERS, 0, 12)
             for _ in range(chance.randint(0, 4))}
    headers = {}
    if chance.random() < 0.5:
        headers["range"] = f"bytes={chance.randint(0, 9)}-{chance.randint(10, 99)}"
    if chance.random() < 0.3:
        headers["x-amz-meta-" + text(chance, "abc", 1, 5)] = text(chance, "abc =", 1, 9).strip()
    return {"method": chance.choice(["GET", "PUT", "DELETE", "HEAD"]),
            "host": chance.choice(["s3.amazonaws.com", "127.0.0.1:9000", "farm.store.example"]),
            "path": path, "query": query, "headers": headers,
            "payload": chance.randbytes(chance.randint(0, 50)),
            "key": text(chance, "ABC019", 4, 20), "secret": text(chance, "abc/+=019", 8, 40),
            "token": text(chance, "abc/+=", 0, 20) if chance.random() < 0.4 else "",
            "region": chance.choice(REGIONS), "seconds": chance.randint(0, 4_000_000_000)}


def hexed(value):
    return (value if isinstance(value, bytes) else str(value).encode()).hex()


def line_of(request):
    def pairs(named):
        return ",".join(hexed(part) for pair in named.items() for part in pair)

    fields = [hexed(request["method"]), hexed(request["host"]), hexed(request["path"]),
              pairs(request["query"]), pairs(request["headers"])]
    return "\t".join(fields + [hexed(request[name]) for name in (
        "payload", "key", "secret", "token", "region", "seconds")])


def quoted(value, safe="-_.~"):
    return urllib.parse.quote(value, safe=safe)


def target_of(request):
    query = sorted((quoted(name), quoted(value)) for name, value in request["query"].items())
    return (quoted(request["path"], "/-_.~")
            + ("?" + "&".join(f"{name}={value}" for name, value in query) if query else ""))


def signed_by_botocore(request):
    return aws_signer.authorization(
        request["method"], f"http://{request['host']}{target_of(request)}",
        dict(request["headers"]), request["payload"],
        *(request[name] for name in ("key", "secret", "token", "region", "seconds")))


def main(arguments):
    if not aws_signer.IS_THERE:
        print("skipped: python3-botocore is not installed")
        return 77
    count = int(arguments[1]) if len(arguments) > 1 else 2000
    seed = int(arguments[2]) if len(arguments) > 2 else 1
    chance = random.Random(seed)
    requests = [make(chance) for _ in range(count)]
    done = subprocess.run([arguments[0]], input="\n".join(map(line_of, requests)) + "\n",
                          stdout=subprocess.PIPE, check=True, universal_newlines=True)
    lines = done.stdout.splitlines()
    wrong = count - len(lines)
    for request, line in zip(requests, lines):
        expected = f"{signed_by_botocore(request)}\t{target_of(request)}"
        if line != expected:
            wrong += 1
            print(f"{request}\n  is       {line}\n  expected {expected}")
    print(f"seed {seed}: {count} requests, {wrong} signed otherwise than by botocore")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
