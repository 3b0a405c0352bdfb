#!/bin/bash
# Runs inside the virtual machine of tests/fault/systemd_vm/run.sh, as root under systemd.
set -Eeuo pipefail

say() { printf 'proof: %s\n' "$*"; }
trap 'say "FAILED at line $LINENO"; tail -n 20 /tmp/compile.log' ERR

group=/sys/fs/cgroup/system.slice/npucd.service
export NPUC_SERVER=127.0.0.1:8470 NPUC_TOKEN_FILE=/opt/token
remote() { npuc-remote --ca /etc/npuc/server.pem "$@"; }
compiles() {
  rm -rf /tmp/out
  remote compile --no-cache --timeout 30s /opt/kws/config.yaml -o /tmp/out >/tmp/compile.log 2>&1 &&
    diff <(grep -v model_info /tmp/out/kws_cnn.h) <(grep -v model_info /opt/expected/kws_cnn.h)
}
warm_parent() { cat "/proc/$(systemctl show -P MainPID npucd)"/task/*/children; }
wait_ready() {
  for _ in $(seq 30); do
    if remote --patience 1s server >/dev/null 2>&1; then return 0; fi
    sleep 0.2
  done
  return 1
}

ip link set lo up 2>/dev/null || true
journalctl -u npucd -f --no-pager -o cat >/dev/ttyS0 &
say "kernel $(uname -r), $(stat -fc %T /sys/fs/cgroup)"

systemctl start npucd
wait_ready
say "the shipped unit serves, as user $(systemctl show -P User npucd)"
journalctl -u npucd --no-pager | grep -q "a cgroup is around the workers"
if journalctl -u npucd --no-pager | grep "a wall around the workers is missing"; then false; fi
say "every wall holds; all workers have $(cat "$group/workers/memory.max") bytes," \
  "$(cat "$group/workers/pids.max") processes"
[[ $(cat "$group/npucd/cgroup.procs") == "$(systemctl show -P MainPID npucd)" ]]
[[ $(wc -l <"$group/workers/cgroup.procs") -ge 1 ]]
[[ -z $(cat "$group/cgroup.procs") ]]
say "npucd is in the leaf npucd, the warm parent in the leaf workers"

compiles
say "a compile over TLS with a token: the bytes of npuc on the host"

# All workers together want more than there is: the kernel ends the one that is largest, not npucd
# and not the warm parent, and others are as before.
full=$(cat "$group/workers/memory.max")
before=$(systemctl show -P MainPID npucd) parent=$(warm_parent)
echo $(($(cat "$group/workers/memory.current") + (16 << 20))) >"$group/workers/memory.max"
if remote compile /opt/large.yaml -o /tmp/large >/tmp/compile.log 2>&1; then
  say "16 MiB were enough"
  false
fi
grep -q "want of memory" /tmp/compile.log
kills=$(awk '/^oom_kill / {print $2}' "$group/workers/memory.events")
[[ $kills -ge 1 ]]
[[ $(systemctl show -P MainPID npucd) == "$before" ]]
[[ $(warm_parent) == "$parent" ]]
compiles
echo "$full" >"$group/workers/memory.max"
remote compile /opt/large.yaml -o /tmp/large >/tmp/compile.log 2>&1
say "a model too large for the cgroup: $kills workers ended by the kernel, as the job's error" \
  "says; npucd and the warm parent live; a small model compiles, the large one with more memory"

# Out of processes.
full=$(cat "$group/workers/pids.max")
echo 1 >"$group/workers/pids.max"
for _ in $(seq 8); do compiles || break; done # those that are ready serve a run each
if compiles; then say "no further process was enough"; false; fi
[[ $(systemctl show -P MainPID npucd) == "$before" ]]
echo "$full" >"$group/workers/pids.max"
compiles
say "workers out of processes: npucd lives, the next compile is right"

job=$(remote list | awk 'NR == 2 {print $1}')
systemctl kill -s KILL --kill-whom=main npucd
sleep 1
wait_ready
remote status "$job" | grep -qi succeeded
compiles
say "SIGKILL: systemd starts it again, in its cgroup, and it knows its jobs"

systemctl stop npucd
[[ $(systemctl show -P Result npucd) == success ]]
say "SIGTERM: a clean end"

tests=$(dirname "$(find / -xdev -name npuc_hostile_test -print -quit 2>/dev/null)")
[[ -x $tests/npuc_hostile_test ]] || { say "the tests are not where they were installed"; false; }
as_service() {
  cat >/run/systemd/system/test.service <<UNIT
[Service]
Type=oneshot
ExecStart=$1
User=npuc
NoNewPrivileges=yes
Delegate=memory pids
StandardOutput=truncate:/tmp/compile.log
StandardError=inherit
UNIT
  systemctl daemon-reload
  systemctl start test
}
as_service "$tests/npuc_worker_cgroup_test"
if grep -q "SKIPPED" /tmp/compile.log; then false; fi
say "npuc_worker_cgroup_test: $(grep -c '       OK' /tmp/compile.log) passed, none skipped"
as_service "$tests/npuc_hostile_test"
say "npuc_hostile_test as an ordinary user: $(grep -c '       OK' /tmp/compile.log) passed," \
  "$(grep -c '  SKIPPED .*ms' /tmp/compile.log || true) skipped"
say "all shown"
