package buildid

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/symfilter/symfilter/internal/object"
)

func TestAttemptsAreInPlainWords(t *testing.T) {
	path := func(err error) error { return &fs.PathError{Op: "open", Path: "/x", Err: err} }
	tests := []struct {
		err  error
		want string
	}{
		{path(syscall.ENOENT), "no such file"},
		{path(syscall.EACCES), "not readable: permission denied"},
		{path(syscall.EPERM), "not readable: permission denied"},
		{path(syscall.EIO), "input/output error"},
		{path(errNotRegular), "not a regular file"},
		{path(&otherIDError{mustParse(t, "0102"), mustParse(t, "0304")}), "its build ID is 0102, not 0304"},
		{path(&object.FormatError{What: "ELF header", Said: "it is too short"}), "not an ELF file: ELF header: it is too short"},
		{ErrNoID, "the file has no build ID"},
		{errChanged, "changed since it was indexed"},
		{fmt.Errorf("%w: its directory is damaged", errBadZip), "not all of this zip file can be used: its directory is damaged"},
	}
	for _, tt := range tests {
		if got := reasonFor(tt.err); got != tt.want {
			t.Errorf("%v: said %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestOnlyWhatIsAboutTheMomentIsNoMiss(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.ENOSPC, context.Canceled, context.DeadlineExceeded} {
		if !passing(&fs.PathError{Op: "open", Path: "/x", Err: err}) {
			t.Errorf("%v is remembered as a miss", err)
		}
	}
	for _, err := range []error{fs.ErrNotExist, fs.ErrPermission, errNotRegular, ErrNoID, ErrOtherID, errBadZip, errChanged, os.ErrInvalid, errors.New("x")} {
		if passing(err) {
			t.Errorf("%v is not remembered as a miss", err)
		}
	}
}
