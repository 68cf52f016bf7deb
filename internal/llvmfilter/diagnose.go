package llvmfilter

// complain reports an error in the current line, with the line and a caret at the given offset.
func (f *Filter) complain(message string, at int) {
	f.report("error: ", message, false, at)
}

// warn reports a defect of an element that is still used.
func (f *Filter) warn(message string, at int) {
	f.report("warning: ", message, false, at)
}

// report appends a diagnostic about the current line. Diagnostics of one line have at most
// maxEcho bytes, plus maxRepeat times the line's length. The severity is coloured. If whole is
// set, the message with its line end is coloured, too.
func (f *Filter) report(severity, message string, whole bool, at int) {
	size := len(severity) + len(message) + len(f.line) + at + 32
	most := maxEcho + maxRepeat*len(f.line)
	if f.echoed > most {
		return
	}
	if f.echoed += size; f.echoed > most && f.echoed != size {
		f.complainWithoutLine("too many errors in one line; the rest of them are not shown")
		return
	}
	f.appendMessage(severity, message, whole)
	f.appendLong(f.line)
	for ; at > 0; at -= min(at, len(spaces)) {
		f.appendLong([]byte(spaces[:min(at, len(spaces))]))
	}
	if f.o.DiagColor {
		f.diagnostics = append(f.diagnostics, "\x1b[0;32m^\x1b[0m\n"...)
	} else {
		f.diagnostics = append(f.diagnostics, "^\n"...)
	}
	f.flushInPlace()
}

// complainWithoutLine reports an error without showing a line.
func (f *Filter) complainWithoutLine(message string) {
	f.appendMessage("error: ", message, false)
	f.flushInPlace()
}

// flushInPlace writes the output and the diagnostics if Options.InPlace is set. It is called before
// and after each diagnostic.
func (f *Filter) flushInPlace() {
	if f.o.InPlace {
		f.send()
	}
}

const spaces = "                                                                                                "

// appendLong appends b to the diagnostics, and writes them at once if they are long.
func (f *Filter) appendLong(b []byte) {
	if len(f.diagnostics)+len(b) >= chunk {
		f.send()
	}
	if len(b) >= chunk {
		f.diag.Write(b)
		return
	}
	f.diagnostics = append(f.diagnostics, b...)
}

func (f *Filter) appendMessage(severity, message string, whole bool) {
	f.flushInPlace()
	color := "\x1b[0;1;31m"
	if severity != "error: " {
		color = "\x1b[0;1;35m"
	}
	if f.o.DiagColor {
		f.diagnostics = append(f.diagnostics, color...)
	}
	f.diagnostics = append(f.diagnostics, severity...)
	if f.o.DiagColor && !whole {
		f.diagnostics = append(f.diagnostics, "\x1b[0m"...)
	}
	f.diagnostics = append(f.diagnostics, message...)
	f.diagnostics = append(f.diagnostics, '\n')
	if f.o.DiagColor && whole {
		f.diagnostics = append(f.diagnostics, "\x1b[0m"...)
	}
}
