package html

import (
	"fmt"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/pagetest"
)

// whole returns the page that write writes.
func whole(title string, write func(*Page)) []byte {
	p := New(title)
	write(p)
	p.End()
	return p.Take(nil)
}

// read parses a page, and compares the text of its log with want.
func read(t *testing.T, page []byte, want string) *pagetest.Page {
	t.Helper()
	p, err := pagetest.Parse(page)
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, page)
	}
	got, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("the text is\n%.1000q\nwant\n%.1000q", got, want)
	}
	return p
}

// backtrace returns a backtrace with frames of all kinds, and with text in each of its strings.
func backtrace(key, text string) *Backtrace {
	detail := func() *Detail {
		return &Detail{
			Function: text, File: text, Line: 7, URL: "https://example.org/?q=%3Cb%3E", Module: text, Offset: 0x10, BuildID: text, Reason: text, Note: text,
			Source: []SourceLine{{[]byte(text), false}, {[]byte(text), true}},
		}
	}
	return &Backtrace{Key: key, Time: []byte(text), Message: []byte(text), Kind: text, Role: text, Title: *detail(), About: 1, Rows: []Row{
		{Text: []byte("#0 " + text), Ended: true, Kind: System, Object: text},
		{Text: []byte("#1 " + text), Ended: true, Kind: Own, Detail: detail()},
		{Text: []byte("   " + text), Ended: true, Kind: Own, More: true},
		{Text: []byte(text), Ended: true},
		{Text: []byte("#2 " + text), Ended: true, Kind: Unresolved, Detail: detail()},
		{Text: []byte("#3 " + text), Ended: true, Kind: Own},
		{Text: []byte("#4 " + text), Ended: true, Kind: System, Object: text},
	}}
}

// visible returns text as a page shows it: with visible control characters.
func visible(text string) string { return string(escape.AppendText(nil, text, "\t")) }

// Whatever the fields contain, the page must have only its own elements and the text of the log.
func TestNoFieldIsMarkup(t *testing.T) {
	for _, s := range append(injections, everyByte(), strings.Repeat("x", 5000), strings.Repeat("é", 1000)) {
		// a line of the log has no line end, and its text has no colours
		line := strings.NewReplacer("\n", "", "\x1b[31m", "", "\x1b[0m", "").Replace(s)
		for _, rows := range []int{0, headRows} {
			var want strings.Builder
			add := func(lines ...string) {
				for _, l := range lines {
					want.WriteString(visible(l) + "\n")
				}
			}
			page := whole(s, func(p *Page) {
				for range rows {
					p.Text([]byte("x"), true)
					add("x")
				}
				p.Input(s)
				p.Text([]byte(line), true)
				add(line)
				p.Values([]byte("0x7 "+line), true, []Value{{0, 3, *backtrace("", s).Rows[1].Detail}, {2, 9, Detail{}}, {4, 4 + len(line), Detail{Module: s}}})
				add("0x7 " + line)
				for _, key := range []string{"a", "b", "a", ""} {
					b := backtrace(key, line)
					for _, r := range b.Rows {
						add(string(r.Text))
						if r.Detail != nil { // details are not log text: line ends are allowed
							*r.Detail = *backtrace("", s).Rows[1].Detail
						}
					}
					b.Time, b.Message, b.Kind, b.Role, b.Title = []byte(s), []byte(s), s, s, backtrace("", s).Title
					b.Beside = key == "b"
					p.Backtrace(b)
				}
				if rows > 0 {
					p.enlarge()
				}
			})
			read(t, page, want.String())
		}
	}
}

// A page of any size must have the text of the log. A large page must have the first lines and each
// new backtrace as plain HTML.
func TestLargePagesHaveTheTextInChunks(t *testing.T) {
	const small = 1 << 20
	for _, size := range []int{0, 1, small / 2, 3 * small} {
		var want strings.Builder
		known := 0
		page := whole("log", func(p *Page) {
			p.Limit(small, headRows)
			for i := 0; want.Len() < size; i++ {
				line := fmt.Sprintf("%d \x1b[1;31mERROR\x1b[0m <request> %x & %[2]x\t%[2]d", i, i*7919)
				p.Text([]byte(line), true)
				want.WriteString(strings.NewReplacer("\x1b[1;31m", "", "\x1b[0m", "").Replace(line) + "\n")
				if i%1000 == 77 {
					known = i / 5000
					b := backtrace(fmt.Sprint(known), "f<"+fmt.Sprint(known)+">")
					for _, r := range b.Rows {
						want.WriteString(string(r.Text) + "\n")
					}
					p.Backtrace(b)
				}
			}
			want.WriteString("the end")
			p.Text([]byte("the "), false)
			p.Text([]byte("end"), false)
		})
		p := read(t, page, want.String())
		if got := len(p.Find("details", "b")); size > 1 && got != known+1 {
			t.Errorf("of %d backtraces that differ, %d are on the page", known+1, got)
		}
		if large := strings.Contains(string(page), `<section id="rest"`); large != (size > small) {
			t.Errorf("a page for %d bytes is large: %v", size, large)
		} else if large && len(page) > size/2 {
			t.Errorf("a page for %d bytes has %d", size, len(page))
		}
	}
}

// The popovers of a page, its listed backtraces, and the text that it repeats outside of the log
// must be bounded. The page must show how many backtraces are not listed.
func TestPagesAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	var want strings.Builder
	page := whole("log", func(p *Page) {
		p.Limit(maxSmall, 10)
		for i := range maxValues + 10 {
			line := fmt.Sprintf("%#x", i)
			p.Values([]byte(line), true, []Value{{0, len(line), Detail{Module: "a", Offset: uint64(i)}}})
			want.WriteString(line + "\n")
		}
		for i := range maxDistinct + 1234 {
			b := backtrace(fmt.Sprint(i), fmt.Sprint(i))
			for _, r := range b.Rows {
				want.WriteString(string(r.Text) + "\n")
			}
			p.Backtrace(b)
		}
	})
	p := read(t, page, want.String())
	if n := len(p.Find("button", "")); n != maxValues {
		t.Errorf("%d buttons, want %d", n, maxValues)
	}
	if n := len(p.Find("details", "b")); n != maxDistinct {
		t.Errorf("%d backtraces that are new, want %d", n, maxDistinct)
	}
	if text := "<p>1,234 more backtraces are not listed: only the first 2,000 distinct backtraces are counted.</p>"; !strings.Contains(string(page), text) {
		t.Errorf("the page has no %s", text)
	}

	want.Reset()
	long := strings.Repeat("x", 20_000)
	page = whole("log", func(p *Page) {
		p.Limit(1000, 1)
		for i := range 500 {
			b := backtrace(fmt.Sprint(i), long)
			for _, r := range b.Rows {
				want.WriteString(string(r.Text) + "\n")
			}
			p.Backtrace(b)
		}
	})
	if len(page) > maxSections+4*chunkSize+500*2*maxName {
		t.Errorf("the page has %d bytes", len(page))
	}
	read(t, page, want.String())
}
