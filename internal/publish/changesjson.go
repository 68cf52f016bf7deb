package publish

import (
	"bufio"
	"io"
	"time"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/gate"
	"github.com/symfilter/symfilter/internal/jsonout"
)

// ChangesJSON prints the findings of a compared run as JSON Lines. The first object has the numbers
// of changes. An object for each finding follows, then one for each finding that is gone.
// changes.schema.json describes the objects. ChangesJSON fails only if w does.
func ChangesJSON(w io.Writer, r *Result) error {
	out := bufio.NewWriter(w)
	c := r.Changes
	j := &changesJSON{r: r}
	j.record("changes")
	j.Int("new", int64(len(c.New)))
	j.Int("gone", int64(len(c.Gone)))
	j.Int("same", int64(c.Same))
	j.EndLine()
	changes := make(map[string]*gate.Change, len(c.New))
	for i := range c.New {
		changes[c.New[i].Findings[0].Fingerprint] = &c.New[i]
	}
	for _, x := range r.All() {
		j.finding(x, changes[x.Fingerprint])
		out.Write(j.Buffer)
		j.Buffer = j.Buffer[:0]
	}
	for i := range c.Gone {
		j.gone(&c.Gone[i])
	}
	out.Write(j.Buffer)
	return out.Flush()
}

type changesJSON struct {
	jsonout.Buffer
	r *Result
}

func (j *changesJSON) record(name string) {
	j.Line()
	j.String("record", name)
}

// finding appends a finding. change is the change of its fingerprint, or nil.
func (j *changesJSON) finding(x *findings.Finding, change *gate.Change) {
	j.record("finding")
	j.String("state", map[bool]string{true: "new", false: "unchanged"}[change != nil])
	if change != nil && !change.Expired.IsZero() {
		j.String("until", change.Expired.Format(time.DateOnly))
	}
	j.String("fingerprint", x.Fingerprint)
	j.Int("ordinal", int64(x.Ordinal))
	j.String("tool", x.Tool)
	j.String("kind", x.Kind)
	j.Optional("message", x.Message)
	j.Uint("count", x.Count())
	if x.Blocks > 0 {
		j.Uint("bytes", x.Bytes)
		j.Uint("blocks", x.Blocks)
	}
	j.Array("stacks")
	for i := range x.Traces {
		j.trace(&x.Traces[i])
	}
	j.EndArray()
	if len(x.Detail) > 0 {
		j.Array("detail")
		for _, line := range x.Detail {
			j.StringItem([]byte(line))
		}
		j.EndArray()
	}
	j.Array("processes")
	for _, o := range x.Seen {
		p := j.r.Process(o.Process)
		if p == nil {
			continue
		}
		j.Item()
		j.String("input", p.Input)
		j.Optional("pid", p.PID)
		if len(p.Command) > 0 {
			j.Optional("program", p.Command[0])
		}
		j.Uint("count", o.Count)
		j.EndObject()
	}
	j.EndArray()
	j.EndLine()
}

func (j *changesJSON) trace(t *findings.Trace) {
	j.Item()
	j.String("role", [...]string{"error", "allocated", "freed", "other"}[t.Role])
	j.Optional("message", t.Message)
	j.Array("frames")
	for i := range t.Frames {
		f := t.Frames[i]
		j.Item()
		if f.Named() {
			j.Function(functionOf(f), f.Linkage)
		}
		if f.HasLine {
			j.String("file", f.File)
			j.Uint("line", uint64(f.Line))
			if f.Column > 0 {
				j.Uint("column", uint64(f.Column))
			}
		}
		j.Bool("inlined", f.Inlined)
		j.Bool("own", f.IsOwn)
		j.Optional("object", f.Object)
		j.BuildID(f.ID)
		if f.Offset != 0 {
			j.Hex("offset", f.Offset)
		}
		if f.Address != 0 {
			j.Hex("address", f.Address)
		}
		j.EndObject()
	}
	j.EndArray()
	j.EndObject()
}

func (j *changesJSON) gone(e *gate.Entry) {
	j.record("gone")
	j.String("fingerprint", e.Fingerprint)
	j.Optional("kind", e.Kind)
	j.Optional("function", e.Function)
	j.Optional("file", e.File)
	j.Optional("program", e.Program)
	if !e.Until.IsZero() {
		j.String("until", e.Until.Format(time.DateOnly))
	}
	j.EndLine()
}
