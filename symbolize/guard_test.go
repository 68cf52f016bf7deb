package symbolize

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
)

// unreadable imitates the value with which the runtime panics if it cannot read an address.
type unreadable struct{}

func (unreadable) Addr() uintptr { return 1 << 20 }

func TestGuardTellsFaultsFromPanics(t *testing.T) {
	var none []int
	var nobody *module
	for _, tt := range []struct {
		name string
		read func() error
		want error
		text string
	}{
		{"success", func() error { return nil }, nil, ""},
		{"error", func() error { return io.ErrUnexpectedEOF }, io.ErrUnexpectedEOF, ""},
		{"fault", func() error { panic(unreadable{}) }, object.ErrFault, ""},
		{"index out of range", func() error { _ = none[len(none)]; return nil }, errPanic, "index out of range"},
		{"nil pointer", func() error { nobody.holds = DebugInfo; return nil }, errPanic, "nil pointer"},
		{"value", func() error { panic("no such form") }, errPanic, "no such form"},
	} {
		if err := guard(tt.read); !errors.Is(err, tt.want) || tt.text != "" && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v with %q", tt.name, err, tt.want, tt.text)
		}
	}
}

// If the reader of an index panics, the panic is in the module's Report, and the module answers
// without the index.
func TestAPanicOfTheIndexReaderIsReported(t *testing.T) {
	f := build(t, "shop", source)
	dir := t.TempDir()
	if _, err := indexFile(t.Context(), f.path, access.IndexOptions{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{IndexDir: dir}, oneFile{f, "here"})
	l := f.at(f.symbols(t)["entry"].Value)
	want := code(s, l)
	e, err := s.cache.entry(l.ID, l.Name)
	if err != nil {
		t.Fatal(err)
	}
	e.module.index.o = nil // makes the index reader panic
	e.module.index.forget()
	if got := code(s, l); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.Report(l.ID, "").Fault; !strings.Contains(got, "index: "+errPanic.Error()) {
		t.Errorf("the report has %q, want the panic", got)
	}
}
