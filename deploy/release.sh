#!/usr/bin/env bash
# Builds all that a release consists of: deploy/release.sh v1.2.3 [DIR, default dist]
# PLATFORMS="linux/amd64" builds only these programs. SBOM=no leaves out the lists of modules, whose maker needs the network.
#
# The same commit and the same Go give the same bytes, whoever builds them and wherever.
set -euo pipefail
cd "$(dirname "$0")/.."

sbom=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}

version=${1:-}
if ! [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-rc\.[0-9]+)?$ ]]; then
  printf 'release: expected a version such as v1.2.3 or v1.2.3-rc.1, found "%s"\n' "$version" >&2
  exit 2
fi
number=${version#v}
while IFS='|' read -r file line; do
  found=$(grep -m1 -E -- "${line%%[0-9]*}[0-9]" "$file" || true)
  if [[ "$found " != *"$line"[" ,"]* ]]; then
    printf 'release: expected %s in %s, found %s\n' "$line" "$file" "${found:-nothing like it}" >&2
    exit 1
  fi
done <<END
CHANGELOG.md|## $number
docs/deploy.md|make release VERSION=$version
clients/python/refreshd.py|__version__ = "${number/-rc./rc}"
clients/node/package.json|"version": "$number"
clients/php/composer.json|"version": "$number"
deploy/install.sh|release=$version
deploy/kubernetes/chart/Chart.yaml|version: $number
deploy/kubernetes/chart/Chart.yaml|appVersion: $version
END
mkdir -p "${2:-dist}"
dist=$(cd "${2:-dist}" && pwd)
if [ -n "$(ls -A "$dist")" ]; then
  printf 'release: expected an empty directory, found files in %s\n' "$dist" >&2
  exit 1
fi
# Where git does not know the commit, as in an archive of the source, the version alone says what it is.
revision=$(git rev-parse HEAD 2>/dev/null || true)
created=$(git log -1 --format=%ct 2>/dev/null || echo 315532800) # 1980, when the time of zip files begins
tagged=$(git rev-parse -q --verify "refs/tags/$version^{commit}" 2>/dev/null || true)
if [ "${tagged:-$revision}" != "$revision" ]; then
  printf 'release: expected the commit of the tag %s, %s, found %s\n' "$version" "$tagged" "$revision" >&2
  exit 1
fi
if [ -n "$tagged" ] && [ -n "$(git status --porcelain)" ]; then
  printf 'release: expected the files of the tag %s, found changes that are not committed\n' "$version" >&2
  exit 1
fi
stamp=auto
if [ -z "$revision" ]; then stamp=false; fi

# Nothing of the environment goes into the program.
export CGO_ENABLED=0 GOFLAGS='-mod=readonly -trimpath' GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT='' TZ=UTC LC_ALL=C
for platform in $platforms; do
  os=${platform%/*} arch=${platform#*/}
  binary=$dist/refreshd-$version-$os-$arch
  GOOS=$os GOARCH=$arch go build -buildvcs=$stamp -ldflags="-s -w -buildid= -X main.release=$version" -o "$binary" ./cmd/refreshd
  if [ "${SBOM:-yes}" = no ]; then continue; fi
  go run "$sbom" bin -json -noserial -notimestamp -std -version "$version" -output "$binary.cdx.json" "$binary"
done
case $platforms in *linux/amd64*linux/arm64*)
  (cd deploy/image && go run . -version "$version" -revision "$revision" -created "$created" \
    -binaries "$dist/refreshd-$version-linux-ARCH" -o "$dist/refreshd-$version-image.tar") ;;
esac
go run ./deploy/packages -version "$version" -created "$created" -o "$dist"
cp deploy/install.sh "$dist/"
(cd "$dist" && sha256sum -- install.sh refreshd-* >SHA256SUMS)
