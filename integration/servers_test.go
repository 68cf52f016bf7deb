//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const libraries = 12 // libraries of the program that logs

// A chain has the log of a program that writes its own backtrace as markup, and the folder of the
// program's files. Each function in the backtrace calls the next one, which is in another library.
type chain struct {
	log string // markup of one backtrace through all libraries
	// folder of the program's stripped files and their separate debug files; the paths in the log
	// differ
	files string
}

// newChain builds the program, runs it, and moves its files away from their paths in the log.
func newChain(t *testing.T) chain {
	t.Helper()
	need(t, "gcc", "objcopy")
	base := t.TempDir()
	dir := filepath.Join(base, "built")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	emit := filepath.Join(checkout, "examples", "emit", "c", "emit.c")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	build := func(line string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", line)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	var script strings.Builder
	for i := libraries; i >= 1; i-- {
		next, lib := fmt.Sprintf("link%d", i+1), fmt.Sprintf("-L. -llink%d", i+1)
		if i == libraries {
			next, lib = "print_backtrace", ""
		}
		write(fmt.Sprintf("link%d.c", i), fmt.Sprintf("#include <stdio.h>\nvoid %s(void);\nvoid link%d(void) {\n  %s(); // line 4\n  fflush(stdout);\n}\n", next, i, next))
		fmt.Fprintf(&script, "gcc -g -O1 -fPIC -shared -Wl,--build-id,-rpath,'$ORIGIN' -o liblink%d.so link%[1]d.c %s\n", i, lib)
	}
	write("chain.c", "void link1(void);\nint main(void) {\n  link1(); // line 3\n  return 0;\n}\n")
	fmt.Fprintf(&script, "gcc -g -O1 -Wl,--build-id -rdynamic -Dmain=emit_main -o chain %s -x c - -L. -Wl,-rpath,'$ORIGIN',-rpath-link,. -llink1 <<'E'\n#undef main\n#include \"chain.c\"\nE\n", emit)
	script.WriteString("for f in chain liblink*.so; do objcopy --only-keep-debug $f $f.debug; objcopy --strip-all $f; done\nrm *.c\n")
	build(script.String())

	c := chain{log: run(t, nil, filepath.Join(dir, "chain")), files: filepath.Join(base, "served")}
	if err := os.Rename(dir, c.files); err != nil {
		t.Fatal(err)
	}
	return c
}

// want returns the expected start of each frame in a resolved log, innermost first.
func (chain) want() (frames []string) {
	frames = append(frames, "print_backtrace ")
	for i := libraries; i >= 1; i-- {
		frames = append(frames, fmt.Sprintf("link%d ", i))
	}
	return append(frames, "main ")
}

// check compares the frames of a filtered log with the program's functions and the lines of the
// calls.
func (c chain) check(t *testing.T, out string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for i, want := range c.want() {
		if i >= len(got) || !strings.Contains(got[i], " "+want) || i > 0 && !strings.Contains(got[i], map[bool]string{true: ".c:4:", false: ".c:3:"}[i <= libraries]) {
			t.Fatalf("frame %d does not name %sand its line:\n%s", i, want, out)
		}
	}
}

// A log must be resolved with the files of a server, without any set-up. Later runs must need no
// request, and no server.
func TestServerHasEverything(t *testing.T) {
	need(t, "debuginfod", "debuginfod-find")
	c := newChain(t)
	server := runDebuginfod(t, c.files)
	cache := filepath.Join(t.TempDir(), "cache")
	filter := func(url string) string {
		t.Helper()
		cmd := exec.Command(command, "--debug-file-directory", t.TempDir())
		cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+url, "DEBUGINFOD_CACHE_PATH="+cache)
		cmd.Stdin = strings.NewReader(c.log)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	c.check(t, filter(server.url))
	before := server.requests(t)
	if before < libraries {
		t.Errorf("the first run made %d requests, want one for each library at least", before)
	}
	c.check(t, filter(server.url))
	if after := server.requests(t); after != before {
		t.Errorf("the second run made %d requests, want none", after-before)
	}
	c.check(t, filter("")) // the cache works without a server, too
}

// In the llvm style, files must come from servers, as in LLVM's own filter.
func TestServerInTheStyleOfLLVM(t *testing.T) {
	need(t, "debuginfod", "llvm-symbolizer-19")
	c := newChain(t)
	url := runDebuginfod(t, c.files).url
	filter := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append(args, "--filter-markup", "--debug-file-directory="+t.TempDir())...)
		cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+url, "DEBUGINFOD_CACHE_PATH="+t.TempDir())
		cmd.Stdin = strings.NewReader(c.log)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	got := filter(command)
	if diff := cmp.Diff(got, filter("llvm-symbolizer-19")); diff != "" {
		t.Errorf("(-got +LLVM's):\n%s", diff)
	}
	c.check(t, got)
	if got, want := filter(command, "--no-debuginfod"), filter("llvm-symbolizer-19", "--no-debuginfod"); got != want {
		t.Errorf("--no-debuginfod: (-got +LLVM's):\n%s", cmp.Diff(got, want))
	}
}

