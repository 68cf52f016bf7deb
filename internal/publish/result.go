package publish

import (
	"path"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/gate"
)

// gapResult prints a gap as a result, since GitHub shows only the results of a run.
func (s *sarif) gapResult(run *sarifRun, g *gap) {
	s.open('{')
	s.ruleOf(run, incompleteKind)
	s.member("level", incomplete.severity.level())
	s.message("message", ended(g.text, 8*maxAbout))
	s.array("locations")
	s.open('{')
	s.physical(place{file: g.file, line: 1})
	s.close('}')
	s.close(']')
	s.fingerprints(g.fingerprint()+":1", "")
	s.close('}')
}

func (s *sarif) ruleOf(run *sarifRun, kind string) {
	id := ruleID(run.tool.id, kind)
	s.member("ruleId", id)
	s.number("ruleIndex", uint64(run.rules[id]))
}

func (s *sarif) result(run *sarifRun, x *findings.Finding) {
	c := classIn(x)
	s.open('{')
	s.ruleOf(run, x.Kind)
	s.member("level", c.severity.level())
	switch s.Changes.State(x) {
	case gate.New:
		s.member("baselineState", "new")
	case gate.Unchanged:
		s.member("baselineState", "unchanged")
	}
	traces := x.Traces[:min(len(x.Traces), maxRelated+1)]
	s.message("message", s.sentences(x, traces))
	s.array("locations")
	s.open('{')
	s.physical(s.place(x))
	if f := x.Place(); f != nil {
		s.logical(f)
	}
	s.close('}')
	s.close(']')
	s.related(traces)
	hash, ok := run.hashes[x]
	if !ok {
		hash = x.ID()
	}
	s.fingerprints(hash, x.Fingerprint)
	each := maxFlowLocations / max(len(traces), 1) // most frames of a trace
	s.flow(traces, each)
	s.stacks(traces, each)
	s.number("occurrenceCount", max(x.Count(), 1))
	s.properties(x, each)
	s.close('}')
}

// fingerprints prints the fingerprints of a result. GitHub reads only primaryLocationLineHash.
func (s *sarif) fingerprints(hash, stack string) {
	s.object("partialFingerprints")
	s.member("primaryLocationLineHash", hash)
	if stack != "" {
		s.member("symfilterStack/v1", stack)
	}
	s.close('}')
}

// message prints a member with a text. It doubles braces: single braces enclose placeholders (SARIF
// 3.11.5).
func (s *sarif) message(name, text string) {
	s.object(name)
	if strings.ContainsAny(text, "{}") {
		text = strings.NewReplacer("{", "{{", "}", "}}").Replace(text)
	}
	s.member("text", text)
	s.close('}')
}

