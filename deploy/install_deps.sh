#!/usr/bin/env bash
# Installs the Debian 12 packages that npuc is built and tested with. Does nothing, quickly, where
# all of them are there. Runs as root, or through sudo.
#
#   deploy/install_deps.sh [--list] GROUP...     groups: build lint test (default: all three)
#
# One package a line in the tables below, with why it is needed.
set -euo pipefail

# To build the programs and run the sample.
build_packages=(
  ca-certificates              # for apt and git over https
  g++                          # the compiler of the release preset
  cmake
  ninja-build
  lld                          # links in a quarter of bfd's time
  ccache                       # makes a rebuild a matter of seconds
  pkg-config                   # finds libzstd and others that RocksDB's files ask for
  libabsl-dev                  # Status, strings, containers
  libprotobuf-dev              # the wire, and readers of model formats
  protobuf-compiler
  libgrpc++-dev                # the service
  protobuf-compiler-grpc
  libboost1.74-dev             # the HTTP ports: Beast and Asio, headers alone
  libcpp-httplib-dev           # the tests' HTTP client; its headers need Brotli's and zlib's
  libbrotli-dev
  prometheus-cpp-dev           # metrics; the core library alone
  zlib1g-dev
  libdeflate-dev               # inflates the entries of TorchScript and .npz archives
  librocksdb-dev               # job store and artifact cache
  liblz4-dev                   # artifacts in that cache
  libpq-dev                    # several npucd on one PostgreSQL
  libzstd-dev                  # the results that they share
  libflatbuffers-dev           # TFLite models: the reader's headers, their verifier
  flatbuffers-compiler         # makes that reader from our schema; the tests' models from JSON
  libyaml-cpp-dev              # configs
  libcli11-dev                 # command lines of npuc-remote and the benchmarks
  nlohmann-json3-dev           # JSON of npuc-remote, templates and reports
  libjpeg62-turbo-dev          # pictures as calibration data; npuc -s draws weight histograms
  libssl-dev                   # MD5 and SHA-256; TLS of the HTTP port
  libcurl4-openssl-dev         # HTTPS to the provider of sign-ins, and to S3
  libexpat1-dev                # the lists and errors of S3, which are XML
  libcjose-dev                 # signatures of that provider's tokens
  libseccomp-dev               # the system calls that a worker may make
  libgtest-dev                 # every preset configures the tests and benchmarks too
  libgmock-dev
  libbenchmark-dev
  python3                      # makes the core tables from YAML; the sample's comparison
  python3-yaml
  python3-numpy
)

# The dashboard; where npm is there already, by another package or by hand, nothing.
if ! command -v npm >/dev/null; then
  build_packages+=(
    nodejs
    npm
  )
fi

# For the lint steps of tests/run.sh.
lint_packages=(
  clang-format
  clang-tidy
  git                          # lists the tree's files
)

# To build the tests and run them.
test_packages=(
  clang                        # the dev and tsan presets
  libclang-rt-14-dev           # the sanitizers' runtimes
  llvm                         # llvm-symbolizer: sanitizer reports with lines
  openssl                      # certificates for the TLS tests
  curl                         # commands of the documentation; with a network of their own by ip
  iproute2
  python3-grpcio               # the Python example
  python3-protobuf             # proto/make_openapi.py
  python3-botocore             # the oracle of S3's signatures
  python3-setuptools           # makes the Python client's wheel
  python3-wheel
  chromium                     # drive the dashboard
  firefox-esr
  postgresql-15                # a server of the tests' own; they are skipped without it
  pgbouncer                    # a pooler in front of it
)

usage() { sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

packages=()
list_only=false
for argument in "$@"; do
  case "$argument" in
    build) packages+=("${build_packages[@]}") ;;
    lint) packages+=("${lint_packages[@]}") ;;
    test) packages+=("${test_packages[@]}") ;;
    --list) list_only=true ;;
    -h|--help) usage; exit 0 ;;
    *) echo "install_deps.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done
if [[ ${#packages[@]} -eq 0 ]]; then
  packages=("${build_packages[@]}" "${lint_packages[@]}" "${test_packages[@]}")
fi
if $list_only; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null; then
  echo "install_deps.sh: this is not a Debian system; install by your own means: ${packages[*]}" >&2
  exit 1
fi

# dpkg-query fails where one of the names is unknown, but still lists those that are installed.
format='${db:Status-Status} ${Package}\n'
installed=$(dpkg-query -W -f="$format" "${packages[@]}" 2>/dev/null) || true
missing=()
for package in "${packages[@]}"; do
  grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install_deps.sh: run it once as root, or install sudo; missing: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"
}
apt_get update
if ! apt_get install -y --no-install-recommends "${missing[@]}" >/dev/null; then
  echo "install_deps.sh: apt-get install failed for: ${missing[*]}" >&2
  exit 1
fi
echo "installed"
