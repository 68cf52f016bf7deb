package valgrind

import (
	"bytes"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/markup"
)

// renderContent renders a record in the layout of Valgrind's text. A record that this text
// does not have becomes a list of its fields.
func (r *renderer) renderContent(rec *Record) {
	if r.aboutProcess(rec) {
		return
	}
	if raw := rec.Get("rawtext"); rec.Name == "suppression" && raw != nil && bytes.Equal(raw, r.repeat) {
		return // Valgrind 3.19 writes each suppression twice
	}
	r.writeHead()
	if r.t.closed {
		r.t.closed = false
		r.line = append(r.line, "--- the report continues: a forked process writes to it\n"...)
	}
	if !rec.Continued && rec.Name != "trace" && rec.Name != "status" {
		r.line = append(r.line, '\n')
	}
	switch rec.Name {
	case "status":
		r.line = append(r.line, "--- "...)
		r.line = appendClean(r.line, rec.Get("state"))
		if time := bytes.TrimSpace(rec.Get("time")); len(time) > 0 {
			r.line = appendClean(append(r.line, ' '), time)
		}
		r.line = append(r.line, '\n')
		r.renderItems(rec, "state", "time")
	case "error":
		r.renderItems(rec, "unique", "tid", "threadname", "kind", r.renderHeading(rec))
	case "announcethread":
		r.renderThread(rec)
	case "clientmsg":
		r.line = append(r.line, "Message of the program"...)
		r.renderTags(rec, "")
		r.line = append(r.line, '\n')
		r.renderItems(rec, "tid", "threadname")
	case "fatal_signal":
		r.renderSignal(rec)
	case "errorcounts":
		closing{r}.renderCounts(rec)
	case "suppcounts":
		r.renderPairs(rec, "Suppressions that were used:", "name", func(name []byte) { r.line = appendClean(r.line, name) })
	case "leak_summary":
		closing{r}.renderLosses(rec)
	case "error_summary":
		closing{r}.renderErrorSummary(rec)
	case "suppression":
		r.renderSuppression(rec, 0, len(rec.Items))
	case "trace", "stack", "frame":
		r.renderItems(rec)
	default:
		switch {
		case rec.Text != nil && len(rec.Items) == 0:
			r.renderField(rec.Name, rec.Text, "")
		case rec.Continued:
			r.renderItems(rec)
		default:
			r.line = append(r.line, title(rec.Name)...)
			if len(rec.Items) > 0 {
				r.line = append(r.line, ':')
			}
			r.line = append(r.line, '\n')
			r.renderItems(rec)
		}
	}
	if rec.Cut {
		r.line = append(r.line, " (cut off)\n"...)
	}
}

// aboutProcess renders a record about the process, or a text outside of elements. It returns
// false for other records.
func (r *renderer) aboutProcess(rec *Record) bool {
	switch rec.Name {
	case "pid", "ppid", "tool", "protocolversion", "protocoltool":
	case "args":
		if r.headed {
			r.line = append(r.line, "==="...)
			r.writeCommandLine()
		}
		r.writeHead()
		r.renderOptions(rec)
	case "usercomment":
		r.renderLines("", textOf(rec))
	case "logfilequalifier":
		r.line = append(r.line, "Log file qualifier:\n"...)
		r.renderItems(rec)
	case "preamble":
		for i := 0; i < len(rec.Items); {
			if it := &rec.Items[i]; it.Leaf && it.Name == "line" {
				r.renderLines("", it.Text)
				i++
			} else {
				i = r.renderItem(rec, i)
			}
		}
	case "":
		r.renderLines("", textOf(rec))
		if rec.Text == nil && rec.Cut {
			r.line = append(r.line, "--- zeros: text was lost here when several processes wrote to the same file\n"...)
		}
	default:
		return false
	}
	return true
}

// textOf returns the text of a record, or the text of its first item if the record has none.
func textOf(rec *Record) []byte {
	if rec.Text != nil || len(rec.Items) == 0 {
		return rec.Text
	}
	return rec.Items[0].Text
}

