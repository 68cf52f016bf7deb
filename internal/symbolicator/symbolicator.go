// Package symbolicator answers requests of Symbolicator, Sentry's service, for ELF modules: POST
// /symbolicate, described at https://getsentry.github.io/symbolicator/api/symbolication/.
//
// The sources and the scraping in a request are ignored: a request must not make the service open a
// connection. A module is looked up by its code ID, or else by its debug ID. Modules of types other
// than elf are reported as missing.
package symbolicator

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/symbolize"
)

// Bounds of a request: a crash has a stack for each thread.
const (
	maxFrames  = 100_000
	maxStacks  = 10_000
	maxModules = 10_000
)

// Bytes of memory that an item of a request takes from its batch.Room.
const (
	frameBytes  = 64
	stackBytes  = 64
	moduleBytes = 256 // a module without its strings
)

// A module is an image in the request's list of modules.
type module struct {
	kind, codeID, debugID, codeFile, debugFile string
	start, size                                uint64 // size is 0 if unknown

	id     buildid.ID // zero for a module that is not ELF, or has no ID
	used   bool
	reason batch.Reason // why the module is not found; empty if it is found
}

// Values of frame.adjust: whether the address is decremented before the lookup. A return address
// follows its call, and may belong to the next line. adjustAuto decrements all addresses but the
// top frame's.
const (
	adjustAuto = iota
	adjustYes
	adjustNo
)

// A frame is a stack frame of a request, with its module and its answer.
type frame struct {
	addr     uint64
	relative int // index of the module that addr is relative to; -1: addr is absolute
	adjust   uint8

	module, answer int // indexes of modules and answers; -1: none
}

// A request holds the parsed contents of a request.
type request struct {
	r    *batch.Reader
	room batch.Room

	modules     []module
	stacks      [][]frame
	callerFirst bool
	frames      int
}

// Symbolicate answers a request. The returned function writes the answer.
func Symbolicate(ctx context.Context, s *batch.Symbols, body io.Reader) (func(io.Writer) error, error) {
	r := &request{r: batch.NewReader(body, s.Room), room: s.Room}
	if err := r.read(); err != nil {
		return nil, err
	}
	answers, err := s.LookInImages(ctx, r.locations(ctx, s))
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return r.write(batch.NewWriter(w), answers) }, nil
}

func (r *request) read() error {
	given := false
	err := r.r.Object(func(name string) error {
		switch name {
		case "stacktraces", "threads":
			given = true
			return r.r.Array(r.stack)
		case "modules":
			return r.r.Array(r.module)
		case "options":
			return r.r.Object(func(name string) error {
				if name != "frame_order" {
					return r.r.Skip()
				}
				order, err := r.r.Optional()
				r.callerFirst = order == "caller_first"
				return err
			})
		}
		return r.r.Skip()
	})
	if err == nil {
		err = r.r.End()
	}
	if err == nil && !given {
		err = batch.Invalidf("the request has no stacktraces")
	}
	return err
}

// take takes bytes of the request's memory for its n-th item. It fails if n exceeds most.
func (r *request) take(n, most int, what string, bytes int) error {
	if n > most {
		return batch.TooLargef("the request has more than %d %s", most, what)
	}
	if !r.room.Take(int64(bytes)) {
		return batch.ErrNoRoom
	}
	return nil
}

func (r *request) stack() error {
	if err := r.take(len(r.stacks)+1, maxStacks, "stacktraces", stackBytes); err != nil {
		return err
	}
	var stack []frame
	err := r.r.Object(func(name string) error {
		if name != "frames" {
			return r.r.Skip()
		}
		return r.r.Array(func() error {
			if r.frames++; r.frames > maxFrames {
				return batch.TooLargef("the request has more than %d frames", maxFrames)
			}
			if !r.room.Take(frameBytes) {
				return batch.ErrNoRoom
			}
			f, err := r.frame()
			stack = append(stack, f)
			return err
		})
	})
	r.stacks = append(r.stacks, stack)
	return err
}

