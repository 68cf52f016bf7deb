package llvmfilter

// complain reports an error in the line at work: the message, the line, and a
// caret below byte at.
func (f *Filter) complain(message string, at int) {
	f.report("error: ", message, false, at)
}

// warn reports something that does not keep the element from being used.
func (f *Filter) warn(message string, at int) {
	f.report("warning: ", message, false, at)
}

// report reports at most maxEcho bytes about a line, and maxRepeat times its length. Colour is for the
// severity or, where whole is set, for all of the message with its line end.
func (f *Filter) report(severity, message string, whole bool, at int) {
	size := len(severity) + len(message) + len(f.line) + at + 32
	most := maxEcho + maxRepeat*len(f.line)
	if f.echoed > most {
		return
	}
	if f.echoed += size; f.echoed > most && f.echoed != size {
		f.tell("too many errors in one line; the rest of them are not shown")
		return
	}
	f.say(severity, message, whole)
	f.sayLong(f.line)
	for ; at > 0; at -= min(at, len(spaces)) {
		f.sayLong([]byte(spaces[:min(at, len(spaces))]))
	}
	if f.o.DiagColor {
		f.said = append(f.said, "\x1b[0;32m^\x1b[0m\n"...)
	} else {
		f.said = append(f.said, "^\n"...)
	}
	f.inPlace()
}

// tell reports an error of which no line is shown.
func (f *Filter) tell(message string) {
	f.say("error: ", message, false)
	f.inPlace()
}

// inPlace writes what is printed and what is said, if diagnostics have their
// places in the output. It comes before each and behind it.
func (f *Filter) inPlace() {
	if f.o.InPlace {
		f.send()
	}
}

const spaces = "                                                                                                "

// sayLong appends b to what is said; what is long goes out at once.
func (f *Filter) sayLong(b []byte) {
	if len(f.said)+len(b) >= chunk {
		f.send()
	}
	if len(b) >= chunk {
		f.diag.Write(b)
		return
	}
	f.said = append(f.said, b...)
}

// say appends the first line of a diagnostic.
func (f *Filter) say(severity, message string, whole bool) {
	f.inPlace()
	color := "\x1b[0;1;31m"
	if severity != "error: " {
		color = "\x1b[0;1;35m"
	}
	if f.o.DiagColor {
		f.said = append(f.said, color...)
	}
	f.said = append(f.said, severity...)
	if f.o.DiagColor && !whole {
		f.said = append(f.said, "\x1b[0m"...)
	}
	f.said = append(f.said, message...)
	f.said = append(f.said, '\n')
	if f.o.DiagColor && whole {
		f.said = append(f.said, "\x1b[0m"...)
	}
}
