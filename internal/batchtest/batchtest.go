// Package batchtest has the common parts of the tests of protocols that use package batch.
package batchtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// A budget is a [batch.Room] of a fixed number of bytes.
type budget struct{ left atomic.Int64 }

func newBudget(n int64) *budget {
	b := &budget{}
	b.left.Store(n)
	return b
}

// Take implements [batch.Room].
func (b *budget) Take(n int64) bool {
	if b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

// Symbols returns a [batch.Symbols] that finds the repository's debug files. Its Room grants n
// bytes in all.
func Symbols(t testing.TB, n int64) *batch.Symbols {
	t.Helper()
	up := filepath.Join("..", "..")
	opened, err := symfilter.Symbols{
		DebugDirs: []string{filepath.Join(up, "testdata", "debug"), filepath.Join(up, "filter", "testdata", "debug")}, NoDefaultDebugDirs: true, NoCache: true,
	}.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return &batch.Symbols{Symbolizer: opened.Symbolizer, Complete: opened.Complete, Room: newBudget(n)}
}

// A Protocol reads the body of a request, and returns a function that writes the answer.
type Protocol func(ctx context.Context, s *batch.Symbols, body io.Reader) (func(io.Writer) error, error)

// Answer returns the answer to a request, or its error.
func Answer(t *testing.T, p Protocol, s *batch.Symbols, request string) string {
	t.Helper()
	write, err := p(t.Context(), s, strings.NewReader(request))
	if err != nil {
		return fmt.Sprintf("%T: %v", err, err)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Indented returns JSON with each member on its own line.
func Indented(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(strings.TrimSpace(text)), "", " "); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return b.String()
}

// Fuzz answers mutations of requests. Each answer must be JSON, and stay within the time and
// memory of fuzztest.Watch.
func Fuzz(f *testing.F, p Protocol, requests ...string) {
	for _, request := range requests {
		f.Add(request)
	}
	const room = 1 << 20 // bytes for a request
	opened := Symbols(f, room)
	f.Fuzz(func(t *testing.T, request string) {
		defer fuzztest.Watch(t, []byte(request))()
		s := *opened
		s.Room = newBudget(room)
		write, err := p(t.Context(), &s, strings.NewReader(request))
		if err != nil {
			return
		}
		var to bytes.Buffer
		if err := write(&to); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(to.Bytes()) {
			t.Errorf("not JSON: %s", to.Bytes())
		}
	})
}
