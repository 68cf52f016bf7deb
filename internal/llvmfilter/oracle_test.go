package llvmfilter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/symbolize"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long reports whether tests run with their full sizes.
func long() bool { return os.Getenv("TEST_LONG") == "1" }

const llvmSymbolizer = "llvm-symbolizer-19"

// need skips the test if a program that it runs is missing. With CI=true it fails the test.
func need(t testing.TB, programs ...string) {
	t.Helper()
	testenv.Need(t, programs...)
}

// command runs a program to its end and returns its output.
func command(t testing.TB, stdin, name string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	for _, v := range os.Environ() { // no network, no colours, no foreign options
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "DEBUGINFOD_") && !strings.HasPrefix(name, "LLVM_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said.Bytes())
	}
	return out.String(), said.String()
}

// byLLVM filters a log with LLVM's filter.
func byLLVM(t testing.TB, in string, flags []string) (out, said string) {
	t.Helper()
	need(t, llvmSymbolizer)
	return command(t, in, llvmSymbolizer, append([]string{"--filter-markup"}, flags...)...)
}

// byUs filters a log with package llvmfilter, with the options for LLVM's flags. The log arrives in
// one piece, or in random pieces if r is not nil.
func byUs(t testing.TB, in string, flags []string, r *rand.Rand) (out, said string) {
	t.Helper()
	so, o := options(t, flags)
	so.OldRustAsLLVM = true
	o.Symbolizer = symbolize.New(so)
	defer func() {
		if err := o.Symbolizer.Close(); err != nil {
			t.Error(err)
		}
	}()
	var w, d bytes.Buffer
	f := New(&w, &d, o)
	for rest := in; rest != ""; {
		n := len(rest)
		if r != nil {
			n = min(n, 1+r.IntN(1+r.IntN(60)))
		}
		if _, err := io.WriteString(f, rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return w.String(), d.String()
}

// options returns the options for LLVM's flags.
func options(t testing.TB, flags []string) (so symbolize.Options, o Options) {
	t.Helper()
	so.Reaching = true
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "--debug-file-directory":
			so.Finders = append(so.Finders, buildid.NewTree(value))
		case "--color":
			o.Color = value != "never"
		case "--no-demangle":
			o.NoDemangle = true
		case "--basenames":
			o.Paths = Basenames
		case "--relativenames":
			o.Paths = RelativePaths
		case "--functions":
			switch value {
			case "short":
				so.Names = symbolize.ShortNames
			case "none":
				so.Names = symbolize.NoNames
			}
		default:
			t.Fatalf("what is %s?", flag)
		}
	}
	return so, o
}

// firstDifference describes the first line in which two outputs differ.
func firstDifference(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\n got %.1000q\nwant %.1000q", i+1, a, b)
		}
	}
	return "none"
}
