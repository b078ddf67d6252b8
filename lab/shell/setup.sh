# Part of the launcher: fetches and builds what is missing.
# shellcheck shell=sh disable=SC2154  # reads here, lab, state, venv, library, natives, from_source; calls steps.sh

# ---- What the machine lacks. --------------------------------------------------------------------------------------

install_allowed=${HMALLOC_INSTALL_PACKAGES:-1}

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
  check_folder
  [ "$install_allowed" = 1 ] || die 2 "please install $*: HMALLOC_INSTALL_PACKAGES=$install_allowed forbids me to"
  have apt-get || die 2 "please install $*: this machine has no apt-get to do it with"
  [ "$(id -u)" = 0 ] || have sudo || die 2 "please install $*: that needs root, or sudo"
  say "missing: $*; installing that with apt-get (HMALLOC_INSTALL_PACKAGES=0 forbids it)"
  step "installing packages" apt.log apt_install "$@"
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

# One lock file for all: above its line are the packages of the tools, below it those of the laboratory.
locked() { # tools | lab
  if [ "$1" = tools ]; then sed '/^# ---- The laboratory/,$d' "$lab/requirements.lock"
  else cat "$lab/requirements.lock"; fi
}

filled() { locked "$1" | cmp -s - "$venv/$1.lock"; }

fill_venv() { # tools | lab
  ! filled "$1" || ! "$venv/bin/python" -c '' 2>/dev/null || return 0
  find_python || install_packages python3 python3-venv
  find_python || die 2 "Python 3.10 or newer is needed, with its venv module"
  case $1 in
    tools) rm -rf "$venv"; step "setting up the Python tools" venv.log make_venv ;;
    lab) step "setting up the laboratory" lab.log add_packages lab ;;
  esac
}

make_venv() { "$python" -m venv "$venv" && add_packages tools; }

add_packages() { # tools | lab
  locked "$1" >"$venv/$1.new" &&
    pip_install -r "$venv/$1.new" &&
    mv "$venv/$1.new" "$venv/$1.lock"
}

pip_install() { # OPTIONS-OF-PIP...
  in_time "$venv/bin/python" -m pip install --disable-pip-version-check --retries 1 --timeout 15 --require-hashes "$@"
}

# What a command needs.  `quick` and `default` are suites of tests (tests/CMakeLists.txt), `everything` is all of them.
# tools | checked | hardened | baselines | trace | pdes | ranks | engine | bench | install | quick | default | everything
targets_of() {
  tools='hmalloc hmalloc-measure hmalloc-pipeline' traces='hmalloc-trace hmalloc-record'
  case $1 in
    tools) echo $tools ;;
    checked | hardened) echo $tools "hmalloc-$1" ;;
    baselines) echo $tools hmalloc-baselines ;;
    trace) echo $tools $traces ;;
    pdes | ranks) echo $tools pdes/all ;;
    engine) echo hmalloc hmalloc_static hmalloc-man pdes/all ;;
    bench) echo $tools hmalloc-tools $traces hmalloc-baselines bench/all ;;
    install) echo hmalloc hmalloc-checked hmalloc-hardened hmalloc_static hmalloc-tools hmalloc-man hmalloc-baselines pdes/all ;;
    quick | default) echo "hm_$1" ;;
    everything) echo all ;;
  esac
}

build() { # what targets_of takes
  install_tools
  cd "$here" || exit 2
  tests=OFF
  case $1 in quick | default | everything) tests=ON ;; esac
  # Once the tests are configured they stay so: switching back and forth would build everything anew.
  if [ ! -f build/release/build.ninja ] ||
    { [ "$tests" = ON ] && ! grep -q '^HMALLOC_BUILD_TESTS:BOOL=ON' build/release/CMakeCache.txt; }
  then
    wish_probes
    step configuring configure.log cmake --preset release "-DHMALLOC_BUILD_TESTS=$tests"
  elif ! configured "$1"
  then step configuring configure.log cmake --preset release; fi  # its libraries have come since
  # shellcheck disable=SC2046
  up_to_date $(targets_of "$1") || step "building hmalloc" build.log in_time ninja -C build/release $(targets_of "$1")
}

