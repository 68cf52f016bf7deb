package html

// A group is the HTML element around the backtraces of a report, each with the text before it. A
// wide window shows them side by side.
//
// Whether another backtrace belongs to a group is known only when it arrives. So the group is
// closed after each backtrace. If another one follows, groupMore replaces groupEnd, which has as
// many bytes. piece and at are the place of the last groupEnd; at is 0 if there is none.
type group struct{ piece, at int }

const (
	groupBegin = "<div class=\"g\"><div>\n"
	groupEnd   = "</div>\n"
	groupMore  = "<div>\n\n"
)

// begin begins the part of a group for a backtrace, and reports whether it did. A repeated
// backtrace begins no group.
func (g *group) begin(p *Page, isNew, beside bool) bool {
	switch {
	case beside && g.at > 0 && g.piece == len(p.pieces):
		copy(p.html[g.at:], groupMore)
	case isNew:
		p.html = append(p.html, groupBegin...)
	default:
		g.at = 0
		return false
	}
	return true
}

// end ends the part that begin has begun.
func (g *group) end(p *Page, begun bool) {
	if begun {
		p.html = append(p.html, groupEnd...)
		*g = group{len(p.pieces), len(p.html)}
		p.html = append(p.html, groupEnd...)
	}
}

// A restGroup is a group of a large page, whose backtraces have no text before them: it stays open.
type restGroup struct {
	open   bool
	broken bool // the backtrace before the next one is not in the group
}

// begin begins the part for a backtrace.
func (g *restGroup) begin(dst []byte, beside bool) []byte {
	if beside && g.open && !g.broken {
		return append(dst, groupEnd+"<div>\n"...)
	}
	dst = append(g.end(dst), groupBegin...)
	*g = restGroup{open: true}
	return dst
}

// end ends the group, if one is open.
func (g *restGroup) end(dst []byte) []byte {
	if g.open {
		dst = append(dst, groupEnd+groupEnd...)
	}
	g.open = false
	return dst
}
