package llvmfilter

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "record what LLVM's filter prints in the scripts")

// TestScripts runs testdata/script/*.txtar: each shows one behaviour. The file "in" is filtered
// with the flags that the comment's "flags:" line names; "out" and "err" are what LLVM's filter
// printed. All three may contain the escapes \e, \r, \0, \xff and \\; a \ at the end of a line
// means that it has no line end. Other files are written to the folder $FILES of the flags.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var in, wantOut, wantSaid string
	var rest []txtar.File
	for _, f := range ar.Files {
		switch f.Name {
		case "in":
			in = unescape(t, string(f.Data))
			rest = append(rest, f)
		case "out":
			wantOut = string(f.Data)
		case "err":
			wantSaid = string(f.Data)
		default:
			rest = append(rest, f)
			path := filepath.Join(dir, filepath.FromSlash(f.Name))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(unescape(t, string(f.Data))), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, line, _ := strings.Cut(string(ar.Comment), "flags:")
	line, _, _ = strings.Cut(line, "\n")
	flags := strings.Fields(strings.ReplaceAll(line, "$FILES", dir))
	if *update {
		out, said := byLLVM(t, in, flags)
		ar.Files = append(rest, txtar.File{Name: "out", Data: []byte(escaped(out))})
		if said != "" {
			ar.Files = append(ar.Files, txtar.File{Name: "err", Data: []byte(escaped(said))})
		}
		if err := os.WriteFile(file, txtar.Format(ar), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	out, said := byUs(t, in, flags, nil)
	if d := cmp.Diff(escaped(out), wantOut); d != "" {
		t.Errorf("standard output (-got +want):\n%s", d)
	}
	if d := cmp.Diff(escaped(said), wantSaid); d != "" {
		t.Errorf("standard error (-got +want):\n%s", d)
	}
	for seed := range uint64(10) {
		if o, s := byUs(t, in, flags, rand.New(rand.NewPCG(seed, 0))); o != out || s != said {
			t.Fatalf("chunking %d changes what comes out:\n%s%s", seed, cmp.Diff(o, out), cmp.Diff(s, said))
		}
	}
	if _, err := exec.LookPath(llvmSymbolizer); err == nil || os.Getenv("CI") == "true" {
		out, said := byLLVM(t, in, flags)
		if d := cmp.Diff(escaped(out)+escaped(said), wantOut+wantSaid); d != "" {
			t.Errorf("the record is not what %s prints (-prints +record; go test -update):\n%s", llvmSymbolizer, d)
		}
	}
}

// escaped returns s with unprintable bytes escaped.
func escaped(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\x1b':
			b.WriteString(`\e`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == 0:
			b.WriteString(`\0`)
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		return s + "\\\n"
	}
	return b.String()
}

func unescape(t testing.TB, s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'e':
			b.WriteByte('\x1b')
		case 'r':
			b.WriteByte('\r')
		case '0':
			b.WriteByte(0)
		case '\\':
			b.WriteByte('\\')
		case '\n':
		case 'x':
			v, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteByte(byte(v))
			i += 2
		default:
			t.Fatalf("what is \\%c?", s[i])
		}
	}
	return b.String()
}
