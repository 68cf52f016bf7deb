// Package pagetest checks a page of package internal/html as a browser reads it: elements,
// attributes, and the text of the log. Only tests import this package.
package pagetest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// allowed lists the elements of a page, with a pattern for each attribute.
var allowed = map[string]map[string]string{
	"html": {"lang": "en"}, "head": {}, "meta": {"charset": "utf-8", "http-equiv": "Content-Security-Policy", "content": ".*", "name": "viewport|referrer"},
	"title": {}, "style": {}, "body": {}, "header": {}, "h1": {}, "main": {}, "h2": {"id": "rest-title|index-title"},
	"p": {"id": "blocked"}, "a": {"href": `#index|#[cL][1-9][0-9]*|[a-z][a-z0-9+.-]*:[\x21-\x7e]*`, "rel": "noreferrer"},
	"pre": {"class": "s"}, "br": {}, "span": {"class": "d|[acg][0-9]+( [acg][0-9]+)*"}, "b": {}, "mark": {}, "code": {},
	"details": {"class": "b|b o|r|f|f u|y|t", "id": "c[1-9][0-9]*", "open": ""}, "summary": {},
	"button": {"type": "button", "popovertarget": "h[1-9][0-9]*"}, "div": {"class": "g", "popover": "", "id": "h[1-9][0-9]*|view"},
	"section": {"id": "rest", "aria-labelledby": "rest-title"}, "nav": {"id": "index", "aria-labelledby": "index-title"},
	"ul": {}, "li": {}, "table": {}, "thead": {}, "tbody": {}, "tr": {}, "th": {"scope": "col"}, "td": {},
	"script": {"type": "text/x-gz", "data-first": "[1-9][0-9]*", "data-lines": "[1-9][0-9]*"},
}

// forbidden are schemes that a browser executes.
var forbidden = regexp.MustCompile(`(?i)^\s*(javascript|data|vbscript):`)

// Page is a parsed page.
type Page struct {
	root *html.Node
	ids  map[string]bool
}

// Parse parses a page. It fails for an element, an attribute or a nesting that is not allowed. It
// also fails for a repeated id, and for a popovertarget or an internal link to a missing id. Links
// to lines are not checked, since the script finds the line.
func Parse(page []byte) (*Page, error) {
	if !bytes.HasPrefix(page, []byte("<!DOCTYPE html>\n")) {
		return nil, fmt.Errorf("the page begins with %.40q", page)
	}
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	p := &Page{root: root, ids: map[string]bool{}}
	var errs []error
	p.walk(root, func(n *html.Node) {
		if err := p.check(n); err != nil {
			errs = append(errs, err)
		}
	})
	p.walk(root, func(n *html.Node) {
		for _, a := range n.Attr {
			to, local := strings.CutPrefix(a.Val, "#")
			line := strings.HasPrefix(to, "L") // the script finds it
			if (a.Key == "popovertarget" || a.Key == "href" && local && !line) && !p.ids[to] {
				errs = append(errs, fmt.Errorf("%s=%q leads to no element", a.Key, a.Val))
			}
		}
	})
	return p, errors.Join(errs...)
}

func (p *Page) walk(n *html.Node, visit func(*html.Node)) {
	visit(n)
	for c := range n.ChildNodes() {
		p.walk(c, visit)
	}
}

// check checks an element, its attributes and its nesting.
func (p *Page) check(n *html.Node) error {
	switch n.Type {
	case html.CommentNode:
		return fmt.Errorf("a comment: %q", n.Data)
	case html.TextNode:
		if strings.ContainsFunc(n.Data, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) && !within(n, "script", "style") {
			return fmt.Errorf("control characters in %q", n.Data)
		}
		return nil
	case html.ElementNode:
	default:
		return nil
	}
	attributes, ok := allowed[n.Data]
	if !ok {
		return fmt.Errorf("element %s", n.Data)
	}
	for _, a := range n.Attr {
		pattern, ok := attributes[a.Key]
		if !ok || !regexp.MustCompile("^(?:"+pattern+")$").MatchString(a.Val) || a.Key == "href" && forbidden.MatchString(a.Val) {
			return fmt.Errorf("%s with %s=%q", n.Data, a.Key, a.Val)
		}
		if a.Key == "id" {
			if p.ids[a.Val] {
				return fmt.Errorf("two elements have the id %s", a.Val)
			}
			p.ids[a.Val] = true
		}
		if a.Key == "popovertarget" && attribute(n, "type") != "button" {
			return errors.New("a button without its type")
		}
	}
	phrasing := n.Data == "span" || n.Data == "b" || n.Data == "mark" || n.Data == "code" || n.Data == "a" || n.Data == "button" || n.Data == "br"
	switch {
	case within(n, "pre") && !phrasing, within(n, "summary") && (!phrasing || n.Data == "a" || n.Data == "button"), within(n, "p") && !phrasing:
		return fmt.Errorf("%s within %s", n.Data, n.Parent.Data)
	case n.Data == "summary" && (n.Parent.Data != "details" || n.PrevSibling != nil):
		return errors.New("a summary is not the first in its details")
	case n.Data == "a" && within(n, "a", "button"), n.Data == "button" && within(n, "a", "button"):
		return fmt.Errorf("%s within a link or a button", n.Data)
	}
	return nil
}

