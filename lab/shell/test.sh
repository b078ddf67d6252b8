# Part of the launcher: hmalloc test.
# shellcheck shell=sh disable=SC2154

# Packages that only tests need: what the real programs of tests/programs are, beside our own.
test_packages() {
  echo binutils
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
  need_tests
  cd "$here" || exit 2
  failed=
  if [ "$suite" = fast ]; then
    test_preset release -LE slow "$@"
  else
    for preset in asan tsan release; do
      [ $preset = release ] || build_preset $preset
      test_preset $preset "$@"
    done
  fi
  [ -z "$failed" ] || die 1 "tests failed:$failed"
}

build_preset() {
  [ -f "build/$1/build.ninja" ] || step "configuring $1" "configure-$1.log" cmake --preset "$1"
  step "building $1" "build-$1.log" cmake --build --preset "$1"
}

test_preset() { # PRESET CTEST-ARGUMENTS...
  preset=$1
  shift
  say "testing $preset"
  ctest --preset "$preset" -j "$(nproc)" --no-tests=error "$@" </dev/null || failed="$failed $preset"
}
