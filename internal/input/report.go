package input

import "bytes"

// The constructs before the root element of a Valgrind report. Valgrind itself writes the
// declaration. Programs that process its reports add the other constructs.
const (
	rootElement = "<valgrindoutput>"
	instruction = "<?xml" // a declaration, or <?xml-stylesheet …?>
	docType     = "<!DOCTYPE"
	comment     = "<!--"
)

// isValgrind returns Valgrind if b begins like a Valgrind report, Auto if more bytes are needed,
// and Markup otherwise. A declaration ends on its line. A comment or a document type may have
// several lines.
func isValgrind(b []byte, _ extent) Format {
	for first := true; ; first = false {
		if !first {
			b = bytes.TrimLeft(b, " \t\r\n")
		}
		end := 0
		switch {
		case bytes.HasPrefix(b, []byte(rootElement)):
			return Valgrind
		case bytes.HasPrefix(b, []byte(instruction)):
			line, _, whole := bytes.Cut(b, newline)
			if end = after(line, "?>"); end == 0 && whole {
				return Markup
			}
		case bytes.HasPrefix(b, []byte(docType)):
			name := bytes.TrimLeft(b[len(docType):], " \t\r\n")
			if !begins("valgrindoutput", name) && !bytes.HasPrefix(name, []byte("valgrindoutput")) {
				return Markup
			}
			if i := bytes.IndexAny(b, ">["); i >= 0 && b[i] == '[' {
				if end = after(b[i:], "]>"); end > 0 {
					end += i
				}
			} else {
				end = i + 1
			}
		case !first && bytes.HasPrefix(b, []byte(comment)):
			end = after(b, "-->")
		case begins(rootElement, b), begins(instruction, b), begins(docType, b), !first && begins(comment, b):
			return Auto
		default:
			return Markup
		}
		if end == 0 {
			return Auto
		}
		b = b[end:]
	}
}

// after returns the index after the first s in b, or 0.
func after(b []byte, s string) int {
	if i := bytes.Index(b, []byte(s)); i >= 0 {
		return i + len(s)
	}
	return 0
}

// watchSize is the number of bytes at the start of a log in which a report may begin: a script or
// the program may write before Valgrind does. Later lines are not searched.
const watchSize = 64 << 10

// A reportWatch looks for the first line of a Valgrind report near the start of a log.
type reportWatch struct {
	seen    int  // bytes given to the log's translator
	midLine bool // the last byte is not a line end
}

// next returns the index of the next line in b, not below from, that begins like a report. It
// returns len(b) if there is none.
func (v *reportWatch) next(b []byte, from int) int {
	for at := from; at < len(b); {
		if at > 0 || v.midLine {
			i := bytes.Index(b[max(0, at-1):], []byte("\n<"))
			if i < 0 {
				break
			}
			at = max(0, at-1) + i + 1
		}
		for _, s := range []string{rootElement, instruction, docType} {
			if begins(s, b[at:]) || bytes.HasPrefix(b[at:], []byte(s)) {
				return at
			}
		}
		at++
	}
	return len(b)
}

// pass writes text to the log's translator. If a Valgrind report begins in the text, pass opens
// another translator for the rest. If the end of the text may begin a report and is shorter than 4
// KiB, pass keeps this end until more text arrives.
func (w *Writer) pass(p []byte) error {
	v := w.watch
	if v == nil {
		_, err := w.dst.Write(p)
		return err
	}
	kept := w.head
	if w.head = nil; len(kept) > 0 {
		p = append(kept, p...)
	}
	for from := 0; ; {
		at := v.next(p, from)
		if at == len(p) || v.seen+at >= watchSize {
			return w.passed(p)
		}
		switch f := isValgrind(p[at:min(len(p), at+headSize)], more); {
		case f == Valgrind:
			return w.change(p[:at], p[at:])
		case f == Auto && len(p)-at < headSize:
			err := w.passed(p[:at])
			w.head = append(kept[:0], p[at:]...) // p may overlap the head
			return err
		}
		from = at + 1
	}
}

func (w *Writer) passed(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	v := w.watch
	v.seen += len(p)
	v.midLine = p[len(p)-1] != '\n'
	if v.seen >= watchSize {
		w.watch = nil
	}
	_, err := w.dst.Write(p)
	return err
}

// change ends the log, and starts a report.
func (w *Writer) change(log, report []byte) error {
	w.watch = nil
	if len(log) > 0 {
		if _, err := w.dst.Write(log); err != nil {
			return err
		}
	}
	if err := w.dst.Close(); err != nil {
		return err
	}
	w.format = Valgrind
	w.open()
	_, err := w.dst.Write(report)
	return err
}
