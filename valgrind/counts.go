package valgrind

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/markup"
)

// An errorAt is an error of the report, kept for the error counts at the report's end: its kind and
// innermost frames.
type errorAt struct {
	kind   string
	frames []Frame // texts are copied; empty without a stack, or if names are long
}

// maxErrors bounds the errors kept for a process. Valgrind stops after 1,000 different errors,
// unless --error-limit=no is given. maxPlace bounds the bytes of names and paths kept for an
// error, since each error count repeats them in the output.
const (
	maxErrors = 1 << 14
	maxPlace  = 2 << 10
)

// keepError keeps the kind and the innermost frames of at most maxErrors errors. Errors with equal
// kinds and frames share an errorAt.
func (p *process) keepError(rec *Record) {
	number := rec.Get("unique")
	if rec.Name != "error" || rec.Continued || len(number) == 0 || len(number) > maxName || len(p.errors) >= maxErrors {
		return
	}
	kind := rec.Get("kind")
	frames := firstSite(rec)
	place := 0
	for i := range frames {
		f := &frames[i]
		place += len(f.RawIP) + len(f.Obj) + len(f.Fn) + len(f.Dir) + len(f.File)
	}
	if place > maxPlace {
		frames, place = nil, 0
	}
	if len(kind) > maxName {
		return
	}
	p.errorKey = appendErrorKey(p.errorKey[:0], kind, frames)
	e := p.errorsAt[string(p.errorKey)]
	size := factSize + len(number)
	if e == nil {
		size += factSize*(1+len(frames)) + len(kind) + place + len(p.errorKey)
	}
	if !p.keepBytes(size) {
		return
	}
	if p.errors == nil {
		p.errors, p.errorsAt = make(map[string]*errorAt), make(map[string]*errorAt)
	}
	if e == nil {
		e = &errorAt{kind: string(kind), frames: make([]Frame, len(frames))}
		for i, f := range frames {
			f.RawIP, f.Obj, f.Fn, f.Dir, f.File = bytes.Clone(f.RawIP), bytes.Clone(f.Obj), bytes.Clone(f.Fn), bytes.Clone(f.Dir), bytes.Clone(f.File)
			e.frames[i] = f
		}
		p.errorsAt[string(p.errorKey)] = e
	}
	p.errors[string(number)] = e
}

// appendErrorKey appends a key for a kind and frames. Errors have equal keys only if their kinds
// and frames are equal.
func appendErrorKey(dst, kind []byte, frames []Frame) []byte {
	text := func(b []byte) {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	text(kind)
	for i := range frames {
		f := &frames[i]
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, f.IP), f.Line)
		for _, b := range [...][]byte{f.RawIP, f.Obj, f.Fn, f.Dir, f.File} {
			if b == nil { // differs from empty
				dst = append(dst, 0)
				continue
			}
			dst = append(dst, 1)
			text(b)
		}
	}
	return dst
}

// firstSite returns the innermost physical frame of the first stack of an error.
func firstSite(rec *Record) []Frame {
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Name != "stack" || it.Leaf || it.First == it.Last {
			continue
		}
		frames := rec.Frames[it.First:it.Last]
		n := 1
		for n < len(frames) && n < maxInline && haveSameAddress(&frames[0], &frames[n]) {
			n++
		}
		return frames[:period(frames[:n])]
	}
	return nil
}

// closing renders the end of a report: the error counts and the summaries.
type closing struct{ *renderer }

// findCounted appends to r.sites the innermost frames of the errors that rec counts.
func (r closing) findCounted(rec *Record) {
	for i := range rec.Items {
		if it := &rec.Items[i]; it.Leaf && it.Name == "unique" {
			if e := r.t.cur.errors[string(it.Text)]; e != nil {
				r.sites = r.t.appendSites(r.sites, e.frames)
			}
		}
	}
}

// renderCounts renders how often each error occurred, with its kind and first function. The error's
// number replaces a kind or function that is not known.
func (r closing) renderCounts(rec *Record) {
	r.renderPairs(rec, "Errors by kind and place:", "unique", func(number []byte) {
		e := r.t.cur.errors[string(number)]
		if e == nil {
			r.line = appendClean(r.line, number)
			return
		}
		r.line = appendClean(r.line, []byte(e.kind))
		if len(e.frames) == 0 {
			r.line = appendClean(append(r.line, ' '), number)
		}
		for _, s := range r.t.appendSites(nil, e.frames) {
			r.line = append(r.line, " in "...)
			r.renderPlace(&s)
		}
	})
}

// renderPlace renders a site as part of a line: as an element, or as text in package filter's
// layout.
func (r closing) renderPlace(s *site) {
	if s.at != nil && s.at.shown && r.isElement(s) {
		r.sendElement(markup.PC{Addr: s.addr, Kind: s.kind})
		return
	}
	last := &s.frames[len(s.frames)-1]
	if last.Fn == nil && last.File == nil {
		if last.RawIP != nil {
			r.line = appendClean(r.line, last.RawIP)
		} else {
			r.line = strconv.AppendUint(append(r.line, "0x"...), last.IP, 16)
		}
		if last.Obj != nil {
			r.line = appendObject(append(r.line, ' '), s, last)
		}
		return
	}
	for i := range s.frames {
		f := &s.frames[i]
		if i > 0 {
			r.line = append(r.line, " inlined into "...)
		}
		r.renderFunction(f.Fn)
		r.line = bytes.TrimSuffix(r.line, []byte(" "))
		if len(f.File)+len(f.Dir) > 0 {
			r.line = append(r.line, '[')
			r.renderPosition(f)
			r.line = append(bytes.TrimSuffix(r.line, []byte(" ")), ']')
		}
	}
}

