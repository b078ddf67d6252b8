# Part of the launcher: hmalloc pdes.
# shellcheck shell=sh disable=SC2154

pdes_models() { sed -n '/^Models/,/^$/s/^  //p' "$lab/help/pdes.txt"; }

pdes() { # MODEL [--ranks N] [--preload WHICH] [--live] [--html FILE] ARGS...
  case ${1-} in '' | -h | --help) help pdes ;; list) pdes_models; exit 0 ;; esac
  model=$1 ranks=1 preload='' live='' page='' wants_page=''
  case $model in
    *.py) [ -f "$model" ] || die 2 "pdes: $model: no such file" ;;
    *) pdes_models | cut -d ' ' -f 1 | grep -qxF -e "$model" || die 2 "pdes: no model $model (hmalloc pdes list)" ;;
  esac
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
  { [ ${#ranks} -lt 5 ] && [ "$ranks" -le 4096 ]; } || # mpirun -q would end without a word
    die 2 "pdes: --ranks: at most 4096, which is how many threads a run may have"
  if [ "$ranks" = 1 ]; then need_pdes; else need_pdes ranks; fi
  case $model in *.py) find_python_package ;; *) find_program ;; esac
  if [ "$preload" ]; then
    choose_allocator pdes "$preload"
    set -- --allocator malloc "$@"
  else
    library=
  fi
  [ -z "$live$page" ] || watch "$@"
  case $model in
    *.py) set -- "$python" -m hmalloc_pdes "$model" "$@" ;;
    *) set -- "$program" "$@" ;;
  esac
  [ "$ranks" = 1 ] || run_ranks "$@"
  preload_allocator
  exec "$@"
}

find_program() {
  program=$natives/hmalloc-pdes-$model
  [ -z "$from_source" ] || program=$natives/pdes/hmalloc-pdes-$model
  [ -x "$program" ] || die 2 "pdes: hmalloc was installed without its models (Debian: hmalloc-pdes-dev; to build them: CLI11, nlohmann-json, Random123)"
}

# The user's Python, if it has the package or what that needs; otherwise the distribution's, which in the source tree gets it.
find_python_package() {
  if [ "$from_source" ]; then
    export PYTHONPATH="$here/pdes/python${PYTHONPATH:+:$PYTHONPATH}" HM_PDES_LIBRARY="${HM_PDES_LIBRARY:-$natives/libhmalloc-pdes.so}"
    has_package python3 || has_package /usr/bin/python3 || install_missing python3-numba python3-pandas python3-tqdm
  fi
  for python in python3 /usr/bin/python3; do ! has_package "$python" || return 0; done
  die 2 "pdes: $model needs the Python package hmalloc_pdes: $("$python" -c 'import hmalloc_pdes, numba, pandas, tqdm' 2>&1 | tail -n 1)"
}

has_package() { "$1" -c 'import hmalloc_pdes, numba, pandas, tqdm' 2>/dev/null; }

# By the laboratory, which starts this command again without --live and --html.  The page has a point every 20 ms: most runs
# are short.  The user's own --interval comes later, and counts.
watch() { # ARGS...
  [ -z "$page" ] || set -- --interval 0.02 "$@"
  [ -z "$library" ] || require_usable "$library"
  name=${model##*/}
  part tools
  need_python
  exec_python "$lab" pdes ${live:+--live} ${page:+"--html=$page"} --name "${name%.py}" \
    -- "$self" pdes "$model" --ranks "$ranks" ${preload:+--preload "$preload"} "$@"
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
run_ranks() { # PROGRAM ARGS...
  have mpirun || die 2 "pdes: --ranks needs mpirun (on Debian: openmpi-bin)"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  if [ "$library" ]; then # into the ranks, not into mpirun
    require_usable "$library"
    set -- env "LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}" "$@"
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
