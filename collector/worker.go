package collector

import (
	"bytes"
	"context"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/marks"
)

// maxTexts bounds the capacity of texts in an idle worker.
const maxTexts = 1 << 14

var (
	open  = []byte("{{{")
	end   = []byte("}}}")
	reset = []byte("{{{reset}}}")
)

// A text is a string of a record that may need filtering.
type text struct {
	value    pcommon.Value
	record   plog.LogRecord
	resource pcommon.Resource
	next     int32 // index of the next text of the same stream; 0: none
	marked   bool  // has an element, or may have a frame
	alone    bool  // has a context of its own
	body     bool  // not an attribute
	counted  bool  // an address without a name was counted
}

// A part holds the texts of one stream in a batch.
type part struct {
	stream      *stream
	first, last int32 // indexes of texts
	continues   bool  // unmarked texts may belong to the texts before them
	raw         bool  // one of the texts may have a frame of a raw backtrace
	dict        bool  // a hexdict is open
}

// A worker filters the records of one batch at a time.
type worker struct {
	p      *logsProcessor
	scan   scan
	keys   keys
	lines  *filter.Lines
	traces *traces // nil until a text may have a raw backtrace
	own    filter.Context

	texts   []text // the first is unused
	parts   []part
	of      map[string]int // index in parts, by key
	recent  int            // index of the part used last; its key is lastKey
	lastKey []byte
	out     []byte
	changed []*stream
	dicts   bool // a stream had an open hexdict at the beginning of the batch
	waits   bool // a part has continues set

	attributes bool // a record has a filtered attribute

	now time.Time
	end time.Time // end of the patience for the batch; zero without patience

	counts  counts
	before  filter.Outcomes
	answers answers
}

func newWorker(p *logsProcessor) *worker {
	w := &worker{p: p, of: make(map[string]int), texts: make([]text, 1)}
	w.keys.names = p.cfg.Key
	w.answers.w = w
	w.lines = filter.NewLines(w.options())
	return w
}

func (w *worker) options() filter.Options {
	o := w.p.options()
	if w.p.cfg.Frames || w.p.late != nil {
		o.Resolved = w.answers.add
	}
	return o
}

// bytesOf returns the bytes of s. They must not be modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// batch filters the records of ld. It finds records with marks, sorts their texts by stream,
// and filters one stream after the other.
func (w *worker) batch(ctx context.Context, ld plog.Logs) {
	w.dicts, w.waits = w.p.contexts.inDict(), false
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				w.scan.add(w.bodyOf(lr))
				w.attributes = w.attributes || w.hasAttribute(lr)
			}
		}
	}
	w.scan.search()
	if w.scan.found || w.dicts || w.attributes {
		i := 0
		for _, rl := range ld.ResourceLogs().All() {
			w.keys.enter(rl.Resource())
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					w.sort(rl.Resource(), lr, w.scan.marks[i])
					i++
				}
			}
		}
		if len(w.parts) > 0 {
			w.filter(ctx)
		}
	}
	w.forget()
}

// sort adds the texts of a record to the parts of their streams. mark is the offset of the
// body's first mark, or noMark.
func (w *worker) sort(r pcommon.Resource, lr plog.LogRecord, mark int32) {
	if mark != noMark {
		if body, ok := w.body(lr); ok {
			w.add(text{value: body, record: lr, resource: r, marked: true, body: true}, bytesOf(body.Str()), int(mark))
		}
	} else if w.waits || w.dicts {
		if body, ok := w.body(lr); ok {
			w.addUnmarked(text{value: body, record: lr, resource: r, body: true})
		}
	}
	if !w.attributes {
		return
	}
	for _, name := range w.p.cfg.Attributes {
		v, ok := lr.Attributes().Get(name)
		if !ok || v.Type() != pcommon.ValueTypeStr {
			continue
		}
		b := bytesOf(v.Str())
		if at, _ := marks.Find(b); at < len(b) {
			w.add(text{value: v, record: lr, resource: r, marked: true, alone: bytes.HasPrefix(b, reset)}, nil, 0)
		}
	}
}

