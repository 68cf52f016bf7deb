package valgrind

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/symfilter/symfilter/markup"
)

// render renders a record as Valgrind prints it without --xml, where it does.
func (r *renderer) render(rec *Record) {
	switch rec.Name {
	case "pid", "ppid", "tool", "protocolversion", "protocoltool":
		return
	case "args":
		r.head()
		return
	case "preamble":
		for i := range rec.Items {
			r.lines("", rec.Items[i].Text)
		}
		return
	case "":
		r.lines("", textOf(rec))
		return
	}
	if raw := rec.Get("rawtext"); rec.Name == "suppression" && raw != nil && bytes.Equal(raw, r.repeat) {
		return // Valgrind 3.19 has it twice
	}
	r.head()
	if r.t.closed {
		r.t.closed = false
		r.line = append(r.line, "--- the report goes on: a process was forked\n"...)
	}
	if !rec.Continued && rec.Name != "trace" && rec.Name != "status" {
		r.line = append(r.line, '\n')
	}
	switch rec.Name {
	case "status":
		r.line = append(r.line, "--- "...)
		r.line = append(appendClean(r.line, rec.Get("state"), false), ' ')
		r.line = appendClean(r.line, bytes.TrimSpace(rec.Get("time")), false)
		r.line = append(r.line, '\n')
	case "usercomment":
		r.lines("", rec.Text)
	case "error":
		r.items(rec, r.heading(rec))
	case "announcethread":
		r.thread(rec)
	case "clientmsg":
		r.line = append(r.line, "Message of the program"...)
		r.tags(rec, "")
		r.line = append(r.line, '\n')
		r.items(rec, "")
	case "fatal_signal":
		r.signal(rec)
	case "errorcounts":
		r.pairs(rec, "Errors, by their number:", "unique")
	case "suppcounts":
		r.pairs(rec, "Suppressions that were used:", "name")
	case "suppression":
		r.suppression(rec.Items)
	default:
		if rec.Text != nil && len(rec.Items) == 0 {
			r.field(rec.Name, rec.Text, "")
		} else if rec.Name == "trace" || rec.Name == "stack" || rec.Name == "frame" || rec.Continued {
			r.items(rec, "")
		} else {
			r.line = append(r.line, title(rec.Name)...)
			if len(rec.Items) > 0 {
				r.line = append(r.line, ':')
			}
			r.line = append(r.line, '\n')
			r.items(rec, "")
		}
	}
	if rec.Cut {
		r.line = append(r.line, " (cut off)\n"...)
	}
}

func textOf(rec *Record) []byte {
	if rec.Text != nil || len(rec.Items) == 0 {
		return rec.Text
	}
	return rec.Items[0].Text
}

// head says once which process speaks.
func (r *renderer) head() {
	p := r.t.cur
	if r.headed {
		return
	}
	r.headed = true
	if p.pid == "" && p.tool == "" && p.exe == "" {
		return
	}
	b := append(r.line, "==="...)
	for _, part := range []struct{ before, text string }{{" ", p.tool}, {" process ", p.pid}, {", parent ", p.ppid}, {": ", p.exe}} {
		if part.text != "" {
			b = appendClean(append(b, part.before...), []byte(part.text), false)
		}
	}
	for _, arg := range p.args {
		b = appendClean(append(b, ' '), []byte(arg), false)
	}
	r.line = append(b, '\n')
}

// heading renders the first line of an error, and returns the name of the item
// that it took.
func (r *renderer) heading(rec *Record) (took string) {
	if rec.Continued {
		return ""
	}
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Depth > 0 || it.Name != "what" && it.Name != "xwhat" {
			if it.Name == "stack" {
				break
			}
			continue
		}
		text := it.Text
		for j := i + 1; !it.Leaf && j < len(rec.Items) && rec.Items[j].Depth > 0; j++ {
			if rec.Items[j].Name == "text" {
				text = rec.Items[j].Text
				break
			}
		}
		r.prose(text)
		took = it.Name
		break
	}
	if took == "" {
		r.line = append(r.line, "Error"...)
	}
	r.tags(rec, string(rec.Get("kind")))
	r.line = append(r.line, '\n')
	return took
}

