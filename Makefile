.DEFAULT_GOAL := help
.PHONY: help build test long servers feeds race lint bench fuzz demo playground docs release ci

help: ## list these targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1\t\2/' | expand -t 12

build: ## build bin/refreshd
	CGO_ENABLED=0 go build -trimpath -o bin/refreshd ./cmd/refreshd

test: ## run the tests; those of the real Redis are skipped when redis-server is not installed
	go test ./...

long: ## run all tests, also what takes minutes: more seeds, random rules, faults that last
	REFRESHD_LONG=1 go test ./...

servers: ## test each server and client library that can be had, and write the tables of docs/servers.md
	.ci/servers fetch || true
	.ci/servers run docs/servers.md
	.ci/servers clients docs/servers.md

feeds: ## fetch from each web server and cache that can be had, and write the table of docs/feeds.md
	.ci/feeds

race: ## run the tests under the race detector
	go test -race ./...

lint: ## check format, Go (golangci-lint) and Lua (luacheck)
	.ci/run format lint lua

bench: ## measure refreshd and its peers in turns, and write the tables of docs/performance.md
	cd bench && go run . --write ../docs/performance.md
	cd bench && go run . --models 2000 --rate 200 --write ../docs/performance.md
	cd bench && go run . --models 2000 --rate 200 --hosts 20 --at-a-time 2 --work 110ms --write ../docs/performance.md
	cd bench && go run . --models 2000 --hosts 20 --write ../docs/performance.md
	cd bench && go run . --models 2000 --hosts 20 --now --write ../docs/performance.md

fuzz: ## give each fuzz target many inputs
	FUZZ_INPUTS=200000 .ci/run fuzz

demo: ## watch refreshd work, with nothing installed
	go run ./cmd/refreshd demo

playground: ## build the playground as static files into site/playground/
	deploy/playground.sh site/playground

docs: ## build the documentation as a site with search into site/, and the playground
	deploy/site/build.sh site
	deploy/playground.sh site/playground

release: ## build all files of a release into dist/: make release VERSION=v1.2.3
	deploy/release.sh "$(VERSION)"

ci: ## run everything that must hold before a change is merged
	.ci/run