// childText returns the text of the first child of item i with this name.
func childText(rec *Record, i int, name string) []byte {
	depth := rec.Items[i].Depth + 1
	for _, it := range rec.Items[i+1:] {
		if it.Depth < depth {
			break
		}
		if it.Depth == depth && it.Name == name {
			return it.Text
		}
	}
	return nil
}

// renderItems renders the content of a record. It omits the first item of each name in
// inHeading, which is in the heading.
func (r *renderer) renderItems(rec *Record, inHeading ...string) {
	for i := 0; i < len(rec.Items); {
		it := &rec.Items[i]
		j := slices.Index(inHeading, it.Name)
		if it.Depth > 0 || j < 0 || it.Name == "" {
			i = r.renderItem(rec, i)
			continue
		}
		inHeading[j] = "" // only the first item of this name is omitted
		i++
		if !it.Leaf {
			i = r.renderFields(rec, i-1)
		}
	}
}

// renderItem renders the item at i, with its children unless these are rendered separately. It
// returns the index of the next item to render.
func (r *renderer) renderItem(rec *Record, i int) int {
	it := &rec.Items[i]
	indent := strings.Repeat(" ", it.Depth+1)
	switch it.Name {
	case "what", "auxwhat", "text", "":
		if it.Leaf {
			r.renderLines(indent, it.Text)
			return i + 1
		}
	case "stack":
		if !it.Leaf {
			r.renderStack(it)
			return i + 1
		}
	case "xwhat", "xauxwhat":
		if !it.Leaf {
			r.renderLines(indent, childText(rec, i, "text"))
			return r.renderFields(rec, i)
		}
	case "origin":
		if !it.Leaf {
			return i + 1
		}
	case "suppression":
		if !it.Leaf {
			end := i + 1
			for end < len(rec.Items) && rec.Items[end].Depth > it.Depth {
				end++
			}
			return r.renderSuppression(rec, i+1, end)
		}
	case "first_observed_at":
		if rest := rec.Items[i+1:]; len(rest) > 1 && rest[0].Name == "what" && rest[1].Name == "address" && rest[0].Leaf && rest[1].Leaf {
			r.line = append(r.line, indent...)
			r.renderProse(rest[0].Text)
			r.line = append(r.line, ' ')
			r.renderProse(rest[1].Text)
			r.line = append(r.line, " was first observed at:\n"...)
			return i + 3
		}
	}
	switch {
	case !it.Leaf:
		return r.renderGroup(rec, i, indent)
	case it.Depth == 0 && r.isInHeading(rec, it):
	default:
		r.renderField(it.Name, it.Text, indent)
	}
	return i + 1
}

// isInHeading reports whether the error's heading contains the value of this item, as for leaks in
// protocols 1 to 3.
func (r *renderer) isInHeading(rec *Record, it *Item) bool {
	return (it.Name == "leakedbytes" || it.Name == "leakedblocks") && containsValue(rec.Get("what"), it.Text)
}

// containsValue reports whether text contains value as a whole word or number. It ignores thousands
// separators in text.
func containsValue(text, value []byte) bool {
	return hasWord(text, value) || bytes.IndexByte(text, ',') >= 0 && hasWord(bytes.ReplaceAll(text, []byte(","), nil), value)
}

func hasWord(text, word []byte) bool {
	for from := 0; len(word) > 0; from++ {
		i := bytes.Index(text[from:], word)
		if i < 0 {
			return false
		}
		from += i
		if !wordContinues(text, from-1, -1, word[0]) && !wordContinues(text, from+len(word), 1, word[len(word)-1]) {
			return true
		}
	}
	return false
}

// wordContinues reports whether a word or number continues at index i of text. c is its byte next
// to i, and step is 1 to look forwards or -1 to look backwards.
func wordContinues(text []byte, i, step int, c byte) bool {
	at := func(i int) byte {
		if i < 0 || i >= len(text) {
			return ' '
		}
		return text[i]
	}
	if at(i) == ',' && isHex(c) { // possibly a thousands separator
		i += step
		return '0' <= at(i) && at(i) <= '9'
	}
	return isWord(c) && isWord(at(i))
}

