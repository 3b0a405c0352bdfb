#!/usr/bin/env bash
# From a clone on a bare Debian 12 to a compiled and simulated model: installs the packages, builds
# the programs, starts a daemon on this machine, compiles the sample model through it, and compares
# the simulated NPU with the float model. Safe to run again: it then takes seconds.
#
#   deploy/quickstart.sh [--keep] [--cluster]
#
# --keep leaves the daemon's data (jobs, cache) in build/quickstart/data; by default each run starts
# with none, so that it shows a real compile.
# --cluster starts three daemons on one PostgreSQL instead (deploy/cluster_demo.sh): a job is
# submitted at one, watched at another while the first is killed, and fetched at the third.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
keep=false
cluster=false
for argument in "$@"; do
  case "$argument" in
    --keep) keep=true ;;
    --cluster) cluster=true ;;
    -h|--help) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "quickstart.sh: unknown argument '$argument' (try --help)" >&2; exit 2 ;;
  esac
done

export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
bin="$root/build/bin"
sample="deploy/samples/kws"
work="$root/build/quickstart"
out="$work/out"
daemon_pid=""
current="start"

step() {
  current="$1"
  printf '\n== %s  [%ds]\n' "$1" "$SECONDS"
}

cleanup() {
  local code=$?
  if [[ -n "$daemon_pid" ]] && kill -0 "$daemon_pid" 2>/dev/null; then
    kill -TERM "$daemon_pid" 2>/dev/null || true
    wait "$daemon_pid" 2>/dev/null || true
  fi
  if [[ $code -ne 0 ]]; then
    printf '\nquickstart: failed in step "%s" (exit %d)\n' "$current" "$code" >&2
    if [[ -s "$work/npucd.log" ]]; then
      echo "the last lines of $work/npucd.log:" >&2
      tail -n 20 "$work/npucd.log" >&2
    fi
  fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step "Packages"
deploy/install_deps.sh build
if $cluster && ! compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null; then
  deploy/install_deps.sh test
fi

step "Configure (preset release)"
mkdir -p "$work"
if ! cmake --preset release >"$work/configure.log" 2>&1; then
  tail -n 40 "$work/configure.log" >&2
  exit 1
fi
echo "log: build/quickstart/configure.log"

step "Build npuc, npucd, npuc-worker and npuc-remote (the first time takes minutes)"
cmake --build build --target npuc npucd npuc-worker npuc-remote npuc_remote_docs

if $cluster; then
  step "Three daemons on one PostgreSQL"
  deploy/cluster_demo.sh "$bin" "$sample" "$work/cluster"
  exit 0
fi

step "Start a daemon on this machine"
$keep || rm -rf "$work/data"
rm -rf "$out" "$work/port"
mkdir -p "$work/data" "$out"
"$bin/npucd" --data-dir "$work/data" --listen 127.0.0.1:0 --web 127.0.0.1:0 --insecure \
  --port-file "$work/port" >"$work/npucd.log" 2>&1 &
daemon_pid=$!
deadline=$((SECONDS + 30))
until grep -q '^grpc=' "$work/port" 2>/dev/null; do
  if ! kill -0 "$daemon_pid" 2>/dev/null; then
    echo "npucd ended before it served" >&2
    exit 1
  fi
  if ((SECONDS >= deadline)); then
    echo "npucd does not serve after 30 s" >&2
    exit 1
  fi
  sleep 0.05
done
NPUC_SERVER=$(sed -n 's/^grpc=//p' "$work/port")
export NPUC_SERVER
echo "npucd serves on $NPUC_SERVER (process $daemon_pid, no encryption, loopback only)"
[[ -f "$bin/dashboard/index.html" ]] \
  || echo "the dashboard is not built (npm had no packages); npucd works without it"

step "Compile the sample through the service"
"$bin/npuc-remote" compile "$sample/config.yaml" -o "$out"

step "Artifacts"
(cd "$out" && for file in *; do printf '%10d bytes  %s\n' "$(stat -c %s "$file")" "$file"; done)
echo "in $out"

step "Stop the daemon"
kill -TERM "$daemon_pid"
wait "$daemon_pid" || { echo "npucd ended with code $?" >&2; exit 1; }
daemon_pid=""
echo "npucd drained and ended"

step "What was said, and what the simulated NPU answers"
"$bin/npuc" run "$out/kws_cnn.h" --input "Feats=$sample/test_inputs.npy" \
  --output-dir "$work/simulated"
"$bin/npuc" reference "$sample/config.yaml" --input "Feats=$sample/test_inputs.npy" \
  --output-dir "$work/reference"
/usr/bin/python3 "$sample/compare.py" "$work/simulated/labels_softmax.npy" \
  "$work/reference/labels_softmax.npy" "$sample/test_labels.npy"

step "Done"
cat <<NEXT
Next:
  build/bin/npuc deploy/samples/kws/config.yaml -o OUT    the same compile without a server
  build/bin/npuc dis $out/kws_cnn.h    what the NPU executes
  build/bin/npucd --data-dir $work/data --insecure --web 127.0.0.1:8480    the dashboard
  README.md, "Ten minutes with a model of your own"
  tests/run.sh    every check of this project
NEXT
