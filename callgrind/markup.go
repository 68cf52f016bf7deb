package callgrind

import (
	"cmp"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/markup"
)

// NewMarkup returns a writer that renders a profile to dst, in the profile's order. It writes
// the header as text, a heading for each function, and a line for each cost, call and jump.
// Their addresses become elements. Each object becomes a module at a made-up load address,
// since the profile's addresses are relative to the object files. Write renders whole lines;
// Close renders the rest. One goroutine at a time may use the writer.
func NewMarkup(dst markup.Sink, o Options) io.WriteCloser {
	r := &renderer{o: &o, dst: dst, shown: make(map[nameID]uint64), missing: make(map[nameID]bool)}
	r.recordReader = newReader(r.renderRecord, o.report().Report, o.Memory)
	r.recordReader.foreign = r.log
	r.objects = newObjects(o.report(), r.recordReader)
	return r
}

// renderer turns records into text and elements.
type renderer struct {
	*recordReader
	o       *Options
	dst     markup.Sink
	objects objects
	err     error

	line   []byte            // text not yet in dst
	shown  map[nameID]uint64 // load address of each shown object's module; 0: no module
	number uint64            // number of the last module
	at     codePlace         // the function of the current heading
	source nameID            // the source file of the current lines
	began  bool              // a document has begun

	missing map[nameID]bool // objects with addresses that are not elements
}

// moduleShift is the distance between the load addresses of modules, as a power of two. Objects
// are smaller.
const moduleShift = 40

// Close renders a last line without a line end, and does not close the sink. It reports
// unusable object files, at most maxDiagnostics, if their addresses are not elements.
func (r *renderer) Close() error {
	defer r.share.Release()
	err := r.recordReader.Close()
	r.flush()
	reported := 0
	for _, n := range slices.Sorted(maps.Keys(r.missing)) {
		if f := r.objects.file(n); reported < maxDiagnostics && f != nil && f.Err != nil {
			reported++
			r.o.report().Report(f.Fault().Error() + "; addresses in this file remain unresolved")
		}
	}
	return cmp.Or(err, r.err)
}

func (r *renderer) flush() {
	if r.err == nil && len(r.line) > 0 {
		r.err = r.dst.Text(r.line)
	}
	r.line = r.line[:0]
}

func (r *renderer) element(e markup.Element) {
	r.flush()
	if r.err == nil {
		r.err = r.dst.Element(e)
	}
}

func (r *renderer) text(s string) { r.line = append(r.line, s...) }

func (r *renderer) clean(s string) { r.line = escape.AppendText(r.line, s, "") }

func (r *renderer) end() error {
	r.line = append(r.line, '\n')
	r.flush()
	return r.err
}

// log writes a line outside of profiles to the sink, unchanged.
func (r *renderer) log(line []byte) error {
	r.flush()
	if r.err == nil {
		r.err = r.dst.Text(line)
	}
	return r.err
}

func (r *renderer) renderRecord(rec *record) error {
	switch rec.Kind {
	case documentRecord:
		if r.began {
			r.text("\n")
		}
		r.began = true
		clear(r.shown)
		r.number, r.at, r.source = 0, codePlace{}, 0
		r.element(markup.Reset{})
		return r.end()
	case partRecord:
		r.at, r.source = codePlace{}, 0
		return r.end()
	case headerRecord:
		if value := string(rec.Value); strings.TrimSpace(value) != "" {
			r.clean(string(rec.Key) + ": " + value)
			return r.end()
		}
		return r.err
	}
	r.heading(rec)
	switch rec.Kind {
	case costRecord:
		if isZero(rec.Costs) {
			return r.err
		}
		r.present(rec.Object)
		r.text("  ")
		r.place(&rec.codePlace)
		r.costs(rec.Costs)
	case callRecord:
		r.present(rec.Object)
		r.present(rec.To.Object)
		r.text("  ")
		r.place(&rec.codePlace)
		r.text(" -> ")
		r.target(&rec.To)
		r.line = strconv.AppendInt(append(r.line, "  "...), rec.Count, 10)
		r.text(" calls, incl")
		r.costs(rec.Costs)
	case jumpRecord:
		r.present(rec.Object)
		r.text("  ")
		r.place(&rec.codePlace)
		r.text(" jumps to ")
		r.place(&rec.To)
		r.line = strconv.AppendInt(append(r.line, "  "...), rec.Count, 10)
		if rec.Conditional {
			r.line = strconv.AppendInt(append(r.line, " of "...), rec.Executed, 10)
		}
		r.text(" times")
	}
	return r.end()
}

