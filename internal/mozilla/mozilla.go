// Package mozilla answers requests of Mozilla's symbolication API, version 5, from the Firefox
// Profiler and samply. Its documentation is at
// https://mozilla-eliot.readthedocs.io/en/latest/symbolication.html; module_errors and inlines
// follow samply-api.
//
// A request names a module by its debug ID: [batch.Symbols.Identify] finds the build ID for it. An
// address is relative to the module's image. Callers have adjusted return addresses, so addresses
// are looked up unchanged.
package mozilla

import (
	"context"
	"io"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/symbolize"
)

// Bounds of a request. The Firefox Profiler sends all addresses of a profile in one request.
const (
	maxFrames  = 100_000
	maxModules = 10_000 // in all memory maps; a process has hundreds, most of them unused
	maxJobs    = 1000
	maxStacks  = 100_000
)

// Bytes of memory that an item of a request takes from its batch.Room.
const (
	frameBytes  = 32  // a frame of a request
	moduleBytes = 112 // a module without its strings
	stackBytes  = 32
	jobBytes    = 96
)

// A module is an entry of a job's memory map.
type module struct {
	name, debugID, codeID string

	used   bool
	id     buildid.ID   // zero for a module without a build ID or without frames
	reason batch.Reason // why the module is not found; empty if it is found
}

// A frame is an offset in a module of the job.
type frame struct {
	module int // index in job.modules; -1: none
	offset uint64
	answer int // index in the answers; -1: not looked up
}

// A job is a list of stacks of one process, and the process's memory map.
type job struct {
	modules []module
	stacks  [][]frame
}

// Symbolicate answers a request: {"jobs": […]}, or a single job alone. The returned function writes
// the answer.
func Symbolicate(ctx context.Context, s *batch.Symbols, body io.Reader) (func(io.Writer) error, error) {
	r := &request{r: batch.NewReader(body, s.Room), room: s.Room}
	if err := r.read(); err != nil {
		return nil, err
	}
	locations, err := r.locations(ctx, s)
	if err != nil {
		return nil, err
	}
	answers, err := s.LookInImages(ctx, locations)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return r.write(batch.NewWriter(w), answers) }, nil
}

// A request holds the parsed contents of a request.
type request struct {
	r    *batch.Reader
	room batch.Room

	jobs                    []job
	frames, modules, stacks int // numbers of frames, modules and stacks in all jobs
}

// take adds 1 to the count n of items, and takes the memory of an item from the room. It fails if n
// exceeds most, or if the room has too little memory left.
func (r *request) take(n *int, most int, what string, bytes int) error {
	if *n++; *n > most {
		return batch.TooLargef("the request has more than %d %s; send it in several requests", most, what)
	}
	if !r.room.Take(int64(bytes)) {
		return batch.ErrNoRoom
	}
	return nil
}

func (r *request) read() error {
	var single job
	given := false
	err := r.r.Object(func(name string) error {
		switch name {
		case "jobs":
			return r.r.Array(func() error {
				n := len(r.jobs)
				if err := r.take(&n, maxJobs, "jobs", jobBytes); err != nil {
					return err
				}
				var j job
				err := r.r.Object(func(name string) error { return r.member(&j, name) })
				r.jobs = append(r.jobs, j)
				return err
			})
		case "memoryMap", "stacks":
			given = true
		}
		return r.member(&single, name)
	})
	if err == nil {
		err = r.r.End()
	}
	if given {
		r.jobs = append(r.jobs, single)
	}
	if err == nil && len(r.jobs) == 0 {
		err = batch.Invalidf("the request has no jobs")
	}
	return err
}

func (r *request) member(j *job, name string) error {
	switch name {
	case "memoryMap":
		return r.r.Array(func() error {
			m, err := r.module()
			j.modules = append(j.modules, m)
			return err
		})
	case "stacks":
		return r.r.Array(func() error {
			if err := r.take(&r.stacks, maxStacks, "stacks", stackBytes); err != nil {
				return err
			}
			var stack []frame
			err := r.r.Array(func() error {
				f, err := r.frame()
				stack = append(stack, f)
				return err
			})
			j.stacks = append(j.stacks, stack)
			return err
		})
	}
	return r.r.Skip()
}

// module reads [name, debug ID], or [name, debug ID, code ID].
func (r *request) module() (m module, err error) {
	if err := r.take(&r.modules, maxModules, "modules", moduleBytes); err != nil {
		return m, err
	}
	n := 0
	err = r.r.Array(func() (err error) {
		switch n++; n {
		case 1:
			m.name, err = r.r.Text()
		case 2:
			m.debugID, err = r.r.Text()
		case 3:
			m.codeID, err = r.r.Optional()
		default:
			err = r.r.Skip()
		}
		return err
	})
	if err == nil && n < 2 {
		err = batch.Invalidf("a module must be a list of its name and its debug ID")
	}
	if err == nil && !r.room.Take(2*int64(len(m.name)+len(m.debugID)+len(m.codeID))) {
		err = batch.ErrNoRoom
	}
	return m, err
}