// tags renders what kind of error this is, its number, and whose it is:
//
//	[InvalidRead 0x2, thread 1 "worker"]
func (r *renderer) tags(rec *Record, kind string) {
	b := append(r.line, " ["...)
	start := len(b)
	b = appendClean(b, []byte(kind), false)
	if unique := rec.Get("unique"); len(unique) > 0 {
		if len(b) > start {
			b = append(b, ' ')
		}
		b = appendClean(b, unique, false)
	}
	if tid := rec.Get("tid"); len(tid) > 0 {
		if len(b) > start {
			b = append(b, ", "...)
		}
		b = appendClean(append(b, "thread "...), tid, false)
		if name := rec.Get("threadname"); len(name) > 0 {
			b = append(b, ` "`...)
			b = append(appendClean(b, name, false), '"')
		}
	}
	if len(b) == start {
		return
	}
	r.line = append(b, ']')
}

// said are the items that the heading of their record says.
func said(name string) bool {
	switch name {
	case "unique", "tid", "threadname", "kind", "signo", "signame", "sicode", "event", "siaddr", "isrootthread":
		return true
	}
	return false
}

// items renders what is in a record, but for what its heading said: the first
// item called took, and what said knows.
func (r *renderer) items(rec *Record, took string) {
	for i := 0; i < len(rec.Items); {
		it := &rec.Items[i]
		end := i + 1
		for end < len(rec.Items) && rec.Items[end].Depth > it.Depth {
			end++
		}
		switch {
		case it.Depth == 0 && it.Leaf && said(it.Name) && rec.Name != "trace":
		case it.Depth == 0 && it.Name == took:
			took = "" // only the first
			r.unsaid(rec.Items[i+1 : end])
		default:
			i = r.item(rec, i, end)
			continue
		}
		i = end
	}
}

// item renders the item at i, whose children end at end, and returns where to
// go on.
func (r *renderer) item(rec *Record, i, end int) int {
	it := &rec.Items[i]
	indent := strings.Repeat(" ", it.Depth+1)
	switch {
	case it.Leaf && (it.Name == "what" || it.Name == "auxwhat" || it.Name == "text" || it.Name == ""):
		r.lines(indent, it.Text)
	case it.Leaf:
		r.field(it.Name, it.Text, indent)
	case it.Name == "stack":
		r.stack(rec.Frames[it.First:it.Last])
		return i + 1
	case it.Name == "xwhat" || it.Name == "xauxwhat":
		for j := i + 1; j < end; j++ {
			if rec.Items[j].Name == "text" {
				r.lines(indent, rec.Items[j].Text)
			}
		}
		r.unsaid(rec.Items[i+1 : end])
		return end
	case it.Name == "origin":
		return i + 1
	case it.Name == "suppression":
		r.suppression(rec.Items[i+1 : end])
		return end
	case it.Name == "first_observed_at" && i+2 < end && rec.Items[i+1].Name == "what" && rec.Items[i+2].Name == "address":
		r.line = append(r.line, indent...)
		r.prose(rec.Items[i+1].Text)
		r.line = append(r.line, ' ')
		r.prose(rec.Items[i+2].Text)
		r.line = append(r.line, " was first observed at:\n"...)
		return i + 3
	default:
		return r.group(rec, i, end, indent)
	}
	return end
}

// unsaid renders the fields of an xwhat that its text does not hold already.
func (r *renderer) unsaid(items []Item) {
	for i := range items {
		switch it := &items[i]; it.Name {
		case "text", "leakedbytes", "leakedblocks", "hthreadid", "threadid", "file", "line", "dir":
		default:
			if it.Leaf {
				r.field(it.Name, it.Text, "  ")
			}
		}
	}
}

