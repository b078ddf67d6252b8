#!/bin/sh
# fetch.sh DIR PACKAGE...: Debian's packages for arm64, unpacked into DIR/root.  By apt with lists of its own, from the
# places that this machine is set up for: nothing is installed, and no architecture is added.  Status 77: not to be had.
set -eu
folder=$1
shift
[ ! -f "$folder/complete" ] || [ "$(cat "$folder/complete")" != "$*" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { echo "no apt-get here"; exit 77; }

rm -rf "$folder"
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/packages" "$folder/root"
apt() {
  tool=$1
  shift
  "$tool" -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::Lists="$folder/lists" \
    -o Dir::Cache="$folder/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User= "$@"
}
apt apt-get update || { echo "apt-get update failed"; exit 77; }
# The kernel is a package that depends on the current one.
kernel=$(apt apt-cache depends linux-image-cloud-arm64 | sed -n 's/^ *Depends: //p')
cd "$folder/packages"
apt apt-get download "$kernel" "$@" || { echo "apt-get download failed"; exit 77; }
for package in *.deb; do dpkg-deb -x "$package" ../root; done
rm -rf ../lists ../cache
echo "$*" >"$folder/complete"