// ended returns a text with a full stop at its end. most bounds the number of characters.
func ended(text string, most int) string {
	if text = plain(visible(text, most-1)); strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// plain returns a text without embedded links (SARIF 3.11.6). operator[](int) would be such a link.
func plain(text string) string { return strings.ReplaceAll(text, "](", "] (") }

// linkText escapes the text of an embedded link.
var linkText = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`)

// sentences returns the message of a result: the fault, and facts about the memory and other
// threads, with links to the related locations.
func (s *sarif) sentences(x *findings.Finding, traces []findings.Trace) string {
	var b strings.Builder
	b.WriteString(plain(sentence(x)))
	b.WriteByte('.')
	for i := 1; i < len(traces); i++ {
		what := about(&traces[i])
		b.WriteByte(' ')
		if linedIn(&traces[i]) == nil {
			b.WriteString(plain(what))
		} else {
			b.WriteString("[" + linkText.Replace(what) + "](" + strconv.Itoa(i) + ")")
		}
		b.WriteByte('.')
	}
	for _, d := range x.Detail[:min(len(x.Detail), maxDetails)] {
		b.WriteByte(' ')
		b.WriteString(ended(about(&findings.Trace{Message: d, Role: findings.RoleOther}), maxAbout))
	}
	return b.String()
}

// linedIn returns the frame that represents a trace: the innermost own frame with a line, or else
// the innermost frame with a line, or nil.
func linedIn(t *findings.Trace) (lined *findings.TraceFrame) {
	for _, f := range t.Frames {
		switch {
		case !f.HasLine || f.File == "":
		case f.IsOwn:
			return f
		case lined == nil:
			lined = f
		}
	}
	return lined
}

// physical prints the member physicalLocation. SARIF counts columns in UTF-16 units, debug
// information in bytes. So only a line known to be ASCII has a column.
func (s *sarif) physical(p place) {
	s.object("physicalLocation")
	s.object("artifactLocation")
	uri, ok := s.uris[p.file]
	if !ok {
		if uri = s.uri(p.file); len(s.uris) < maxURIs {
			s.uris[p.file] = uri
		}
	}
	s.member("uri", uri)
	s.close('}')
	s.object("region")
	s.number("startLine", uint64(p.line))
	if p.column > 0 && p.known && s.ascii.has(s.Result, p) {
		s.number("startColumn", uint64(p.column))
	}
	s.close('}')
	s.close('}')
}

func (s *sarif) logical(f *findings.TraceFrame) {
	if !f.Named() {
		return
	}
	s.array("logicalLocations")
	s.open('{')
	name := visible(f.Func, maxAbout)
	if name == "" {
		name = visible(f.Linkage, maxAbout)
	}
	s.member("fullyQualifiedName", name)
	if f.Linkage != "" && f.Linkage != f.Func {
		s.member("decoratedName", visible(f.Linkage, maxAbout))
	}
	s.member("kind", "function")
	s.close('}')
	s.close(']')
}

// related prints the related locations: one for each trace with a line, except the first. The
// number of the trace is the location's id.
func (s *sarif) related(traces []findings.Trace) {
	begun := false
	for i := 1; i < len(traces); i++ {
		f := linedIn(&traces[i])
		if f == nil {
			continue
		}
		if !begun {
			s.array("relatedLocations")
			begun = true
		}
		s.open('{')
		s.number("id", uint64(i))
		s.message("message", plain(about(&traces[i])))
		s.physical(placeOf(f))
		s.logical(f)
		s.close('}')
	}
	if begun {
		s.close(']')
	}
}

// flow prints the traces as one code flow: allocation, free, other threads, error. Each trace
// begins with its outermost frame. Frames without a line are omitted, since GitHub refuses
// locations without a file. each bounds the frames of a trace; the innermost ones are printed.
func (s *sarif) flow(traces []findings.Trace, each int) {
	begun := false
	for _, role := range [...]findings.Role{findings.RoleAllocated, findings.RoleFreed, findings.RoleOther, findings.RoleError} {
		for t := range traces {
			if traces[t].Role != role {
				continue
			}
			frames := traces[t].Frames
			innermost := -1
			for i := range frames {
				if frames[i].HasLine && frames[i].File != "" {
					innermost = i
					break
				}
			}
			for i := min(len(frames), each) - 1; i >= 0; i-- {
				f := frames[i]
				if !f.HasLine || f.File == "" {
					continue
				}
				if !begun {
					s.array("codeFlows")
					s.open('{')
					s.array("threadFlows")
					s.open('{')
					s.array("locations")
					begun = true
				}
				if i == innermost {
					s.flowLocation(f, frameName(f)+": "+about(&traces[t]))
				} else {
					s.again(f, inFlow, func() { s.flowLocation(f, frameName(f)) })
				}
			}
		}
	}
	if begun {
		for _, c := range []byte("]}]}]") {
			s.close(c)
		}
	}
}

func (s *sarif) flowLocation(f *findings.TraceFrame, text string) {
	s.open('{')
	s.object("location")
	s.physical(placeOf(f))
	s.message("message", plain(text))
	s.close('}')
	s.close('}')
}

// stacks prints the traces for editors. each bounds the frames of a trace. The numbers of the
// traces refer to the related locations. They also make equal stacks different, as the schema
// requires.
func (s *sarif) stacks(traces []findings.Trace, each int) {
	if len(traces) == 0 {
		return
	}
	s.array("stacks")
	for t := range traces {
		s.open('{')
		s.message("message", plain(about(&traces[t])))
		s.array("frames")
		frames := traces[t].Frames
		for i := range frames[:min(len(frames), each)] {
			f := frames[i]
			s.again(f, inStack, func() { s.stackFrame(f) })
		}
		s.close(']')
		s.object("properties")
		s.number("id", uint64(t))
		s.close('}')
		s.close('}')
	}
	s.close(']')
}

func (s *sarif) stackFrame(f *findings.TraceFrame) {
	s.open('{')
	s.object("location")
	if f.HasLine && f.File != "" {
		s.physical(placeOf(f))
	}
	s.logical(f)
	s.message("message", plain(frameName(f)))
	s.close('}')
	if f.Object != "" {
		s.member("module", visible(path.Base(f.Object), maxName))
	}
	s.close('}')
}

// A printedFrame has the JSON of a frame as printed in a flow, and in a stack: see inFlow. Each of
// the two texts is empty until the frame is first printed there.
type printedFrame [2]string

// Indexes of a printedFrame.
const (
	inFlow = iota
	inStack
)

// maxFrameBytes bounds the texts of frames in memory: 10,000 frames take about 5 MB.
const maxFrameBytes = 16 << 20

// again prints the JSON of a frame: the text kept from an earlier call, or else the output of
// print, which it keeps. Most of a file consists of frames, and findings share them.
func (s *sarif) again(f *findings.TraceFrame, where int, print func()) {
	if len(s.buf) > bufferSize {
		s.flush()
	}
	known := s.frames[f]
	s.separate()
	if known[where] != "" {
		s.buf = append(s.buf, known[where]...)
		return
	}
	from := len(s.buf)
	s.comma = false
	print()
	// print does not flush s.buf, since a frame's names are bounded
	if n := len(s.buf) - from; n > 0 && n <= bufferSize && s.frameBytes+n <= maxFrameBytes {
		known[where] = string(s.buf[from:])
		s.frames[f] = known
		s.frameBytes += n
	}
}

// frameName returns the name of a frame's function. If the name is unknown, it returns the object
// file with the offset, or the address.
func frameName(f *findings.TraceFrame) string {
	switch {
	case f.Named():
		return functionOf(f)
	case f.Object != "" && f.Offset != 0:
		return visible(path.Base(f.Object), maxName) + "+0x" + strconv.FormatUint(f.Offset, 16)
	case f.Object != "":
		return visible(path.Base(f.Object), maxName)
	}
	return "0x" + strconv.FormatUint(f.Address, 16)
}

// maxSeen bounds the processes that a result names.
const maxSeen = 16

// properties prints facts without a member in SARIF: CWE numbers, processes, lost memory and
// omitted frames.
func (s *sarif) properties(x *findings.Finding, each int) {
	s.object("properties")
	if cwe := cweOf(x); len(cwe) > 0 {
		s.tags(weaknesses(cwe))
	}
	if x.Bytes > 0 {
		s.number("bytes", x.Bytes)
		s.number("blocks", x.Blocks)
	}
	s.number("processCount", uint64(len(x.Seen)))
	s.array("processes")
	for _, o := range x.Seen[:min(len(x.Seen), maxSeen)] {
		if p := s.Process(o.Process); p != nil {
			s.text(describe(p))
		}
	}
	s.close(']')
	left := 0
	for i := range x.Traces {
		if left += len(x.Traces[i].Frames); i <= maxRelated {
			left -= min(len(x.Traces[i].Frames), each)
		}
	}
	if left > 0 {
		s.number("framesLeftOut", uint64(left))
	}
	s.close('}')
}
