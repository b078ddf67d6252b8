# Part of the launcher: fetches and builds what is missing.
# shellcheck shell=sh disable=SC2154  # reads here, lab, state, venv, library, natives, from_source; calls have, die

logs=$state/logs

# Runs a command silently.  Its output is kept in a log, and the end of it shown if the command fails.
step() { # WHAT LOG COMMAND...
  what=$1 log=$logs/$2
  shift 2
  mkdir -p "$logs" || exit 2
  printf 'hmalloc: %s ...' "$what" >&2
  began=$(date +%s)
  if "$@" >"$log" 2>&1 </dev/null 9>&-; then
    printf ' done (%d s)\n' $(($(date +%s) - began)) >&2
    return
  fi
  printf ' failed\n' >&2
  tail -n 30 "$log" | sed 's/^/  /' >&2
  die 2 "the whole log: $log"
}

# Two launchers at once must not build, or fill the environment, into each other.
alone() { # COMMAND...
  mkdir -p "$state" || exit 2
  (flock 9 && "$@") 9>"$state/lock" || exit $?
}

# ---- What the machine lacks. --------------------------------------------------------------------------------------

apt_install() {
  as_root=
  [ "$(id -u)" = 0 ] || as_root=sudo
  apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=600"
  $apt install --no-install-recommends "$@" && return
  # The lists of packages are missing or too old.
  $apt update && $apt install --no-install-recommends "$@"
}

install_packages() {
  [ $# -gt 0 ] || return 0
  have apt-get || die 2 "please install $*: this machine has no apt-get to do it with"
  [ "$(id -u)" = 0 ] || have sudo || die 2 "please install $*: that needs root, or sudo"
  step "installing $*" apt.log apt_install "$@"
}

install_missing() { # PACKAGE..., by the package manager's own knowledge
  missing=
  for package; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
  done
  # shellcheck disable=SC2086  # a list of words
  install_packages $missing
}

install_tools() {
  missing=
  have g++ || have "${CXX:-c++}" || missing="$missing g++"
  have cc || have "${CC:-gcc}" || missing="$missing gcc"
  have cmake || missing="$missing cmake"
  have ninja || missing="$missing ninja-build"
  # shellcheck disable=SC2086
  install_packages $missing
}

find_python() {
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && return
  done
  return 1
}

# ---- What has to be built. ----------------------------------------------------------------------------------------

fill_venv() {
  cmp -s "$lab/requirements.lock" "$venv/requirements.lock" && "$venv/bin/python" -c '' 2>/dev/null && return
  find_python || install_packages python3 python3-venv
  find_python || die 2 "Python 3.10 or newer is needed, with its venv module"
  rm -rf "$venv"
  step "setting up the Python tools" venv.log make_venv
}

make_venv() {
  "$python" -m venv "$venv" &&
    "$venv/bin/python" -m pip install --disable-pip-version-check --require-hashes -r "$lab/requirements.lock" &&
    cp "$lab/requirements.lock" "$venv/requirements.lock"
}

fill_lab() {
  cmp -s "$lab/requirements-bench.lock" "$venv/requirements-bench.lock" && return
  step "setting up the laboratory" lab.log add_lab
}

add_lab() {
  "$venv/bin/python" -m pip install --disable-pip-version-check --require-hashes -r "$lab/requirements-bench.lock" &&
    cp "$lab/requirements-bench.lock" "$venv/requirements-bench.lock"
}

# What the commands need; with the baselines, the traces, the simulations or the benchmarks; or everything with the tests.
build() { # tools | baselines | trace | pdes | ranks | bench | everything
  install_tools
  cd "$here" || exit 2
  tests=OFF targets='hmalloc hmalloc-checked hmalloc_static hmalloc-tools'
  case $1 in
    baselines) targets="$targets hmalloc-baselines" ;;
    trace) targets="$targets hmalloc-trace hmalloc-record" ;;
    pdes | ranks) targets="$targets pdes/all" ;;
    bench) targets="$targets hmalloc-trace hmalloc-record hmalloc-baselines bench/all" ;;
    everything) tests=ON targets=all ;;
  esac
  # Once the tests are configured they stay so: switching back and forth would build everything anew.
  if [ ! -f build/release/build.ninja ] ||
    { [ "$tests" = ON ] && ! grep -q '^HMALLOC_BUILD_TESTS:BOOL=ON' build/release/CMakeCache.txt; }
  then step configuring configure.log cmake --preset release "-DHMALLOC_BUILD_TESTS=$tests"
  elif ! configured "$1"
  then step configuring configure.log cmake --preset release; fi  # its libraries have come since
  # shellcheck disable=SC2086
  up_to_date $targets || step "building hmalloc" build.log cmake --build --preset release --target $targets
}

