# Part of the launcher: the allocators by name, and how a program gets one.
# shellcheck shell=sh disable=SC2154  # reads state, library, natives

# baselines: each becomes a library in $natives/baselines.
baselines='one_lock hoard vvmalloc-1 vvmalloc-2 vvmalloc-3 vvmalloc-4 ar_malloc ar_malloc-lock hmalloc_paper'

is_baseline() { case " $baselines " in *" $1 "*) ;; *) return 1 ;; esac; }

allocator_values="hmalloc, checked, hardened, system, a baseline's or a peer's name, or a library's path"

# Sets library: the path of what is to be preloaded, empty for the system's malloc.
choose_allocator() { # COMMAND NAME
  case $2 in
    hmalloc) need_library ;;
    checked | hardened) need_variant "$2" ;;
    system) library='' LD_PRELOAD=$(without_ours "${LD_PRELOAD-}") ;;
    */* | *.so) library=$(readlink -f -- "$2" || echo "$2") ;;
    *)
      library=$state/peers/$2/lib$2.so
      if is_baseline "$2"; then
        need_baselines
        library=$natives/baselines/lib$2.so
      elif [ -z "$from_source" ] || [ ! -f "$library" ]; then
        die 2 "$1: no allocator $2 (hmalloc, checked, hardened, system, $(echo "$baselines" | sed 's/ /, /g'), the path of a library," \
          "or what 'hmalloc bench peers' has built)"
      fi ;;
  esac
}

# What is preloaded already, less this library.
without_ours() { # LIST
  printf '%s\n' "$1" | tr ' :' '\n\n' | grep -Ev '(^|/)libhmalloc[^/]*$' | paste -s -d : -
}

preload_allocator() {
  [ "$library" ] || return 0
  require_usable "$library"
  inherited=$(without_ours "${LD_PRELOAD-}")
  export LD_PRELOAD="$library${inherited:+:$inherited}"
}

# The loader only warns of a library that it cannot preload and goes on without: here that is an error.
require_usable() {
  [ -f "$1" ] || die 2 "$1: no such library"
  case $1 in *[\ :]*) die 2 "$1: cannot be preloaded, its path has a space or a colon" ;; esac
  said=$(LD_PRELOAD="" env -u HMALLOC_SHOW_STATS -u HMALLOC_STATS_FILE LD_PRELOAD="$1" /bin/true 2>&1) ||
    die 2 "$1: unusable library, /bin/true fails with it: $said"
  case $said in *'cannot be preloaded ('*)
    reason=${said#*cannot be preloaded \(}
    die 2 "$1: unusable library: ${reason%%\):*}" ;;
  esac
}
