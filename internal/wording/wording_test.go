package wording

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
)

func TestCountsHaveTheirNoun(t *testing.T) {
	for n, want := range map[int64]string{0: "0 files", 1: "1 file", 2: "2 files"} {
		if got := Count(n, "file", "files"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestCausesNameNoFile(t *testing.T) {
	for _, tt := range []struct{ err, want error }{
		{&os.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, syscall.ENOENT},
		{fmt.Errorf("read: %w", &os.PathError{Op: "read", Path: "x", Err: syscall.EIO}), syscall.EIO},
		{&os.LinkError{Op: "rename", Old: "x", New: "y", Err: syscall.ENOSPC}, syscall.ENOSPC},
		{io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{nil, nil},
	} {
		if got := Cause(tt.err); !errors.Is(got, tt.want) || fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestLinesStayOne(t *testing.T) {
	const hostile, want = "a\nb\x1b[2Jc", `a\x0ab\x1b[2Jc`
	if got := Line(hostile); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestThousandsAreSeparatedByCommas(t *testing.T) {
	for number, want := range map[string]string{
		"0": "0", "7": "7", "999": "999", "1000": "1,000", "-999": "-999", "-1000": "-1,000", "123456": "123,456", "1234567": "1,234,567",
		"-9223372036854775808": "-9,223,372,036,854,775,808", "18446744073709551615": "18,446,744,073,709,551,615",
	} {
		if got := Commas(number); got != want {
			t.Errorf("Commas(%q) = %q, want %q", number, got, want)
		}
	}
}
