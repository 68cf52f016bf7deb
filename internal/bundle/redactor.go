// Package bundle makes a text for a bug report about a log: symfilter's results, without the
// private text of the log.
//
// A Redactor removes private names from symfilter's lines about places and modules. A Log collects
// the facts about the log itself.
package bundle

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/symfilter/symfilter/internal/wording"
)

// A Redactor is a writer that redacts lines. Names passed to Hide lose their folders; URLs keep
// only scheme and host. Paths in the places that were passed to NewRedactor (the user's files and
// folders) are kept, with ~ for the home folder. Other paths keep only their base names.
type Redactor struct {
	w       io.Writer
	home    string
	places  []string          // longest first
	private map[string]string // replacement for each private text
	ordered []string          // the keys of private, longest first
	buf     []byte            // the unfinished line
	written int               // bytes of redacted lines, including lines left out
	left    int               // lines beyond maxFindings
}

// Bounds of a report. It must fit into a comment on GitHub, of at most 65,536 characters.
// maxFindings reserves the rest of the report for lines of the log.
const (
	maxReport   = 64000 // bytes
	maxFindings = 24000 // bytes of the doctor's lines
	maxFinding  = 400   // bytes of one such line
)

// A limited is a writer that stops at maxReport bytes.
type limited struct {
	w    io.Writer
	size int // bytes written; maxReport if a line was left out
}

// Write writes p. If p would exceed the limit, it writes a note instead, and leaves out all further
// text.
func (l *limited) Write(p []byte) (n int, err error) {
	const note = "\n(the rest is left out)\n"
	switch {
	case l.size >= maxReport:
	case l.size+len(p)+len(note) > maxReport:
		l.size = maxReport
		_, err = io.WriteString(l.w, note)
	default:
		l.size += len(p)
		_, err = l.w.Write(p)
	}
	return len(p), err
}

// NewRedactor returns a Redactor that writes to w. home is the home folder, or "". places are
// the user's files and folders of debug files.
func NewRedactor(w io.Writer, home string, places []string) *Redactor {
	r := &Redactor{w: &limited{w: w}, home: strings.TrimRight(home, "/"), private: make(map[string]string)}
	for _, p := range append(places, "/proc/self/maps") { // a path in advice
		if p = strings.TrimRight(p, "/"); p != "" {
			r.places = append(r.places, p, wording.Line(p))
		}
	}
	slices.SortFunc(r.places, longestFirst)
	return r
}

// Hide makes the Redactor print only the base names of these modules and files. It masks base names
// that do not look like a file's. Names below the user's places are kept.
func (r *Redactor) Hide(names ...string) {
	for _, name := range names {
		if name == "" || r.placeAt(name) != "" {
			continue
		}
		shown := shownName(name)
		if strings.Contains(name, "/") {
			shown = "…/" + shown
		}
		r.hide(name, shown)
		base := baseName(name)
		if isFile(name) {
			continue
		}
		r.hide(base, shownName(name))
		if len(base) > maxName { // messages cut long names
			r.hide(base[:maxName], shownName(name))
		}
	}
	slices.SortFunc(r.ordered, longestFirst)
}

func (r *Redactor) hide(text, shown string) {
	for _, t := range []string{text, wording.Line(text)} {
		if _, ok := r.private[t]; !ok && t != "" {
			r.private[t] = shown
			r.ordered = append(r.ordered, t)
		}
	}
}

func longestFirst(a, b string) int {
	if len(a) != len(b) {
		return len(b) - len(a)
	}
	return strings.Compare(a, b)
}

// Write redacts whole lines, and keeps the rest for the next call. It cuts long lines, and leaves
// out lines beyond maxFindings.
func (r *Redactor) Write(p []byte) (int, error) {
	r.buf = append(r.buf, p...)
	end := bytes.LastIndexByte(r.buf, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	var err error
	for line := range strings.Lines(r.Redact(string(r.buf[:end]))) {
		if len(line) > maxFinding {
			line = strings.ToValidUTF8(line[:maxFinding], "") + " ... (cut)\n"
		}
		if r.written += len(line); r.written > maxFindings {
			r.left++
		} else if _, err = io.WriteString(r.w, line); err != nil {
			break
		}
	}
	r.buf = r.buf[:copy(r.buf, r.buf[end:])]
	return len(p), err
}

// endFindings prints the number of lines left out.
func (r *Redactor) endFindings() {
	if r.left > 0 {
		fmt.Fprintf(r.w, "  and %s of symfilter doctor\n", wording.Count(int64(r.left), "more line", "more lines"))
	}
}

// Redact returns text with its private parts replaced.
func (r *Redactor) Redact(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		if i > 0 && isNameByte(text[i-1]) && isNameByte(text[i]) {
			b.WriteByte(text[i])
			i++
			continue
		}
		n, shown := r.at(text[i:])
		if n == 0 {
			n, shown = 1, text[i:i+1]
		}
		b.WriteString(shown)
		i += n
	}
	return b.String()
}

// Redactor.at returns the length of the private text or path at the start of text, and the text to
// print in its place. For NAME=PATH, it returns only the length of NAME=, and NAME= unchanged. n is
// 0 if text begins with none of these.
func (r *Redactor) at(text string) (n int, shown string) {
	word := text[:wordEnd(text)]
	if place := r.placeAt(text); place != "" {
		n = len(place) + wordEnd(text[len(place):])
		return n, r.tilde(text[:n])
	}
	for _, private := range r.ordered {
		if strings.HasPrefix(text, private) {
			return len(private), r.private[private]
		}
	}
	slash := strings.IndexByte(word, '/')
	switch {
	case strings.Contains(word, "://"):
		return len(word), shownURL(word)
	case slash < 0:
		return 0, ""
	case word == "n/a" || word == "/":
		return len(word), word
	case strings.IndexByte(word[:slash], '=') > 0: // NAME=PATH, and --flag=PATH
		return strings.IndexByte(word, '=') + 1, word[:strings.IndexByte(word, '=')+1]
	}
	name := strings.TrimRight(word, ".:")
	if r.home != "" && name == r.home {
		return len(name), "~"
	}
	return len(name), "…/" + shownName(name)
}

// placeAt returns the user's place at the start of text, or "".
func (r *Redactor) placeAt(text string) string {
	for _, place := range r.places {
		rest, ok := strings.CutPrefix(text, place)
		if ok && endsName(rest) {
			return place
		}
	}
	return ""
}

// tilde returns path with ~ for the home folder. Elsewhere, a user's name after home/ or Users/
// becomes x.
func (r *Redactor) tilde(path string) string {
	if rest, ok := strings.CutPrefix(path, r.home); ok && r.home != "" && endsName(rest) {
		return "~" + rest
	}
	return usersFolder().ReplaceAllString(path, "$1/x")
}

// usersFolder matches the home folder of any user, since HOME may be root's.
var usersFolder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(home|Users)/[^/]+`) })

// wordEnd returns the length of the word at the start of s. Blanks, quotes, brackets, commas and
// semicolons end a word.
func wordEnd(s string) int {
	if i := strings.IndexAny(s, " \t\n\"'()<>,;"); i >= 0 {
		return i
	}
	return len(s)
}

// shownURL returns the scheme and host of a URL. User, path, query and fragment may be secrets.
func shownURL(word string) string {
	tail := word[len(strings.TrimRight(word, ".:")):]
	u, err := url.Parse(strings.TrimSuffix(word, tail))
	if err != nil {
		return "(a URL)" + tail
	}
	shown := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		shown += "/…"
	}
	return shown + tail
}
