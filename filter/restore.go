package filter

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// A restorer reads a context. What it reads becomes the Filter's when all of it
// was good.
type restorer struct {
	f         *Filter
	now       time.Time
	line      int64
	turn      uint64
	grown     int
	began     int
	processes []*process // the first is the one at work
	keys      map[string]bool
	open      *moduleLine
	openOut   []byte // of JSON: text of the held line that is laid out
	openJSON  bool
	tail      []byte
	passed    int
	skip      int
	long      bool
	cut       []byte
}

var (
	errNoContext = errors.New("these are no lines of a context of this version")
	errTorn      = errors.New("its end is missing")
)

// lines reads all lines of a context.
func (r *restorer) lines(context []byte) error {
	r.now = time.Now()
	r.keys = make(map[string]bool)
	head := string(appendContextLine(nil, "context", contextVersion))
	if !bytes.HasPrefix(context, []byte(head)) {
		return errNoContext
	}
	if context[len(context)-1] != '\n' {
		return errTorn
	}
	number := 1
	for line := range bytes.Lines(context[len(head):]) {
		number++
		line = line[:len(line)-1]
		if !bytes.HasPrefix(line, markupOpen) || !bytes.HasSuffix(line, []byte("}}}")) || len(line) < 6 {
			return fmt.Errorf("line %d: %w", number, errNoContext)
		}
		tag, fields, _ := bytes.Cut(line[3:len(line)-3], []byte{':'})
		in := fieldReader{rest: fields}
		r.element(string(tag), &in)
		if in.bad {
			return fmt.Errorf("line %d: %w", number, errNoContext)
		}
	}
	if len(r.processes) == 0 {
		return errTorn
	}
	return nil
}

// element takes in one line of a context.
func (r *restorer) element(tag string, in *fieldReader) {
	if tag == "stream" {
		r.line = int64(in.number(math.MaxInt64 - 1))
		r.turn = in.number(math.MaxUint64)
		r.grown = int(in.number(2 * maxHeld))
		r.began = int(in.number(2 * maxHeld))
		return
	}
	if tag == "process" {
		r.process(in)
		return
	}
	if len(r.processes) == 0 {
		in.bad = true
		return
	}
	p := r.processes[len(r.processes)-1]
	switch tag {
	case "reset":
		in.bad = p.space.known()
	case "module":
		m, bad := markup.ParseModule(in.all())
		in.bad = bad != nil
		r.module(in, p, m)
	case "hexmodule":
		m := markup.Module{ID: in.number(math.MaxUint64), Name: string(in.bytes())}
		if id := in.bytes(); len(id) > 0 {
			var err error
			m.BuildID, err = buildid.FromBytes(id)
			in.bad = in.bad || err != nil
		}
		r.module(in, p, m)
	case "mmap":
		e, bad := markup.ParseMMap(in.all())
		mod := p.space.modules[e.Module]
		in.bad = bad != nil || mod == nil || e.Size == 0 || e.Addr+(e.Size-1) < e.Addr || p.space.n >= maxMaps
		if !in.bad {
			v := interval{start: e.Addr, end: e.Addr + (e.Size - 1), rel: e.Rel, mod: mod, mode: e.Mode}
			p.space.put(v)
		}
	case "opendict":
		d := &openDict{lines: int(in.number(maxDictLines)), prefix: in.bytes(), body: in.bytes()}
		in.bad = in.bad || p.hex != nil || len(d.prefix) > maxRepeat || len(d.body) > maxDict
		p.hex = d
	case "heldline", "heldmap", "heldrecord", "tail", "longline":
		in.bad = len(r.processes) > 1
		r.atWork(tag, in, p)
	default:
		in.bad = true
	}
}

// process begins the lines of a process.
func (r *restorer) process(in *fieldReader) {
	p := &process{key: string(in.bytes()), used: in.number(math.MaxUint64)}
	in.bad = in.bad || len(p.key) > maxKey || len(r.processes) >= maxProcesses || r.keys[p.key]
	r.keys[p.key] = true
	r.processes = append(r.processes, p)
}

// module makes m known to p. One with the ID of another takes its place, also
// where it is the same binary.
func (r *restorer) module(in *fieldReader, p *process, m markup.Module) {
	if in.bad {
		return
	}
	if len(m.Name) > maxName+len("…") {
		in.bad = true
		return
	}
	in.bad = p.space.add(&module{id: m.ID, name: m.Name, buildID: m.BuildID, awaited: r.f.patience.Name(m.BuildID, r.now)}) != nil
}

