# Part of the launcher: hmalloc test fuzz.
# shellcheck shell=sh disable=SC2154

# FUZZER:INPUTS:WEIGHT of each build; inputs are shared by the fuzzers that read them alike.  The time is shared out by weight:
# what reads text has seen all its edges within seconds.
fuzzers_of() { # plain | asan | tsan
  case $1 in
    plain) echo heap:heap:4 heap_checked:heap:3 heap_hardened:heap:3 heap_failing:heap:3 slices:slices:2 huge:huge:2 \
      huge_failing:huge:2 options:options:1 trace:trace:1 ;;
    asan) echo heap:heap:4 slices:slices:2 huge:huge:2 options:options:1 trace:trace:1 ;;
    tsan) echo heap:heap:4 ;;
  esac
}

run_fuzzers() { # [--for TIME] [--only FUZZER] [--build BUILD]
  seconds=60 only='' builds='plain asan tsan'
  while [ $# -gt 0 ]; do
    case $1 in --*=*) word=${1%%=*} value=${1#*=}; shift; set -- "$word" "$value" "$@" ;; esac
    case $1 in --for | --only | --build) [ $# -gt 1 ] || die 2 "test fuzz: $1 needs a value" ;; esac
    case $1 in
      --for) seconds=$(seconds_in "test fuzz" "$2") || exit 2 ;;
      --only) only=$2 ;;
      --build) builds=$2 ;;
      *) die 2 "test fuzz: unknown argument $1 (hmalloc test --help)" ;;
    esac
    shift 2
  done
  chosen='' weights=0
  for build in $builds; do
    case $build in plain | asan | tsan) ;; *) die 2 "test fuzz: no build $build (plain, asan or tsan)" ;; esac
    for fuzzer in $(fuzzers_of "$build"); do
      name=${fuzzer%%:*} weight=${fuzzer##*:} inputs=${fuzzer#*:}
      inputs=${inputs%:*}
      case $only in '' | "$name" | "$inputs")
        chosen="$chosen $weight:$build:$name:$inputs" weights=$((weights + weight)) ;;
      esac
    done
  done
  [ $weights -gt 0 ] || die 2 "test fuzz: no fuzzer $only in the builds asked for"
  need_fuzzers
  fuzz_state=$state/fuzz failed=
  mkdir -p "$fuzz_state/found" "$fuzz_state/logs"
  exec 8>>"$fuzz_state/lock"
  flock -n 8 || die 2 "test fuzz: another campaign writes to $fuzz_state; wait for it, or use another copy of the tree"
  case " $builds " in *' plain '*) for program in "$fuzz_state"/tests/fuzz/hm_fuzz_*.*; do run_control "$program"; done ;; esac
  say "fuzzing for $seconds s:$chosen (weight:build:fuzzer:inputs)"
  for fuzzer in $chosen; do
    share=$((seconds * ${fuzzer%%:*} / weights))
    [ $share -gt 0 ] || share=1
    run_fuzzer "$share" $(echo "${fuzzer#*:}" | tr : ' ')
  done
  say "a table of what was run: $fuzz_state/log.md; the inputs: $fuzz_state/corpus"
  [ -z "$failed" ] || die 1 "found by:$failed.  What was found: $fuzz_state/found.  To keep it: copy it into" \
    "tests/fuzz/regressions/FUZZER, after the fault is mended"
}

# Debian's clang with libFuzzer.
need_fuzzers() {
  install_tools
  # shellcheck disable=SC2086
  install_missing $trace_packages libgtest-dev
  have clang++ || install_packages clang
  cd "$here" || exit 2
  if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer -x c++ - -o /dev/null 2>/dev/null
  then install_packages "libclang-rt-$(clang++ -dumpversion | cut -d . -f 1)-dev"; fi
  for build in $builds; do alone build_fuzzers "$(fuzz_preset "$build")"; done
}

fuzz_preset() { if [ "$1" = plain ]; then echo fuzz; else echo "fuzz-$1"; fi; }

build_fuzzers() { # PRESET
  [ -f "build/$1/build.ninja" ] || step "configuring $1" "configure-$1.log" cmake --preset "$1"
  step "building $1" "build-$1.log" ninja -C "build/$1" hm_fuzz
}

