.DEFAULT_GOAL := help
.PHONY: help build test race lint bench fuzz demo ci

help: ## list these targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1\t\2/' | expand -t 10

build: ## build bin/refreshd
	CGO_ENABLED=0 go build -trimpath -o bin/refreshd ./cmd/refreshd

test: ## run all tests; those of the real Redis are skipped when redis-server is not installed
	go test ./...

race: ## run all tests under the race detector
	go test -race ./...

lint: ## check format, Go (golangci-lint) and Lua (luacheck)
	.ci/run format vet lint lua

bench: ## run all benchmarks and report memory
	go test -run='^$$' -bench=. -benchmem ./...

fuzz: ## run each fuzz target for a minute
	FUZZ_SECONDS=60 .ci/run fuzz

demo: ## watch refreshd work, with nothing installed
	go run ./cmd/refreshd demo

ci: ## run everything that must hold before a change is merged
	.ci/run
