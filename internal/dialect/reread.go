package dialect

// If only the text of lines decides how their frames are read, repeated lines need not be parsed
// again.

// TextDecides reports whether the frames in the lines numbered first to last depend only on the
// text of these lines. It returns false if another line has announced a dialect, maps or a fact
// that a grammar uses. inTrace is set if the lines continue a trace. A grammar may still read
// earlier lines: see [Reader.Asked].
func (r *Reader) TextDecides(first, last int64) (yes, inTrace bool) {
	open := r.openAt(first)
	yes = open&^windowTrace == 0 && r.openAt(last) == open && r.holdsUntil < first && !r.Firmware &&
		r.producers.areSilent(first) && r.facts.Silent()
	return yes, open == windowTrace
}

// Asked returns the number of reads of earlier lines by grammars, and the number of searches of
// earlier lines for headers.
func (r *Reader) Asked() (lines, headers int) { return r.asked, r.searched }

// SearchPast searches the lines before the line with this number for headers, as Line does if that
// line begins a trace.
func (r *Reader) SearchPast(number int64) {
	r.number = number
	r.readPast()
}

// KeepsTrace reports whether the line read last keeps the trace open, because other lines may help
// to resolve its frames.
func (r *Reader) KeepsTrace() bool { return r.until[0] == r.number+WindowLines }

// Reread updates r as if r had read further lines, which all have frames, and for which TextDecides
// returns true. size is the length of the lines, with one byte for each line end. last is the
// number of the last line. kept is the number of the last line that keeps the trace open, or 0.
func (r *Reader) Reread(size int, last, kept int64) {
	r.quota.Add(size)
	r.number, r.readTo, r.frameAt = last, last, last
	if kept > 0 {
		r.open(windowTrace, kept)
	}
}

// areSilent reports whether no earlier line affects how a frame in the given line is read.
func (p *producers) areSilent(line int64) bool {
	k := &p.kernel
	return k.named == nil && k.fault == "" && k.entryAt == 0 && k.load == nil && k.code == nil &&
		p.deaths.at == 0 && len(p.deaths.crashes) == 0 && p.glibc.exactAfter == 0 && p.gdb.frame < 0 &&
		p.device == (deviceFault{}) && p.envoy == (envoyObject{}) && p.clickHouseSignal == 0 && p.jvmFrame < line && p.goSignal == 0
}

// Silent reports whether f has no fact that helps to locate a frame. It ignores the beginning of a
// trace, which Dart and Android mark with the same line.
func (f *Facts) Silent() bool {
	if len(f.maps) > 0 || f.process != 0 || f.old || f.main != (ModuleFact{}) || f.program != (Program{}) {
		return false
	}
	_, begun := f.modules[dartTrace]
	return len(f.modules) == 0 || begun && len(f.modules) == 1
}
