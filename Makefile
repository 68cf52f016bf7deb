# Targets: build, release, sign, vuln, stale, test, test-real, test-long, recordings, test-elsewhere, test-collector, guards, soak, bench, bench-once, apidiff, docs, fmt,
# fuzz, install-deps. CONTRIBUTING.md says when to use which.

# Of what make test compiles, Windows differs most from Linux.
PLATFORMS     = linux/amd64 windows/amd64
ALL_PLATFORMS = linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64
FUZZTIME  = 2s
OUTPUT    = dist
SYNC      = $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
SOAKTIME  = 2h
SOAK      = TestSoak|TestDaemonSoak|TestALogThroughASerialPortLosesNothing
# Tests of the Collector's processor for which perf and large debug files are needed.
LONG_PROFILES = TestProfilesOfStrippedProgramsAreNamed|TestLocationsAreThoseOfLLVM
WITH_PROGRAMS = integration internal/housetest
# Packages without goroutines, locks and atomics (TestSequentialPackagesStartNoGoroutine): the race
# detector has nothing to find in them, and their tests take 3 to 8 times as long with it.
SEQUENTIAL = callgrind examples/emit/go internal/address internal/checkpoint internal/demangle internal/escape \
             internal/gate internal/gopcln internal/jsonout internal/layout internal/lines internal/llvmfilter internal/newfile internal/profile internal/stacks \
             internal/wording markup rtrace sgr valgrind

.PHONY: build release sign vuln stale test test-real test-long recordings test-elsewhere test-collector guards soak bench bench-once apidiff docs fmt install-deps install-deps-long check-format check-modules vet staticcheck unit work integration fuzz

# Static: it runs in any container.
build:
	@scripts/build-static symfilter
	@scripts/build-static symfilterd symfilterd

# The files of a release, from a checkout at a tag: docs/releasing.md.
release:
	go -C scripts/release run . -checkout '$(CURDIR)' '$(abspath $(OUTPUT))'

# Signs the checksums of a release with a key of OpenSSH: make sign SIGNING_KEY=FILE OUTPUT=dist
sign:
	ssh-keygen -q -Y sign -n symfilter-release -f '$(SIGNING_KEY)' '$(abspath $(OUTPUT))/SHA256SUMS'

# Known vulnerabilities of what the programs link, and modules of theirs without a version for two years: both ask servers.
vuln:
	@scripts/vuln
stale:
	@scripts/stale

# Everything a change has to pass, two targets at a time, because the tests of integration wait for programs and clocks
# while the other targets compute. The output of a target comes when it has ended. It installs nothing: tests whose programs
# are missing are skipped. With CI=true these are installed first, and one that stays missing is a failure, after the tests
# with make -k.
test:
	+@bad=0; scripts/install-deps $(if $(filter true,$(CI)),,--list) test || bad=1; \
	case "-$(firstword -$(MAKEFLAGS))" in *k*) ;; *) [ $$bad = 0 ] || exit 1 ;; esac; \
	$(MAKE) --no-print-directory --jobs 2 $(SYNC) check-format check-modules integration vet staticcheck unit work && exit $$bad

# Tests that wait for live compilers, servers, debuggers and browsers, and those whose files are too large to be recorded.
# make test leaves them out, and replays what the programs of the others did when they were recorded.
test-real:
	TEST_REAL=1 go run ./scripts/gotest -count 1 -timeout 30m -run "^($$(paste -s -d '|' integration/testdata/real.txt))\$$" ./integration

# Writes anew what programs of others print and write in the tests of integration: after a change of a test, of a source
# that it compiles, or of a compiler. RUN limits it to some tests: make recordings RUN=TestMarkupOfClang
recordings:
	integration/testdata/recordings/record.sh $(RUN)

# The full counts where `make test` runs a tenth, with live programs, and longer fuzzing. A missing part is a failure.
test-long: export CI = true
test-long: PLATFORMS = $(ALL_PLATFORMS)
test-long: install-deps-long check-format check-modules vet staticcheck
	cd scripts/release && go mod tidy -diff && go vet ./... && go test ./...
	TEST_LONG=1 go run ./scripts/gotest -race -count 1 -timeout 60m ./...
	TEST_LONG=1 go run ./scripts/gotest -work -count=1 -timeout=60m ./...
	go run ./scripts/gotest -fuzz 2m ./...
	cd collector && TEST_LONG=1 go run github.com/symfilter/symfilter/scripts/gotest -count 1 -timeout 60m -run '^($(LONG_PROFILES))$$' ./...
	$(MAKE) --no-print-directory bench-once