// A module that no server knows must cost two requests, one for each kind of file, whatever the
// log.
func TestModuleThatNobodyHas(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.NotFound(w, r)
	}))
	defer server.Close()
	const frames = 10000
	var log strings.Builder
	log.WriteString("{{{module:0:lost.so:elf:aabbccdd}}}\n{{{mmap:0x10000:0x1000000:load:0:rx:0x0}}}\n")
	for i := range frames {
		fmt.Fprintf(&log, "{{{bt:%d:%#x:ra}}}\n", i, 0x10010+i*16)
	}
	cmd := exec.Command(command, "--debug-file-directory", t.TempDir())
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+server.URL, "DEBUGINFOD_CACHE_PATH="+t.TempDir())
	cmd.Stdin = strings.NewReader(log.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(out, []byte("(BuildId: aabbccdd)")); got != frames {
		t.Errorf("%d frames name the build ID, want %d", got, frames)
	}
	if got := requests.Load(); got != 2 {
		t.Errorf("%d requests, want 2", got)
	}
}

func TestServersAreAskedOnlyWhereTheUserAsks(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.NotFound(w, r)
	}))
	defer server.Close()
	const log = "{{{module:0:lost.so:elf:aabbccdd}}}\n{{{mmap:0x10000:0x1000:load:0:rx:0x0}}}\n{{{pc:0x10010}}}\n"
	for _, test := range []struct {
		name string
		args []string
		env  []string
		want int64
	}{
		{"not named", nil, nil, 0},
		{"named by the environment", nil, []string{"DEBUGINFOD_URLS=" + server.URL}, 2},
		{"named by a flag", []string{"--debuginfod-urls", server.URL}, nil, 2},
		{"named by the flag's variable", nil, []string{"SYMFILTER_DEBUGINFOD_URLS=" + server.URL}, 2},
		{"forbidden", []string{"--no-debuginfod"}, []string{"DEBUGINFOD_URLS=" + server.URL}, 0},
		{"offline", []string{"--offline"}, []string{"DEBUGINFOD_URLS=" + server.URL}, 0},
		{"markup passes on", []string{"--output=markup"}, []string{"DEBUGINFOD_URLS=" + server.URL}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			requests.Store(0)
			cmd := exec.Command(command, append(test.args, "--debug-file-directory", t.TempDir())...)
			cmd.Env = append(append(os.Environ(), "DEBUGINFOD_CACHE_PATH="+t.TempDir()), test.env...)
			cmd.Stdin = strings.NewReader(log)
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			if got := requests.Load(); got != test.want {
				t.Errorf("%d requests, want %d", got, test.want)
			}
		})
	}
}

// If the stripped program is present, only its debug file may be requested.
func TestServerIsNotAskedForAProgramThatIsThere(t *testing.T) {
	need(t, "gcc")
	var asked []string
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Path)
		http.NotFound(w, r)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "work.so")
	run(t, []byte("int work(int n) { return n * 3; }\n"), "gcc", "-s", "-shared", "-fPIC", "-Wl,--build-id=0xaabbccdd", "-x", "c", "-", "-o", file)
	cmd := exec.Command(command, "--debug-file-directory", t.TempDir())
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+server.URL, "DEBUGINFOD_CACHE_PATH="+t.TempDir())
	cmd.Stdin = strings.NewReader("{{{module:0:" + file + ":elf:aabbccdd}}}\n{{{mmap:0x10000:0x2000:load:0:rx:0x0}}}\n{{{pc:0x10fff}}}\n")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(asked, []string{"/buildid/aabbccdd/debuginfo"}); diff != "" {
		t.Errorf("asked for (-got +want):\n%s", diff)
	}
}

