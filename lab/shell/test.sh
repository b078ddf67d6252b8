# Part of the launcher: hmalloc test.
# shellcheck shell=sh disable=SC2154

# What `all` is, the most valuable first: what a change breaks is most often seen by what comes early.
all_stages='default rest cross asan tsan aarch64 slow'
suites="quick, all, fuzz, or a stage of all: $(echo "$all_stages" | sed 's/ /, /g')"

tests() { # [SUITE] [--for TIME] [--from STAGE] CTEST-ARGUMENTS...
  for word; do case $word in -h | --help) help test ;; esac; done
  suite=default
  case ${1-} in '' | -*) ;; *) suite=$1; shift ;; esac
  case " $all_stages quick all fuzz " in *" $suite "*) ;; *) die 2 "test: no suite $suite ($suites)" ;; esac
  need_source test
  case $suite in
    fuzz) part fuzz; run_fuzzers "$@" ;;
    *) read_options "$@"; run_stages ;;
  esac
}

# Sets stages, deadline and ctest_options, a text for eval; our own options come first or anywhere between.
read_options() { # [--for TIME] [--from STAGE] CTEST-ARGUMENTS...
  stages=$suite before='' exclude='' ctest_options='' last=''
  [ "$suite" != all ] || stages=$all_stages
  while [ $# -gt 0 ]; do
    case $1 in --for=* | --from=*) word=${1%%=*} value=${1#*=}; shift; set -- "$word" "$value" "$@" ;; esac
    case $1 in --for | --from | -LE) [ $# -gt 1 ] || die 2 "test: $1 needs a value (hmalloc test --help)" ;; esac
    case $1 in
      --for) seconds=$(seconds_in test "$2") || exit 2; limit_time "$seconds"; shift ;;
      --from) stages=$(stages_from "$2") || exit 2; shift ;;
      -LE) exclude="$exclude|$2"; shift ;; # ctest would exclude what has both its labels and ours
      -*) known_to_ctest "$1"; pass "$1" ;;
      *) case $last in -*) pass "$1" ;; *) die 2 "test: what is $1? (hmalloc test --help)" ;; esac ;;
    esac
    last=$1
    shift
  done
}

limit_time() { # SECONDS: ctest knows times of a day only
  [ "$1" -lt 86400 ] || die 2 "test: --for: less than a day, please"
  deadline=$(($(date +%s) + $1))
}

pass() { ctest_options="$ctest_options '$(printf '%s' "$1" | sed "s/'/'\\\\''/g")'"; last=$1; }

stages_from() { # STAGE
  case " $stages " in *" $1 "*) echo "$1 ${stages#*"$1"}" ;; *) die 2 "test: --from: $suite has no stage $1 ($stages)" ;; esac
}

# ctest itself passes over what it does not know.
known_to_ctest() { # OPTION: --long, --long=value, -S or -Svalue
  have ctest || return 0
  long=${1%%=*} short=$(printf %.2s "$1")
  case $long in *[!-A-Za-z]*) long=$short ;; esac
  ctest --help | grep -qE -e "(^|[ ,|])($long|$short <[a-z]+>)([][ ,=<]|\$)" ||
    die 2 "test: neither hmalloc nor ctest has an option $1 (hmalloc test --help)"
}

# ---- Stages. ------------------------------------------------------------------------------------------------------

# Each in a shell of its own, so that one that cannot be built does not keep the others from being tested.
run_stages() {
  failed='' missed='' tested=$logs/tested losses=$logs/failed
  rm -f "$tested" "$losses"
  for stage in $stages; do
    ! out_of_time || { missed="$missed $stage"; continue; }
    code=0
    (run_stage "$stage") || code=$?
    case $code in
      0) ;;
      "$late") missed="$missed $stage" ;;
      2) [ "$stages" != "$stage" ] || exit 2; failed="$failed $stage" ;; # could not be built, and has said why
      *) failed="$failed $stage" ;;
    esac
  done
  [ -z "$missed" ] || say "the time is over; not reached, or not to the end:$missed"
  [ ! -f "$losses" ] || while IFS= read -r line; do say "$line"; done <"$losses"
  [ -z "$failed" ] || die 1 "tests failed:$failed"
  [ -f "$tested" ] || [ "$missed" ] || [ "$suite" = cross ] ||
    die 1 "test: no test of $suite is what you asked for (hmalloc test --help)"
}

run_stage() { # STAGE
  not_now="^(later|baselines|slow)\$$exclude"
  case $1 in
    quick) need_python; need_tests quick; run_ctest release -L '^quick$' -LE "$not_now" ;;
    default) need_python; need_tests default; run_ctest release -LE "$not_now" ;;
    rest) need_everything; run_ctest release -L '^(later|baselines)$' -LE "^slow\$$exclude" ;;
    cross)
      [ "$machine" != aarch64 ] || return 0
      build_cross hmalloc hmalloc-checked hmalloc-hardened hmalloc-faults examples/all
      run_ctest aarch64 -L '^codegen$' ;;
    asan | tsan) need_everything; build_preset "$1" all; run_ctest "$1" -LE "^slow\$$exclude" ;;
    aarch64)
      [ "$machine" != aarch64 ] || return 0
      install_missing qemu-user
      build_cross all
      run_ctest aarch64 -LE "^slow\$$exclude" ;;
    slow) need_everything; run_slow ;;
  esac
}

