package html

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a page, with reasons.
const (
	// A browser can show a page of this size within a second, and search it.
	maxSmall = 16 << 20 // bytes of HTML
	headSize = 1 << 20  // bytes of HTML at the beginning of a large page
	headRows = 2000     // lines at the beginning of a large page

	// lines of a <pre>: a browser lays out only the <pre> elements near the window
	blockRows = 200
	blockSize = 64 << 10 // bytes of a <pre> at a line end, after which the next one begins
	chunkSize = 1 << 20  // bytes of text of a chunk
	pieceSize = 1 << 20  // bytes of HTML in one array

	maxDistinct = 2000     // distinct backtraces in the index, about 1 KiB each
	maxSections = 16 << 20 // bytes of HTML of the backtraces of a large page
	maxValues   = 4096     // values with a button, each with a <div> for its details
	maxName     = 1 << 10  // bytes of a title, a function or a path outside of the text of the log
)

//go:embed page.css
var style string

//go:embed page.js
var script string

// A Page writes a page from beginning to end. It keeps a small page in memory, as HTML and as the
// text of chunks, and writes nothing before the page ends or becomes large. For a large page, it
// keeps 5 chunks: one that grows, and up to 4 that are compressed, each in a goroutine. No content
// of a log makes it fail. One goroutine at a time may use a Page.
type Page struct {
	title string
	small int    // maxSmall, unless Limit was called
	rows  int    // headRows, unless Limit was called
	out   []byte // finished bytes

	html   []byte   // end of <main> so far; nil if the page is large
	pieces [][]byte // HTML before html, in pieces, since one array would be copied when it grows
	size   int      // bytes of pieces
	head   int      // pieces in the head; 0 until the head is complete
	large  bool
	early  []byte // chunks of a nearly large page, compressed early by an idle processor
	block  block
	group  group
	rest   restGroup
	line   int64 // number of lines so far, including an unfinished one
	after  int64 // number of the first line after the head
	cut    bool  // the last line is not finished

	chunk chunk

	distinct distinct
	values   values
}

// A block is the state of the <pre> to which lines are added.
type block struct {
	open  bool
	folds bool // the block is in a <details>
	rows  int
	begin int // offset of the block's text in Page.html
}

// New returns a Page with this title, usually the name of the log.
func New(title string) *Page {
	return &Page{title: shorten(title), small: maxSmall, rows: headRows}
}

// Limit sets smaller bounds for tests. A page of more than size bytes is then large, and the head
// of a page ends after the given number of rows.
func (p *Page) Limit(size, rows int) { p.small, p.rows = size, rows }

// Take appends the finished bytes of the page to dst, and drops them.
func (p *Page) Take(dst []byte) []byte {
	if len(p.out) == 0 {
		return dst
	}
	dst = append(dst, p.out...)
	p.out = p.out[:0]
	if cap(p.out) > 4*chunkSize {
		p.out = nil
	}
	return dst
}

// Input begins the log of the next input, and prints its name.
func (p *Page) Input(name string) {
	name = shorten(name)
	p.endRow()
	p.group.at, p.rest.broken = 0, true
	if !p.large {
		p.closeBlock()
		p.html = appendEscaped(append(p.html, "<h2>"...), []byte(name))
		p.html = append(p.html, "</h2>\n"...)
	}
	if p.inChunks() {
		p.chunk.input = name
	}
}

// Fold folds the next lines under a title, until Unfold, a backtrace, or the end of the <pre>. A
// large page has no folds.
func (p *Page) Fold(title string) {
	p.endRow()
	if !p.large {
		p.closeBlock()
		p.html = appendEscaped(append(p.html, `<details class="y"><summary>`...), []byte(title))
		p.html = append(p.html, "</summary>\n"...)
		p.openBlock()
		p.block.folds = true
	}
}

// Unfold ends the fold that Fold began, if it is still open.
func (p *Page) Unfold() {
	p.endRow()
	if p.block.folds {
		p.closeBlock()
	}
}

// Text prints a line of the log, or a part of one, without its line end. Colour sequences
// become colours. ended is set if the line ends.
func (p *Page) Text(text []byte, ended bool) {
	p.row(ended)
	if !p.large {
		p.openBlock()
		p.html = appendLine(p.html, text, inElement)
		p.endText(ended)
	}
	if p.inChunks() {
		p.chunk.add(appendLine(p.chunk.begin(), text, inChunk), ended)
	}
	p.grown()
}

// row counts a line of the page at its first part. ended is set for the last part.
func (p *Page) row(ended bool) {
	if !p.cut {
		p.line++
	}
	p.cut = !ended
}

// endRow ends an unfinished line, whose rest does not follow.
func (p *Page) endRow() {
	if p.cut {
		p.Text(nil, true)
	}
}

// inChunks reports whether the next lines are also added to chunks, because the page is large or
// its head is complete.
func (p *Page) inChunks() bool { return p.head > 0 || p.large }

// openBlock opens a <pre>, unless one is open.
func (p *Page) openBlock() {
	if !p.block.open {
		p.room()
		p.html = append(p.html, "<pre>\n"...) // the line end is not part of the text
		p.block = block{open: true, begin: len(p.html)}
	}
}

