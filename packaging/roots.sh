# Bare systems of their own, in folders of $work: for test-deb and test-first-contact.
# shellcheck shell=sh disable=SC2154  # reads suite, work; calls die

can_make_roots() {
  [ "$(id -u)" = 0 ] || die "a root of its own takes root to make: sudo $0"
  command -v debootstrap >/dev/null || die "please install what is missing: apt-get install debootstrap"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' 'Component: main' | head -n 1)
  [ "$mirror" ] || die "apt knows of no Debian to install from: apt-get update"
}

this_suite() { (. /etc/os-release && echo "$VERSION_CODENAME"); }

# The roots are installed from where this machine is, by the same settings.
bare_root() {
  [ ! -f "$work/bare/.complete" ] || return 0
  rm -rf "$work/bare"
  mkdir -p "$work"
  debootstrap --variant=minbase "$suite" "$work/bare" "$mirror" >"$work/debootstrap.log" 2>&1 ||
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
