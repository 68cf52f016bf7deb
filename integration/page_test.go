//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// crashArgs make symfilter find the debug files of testdata/crash.log.
func crashArgs() []string {
	return []string{"--debug-file-directory", filepath.Join(checkout, "testdata", "debug"), "--no-default-debug-directories"}
}

// crashPage writes the page of testdata/crash.log with a hexdict at its end. It returns the path of
// the page and the text of the log.
func crashPage(t *testing.T, flags ...string) (page, text string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(checkout, "testdata", "crash.log"))
	if err != nil {
		t.Fatal(err)
	}
	log = append(log, "registers {{{hexdict:rip:0x00007ffff7fbd917 rsp:0x7ffe00000000}}}\n"...)
	return pageOf(t, log, append(crashArgs(), flags...)...)
}

// sourceArgs make symfilter find the source of testdata/crash.log and link to it.
func sourceArgs() []string {
	dir := filepath.Join(checkout, "testdata")
	return []string{"--source", "--source-root", dir, "--prefix-map", "/src=" + dir, "--source-url", "https://example.org{path}#L{line}"}
}

// pageOf writes the page of a log and returns its path and the text of the log.
func pageOf(t *testing.T, log []byte, flags ...string) (page, text string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "page.html")
	page = run(t, log, command, append([]string{"--output=html"}, flags...)...)
	if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	return name, run(t, log, command, append([]string{"--color=never"}, flags...)...)
}

// logText is the text of the log in the plain part of a page: see package internal/html.
const logText = `[...document.querySelectorAll("main pre:not([class]), main code")].map(e => e.textContent).join("")`

// isQuiet fails the test if the page printed a message, if the browser reported one, or if the page
// requested anything other than itself.
func (p *tab) isQuiet(t *testing.T, address string) {
	t.Helper()
	for _, m := range p.printed() {
		t.Error(m)
	}
	address, _, _ = strings.Cut(address, "#")
	for _, a := range p.requested() {
		if a, _, _ = strings.Cut(a, "#"); a != address {
			t.Errorf("requested %s", a)
		}
	}
}