func isWord(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }

// renderFields renders the children of the xwhat at i, except its text and the values in that
// text. It returns the index of the next item to render.
func (r *renderer) renderFields(rec *Record, i int) int {
	depth := rec.Items[i].Depth
	text := childText(rec, i, "text")
	first := true
	for i++; i < len(rec.Items) && rec.Items[i].Depth > depth; {
		switch it := &rec.Items[i]; {
		case it.Leaf && it.Name == "text" && first:
			first = false
			i++
		case it.Leaf && it.Name != "" && containsValue(text, it.Text):
			i++
		default:
			i = r.renderItem(rec, i)
		}
	}
	return i
}

// renderGroup renders an element that contains other elements, on one line if they are few and
// short: "definitely lost: 48 bytes in 1 blocks". It returns the index of the next item to render.
func (r *renderer) renderGroup(rec *Record, i int, indent string) int {
	depth := rec.Items[i].Depth
	r.line = append(append(r.line, indent...), title(rec.Items[i].Name)...)
	r.line = append(r.line, ':')
	end := i + 1
	for ; end < len(rec.Items) && rec.Items[end].Depth > depth; end++ {
		if it := &rec.Items[end]; !it.Leaf || it.Name == "" || len(it.Text) > 32 || it.Depth != depth+1 || end > i+4 {
			r.line = append(r.line, '\n')
			return i + 1
		}
	}
	for j := i + 1; j < end; j++ {
		it := &rec.Items[j]
		switch {
		case j == i+1:
			r.line = append(r.line, ' ')
		case it.Name == "blocks" && rec.Items[j-1].Name == "bytes":
			r.line = append(r.line, " in "...)
		default:
			r.line = append(r.line, ", "...)
		}
		if _, ok := parseNumber(it.Text); ok {
			r.line = append(appendClean(r.line, it.Text), ' ')
			r.line = append(r.line, words(it.Name)...)
		} else {
			r.line = append(append(r.line, words(it.Name)...), ' ')
			r.line = appendClean(r.line, it.Text)
		}
	}
	r.line = append(r.line, '\n')
	return end
}

func (r *renderer) renderField(name string, text []byte, indent string) {
	r.line = append(append(r.line, indent...), title(name)...)
	if text = bytes.TrimSpace(text); len(text) > 0 {
		r.line = append(r.line, ": "...)
		r.renderProse(text)
	}
	r.line = append(r.line, '\n')
}

// title returns an element's name in words, with a capital first letter.
func title(name string) string {
	s := []byte(words(name))
	if len(s) > 0 && 'a' <= s[0] && s[0] <= 'z' {
		s[0] -= 'a' - 'A'
	}
	return string(s)
}

func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// renderPairs renders a line for each pair in rec: a count, and the text that render adds for the
// next item of the name given as what. The parameter heading is the line before them.
func (r *renderer) renderPairs(rec *Record, heading, what string, render func(text []byte)) {
	if !slices.ContainsFunc(rec.Items, func(it Item) bool { return it.Name != "" }) {
		r.line = bytes.TrimSuffix(r.line, []byte("\n")) // no pairs follow the heading
	} else if !rec.Continued {
		r.line = append(append(r.line, heading...), '\n')
	}
	count := []byte(nil)
	for i := 0; i < len(rec.Items); {
		switch it := &rec.Items[i]; {
		case it.Name == "pair" && !it.Leaf:
		case it.Name == "count" && it.Leaf && count == nil:
			count = it.Text
		case it.Name == what && it.Leaf:
			for n := len(count); n < 7; n++ {
				r.line = append(r.line, ' ')
			}
			r.line = append(appendClean(r.line, count), "  "...)
			render(it.Text)
			r.line = append(r.line, '\n')
			count = nil
		default:
			i = r.renderItem(rec, i)
			continue
		}
		i++
	}
	if count != nil {
		r.renderField("count", count, "  ")
	}
}

