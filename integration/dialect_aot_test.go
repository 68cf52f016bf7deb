//go:build linux

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An aotStack is a twin's stack whose frames are all in the program itself. Tests print it in the
// forms of producers that need a special compiler.
type aotStack struct {
	*traceTwin
	id     string // build ID of the program
	base   uint64
	frames []ownFrame
	other  *traceTwin // another build
}

func newAOTStack(t *testing.T) *aotStack {
	t.Helper()
	w := newTraceTwin(t, "backtrace", twinBuild{link: inProgram("-pie")})
	out := w.output(t, nil)
	base := loadBase(t, w, out)
	return &aotStack{
		traceTwin: w, id: buildIDOf(t, w.program), base: base, frames: w.ownFrames(t, out, base),
		other: newTraceTwin(t, "backtrace", twinBuild{flags: []string{"-O1"}, link: inProgram("-pie")}),
	}
}

// check fails the test unless the right build resolves the frames of log, and the other build
// resolves no frame.
func (s *aotStack) check(t *testing.T, log string, image string) {
	t.Helper()
	var args, others []string
	if image != "" {
		args, others = []string{"--image=" + image + s.program}, []string{"--image=" + image + s.other.program}
	}
	s.wantChain(t, s.traceTwin.frames(t, []byte(log), args...), ownCalls...)
	s.wantOnce(t, []byte(log), args...)
	if text := s.text(t, []byte(log), append(others, "--debug-file-directory", s.other.debug, "--no-paths")...); image != "" && text != log {
		t.Errorf("another build changes the stack:\n%s", text)
	}
}

// Frames of Swift must be resolved. Swift prints the images, with their build IDs, only after the
// frames.
func TestSwiftIsResolved(t *testing.T) {
	t.Parallel()
	s := newAOTStack(t)
	var log, objects strings.Builder
	log.WriteString("*** Program crashed: Illegal instruction at 0x00007f31c2a01154 ***\n\nThread 0 \"backtrace\" crashed:\n\n")
	for i, f := range s.frames {
		fmt.Fprintf(&log, "%-2d[ra] 0x%016x <unknown> in backtrace\n", i+1, f.addr)
		fmt.Fprintf(&objects, `, { "kind": "returnAddress", "address": "0x%016x", "symbol": "<unknown>", "offset": 0, "image": "backtrace" }`, f.addr)
	}
	end := s.base + 1<<20
	fmt.Fprintf(&log, "\nRegisters:\n\nrax 0x0000000000000004  4\n%s\nImages (3 omitted):\n\n0x%016x–0x%016x %s backtrace %s\n",
		strings.Repeat("rdx 0x0000000000000004  4\n", 16), s.base, end, s.id, s.program)
	s.check(t, log.String(), "")

	object := fmt.Sprintf(`{ "timestamp": "2026-11-20T10:00:00.000Z", "kind": "crashReport", "description": "Illegal instruction at 0x00007f31c2a01154", `+
		`"threads": [ { "crashed": true, "frames": [%s ] } ], "images": [ { "name": "backtrace", "buildId": "%s", "path": "%s", "baseAddress": "0x%016x", "endOfText": "0x%016x" } ] }`+"\n",
		strings.TrimPrefix(objects.String(), ","), s.id, s.program, s.base, end)
	s.check(t, object, "")
}

