#!/bin/sh
# Installs refreshd, without root: sh install.sh [--to DIR] [--version v1.2.3]
#
# Downloads the program of a release, compares its SHA-256 with SHA256SUMS, and moves it to DIR (default ~/.local/bin).
# REFRESHD_DOWNLOADS is the address of another folder with the files of the release, such as a mirror.
set -eu
release=v0.9.0

fail() {
  printf 'install: %s\n' "$1" >&2
  exit 1
}

platform() {
  case $(uname -s)/$(uname -m) in
  Linux/x86_64) echo linux-amd64 ;;
  Linux/aarch64 | Linux/arm64) echo linux-arm64 ;;
  Darwin/x86_64) echo darwin-amd64 ;;
  Darwin/arm64) echo darwin-arm64 ;;
  *) fail "expected Linux or macOS on x86_64 or arm64, found $(uname -s) on $(uname -m)" ;;
  esac
}

download() {
  if command -v curl >/dev/null; then
    curl -fsSL -o "$work/$1" "$from/$1"
  elif command -v wget >/dev/null; then
    wget -q -O "$work/$1" "$from/$1"
  else
    fail 'expected curl or wget, found neither'
  fi || fail "could not download all of $from/$1"
}

checksum() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1"
  else
    shasum -a 256 "$1"
  fi | cut -d ' ' -f 1
}

# The shell reads a function to its end before it runs it, so half a script does nothing.
main() {
  to=
  while [ $# -gt 0 ]; do
    case $1 in
    --to) to=${2:?expected a directory} ;;
    --version) release=${2:?expected a version such as v1.2.3} ;;
    *) fail "expected --to DIR or --version v1.2.3, found $1" ;;
    esac
    shift 2
  done
  to=${to:-${HOME:?expected a home, or --to DIR}/.local/bin}
  from=${REFRESHD_DOWNLOADS:-https://github.com/refreshd/refreshd/releases/download/$release}
  name=refreshd-$release-$(platform)
  mkdir -p "$to"
  to=$(cd "$to" && pwd)
  if [ -d "$to/refreshd" ]; then fail "expected a file or nothing at $to/refreshd, found a directory"; fi
  work=$(mktemp -d "$to/.refreshd-XXXXXX") # beside the program, so that the move is one step
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM

  download SHA256SUMS
  download "$name"
  expected=$(sed -n "s/^\([0-9a-f]*\)  $name\$/\1/p" "$work/SHA256SUMS")
  if [ -z "$expected" ]; then fail "expected the SHA-256 of $name in $from/SHA256SUMS, found none"; fi
  found=$(checksum "$work/$name")
  if [ "$found" != "$expected" ]; then fail "expected $from/$name with the SHA-256 $expected, found $found"; fi
  chmod 755 "$work/$name"
  mv -f "$work/$name" "$to/refreshd"
  echo "refreshd $release is installed: $to/refreshd"
  case :$PATH: in
  *":$to:"*) ;;
  *) echo "Your shell does not look there yet: export PATH=\"$to:\$PATH\"" ;;
  esac
}

main "$@"