// group renders an element that holds others, on one line if these are few
// and short: "definitely lost: 48 bytes, 1 blocks".
func (r *renderer) group(rec *Record, i, end int, indent string) int {
	r.line = append(append(r.line, indent...), title(rec.Items[i].Name)...)
	r.line = append(r.line, ':')
	for j := i + 1; j < end; j++ {
		if it := &rec.Items[j]; !it.Leaf || it.Name == "" || len(it.Text) > 32 || it.Depth != rec.Items[i].Depth+1 || j > i+4 {
			r.line = append(r.line, '\n')
			return i + 1
		}
	}
	for j := i + 1; j < end; j++ {
		if j > i+1 {
			r.line = append(r.line, ',')
		}
		r.line = append(r.line, ' ')
		it := &rec.Items[j]
		if _, ok := number(it.Text); ok {
			r.line = append(appendClean(r.line, it.Text, false), ' ')
			r.line = append(r.line, plain(it.Name)...)
		} else {
			r.line = append(append(r.line, plain(it.Name)...), ' ')
			r.line = appendClean(r.line, it.Text, false)
		}
	}
	r.line = append(r.line, '\n')
	return end
}

// field renders an element that holds text.
func (r *renderer) field(name string, text []byte, indent string) {
	r.line = append(append(r.line, indent...), title(name)...)
	if text = bytes.TrimSpace(text); len(text) > 0 {
		r.line = append(r.line, ": "...)
		r.prose(text)
	}
	r.line = append(r.line, '\n')
}

// title returns an element's name for people.
func title(name string) string {
	s := []byte(plain(name))
	if len(s) > 0 && 'a' <= s[0] && s[0] <= 'z' {
		s[0] -= 'a' - 'A'
	}
	return string(s)
}

func plain(name string) string { return strings.ReplaceAll(name, "_", " ") }

// thread renders the record of a thread that errors speak of.
func (r *renderer) thread(rec *Record) {
	b := append(r.line, "Thread #"...)
	b = appendClean(b, rec.Get("hthreadid"), false)
	said := " was created"
	for i := range rec.Items {
		if rec.Items[i].Name == "isrootthread" {
			said = " is the program's root thread"
		}
	}
	r.line = append(append(b, said...), '\n')
	for i := 0; i < len(rec.Items); {
		end := i + 1
		for end < len(rec.Items) && rec.Items[end].Depth > rec.Items[i].Depth {
			end++
		}
		if n := rec.Items[i].Name; n == "hthreadid" || n == "isrootthread" {
			i = end
		} else {
			i = r.item(rec, i, end)
		}
	}
}

// signal renders the record of what ended a process.
func (r *renderer) signal(rec *Record) {
	b := append(r.line, "Process terminating with signal "...)
	b = appendClean(b, rec.Get("signo"), false)
	b = append(b, " ("...)
	r.line = append(appendClean(b, rec.Get("signame"), false), ')')
	r.tags(rec, "")
	r.line = append(r.line, '\n')
	event, addr := rec.Get("event"), rec.Get("siaddr")
	if event == nil && addr == nil {
		r.items(rec, "")
		return
	}
	r.line = append(r.line, ' ')
	if event != nil {
		r.prose(event)
	}
	if addr != nil {
		if event != nil {
			r.line = append(r.line, ' ')
		}
		r.line = append(r.line, "at address "...)
		r.prose(addr)
	}
	r.line = append(r.line, '\n')
	r.items(rec, "")
}

// pairs renders counts.
func (r *renderer) pairs(rec *Record, heading, what string) {
	count := []byte(nil)
	for i := range rec.Items {
		switch it := &rec.Items[i]; it.Name {
		case "pair":
			if heading != "" {
				r.line = append(append(r.line, heading...), '\n')
				heading = ""
			}
		case "count":
			count = it.Text
		case what:
			for n := len(count); n < 7; n++ {
				r.line = append(r.line, ' ')
			}
			r.line = append(appendClean(r.line, count, false), "  "...)
			r.line = append(appendClean(r.line, it.Text, false), '\n')
		default:
			r.field(it.Name, it.Text, "  ")
		}
	}
	if heading != "" && len(r.line) > 0 { // nothing was counted
		r.line = r.line[:len(r.line)-1]
	}
}