// room reserves the memory for another block in html, so html is seldom copied when it grows. If
// html has pieceSize bytes or more, room first moves it to pieces.
func (p *Page) room() {
	if len(p.html) >= pieceSize {
		p.endPiece()
	}
	if cap(p.html)-len(p.html) < 2*blockSize {
		p.html = slices.Grow(p.html, len(p.html)+2*blockSize)
	}
}

// endPiece moves html to pieces, unless html is empty.
func (p *Page) endPiece() {
	if len(p.html) > 0 {
		p.pieces = append(p.pieces, p.html)
		p.size += len(p.html)
		p.html = make([]byte, 0, pieceSize+2*blockSize)
	}
}

// endText ends a line in the <pre>, or a part of one.
func (p *Page) endText(ended bool) {
	if !ended {
		return
	}
	p.html = append(p.html, '\n')
	p.block.rows++
	if p.block.rows >= blockRows || len(p.html)-p.block.begin >= blockSize {
		p.closeBlock()
	}
}

// closeBlock closes the <pre>, if one is open, and prints the popovers of its values.
func (p *Page) closeBlock() {
	if p.block.open {
		p.html = append(p.html, "</pre>\n"...)
		if p.block.folds {
			p.html = append(p.html, "</details>\n"...)
		}
		p.block = block{}
	}
	p.html = append(p.html, p.values.pending...)
	p.values.pending = p.values.pending[:0]
}

// grown is called after text was added. Depending on the size, it ends the head of the page,
// makes the page large, or compresses full chunks.
func (p *Page) grown() {
	size := p.size + len(p.html)
	switch {
	case p.large:
		p.out = p.chunk.packFull(p.out)
	case p.head == 0 && (!p.cut && (p.line >= int64(p.rows) || size >= headSize) || size >= min(4*headSize, p.small)):
		p.closeBlock()
		p.endPiece()
		p.head = len(p.pieces)
		if p.after = p.line + 1; p.cut {
			p.after--
		}
		p.chunk.next = p.after
	case size > p.small:
		p.enlarge()
	case size > p.small/4*3 && p.head > 0:
		p.early = p.chunk.packFull(p.early)
	}
}

func (p *Page) enlarge() {
	p.begin()
	p.out = append(p.out, "<main>\n"...)
	for _, piece := range p.pieces[:p.head] {
		p.out = append(p.out, piece...)
	}
	p.out = append(p.out, "</main>\n<section id=\"rest\" aria-labelledby=\"rest-title\">\n<h2 id=\"rest-title\">From line "...)
	p.out = strconv.AppendInt(p.out, p.after, 10)
	p.out = append(p.out, ` on</h2>
<p id="blocked">This part of the log is compressed. To show it, allow scripts, and use a browser that has DecompressionStream. The backtraces below need neither.</p>
<div id="view"></div>
`...)
	p.large = true
	p.endPiece()
	for _, s := range p.distinct.sections {
		if s.piece >= p.head {
			p.out = append(p.rest.begin(p.out, s.beside), p.pieces[s.piece][s.from:s.to]...)
			p.distinct.size += s.to - s.from
		}
	}
	p.html, p.pieces, p.distinct.sections, p.values, p.group = nil, nil, nil, values{}, group{}
	p.out = p.chunk.packFull(append(p.out, p.early...))
	p.early = nil
}

// begin begins the page, up to the end of <header>.
func (p *Page) begin() {
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	b.WriteString(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ` + sourceHash(style) +
		`; script-src ` + sourceHash(script) + `; base-uri 'none'; form-action 'none'">` + "\n")
	b.WriteString("<meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>")
	title := appendEscaped(nil, []byte(p.title))
	b.Write(title)
	b.WriteString("</title>\n<style>" + style + "</style>\n</head>\n<body>\n<header>\n<h1>")
	b.Write(title)
	b.WriteString("</h1>\n<p><a href=\"#index\">" + indexTitle + "</a></p>\n</header>\n")
	p.out = append(p.out, b.Bytes()...)
}

// sourceHash returns the expression of a content security policy that allows a style or a script.
func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// End ends the page. Nothing may be added after it; Take returns the last bytes.
func (p *Page) End() {
	if p.large {
		p.out = p.chunk.packAll(p.rest.end(p.out))
		p.out = append(p.out, "</section>\n"...)
		p.index() // the style shows it before the log
	} else {
		p.closeBlock()
		p.begin()
		p.index()
		p.out = append(p.out, "<main>\n"...)
		for _, piece := range append(p.pieces, p.html) {
			p.out = append(p.out, piece...)
		}
		p.out = append(p.out, "</main>\n"...)
		p.html, p.pieces = nil, nil
	}
	p.out = append(p.out, "<script>"+script+"</script>\n</body>\n</html>\n"...)
}

// shorten returns s. If it has more than maxName bytes, it is cut and ends in "…".
func shorten(s string) string {
	if len(s) > maxName {
		return strings.ToValidUTF8(s[:maxName], "") + "…"
	}
	return s
}
