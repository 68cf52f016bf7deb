package html

// A group is the HTML element around the backtraces of a report, each with the text before it.
// A wide window shows them side by side.
//
// Another backtrace may join the group later, so the group is closed after each one. To continue,
// groupMore replaces groupEnd, which has as many bytes. The fields piece and at locate the last
// groupEnd. Without a groupEnd, at is 0.
type group struct{ piece, at int }

const (
	groupBegin = "<div class=\"g\"><div>\n"
	groupEnd   = "</div>\n"
	groupMore  = "<div>\n\n"
)

// begin opens the part of a group for a backtrace, and reports whether it did. If beside is set,
// the backtrace joins the open group, if there is one. Otherwise a new backtrace begins a group,
// and a repeated backtrace is in no group.
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

// end closes the part of the group that begin has opened. begun is the result of begin.
func (g *group) end(p *Page, begun bool) {
	if begun {
		p.html = append(p.html, groupEnd...)
		*g = group{len(p.pieces), len(p.html)}
		p.html = append(p.html, groupEnd...)
	}
}

// A restGroup is a group of a large page. It stays open, since its backtraces have no text
// before them.
type restGroup struct {
	open   bool
	broken bool // the preceding backtrace is not in the group
}

// begin opens the part of a group for a backtrace. If beside is set and the preceding backtrace is
// in the open group, the backtrace joins that group. Otherwise it begins a new group.
func (g *restGroup) begin(dst []byte, beside bool) []byte {
	if beside && g.open && !g.broken {
		return append(dst, groupEnd+"<div>\n"...)
	}
	dst = append(g.end(dst), groupBegin...)
	*g = restGroup{open: true}
	return dst
}

func (g *restGroup) end(dst []byte) []byte {
	if g.open {
		dst = append(dst, groupEnd+groupEnd...)
	}
	g.open = false
	return dst
}
