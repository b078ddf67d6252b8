# Part of the launcher: hmalloc test.
# shellcheck shell=sh disable=SC2154

tests() {
  suite=fast
  case ${1-} in
    -h | --help) help test ;;
    fast | all | fuzz) suite=$1; shift ;;
    '' | -*) ;;
    *) die 2 "test: no suite $1 (fast, all or fuzz)" ;;
  esac
  need_source test
  part fuzz
  case $suite in fuzz) run_fuzzers "$@" ;; *) run_tests "$suite" "$@" ;; esac
}

# Packages that only tests need: what the real programs of tests/programs are, beside our own.
test_packages() {
  echo binutils
  have clang++-14 || have clang++-19 || echo clang  # tests/compilers
  have chromium || have chromium-browser || have google-chrome || echo chromium
  echo redis-server redis-tools
  [ ! -f "$here/tests/programs/run.py" ] || "$venv/bin/python" "$here/tests/programs/run.py" --packages
}

run_tests() { # fast|all CTEST-ARGUMENTS...
  suite=$1
  shift
  need_lab
  packages=$(test_packages) || die 2 "tests/programs/run.py --packages failed"
  # shellcheck disable=SC2086
  install_missing $packages
  need_tests everything
  cd "$here" || exit 2
  failed=
  if [ "$suite" = fast ]; then
    test_preset release -LE slow "$@"
    build_cross
  else
    for preset in asan tsan release; do
      [ $preset = release ] || build_preset $preset
      test_preset $preset "$@"
    done
    install_missing qemu-system-arm cpio
    test_cross "$@"
  fi
  [ -z "$failed" ] || die 1 "tests failed:$failed"
}

# AArch64, by a cross compiler and under emulation; where that is the machine's own, the other presets have been it.
build_cross() {
  [ "$(uname -m)" != aarch64 ] || return 0
  install_missing g++-aarch64-linux-gnu googletest
  build_preset aarch64 --target hmalloc hmalloc-checked hmalloc-faults examples/all
}

test_cross() { # CTEST-ARGUMENTS...
  [ "$(uname -m)" != aarch64 ] || return 0
  install_missing qemu-user
  build_cross
  build_preset aarch64 --target tests/all
  test_preset aarch64 "$@"
}

build_preset() { # PRESET CMAKE-BUILD-ARGUMENTS...
  preset=$1
  shift
  [ -f "build/$preset/build.ninja" ] || step "configuring $preset" "configure-$preset.log" cmake --preset "$preset"
  step "building $preset" "build-$preset.log" cmake --build --preset "$preset" "$@"
}

test_preset() { # PRESET CTEST-ARGUMENTS...
  preset=$1
  shift
  say "testing $preset"
  ctest --preset "$preset" -j "$(nproc)" --no-tests=error "$@" </dev/null || failed="$failed $preset"
}