// hasAttribute reports whether a record has an attribute that is filtered.
func (w *worker) hasAttribute(lr plog.LogRecord) bool {
	attributes := lr.Attributes()
	if attributes.Len() == 0 {
		return false
	}
	for _, name := range w.p.cfg.Attributes {
		if _, ok := attributes.Get(name); ok {
			return true
		}
	}
	return false
}

// bodyOf returns the bytes of a record's body, or nil if the body has no text. The bytes must not
// be modified.
func (w *worker) bodyOf(lr plog.LogRecord) []byte {
	if v, ok := w.body(lr); ok {
		return bytesOf(v.Str())
	}
	return nil
}

// body returns a record's body if it is a string, or else the first of Config.BodyFields that is a
// string.
func (w *worker) body(lr plog.LogRecord) (v pcommon.Value, ok bool) {
	switch v = lr.Body(); v.Type() {
	case pcommon.ValueTypeStr:
		return v, true
	case pcommon.ValueTypeMap:
		for _, name := range w.p.cfg.BodyFields {
			if f, ok := v.Map().Get(name); ok && f.Type() == pcommon.ValueTypeStr {
				return f, true
			}
		}
	}
	return v, false
}

// add adds a text with a mark. For a body, b has its bytes, and at is the index of the first
// mark.
func (w *worker) add(t text, b []byte, at int) {
	p := &w.parts[w.part(w.keys.of(t.record.Attributes()))]
	if t.body {
		raw, unclosed := kinds(b, at)
		p.raw = p.raw || raw
		p.continues = p.continues || raw || unclosed
		w.waits = w.waits || p.continues
	}
	w.link(p, t)
}

// kinds examines the marks of b; at is the offset of the first one. raw is set if b may have a
// frame of a raw backtrace. Otherwise, unclosed is set if b ends within an element.
func kinds(b []byte, at int) (raw, unclosed bool) {
	for at < len(b) {
		if !bytes.HasPrefix(b[at:], open) {
			return true, false
		}
		i := bytes.Index(b[at:], end)
		if i < 0 {
			return false, true
		}
		b = b[at+i:]
		at, _ = marks.Find(b)
	}
	return false, false
}

// addUnmarked adds a text without a mark, if it may belong to a trace or to a hexdict.
func (w *worker) addUnmarked(t text) {
	key := w.keys.of(t.record.Attributes())
	at := w.recent
	if !bytes.Equal(key, w.lastKey) || len(w.parts) == 0 {
		var ok bool
		if at, ok = w.of[string(key)]; !ok {
			if w.dicts && w.p.contexts.hasDict(key) {
				w.link(&w.parts[w.part(key)], t)
			}
			return
		}
	}
	if p := &w.parts[at]; p.continues || p.dict {
		w.link(p, t)
	}
}

// part returns the index of the part of the stream with a key.
func (w *worker) part(key []byte) int {
	if len(w.parts) > 0 && bytes.Equal(key, w.lastKey) {
		return w.recent
	}
	at, ok := w.of[string(key)]
	if !ok {
		if w.now.IsZero() {
			w.now = time.Now()
		}
		at = len(w.parts)
		s, dict := w.p.contexts.acquire(key, w.now)
		w.parts = append(w.parts, part{stream: s, dict: dict})
		w.of[s.key] = at
	}
	w.recent, w.lastKey = at, append(w.lastKey[:0], key...)
	return at
}

// link appends t to the texts of p.
func (w *worker) link(p *part, t text) {
	n := int32(len(w.texts))
	w.texts = append(w.texts, t)
	if p.last == 0 {
		p.first = n
	} else {
		w.texts[p.last].next = n
	}
	p.last = n
}

// forget drops all references to the batch.
func (w *worker) forget() {
	w.scan.forget()
	w.attributes = false
	if len(w.parts) == 0 {
		return
	}
	clear(w.texts)
	if w.texts = w.texts[:1]; cap(w.texts) > maxTexts {
		w.texts = make([]text, 1)
	}
	clear(w.parts)
	w.parts = w.parts[:0]
	clear(w.of)
	clear(w.changed)
	w.changed = w.changed[:0]
	w.answers.forget()
	w.now = time.Time{}
	if cap(w.out) > maxRun {
		w.out = nil
	}
}