// atWork takes in a line of what only the process at work has.
func (r *restorer) atWork(tag string, in *fieldReader, p *process) {
	switch tag {
	case "heldline":
		m := &moduleLine{mod: p.space.modules[in.number(math.MaxUint64)], merges: true}
		flags := in.number(heldAdds | heldJSON)
		m.adds, r.openJSON = flags&heldAdds != 0, flags&heldJSON != 0
		m.raw, r.openOut, m.before, m.after = in.bytes(), in.bytes(), in.bytes(), in.bytes()
		m.state = sgr.State{}.Apply(in.bytes())
		m.process = string(in.bytes())
		in.bad = in.bad || r.open != nil || m.mod == nil || len(m.raw) > maxRepeat || len(m.before)+len(m.after)+len(r.openOut) > maxOpenLine || len(m.process) > maxKey
		r.open = m
	case "heldmap":
		v := interval{start: in.number(math.MaxUint64), end: in.number(math.MaxUint64), rel: in.number(math.MaxUint64), mode: markup.Mode(in.number(7))}
		in.bad = in.bad || r.open == nil || v.end < v.start || len(r.open.maps) >= maxMerged
		if !in.bad {
			v.mod = r.open.mod
			r.open.maps = append(r.open.maps, v)
		}
	case "heldrecord":
		if r.open == nil {
			in.bad = true
			return
		}
		rec := record{module: r.open}
		if in.more() {
			rec = record{json: in.bytes()}
		}
		r.open.records = append(r.open.records, rec)
	case "tail":
		r.tail, r.passed, r.skip = in.bytes(), int(in.number(maxLine)), int(in.number(maxOpenLine+16*maxLine))
		in.bad = in.bad || len(r.tail) > maxLine || r.passed > len(r.tail) || bytes.IndexByte(r.tail, '\n') >= 0
	case "longline":
		r.long, r.cut = true, in.bytes()
		in.bad = in.bad || len(r.cut) > 3
	}
}

// install makes what was read the Filter's.
func (r *restorer) install() {
	f := r.f
	f.line, f.turn = r.line, r.turn
	f.tail, f.passed, f.skip = r.tail, r.passed, r.skip
	f.long, f.visible.cut = r.long, r.cut
	if f.open = r.open; f.open != nil {
		f.restoreOpen(r)
	}
	if f.o.ProcessKey == nil {
		for _, p := range r.processes {
			if p.key == "" {
				f.process = p
			}
		}
		r.processes = []*process{f.process}
	} else {
		f.process, f.grown, f.began = r.processes[0], r.grown, r.began
		f.processes = make(map[string]*process)
		for _, p := range r.processes {
			f.processes[p.key] = p
		}
		f.evict()
	}
	for _, p := range r.processes {
		if p.hex != nil && (f.processes == nil || f.processes[p.key] == p) {
			f.openDicts++
		}
	}
	if s := f.o.Symbolizer; s != nil {
		for _, p := range r.processes {
			for _, id := range p.space.ids() {
				s.Prefetch(p.space.modules[id].buildID, p.space.modules[id].name)
			}
		}
	}
}

// restoreOpen makes the held line fit the Filter's output, which may be another
// than that it was held for.
func (f *Filter) restoreOpen(r *restorer) {
	m := f.open
	switch {
	case f.json != nil && !r.openJSON:
		m.after, _ = splitLine(m.after)
		m.records = []record{{module: m}}
	case f.json == nil && r.openJSON:
		m.before = append(r.openOut, m.before...)
		m.after = append(m.after, '\n')
		m.records = nil
	case f.json != nil:
		f.out = r.openOut
	}
}

// A fieldReader reads the fields of an element of a context. What is missing,
// or is not what it should be, makes it bad.
type fieldReader struct {
	rest []byte
	done bool
	bad  bool
}

// more reports whether a field is left.
func (in *fieldReader) more() bool { return !in.done && len(in.rest) > 0 }

// all returns all fields.
func (in *fieldReader) all() []byte {
	in.done = true
	return in.rest
}

func (in *fieldReader) next() []byte {
	if in.done {
		in.bad = true
		return nil
	}
	field, rest, more := bytes.Cut(in.rest, []byte{':'})
	in.rest, in.done = rest, !more
	return field
}

// number reads a decimal number that is not above most.
func (in *fieldReader) number(most uint64) uint64 {
	n, err := strconv.ParseUint(string(in.next()), 10, 64)
	if err != nil || n > most {
		in.bad = true
		return 0
	}
	return n
}

// bytes reads bytes in hex.
func (in *fieldReader) bytes() []byte {
	b, err := hex.AppendDecode(nil, in.next())
	if err != nil {
		in.bad = true
		return nil
	}
	return b
}
