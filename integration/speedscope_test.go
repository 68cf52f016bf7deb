//go:build linux

package integration

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// In a browser, speedscope must load the stacks of a profile in each form, and show the functions
// with their self costs.
func TestSpeedscopeLoadsTheStacksOfAProfile(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "valgrind", "gcc")
	app := filepath.Dir(pageTool(t, "speedscope", "dist", "release", "index.html"))
	shape := filepath.Join(checkout, "integration", "testdata", "callgrind", "shape.c")
	profile := callgrindFiles(t, []string{"--dump-instr=yes"}, builtProgram(t, "prof.c", with(gcc, "-O1", shape)...))[0]
	dir := t.TempDir()
	forms := []string{"pprof:stacks.pb.gz", "folded:stacks.folded", "speedscope:stacks.json"}
	args := []string{"callgrind", "--no-paths"}
	for _, f := range forms {
		form, name, _ := strings.Cut(f, ":")
		args = append(args, "--output="+form+":"+filepath.Join(dir, name))
	}
	run(t, nil, command, append(args, profile)...)
	self := readPlain(t, profile, 0, 1).self
	row := regexp.MustCompile(`(?m)^\t([\d,]+) \(.*\)\n\t(.*)$`)

	mux := http.NewServeMux()
	mux.Handle("/app/", http.StripPrefix("/app/", http.FileServer(http.Dir(app))))
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	server := httptest.NewServer(mux)
	defer server.Close()
	b := startChromium(t, "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
	for _, f := range forms {
		form, name, _ := strings.Cut(f, ":")
		t.Run(form, func(t *testing.T) {
			p := b.open(t, server.URL+"/app/index.html#profileURL="+server.URL+"/"+name, pageOptions{})
			p.until(t, `[...document.querySelectorAll("div")].some(d => d.textContent === "🥪Sandwich")`)
			value[any](t, p, `[...document.querySelectorAll("div")].find(d => d.textContent === "🥪Sandwich").click()`)
			p.until(t, `document.body.innerText.includes("fib")`)
			page := value[string](t, p, "document.body.innerText")
			shown := map[string]int64{} // only rows within the window are shown
			for _, m := range row.FindAllStringSubmatch(page, -1) {
				n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				shown[m[2]] += n
			}
			want := map[string]int64{}
			for name := range shown {
				// in other forms, speedscope shows a row for each source file of a function; only
				// fib and compare always have one row
				if form == "folded" || name == "fib" || name == "compare" {
					want[name] = self[name]
				} else {
					delete(shown, name)
				}
			}
			if d := cmp.Diff(want, shown); d != "" || shown["fib"] == 0 {
				t.Errorf("own costs (-callgrind, +speedscope):\n%s\nin\n%s", d, page)
			}
			if form == "speedscope" && !strings.Contains(page, "Ir, "+profile+": self costs and calls are exact; each chain of three or more functions is one of several possible chains") {
				t.Errorf("the page does not have the name of the profile:\n%.300s", page)
			}
			imported := 0
			for _, m := range p.printed() {
				if strings.Contains(m, `"value":"import`) {
					imported++
				}
				if !strings.Contains(m, `"source":"rendering"`) && !strings.HasPrefix(m, `console: {"type":"log"`) && !strings.HasPrefix(m, `console: {"type":"time`) {
					t.Errorf("the browser reports %.500s", m)
				}
			}
			if imported == 0 {
				t.Errorf("nothing was imported: %.2000s", p.printed())
			}
		})
	}
}
