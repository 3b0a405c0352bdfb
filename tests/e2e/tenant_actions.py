"""What an operator does to tenants of a real npucd with TLS: limits for a time, and new tokens.

    run_e2e.py tenant_actions

Limits hold at once, over a kill -9, for the tenant alone, and end by themselves. A rotated token
and the one before are valid at once; then the old one ends, over a kill -9, too. Each action is a
line of the audit log, with the identity that did it and no token.
"""

import json
import os
import stat

import drill
import harness
import service

SAMPLE = drill.SAMPLE
GRACE_SECONDS = 4
LIMIT_SECONDS = 8


def audit(farm):
    with open(os.path.join(farm.folder, "data", "audit", "audit.log"), encoding="utf-8") as f:
        return service.json_lines(f.read())


def restart(farm):
    farm.server.kill()
    farm.server.start()


def operator(farm, *arguments):
    return farm.json("operator", "admin", *arguments)[0]


def quota(farm, who="ci"):
    return farm.json(who, "quota")[0]


def check_limits(farm):
    operator(farm, "pause")
    before = quota(farm)
    harness.check(before["max_queued_jobs"] is None and before["temporary"] is None, before)
    said = operator(farm, "limit", "--tenant", "audio", "--weight", "9", "--quota", "queued_jobs=2",
                    "--quota", "job_bytes=64MiB", "--for", "1h", "--reason", "flood")
    harness.check((said["weight"], said["max_queued_jobs"], said["max_job_bytes"]) ==
                  (9, 2, 64 << 20), said)
    restart(farm)
    after = quota(farm)
    harness.check(after["weight"] == 9 and after["max_queued_jobs"] == 2, after)
    harness.check((after["temporary"]["by"], after["temporary"]["reason"]) == ("operator", "flood"),
                  after)
    ci, other = farm.client("ci"), farm.client("other")
    for _ in range(2):
        ci("submit", SAMPLE, "--no-cache")
    said = ci("submit", SAMPLE, "--no-cache", expect=drill.REFUSED).stderr
    harness.check("QUOTA_EXCEEDED" in said, said)
    for _ in range(3):
        other("submit", SAMPLE, "--no-cache")  # another tenant has its own limits
    harness.check(quota(farm, "other")["temporary"] is None, "another tenant's limits")
    # A shorter time in its place: they end by themselves, and the file holds again.
    end = operator(farm, "limit", "--tenant", "audio", "--quota", "queued_jobs=2", "--for",
                   f"{LIMIT_SECONDS}s")["temporary"]["end_time"]
    harness.check(ci("submit", SAMPLE, "--no-cache", expect=None).returncode == drill.REFUSED,
                  f"the limit does not hold until {end}")
    harness.wait_for(lambda: ci("submit", SAMPLE, "--no-cache", expect=None).returncode == 0,
                     "end of a limit", seconds=60, interval=0.5)
    harness.check(quota(farm) == {**before, "queued_jobs": 3, "stored_bytes":
                                  quota(farm)["stored_bytes"]}, quota(farm))
    operator(farm, "limit", "--tenant", "audio", "--weight", "3", "--for", "1h")
    text = farm.client("operator")("admin", "tenants").stdout
    harness.check("audio: weight: 3 until" in text and "set by operator" in text, text)
    harness.check(operator(farm, "unlimit", "--tenant", "audio")["weight"] == 1, "unlimit")
    farm.client("operator")("admin", "limit", "--tenant", "nobody", "--weight", "3", "--for", "1h",
                            expect=drill.REFUSED)
    ci("admin", "unlimit", "--tenant", "audio", expect=drill.REFUSED)
    operator(farm, "resume")


def check_rotation(farm):
    new = os.path.join(farm.folder, "new.token")
    farm.client("operator")("admin", "rotate-token", "--tenant", "audio", "--identity", "ci",
                            "--grace", f"{GRACE_SECONDS}s", "-o", new)
    harness.check(stat.S_IMODE(os.stat(new).st_mode) == 0o600, "others can read the token")
    old = farm.client("ci")
    fresh = service_client(farm, new)
    harness.check(fresh("whoami", "--json").stdout == old("whoami", "--json").stdout,
                  "the new token is another identity")
    harness.wait_for(lambda: old("whoami", expect=None).returncode != 0, "end of the old token",
                     seconds=30, interval=0.2)
    said = old("whoami", expect=None).stderr
    harness.check("was replaced" in said, said)
    restart(farm)
    harness.check(old("whoami", expect=None).returncode != 0, "the old token is valid again")
    fresh("submit", SAMPLE)
    # Once more, at once: the one before ends, and the file that is there is not written over.
    farm.client("operator")("admin", "rotate-token", "--tenant", "audio", "--identity", "ci", "-o",
                            new, expect=2)
    fresh("whoami")
    second = os.path.join(farm.folder, "second.token")
    shown = farm.json("operator", "admin", "rotate-token", "--tenant", "audio", "--identity", "ci",
                      "--grace", "0s")[0]["token"]
    with open(second, "w", encoding="utf-8") as f:
        f.write(shown + "\n")
    service_client(farm, second)("whoami")
    harness.check(fresh("whoami", expect=None).returncode != 0, "a third token is valid")
    for tenant, identity in (("audio", "nobody"), ("vision", "ci")):
        farm.client("operator")("admin", "rotate-token", "--tenant", tenant, "--identity", identity,
                                expect=drill.REFUSED)
    with open(new, encoding="utf-8") as f:
        return f.read().strip(), shown


def service_client(farm, token_file):
    return drill.tenants.Client(farm.server, "--ca", farm.authority + ".pem", "--token-file",
                                token_file)


def check_audit(farm, tokens):
    lines = audit(farm)
    did = [(one["action"], one["object"], one["result"]) for one in lines
           if one["action"].startswith("admin.")]
    for action, of, result in (("admin.limit", "audio", "OK"), ("admin.unlimit", "audio", "OK"),
                               ("admin.limit", "nobody", "TENANT_NOT_FOUND"),
                               ("admin.rotate_token", "audio/ci", "OK"),
                               ("admin.rotate_token", "vision/ci", "IDENTITY_NOT_FOUND")):
        harness.check((action, of, result) in did, f"no line {action} {of} {result}: {did}")
    harness.check({one["identity"] for one in lines if one["action"].startswith("admin.")} ==
                  {"operator"}, "who did it")
    refusals = [one["object"] for one in lines if one["action"] == "refused"]
    harness.check("SetTenantLimits" in refusals, refusals)
    everything = json.dumps(lines) + farm.server.log()
    for token in tokens:
        harness.check(token not in everything, "a token stands in a log")
    return len(did)


def main(_arguments):
    with harness.scratch() as folder:
        farm = drill.Farm(folder)
        try:
            farm.server.start()
            check_limits(farm)
            lines = check_audit(farm, check_rotation(farm))
        except harness.Failure as error:
            raise harness.Failure(f"{error}\nnpucd's log ends:\n{farm.server.log()}") from error
        finally:
            farm.server.stop()
    harness.figure(f"tenants: limits for {LIMIT_SECONDS} s and over a kill -9, tokens rotated with "
                   f"{GRACE_SECONDS} s of two; {lines} lines of audit log")
