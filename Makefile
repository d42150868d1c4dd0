# `make check` while you work, `make test` before you push: it is what CI runs.

GO ?= go
BIN := bin
TOOLS := $(BIN)/golangci-lint $(BIN)/staticcheck

.PHONY: build check fmt lint vet layers test prove sim spec bench up down clean

build: ## the binary, in bin/
	$(GO) build -o $(BIN)/siltstone ./cmd/siltstone

check: fmt vet lint layers ## the quick inner loop
	$(GO) test -short $$($(GO) list ./... | grep -v /e2e$$)

fmt:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

vet:
	$(GO) vet ./...

lint: $(TOOLS)
	$(BIN)/golangci-lint run --allow-serial-runners ./...
	$(BIN)/staticcheck ./...

layers: ## who imports whom, and the limits of style that can be counted
	$(GO) test -run 'TestLayering|TestTidy|TestDocs' .

# The tools' versions are in tools.mod, apart from the product's dependencies.
$(BIN)/golangci-lint $(BIN)/staticcheck: tools.mod tools.sum
	$(GO) build -modfile=tools.mod -o $(BIN)/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint honnef.co/go/tools/cmd/staticcheck
	@touch $(TOOLS)

test: ## everything that CI runs; installs what it needs, prints the minutes of each part
	./scripts/test

prove: ## the long counts: 2,000 seeds, 100 kills, 100 MB through every codec, 3 minutes of each fault of a store; and the protocol's model
	./scripts/test tools prove-sim prove-e2e prove-stores prove-faults spec

SEEDS ?= 1000
START ?= 1
sim: ## SEEDS seeds of the simulator from START on, and all planted bugs; or the one of SEED, with its trace
ifdef SEED
	$(GO) test ./sim -run 'TestSeeds$$' -count=1 -v -seed=$(SEED)
else
	@mkdir -p $(BIN)
	@$(GO) test ./sim -count=1 -timeout=24h -v -seeds=$(SEEDS) -start=$(START) > $(BIN)/sim.log; status=$$?; \
	grep -v '^ *\(===\|--- PASS: Test[A-Z][a-z]*/\)' $(BIN)/sim.log; exit $$status
endif

spec: ## search the protocol's model; 4 minutes
	$(GO) run ./spec

bench: ## beside Apache Kafka, on this machine
	./bench/run

up: ## MinIO and an emulator of AWS, without Docker; installs them, the first time in some minutes (docs/local.md)
	@scripts/install minio aws
	@$(GO) run ./localstack up

down: ## ends what up started; the data stays
	@$(GO) run ./localstack down

clean:
	rm -rf $(BIN)
