package collector

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	// framesAttribute lists the results for the addresses of a record, with names and values as in
	// symfilter's JSON.
	framesAttribute = "symfilter.frames"

	// maxFrames bounds the addresses of a record in framesAttribute, since records must fit
	// into messages.
	maxFrames = 1024
)

// answers receives the results for addresses, and adds them to the records of their texts.
type answers struct {
	w       *worker
	current *text   // nil: the texts of run
	run     *traces // nil: current
}

// enter sets the text that the next answers belong to. enterRun sets several texts, which are
// filtered together.
func (a *answers) enter(t *text)      { a.current = t }
func (a *answers) enterRun(t *traces) { a.run = t }

// leave unsets the texts that enter or enterRun has set.
func (a *answers) leave() { a.current, a.run = nil, nil }

// forget drops all references to the batch.
func (a *answers) forget() { a.leave() }

// add adds the result for an address to the record that has the address. It is called for each
// address, before the address's line is printed.
func (a *answers) add(r *filter.Resolved) {
	t := a.current
	if a.run != nil {
		t = a.run.textOf(r.Line)
		if len(r.Frames) == 0 && r.Variable == nil && r.Tag != markup.TagHexDict {
			t.addUnresolved(1)
		}
	}
	if a.w.p.late != nil && errors.Is(r.Err, symbolize.ErrPending) {
		a.w.p.late.wait(t.resource, r)
	}
	if !a.w.p.cfg.Frames {
		return
	}
	attributes := t.record.Attributes()
	var list pcommon.Slice
	if v, ok := attributes.Get(framesAttribute); ok && v.Type() == pcommon.ValueTypeSlice {
		list = v.Slice()
	} else {
		list = attributes.PutEmptySlice(framesAttribute)
	}
	if list.Len() < maxFrames {
		putResolved(list.AppendEmpty().SetEmptyMap(), r)
	}
}

func putResolved(m pcommon.Map, r *filter.Resolved) {
	if r.Dialect != "" {
		m.PutStr("tag", "frame")
		m.PutStr("dialect", r.Dialect)
		putIf(m, "verified", r.Verified)
	} else {
		m.PutStr("tag", r.Tag.String())
	}
	if (r.Tag == markup.TagBT || r.Dialect != "") && r.Frame != filter.NoNumber {
		m.PutInt("frame", int64(r.Frame))
	}
	if r.Addr != 0 || r.Dialect == "" {
		m.PutStr("address", hexOf(r.Addr))
	}
	if r.Dialect == "" {
		m.PutStr("lookup", hexOf(r.Lookup))
	}
	putIf(m, "message", r.Message)
	putAnswer(m, r)
}

// putAnswer sets the members of m that do not depend on the process.
func putAnswer(m pcommon.Map, r *filter.Resolved) {
	putPlace(m, r)
	switch {
	case len(r.Frames) > 0:
		putFrames(m, r.Frames)
	case r.Variable != nil:
		putVariable(m.PutEmptyMap("variable"), r.Variable)
	case r.Err != nil:
		m.PutStr("reason", r.Err.Error())
	default:
		m.PutStr("reason", symbolize.ErrNoSymbol.Error())
	}
}

// putPlace sets module, build ID and offset, if the address is in a module.
func putPlace(m pcommon.Map, r *filter.Resolved) {
	if r.Module == "" && r.ID.IsZero() {
		return
	}
	m.PutStr("module", r.Module)
	putIf(m, "build_id", r.ID.String())
	m.PutStr("offset", hexOf(r.Offset))
}

func putFrames(m pcommon.Map, frames []symbolize.Frame) {
	list := m.PutEmptySlice("frames")
	list.EnsureCapacity(len(frames))
	for i := range frames {
		f, to := &frames[i], list.AppendEmpty().SetEmptyMap()
		to.PutStr("function", f.Func)
		if f.Linkage != f.Func {
			putIf(to, "linkage", f.Linkage)
		}
		if f.HasLine {
			to.PutStr("file", f.File)
			to.PutInt("line", int64(f.Line))
			to.PutInt("column", int64(f.Column))
		} else if f.FromSymbol {
			to.PutStr("offset", hexOf(f.Offset))
		}
		to.PutBool("inlined", f.Inlined)
	}
}

func putVariable(m pcommon.Map, v *symbolize.Variable) {
	m.PutStr("name", v.Name)
	if v.Linkage != v.Name {
		putIf(m, "linkage", v.Linkage)
	}
	putIf(m, "member", v.Member)
	m.PutStr("offset", hexOf(v.Offset))
	if v.Size != 0 {
		m.PutStr("size", hexOf(v.Size))
	}
}

func putIf(m pcommon.Map, name, value string) {
	if value != "" {
		m.PutStr(name, value)
	}
}

// hexOf returns an address as text, since many readers lose bits of numbers beyond 2^53.
func hexOf(n uint64) string { return fmt.Sprintf("%#x", n) }