// Frames of Dart must be resolved. Dart prints addresses of calls, and the build ID before the
// frames.
func TestDartIsResolved(t *testing.T) {
	t.Parallel()
	s := newAOTStack(t)
	if err := os.Symlink("backtrace", filepath.Join(s.whole, "libapp.so")); err != nil { // the name in the frames
		t.Fatal(err)
	}
	head := "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\npid: 4711, tid: 4730, name 1.ui\n"
	dart := func(id string, format func(i int, f ownFrame) string) string {
		log := head
		if id != "" {
			log += "build_id: '" + id + "'\n"
		}
		log += fmt.Sprintf("isolate_dso_base: %x, vm_dso_base: %x\n", s.base, s.base)
		for i, f := range s.frames {
			log += format(i, f)
		}
		return log
	}
	whole := func(i int, f ownFrame) string {
		return fmt.Sprintf("    #%02d abs %016x virt %016x _kDartIsolateSnapshotInstructions+%#x\n", i, f.addr-1, f.offset-1, f.offset-1-0x1000)
	}
	s.check(t, dart(s.id, whole), "")
	s.check(t, dart(s.id, func(i int, f ownFrame) string {
		return fmt.Sprintf("    #%02d abs %016x _kDartIsolateSnapshotInstructions+%#x\n", i, f.addr-1, f.offset-1-0x1000)
	}), "")
	s.wantChain(t, s.traceTwin.frames(t, []byte(dart("", whole)), "--image="+s.program), ownCalls...)
}

// Frames of .NET must be resolved. .NET prints offsets from a file's base.
func TestNativeAOTIsResolved(t *testing.T) {
	t.Parallel()
	s := newAOTStack(t)
	var log strings.Builder
	log.WriteString("Unhandled exception. System.InvalidOperationException: closed\n")
	for _, f := range s.frames {
		fmt.Fprintf(&log, "   at backtrace!<BaseAddress>+%#x\n", f.offset)
	}
	s.check(t, log.String(), "backtrace=")
}

// Frames of MongoDB must be resolved even without modules, which MongoDB omits if the line would be
// too long. The lowest base is the program's.
func TestMongoDBWithoutModulesIsResolved(t *testing.T) {
	t.Parallel()
	s := newAOTStack(t)
	var objects []string
	for _, f := range s.frames {
		objects = append(objects, fmt.Sprintf(`{"a":"%X","b":"%X","o":"%X"}`, f.addr, s.base, f.offset))
	}
	s.check(t, `{"s":"I","msg":"BACKTRACE","attr":{"bt":{"backtrace":[`+strings.Join(objects, ",")+"]}}}\n", "mongod=")
}

func TestAddressesAreReadOnDemand(t *testing.T) {
	t.Parallel()
	s := newAOTStack(t)
	var lines, list strings.Builder
	for _, f := range s.frames {
		fmt.Fprintf(&lines, "  %#x\n", f.offset-1)
		fmt.Fprintf(&list, "%#x ", f.offset-1)
	}
	image := "--image=" + s.program
	for _, log := range []string{lines.String(), list.String() + "\n"} {
		args := []string{image, "--dialects=auto,addresses"}
		s.wantChain(t, s.traceTwin.frames(t, []byte(log), args...), ownCalls...)
		s.wantOnce(t, []byte(log), args...)
		if text := s.text(t, []byte(log), "--dialects=auto"); text != log {
			t.Errorf("without the dialect the lines have changed:\n%s", text)
		}
		other := s.text(t, []byte(log), "--image="+s.other.program, "--dialects=auto,addresses", "--debug-file-directory", s.other.debug)
		if other != log {
			t.Errorf("another build changes the lines:\n%s", other)
		}
	}
}

// A record of rsyslog must be resolved, and must stay one line.
func TestRecordsOfRsyslogAreResolved(t *testing.T) {
	t.Parallel()
	w := newTraceTwin(t, "backtrace", twinBuild{})
	lines := strings.TrimSpace(string(w.output(t, nil)))
	record := "Nov 20 10:00:00 node07 backtrace[4711]: *** Aborted:#012" + strings.ReplaceAll(lines, "\n", "#012") + "#012\n"
	w.wantChain(t, w.frames(t, []byte(record)), twinCalls...)
	w.wantOnce(t, []byte(record))
	text := w.text(t, []byte(record))
	if got, want := strings.Count(text, "#012"), strings.Count(record, "#012"); got != want || strings.Count(text, "\n") != 1 {
		t.Errorf("%d ends of lines, want %d, in\n%s", got, want, text)
	}
}
