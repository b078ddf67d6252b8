# Part of the launcher: hmalloc install.
# shellcheck shell=sh disable=SC2154

install() {
  prefix='' parts=''
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) help install ;;
      --engine) parts='runtime development pdes' ;; # cmake/install.cmake
      --prefix=*) prefix=${1#*=} ;;
      --prefix) [ $# -gt 1 ] || die 2 "install: --prefix needs a folder"; prefix=$2; shift ;;
      *) die 2 "install: unknown argument $1 (hmalloc install --help)" ;;
    esac
    shift
  done
  need_source install
  prefix=$(realpath -m -- "${prefix:-/usr/local}")
  (mkdir -p "$prefix" && [ -w "$prefix" ]) 2>/dev/null || die 2 "install: $prefix is not writable for you (sudo, or --prefix DIR)"
  if [ "$parts" ]; then need_engine
  else
    # shellcheck disable=SC2086
    wish scdoc $trace_packages $pdes_packages
    alone build install
    has_rule man/hmalloc.1 || say "left out: the manual pages, for want of scdoc"
    has_rule hmalloc-trace || say "left out: hmalloc trace, for want of $trace_packages"
    has_rule hmalloc-pdes-phold || say "left out: the simulation engine, for want of $pdes_packages"
  fi
  step "installing into $prefix" install.log put_there
  [ "$(id -u)" != 0 ] || ldconfig 2>/dev/null || true
}

put_there() {
  [ "$parts" ] || { cmake --install "$here/build/release" --prefix "$prefix"; return; }
  for part in $parts; do
    cmake --install "$here/build/release" --prefix "$prefix" --component "$part" || return
  done
}