// The page of a crash must work in a browser: with mouse and keys, light and dark, with and without
// scripts.
func TestThePageOfACrashWorksInABrowser(t *testing.T) {
	b := startChromium(t)
	name, text := crashPage(t)
	address := "file://" + name

	t.Run("is the log", func(t *testing.T) {
		p := b.open(t, address, pageOptions{})
		if diff := cmp.Diff(text, value[string](t, p, logText)); diff != "" {
			t.Errorf("text output (-), text of the page (+):\n%s", diff)
		}
		p.isQuiet(t, address)
	})

	t.Run("frames fold", func(t *testing.T) {
		p := b.open(t, address, pageOptions{})
		visible := `document.querySelector("details.y pre").checkVisibility({contentVisibilityAuto: true})`
		for range 2 {
			if value[bool](t, p, visible) {
				t.Fatal("frames of the system are not folded")
			}
			p.click(t, "details.y > summary")
			p.until(t, visible)
			p.press(t, "Enter") // the summary has the focus
			p.until(t, "!"+visible)
		}
		closed := `document.querySelectorAll("details:not([open])").length`
		before := value[int](t, p, closed)
		p.click(t, "header button")
		p.until(t, closed+" === 0")
		p.click(t, "header button")
		p.until(t, fmt.Sprintf("%s >= %d", closed, before))
		p.isQuiet(t, address)
	})

	t.Run("a value has an answer", func(t *testing.T) {
		p := b.open(t, address, pageOptions{})
		p.click(t, "[popovertarget]")
		p.until(t, `document.querySelector("[popover]:popover-open")?.innerText.includes("Pool<ledger::Order, 64ul>::next")`)
		// the answer is next to the value and within the window
		p.until(t, `(() => {
			const v = document.querySelector("[popovertarget]").getBoundingClientRect();
			const r = document.querySelector("[popover]:popover-open").getBoundingClientRect();
			return Math.min(Math.abs(r.top - v.bottom), Math.abs(v.top - r.bottom)) < 10 && r.left >= 0 && r.right <= innerWidth;
		})()`)
		p.press(t, "Escape")
		p.until(t, `!document.querySelector("[popover]:popover-open")`)
		p.isQuiet(t, address)
	})

	t.Run("the index has links", func(t *testing.T) {
		p := b.open(t, address, pageOptions{height: 300})
		p.click(t, "header a[href='#index']")
		p.until(t, `document.querySelector("#index").getBoundingClientRect().top < innerHeight`)
		p.click(t, "#index a[href^='#L']")
		p.until(t, `CSS.highlights.get("now").size === 1 && [...CSS.highlights.get("now")][0].toString().includes("#0.1  0x00007ffff7fbd917")`)
		p.click(t, "#index a[href='#c2']")
		p.until(t, `location.hash === "#c2" && document.querySelector("#c2").getBoundingClientRect().top < innerHeight`)
		p.isQuiet(t, address)
	})

	t.Run("a line has an address", func(t *testing.T) {
		lines := strings.SplitAfter(text, "\n")
		for _, number := range []int{2, 15, len(lines) - 1} {
			at := address + "#L" + strconv.Itoa(number)
			p := b.open(t, at, pageOptions{height: 300})
			marked := `[...CSS.highlights.get("now")].map(r => r.toString()).join()`
			p.until(t, marked+` !== ""`)
			if got, want := value[string](t, p, marked), strings.TrimSuffix(lines[number-1], "\n"); got != want {
				t.Errorf("line %d is %q, want %q", number, got, want)
			}
			p.until(t, `(r => r.height > 0 && r.top >= 0 && r.bottom <= innerHeight)([...CSS.highlights.get("now")][0].getBoundingClientRect())`)
		}
	})

	t.Run("copied text is the log", func(t *testing.T) {
		p := b.open(t, address, pageOptions{})
		value[bool](t, p, `document.addEventListener("copy", e => { document.title = e.clipboardData.getData("text/plain"); e.preventDefault(); })`)
		value[bool](t, p, `getSelection().selectAllChildren(document.body); document.execCommand("copy")`)
		// document.title has one blank for each run of blanks
		if got, want := value[string](t, p, "document.title"), strings.Join(strings.Fields(text), " "); got != want {
			t.Errorf("copied\n%s\nwant\n%s", got, want)
		}
	})

	t.Run("paper has all frames", func(t *testing.T) {
		p := b.open(t, address, pageOptions{})
		const closed = `document.querySelectorAll("details:not([open])").length`
		before := value[int](t, p, closed)
		value[bool](t, p, `document.addEventListener("toggle", () => { document.title = "paper"; }, {capture: true, once: true})`)
		p.send(t, "Page.printToPDF", nil, nil)
		p.until(t, `document.title === "paper"`) // because frames were unfolded
		p.until(t, fmt.Sprintf("%s === %d", closed, before))
		p.isQuiet(t, address)
	})

	t.Run("light and dark", func(t *testing.T) {
		const colors = `(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))`
		light := value[[]string](t, b.open(t, address, pageOptions{}), colors)
		dark := value[[]string](t, b.open(t, address, pageOptions{dark: true}), colors)
		if want := []string{"rgb(255, 255, 255)", "rgb(27, 30, 34)"}; !slices.Equal(light, want) {
			t.Errorf("light: %q, want %q", light, want)
		}
		if want := []string{"rgb(21, 23, 27)", "rgb(226, 229, 233)"}; !slices.Equal(dark, want) {
			t.Errorf("dark: %q, want %q", dark, want)
		}
	})

	for _, width := range []int{400, 1000, 1600} {
		t.Run(fmt.Sprint(width, " pixels"), func(t *testing.T) {
			p := b.open(t, address, pageOptions{width: width})
			if got := value[int](t, p, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); got != 0 {
				t.Errorf("the page is %d pixels wider than the window", got)
			}
		})
	}

	t.Run("without scripts", func(t *testing.T) {
		p := b.open(t, address, pageOptions{noScripts: true})
		isReadable(t, p)
		p.click(t, "details.y > summary")
		p.click(t, "[popovertarget]")
		if !value[bool](t, p, `document.querySelector("details.y").open && !!document.querySelector("[popover]:popover-open")`) {
			t.Error("frames or answers need scripts")
		}
		p.isQuiet(t, address)
	})

	// Jenkins serves files of a build with this header: no scripts, and no inline styles.
	t.Run("under Jenkins' header", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self'")
			http.ServeFile(w, r, name)
		}))
		t.Cleanup(server.Close)
		p := b.open(t, server.URL+"/page", pageOptions{})
		isReadable(t, p)
		if value[string](t, p, "getComputedStyle(document.body).margin") != "8px" {
			t.Error("the style was applied: the header is not Jenkins'")
		}
	})
}