// A server that accepts connections, but never answers, must delay a pipe only once. It must not
// delay the end of the program.
func TestServerThatNeverAnswers(t *testing.T) {
	c := newChain(t)
	url := silentServer(t)
	for _, style := range []string{"--style=symfilter", "--output=json"} {
		t.Run(style, func(t *testing.T) {
			t.Setenv("DEBUGINFOD_URLS", url)
			t.Setenv("DEBUGINFOD_CACHE_PATH", t.TempDir())
			t.Setenv("SYMFILTER_WAIT", "") // the default has the bound for a minute, too
			p := start(t, style, "--debug-file-directory", t.TempDir())
			// if each library were waited for, this would take 10 s, the longest total wait of a
			// pipe in a minute
			if took := p.through(t, c.log+"end of one\n", "end of one"); took > 2*time.Second+slack {
				t.Errorf("the first log took %v, want at most 2 s", took)
			}
			// the shortest of three times, since a busy machine delays some logs
			took := time.Hour
			for i := range 3 {
				end := fmt.Sprintf("end of %d", i)
				took = min(took, p.through(t, c.log+end+"\n", end))
			}
			if took >= 2*time.Second {
				t.Errorf("later logs took %v, want no wait", took)
			}
			begin := time.Now()
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.cmd.Wait()
			if took := time.Since(begin); took > time.Second+slack { // otherwise it takes a minute
				t.Errorf("the end took %v, want at most 1 s", took)
			}
			if got := p.cmd.ProcessState.ExitCode(); got != 128+int(syscall.SIGTERM) {
				t.Errorf("exit code %d, want %d", got, 128+int(syscall.SIGTERM))
			}
		})
	}
}

// slack is the delay that a busy machine may add to a time that a test checks.
const slack = 6 * time.Second

// through writes a log and returns the time until end is in the output.
func (p *pipeline) through(t *testing.T, log, end string) time.Duration {
	t.Helper()
	begin := time.Now()
	go io.WriteString(p.in, log)
	if err := p.out.SetReadDeadline(begin.Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for block := make([]byte, 64<<10); !bytes.Contains(got, []byte(end)); {
		n, err := p.out.Read(block)
		got = append(got, block[:n]...)
		if err != nil {
			t.Fatalf("%v after\n%s", err, got)
		}
	}
	return time.Since(begin)
}

// silentServer returns the URL of a server that accepts connections and reads requests, but never
// answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go io.Copy(io.Discard, conn)
		}
	}()
	return "http://" + l.Addr().String()
}

// Ctrl-C during a download for a log file must end the process at once.
func TestInterruptEndsADownload(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("{{{module:0:lost.so:elf:aabbccdd}}}\n{{{mmap:0x10000:0x1000:load:0:rx:0x0}}}\n{{{pc:0x10010}}}\nthe end\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	cmd := exec.Command(command, log)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+silentServer(t), "DEBUGINFOD_CACHE_PATH="+cache)
	var stdout bytes.Buffer
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stderr.Read(make([]byte, 100)); err != nil { // the request has been sent
		t.Fatal(err)
	}
	begin := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, stderr)
	cmd.Wait()
	if took := time.Since(begin); took > slack { // without the signal a log file waits 90 s
		t.Errorf("the end took %v, want it at once", took)
	}
	if got := cmd.ProcessState.ExitCode(); got != 128+int(syscall.SIGINT) {
		t.Errorf("exit code %d, want %d", got, 128+int(syscall.SIGINT))
	}
	if got, want := stdout.String(), "lost.so+0xf (BuildId: aabbccdd)\nthe end\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "aabbccdd", "*")); left != nil {
		t.Errorf("left in the cache: %q", left)
	}
}
