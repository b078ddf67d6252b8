# Part of the launcher: hmalloc pdes.
# shellcheck shell=sh disable=SC2154

pdes_models() { sed -n '/^Models/,/^$/s/^  //p' "$lab/help/pdes.txt"; }

pdes() { # MODEL [--ranks N] [--preload WHICH] [--live] [--html FILE] ARGS...
  case ${1-} in '' | -h | --help) help pdes ;; list) pdes_models; exit 0 ;; esac
  model=$1 ranks=1 preload='' live='' page='' wants_page=''
  pdes_models | cut -d ' ' -f 1 | grep -qxF -e "$model" || die 2 "pdes: no model $model (hmalloc pdes list)"
  shift
  left=$#
  while [ "$left" -gt 0 ]; do # every word once; all but ours go back to the end
    word=$1
    shift
    left=$((left - 1))
    case $word in
      --ranks=*) ranks=${word#*=} ;;
      --preload=*) preload=${word#*=} ;;
      --html=*) page=${word#*=} wants_page=yes ;;
      --live) live=yes ;;
      --ranks | --preload | --html)
        [ "$left" -gt 0 ] || die 2 "pdes: $word needs a value (hmalloc pdes --help)"
        case $word in --ranks) ranks=$1 ;; --html) page=$1 wants_page=yes ;; *) preload=$1 ;; esac
        shift
        left=$((left - 1)) ;;
      *) set -- "$@" "$word" ;;
    esac
  done
  [ "$page" ] || [ -z "$wants_page" ] || die 2 "pdes: --html needs a value (hmalloc pdes --help)"
  case $ranks in *[!0-9]* | '' | 0*) die 2 "pdes: --ranks: '$ranks' is not a number of processes" ;; esac
  [ "$ranks" = 1 ] || [ -z "$live$page" ] ||
    die 2 "pdes: --live and --html are for one process; with --ranks: --series and --summary, then hmalloc bench plot"
  if [ "$ranks" = 1 ]; then need_pdes; else need_pdes ranks; fi
  program=$natives/hmalloc-pdes-$model
  [ -z "$from_source" ] || program=$natives/pdes/hmalloc-pdes-$model
  [ -x "$program" ] || die 2 "pdes: hmalloc was installed without its models (Debian: hmalloc-pdes-dev; to build them: CLI11, nlohmann-json, Random123)"
  if [ "$preload" ]; then
    choose_allocator pdes "$preload"
    set -- --allocator malloc "$@"
  else
    library=
  fi
  [ -z "$live$page" ] || watch "$@"
  [ "$ranks" = 1 ] || run_ranks "$@"
  preload_allocator
  exec "$program" "$@"
}

# The library is for the program, not for Python.
watch() { # ARGS... of $program
  libraries=
  if [ "$library" ]; then
    require_usable "$library"
    inherited=$(without_ours "${LD_PRELOAD-}")
    libraries=$library${inherited:+:$inherited}
  fi
  part tools
  need_python
  exec_python "$lab" pdes ${live:+--live} ${page:+"--html=$page"} ${libraries:+"--preload=$libraries"} -- "$program" "$@"
}

# USR1 is handed on by mpirun, but after TERM it would give the ranks a second, in which no large run can be saved.
tell() { # SIGNAL
  told=yes whom=${!-}
  [ "$whom" ] || { trap - "$1"; kill -s "$1" $$; } # there is no mpirun yet
  [ "$1" = USR1 ] || whom=$(cat "/proc/$whom/task/"*/children 2>/dev/null) || :
  # shellcheck disable=SC2086 # one word for each rank
  kill -s "$1" ${whom:-$!} 2>/dev/null || :
}

# pdes/mpi/README.md explains the options.
run_ranks() { # ARGS... of $program
  have mpirun || die 2 "pdes: --ranks needs mpirun (on Debian: openmpi-bin)"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  if [ "$library" ]; then # into the ranks, not into mpirun
    require_usable "$library"
    set -- env "LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}" "$program" "$@"
  else
    set -- "$program" "$@"
  fi
  code='' interrupted='' told=yes
  trap 'told=yes interrupted=yes' INT # Ctrl-C is for mpirun and the ranks, which report before they end
  trap 'tell TERM' TERM
  trap 'tell USR1' USR1
  mpirun -q --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader -n "$ranks" "$@" &
  while [ "$told" ]; do # a signal ends the wait, too; 127: it has been waited for already
    told='' status=0
    wait $! || status=$?
    case $status:$code in 127:?*) ;; *) code=$status ;; esac
  done
  [ -z "$interrupted" ] || exit 130
  case $code in
    130 | 143) ;;
    129 | 1[3-9]?) say "pdes: a rank was ended by signal $((code - 128)), and the run with it" ;;
  esac
  exit "$code"
}
