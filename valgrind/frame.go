package valgrind

import "bytes"

// wholeFrame takes the frame that begins at pos, all of it, if it is written as
// Valgrind writes frames: these are most of a report, and the way through tag
// takes three times as long. Otherwise it takes nothing.
func (r *Reader) wholeFrame() bool {
	b := r.view
	i := r.pos + len("<frame>")
	var f rawFrame
	for {
		for i < len(b) && (b[i] == ' ' || b[i] == '\n') {
			i++
		}
		if len(b)-i < len("</frame>") || b[i] != '<' {
			return false
		}
		var tag, end string
		var s *span
		switch b[i+1] {
		case 'i':
			tag, end = "<ip>", "</ip>"
		case 'o':
			tag, end, s = "<obj>", "</obj>", &f.obj
		case 'd':
			tag, end, s = "<dir>", "</dir>", &f.dir
		case 'l':
			tag, end = "<line>", "</line>"
		case 'f':
			tag, end, s = "<fn>", "</fn>", &f.fn
			if b[i+2] == 'i' {
				tag, end, s = "<file>", "</file>", &f.file
			}
		case '/':
			if string(b[i:i+len("</frame>")]) != "</frame>" || !f.is {
				return false
			}
			if r.stack == 0 {
				return false
			}
			r.endFrame()
			r.frames = append(r.frames, f)
			r.pos = i + len("</frame>")
			r.seek = r.pos
			return true
		}
		if tag == "" || string(b[i:i+len(tag)]) != tag {
			return false
		}
		from := i + len(tag)
		n := bytes.IndexByte(b[from:], '<')
		if n < 0 || len(b)-from-n < len(end) || string(b[from+n:from+n+len(end)]) != end {
			return false
		}
		i = from + n + len(end)
		switch {
		case s != nil && s.is(), tag == "<ip>" && f.is, tag == "<line>" && f.line != 0:
			return false // twice
		case s != nil:
			*s = r.span(from, from+n)
		default:
			v, ok := number(b[from : from+n])
			if !ok {
				return false
			}
			if tag == "<ip>" {
				f.ip, f.is = v, true
			} else {
				f.line = v
			}
		}
	}
}
