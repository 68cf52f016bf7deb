package callgrind

import (
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/report"
)

// NewMarkup returns a writer that renders the profile written to it to dst, in
// its order: its header as text, then a heading for each function, and a line
// for each cost, call and jump, with elements for the addresses in them. Each
// object is a module, at an address of its own that is made up: profiles have
// the addresses of the objects' files. What is written is rendered as far as its
// lines are whole; Close renders the rest.
func NewMarkup(dst markup.Sink, o Options) io.WriteCloser {
	r := &renderer{o: &o, dst: dst, shown: make(map[Name]uint64), missing: make(map[Name]bool)}
	r.Reader = newReader(r.record, o.Report, o.Budget)
	r.Reader.foreign = r.log
	r.objects = newObjects(&o.Options, r.Reader)
	return r
}

// renderer makes text and elements of records.
type renderer struct {
	*Reader
	o       *Options
	dst     markup.Sink
	objects objects
	err     error

	line   []byte          // text that is not at dst yet
	shown  map[Name]uint64 // objects whose module has been shown, by where it is; 0: it has none
	number uint64          // of the last module
	at     Place           // the function under whose heading we are
	source Name            // the file of the lines
	began  bool            // a document has begun

	missing map[Name]bool // objects with addresses that are no elements
}

// moduleShift says how far apart modules are: farther than any object is large.
const moduleShift = 40

// Close renders what is left. It does not close the sink.
func (r *renderer) Close() error {
	defer r.share.Release()
	err := r.Reader.Close()
	r.flush()
	told := 0
	for _, n := range slices.Sorted(maps.Keys(r.missing)) {
		if f := r.objects.of(n); told < maxTold && f != nil && f.Err != nil {
			told++
			r.o.Report(f.Fault().Error() + "; the addresses in it stay as they are")
		}
	}
	if err == nil {
		err = r.err
	}
	return err
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

// log renders a line that is not of a profile, as it is.
func (r *renderer) log(line []byte) error {
	r.flush()
	if r.err == nil {
		r.err = r.dst.Text(line)
	}
	return r.err
}

// record renders a record.
func (r *renderer) record(rec *Record) error {
	switch rec.Kind {
	case Document:
		if r.began {
			r.text("\n")
		}
		r.began = true
		clear(r.shown)
		r.number, r.at, r.source = 0, Place{}, 0
		r.element(markup.Reset{})
		return r.end()
	case Part:
		r.at, r.source = Place{}, 0
		return r.end()
	case Header:
		if value := string(rec.Value); strings.TrimSpace(value) != "" {
			r.clean(string(rec.Key) + ": " + value)
			return r.end()
		}
		return r.err
	}
	r.heading(rec)
	switch rec.Kind {
	case Cost:
		if isZero(rec.Costs) {
			return r.err
		}
		r.present(rec.Object)
		r.text("  ")
		r.place(&rec.Place)
		r.costs(rec.Costs)
	case Call:
		r.present(rec.Object)
		r.present(rec.To.Object)
		r.text("  ")
		r.place(&rec.Place)
		r.text(" -> ")
		r.target(&rec.To)
		r.line = strconv.AppendInt(append(r.line, "  "...), rec.Count, 10)
		r.text(" calls, incl")
		r.costs(rec.Costs)
	case Jump:
		r.present(rec.Object)
		r.text("  ")
		r.place(&rec.Place)
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

// heading begins a function, or another source file in one.
func (r *renderer) heading(rec *Record) {
	at := rec.Place
	at.Source, at.Position = 0, Position{}
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

// name returns the text of a name.
func (r *renderer) name(n Name) string {
	if n == 0 {
		return unknown
	}
	return r.Text(n)
}

// function renders the name of a function, its file and its object.
func (r *renderer) function(at *Place) {
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

// called renders the name of a function: an address, or a name as the linker
// knows it, as an element.
func (r *renderer) called(at *Place) {
	name := r.name(at.Function)
	if addr, rest, ok := entry(name); ok && r.address(at.Object, addr) {
		r.clean(rest)
		return
	}
	if !report.IsMangled(name) {
		r.clean(name)
		return
	}
	end := strings.IndexAny(name, "'@")
	if end < 0 {
		end = len(name)
	}
	r.element(markup.Symbol{Name: name[:end]})
	r.clean(name[end:])
}

// target renders what is called.
func (r *renderer) target(to *Place) {
	if to.Addr != 0 && r.base(to.Object) != 0 {
		r.address(to.Object, to.Addr)
		return
	}
	r.called(to)
}

// place renders an address, and the line that the profile has for it.
func (r *renderer) place(at *Place) {
	if at.Addr != 0 && !r.address(at.Object, at.Addr) {
		if ob := r.name(at.Object); ob != unknown {
			r.clean(path.Base(ob) + "+")
		}
		r.line = strconv.AppendUint(append(r.line, "0x"...), at.Addr, 16)
	}
	if at.Position.Line != 0 || at.Addr == 0 {
		if at.Addr != 0 {
			r.text(" ")
		}
		r.line = strconv.AppendUint(append(r.line, "line "...), at.Position.Line, 10)
	}
}

// address renders an address as an element, and reports whether it could.
func (r *renderer) address(object Name, addr uint64) bool {
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

// base returns where an object's module is; 0: it has none.
func (r *renderer) base(object Name) uint64 {
	return r.shown[object]
}

// present shows the module of an object where it comes first.
func (r *renderer) present(object Name) {
	if _, ok := r.shown[object]; ok {
		return
	}
	f := r.objects.of(object)
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
	for i := range f.Loads {
		s := &f.Loads[i]
		if (s.Addr+s.MemSize)>>moduleShift != 0 {
			continue
		}
		var mode markup.Mode
		for _, m := range []struct {
			flag uint32
			mode markup.Mode
		}{{4, markup.Read}, {2, markup.Write}, {1, markup.Exec}} {
			if uint32(s.Flags)&m.flag != 0 {
				mode |= m.mode
			}
		}
		r.shown[object] = base
		r.element(markup.MMap{Addr: base + s.Addr, Size: s.MemSize, Module: r.number, Mode: mode, Rel: s.Addr})
		r.text("\n")
	}
	r.flush()
}

// costs renders costs.
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
