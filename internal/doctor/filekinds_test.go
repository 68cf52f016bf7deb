package doctor

import (
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/input"
)

func TestFilesThatAreNoLogs(t *testing.T) {
	elf := func(kind string) string { return "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + kind + "\x00\x3e" }
	for _, test := range []struct{ name, begins, want string }{
		{"a program", elf("\x03\x00"), "is an ELF file, not a log, and was printed unchanged; to use its symbols, write --symbol-path x"},
		{"of the other byte order", elf("\x00\x02"), "is an ELF file, not a log, and was printed unchanged; to use its symbols, write --symbol-path x"},
		{"a core file", elf("\x04\x00"), "is a core file, not a log, and was printed unchanged; read it with gdb"},
		{"of the other byte order", elf("\x00\x04"), "is a core file, not a log, and was printed unchanged; read it with gdb"},
		{"a zip file", "PK\x03\x04rest", "is a zip file, not a log, and was printed unchanged; to read the logs in it, write unzip -p x | symfilter; to use debug files in it, --symbol-path x"},
		{"a recording", "PERFILE2rest", "is a recording of perf, not a log, and was printed unchanged; perf script -i x prints its stacks, with names if perf finds the debug files"},
		{"a file of lz4", "\x04\x22\x4d\x18rest", "is a file compressed with lz4, not a log, and was printed unchanged; write lz4 -dc x | symfilter"},
		{"a journal", "LPKSHHRHrest", "is a journal file of systemd, not a log, and was printed unchanged; write journalctl --file x -o cat | symfilter"},
		{"a log that begins like them", "PK and PERFILE\n", ""},
		{"a tar file", strings.Repeat("a", 100) + strings.Repeat("\x00", 157) + "ustar  \x00", "is a tar file, printed together with the headers of the files in it; write tar -xOf x | symfilter"},
		{"a damaged gzip file", "\x1f\x8b\x08rest", "begins like a gzip file, cannot be unpacked, and was printed unchanged; gzip -t x shows what is wrong"},
		{"too short", "\x7fELF", ""},
		{"a log", "\x7fElf and 17 other bytes", ""},
	} {
		var s Sniffer
		s.Look([]byte(test.begins))
		s.Look([]byte("{{{reset}}}\n"))
		if got := s.Hint("x", ""); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// Only the first maxSniffed bytes of a report must be searched for markup, since plain text must
// cost little.
func TestMarkupFarIntoAReportIsNotReported(t *testing.T) {
	text := []byte(strings.Repeat("text\n", 1+maxSniffed/len("text\n")))
	for before, want := range map[int]string{
		maxSniffed - 100: "has symbolizer markup, which is not resolved because of --input=valgrind; run symfilter without it",
		maxSniffed + 1:   "",
	} {
		s := Sniffer{Reading: Reading{Format: input.Valgrind, Because: "--input=valgrind"}}
		s.Look(text[:before])
		s.Look([]byte("{{{reset}}}\n"))
		if got := s.Hint("x", ""); got != want {
			t.Errorf("after %d bytes: got %q, want %q", before, got, want)
		}
	}
}