# Whether the libraries were there when the build was configured.
configured() { # tools | baselines | trace | pdes | ranks | bench | everything
  case $1 in
    tools | baselines) ;;
    pdes) grep -q '^build hmalloc-pdes-phold:' build/release/build.ninja ;;
    ranks) configured pdes && grep -q '^HM_MPI:INTERNAL=TRUE' build/release/CMakeCache.txt ;;
    trace | bench) grep -q '^build hmalloc-trace:' build/release/build.ninja ;;
    everything) configured trace && configured ranks ;;
  esac
}

# Only to say nothing when there is nothing to build.  A dry run goes no further than to a check of globbed folders;
# so that comes first, for real, and the dry run then gets the file by a name by which ninja cannot update it.
up_to_date() { # TARGET...
  ninja -C build/release build.ninja >/dev/null 2>&1 &&
    ninja -C build/release -f "$here/build/release/build.ninja" -n "$@" 2>/dev/null | grep -q 'no work to do'
}

need_library() {
  [ -z "$from_source" ] || alone build tools
  [ -f "$library" ] || die 2 "libhmalloc.so is missing: it was expected in ${library%/*}"
}

need_baselines() {
  [ -z "$from_source" ] || alone build baselines
  [ -d "$natives/baselines" ] || die 2 "the baselines are missing: they were expected in $natives/baselines"
}

# What lab/native/trace is built with.
trace_packages='libcli11-dev libzstd-dev nlohmann-json3-dev pkg-config'

need_trace() {
  if [ "$from_source" ]; then
    # shellcheck disable=SC2086
    install_missing $trace_packages
    alone build trace
  fi
  [ -x "$natives/hmalloc-trace" ] || die 2 "trace: hmalloc was installed without its libraries (zstd, CLI11)"
}

# What is nice to have: those of the packages that the distribution has, if we may install them.
wish() { # PACKAGE...
  have apt-cache || return 0
  [ "$(id -u)" = 0 ] || have sudo || return 0
  wanted=
  for package; do
    ! apt-cache show "$package" >/dev/null 2>&1 || wanted="$wanted $package"
  done
  # shellcheck disable=SC2086
  install_missing $wanted
}

# gperftools is taken from the distribution in any case.
wish_gperftools() { wish libtcmalloc-minimal4 libtcmalloc-minimal4t64; }

# Somebody to compare with besides glibc; as long as `bench peers` has built nobody, what the distribution has of them.
wish_peers() {
  wish_gperftools
  [ -f "$state/peers/peers.json" ] || wish libmimalloc2.0 libjemalloc2
}

# Servers to put under load, and what samples where their time goes.
wish_servers() {
  if have redis-server && have db_bench && have perf; then return; fi
  wish redis-server redis-tools rocksdb-tools linux-perf
}

need_workloads() {
  # shellcheck disable=SC2086
  install_missing $trace_packages
  alone build bench
}

# What the models of the simulation engine are built with, and what they need to run as several processes.
pdes_packages='libcli11-dev nlohmann-json3-dev librandom123-dev' ranks_packages='libopenmpi-dev openmpi-bin'

need_pdes() { # [ranks]
  [ "$from_source" ] || return 0
  # shellcheck disable=SC2086
  install_missing $pdes_packages ${1:+$ranks_packages}
  alone build "${1:-pdes}"
}

# The tests need GoogleTest, Spin for the models, and a browser for the report.
need_tests() {
  # shellcheck disable=SC2086
  install_missing libgtest-dev spin $trace_packages $pdes_packages $ranks_packages
  alone build everything
}

need_python() { alone fill_venv; }

need_lab() {
  need_python
  alone fill_lab
}