// Each frame of the program must show its source line, with the lines around it, and a link. The
// source must not become part of the log's text.
func TestThePageOfACrashShowsSourceInABrowser(t *testing.T) {
	b := startChromium(t)
	name, _ := crashPage(t, sourceArgs()...)
	address := "file://" + name
	p := b.open(t, address, pageOptions{})
	p.click(t, "header button") // unfold all

	type frame struct{ Line, Mark, Link string }
	got := value[[]frame](t, p, `[...document.querySelectorAll("details.f")].map(f => ({
		Line: f.querySelector("summary").innerText.trim().split(/\s+/)[0],
		Mark: f.querySelector("pre.s mark")?.innerText.trim().replace(/\s+/g, " ") ?? "",
		Link: f.querySelector("p a")?.href.replace(/.*testdata/, "") ?? "",
	}))`)
	want := []frame{
		{"#0.1", "33 | while (i < N && !slots_[i].used) i++;", "/inventory/pool.h#L33"},
		{"#0.2", "13 | for (const Order *o = values.next(0); o != nullptr; o = values.next(values.index(o) + 1))", "/inventory/ledger.cc#L13"},
		{"#0", "27 | return Money{sum(*static_cast<Orders *>(orders_), shelf)};", "/inventory/ledger.cc#L27"},
		{"#1.1", "25 | return clamp<int64_t>(book.total(shelf).cents, 0, 1000000);", "/inventory/main.cc#L25"},
		{"#1", "32 | shelves[i].balance = balance_of(book, i);", "/inventory/main.cc#L32"},
	}
	if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
		t.Errorf("frames with their source (-want +got):\n%s", diff)
	}
	for _, f := range got {
		if f.Mark == "" || f.Link == "" {
			t.Errorf("frame %+v has no source or no link", f)
		}
	}
	if copied := value[string](t, p, logText); strings.Contains(copied, "static_cast<Orders *>") {
		t.Errorf("the text of the log has source text:\n%s", copied)
	}
	p.isQuiet(t, address)
}

// isReadable checks that the first crash of testdata/crash.log is readable: each frame has a line
// of its own.
func isReadable(t *testing.T, p *tab) {
	t.Helper()
	shown := value[string](t, p, "document.body.innerText")
	// without the style, blanks within a line of <code> are folded
	blanks := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	for _, frame := range []string{
		"#0.1  0x00007ffff7fbd917 Pool<ledger::Order, 64ul>::next(unsigned long) const /src/inventory/pool.h:33:5 (libledger.so+0x1917)",
		"#0    0x00007ffff7fbd917 ledger::Book::total(unsigned int) const /src/inventory/ledger.cc:27:16 (libledger.so+0x1917)",
		"#3    0x0000555555555d85 main /src/inventory/main.cc:59:10 (inventory+0x1d85)",
	} {
		found := false
		for line := range strings.Lines(shown) {
			found = found || blanks(line) == blanks(frame)
		}
		if !found {
			t.Errorf("no line with %q; shown is\n%s", frame, shown)
		}
	}
}

