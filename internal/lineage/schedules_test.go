package lineage

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

const (
	logPath  = "/log/app.log"
	lineSize = HeadSize + 8 // bytes of a line: the head then identifies a file of one line
)

// An action changes the folder or the run. It returns false if it changes nothing: the schedule
// then equals a shorter one.
type action struct {
	name string
	do   func(w *world) bool
}

// A world is a simulated folder of log files, the reader under test, and the lines that the reader
// must print.
type world struct {
	modelDisk
	reader    *modelReader
	last      *Entry          // checkpoint before the last look
	since     map[string]int  // prints since the checkpoint last
	due       map[string]bool // lines that a look must print
	mayDouble map[string]bool // lines that a killed run printed after its checkpoint
	final     bool            // look also expects the lines of closed files
	printed   map[string]int
}

func (w *world) path(n int) string {
	if n == 0 {
		return logPath
	}
	return fmt.Sprintf("%s.%d", logPath, n)
}

func (w *world) create(path string) *modelFile {
	w.next++
	f := &modelFile{ino: w.next, mtime: w.clock}
	if w.freed != 0 && !w.isOpen(w.freed) {
		f.ino, w.freed = w.freed, 0
	}
	w.files[path] = f
	return f
}

// isOpen reports whether the reader holds the inode, which is then not free.
func (w *world) isOpen(ino uint64) bool {
	return slices.ContainsFunc(w.reader.held(), func(c Content) bool { return c.State().ID.Ino == ino })
}

func lineAt(n int) string { return fmt.Sprintf("line %-*d%6d\n", lineSize-len("line 123456\n"), n, n) }

func (w *world) append(path string) {
	f := w.files[path]
	if f == nil {
		f = w.create(path)
	}
	w.lines++
	f.data = append(slices.Clip(f.data), lineAt(w.lines)...)
	f.mtime = w.clock
}

// shift renames the rotated files, and removes the oldest one.
func (w *world) shift() {
	for _, end := range []string{"", ".gz"} {
		delete(w.files, w.path(2)+end)
		if f := w.files[w.path(1)+end]; f != nil {
			w.files[w.path(2)+end] = f
			delete(w.files, w.path(1)+end)
		}
	}
}

func (w *world) compress(keepsTime bool) bool {
	f := w.files[w.path(1)]
	if f == nil || len(f.data) == 0 {
		return false
	}
	a := w.create(w.path(1) + ".gz")
	a.packed, a.data, a.closed = true, f.data, f.closed && !w.isOpen(f.ino)
	if keepsTime {
		a.mtime = f.mtime
	}
	delete(w.files, w.path(1))
	return true
}

var actions = []action{
	{"append", func(w *world) bool { w.append(logPath); return true }},
	{"late", func(w *world) bool { // by a writer that has not noticed the rotation
		if f := w.files[w.path(1)]; f == nil || f.copied {
			return false
		}
		w.append(w.path(1))
		return true
	}},
	{"rename", func(w *world) bool {
		f := w.files[logPath]
		if f == nil {
			return false
		}
		w.shift()
		w.files[w.path(1)] = f
		delete(w.files, logPath)
		return true
	}},
	{"truncate", func(w *world) bool {
		f := w.files[logPath]
		if f == nil || len(f.data) == 0 {
			return false
		}
		f.data, f.mtime = nil, w.clock
		return true
	}},
	{"copytruncate", func(w *world) bool {
		f := w.files[logPath]
		if f == nil || len(f.data) == 0 {
			return false
		}
		w.shift()
		c := w.create(w.path(1))
		c.data, c.copied = bytes.Clone(f.data), true
		f.data, f.mtime = nil, w.clock
		return true
	}},
	{"compress", func(w *world) bool { return w.compress(true) }},
	{"compress later", func(w *world) bool { return w.compress(false) }},
	{"remove", func(w *world) bool { // removes the oldest file
		for n := 2; n >= 0; n-- {
			for _, end := range []string{".gz", ""} {
				if w.files[w.path(n)+end] != nil {
					delete(w.files, w.path(n)+end)
					return true
				}
			}
		}
		return false
	}},
	// removes the oldest file, and gives its inode to the next new one
	{"reuse", func(w *world) bool {
		for n := 2; n >= 0; n-- {
			for _, end := range []string{".gz", ""} {
				if f := w.files[w.path(n)+end]; f != nil {
					delete(w.files, w.path(n)+end)
					w.freed = f.ino
					return true
				}
			}
		}
		return false
	}},
	{"stop", func(w *world) bool { w.restart(w.reader.checkpoint()); return true }},
	{"kill", func(w *world) bool { // restarts from the checkpoint before the last look
		if len(w.since) == 0 {
			return false
		}
		for line := range w.since {
			w.mayDouble[line] = true
		}
		w.restart(w.last)
		return true
	}},
}

// restart begins another run at a checkpoint. The next run cannot identify rotated files that were
// empty, so they are marked as closed.
func (w *world) restart(from *Entry) {
	w.reader = newModelReader(&w.modelDisk, w.reader.closes, w.printed)
	w.reader.saved = from
	w.since, w.last = nil, from
	for i, p := range from.Reading {
		w.reader.log.AddRead(p.Mark)
		for _, f := range w.files {
			f.closed = f.closed || f.ino == p.Ino && p.Len == 0 && !(from.Current && i == len(from.Reading)-1)
		}
	}
}

