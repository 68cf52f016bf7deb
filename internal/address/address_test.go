package address

import (
	"fmt"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// isPath is the IsModule function of the tests.
func isPath(word string) bool { return strings.Contains(word, "/") }

// show returns the parts of w that are set, or the error.
func show(w Word, err error) string {
	if err != nil {
		return err.Error()
	}
	s := fmt.Sprintf("%s|%s|%x", w.Module, w.Name, w.Addr)
	if w.End != 0 {
		s += fmt.Sprintf("-%x", w.End)
	}
	if w.Size != 0 {
		s += fmt.Sprintf("/%x", w.Size)
	}
	if w.InFile {
		s += " in file"
	}
	return s
}

func TestWordsAreRead(t *testing.T) {
	for _, c := range [][2]string{
		{"0x1a25", "||1a25"},
		{" 1A25\t", "||1a25"},
		{"0X1a25", "||1a25"},
		{"add", "||add"}, // hex digits are an address
		{"add+0x0", "|add|0"},
		{"main", "|main|0"},
		{"main+0x10", "|main|10"},
		{"main+16", "|main|10"},
		{"do_fault+0x30/0x160", "|do_fault|30/160"},
		{"ext4_map+0x3/0x9 [ext4]", "|ext4_map|3/9"},
		{"main+1a", `"1a" is not an offset: write 0x before hex digits, as in main+0x1a`},
		{"main+0x10/0x", `"0x10/0x" is not an offset: write 0x before hex digits, as in main+0x1a`},
		{"main+0x12345678901234567", "the offset in main+0x12345678901234567 has more than 64 bits"},
		{"operator+", "|operator+|0"},
		{"std::plus(int)+0x4", "|std::plus(int)|4"},
		{"main.(*T).run", "|main.(*T).run|0"},
		{"0x1000-0x1040", "||1000-1040"},
		{"1000-1040", "||1000-1040"},
		{"0x1040-0x1040", "the range 0x1040-0x1040 is empty: write an end after its start, since the end is excluded"},
		{"0x0-0x100001", "the range 0x0-0x100001 has 1048577 addresses, and the limit is 0x100000: split the range"},
		{"0x0-0x12345678901234567", "the address 0x0-0x12345678901234567 has more than 64 bits"},
		{"0x12345678901234567", "the address 0x12345678901234567 has more than 64 bits"},
		{"0x10-", `"0x10-" is not an address: write hex digits, such as 0x1a25`},
		{"0xzz", `"0xzz" is not an address: write hex digits, such as 0x1a25`},
		{"", "there is no address"},
		{" [0x10]", `|[0x10]|0`},
		{"offset:0x1a25", "||1a25 in file"},
		{"offset:1000-1040", "||1000-1040 in file"},
		{"offset:main", `"main" is not an offset: write hex digits after offset:, such as offset:0x1a25`},
		{"/bin/app+0x1a25", "/bin/app||1a25"},
		{"/bin/app+0x10-0x20", "/bin/app||10-20"},
		{"/bin/app(+0x1a25)", "/bin/app||1a25"},
		{"/bin/app(main+0x10) [0x4011b6]", "/bin/app|main|10"},
		{"/bin/app+10", `"10" is not an address: write 0x and hex digits after /bin/app+`},
		{"/bin/app+0xzz", `"0xzz" is not an address: write hex digits, such as 0x1a25`},
		{"/bin/app+0x10/0x40", `"/bin/app+0x10/0x40" is in a function, which may be in any file: write the FILE before the addresses`},
	} {
		r := Reader{IsModule: isPath}
		if got := show(r.Read(c[0])); got != c[1] {
			t.Errorf("%q: got %s, want %s", c[0], got, c[1])
		}
	}
}

// Without IsModule, each word must name a file.
func TestWordsWithoutAFileNameOne(t *testing.T) {
	for _, c := range [][2]string{
		{"app+0x1a25", "app||1a25"},
		{"app(main+0x10)", "app|main|10"},
		{"779e1ed3+0x10", "779e1ed3||10"},
		{"0x1a25", `"0x1a25" names no file: write FILE+0x1a25, or a FILE before the addresses`},
		{"main", `"main" names no file: write FILE+0x1a25, or a FILE before the addresses`},
		{"do_fault+0x30/0x160", `"do_fault+0x30/0x160" is in a function, which may be in any file: write the FILE before the addresses`},
	} {
		r := Reader{}
		if got := show(r.Read(c[0])); got != c[1] {
			t.Errorf("%q: got %s, want %s", c[0], got, c[1])
		}
	}
}

// With InFile, numbers that do not follow a symbol must be read as offsets in the file.
func TestNumbersAreOffsetsWhereThatIsAsked(t *testing.T) {
	for _, c := range [][2]string{
		{"0x1a25", "||1a25 in file"},
		{"/bin/app+0x1a25", "/bin/app||1a25 in file"},
		{"/bin/app(+0x1a25)", "/bin/app||1a25 in file"},
		{"/bin/app(main+0x10)", "/bin/app|main|10"},
	} {
		r := Reader{IsModule: isPath, InFile: true}
		if got := show(r.Read(c[0])); got != c[1] {
			t.Errorf("%q: got %s, want %s", c[0], got, c[1])
		}
	}
}

// FuzzRead checks that the range of any parsed word is bounded. Without IsModule, it also checks
// that the word names a file.
func FuzzRead(f *testing.F) {
	for _, word := range []string{"0x1a25", "main+0x10/0x40", "/bin/app(main+0x10) [0x1]", "offset:1-2", "a+b+0x1-0x2", "(+0x1)"} {
		f.Add(word, true)
		f.Add(word, false)
	}
	f.Fuzz(func(t *testing.T, word string, hasFile bool) {
		defer fuzztest.Watch(t, []byte(word))()
		r := Reader{}
		if hasFile {
			r.IsModule = isPath
		}
		w, err := r.Read(word)
		switch {
		case err != nil:
		case !hasFile && w.Module == "":
			t.Errorf("%q has no file", word)
		case w.End != 0 && (w.End <= w.Addr || w.End-w.Addr > MaxRange || w.Name != ""):
			t.Errorf("%q: the range 0x%x-0x%x of %q", word, w.Addr, w.End, w.Name)
		}
	})
}