// The page of an AddressSanitizer report with three backtraces must show each of them like the text
// output.
func TestThePageOfASanitizerReportIsTheReport(t *testing.T) {
	need(t, "clang-19", "g++")
	need(t, sanitizerRuntime(t))
	dir := t.TempDir()
	program := filepath.Join(dir, "uaf")
	run(t, nil, "clang-19", "-x", "c++", "-g", "-O1", "-fsanitize=address",
		filepath.Join(checkout, "integration", "testdata", "uaf.cc"), "-lstdc++", "-o", program)
	log := crash(t, dir, []string{"ASAN_OPTIONS=enable_symbolizer_markup=1"}, program)
	text := run(t, log, command, "--color=never")
	name, _ := pageOf(t, log, "--source", "--source-root="+checkout)
	b := startChromium(t)
	p := b.open(t, "file://"+name, pageOptions{})
	if diff := cmp.Diff(text, value[string](t, p, logText)); diff != "" {
		t.Errorf("text output (-), text of the page (+):\n%s", diff)
	}
	if n := value[int](t, p, `document.querySelectorAll("main details.b").length`); n != 3 {
		t.Errorf("%d backtraces, want those of the use, the free and the allocation", n)
	}
	for width, columns := range map[int]int{420: 1, 1400: 3} {
		p := b.open(t, "file://"+name, pageOptions{width: width})
		if n := value[int](t, p, `new Set([...document.querySelectorAll(".g .b")].map(e => e.getBoundingClientRect().left)).size`); n != columns {
			t.Errorf("a window of %d pixels has %d columns, want %d", width, n, columns)
		}
	}
	if !value[bool](t, p, `[...document.querySelectorAll("pre.s mark")].some(e => e.textContent.includes("return value[i];"))`) {
		t.Error("the line that used the memory is not shown")
	}
	p.isQuiet(t, "file://"+name)
}

// largeLog returns a log of at least size bytes, with crashes of testdata/crash.log in it. Line N
// ends with "line N".
func largeLog(t *testing.T, size int) []byte {
	t.Helper()
	crash, err := os.ReadFile(filepath.Join(checkout, "testdata", "crash.log"))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for i := 0; log.Len() < size; i++ {
		if i%100_000 == 50_000 {
			log.Write(crash)
		}
		fmt.Fprintf(&log, "INFO %d\n", i)
	}
	log.WriteString("\x1b[31mthe\x1b[0m LAST word\n")
	return log.Bytes()
}

func (p *tab) enterWord(t *testing.T, word string) {
	t.Helper()
	p.click(t, "[role=search] input")
	value[any](t, p, `document.querySelector("[role=search] input").select()`)
	p.send(t, "Input.insertText", map[string]any{"text": word}, nil)
}

