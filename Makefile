# Targets: build, release, sign, vuln, stale, test, test-real, test-long, recordings, test-elsewhere, test-collector, guards, soak, bench, bench-once, apidiff, docs, fmt,
# fuzz, install-deps. CONTRIBUTING.md explains when to use each.

# make test vets for Windows, too: of all platforms it differs most from Linux.
PLATFORMS     = linux/amd64 windows/amd64
ALL_PLATFORMS = linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64
FUZZTIME  = 2s
OUTPUT    = dist
SYNC      = $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
SOAKTIME  = 2h
SOAK      = TestSoak|TestDaemonSoak|TestALogThroughASerialPortLosesNothing
# Tests of the Collector's processor that need perf and large debug files.
LONG_PROFILES = TestProfilesOfStrippedProgramsAreNamed|TestLocationsAreThoseOfLLVM
WITH_PROGRAMS = integration internal/housetest
# Packages without goroutines, locks and atomics (TestSequentialPackagesStartNoGoroutine): the race
# detector has nothing to find in them, and their tests take 3 to 8 times as long with it.
SEQUENTIAL = callgrind examples/emit/go internal/address internal/checkpoint internal/demangle internal/escape \
             internal/gate internal/gopcln internal/jsonout internal/judge internal/layout internal/lines internal/llvmfilter internal/newfile \
             internal/profile internal/publish internal/stacks internal/wording markup rtrace sgr valgrind
CONCURRENT = $$(go list ./... | grep -v $(WITH_PROGRAMS:%=-e '/%$$') $(SEQUENTIAL:%=-e '/%$$'))

.PHONY: build release sign vuln stale test test-real test-real-0 test-real-1 test-long recordings test-elsewhere test-collector guards soak bench bench-once apidiff docs fmt install-deps install-deps-long check-format check-modules vet staticcheck unit work integration fuzz

# Static programs, which run in any container.
build:
	@scripts/build-static symfilter
	@scripts/build-static symfilterd symfilterd

# The files of a release, from a checkout at a tag: docs/releasing.md.
release:
	go -C scripts/release run . -checkout '$(CURDIR)' '$(abspath $(OUTPUT))'

# Signs the checksums of a release with a key of OpenSSH: make sign SIGNING_KEY=FILE OUTPUT=dist
sign:
	ssh-keygen -q -Y sign -n symfilter-release -f '$(SIGNING_KEY)' '$(abspath $(OUTPUT))/SHA256SUMS'

# vuln lists known vulnerabilities in the code that the programs call, and stale the linked modules without a new version for
# two years. Both need a network.
vuln:
	@scripts/vuln
stale:
	@scripts/stale

# Everything that a change has to pass. Two targets run at a time, because the tests of integration wait for programs and
# clocks while the other targets compute. A target's output is printed at its end. Nothing is installed: tests whose programs
# are missing are skipped. With CI=true the programs are installed first, and a program that stays missing is a failure: at
# once, or with make -k after the tests.
test:
	+@bad=0; scripts/install-deps $(if $(filter true,$(CI)),,--list) test || bad=1; \
	case "-$(firstword -$(MAKEFLAGS))" in *k*) ;; *) [ $$bad = 0 ] || exit 1 ;; esac; \
	$(MAKE) --no-print-directory --jobs 2 $(SYNC) check-format check-modules integration vet staticcheck unit work && exit $$bad

# Tests that wait for live compilers, servers, debuggers and browsers, or whose files are too large to be recorded.
# make test leaves these tests out. For the others, it replays recordings of the programs. The two halves can run at the same
# time, since the tests wait half of their time.
test-real: test-real-0 test-real-1
test-real-0 test-real-1: test-real-%:
	TEST_REAL=1 go run ./scripts/gotest -count 1 -timeout 30m -run "^($$(awk 'NR % 2 == $*' integration/testdata/real.txt | paste -s -d '|'))\$$" ./integration

# Records what other programs print and write in the tests of integration: after a change of a test, of a source that a test
# compiles, or of a compiler. RUN selects tests: make recordings RUN=TestMarkupOfClang
recordings:
	integration/testdata/recordings/record.sh $(RUN)

