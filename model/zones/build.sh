#!/bin/sh
# Builds zones.zip, the zone data that this repository brings, from the tzdata package of Debian:
#
#   apt-get update && model/zones/build.sh          what apt would install
#   model/zones/build.sh tzdata_2026f-0+deb12u1_all.deb
#
# tzdata.zi in that package has all rules and all old names, also where Debian packs those apart (tzdata-legacy). zic, of the package libc-bin, compiles
# it as Debian does, to the same bytes. They are "fat": with "slim" data Go reads the rule of a zone anew for each time beyond the last change that is
# listed, which takes nine times as long, and in three zones the two differ (Ojinaga on one day of 2022, Gaza and Hebron from 2073). Links are stored by name only, in the zip's own tzdata.zi.
# The same package gives the same zip. The next step is go test ./model/... .
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -gt 0 ]; then
  cp "$1" "$work/tzdata.deb"
else
  (cd "$work" && apt-get download -qq tzdata && mv tzdata_*.deb tzdata.deb)
fi
cd "$work"
dpkg-deb -x tzdata.deb package
rules=package/usr/share/zoneinfo/tzdata.zi
mkdir zones
grep -v '^L' "$rules" >zones.zi
zic -b fat -d zones zones.zi
{ grep '^# version ' "$rules"; grep '^L' "$rules"; } >zones/tzdata.zi
export TZ=UTC
find zones -exec touch -t 200001010000 {} +
rm -f "$here/zones.zip"
(cd zones && find . -type f | sed 's,^\./,,' | LC_ALL=C sort | zip -q -X -9 -D "$here/zones.zip" -@)
head -n 1 zones/tzdata.zi