// renderLosses renders a leak_summary in Valgrind's layout.
func (r closing) renderLosses(rec *Record) {
	if !rec.Continued {
		r.line = append(r.line, "LEAK SUMMARY:\n"...)
	}
	for i := 0; i < len(rec.Items); {
		it := &rec.Items[i]
		if it.Depth > 0 || it.Leaf || !isLoss(it.Name) {
			i = r.renderItem(rec, i)
			continue
		}
		r.line = appendLoss(r.line, it.Name, childText(rec, i, "bytes"), childText(rec, i, "blocks"))
		took := map[string]bool{}
		for i++; i < len(rec.Items) && rec.Items[i].Depth > 0; {
			if it := &rec.Items[i]; it.Depth == 1 && it.Leaf && (it.Name == "bytes" || it.Name == "blocks") && !took[it.Name] {
				took[it.Name] = true
				i++
			} else {
				i = r.renderItem(rec, i)
			}
		}
	}
}

// appendLoss appends a line of a leak summary, with the kind right-aligned. blocks is the
// number of blocks, or nil if unknown.
func appendLoss(b []byte, element string, size, blocks []byte) []byte {
	const column = len("   definitely lost")
	name := words(element)
	for n := len(name); n < column; n++ {
		b = append(b, ' ')
	}
	b = append(append(b, name...), ": "...)
	b = append(appendClean(b, size), " bytes"...)
	if blocks != nil {
		b = append(appendClean(append(b, " in "...), blocks), " blocks"...)
	}
	return append(b, '\n')
}

// renderErrorSummary renders an error_summary in Valgrind's layout.
func (r closing) renderErrorSummary(rec *Record) {
	if rec.Continued || rec.Get("errors") == nil || rec.Get("error_contexts") == nil {
		r.line = append(append(r.line, title(rec.Name)...), ":\n"...)
		r.renderItems(rec)
		return
	}
	r.line = r.t.cur.summary.appendErrors(r.line)
	r.renderItems(rec, "errors", "error_contexts", "suppressed", "suppressed_contexts")
}

// appendErrors appends Valgrind's line about all errors. The line ends with the number of
// suppressed contexts: "(suppressed: 4 from 2)". If the report lacks that number, the line ends
// with the number of used suppressions: "(suppressed: 4 by 2 suppressions)".
func (s *summary) appendErrors(b []byte) []byte {
	b = append(b, "ERROR SUMMARY: "...)
	all, contexts := s.errors()
	b = append(strconv.AppendUint(b, all, 10), " errors from "...)
	b = append(strconv.AppendUint(b, contexts, 10), " contexts (suppressed: "...)
	b = strconv.AppendUint(b, s.suppressed, 10)
	switch {
	case s.statedContexts:
		return append(strconv.AppendUint(append(b, " from "...), s.suppressedContexts, 10), ")\n"...)
	case s.suppressed == s.suppressions: // each suppression suppressed one error
		return append(strconv.AppendUint(append(b, " from "...), s.suppressions, 10), ")\n"...)
	}
	b = append(strconv.AppendUint(append(b, " by "...), s.suppressions, 10), " suppression"...)
	if s.suppressions != 1 {
		b = append(b, 's')
	}
	return append(b, ")\n"...)
}

// renderSummary renders the summaries that the ending document lacks: protocols before 6 have none.
func (r closing) renderSummary() {
	s := &r.t.cur.summary
	if s.hasLosses() && !s.statedLeaks {
		r.writeHead()
		r.line = append(r.line, "\nLEAK SUMMARY (of the leaks above):\n"...)
		r.line = s.appendLosses(r.line)
	}
	if s.counted && !s.statedErrors {
		r.writeHead()
		r.line = s.appendErrors(append(r.line, '\n'))
	}
	*s = summary{}
}

// appendLosses appends a line for each kind of leak that the document lists.
func (s *summary) appendLosses(b []byte) []byte {
	for i, l := range s.leaked() {
		if !l.known {
			continue
		}
		var blocks []byte
		if !l.noBlocks {
			blocks = commas(l.blocks)
		}
		b = appendLoss(b, lossKinds[i].element, commas(l.bytes), blocks)
	}
	return b
}

// commas formats a number as Valgrind does, such as 1,234.
func commas(n uint64) []byte { return []byte(wording.Commas(strconv.FormatUint(n, 10))) }

func (r *reporter) printSummary(p *process) {
	s := &p.summary
	if s.counted || s.hasLosses() {
		r.beginObject(p, "summary")
		s.print(&r.out)
		r.out.EndLine()
	}
	*s = summary{}
}

func (s *summary) print(out *jsonout.Buffer) {
	out.Object("summary")
	if s.counted {
		all, contexts := s.errors()
		out.Uint("errors", all)
		out.Uint("contexts", contexts)
		out.Uint("suppressed", s.suppressed)
		if s.statedContexts {
			out.Uint("suppressed_contexts", s.suppressedContexts)
		}
		out.Uint("suppressions", s.suppressions)
	}
	if s.hasLosses() {
		out.Object("leaks")
		for i, l := range s.leaked() {
			if !l.known {
				continue
			}
			out.Object(lossKinds[i].element)
			out.Uint("bytes", l.bytes)
			if !l.noBlocks {
				out.Uint("blocks", l.blocks)
			}
			out.EndObject()
		}
		out.EndObject()
	}
	out.EndObject()
}
