# Part of the launcher: hmalloc trace.
# shellcheck shell=sh disable=SC2154

trace() { # record|info|replay [--allocator WHICH] ARGS...
  allocator=system
  case ${1-} in
    '' | -h | --help) help trace ;;
    record | info | replay) action=$1; shift ;;
    *) die 2 "trace: no action $1 (record, info or replay)" ;;
  esac
  left=$# taken=
  while [ "$left" -gt 0 ]; do # every word once; all but ours go back to the end
    word=$1
    shift
    left=$((left - 1))
    case $taken$word in
      -h | --help) help trace ;;
      --) taken=yes ;;
      --allocator=*) allocator=${word#*=}; continue ;;
      --allocator)
        [ "$left" -gt 0 ] || die 2 "trace: --allocator needs a value: $allocator_values"
        allocator=$1
        shift
        left=$((left - 1))
        continue ;;
    esac
    set -- "$@" "$word"
  done
  need_trace
  choose_allocator trace "$allocator"
  preload_allocator
  exec "$natives/hmalloc-trace" "$action" "$@"
}
