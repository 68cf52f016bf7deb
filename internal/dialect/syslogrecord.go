package dialect

import "bytes"

// rsyslogEnd is the end of a line within a record of rsyslog, which writes a message of several
// lines on one line. rsyslog replaces each control character by "#" and three octal digits.
var rsyslogEnd = []byte("#012")

const maxRecordFrames = 512 // frames in a record; most programs print at most 128

// record finds the frames in the lines of a message in a record of rsyslog. The answers stay in the
// record, each after its frame.
func (r *Reader) record(l *Line) bool {
	part := &r.part
	process := uint64(0)
	for from := 0; from < len(l.Text) && len(l.Frames) < maxRecordFrames; {
		to := len(l.Text)
		if i := bytes.Index(l.Text[from:], rsyslogEnd); i >= 0 {
			to = from + i
		}
		if from == 0 { // only the first line has the number of the process
			process = processIn(l.Text[:to])
		}
		part.Text, part.Frames, part.edits = l.Text[from:to], part.Frames[:0], part.edits[:0]
		if to > from && r.frames(part, -1) {
			l.addLine(part, from, process)
			if needsContext(part) {
				r.open(windowTrace, r.number)
			}
		}
		from = to + len(rsyslogEnd)
	}
	return len(l.Frames) > 0
}

// addLine adds to l the frames of part, a line of a record that begins at the given offset of l. It
// skips frames whose answers would not follow them on the same line.
func (l *Line) addLine(part *Line, from int, process uint64) {
	for i := range part.Frames {
		f := part.Frames[i]
		if f.Below != "" || f.Unframed || f.Data || f.Named || len(f.Edits) == 0 {
			continue // the answer needs its own line, or does not follow the frame
		}
		edits := f.Edits
		f.Start, f.Edits = f.Start+from, nil
		f.Digits, f.First, f.Depth, f.Inline, f.PlaceBelow, f.Wraps = Span{}, Span{}, Span{}, Innermost, false, false
		if f.Process == 0 {
			f.Process = process
		}
		l.Frames = append(l.Frames, f)
		added := &l.Frames[len(l.Frames)-1]
		end := 0
		for _, e := range edits {
			e.From, e.To = e.From+from, e.To+from
			l.edit(added, e)
			end = e.To
		}
		l.edit(added, Edit{Span{end, end}, "", Callers, ""})
	}
}