run_slow() {
  install_missing qemu-system-arm cpio
  codes=0
  build_cross all
  for preset in release asan tsan aarch64; do
    case $preset in asan | tsan) build_preset $preset all ;; aarch64) [ "$machine" != aarch64 ] || continue ;; esac
    (run_ctest $preset -L '^slow$' -LE "^none\$$exclude") || codes=$?
  done
  exit $codes
}

need_everything() {
  need_lab
  packages=$(test_packages) || die 2 "tests/integration/run.py --packages failed"
  # shellcheck disable=SC2086
  install_missing $packages
  wish clang-19  # tests/compilers: the newest that Debian 12 and 13 have
  wish bpftrace gdb heaptrack linux-perf  # tests/neighbours
  alone wish_memray
  need_tests everything
}

# Packages that only tests need: what the real programs of tests/integration are, beside our own.
test_packages() {
  echo binutils
  have clang++-14 || have clang++-19 || echo clang  # tests/compilers
  have qemu-x86_64 || echo qemu-user                # bench cores
  have chromium || have chromium-browser || have google-chrome || echo chromium
  have musl-gcc || echo musl-tools                  # tests/musl
  echo redis-server redis-tools
  [ ! -f "$here/tests/integration/run.py" ] || "$venv/bin/python" "$here/tests/integration/run.py" --packages
}

# What tests/neighbours has of Python's registry.
wish_memray() {
  wanted=$here/tests/neighbours/requirements.lock
  ! cmp -s "$wanted" "$venv/neighbours.lock" || return 0
  (step "fetching memray" memray.log add_memray) || say "left out: memray"
}

add_memray() { pip_install --no-deps --only-binary :all: -r "$wanted" && cp "$wanted" "$venv/neighbours.lock"; }

# AArch64, by a cross compiler and under emulation; where that is the machine's own, the other stages have been it.
machine=$(uname -m)
build_cross() { # TARGETS...
  [ "$machine" != aarch64 ] || return 0
  install_missing g++-aarch64-linux-gnu googletest
  build_preset aarch64 "$@"
}

build_preset() { # PRESET TARGETS...
  preset=$1
  shift
  cd "$here" || exit 2
  check_origin "$preset"
  [ -f "build/$preset/build.ninja" ] || step "configuring $preset" "configure-$preset.log" cmake --preset "$preset"
  alone step "building $preset" "build-$preset.log" in_time ninja -C "build/$preset" "$@"
}

# ---- One run of ctest. --------------------------------------------------------------------------------------------

run_ctest() { # PRESET CTEST-ARGUMENTS...
  preset=$1
  shift
  cd "$here" || exit 2
  eval "set -- --preset $preset \"\$@\" $ctest_options"
  chosen=$(ctest -N "$@" 2>&1 | sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p')
  [ "$chosen" ] || return 0
  say "$stage: testing $preset"
  : >"$tested"
  if [ "$deadline" ]; then # a time of day that is over would be that of tomorrow
    [ "$(seconds_left)" -gt 2 ] || exit $late
    set -- "$@" --stop-time "$(date -d "@$deadline" +%H:%M:%S)"
  fi
  said=$logs/ctest-$preset.log
  ! ctest -j "$(nproc)" -O "$said" "$@" </dev/null || return 0
  ended=$(judged "$said")
  lost=$(echo "$ended" | sed -n 's/^failed //p')
  if out_of_time; then
    say "not reached in $preset:$(echo "$chosen" | not_in "$(echo "$ended" | sed -n 's/^passed //p') $lost" | by_room)"
    [ "$lost" ] || exit $late
  fi
  {
    echo "failed in $stage:" $lost
    for name in $lost; do last_words "$name" "$said"; done
  } >>"$losses"
  exit 1
}

# What a failed test said last: whoever reads the end of a long log sees why.
last_words() { # TEST LOG
  awk -v name="$1" '
    /^ *[0-9]+\/[0-9]+ Test +#/ { ours = $4 == name; next }
    /^[0-9]+% tests passed/ { exit }
    ours && NF && !/^ +Start +[0-9]+: / { lines[++last] = $0 }
    END { for (n = last > 20 ? last - 19 : 1; n <= last; n++) print "  " lines[n] }' "$2"
}

# How each test ended: "passed NAME", "failed NAME", or "late NAME", which ctest broke off at its stop time.  It calls these
# last a timeout, and writes that it stops in the middle of such a test's line: the list of failures at the end is whole.
judged() { # LOG
  awk -v timed="$deadline" -v jobs="$(nproc)" '
    /^ *[0-9]+\/[0-9]+ Test +#/ { names[++last] = $4 }
    /^The following tests FAILED:/ { at_end = 1 }
    at_end && $2 == "-" { how[$3] = $NF == "(Timeout)" ? "timeout" : "failed" }
    END {
      for (n = last; timed && n > last - jobs && how[names[n]] == "timeout"; n--) how[names[n]] = "late"
      for (n = 1; n <= last; n++) if (!how[names[n]]) print "passed", names[n]
      for (name in how) if (how[name]) print (how[name] == "timeout" ? "failed" : how[name]), name
    }' "$1"
}

not_in() { # NAMES: passes on the lines that are none of them
  awk -v names="$1" 'BEGIN { n = split(names, list); while (n) known[list[n--]] = 1 } !($0 in known)'
}

# Names in one line; many tests of a room as one.
by_room() {
  awk '{ room = $0; sub(/[.-].*/, "", room); if (!n[room]++) rooms[++last] = room; names[room] = names[room] " " $0 }
    END { for (i = 1; i <= last; i++) { r = rooms[i]; printf "%s", (n[r] > 12 ? " " r ".* (" n[r] " tests)" : names[r]) } }'
}
