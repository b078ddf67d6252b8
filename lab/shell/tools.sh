# Part of the launcher: hmalloc compare, doctor, export, inspect, profile, stats, top and bench, which are Python.
# shellcheck shell=sh disable=SC2154

# A mistyped program should be heard of before the first build, not after it.  Behind options, only the tool knows
# which word is the program.
require_named_program() { # compare, doctor or profile, ARGS...
  asked=$1
  [ "$2" != -- ] || shift
  case ${2-} in '' | -*) return ;; esac
  case $asked$2 in doctor*[!0-9]* | compare* | profile*) require_program "$2" ;; esac
}

# Whom the options of compare name: what follows them is the program's.
need_named() { # compare or doctor, ARGS...
  while [ $# -gt 1 ]; do
    shift
    case $1 in
      --allocator=* | --against=*) need_each "${1#*=}" ;;
      --allocator | --against) need_each "${2-}" ;;
      -n | --runs | --for | --load | --input | --json | --show-output | --*=* | -n*) ;;
      *) return 0 ;;
    esac
    case $1 in -n | --runs | --for | --load | --input | --json | --allocator | --against) [ $# -lt 2 ] || shift ;; esac
  done
}

need_each() { # one name, or several with commas between
  for name in checked hardened; do
    case ,$1, in *,$name,*) [ -z "$from_source" ] || alone build $name ;; esac
  done
  for name in $baselines; do case ,$1, in *,$name,*) need_baselines; return ;; esac; done
}

# Whether profile only reads a file: what follows its options is the program's.
reads_profile() { # profile, ARGS...
  while [ $# -gt 1 ]; do
    shift
    case $1 in
      --from | --from=*) return 0 ;;
      --rate | --top | --skip | --html | --json | --pprof) [ $# -lt 2 ] || shift ;;
      --*=*) ;;
      *) return 1 ;;
    esac
  done
  return 1
}

tool() { # COMMAND, ARGS...
  case $1${2+ $2} in
    *' -h' | *' --help') help "$1" ;;
    inspect) die 2 "inspect: which process, or which core file? (hmalloc inspect --help)" ;;
    stats | top) die 2 "$1: which process? (hmalloc $1 --help)" ;;
    export) die 2 "export: which processes? (hmalloc export --help)" ;;
    doctor | profile) die 2 "$1: which program? (hmalloc $1 --help)" ;;
    compare | export* | inspect* | stats* | top*) ;;
    *) require_named_program "$@" ;;
  esac
  need_python
  [ -z "$from_source" ] || [ -e "$library" ] || only_read "$@"
  case $1 in
    compare) need_library; need_named "$@" ;;
    profile) reads_profile "$@" || need_library ;;
    export | inspect | stats | top) ;;
    *) need_library ;;
  esac
  exec_python "$lab" --library "$library" --measurer "$natives/hmalloc-measure" "$@"
}

names() { # OPTION NAME ARGS...: whether the option has a list with that name in it
  option=$1 name=$2 previous=''
  shift 2
  for word; do
    case $word in "$option="*) previous=$option word=${word#*=} ;; esac
    [ "$previous" != "$option" ] || case ,$word, in *,"$name",* | *,"$name:"*) return 0 ;; esac
    previous=$word
  done
  return 1
}

given() { # OPTION ARGS...: whether it has a value; an empty one is none
  option=$1 previous=''
  shift
  for word; do
    case $word in "$option="?*) return 0 ;; esac
    [ "$previous" != "$option" ] || [ -z "$word" ] || return 0
    previous=$word
  done
  return 1
}

# What a campaign does not run is neither installed nor built for it.
runs() { # FAMILY "WORKLOAD..." ARGS...: whether one with these options has cells of the family, which are of these workloads
  family=$1 of_family=$2
  shift 2
  ! given --families "$@" || names --families "$family" "$@" || return 1
  given --workloads "$@" || return 0
  for workload in $of_family; do ! names --workloads "$workload" "$@" || return 0; done
  return 1
}

bench() {
  [ $# -gt 0 ] || help bench
  for word; do case $word in -h | --help) help bench ;; esac; done
  need_source bench
  case $1 in
    peers) wish_gperftools; need_python; shift; exec "$venv/bin/python" -I -B "$here/bench/peers" "$@" ;;
    quick | mixes | cores | paper | full | baselines | engine) need_lab; only_read bench "$@" ;;
  esac
  case $1 in
    quick | mixes) wish_peers; need_workloads ;;
    cores) wish_peers; wish_emulator; need_workloads ;;
    paper | full)
      wish_peers
      ! runs servers 'redis db_bench' "$@" || wish_servers
      need_workloads
      ! runs simulation 'phold pcs airport' "$@" || need_pdes ranks ;;
    baselines | engine) wish_peers; need_workloads; need_pdes ranks ;;
    resume) need_workloads; need_pdes ranks ;;
    list) need_workloads ;;
    plot | show | report | export | compare) ;;
    *) die 2 "bench: no command $1 (hmalloc bench --help)" ;;
  esac
  ! names --families programs "$@" || wish_programs
  ! names --only engines "$@" || wish_engines
  need_lab
  exec_python "$lab" --library "$library" --measurer "$natives/hmalloc-measure" bench "$@"
}

# What is wrong with a command line is told before anything is built for it.
only_read() { in_python "$lab" --only-read "$@" || exit $?; }

# Isolated: what the user sets for a Python program (PYTHONPATH, PYTHONMALLOC) is not meant for the tools.
exec_python() { exec "$venv/bin/python" -I -X pycache_prefix="$state/pycache" "$@"; }
in_python() { "$venv/bin/python" -I -X pycache_prefix="$state/pycache" "$@"; }
