package input

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/filter"
)

// wantSameRecords numbers and filters the valid records of a log. It fails the test unless each
// record is printed once, is valid, and keeps its unfiltered bytes. A record with markup may be
// missing, as modules and maps are.
func wantSameRecords(t *testing.T, format Format, o filter.Options, log []byte) {
	t.Helper()
	split, number := numberedObjects, regexp.MustCompile(`^[ \t\r]*\{"#":(\d+)`)
	if format == Journal {
		split, number = numberedEntries, regexp.MustCompile(`^_N=(\d+)\n`)
	}
	records := split(log)
	out := []byte(envelope(t, format, o, strings.Join(records, ""), nil))
	next := 0
	for rest := out; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		if format == Journal {
			n = entryLength(rest)
		}
		if n <= 0 {
			t.Fatalf("not a record: %q", rest)
		}
		record := string(rest[:n])
		rest = rest[n:]
		found := number.FindStringSubmatch(record)
		if found == nil {
			t.Fatalf("a record has lost its number: %q", record)
		}
		i, err := strconv.Atoi(found[1])
		if err != nil || i < next || i >= len(records) {
			t.Fatalf("record %s came after %d, of %d", found[1], next-1, len(records))
		}
		for ; next < i; next++ {
			wantMarkup(t, records[next])
		}
		next++
		want, got := unfiltered(format, records[i]), unfiltered(format, record)
		if want != got && (format == Journal || want != records[i] || !json.Valid([]byte(record)) || !strings.Contains(want, "{{{") && !strings.Contains(want, `"o"`)) {
			t.Fatalf("record %q comes out as %q: %q is not %q", records[i], record, got, want)
		}
	}
	for _, record := range records[next:] {
		wantMarkup(t, record)
	}
}

// wantMarkup fails the test if record, which is missing in the output, has no markup.
func wantMarkup(t *testing.T, record string) {
	t.Helper()
	var object any
	plain := record
	if json.Unmarshal([]byte(record), &object) == nil { // braces may be escaped
		plain = fmt.Sprint(object)
	}
	if !strings.Contains(plain, "{{{") && !strings.Contains(plain, "123 123 123") {
		t.Fatalf("a record is missing: %q", record)
	}
}

// numberedObjects returns the lines that are JSON objects, with their number as the first member.
func numberedObjects(log []byte) (lines []string) {
	for line := range bytes.Lines(log) {
		blanks := len(line) - len(bytes.TrimLeft(line, " \t\r"))
		if !json.Valid(line) || line[blanks] != '{' {
			continue
		}
		rest := strings.TrimLeft(string(bytes.TrimSuffix(line[blanks+1:], newline)), " \t\r")
		if rest[0] != '}' {
			rest = "," + rest
		}
		lines = append(lines, fmt.Sprintf("%s{\"#\":%d%s\n", line[:blanks], len(lines), rest))
	}
	return lines
}

// numberedEntries returns the entries before the first invalid one, with their number as the first
// field.
func numberedEntries(log []byte) (entries []string) {
	for len(log) > 0 {
		n := entryLength(log)
		if n <= 0 {
			break
		}
		if n > 1 {
			entries = append(entries, fmt.Sprintf("_N=%d\n%s", len(entries), log[:n]))
		}
		log = log[n:]
	}
	return entries
}

// entryLength returns the length of the entry at the beginning of b, including its empty line. It
// returns 0 if there is no valid entry.
func entryLength(b []byte) int {
	for at := 0; ; {
		n := exportedLength(b[at:])
		if n == 0 {
			return 0
		}
		if at += n; n == 1 {
			return at
		}
	}
}

// exportedLength returns the length of the field at the beginning of b. It returns 1 for an empty
// line, and 0 for an invalid field.
func exportedLength(b []byte) int {
	line, rest, ok := bytes.Cut(b, newline)
	name, _, text := bytes.Cut(line, []byte("="))
	switch {
	case !ok:
		return 0
	case len(line) == 0:
		return 1
	case !regexp.MustCompile(`^[A-Z0-9_]+$`).Match(name):
		return 0
	case text:
		return len(line) + 1
	case len(rest) < 8:
		return 0
	}
	size := binary.LittleEndian.Uint64(rest)
	if rest = rest[8:]; size >= uint64(len(rest)) || rest[size] != '\n' {
		return 0
	}
	return len(line) + 1 + 8 + int(size) + 1
}

// unfiltered returns a record without its filtered values.
func unfiltered(format Format, record string) string {
	var b strings.Builder
	if format == Journal {
		for rest := record; rest != "\n"; {
			n := exportedLength([]byte(rest))
			if name := rest[:strings.IndexAny(rest, "=\n")]; slices.Contains(DefaultFields(), name) {
				b.WriteString(name + "\n")
			} else {
				b.WriteString(rest[:n])
			}
			rest = rest[n:]
		}
		return b.String()
	}
	w := walk{record: record, decoder: json.NewDecoder(strings.NewReader(record))}
	w.decoder.UseNumber()
	w.value("", false)
	b.WriteString(record[w.copied:])
	return w.out.String() + b.String()
}

// A walk copies a JSON object without its filtered values.
type walk struct {
	record  string
	decoder *json.Decoder
	out     strings.Builder
	copied  int // bytes of record that were copied or omitted
}

// next returns the next token and its range in the record. ok is false at the end of an object or
// an array.
func (w *walk) next() (tok json.Token, from, to int, ok bool) {
	from = int(w.decoder.InputOffset())
	from += len(w.record[from:]) - len(strings.TrimLeft(w.record[from:], " \t\r\n,:"))
	tok, err := w.decoder.Token()
	d, delim := tok.(json.Delim)
	return tok, from, int(w.decoder.InputOffset()), err == nil && !(delim && (d == '}' || d == ']'))
}

// value reads the value at path. It returns false at the end of an object or an array.
func (w *walk) value(path string, inArray bool) bool {
	tok, from, to, ok := w.next()
	if !ok {
		return false
	}
	wanted := !inArray && slices.Contains(DefaultFields(), path)
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '[' {
			for w.value(path, true) {
			}
		} else {
			for {
				_, from, to, ok := w.next()
				if !ok {
					break
				}
				name := w.record[from+1 : to-1]
				if path != "" {
					name = path + "." + name
				}
				w.value(name, inArray)
			}
		}
		if end := int(w.decoder.InputOffset()); tok == '[' && wanted && path == message {
			w.leaveOut(from, end)
		}
	case string:
		if wanted {
			w.leaveOut(from, to)
		}
	}
	return true
}

// leaveOut copies the record up to the offset from, and continues at the offset to.
func (w *walk) leaveOut(from, to int) {
	w.out.WriteString(w.record[w.copied:from])
	w.copied = to
}