// heading renders the heading of a function, or of another source file in it.
func (r *renderer) heading(rec *record) {
	at := rec.codePlace
	at.Source, at.codePosition = 0, codePosition{}
	if at == r.at && rec.Source == r.source {
		return
	}
	if at == r.at {
		r.text(" in ")
		r.clean(r.name(rec.Source))
		r.source = rec.Source
		r.end()
		return
	}
	r.at, r.source = at, rec.File
	r.present(at.Object)
	r.end()
	r.function(&at)
	if r.source != rec.Source {
		r.heading(rec)
	}
}

func (r *renderer) name(n nameID) string {
	if n == 0 {
		return unknown
	}
	return r.Text(n)
}

// function renders the name of a function, its file and its object.
func (r *renderer) function(at *codePlace) {
	r.called(at)
	if file := r.name(at.File); file != unknown {
		r.text("  ")
		r.clean(file)
	}
	if ob := r.name(at.Object); ob != unknown {
		r.text("  [")
		r.clean(path.Base(ob))
		r.text("]")
	}
	r.end()
}

// called renders the name of a function. If the name is an address, it becomes a pc element. If it
// is mangled, it becomes a symbol element.
func (r *renderer) called(at *codePlace) {
	name := r.name(at.Function)
	if addr, rest, ok := entry(name); ok && r.address(at.Object, addr) {
		r.clean(rest)
		return
	}
	if !report.IsMangled(name) {
		r.clean(name)
		return
	}
	bare, suffix := cutSuffix(name)
	r.element(markup.Symbol{Name: bare})
	r.clean(suffix)
}

func (r *renderer) target(to *codePlace) {
	if to.Addr != 0 && r.base(to.Object) != 0 {
		r.address(to.Object, to.Addr)
		return
	}
	r.called(to)
}

// place renders an address, and its line if the profile has one.
func (r *renderer) place(at *codePlace) {
	if at.Addr != 0 && !r.address(at.Object, at.Addr) {
		if ob := r.name(at.Object); ob != unknown {
			r.clean(path.Base(ob) + "+")
		}
		r.line = strconv.AppendUint(append(r.line, "0x"...), at.Addr, 16)
	}
	if at.codePosition.Line != 0 || at.Addr == 0 {
		if at.Addr != 0 {
			r.text(" ")
		}
		r.line = strconv.AppendUint(append(r.line, "line "...), at.codePosition.Line, 10)
	}
}

// address renders an address as an element. It returns false if that is impossible.
func (r *renderer) address(object nameID, addr uint64) bool {
	base := r.base(object)
	if base == 0 || addr>>moduleShift != 0 {
		if len(r.missing) < maxFunctions {
			r.missing[object] = true
		}
		return false
	}
	r.element(markup.PC{Addr: base + addr, Kind: markup.Precise})
	return true
}

// base returns the load address of an object's module, or 0 if it has none.
func (r *renderer) base(object nameID) uint64 {
	return r.shown[object]
}

// present renders the module of an object at its first use.
func (r *renderer) present(object nameID) {
	if _, ok := r.shown[object]; ok {
		return
	}
	f := r.objects.file(object)
	if len(r.shown) >= maxFunctions {
		return
	}
	if r.shown[object] = 0; f == nil || f.Err != nil || f.ID.IsZero() && r.o.Elements {
		return
	}
	r.number++
	base := r.number << moduleShift
	name := path.Base(f.Name)
	if f.ID.IsZero() {
		name = f.Path
	}
	r.element(markup.Module{ID: r.number, Name: name, BuildID: f.ID})
	r.text("\n")
	for m := range f.Maps(r.number, base) {
		if (m.Rel+m.Size)>>moduleShift == 0 {
			r.shown[object] = base
			r.element(m)
			r.text("\n")
		}
	}
	r.flush()
}

func (r *renderer) costs(costs []int64) {
	for i, n := range costs {
		if n == 0 && len(costs) > 1 {
			continue
		}
		r.text("  ")
		r.clean(r.Events()[i].Name)
		r.line = strconv.AppendInt(append(r.line, ' '), n, 10)
	}
}
