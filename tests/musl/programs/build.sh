# A project without languages: cmake makes 120 rules, ninja runs them, each in a shell, several at a time; then once more.
set -e
rm -rf /tmp/project && mkdir /tmp/project && cp CMakeLists.txt /tmp/project && cd /tmp/project
cmake=/opt/cmake/cmake/data/bin/cmake
ninja=$(echo /opt/ninja/*/scripts/ninja)
$cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$ninja -S . -B build >/dev/null
# What the rules' processes say on standard error, ninja says on its output.
$ninja -C build -j 4 | { grep '^hmalloc' || true; } >&2
sha256sum build/all.txt
$ninja -C build -j 4 | tail -n 1