# make test in a clone at another path, in another environment.
test-elsewhere:
	@scripts/test-elsewhere

# The module of the Collector's processor, its Helm chart, and a Collector that is built with it: some minutes from an empty
# cache, which are not in the time for the tests.
test-collector:
	@cd collector && bad=$$(gofmt -s -l .) && if [ -n "$$bad" ]; then echo "not formatted: $$bad"; exit 1; fi
	cd collector && go mod tidy -diff && go vet ./...
	cd collector && "$$(cd .. && go tool -n staticcheck)" ./...
	cd collector/dist && go build -p 2 -o /dev/null .
	cd collector/helm && go mod tidy -diff && go vet ./... && "$$(cd ../.. && go tool -n staticcheck)" ./... && go test -count 1 ./...
	cd collector && go run github.com/symfilter/symfilter/scripts/gotest -race -count 1 -timeout 15m ./...
	cd collector && go run github.com/symfilter/symfilter/scripts/gotest -fuzz $(FUZZTIME) .
	cd collector && go run github.com/symfilter/symfilter/scripts/gotest -count 1 -run '^(TestMemoryOfIdleContexts|TestAllocationsOfARecord)$$' .

# The guards against the threats of SECURITY.md are taken out one by one, and the tests that the threats name must fail;
# test-long does so, too.
guards:
	TEST_LONG=1 go test -count 1 -timeout 60m -v -run '^TestGuardsAreTested$$' ./internal/housetest

# Hours of hostile and ordinary input through one process, its memory watched: make soak SOAKTIME=24h SOAK=TestDaemonSoak
soak:
	TEST_SOAK=$(SOAKTIME) go run ./scripts/gotest -run '^($(SOAK))$$' -timeout 0 ./integration

bench:
	go run ./bench

# Each benchmark of the packages once: it still runs, and its own checks hold.
bench-once:
	go test -run '^$$' -bench . -benchtime 1x $$(grep -rlE --include='*_test.go' --exclude-dir=collector '^func Benchmark' . | xargs -n 1 dirname | sort -u)

# How the API differs from that of the last tag: make apidiff REVISION=origin/main
apidiff:
	@scripts/apidiff $(REVISION)

# What docs/reference has of the tables in the code.
docs: export UPDATE = 1
docs:
	go test -count 1 -run '^TestTheReference' ./cmd/symfilter ./cmd/symfilterd ./internal/daemon
	cd collector && go test -count 1 -run '^TestTheReference' .

fmt:
	gofmt -s -w $$(git ls-files '*.go')

install-deps:
	@scripts/install-deps test

install-deps-long:
	@scripts/install-deps long

check-format:
	@bad=$$(gofmt -s -l $$(git ls-files '*.go')) && if [ -n "$$bad" ]; then echo "not formatted, make fmt does it:"; echo "$$bad"; exit 1; fi

# The module file names what is imported, and the sums fit what was downloaded.
check-modules:
	go mod tidy -diff
	go mod verify

# What is compiled for another platform is only read by vet, and not run: optimizing it takes 100 s of processor time.
vet:
	@bad=0; for p in $(PLATFORMS); do echo "go vet $$p"; flag=; [ $$p = $$(go env GOHOSTOS)/$$(go env GOHOSTARCH) ] || flag='-gcflags=all=-N -l'; \
	GOOS=$${p%/*} GOARCH=$${p#*/} go vet $${flag:+"$$flag"} ./... || bad=1; done; exit $$bad

staticcheck:
	go tool staticcheck ./...

# Results of these come from the test cache where nothing has changed.
unit:
	go run ./scripts/gotest -timeout 20m $(SEQUENTIAL:%=./%)
	go run ./scripts/gotest -race -timeout 20m $$(go list ./... | grep -v $(WITH_PROGRAMS:%=-e '/%$$') $(SEQUENTIAL:%=-e '/%$$'))

# Tests of one goroutine that compute much, or count the bytes that are allocated.
work:
	go run ./scripts/gotest -work -timeout=20m ./...

# Real parts, the command as it is built, and the rules of the house: they start programs, which the test cache does not see.
# The race detector does not see the programs; make test-long watches what runs in the process of the tests.
integration:
	go run ./scripts/gotest -count 1 -timeout 30m $(WITH_PROGRAMS:%=./%)

fuzz:
	go run ./scripts/gotest -fuzz $(FUZZTIME) ./...
