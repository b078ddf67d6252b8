# Part of the launcher: hmalloc compare, doctor and bench, which are Python.
# shellcheck shell=sh disable=SC2154

# A mistyped program should be heard of before the first build, not after it.  Behind options, only the tool knows
# which word is the program.
require_named_program() { # compare or doctor, ARGS...
  asked=$1
  [ "$2" != -- ] || shift
  case ${2-} in '' | -*) return ;; esac
  case $asked$2 in doctor*[!0-9]* | compare*) require_program "$2" ;; esac
}

tool() { # compare or doctor, ARGS...
  case $1${2+ $2} in
    *' -h' | *' --help') help "$1" ;;
    doctor) die 2 "doctor: which program? (hmalloc doctor --help)" ;;
    compare) ;;
    *) require_named_program "$@" ;;
  esac
  need_python
  need_library
  for word; do # one name, or several with commas between
    case ,${word#--*=}, in *,checked,*) alone build checked ;; esac
    for name in $baselines; do case ,${word#--*=}, in *,$name,*) need_baselines; break 2 ;; esac; done
  done
  exec_python "$lab" --library "$library" --measurer "$natives/hmalloc-measure" "$@"
}

wants_programs() { # ARGS...
  previous=''
  for word; do
    case $word in --families=*) previous=--families word=${word#*=} ;; esac
    [ "$previous" != --families ] || case ,$word, in *,programs,*) return 0 ;; esac
    previous=$word
  done
  return 1
}

bench() {
  [ $# -gt 0 ] || help bench
  for word; do case $word in -h | --help) help bench ;; esac; done
  need_source bench
  case $1 in
    peers) wish_gperftools; need_python; shift; exec "$venv/bin/python" -I -B "$here/bench/peers" "$@" ;;
    quick | mixes) wish_peers; need_workloads ;;
    cores) wish_peers; wish_emulator; need_workloads ;;
    paper | full) wish_peers; wish_servers; need_workloads; need_pdes ranks ;;
    baselines | engine) wish_peers; need_workloads; need_pdes ranks ;;
    resume) need_workloads; need_pdes ranks ;;
    list) need_workloads ;;
    plot | show | report | export | compare) ;;
    *) die 2 "bench: no command $1 (hmalloc bench --help)" ;;
  esac
  ! wants_programs "$@" || wish_programs
  need_lab
  exec_python "$lab" --library "$library" --measurer "$natives/hmalloc-measure" bench "$@"
}

# Isolated: what the user sets for a Python program (PYTHONPATH, PYTHONMALLOC) is not meant for the tools.
exec_python() { exec "$venv/bin/python" -I -X pycache_prefix="$state/pycache" "$@"; }