# The tests at full size, where make test runs a tenth, with live programs and longer fuzzing. A missing program is a failure.
test-long: export CI = true
test-long: PLATFORMS = $(ALL_PLATFORMS)
test-long: install-deps-long check-format check-modules vet staticcheck
	cd scripts/release && go mod tidy -diff && go vet ./... && go test ./...
	TEST_LONG=1 go run ./scripts/gotest -count 1 -timeout 120m $(SEQUENTIAL:%=./%) $(WITH_PROGRAMS:%=./%)
	go run ./scripts/gotest -race -count 1 -timeout 60m $(WITH_PROGRAMS:%=./%)
	TEST_LONG=1 go run ./scripts/gotest -race -count 1 -timeout 60m $(CONCURRENT)
	TEST_LONG=1 go run ./scripts/gotest -work -count=1 -timeout=60m ./...
	go run ./scripts/gotest -fuzz 2m ./...
	cd collector && TEST_LONG=1 go run github.com/symfilter/symfilter/scripts/gotest -count 1 -timeout 60m -run '^($(LONG_PROFILES))$$' ./...
	$(MAKE) --no-print-directory bench-once

# make test in a clone at another path, in another environment. ELSEWHERE can name other targets, and options of make.
ELSEWHERE = test
test-elsewhere:
	@scripts/test-elsewhere $(ELSEWHERE)

# The modules of the Collector's processor, of its Helm chart, and of a Collector that is built with the processor. From an
# empty cache, they take some minutes more than the tests.
test-collector:
	@cd collector && bad=$$(gofmt -s -l .) && if [ -n "$$bad" ]; then echo "not formatted: $$bad"; exit 1; fi
	cd collector && go mod tidy -diff && go vet ./...
	cd collector && "$$(cd .. && go tool -n staticcheck)" ./...
	cd collector/dist && go build -p 2 -o /dev/null .
	cd collector/helm && go mod tidy -diff && go vet ./... && "$$(cd ../.. && go tool -n staticcheck)" ./... && go test -count 1 ./...
	cd collector && go run github.com/symfilter/symfilter/scripts/gotest -race -count 1 -timeout 15m ./...
	cd collector && go run github.com/symfilter/symfilter/scripts/gotest -fuzz $(FUZZTIME) .
	cd collector && go run github.com/symfilter/symfilter/scripts/gotest -count 1 -run '^(TestMemoryOfIdleContexts|TestAllocationsOfARecord)$$' .

# Takes out the guards against the threats of SECURITY.md, one by one: the tests that SECURITY.md names must fail. test-long
# does this, too.
guards:
	TEST_LONG=1 go test -count 1 -timeout 60m -v -run '^TestGuardsAreTested$$' ./internal/housetest

# Hours of hostile and ordinary input to one process, whose memory is watched: make soak SOAKTIME=24h SOAK=TestDaemonSoak
soak:
	TEST_SOAK=$(SOAKTIME) go run ./scripts/gotest -run '^($(SOAK))$$' -timeout 0 ./integration

bench:
	go run ./bench

# Runs each benchmark of the packages once, to find broken benchmarks.
bench-once:
	go test -run '^$$' -bench . -benchtime 1x $$(grep -rlE --include='*_test.go' --exclude-dir=collector '^func Benchmark' . | xargs -n 1 dirname | sort -u)

# The changes of the API since the last tag, or REVISION: make apidiff REVISION=origin/main
apidiff:
	@scripts/apidiff $(REVISION)

# Writes the pages of docs/reference, which are made from tables in the code.
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

# go.mod must list all imported modules, and the downloaded modules must have the sums of go.sum.
check-modules:
	go mod tidy -diff
	go mod verify

# vet needs the packages compiled. For other platforms they are not optimized, which would take 100 s of processor time.
vet:
	@bad=0; for p in $(PLATFORMS); do echo "go vet $$p"; flag=; [ $$p = $$(go env GOHOSTOS)/$$(go env GOHOSTARCH) ] || flag='-gcflags=all=-N -l'; \
	GOOS=$${p%/*} GOARCH=$${p#*/} go vet $${flag:+"$$flag"} ./... || bad=1; done; exit $$bad

staticcheck:
	go tool staticcheck ./...

# The test cache has the results of unchanged packages.
unit:
	go run ./scripts/gotest -timeout 20m $(SEQUENTIAL:%=./%)
	go run ./scripts/gotest -race -timeout 20m $(CONCURRENT)

# Tests that are skipped under the race detector: they compute much in one goroutine, or count allocations.
work:
	go run ./scripts/gotest -work -timeout=20m ./...

# Tests that start other programs and the built command, and the rules of the house. They are not cached, since the test cache
# does not notice changes of programs. The race detector does not watch programs; make test-long runs it on the tests themselves.
integration:
	go run ./scripts/gotest -count 1 -timeout 30m $(WITH_PROGRAMS:%=./%)

fuzz:
	go run ./scripts/gotest -fuzz $(FUZZTIME) ./...