// The page must contain every line of a large log. The page's window must show any line that a
// link, a key, the wheel, the scroll bar or a search leads to.
func TestThePageOfALargeLogWorksInABrowser(t *testing.T) {
	name, text := pageOf(t, largeLog(t, 18<<20), crashArgs()...)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	address := "file://" + name
	b := startChromium(t)
	p := b.open(t, address, pageOptions{})
	p.until(t, `document.querySelector("#view").dataset.loaded`)
	const row = `(n => [...document.querySelectorAll("#view .row")].find(r => r.querySelector("a").hash === "#L" + n)?.querySelector("code").textContent)`
	shown := func(number int) string {
		t.Helper()
		p.until(t, fmt.Sprintf("%s(%d) !== undefined", row, number))
		return value[string](t, p, fmt.Sprintf("%s(%d)", row, number))
	}
	at := func(number int) {
		t.Helper()
		if got, want := shown(number), lines[number-1]+"\n"; got != want {
			t.Errorf("line %d is %q, want %q", number, got, want)
		}
		p.until(t, fmt.Sprintf(`(() => {
			const r = [...document.querySelectorAll("#view .row")].find(r => r.querySelector("a").hash === "#L%d")?.getBoundingClientRect();
			const v = document.querySelector("#view").getBoundingClientRect();
			return r && r.bottom > v.top && r.top < v.bottom && v.top < innerHeight && v.bottom > 0;
		})()`, number))
	}
	top := func() int {
		t.Helper()
		return value[int](t, p, `Number(document.querySelector("#view").dataset.top)`)
	}
	first := top()

	if !value[bool](t, p, `document.querySelector("#index").getBoundingClientRect().bottom <= document.querySelector("main").getBoundingClientRect().top`) {
		t.Error("the summary is not before the log")
	}
	if value[bool](t, p, `!!document.querySelector("#blocked")`) {
		t.Error("the page reports that scripts may not run")
	}
	if head := value[string](t, p, logText); head != strings.Join(lines[:first-1], "\n")+"\n" {
		t.Errorf("the plain part is not lines 1 to %d", first-1)
	}
	if got, want := shown(first), lines[first-1]+"\n"; got != want {
		t.Errorf("the first line in the window is %q, want %q", got, want)
	}

	// a URL that ends in #L and a line number must show that line
	for _, number := range []int{first + 1, len(lines) / 2, len(lines)} {
		p.navigate(t, address+"#L"+strconv.Itoa(number))
		at(number)
	}

	// keys move the window from one end to the other
	value[bool](t, p, `document.querySelector("#view").focus()`)
	p.press(t, "Home")
	at(first)
	p.press(t, "ArrowDown")
	p.until(t, fmt.Sprintf(`document.querySelector("#view").dataset.top == %d`, first+1))
	p.press(t, "PageDown")
	p.until(t, fmt.Sprintf(`document.querySelector("#view").dataset.top > %d`, first+10))
	p.press(t, "PageUp")
	p.until(t, fmt.Sprintf(`document.querySelector("#view").dataset.top == %d`, first+1))
	p.press(t, "End")
	at(len(lines))

	// A turn of the wheel moves 5 lines of 18 or 19 pixels, as in any other element.
	p.press(t, "Home")
	at(first)
	center := value[[]float64](t, p, `(r => [r.x + r.width/2, r.y + r.height/2])(document.querySelector("#view").getBoundingClientRect())`)
	p.send(t, "Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": center[0], "y": center[1], "deltaX": 0, "deltaY": 95}, nil)
	p.until(t, fmt.Sprintf(`document.querySelector("#view").dataset.top == %d`, first+5))

	// The scroll bar reaches every part, although it has fewer positions than the lines have
	// pixels.
	for _, part := range []float64{0.25, 0.5, 1} {
		value[bool](t, p, fmt.Sprintf(`(v => { v.scrollTop = %g * (v.scrollHeight - v.clientHeight); })(document.querySelector("#view"))`, part))
		want := first + int(part*float64(len(lines)-first))
		p.until(t, fmt.Sprintf(`Math.abs(document.querySelector("#view").dataset.top - %d) < 100`, want))
	}
	at(len(lines))

	// The search has as many matches as a case-insensitive search in the text.
	search := func(word string) {
		t.Helper()
		p.enterWord(t, word)
	}
	found := func(want string) {
		t.Helper()
		p.until(t, fmt.Sprintf(`document.querySelector("output").textContent === %q`, want))
	}
	marked := func() string {
		t.Helper()
		return value[string](t, p, `document.querySelector("#view mark.now")?.closest(".row").querySelector("code").textContent ?? ""`)
	}
	n := strings.Count(strings.ToLower(text), "book::total")
	search("BOOK::Total")
	found(fmt.Sprintf("1 of %d", n))
	p.press(t, "Enter")
	found(fmt.Sprintf("2 of %d", n))
	p.press(t, "Shift+Enter")
	p.press(t, "Shift+Enter") // from the first match to the last
	found(fmt.Sprintf("%d of %d", n, n))
	p.click(t, "[role=search] button:last-of-type")
	found(fmt.Sprintf("1 of %d", n))
	if !strings.Contains(marked(), "ledger::Book::total") {
		t.Errorf("the match is in %q", marked())
	}
	search("the last") // the match contains a change of colour
	found("1 of 1")
	if got, want := marked(), "the LAST word\n"; got != want {
		t.Errorf("the match is in %q, want %q", got, want)
	}
	at(len(lines))
	search("no such word")
	found("Not found")
	// a match in the plain part is shown in the plain part
	search("shelf glue")
	p.until(t, `document.querySelector("output").textContent.startsWith("1 of ")`)
	p.isQuiet(t, address)

	// without scripts, the head and every crash are readable
	p = b.open(t, address, pageOptions{noScripts: true})
	isReadable(t, p)
	if !strings.Contains(value[string](t, p, `document.querySelector("#blocked").innerText`), "scripts") {
		t.Error("the page does not report that a part needs scripts")
	}
}
