package dialect_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/dialect"
)

var update = flag.Bool("update", false, "write the files frames of testdata anew")

// TestSamples reads the files of each archive in testdata in pairs: a log, and its expected frames.
// A frame is described by its line number, dialect, frame number, module, kind and value. If it is
// the only frame of its line and has no answer yet, the line follows as printed with the answer
// FUNC at dir/FILE:7:3.
func TestSamples(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i+1 < len(archive.Files); i += 2 {
				log, want := &archive.Files[i], &archive.Files[i+1]
				got := framesOf(string(log.Data), strings.HasPrefix(filepath.Base(path), "firmware"))
				if *update {
					want.Data = []byte(got)
				} else if diff := cmp.Diff(string(want.Data), got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", log.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// framesOf returns a description of the frames in log. The Reader can read all earlier lines.
func framesOf(log string, firmware bool) string {
	var b strings.Builder
	r := dialect.NewReader(nil)
	r.Firmware = firmware
	at := 0
	r.Past = func(n int64) []byte {
		lines := strings.SplitAfter(log[:at], "\n")
		return []byte(strings.Join(lines[max(0, len(lines)-1-int(n)):], ""))
	}
	number := int64(0)
	for line := range strings.Lines(log) {
		number++
		l := r.Line([]byte(strings.TrimRight(line, "\n")), number)
		at += len(line)
		if l == nil {
			continue
		}
		for i := range l.Frames {
			f := &l.Frames[i]
			fmt.Fprintf(&b, "%d: %s #%d %s\n", number, f.Dialect.Name, f.Number, describe(f))
			if len(l.Frames) == 1 && !f.Named {
				fmt.Fprintf(&b, "%s\n", answered(l.Text, f))
			}
		}
	}
	return b.String()
}

// describe returns the fields that locate f.
func describe(f *dialect.Frame) string {
	kinds := map[dialect.Number]string{
		dialect.Vaddr: "vaddr", dialect.BaseOffset: "base", dialect.FileOffset: "file", dialect.Runtime: "runtime", dialect.InSymbol: "symbol", dialect.CodeOffset: "code",
		dialect.Offsetted:     "vaddr or offset",
		dialect.FileOrRuntime: "file or runtime", dialect.InKernel: "kernel",
	}
	calls := map[dialect.Call]string{dialect.Return: "ret", dialect.Adjusted: "adj", dialect.Exact: "pc", dialect.Either: "ret or pc", dialect.System: "pc or system call"}
	if f.Named {
		return "is named"
	}
	s := fmt.Sprintf("%q %s %#x %s", f.Module, kinds[f.Kind], f.Value, calls[f.Call])
	if !f.ID.IsZero() {
		s += " id " + f.ID.String()
	}
	if f.Addr != 0 && f.Kind != dialect.Runtime {
		s += fmt.Sprintf(" at %#x", f.Addr)
	}
	switch {
	case f.Symbol.Inside:
		s += " in " + f.Symbol.Name
	case f.Symbol.Name != "":
		s += fmt.Sprintf(" in %s%+d", f.Symbol.Name, f.Symbol.Offset)
	}
	if f.Symbol.Size != 0 {
		s += fmt.Sprintf(" of %d", f.Symbol.Size)
	}
	return s
}

// answered returns the line with the edits of f for a fixed answer.
func answered(text []byte, f *dialect.Frame) string {
	parts := map[dialect.Part]string{
		dialect.Name: "FUNC", dialect.Func: "FUNC", dialect.FuncAt: "FUNC", dialect.Rename: "FUNC", dialect.Other: "FUNC", dialect.AtLine: "dir/FILE:7", dialect.AtColumn: "dir/FILE:7:3", dialect.AtBase: "FILE:7",
		dialect.BareFunc: "FUNC", dialect.AtSource: "dir/FILE:7:3", dialect.Callers: " inlined into CALLER dir/FILE:9:3",
		dialect.Strings: `"FUNC at dir/FILE:7"`,
		dialect.Decimal: "FUNC", dialect.Spaced: "FUNC", dialect.AtSpaced: "dir/FILE : 7", dialect.Inlined: "INLINED",
		dialect.JSONFunc: `"FUNC"`, dialect.JSONSource: `"source_file": "dir/FILE", "source_line": 7`,
	}
	var b strings.Builder
	at := 0
	for _, e := range f.Edits {
		if e.Part == dialect.NothingInCalls {
			continue
		}
		b.Write(text[at:e.From])
		b.WriteString(e.Before + parts[e.Part] + e.After)
		at = e.To
	}
	b.Write(text[at:])
	return b.String()
}
