#!/usr/bin/env bash
# Makes the Python package npuc (npuc.v1: messages and stubs) of proto/ in FOLDER.
#   generate.sh FOLDER
# By protoc and gRPC's plugin of Debian, which the build needs, too: the protoc of
# python3-grpc-tools is older than optional fields.
set -euo pipefail
if [[ $# -ne 1 || "$1" == -* ]]; then
  sed -n '2,3s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
proto=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../proto" && pwd)
mkdir -p "$1/npuc/v1" "$1/npuc/rpc"
protoc -I "$proto" --python_out="$1" --grpc_python_out="$1" \
  --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" \
  "$proto"/npuc/v1/*.proto "$proto"/npuc/rpc/http.proto
touch "$1/npuc/__init__.py" "$1/npuc/v1/__init__.py" "$1/npuc/rpc/__init__.py"
