#!/usr/bin/env bash
# Every check of this project, in one command; CI runs exactly this. Installs what it needs.
#
#   tests/run.sh [--quick] [--no-install] [--tidy-all]
#   tests/run.sh FOLDER... | --changed
#
# The second form is the loop while you work: format, lints, and the build and tests (dev preset) of
# these folders alone, or of the folders that differ from origin/main. The first form is the whole.
#
# Steps: packages; clang-format; layer and style lints and their self tests; the dev build (clang,
# ASan + UBSan) and its tests, fuzz corpora among them; clang-tidy; the release build (g++) and the
# end-to-end tests on it; ThreadSanitizer on the tests labelled tsan.
#   --quick        release build and its unit tests only
#   --no-install   skip the package check
#   --tidy-all     clang-tidy on all sources, not only on what the last commit changed
# A step that fails does not keep later ones from running where they still make sense. Logs are in
# build/test-logs/. The last line counts the tests: N passed, N failed, N skipped.
# The exit code is 0 only where every step passed.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
logs="$root/build/test-logs"
python=/usr/bin/python3
jobs=$(nproc)
quick=false
install=true
tidy_all=false
changed=false
folders=()
for argument in "$@"; do
  case "$argument" in
    --quick) quick=true ;;
    --no-install) install=false ;;
    --tidy-all) tidy_all=true ;;
    --changed) changed=true ;;
    -h|--help) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    [!-]*)
      if [[ ! -d "$argument" ]]; then
        echo "run.sh: no folder '$argument' in $root" >&2
        exit 2
      fi
      folders+=("${argument%/}") ;;
    *) echo "run.sh: unknown argument '$argument' (try --help)" >&2; exit 2 ;;
  esac
done
rm -rf "$logs"
mkdir -p "$logs"
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

summary=()
failed_steps=0

# step NAME COMMAND...: runs it, output to the log; shows the end of the log where it fails.
step() {
  local name="$1" log code started=$SECONDS
  shift
  log="$logs/$(tr -c 'a-zA-Z0-9\n' '-' <<<"$name").log"
  printf '== %-44s' "$name"
  "$@" >"$log" 2>&1
  code=$?
  local took=$((SECONDS - started))
  if [[ $code -eq 0 ]]; then
    printf 'ok      %4d s\n' "$took"
    summary+=("$(printf 'ok      %4d s  %s' "$took" "$name")")
  else
    printf 'FAILED  %4d s\n' "$took"
    tail -n 60 "$log" | sed 's/^/   | /'
    echo "   the whole log: ${log#"$root"/}"
    summary+=("$(printf 'FAILED  %4d s  %s' "$took" "$name")")
    failed_steps=$((failed_steps + 1))
  fi
  return $code
}

skip() {
  printf '== %-44sskipped: %s\n' "$1" "$2"
  summary+=("$(printf 'skipped         %s (%s)' "$1" "$2")")
}

check_format() {
  git ls-files -co --exclude-standard -z -- '*.cc' '*.h' \
    | xargs -0 --no-run-if-empty ls -d 2>/dev/null \
    | xargs --no-run-if-empty -P "$jobs" -n 24 clang-format --dry-run --Werror
}