// renderSuppression renders the suppression of an error, the items from i to end, and returns end.
// If there is a raw text, it is rendered in place of the fields, since users copy suppressions.
func (r *renderer) renderSuppression(rec *Record, i, end int) int {
	raw := i
	for raw < end && !(rec.Items[raw].Leaf && rec.Items[raw].Name == "rawtext") {
		raw++
	}
	if raw < end {
		r.repeat = append(r.repeat[:0], rec.Items[raw].Text...)
		r.line = append(escape.AppendText(r.line, r.repeat, "\t\n"), '\n')
	} else {
		r.line = append(r.line, " Suppression:\n"...)
	}
	for i < end {
		it := &rec.Items[i]
		if raw < end && (i == raw || it.Name == "sframe" || it.Leaf && bytes.Contains(r.repeat, it.Text)) {
			i++
		} else {
			i = r.renderItem(rec, i)
		}
	}
	return end
}

func (r *renderer) renderLines(indent string, text []byte) {
	text = bytes.TrimRight(text, " \t\r\n")
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		r.line = append(r.line, indent...)
		r.renderProse(line)
		r.line = append(r.line, '\n')
		text = rest
	}
}

// renderProse renders text, with an element after each address of a variable.
func (r *renderer) renderProse(text []byte) {
	from := 0
	eachAddress(text, func(end int, addr uint64) {
		if !r.isVariable(addr) {
			return
		}
		r.line = append(appendClean(r.line, text[from:end]), " ("...)
		r.sendElement(markup.Data{Addr: addr})
		r.line = append(r.line, ')')
		from = end
	})
	r.line = appendClean(r.line, text[from:])
}

// eachAddress calls visit for each hex number in text, with the index after it.
func eachAddress(text []byte, visit func(end int, addr uint64)) {
	for i := 0; ; {
		j := bytes.Index(text[i:], []byte("0x"))
		if j < 0 {
			return
		}
		i += j
		end := i + 2
		for end < len(text) && end < i+19 && isHex(text[end]) {
			end++
		}
		if addr, ok := report.Hex(text[i+2 : end]); ok && (i == 0 || !isName(text[i-1])) {
			visit(end, addr)
		}
		i = end
	}
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

// epochCovering returns the epoch of the object at addr, or nil if none or several are
// possible.
func (t *tracker) epochCovering(addr uint64) (at *epoch) {
	for _, e := range t.cur.places {
		f := e.of.file
		if addr-e.bias-f.from >= f.to-f.from || f.Err != nil || !report.Covers(f.Loads, addr-e.bias) {
			continue
		}
		if at != nil && (at.of != e.of || at.bias != e.bias) {
			return nil
		}
		at = e
	}
	return at
}

// isVariable reports whether addr becomes an element. If so, it writes the maps of the object
// at addr.
func (r *renderer) isVariable(addr uint64) bool {
	e := r.t.epochCovering(addr)
	if e == nil {
		return false
	}
	if r.o.Symbolizer == nil || r.o.Elements {
		if e.of.file.ID.IsZero() {
			return false
		}
	} else if _, ok := r.answers.variable(r.t, addr); !ok {
		return false
	}
	if !e.shown { // its module lines must precede the current line
		r.writeMapsBefore(e)
	}
	return true
}

// writeMapsBefore writes the module and the maps of an object before the current line.
func (r *renderer) writeMapsBefore(e *epoch) {
	i := bytes.LastIndexByte(r.line, '\n') + 1
	part := bytes.Clone(r.line[i:])
	r.line = r.line[:i]
	r.writeMaps(e)
	r.line = append(r.line, part...)
}

// appendClean appends a line of text, with control characters except TAB escaped.
func appendClean(dst, text []byte) []byte { return escape.AppendText(dst, text, "\t") }
