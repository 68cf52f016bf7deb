// Package fuzztest checks the cost of one input of a fuzz target. Go's fuzzer notices crashes. It
// does not notice hangs, high memory use, work that grows faster than the input, or streams that
// stop. Only tests import this package.
//
// [Watch] is for all targets. [Growth] is for targets whose input can be repeated. [Flow] is for
// targets that promise output before the end of the input:
//
//	target                                       Growth             Flow: what is promised
//	filter FuzzFilter, FuzzTerminal, FuzzJSON    the log            a complete line is out when Write returns
//	page FuzzHTML                                the log            none before the end, which decides the page
//	filter FuzzDialect, FuzzMade                 the log            no promise for a trace that is held back
//	filter FuzzHexDict                           the dict's body    by FuzzFilter
//	marks FuzzFindMark                           by FuzzFilter      no stream
//	filter FuzzRestore, FuzzSpace                a context has limits, a space a test of its own
//	llvmfilter FuzzLLVMFilter                    the log            a complete line is out when Write returns
//	asis FuzzQuestions                           the questions      an answer is out before the next read
//	markup FuzzScan, FuzzElement, FuzzMayBecome  the line           no stream
//	markup FuzzWriter                            the text           no promise: what is written waits for Flush or Close
//	markup FuzzLeadingBT, sgr FuzzSGR            by FuzzScan        no stream
//	input FuzzEnvelope                           the log            a complete line is out when Write returns
//	input FuzzRecords                            the log            no promise for a trace that is held back
//	input FuzzReply                              the lines          a reply to each line is out when Write returns
//	input FuzzRecognise                          4 KiB are read     its own: output after 8 KiB
//	follow FuzzLines                             the file           its own: each whole line, after each read
//	follow FuzzCheckpoint                        nothing to repeat  no stream
//	valgrind FuzzValgrind                        the report         no promise for anything but errors
//	callgrind FuzzCallgrind                      the profile        none before the end: costs are sums
//	rtrace FuzzRtrace                            the report         none before the end: calls are sorted
//	profile FuzzGperftools, FuzzJemalloc         the profile        none before the end: values are sums
//	profile FuzzPprof                            equal IDs fail     none before the end: values are sums
//	daemon FuzzConfig                            a file has at most 1 MiB   no stream
//	collector FuzzSplitIntoRecords               the log            its own: the records of a batch go out with it
//	escape FuzzEscape                            the text           no stream
//	buildid FuzzIDsFile                          the file           no stream
//	symbolize FuzzDemangle, demangle FuzzQuick   at most 4 KiB, and a budget of steps
//	object, dwarf, gopcln, symindex, inflate,    a file repeated is not a larger file: each lookup has
//	buildid (others), debuginfod                 a budget of steps
package fuzztest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// Bounds of the cost of one input.
const (
	work = slowdown * 2 * time.Second // processor time: a busy machine fails no test
	// wall-clock time: an input that waits forever uses no processor time
	wait   = slowdown * 60 * time.Second
	growth = 256 << 20 // bytes of heap
	// wall-clock time after which an input is recorded. Go's fuzzer kills a process whose input
	// still runs two seconds after the end of the run
	slow = time.Second
)

// Unfinished is the environment variable with the folder for Watch's records of inputs. A
// record remains if its input did not end. Go's fuzzer does not report inputs that end the
// process after the end of a run, and discards the output of the process.
const Unfinished = "FUZZTEST_UNFINISHED"

// Watch checks the work on input until the returned function is called. If the work exceeds a
// bound, Watch prints the input to standard error and ends the process: the fuzzer records a crash.
// The bounds are two seconds of processor time, a minute, and 256 MiB of heap. Under the race
// detector, the times are ten times as long. An input that takes more than a second is recorded in
// the folder of [Unfinished] until it ends.
func Watch(t testing.TB, input any) (done func()) {
	t.Helper()
	start, before, worked := time.Now(), heap(), processorTime()
	var r record
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		end := time.After(wait)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-end:
				r.give("takes more than "+wait.String(), input)
			case <-tick.C:
				if processorTime()-worked > work {
					r.give("takes more than "+work.String()+" of work", input)
				}
				if n := heap() - before; n > growth {
					r.give(fmt.Sprintf("takes %d MiB", n>>20), input)
				}
				if r == "" && time.Since(start) > slow {
					r.write(fmt.Sprintf("an input was not finished: %.4096q\n", input))
				}
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		r.remove()
		if n := heap() - before; n > growth {
			t.Errorf("the heap grew by %d MiB", n>>20)
		}
	}
}

// A record is the path of the file with an input that has not ended, or "".
type record string

// write writes the file, if the environment has a folder for it. Errors are ignored: the record
// only helps to find inputs that the fuzzer does not report.
func (r *record) write(text string) {
	dir := os.Getenv(Unfinished)
	if dir == "" {
		return
	}
	if *r == "" {
		*r = record(filepath.Join(dir, fmt.Sprintf("%d", os.Getpid())))
	}
	os.WriteFile(string(*r), []byte(text), 0o600)
}

func (r *record) remove() {
	if *r != "" {
		os.Remove(string(*r))
	}
}

// give prints an input and the bound that it exceeds, and ends the process.
func (r *record) give(what string, input any) {
	text := fmt.Sprintf("an input %s: %.4096q\n", what, input)
	r.write(text)
	os.Stderr.WriteString(text)
	os.Exit(2)
}

// Allocated returns the total bytes of heap that the process has allocated, including freed memory.
func Allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// heap returns the bytes of heap objects, live or not yet collected.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// fuzzing reports whether the fuzzer generates inputs. Otherwise only the seeds run.
func fuzzing() bool {
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}