// suppression renders what would suppress an error, to be copied.
func (r *renderer) suppression(items []Item) {
	for i := range items {
		if it := &items[i]; it.Name == "rawtext" {
			r.repeat = append(r.repeat[:0], it.Text...)
			r.line = append(appendClean(r.line, it.Text, true), '\n')
			return
		}
	}
	r.line = append(r.line, " Suppression:\n"...)
	for i := range items {
		if it := &items[i]; it.Leaf {
			r.field(it.Name, it.Text, "  ")
		}
	}
}

// lines renders text of one or several lines.
func (r *renderer) lines(indent string, text []byte) {
	text = bytes.TrimRight(text, " \t\r\n")
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		r.line = append(r.line, indent...)
		r.prose(line)
		r.line = append(r.line, '\n')
		text = rest
	}
}

// prose renders text in which addresses may be those of variables: they are
// followed by an element then.
func (r *renderer) prose(text []byte) {
	from := 0
	addresses(text, func(end int, addr uint64) {
		if !r.isVariable(addr) {
			return
		}
		r.line = append(appendClean(r.line, text[from:end], false), " ("...)
		r.element(markup.Data{Addr: addr})
		r.line = append(r.line, ')')
		from = end
	})
	r.line = appendClean(r.line, text[from:], false)
}

// addresses calls visit for each hex number in text, and where it ends.
func addresses(text []byte, visit func(end int, addr uint64)) {
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
		if addr, ok := hex(text[i+2 : end]); ok && (i == 0 || !isName(text[i-1])) {
			visit(end, addr)
		}
		i = end
	}
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

// covering returns the object at addr, whose place is known.
func (t *tracker) covering(addr uint64) (*epoch, *file) {
	for _, o := range t.cur.order {
		for _, e := range o.epochs {
			if f := o.file; e.located && f.err == nil && covers(f.loads, addr-e.bias) {
				return e, f
			}
		}
	}
	return nil, nil
}

// isVariable reports whether addr becomes an element, and shows the maps of the
// object that it is in.
func (r *renderer) isVariable(addr uint64) bool {
	e, f := r.t.covering(addr)
	if e == nil {
		return false
	}
	if r.o.Symbolizer == nil || r.o.Elements {
		if f.id.IsZero() {
			return false
		}
	} else if _, ok := r.answers.variable(r.t, addr); !ok {
		return false
	}
	if !e.shown { // its module stands on lines of its own, before this one
		r.presentBefore(e)
	}
	return true
}

// presentBefore is present within a line: what is there of it comes behind.
func (r *renderer) presentBefore(e *epoch) {
	i := bytes.LastIndexByte(r.line, '\n') + 1
	part := bytes.Clone(r.line[i:])
	r.line = r.line[:i]
	r.present(e)
	r.line = append(r.line, part...)
}

// appendClean appends text with its control characters made visible, as \x1b or
// \u202e, and so are bytes that are no UTF-8: a report is made of what the
// program said. TAB stays, and with lines the ends of lines.
func appendClean(dst, text []byte, lines bool) []byte {
	const digits = "0123456789abcdef"
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f || c == '\t' || c == '\n' && lines {
			i++
			continue
		}
		n := 1
		r := rune(c)
		if c >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
			if !(r == utf8.RuneError && n == 1) && unicode.IsPrint(r) {
				i += n
				continue
			}
		}
		dst = append(dst, text[from:i]...)
		if c < utf8.RuneSelf || n == 1 {
			dst = append(dst, '\\', 'x', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, `\u`...)
			dst = append(dst, strconv.FormatUint(1<<16|uint64(r), 16)[1:]...)
		}
		i += n
		from = i
	}
	return append(dst, text[from:]...)
}