func (r *request) frame() (f frame, err error) {
	f.relative, f.module, f.answer = -1, -1, -1
	given := false
	err = r.r.Object(func(name string) (err error) {
		switch name {
		case "instruction_addr":
			given = true
			f.addr, err = r.r.Uint()
		case "addr_mode":
			f.relative, err = r.mode()
		case "adjust_instruction_addr":
			var text string
			text, err = r.r.Optional()
			f.adjust = uint8(max(0, slices.Index([]string{"auto", "yes", "no"}, text)))
		default:
			err = r.r.Skip()
		}
		return err
	})
	if err == nil && !given {
		err = batch.Invalidf("the frame has no instruction_addr")
	}
	return f, err
}

// mode reads an addr_mode: abs, or rel: and the index of a module.
func (r *request) mode() (relative int, err error) {
	text, err := r.r.Text()
	if err != nil || text == "abs" {
		return -1, err
	}
	relative = 0
	digits := len(text) - len("rel:")
	if digits < 1 || digits > 6 || text[:len("rel:")] != "rel:" {
		return -1, batch.Invalidf("%.40q is neither abs nor rel:N, where N is the index of a module", text)
	}
	for _, c := range []byte(text[len("rel:"):]) {
		if c < '0' || c > '9' {
			return -1, batch.Invalidf("%.40q is neither abs nor rel:N, where N is the index of a module", text)
		}
		relative = 10*relative + int(c-'0')
	}
	return relative, nil
}

func (r *request) module() error {
	if err := r.take(len(r.modules)+1, maxModules, "modules", moduleBytes); err != nil {
		return err
	}
	var m module
	texts := map[string]*string{"type": &m.kind, "code_id": &m.codeID, "debug_id": &m.debugID, "code_file": &m.codeFile, "debug_file": &m.debugFile}
	err := r.r.Object(func(name string) (err error) {
		if to := texts[name]; to != nil {
			*to, err = r.r.Optional()
			return err
		}
		switch name {
		case "image_addr":
			m.start, err = r.r.Uint()
		case "image_size":
			m.size, err = r.r.Uint()
		default:
			err = r.r.Skip()
		}
		return err
	})
	n := len(m.kind) + len(m.codeID) + len(m.debugID) + len(m.codeFile) + len(m.debugFile)
	if err == nil && !r.room.Take(int64(n)) {
		err = batch.ErrNoRoom
	}
	r.modules = append(r.modules, m)
	return err
}

// locations finds the module of each frame. It returns the locations of frames in modules with a
// build ID.
func (r *request) locations(ctx context.Context, s *batch.Symbols) (all []symbolize.Location) {
	order := make([]int, len(r.modules)) // indices of the modules, by address
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.modules[a].start, r.modules[b].start) })
	for i := range r.stacks {
		stack := r.stacks[i]
		top := 0
		if r.callerFirst {
			top = len(stack) - 1
		}
		for k := range stack {
			f := &stack[k]
			offset := f.addr
			if f.relative >= 0 {
				if f.relative < len(r.modules) {
					f.module = f.relative
				}
			} else if f.module = r.moduleAt(order, f.addr); f.module >= 0 {
				offset -= r.modules[f.module].start
			}
			if f.module < 0 {
				continue
			}
			m := &r.modules[f.module]
			if !m.used && (m.kind == "elf" || m.kind == "") {
				m.id = s.Identify(ctx, m.codeID, m.debugID)
			}
			if m.used = true; m.id.IsZero() {
				m.reason = batch.NoFile
				continue
			}
			// all but the top frame have return addresses
			if adjust := f.adjust == adjustYes || f.adjust == adjustAuto && k != top; adjust && offset > 0 {
				offset--
			}
			f.answer = len(all)
			all = append(all, symbolize.Location{ID: m.id, Addr: offset})
		}
	}
	return all
}

