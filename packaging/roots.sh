# Bare systems of their own, in folders of $work: for test-deb, test-first-contact and test-recipes.
# Read here, suite, work, and architecture if it is another than this machine's; call die and say.
# shellcheck shell=sh disable=SC2154

can_make_roots() {
  [ "$(id -u)" = 0 ] || die "a root of its own takes root to make: sudo $0"
  command -v debootstrap >/dev/null || die "please install what is missing: apt-get install debootstrap"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' 'Component: main' | head -n 1)
  [ "$mirror" ] || die "apt knows of no Debian to install from: apt-get update"
}

# The system starts the other architecture's programs under qemu, in any root (flag F).
can_emulate() { # ARCHITECTURE of Debian
  case $1 in arm64) machine=aarch64 ;; *) machine=$1 ;; esac
  grep -q '^flags:.*F' "/proc/sys/fs/binfmt_misc/qemu-$machine" 2>/dev/null ||
    die "this machine does not start programs of $1: apt-get install qemu-user-static binfmt-support"
}

this_suite() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

# The roots are installed from where this machine is, by the same settings.
bare_root() {
  [ ! -f "$work/bare/.complete" ] || return 0
  rm -rf "$work/bare"
  mkdir -p "$work"
  debootstrap --variant=minbase ${architecture:+--arch=$architecture} "$suite" "$work/bare" "$mirror" >"$work/debootstrap.log" 2>&1 ||
    die "debootstrap failed; all that it said: $work/debootstrap.log"
  apt-config dump | sed -nE '/^Acquire::(https?|Check|Retries)/p' >"$work/bare/etc/apt/apt.conf.d/00machine"
  cp /etc/resolv.conf /etc/hosts "$work/bare/etc/"
  # A machine behind a proxy has certificates of its own.
  for file in /etc/pip.conf $(sed -n 's/^cert *= *//p' /etc/pip.conf 2>/dev/null) /usr/local/share/ca-certificates/*.crt; do
    [ ! -f "$file" ] || install -D -m 644 "$file" "$work/bare$file"
  done
  touch "$work/bare/.complete"
}

in_root() { # ROOT COMMAND...; isolated=--net: without a network
  root=$work/$1
  shift
  # shellcheck disable=SC2086  # no word at all, where it is empty
  unshare --mount --pid --fork --mount-proc ${isolated-} --root="$root" --wd=/ \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}

files_of() { (cd "$work/$1" && find . -xdev -path ./proc -prune -o -print | sort); }

# Who has cloned hmalloc: an ordinary user, root beside.
new_root() { # ROOT FOLDER OWNER
  [ -d "$work/$1" ] || cp -a "$work/bare" "$work/$1"
  in_root "$1" sh -c 'id newcomer >/dev/null 2>&1 || useradd -m newcomer'
  rm -rf "${work:?}/$1/$2"
  mkdir -p "$work/$1/$2"
  git -C "$here" archive HEAD | tar -x -C "$work/$1/$2"
  in_root "$1" chown -R "$3" "/$2"
}

# The command ends with the code, and all that it says is one line, in which the words are.
one_line() { # CODE WORDS COMMAND...
  code=0 expected=$1 words=$2
  shift 2
  "$@" >"$work/said" 2>&1 </dev/null || code=$?
  if [ "$code" != "$expected" ] || [ "$(wc -l <"$work/said")" != 1 ] || ! grep -qF -- "$words" "$work/said"; then
    sed 's/^/  /' "$work/said" >&2
    die "not one line with '$words' and code $expected, but code $code: $*"
  fi
  say "$(cat "$work/said")"
}

# The command ends well; what it says is shown with how long it took.
works() { # WHAT COMMAND...
  task=$1 began=$(date +%s)
  shift
  "$@" >"$work/said" 2>&1 </dev/null || { tail -n 30 "$work/said" | sed 's/^/  /' >&2; die "$task: failed"; }
  say "$task: $(($(date +%s) - began)) s"
}
