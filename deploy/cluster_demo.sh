#!/usr/bin/env bash
# Three npucds on one PostgreSQL, all on this machine, in folders of their own: a job
# is submitted at node a and watched at node b. Node a is killed in the middle of it. Node b or c
# ends the job, and its artifacts are fetched at node c. deploy/quickstart.sh --cluster runs it.
#
#   deploy/cluster_demo.sh BIN_FOLDER SAMPLE_FOLDER WORK_FOLDER
set -euo pipefail

bin="$1"
sample="$2"
work="$3"
ttl_seconds=3
pg_bin=$(dirname "$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1)")
# A socket's path may have 107 bytes, and an unprivileged user must reach it.
pg=$(mktemp -d /tmp/npuc-pg-XXXXXX)
url="postgres://npucd@/postgres?host=$pg"
declare -A pid=() address=()
pg_pid=""

cleanup() {
  local code=$?
  for node in "${!pid[@]}"; do
    kill -TERM "${pid[$node]}" 2>/dev/null || true
  done
  for node in "${!pid[@]}"; do
    wait "${pid[$node]}" 2>/dev/null || true
  done
  if [[ -n "$pg_pid" ]]; then
    kill -INT "$pg_pid" 2>/dev/null || true
    wait "$pg_pid" 2>/dev/null || true
  fi
  rm -rf "$pg"
  if [[ $code -ne 0 ]]; then
    for log in "$work"/*/npucd.log; do
      [[ -s "$log" ]] && { echo "the last lines of $log:"; tail -n 15 "$log"; } >&2
    done
  fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# PostgreSQL does not run as root.
unprivileged=()
if [[ $(id -u) -eq 0 ]]; then
  unprivileged=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi

# Runs a command every 50 ms until it succeeds, for at most 30 s.
await() {
  local what="$1"
  shift
  local deadline=$((SECONDS + 30))
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= deadline)); then
      echo "no $what within 30 s" >&2
      exit 1
    fi
    sleep 0.05
  done
}

start_node() {
  local node="$1"
  mkdir -p "$work/$node"
  rm -f "$work/$node/port"
  "$bin/npucd" --data-dir "$work/$node/data" --listen 127.0.0.1:0 --insecure --workers 1 \
    --spares 0 --port-file "$work/$node/port" --cluster "$url" \
    --cluster-secret-file "$pg/password" --node-name "$node" \
    --node-ttl-seconds "$ttl_seconds" >"$work/$node/npucd.log" 2>&1 &
  pid[$node]=$!
}

at() {
  local node="$1"
  shift
  NPUC_SERVER="${address[$node]}" "$bin/npuc-remote" "$@"
}

is_running() { at b status "$1" --json | grep -q '"state": *"RUNNING"'; }

echo "PostgreSQL $("$pg_bin/postgres" --version | grep -o '[0-9.]*' | head -n 1) in $pg"
rm -rf "$work"
mkdir -p "$work"
(umask 027; head -c 24 /dev/urandom | base64 >"$pg/password")
if [[ $(id -u) -eq 0 ]]; then
  chown -R nobody:nogroup "$pg"
fi
"${unprivileged[@]}" "$pg_bin/initdb" -D "$pg/data" -A scram-sha-256 -U npucd \
  --pwfile "$pg/password" --encoding=UTF8 --locale=C >"$work/initdb.log"
"${unprivileged[@]}" "$pg_bin/postgres" -D "$pg/data" -k "$pg" -c listen_addresses= \
  >"$work/postgres.log" 2>&1 &
pg_pid=$!
await "PostgreSQL" "$pg_bin/pg_isready" -h "$pg"
"$bin/npucd" --migrate --cluster "$url" --cluster-secret-file "$pg/password"

for node in a b c; do
  start_node "$node"
done
for node in a b c; do
  await "address of node $node" grep -q '^grpc=' "$work/$node/port"
  address[$node]=$(sed -n 's/^grpc=//p' "$work/$node/port")
  echo "node $node serves on ${address[$node]} (process ${pid[$node]})"
done

# The job is to run at a, and to be in the middle when a dies: the others pause, and a's worker is
# stopped as a hung machine would stop it.
at b admin pause --reason "demo" >/dev/null
at c admin pause --reason "demo" >/dev/null
worker=$(pgrep -P "${pid[a]}" npuc-worker | head -n 1)
kill -STOP "$worker"
job=$(at a submit "$sample/config.yaml" --no-cache --json | grep -o '"job": *"[^"]*"' |
  cut -d'"' -f4)
echo "job $job was submitted at a"
await "run at a" is_running "$job"
echo "it runs at a; it is watched at b"
at b watch "$job" >"$work/watch.log" 2>&1 &
watcher=$!
killed=$SECONDS
kill -KILL "${pid[a]}"
wait "${pid[a]}" 2>/dev/null || true
kill -KILL "$worker" 2>/dev/null || true
unset 'pid[a]'
echo "node a was killed"
at b admin resume >/dev/null
at c admin resume >/dev/null
if ! wait "$watcher"; then
  cat "$work/watch.log" >&2
  exit 1
fi
echo "the watcher at b saw its end $((SECONDS - killed)) s later"
echo "(a node that is silent for $ttl_seconds s is dead to the others):"
sed 's/^/    /' "$work/watch.log" | tail -n 4
at c fetch "$job" -o "$work/out"
echo "fetched at c"
