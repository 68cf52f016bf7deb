package html

import (
	"cmp"
	"slices"
	"strconv"
)

const indexTitle = "Summary"

// Bounds of the summary.
const (
	maxKinds = 16 // kinds in the list
	maxOpen  = 20 // backtraces of an index that is unfolded at first
)

// index appends the summary: the numbers of crashes and errors by kind, and the distinct
// backtraces.
func (p *Page) index() {
	b := append(p.out, "<nav id=\"index\" aria-labelledby=\"index-title\">\n<h2 id=\"index-title\">"+indexTitle+"</h2>\n"...)
	d := &p.distinct
	if len(d.entries) == 0 {
		p.out = append(b, "<p>No backtraces.</p>\n</nav>\n"...)
		return
	}
	b = d.appendKinds(b)
	all := d.others
	for _, e := range d.entries {
		all += e.times
	}
	b = append(b, "<details class=\"t\""...)
	if len(d.entries) <= maxOpen {
		b = append(b, " open"...)
	}
	b = append(appendCount(append(b, "><summary>Backtraces: "...), all), ", different: "...)
	b = append(appendCount(b, int64(len(d.entries))), "</summary>\n"...)
	b = append(b, "<table>\n<thead><tr><th scope=\"col\">Backtrace</th><th scope=\"col\">Times</th><th scope=\"col\">First</th><th scope=\"col\">Last</th><th scope=\"col\">After the line</th></tr></thead>\n<tbody>\n"...)
	for _, e := range d.entries {
		b = e.appendNumber(append(b, "<tr><td>"...))
		b = append(append(b, e.label...), "</td><td>"...)
		b = append(appendCount(b, e.times), "</td><td>"...)
		b = append(e.first.append(b), "</td><td>"...)
		if e.times > 1 {
			b = e.last.append(b)
		}
		b = append(b, "</td><td>"...)
		b = append(append(b, e.message...), "</td></tr>\n"...)
	}
	b = append(b, "</tbody>\n</table>\n"...)
	if d.others > 0 {
		b = append(appendCount(append(b, "<p>"...), d.others), " more backtraces are not listed: only the first "...)
		b = append(appendCount(b, maxDistinct), " distinct backtraces are counted.</p>\n"...)
	}
	p.out = append(b, "</details>\n</nav>\n"...)
}

// A kindCount counts the crashes or errors of a kind.
type kindCount struct {
	kind             string
	times, different int64
	first            *entry
}

// kinds returns the kinds of crashes and errors, most frequent first.
func (d *distinct) kinds() (all []*kindCount) {
	byKind := make(map[string]*kindCount)
	for _, e := range d.entries {
		if e.kind == "" {
			continue
		}
		k := byKind[e.kind]
		if k == nil {
			k = &kindCount{kind: e.kind, first: e}
			byKind[e.kind] = k
			all = append(all, k)
		}
		k.times += e.times
		k.different++
	}
	slices.SortStableFunc(all, func(a, b *kindCount) int { return cmp.Compare(b.times, a.times) })
	return all
}

// appendKinds appends the number of crashes and errors, in all and of the most frequent kinds.
func (d *distinct) appendKinds(dst []byte) []byte {
	kinds := d.kinds()
	if len(kinds) == 0 {
		return append(dst, "<p>Crashes and errors: none.</p>\n"...)
	}
	var times, different int64
	for _, k := range kinds {
		times += k.times
		different += k.different
	}
	dst = appendCount(append(dst, "<p>Crashes and errors: <b>"...), times)
	dst = append(appendCount(append(dst, "</b>, different: <b>"...), different), "</b></p>\n<ul>\n"...)
	for _, k := range kinds[:min(len(kinds), maxKinds)] {
		dst = appendCount(append(dst, "<li>"...), k.times)
		dst = appendEscaped(append(dst, " "...), []byte(k.kind))
		if k.different > 1 {
			dst = appendCount(append(dst, ", different: "...), k.different)
		}
		dst = k.first.appendNumber(append(dst, " · "...))
		dst = append(append(dst, k.first.label...), "</li>\n"...)
	}
	if n := len(kinds) - maxKinds; n > 0 {
		dst = append(appendCount(append(dst, "<li>other kinds: "...), int64(n)), "</li>\n"...)
	}
	return append(dst, "</ul>\n"...)
}

// appendNumber appends the number of the backtrace, as a link if it is on the page.
func (e *entry) appendNumber(dst []byte) []byte {
	if e.absent {
		return strconv.AppendInt(dst, int64(e.number), 10)
	}
	dst = strconv.AppendInt(append(dst, `<a href="#c`...), int64(e.number), 10)
	return append(strconv.AppendInt(append(dst, `">`...), int64(e.number), 10), "</a>"...)
}
