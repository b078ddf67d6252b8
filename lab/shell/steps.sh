# Part of the launcher: a folder that can be worked in, one launcher at a time, and a line for each step.
# shellcheck shell=sh disable=SC2154  # reads here, state, venv, natives, from_source; calls say, die

logs=$state/logs

# ---- Before any work. ---------------------------------------------------------------------------------------------

# What would end in somebody else's message, minutes later.
check_folder() {
  if [ "$from_source" ]; then
    case $here in *[[:space:]:]*)
      die 2 "$here: has a space or a colon in its path, from where no library can be preloaded; please move it" ;;
    esac
    check_origin release
  else check_owner; fi
  mkdir -p "$state" 2>/dev/null || die 2 "$state: cannot be made by $(id -un)"
  for file in "$state" "$logs" "$venv" "$state/lock" "$state/release" "$state/release/.ninja_log"; do
    [ ! -e "$file" ] || [ -w "$file" ] ||
      die 2 "$file: is $(stat -c %U "$file")'s, and $(id -un) may not write there; please remove $state, or change its owner"
  done
}

# What others have put there would be run by this user.
check_owner() {
  for folder in "$state" "$venv"; do
    [ ! -e "$folder" ] || [ -O "$folder" ] || die 2 "$folder: is $(stat -c %U "$folder")'s, and not $(id -un)'s;" \
      "please set HOME or XDG_CACHE_HOME"
  done
}

# CMake goes on with the folder that it was told of first, wherever that is.
check_origin() { # PRESET
  cache=$state/$1/CMakeCache.txt
  [ -f "$cache" ] || return 0
  origin=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  [ "$(readlink -f -- "$origin")" = "$here" ] ||
    die 2 "$state/$1: was built in $origin, of which this is a copy; please remove $state"
}

# Two launchers at once must not build, or fill the environment, into each other.
alone() { # COMMAND...
  check_folder
  (
    flock -w 1 9 || { say "waiting for another hmalloc, which is building in $state"; flock 9; }
    "$@"
  ) 9>>"$state/lock" || exit $?
}

# ---- Steps. -------------------------------------------------------------------------------------------------------

# Runs a command silently.  Its output is kept in a log, and the end of it shown if the command fails.
step() { # WHAT LOG COMMAND...
  what=$1 log=$logs/$2
  shift 2
  mkdir -p "$logs" || exit 2
  : >"$log"
  printf 'hmalloc: %s ...' "$what" >&2
  began=$(date +%s)
  code=$({ { code=0; "$@" 2>&1 </dev/null 3>&- 9>&- || code=$?; echo $code >&3; } | follow 3>&-; } 3>&1)
  if [ "$code" = 0 ]; then
    printf ' done (%d s)\n' $(($(date +%s) - began)) >&2
    return
  fi
  ! out_of_time || { printf ' broken off\n' >&2; exit $late; }
  printf ' failed\n' >&2
  ! grep -qiE "$no_network" "$log" || die 2 "$what: there is no connection to the network; the whole log: $log"
  tail -n 30 "$log" | sed 's/^/  /' >&2
  die 2 "the whole log: $log"
}

# What apt-get, pip and curl say then.
no_network='temporary failure (in name resolution|resolving)|could not resolve|name or service not known|network is unreachable|'
no_network=$no_network'failed to establish a new connection|connect ?timeout|no route to host'

# Keeps what a command says, and shows how far it is if that is ninja: [3/120].  Without a terminal, now and then.
progress_after=20
follow() {
  shown=$began
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    case $line in '['[0-9]*/[0-9]*']'*) ;; *) continue ;; esac
    done=${line%%]*}]
    if [ -t 2 ]; then printf '\rhmalloc: %s ... %s' "$what" "$done" >&2
    elif [ $(($(date +%s) - shown)) -ge $progress_after ]; then
      shown=$(date +%s)
      printf '\nhmalloc: %s ... %s' "$what" "$done" >&2
    fi
  done
}

# ---- A limit of time (hmalloc test --for). ------------------------------------------------------------------------

deadline='' late=75 # the exit code of what came too late

seconds_in() { # WHO TIME: 30s, 10m, 2h
  digits=$(echo "${2%[smh]}" | sed 's/^0*\([0-9]\)/\1/') # a zero in front would be octal
  case $digits in '' | *[!0-9]* | ????????*) die 2 "$1: --for: '$2' is no time (30s, 10m, 2h)" ;; esac
  case $2 in *h) echo $((digits * 3600)) ;; *m) echo $((digits * 60)) ;; *) echo "$digits" ;; esac
}

seconds_left() { echo $((deadline - $(date +%s))); }

out_of_time() { [ "$deadline" ] && [ "$(seconds_left)" -le 0 ]; }

in_time() { # COMMAND...
  [ "$deadline" ] || { "$@"; return; }
  left=$(seconds_left)
  [ "$left" -gt 0 ] || return $late
  timeout --foreground --signal INT --kill-after 30 "$left" "$@"
}