// moduleAt returns the index of the module at an address, or -1. order lists the modules by
// address. A module of unknown size ends where the next one begins.
func (r *request) moduleAt(order []int, addr uint64) int {
	n, _ := slices.BinarySearchFunc(order, addr, func(i int, addr uint64) int {
		if r.modules[i].start <= addr {
			return -1
		}
		return 1
	})
	if n == 0 {
		return -1
	}
	i := order[n-1]
	size := r.modules[i].size
	if size == 0 {
		size = math.MaxUint64
	}
	if addr-r.modules[i].start >= size {
		return -1
	}
	return i
}

func (r *request) write(w *batch.Writer, answers []batch.Answer) error {
	w.Item()
	w.String("status", "complete")
	w.Array("stacktraces")
	for _, stack := range r.stacks {
		w.Item()
		w.Array("frames")
		for k := range stack {
			r.writeFrame(w, k, &stack[k], answers)
			if err := w.Flush(false); err != nil {
				return err
			}
		}
		w.EndArray()
		w.EndObject()
	}
	w.EndArray()
	w.Array("modules")
	for i := range r.modules {
		r.modules[i].write(w)
		if err := w.Flush(false); err != nil {
			return err
		}
	}
	w.EndArray()
	w.EndLine()
	return w.Flush(true)
}

// statusOf returns the API's status of a frame without a function, for the reason r.
func statusOf(r batch.Reason) string {
	switch r {
	case batch.NoSymbol:
		return "missing_symbol"
	case batch.Fault:
		return "malformed"
	}
	return "missing"
}

// writeFrame writes one frame of the request: its function, and each call inlined into it.
func (r *request) writeFrame(w *batch.Writer, index int, f *frame, answers []batch.Answer) {
	begin := func(status string) {
		w.Item()
		w.String("status", status)
		w.Int("original_index", int64(index))
		w.Hex("instruction_addr", f.addr)
		if f.relative >= 0 && f.relative < len(r.modules) {
			w.String("addr_mode", "rel:"+strconv.Itoa(f.relative))
		}
		if f.module >= 0 {
			w.Optional("package", r.modules[f.module].codeFile)
		}
	}
	switch {
	case f.module < 0:
		begin("unknown_image")
		w.EndObject()
		return
	case f.answer < 0:
		begin("missing")
		w.EndObject()
		return
	}
	a, m := &answers[f.answer], &r.modules[f.module]
	if a.Reason != batch.NoSymbol && a.Reason != "" {
		m.reason = a.Reason
	}
	if len(a.Frames) == 0 {
		begin(statusOf(a.Reason))
		w.EndObject()
		return
	}
	start := a.Start
	if f.relative < 0 {
		start += m.start
	}
	written := func(one *symbolize.Frame) {
		begin("symbolicated")
		if !one.Inlined {
			w.Hex("sym_addr", start)
		}
		w.Optional("symbol", one.Linkage)
		w.Optional("function", one.Func)
		if one.File != "" {
			w.String("filename", one.File[min(one.CompDir, len(one.File)):])
			w.String("abs_path", one.File)
			w.Uint("lineno", uint64(one.Line))
		}
		w.EndObject()
	}
	if r.callerFirst {
		for i := len(a.Frames) - 1; i >= 0; i-- {
			written(&a.Frames[i])
		}
		return
	}
	for i := range a.Frames {
		written(&a.Frames[i])
	}
}

// write writes the module's fields from the request, and its status in the field debug_status.
func (m *module) write(w *batch.Writer) {
	w.Item()
	status := "found"
	switch {
	case !m.used:
		status = "unused"
	case m.reason == batch.Pending || m.reason == batch.NoRoom:
		status = "timeout"
	case m.reason == batch.Fault:
		status = "malformed"
	case m.reason != "":
		status = "missing"
	}
	w.String("debug_status", status)
	w.Optional("type", m.kind)
	w.Optional("code_id", m.codeID)
	w.Optional("debug_id", m.debugID)
	w.Optional("code_file", m.codeFile)
	w.Optional("debug_file", m.debugFile)
	w.Hex("image_addr", m.start)
	if m.size > 0 {
		w.Uint("image_size", m.size)
	}
	w.EndObject()
}