// frame reads [index of the module, offset].
func (r *request) frame() (f frame, err error) {
	if err := r.take(&r.frames, maxFrames, "frames", frameBytes); err != nil {
		return f, err
	}
	n := 0
	err = r.r.Array(func() (err error) {
		switch n++; n {
		case 1:
			f.module, err = r.r.Index()
		case 2:
			f.offset, err = r.r.Uint()
		default:
			err = batch.Invalidf("a frame has two numbers")
		}
		return err
	})
	if err == nil && n < 2 {
		err = batch.Invalidf("a frame must be a list of its module's index and an offset")
	}
	f.answer = -1
	return f, err
}

// locations returns the locations of all frames in modules with a build ID.
func (r *request) locations(ctx context.Context, s *batch.Symbols) (all []symbolize.Location, err error) {
	for j := range r.jobs {
		job := &r.jobs[j]
		for i := range job.stacks {
			for k := range job.stacks[i] {
				f := &job.stacks[i][k]
				if f.module >= len(job.modules) {
					return nil, batch.Invalidf("jobs[%d].stacks[%d][%d]: module %d is not in the memoryMap, which has %d", j, i, k, f.module, len(job.modules))
				}
				if f.module < 0 {
					continue
				}
				m := &job.modules[f.module]
				if !m.used {
					m.used, m.id = true, s.Identify(ctx, m.codeID, m.debugID)
				}
				if m.id.IsZero() {
					m.reason = batch.NoFile
					continue
				}
				f.answer = len(all)
				all = append(all, symbolize.Location{ID: m.id, Addr: f.offset})
			}
		}
	}
	return all, nil
}

func (r *request) write(w *batch.Writer, answers []batch.Answer) error {
	w.Item()
	w.Array("results")
	for j := range r.jobs {
		job := &r.jobs[j]
		w.Item()
		w.Array("stacks")
		for _, stack := range job.stacks {
			w.ArrayItem()
			for k := range stack {
				job.write(w, k, &stack[k], answers)
				if err := w.Flush(false); err != nil {
					return err
				}
			}
			w.EndArray()
		}
		w.EndArray()
		if err := job.writeModules(w); err != nil {
			return err
		}
		w.EndObject()
	}
	w.EndArray()
	w.EndLine()
	return w.Flush(true)
}

// unknownModule names the module of a frame outside all modules of the request.
const unknownModule = "<unknown>"

func (j *job) write(w *batch.Writer, index int, f *frame, answers []batch.Answer) {
	w.Item()
	w.Int("frame", int64(index))
	w.Hex("module_offset", f.offset)
	if f.module < 0 {
		w.String("module", unknownModule)
	} else {
		w.String("module", j.modules[f.module].name)
	}
	if f.answer >= 0 {
		a := &answers[f.answer]
		if m := &j.modules[f.module]; a.Reason != batch.NoSymbol {
			m.reason = a.Reason
		}
		writeSymbol(w, f, a)
	}
	w.EndObject()
}

// writeSymbol writes the function of a frame, and the calls inlined into it, innermost first.
func writeSymbol(w *batch.Writer, f *frame, a *batch.Answer) {
	if len(a.Frames) == 0 {
		return
	}
	outer, inlined := &a.Frames[len(a.Frames)-1], a.Frames[:len(a.Frames)-1]
	w.String("function", outer.Func)
	w.Hex("function_offset", f.offset-a.Start)
	writeLine(w, outer)
	if len(inlined) == 0 {
		return
	}
	w.Array("inlines")
	for i := range inlined {
		w.Item()
		w.Optional("function", inlined[i].Func)
		writeLine(w, &inlined[i])
		w.EndObject()
	}
	w.EndArray()
}

// writeLine writes the file and line, if known.
func writeLine(w *batch.Writer, f *symbolize.Frame) {
	w.Optional("file", f.File)
	if f.Line > 0 {
		w.Uint("line", uint64(f.Line))
	}
}

// writeModules writes whether each module with frames was found, and the errors of missing modules.
// Modules with equal keys are written once.
func (j *job) writeModules(w *batch.Writer) error {
	w.Object("found_modules")
	missing := 0
	seen := make(map[string]bool)
	for i := range j.modules {
		m := &j.modules[i]
		if !m.used || seen[m.key()] {
			m.used = false
			continue
		}
		if seen[m.key()] = true; m.reason != "" {
			missing++
		}
		w.Key([]byte(m.key()))
		w.BoolItem(m.reason == "")
		if err := w.Flush(false); err != nil {
			return err
		}
	}
	w.EndObject()
	if missing == 0 {
		return nil
	}
	w.Object("module_errors")
	for _, m := range j.modules {
		if !m.used || m.reason == "" {
			continue
		}
		w.Key([]byte(m.key()))
		w.ArrayItem()
		w.Item()
		w.String("name", string(m.reason))
		w.String("message", messageOf(m.reason))
		w.EndObject()
		w.EndArray()
		if err := w.Flush(false); err != nil {
			return err
		}
	}
	w.EndObject()
	return nil
}

// key returns the name of the module in found_modules.
func (m *module) key() string { return m.name + "/" + m.debugID }

func messageOf(r batch.Reason) string {
	switch r {
	case batch.NoFile:
		return "no file with this ID was found"
	case batch.Pending:
		return "the search for the file has not ended; send the request again later"
	case batch.Fault:
		return "the file cannot be used; the log of symfilterd has the reason"
	}
	return "earlier answers have used up the memory of the request; send fewer frames"
}
