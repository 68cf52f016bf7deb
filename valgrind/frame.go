package valgrind

import "bytes"

// wholeFrame reads the frame at the current position, if the view has all of it in Valgrind's
// layout. Otherwise it returns false and reads nothing. Frames are most of a report, and
// reading them tag by tag takes three times as long.
func (r *Reader) wholeFrame() bool {
	const startTag, endTag = "<frame>", "</frame>"
	b := r.in.view
	i := r.in.pos + len(startTag)
	if i > len(b) || string(b[r.in.pos:i]) != startTag {
		return false
	}
	var f rawFrame
	for {
		for i < len(b) && (b[i] == ' ' || b[i] == '\n') {
			i++
		}
		if len(b)-i < len(endTag) || b[i] != '<' {
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
			if string(b[i:i+len(endTag)]) != endTag || !f.hasIP {
				return false
			}
			r.in.advance(i + len(endTag))
			r.rec.addFrame(&f)
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
		text := b[from : from+n]
		switch {
		case s != nil && s.isSet(), tag == "<ip>" && f.hasIP, tag == "<line>" && f.line != 0:
			return false // a field occurs twice
		case s != nil:
			*s = r.rec.span(from, text)
		default:
			v, ok := parseNumber(text)
			if !ok {
				return false
			}
			if tag == "<ip>" {
				f.ip, f.hasIP = v, true
			} else {
				f.line = v
			}
		}
	}
}
