#!/usr/bin/env bash
# Shows what this machine may be unable to: npucd under systemd, by the shipped unit, on Debian
# 12's own kernel with cgroup v2. Boots a virtual machine (QEMU) of nothing but Debian's packages
# and this build's programs. Minutes; not in CI.
#
#   tests/fault/systemd_vm/run.sh [BUILD]      (default: build)
#
# Needs root (debootstrap) and: apt-get install qemu-system-x86 debootstrap cpio openssl
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../../.." && pwd)
build=$(cd "${1:-$top/build}" && pwd)
work="$build/systemd_vm"
root="$work/root"

missing=()
for tool in qemu-system-x86_64 debootstrap cpio openssl; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
if [[ ${#missing[@]} -gt 0 || $(id -u) -ne 0 ]]; then
  echo "systemd_vm/run.sh: needs root and:" >&2
  echo "  apt-get install qemu-system-x86 debootstrap cpio openssl" >&2
  exit 2
fi
tests=(npuc_worker_cgroup_test npuc_hostile_test npuc_hostile_worker)
for program in bin/npucd bin/npuc-worker bin/npuc-remote bin/npuc "${tests[@]/#/test_bin/}"; do
  if [[ ! -x "$build/$program" ]]; then
    echo "systemd_vm/run.sh: build $build/$program first" >&2
    exit 2
  fi
done

echo "== a Debian 12 with systemd"
mkdir -p "$work"
if [[ ! -e "$work/base.done" ]]; then
  rm -rf "$work/base"
  debootstrap --variant=minbase --include=systemd,systemd-sysv bookworm "$work/base" \
    >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log" >&2; exit 1; }
  touch "$work/base.done"
fi
if [[ ! -e "$work/vmlinuz" ]]; then
  package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ {print $2; exit}')
  (cd "$work" && apt-get download -qq "$package" 2>/dev/null)
  rm -rf "$work/kernel"
  dpkg-deb -x "$work/$package"_*.deb "$work/kernel"
  cp "$work"/kernel/boot/vmlinuz-* "$work/vmlinuz"
fi

echo "== this build, installed as deploy/systemd/npucd.service says"
rm -rf "$root"
cp -a "$work/base" "$root"
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,locale,man}
install -D -t "$root/usr/local/bin" "$build"/bin/{npucd,npuc-worker,npuc-remote}
# In the folder where it was built, which the tests name.
install -D -t "$root$build/test_bin" "${tests[@]/#/$build/test_bin/}"
for program in "$root"/usr/local/bin/* "$root$build"/test_bin/*; do
  { ldd "$program" || true; } 2>"$work/ldd.log" | awk '/=> \// {print $3}'
done | sort -u | while read -r library; do
  [[ -e "$root$library" ]] || install -D "$(readlink -f "$library")" "$root$library"
done
install -D -m 644 -t "$root/etc/systemd/system" "$top/deploy/systemd/npucd.service" \
  "$here/proof.service"
install -D "$here/proof.sh" "$root/usr/local/bin/proof.sh"
install -D "$here/init" "$root/vm-init"
# systemd empties /tmp as it starts, and the tests with it where the build is below /tmp.
mkdir -p "$root/etc/tmpfiles.d"
ln -sf /dev/null "$root/etc/tmpfiles.d/tmp.conf"
ln -sf ../proof.service "$root/etc/systemd/system/multi-user.target.wants/proof.service"
cp -r "$top/deploy/samples/kws" "$root/opt/kws"
PYTHONPATH="$top/tests/bench:$top/tests/e2e:$top/tests/models" \
  /usr/bin/python3 -c "import compile_bench
open('$root/opt/large.yaml', 'w').write(compile_bench.write_dense('$root/opt', 1))"
sed -i "s|$root/opt/||" "$root/opt/large.yaml"
"$build/bin/npuc" "$top/deploy/samples/kws/config.yaml" -o "$root/opt/expected" >/dev/null

echo "== certificate and tenants file"
etc="$root/etc/npuc"
mkdir -p "$etc"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=vm \
  -addext "subjectAltName = IP:127.0.0.1" -keyout "$etc/server.key" -out "$etc/server.pem" \
  2>"$work/openssl.log"
"$build/bin/npucd" --new-token >"$work/token"
awk '/^token / {print $NF}' "$work/token" >"$root/opt/token"
cat >"$etc/tenants.yaml" <<YAML
format: 1
tenants:
  farm:
    identities:
      ci:
        rights: [submit, read, cancel]
        token_sha256: $(awk '/^token_sha256/ {print $NF}' "$work/token")
YAML
chroot "$root" useradd --system --home-dir /var/lib/npuc --shell /usr/sbin/nologin npuc
chroot "$root" chown -R npuc:npuc /etc/npuc
chmod 600 "$root/opt/token" "$etc/server.key"

echo "== boot"
(cd "$root" && find . -xdev | cpio --quiet -o -H newc) >"$work/initrd"
timeout 900 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3072 -nographic \
  -no-reboot -net none -kernel "$work/vmlinuz" -initrd "$work/initrd" \
  -append "console=ttyS0 rdinit=/vm-init quiet panic=-1" </dev/null | tee "$work/console.log" |
  grep --line-buffered -a "^proof:" || true
grep -aq "^proof: all shown" "$work/console.log" || {
  echo "systemd_vm/run.sh: failed; the end of $work/console.log:" >&2
  tail -n 40 "$work/console.log" >&2
  exit 1
}
