#!/usr/bin/env bash
# Builds the documentation as a site of static files, with search: deploy/site/build.sh FOLDER. It needs mkdocs and mkdocs-material of Debian 12.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
site=$(realpath -m "$1")

# The pages lie as they do in the repository, so that their links lead to the same places.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
ln -s "$root"/{*.md,LICENSE,Makefile,Dockerfile,docker-compose.yml,clients,deploy,docs,examples,refreshdtest} "$source"
SITE_SOURCE=$source mkdocs build --strict --config-file "$root/deploy/site/mkdocs.yml" --site-dir "$site"
