package lines

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// asked returns the lines from an Asker of at most 16 bytes a line, and the error at the end. A "!"
// follows a line if the client may wait for an answer to the line.
func asked(in io.Reader) (all []string, err error) {
	a := NewAsker(in, 16)
	for line, ok := a.Next(); ok; line, ok = a.Next() {
		s := string(line)
		if a.Waits() {
			s += "!"
		}
		all = append(all, s)
	}
	return all, a.Err()
}

func TestLinesOfAClientAreAnsweredBeforeMoreIsRead(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		in   io.Reader
		want []string
		err  error
	}{
		{"together", strings.NewReader("a\nb\r\n\nc"), []string{"a\n", "b\r\n", "\n!", "c!"}, nil},
		{"each alone", iotest.OneByteReader(strings.NewReader("a\nb\n")), []string{"a\n!", "b\n!"}, nil},
		{"too long", strings.NewReader("0123456789abcdef\nb\n"), []string{"0123456789abcdef!", "b\n!"}, nil},
		{"much too long", strings.NewReader(strings.Repeat("x", 100) + "\nb\n"), []string{strings.Repeat("x", 16) + "!", "b\n!"}, nil},
		{"too long at the end", strings.NewReader(strings.Repeat("x", 100)), []string{strings.Repeat("x", 16) + "!"}, nil},
		{"nothing", strings.NewReader(""), nil, nil},
		{"unreadable", io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), []string{"a\n!", "b!"}, broken},
	} {
		got, err := asked(tt.in)
		if !slices.Equal(got, tt.want) || err != tt.err {
			t.Errorf("%s: got %q, %v, want %q, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}