# What the library's probes for tracers are made with.  Before the first build, which would not notice it later.
wish_probes() {
  for header in /usr/include/sys/sdt.h /usr/include/*/sys/sdt.h; do [ ! -f "$header" ] || return 0; done
  (wish systemtap-sdt-dev) || say "left out: probes for tracers"
}

# Whether the libraries were there when the build was configured.
configured() { # what targets_of takes
  case $1 in
    tools | checked | hardened | baselines) ;;
    quick | default) has_rule pdes/libhmalloc_pdes.a ;;
    pdes) has_rule hmalloc-pdes-phold ;;
    ranks) configured pdes && grep -q '^HM_MPI:INTERNAL=TRUE' build/release/CMakeCache.txt ;;
    engine) if command -v mpicc > /dev/null; then configured ranks; else configured pdes; fi ;;
    trace | bench) has_rule hmalloc-trace ;;
    install) configured trace && configured pdes && has_rule man/hmalloc.1 ;;
    everything) configured trace && configured ranks ;;
  esac
}

has_rule() { grep -qE "^build $1( [|]|:)" "$here/build/release/build.ninja"; }

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

need_variant() { # checked | hardened
  need_library
  [ -z "$from_source" ] || alone build "$1"
  library=${library%.so*}-$1.so
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
  have apt-cache && [ "$install_allowed" = 1 ] || return 0
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

# What the simulator of many cores is a plugin of.
wish_emulator() { have qemu-x86_64 || wish qemu-user; }

# Programs to run whole, from the distribution; and what of Python's own registry they need, in the versions of their list.
wish_programs() {
  wish cargo rustc clang g++ git jq lua5.4 nodejs perl python3 sqlite3 xsltproc yosys
  wanted=$here/bench/programs/requirements.lock
  ! cmp -s "$wanted" "$state/programs/installed" || return 0
  need_python
  # Of the Python that runs them: the laboratory's may be another one.
  (step "fetching programs of Python" programs.log add_programs) || say "left out: programs of Python"
}

add_programs() {
  version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') && mkdir -p "$state/programs" &&
    pip_install --no-deps --only-binary :all: --python-version "$version" --upgrade --target "$state/programs" -r "$wanted" &&
    cp "$wanted" "$state/programs/installed"
}

# The engines of others, from the registries of their languages and from the distribution.
wish_engines() {
  wish cargo libns3-dev python3 python3-venv
  "$here/bench/engines/build" || exit $?
}

need_workloads() {
  # shellcheck disable=SC2086
  install_missing $trace_packages
  alone build bench
}

# What the models of the simulation engine are built with, and what they need to run as several processes.
pdes_packages='libcli11-dev nlohmann-json3-dev librandom123-dev' ranks_packages='libopenmpi-dev openmpi-bin'

# What tests/pdes/python runs on, which is skipped where the distribution lacks one of them.
models_in_python='python3-numba python3-pandas python3-matplotlib python3-tqdm python3-pytest python3-nbclient python3-ipykernel
  python3-simpy3'

# What --partition graph of the models loads.
wish_metis() { (wish libmetis5) || say "left out: --partition graph"; }

need_pdes() { # [ranks]
  [ "$from_source" ] || return 0
  # shellcheck disable=SC2086
  install_missing $pdes_packages ${1:+$ranks_packages}
  wish_metis
  alone build "${1:-pdes}"
}

# Of a model in C++: the engine as a library.
need_engine() {
  # shellcheck disable=SC2086
  install_missing $pdes_packages
  wish_metis
  alone build engine
}

# The tests need GoogleTest, and Spin for the models.
need_tests() { # quick | default | everything
  case $1 in
    everything)
      install_missing libgtest-dev spin $trace_packages $pdes_packages $ranks_packages
      wish_metis
      # shellcheck disable=SC2086
      wish $models_in_python ;;
    *) install_missing libgtest-dev librandom123-dev ;;
  esac
  alone build "$1"
}

need_python() { alone fill_venv tools; }

need_lab() {
  need_python
  alone fill_venv lab
}