# clang-tidy on what the last commit and the work tree change; on all sources with --tidy-all, which
# takes a quarter of an hour on two cores.
check_tidy() {
  local files=()
  if ! $tidy_all && git rev-parse --quiet --verify HEAD~1 >/dev/null; then
    mapfile -t files < <(git diff --name-only --diff-filter=d HEAD~1 -- '*.cc' \
      | grep -vE '_(test|fuzz|test_util)\.cc$')
    if [[ ${#files[@]} -eq 0 ]]; then
      skip "clang-tidy" "no source changed since HEAD~1; --tidy-all checks all"
      return
    fi
  fi
  step "clang-tidy" "$python" tests/lint/run_tidy.py build/dev "${files[@]}"
}

# Builds TARGET... of PRESET after configuring it; "all" where none is named.
build() {
  local preset="$1" directory="$2"
  shift 2
  cmake --preset "$preset" && cmake --build "$directory" -j "$jobs" --target "${@:-all}"
}

# run_tests PRESET LOG_NAME CTEST_ARGUMENT...: leaves a JUnit file that the script's end counts.
run_tests() {
  local preset="$1" name="$2"
  shift 2
  ctest --preset "$preset" -j "$jobs" --output-junit "$logs/$name.junit.xml" "$@"
}

# What the end-to-end tests measured is worth seeing where they pass, too.
show_figures() {
  sed 's/^FIGURE: /   /' "$logs/e2e.figures.log" 2>/dev/null || true
}

end_to_end() {
  NPUC_FIGURES="$logs/e2e.figures.log" run_tests release e2e -L e2e
}

thread_sanitizer() {
  TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1" run_tests tsan tsan -L tsan
}

lints() {
  step "clang-format" check_format
  step "layers" "$python" tests/lint/check_layers.py
  step "style" "$python" tests/lint/check_style.py
  step "names" "$python" tests/lint/check_names.py
  step "prose" "$python" tests/lint/check_prose.py
  step "commits" "$python" tests/lint/check_commits.py
  step "deploy" "$python" tests/lint/check_deploy.py
}

# The folders of what differs from origin/main, committed or not.
changed_folders() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD)
  { git diff --name-only --diff-filter=d "$base"; git ls-files -o --exclude-standard; } \
    | xargs -r -n 1 dirname | sort -u
}

# The folder that owns FOLDER's targets: itself, or the next one above with a CMakeLists.txt.
owner_of() {
  local folder="$1"
  until [[ "$folder" == . || -f "$folder/CMakeLists.txt" ]]; do folder=$(dirname "$folder"); done
  echo "$folder"
}

# The loop: what these folders own, in the dev preset.
check_folders() {
  local owners=() owner
  mapfile -t owners < <(for folder in "$@"; do owner_of "$folder"; done | grep -vx . | sort -u)
  lints
  if [[ ${#owners[@]} -eq 0 ]]; then
    skip "build and tests" "no target belongs to these folders"
  elif step "build dev: ${owners[*]}" build dev build/dev "${owners[@]/%//all}"; then
    for owner in "${owners[@]}"; do
      if ctest --test-dir "build/dev/$owner" -LE e2e -N | grep -q '^Total Tests: 0'; then
        skip "tests: $owner" "there are none"
        continue
      fi
      step "tests: $owner" ctest --test-dir "build/dev/$owner" -j "$jobs" --output-on-failure \
        -LE e2e --output-junit "$logs/$(tr / - <<<"$owner").junit.xml"
    done
  fi
}

check_quick() {
  if step "build release" build release build; then
    step "unit tests (release)" run_tests release unit-release -LE e2e
  fi
}

check_all() {
  lints
  if command -v npm >/dev/null; then
    step "proto (buf)" "$python" tests/lint/check_proto.py
  else
    skip "proto (buf)" "npm is not installed"
  fi
  step "lint self tests" "$python" tests/lint/lint_test.py
  if step "build dev (ASan, UBSan)" build dev build/dev; then
    step "tests (dev)" run_tests dev unit-dev -LE e2e
    check_tidy
  else
    skip "tests (dev)" "the build failed"
    skip "clang-tidy" "the build failed"
  fi
  # The unit tests ran in the dev build; here the programs are enough.
  if step "build release" build release build npuc_programs; then
    step "end-to-end tests (release)" end_to_end
    show_figures
  else
    skip "end-to-end tests (release)" "the build failed"
  fi
  if step "build tsan" build tsan build/tsan npuc_tsan_tests; then
    step "tests (tsan)" thread_sanitizer
  else
    skip "tests (tsan)" "the build failed"
  fi
}

packages() {
  if $install; then step "packages" deploy/install_deps.sh "$@" || exit 1; fi
}

if $changed; then
  mapfile -t folders < <(changed_folders)
  if [[ ${#folders[@]} -eq 0 ]]; then
    echo "run.sh: nothing differs from origin/main"
    exit 0
  fi
fi
if [[ ${#folders[@]} -ne 0 ]]; then
  check_folders "${folders[@]}"
elif $quick; then
  packages build test
  check_quick
else
  packages build lint test
  check_all
fi

printf '\nsteps (%d s in all):\n' "$SECONDS"
printf '  %s\n' "${summary[@]}"
# Folders may have no tests of their own; the whole has some, or something is wrong.
totals="no tests"
if [[ ${#folders[@]} -eq 0 ]] || compgen -G "$logs/*.junit.xml" >/dev/null; then
  totals=$("$python" tests/count_tests.py "$logs"/*.junit.xml 2>&1) \
    || failed_steps=$((failed_steps + 1))
fi
if [[ $failed_steps -ne 0 ]]; then
  printf '%d step(s) failed\n' "$failed_steps"
fi
echo "$totals"
[[ $failed_steps -eq 0 ]]