inputs_of() { # INPUTS: the folders that there are
  for folder in "$here/tests/fuzz/seeds/$1" "$here/tests/fuzz/regressions/$1"; do
    [ ! -d "$folder" ] || echo "$folder"
  done
}

libfuzzer() { # PROGRAM SECONDS ARTIFACTS FOLDER...
  program=$1 most=$2 artifacts=$3
  shift 3
  nice "$program" -max_total_time="$most" -timeout=120 -rss_limit_mb=6000 -max_len=2048 -len_control=0 \
    -print_final_stats=1 -artifact_prefix="$artifacts" "$@" 8>&-
}

# A fuzzer that does not find the fault that was planted is blind, and what it says is worth nothing.
run_control() { # PROGRAM
  name=${1##*/hm_fuzz_}
  case $name in *_replay.*) return ;; esac
  inputs=${name%%.*}
  [ -z "$only" ] || [ "$only" = "$inputs" ] || return 0
  scratch=$(mktemp -d) || exit 2
  # shellcheck disable=SC2046
  if libfuzzer "$1" 120 "$scratch/" "$scratch" $(inputs_of "$inputs") >"$fuzz_state/logs/control-$name.log" 2>&1
  then failed="$failed control:$name" && say "control: $name: the planted fault was not found"
  else say "control: $name: found"; fi
  rm -rf "$scratch"
}

# ThreadSanitizer sees libFuzzer's counters race: there inputs are pieces of the corpus and of chance.
search() { # SECONDS BUILD FUZZER FOUND FOLDER...
  program=$state/$(fuzz_preset "$2")/tests/fuzz/hm_fuzz_$3
  if [ "$2" = tsan ]; then
    most=$1
    shift 4
    nice "${program}_replay" --random "$most" "$(date +%s)" "$@" 8>&-
  else
    most=$1 artifacts=$4-
    shift 4
    libfuzzer "$program" "$most" "$artifacts" "$@"
  fi
}

# Moves what a fuzzer has added to the inputs, now or before it was stopped.
keep_new() { # CORPUS NEW
  mkdir -p "$2"
  find "$2" -type f -exec mv -t "$1" {} +
  rm -rf "$2"
}

# A fuzzer reads its inputs before it makes any of its own, and all that earlier runs kept would take a short one to its end.
# So it gets so many of them, by lot, as it reads in a small part of its time.
some_of() { # SECONDS CORPUS TO
  rm -rf "$3"
  mkdir -p "$3"
  find "$2" -type f | shuf -n $((2 * $1)) | while read -r input; do ln "$input" "$3/"; done
}

run_fuzzer() { # SECONDS BUILD FUZZER INPUTS
  log=$fuzz_state/logs/$2-$3.log
  corpus=$fuzz_state/corpus/$4 found=$fuzz_state/found/$2-$3
  new=$fuzz_state/new/$2-$3 old=$fuzz_state/old/$2-$3
  mkdir -p "$corpus"
  keep_new "$corpus" "$new"
  some_of "$1" "$corpus" "$old"
  mkdir -p "$new"
  code=0
  # shellcheck disable=SC2046
  (export HM_FUZZ_HISTORY="$found.history"
    search "$1" "$2" "$3" "$found" "$new" "$old" $(inputs_of "$4") >"$log" 2>&1; code=$?
    times >"$log.times"; exit $code) || code=$?
  keep_new "$corpus" "$new"
  if [ $code = 0 ]; then rm -f "$found.history"; else failed="$failed $2:$3"; fi
  cpu=$(tail -n 1 "$log.times" | tr 'ms' '  ' | awk '{ printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }')
  runs=$(sed -n -e 's/^stat::number_of_executed_units: *//p' -e 's/^replay: \([0-9]*\) random.*/\1/p' "$log")
  edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
  said=$(grep -m 1 -e '^fuzz:' -e '^SUMMARY' "$log" | tr '|' ' ')
  commit=$(git rev-parse --short HEAD 2>/dev/null || echo '?')
  echo "| $(date -u +%Y-%m-%d) | $commit | $3 | $2 | $cpu | ${runs:-?} | ${edges:-?} | ${said:-none} |" >>"$fuzz_state/log.md"
  say "$3 ($2): ${runs:-?} inputs, ${edges:-?} edges, ${said:-nothing found}"
}