// look lets the reader read everything. Afterwards, all lines in the log's files and in open files
// must be printed. Lines added to closed files are seen only when the reader searches for new
// files. A reader with a checkpoint may wait until a file has the log's name.
func (w *world) look() {
	w.clock++
	var due [][]byte
	for _, f := range w.files {
		if !f.closed || w.isOpen(f.ino) || w.final {
			due = append(due, f.data)
		}
	}
	for _, c := range w.reader.held() {
		due = append(due, c.(*modelContent).data)
	}
	before := w.reader.checkpoint()
	printed := len(w.reader.order)
	w.reader.look()
	if w.reader.saved == nil {
		for line := range slices.Chunk(slices.Concat(due...), lineSize) {
			w.due[string(line)] = true
		}
		for _, f := range w.files {
			f.closed = !w.isOpen(f.ino)
		}
	}
	w.last, w.since = before, make(map[string]int)
	w.clock++
	for _, line := range w.reader.order[printed:] {
		w.since[line]++
	}
}

// faults returns the differences from the expected results.
func (w *world) faults() string {
	var all []string
	for n := range w.lines {
		line := lineAt(n + 1)
		switch times := w.printed[line]; {
		case times == 0 && w.due[line]:
			all = append(all, fmt.Sprintf("line %d is lost", n+1))
		case times > 1 && !w.mayDouble[line]:
			all = append(all, fmt.Sprintf("line %d is printed %d times", n+1, times))
		}
	}
	return strings.Join(all, ", ")
}

// run runs a schedule. A step is twice the index of an action, plus 1 if a look follows. distinct
// is false if the schedule equals a shorter one.
func run(steps []int, closes bool) (w *world, distinct bool) {
	w = &world{modelDisk: modelDisk{files: make(map[string]*modelFile)}, due: make(map[string]bool), mayDouble: make(map[string]bool), printed: make(map[string]int)}
	w.reader = newModelReader(&w.modelDisk, closes, w.printed)
	w.append(logPath)
	w.append(logPath)
	w.reader.begin() // a checkpoint has the open files before their first line is printed
	w.look()
	looked := true
	for i, s := range steps {
		w.clock++
		if !actions[s/2].do(w) {
			return w, false
		}
		if name := actions[s/2].name; i > 0 && name == "stop" && actions[steps[i-1]/2].name == "stop" && steps[i-1]%2 == 0 {
			return w, false // the same look twice
		}
		if looked = s%2 == 1; looked {
			w.look()
		}
	}
	if !looked {
		w.look()
	}
	w.final = true
	if w.reader.saved != nil { // the reader waits until a file has the log's name
		w.append(logPath)
	}
	if w.reader.cur != nil { // another rotation, so that closed files are examined
		w.reader.discover(Predecessor{Content: w.reader.cur})
	}
	w.look()
	return w, true
}

func nameOf(steps []int) string {
	var names []string
	for _, s := range steps {
		names = append(names, actions[s/2].name)
		if s%2 == 1 {
			names = append(names, "look")
		}
	}
	return strings.Join(names, ", ")
}

// Schedules have at most three steps, or six in a long test. The next look must print each line in
// a file of the log. Only after a kill may a line be printed twice.
func TestSchedules(t *testing.T) {
	most := fuzztest.LongOr(6, 3)
	for _, closes := range []bool{false, true} {
		count, faults := 0, 0
		var visit func(steps []int)
		visit = func(steps []int) {
			// run always ends with a look: a schedule without a last look equals one with it
			if n := len(steps); n > 0 && steps[n-1]%2 == 1 {
				w, distinct := run(steps, closes)
				if !distinct {
					return
				}
				count++
				if f := w.faults(); f != "" {
					if faults++; faults <= 10 {
						t.Errorf("closes=%v: %s: %s", closes, nameOf(steps), f)
					}
					return // longer schedules have the same fault
				}
			}
			if len(steps) == most {
				return
			}
			for s := range 2 * len(actions) {
				visit(append(slices.Clip(steps), s))
			}
		}
		visit(nil)
		t.Logf("closes=%v: %d schedules, %d with faults", closes, count, faults)
	}
}

// These schedules are longer than those of a short test, and once failed.
func TestLongSchedules(t *testing.T) {
	for _, schedule := range []string{
		"append, truncate, reuse, append, look, copytruncate, look, stop, look",
		"rename, append, look, late, append, compress, look",
		"rename, append, look, late, compress later, append, look",
		"rename, append, late, rename, compress, stop, look",
		"rename, append, stop, late, rename, compress, look",
		"rename, append, truncate, look, late, rename, stop, look",
		"truncate, rename, append, look, late, append, compress, look",
	} {
		for _, closes := range []bool{false, true} {
			w, distinct := run(stepsOf(schedule), closes)
			if f := w.faults(); f != "" || !distinct {
				t.Errorf("closes=%v: %s: %s", closes, schedule, f)
			}
		}
	}
}

// stepsOf parses a schedule as nameOf writes it, such as "append, look".
func stepsOf(schedule string) (steps []int) {
	for name := range strings.SplitSeq(schedule, ", ") {
		if name == "look" {
			steps[len(steps)-1]++
			continue
		}
		steps = append(steps, 2*slices.IndexFunc(actions, func(a action) bool { return a.name == name }))
	}
	return steps
}