// within reports whether n is in an element with one of the names.
func within(n *html.Node, names ...string) bool {
	for n = n.Parent; n != nil; n = n.Parent {
		for _, name := range names {
			if n.Type == html.ElementNode && n.Data == name {
				return true
			}
		}
	}
	return false
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// Text returns the text of the log, by the rule in the documentation of package internal/html.
func (p *Page) Text() (string, error) {
	var text strings.Builder
	var err error
	p.walk(p.root, func(n *html.Node) {
		switch {
		case n.Type == html.TextNode && within(n, "main") && (within(n, "code") || inPlainPre(n)):
			text.WriteString(n.Data)
		case n.Type == html.ElementNode && n.Data == "script" && attribute(n, "type") == "text/x-gz":
			chunk, e := Chunk(n.FirstChild.Data)
			if e == nil {
				e = countLines(n, chunk)
			}
			err = errors.Join(err, e)
			text.WriteString(unmarked(chunk))
		}
	})
	return text.String(), err
}

func inPlainPre(n *html.Node) bool {
	for n = n.Parent; n != nil; n = n.Parent {
		if n.Data == "pre" {
			return attribute(n, "class") == ""
		}
	}
	return false
}

// Chunk returns the text of a chunk, with its marks. content is gzip in base64.
func Chunk(content string) (string, error) {
	packed, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
}

func countLines(n *html.Node, chunk string) error {
	lines := strings.Count(chunk, "\n")
	if !strings.HasSuffix(chunk, "\n") {
		lines++
	}
	if want := attribute(n, "data-lines"); strconv.Itoa(lines) != want {
		return fmt.Errorf("a chunk has %d lines, not data-lines=%s", lines, want)
	}
	return nil
}

// marks matches the marks at the beginning of a chunk's line: see package internal/html.
var marks = regexp.MustCompile(`^(\x05[^\x05\n]*\x05)?(\x04[0-9]*\x04)?[\x01-\x03]?`)

// unmarked returns the text of a chunk without its marks.
func unmarked(chunk string) string {
	var text strings.Builder
	for line := range strings.Lines(chunk) {
		for i, part := range strings.Split(line[len(marks.FindString(line)):], "\x1b") {
			if i%2 == 0 {
				text.WriteString(part)
			}
		}
	}
	return text.String()
}

// Find returns the text of each element with this name and class, in order.
func (p *Page) Find(name, class string) (all []string) {
	p.walk(p.root, func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == name && attribute(n, "class") == class {
			all = append(all, text(n))
		}
	})
	return all
}

// Outline returns a line for each kind of error in the summary, each group of backtraces, and each
// part that folds. The line of a group has its number of columns, the line of a part its class.
func (p *Page) Outline() string {
	var b strings.Builder
	p.walk(p.root, func(n *html.Node) {
		switch {
		case n.Data == "li":
			b.WriteString("* " + strings.TrimSpace(text(n)) + "\n")
		case n.Data == "div" && attribute(n, "class") == "g":
			columns := 0
			for c := range n.ChildNodes() {
				if c.Type == html.ElementNode {
					columns++
				}
			}
			fmt.Fprintf(&b, "columns: %d\n", columns)
		case n.Data == "summary":
			folded := " "
			if attribute(n.Parent, "class") != "" && !slices.ContainsFunc(n.Parent.Attr, func(a html.Attribute) bool { return a.Key == "open" }) {
				folded = "+"
			}
			fmt.Fprintf(&b, "%-3s %s %s\n", attribute(n.Parent, "class"), folded, strings.TrimSpace(text(n)))
		}
	})
	return b.String()
}

// text returns the text within n.
func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}
