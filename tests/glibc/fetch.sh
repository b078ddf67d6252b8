#!/bin/sh
# fetch.sh DIR: the source of the C library that this Debian has, its tests and what they are built with, in DIR/glibc.
# By apt, from the places that this machine is set up for; nothing is installed.  Status 77: not to be had.
set -eu
folder=$1
version=$(dpkg-query -W -f '${Version}' libc6 2>/dev/null) || { echo "no Debian with glibc here"; exit 77; }
[ ! -f "$folder/complete" ] || [ "$(cat "$folder/complete")" != "$version" ] || exit 0
command -v apt-get >/dev/null || { echo "no apt-get here"; exit 77; }

rm -rf "$folder"
mkdir -p "$folder/package"
cd "$folder"
# Another revision of the same package has the same tests, and may be all that is left to download.
apt-get -q -o APT::Sandbox::User= download "glibc-source=$version" ||
  apt-get -q -o APT::Sandbox::User= download glibc-source ||
  { echo "glibc-source cannot be downloaded (it may want apt-get update)"; exit 77; }
dpkg-deb -x glibc-source_*.deb package
tar -xJf package/usr/src/glibc/glibc-*.tar.xz --strip-components=1 --one-top-level=glibc --wildcards \
  '*/malloc/*' '*/support/*' '*/include/*.h' '*/sysdeps/generic/malloc-*.h' '*/test-skeleton.c'
rm -rf package glibc-source_*.deb
echo "$version" >complete
