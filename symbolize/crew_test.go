package symbolize

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// Readers do not wait for a question that holds the lock of the entry, unless both need the same
// unit.
func TestReadersDoNotWaitForAQuestion(t *testing.T) {
	f := build(t, "shop", source)
	entry := f.symbols(t)["entry"].Value
	for jobs, want := range map[int]bool{1: false, 2: true} {
		s := open(t, Options{Jobs: jobs}, oneFile{f, "here"})
		if _, ok := s.besideCode(nil, f.at(entry)); ok {
			t.Error("a file that nobody asked for answers at once")
		}
		frames, err := s.Ask(context.Background(), nil, f.at(entry), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		q, err := s.acquire(context.Background(), f.at(entry))
		if err != nil {
			t.Fatal(err)
		}
		got, ok := s.besideCode(nil, f.at(entry))
		if ok != want || ok && !slices.Equal(got, frames) {
			t.Errorf("%d readers: got %v, %v, want %v", jobs, got, ok, frames)
		}
		q.end(nil)
	}
}

// The lookups, time and memory of readers must be added to those of the file's questions.
func TestWhatReadersTakeIsCounted(t *testing.T) {
	f := build(t, "shop", source)
	addrs := f.textAddresses(t)
	s := open(t, Options{Jobs: 2}, oneFile{f, "here"})
	code(s, f.at(addrs[0]))
	e := s.cache.existing(f.id, "")
	answered := 0
	for _, addr := range addrs {
		if _, ok := s.besideCode(nil, f.at(addr)); ok {
			answered++
		}
	}
	if c := e.crew.Load(); answered == 0 || c.footprint() == 0 || c.lookups.Load() < int64(answered) || c.cost.Load() == 0 {
		t.Errorf("%d answers: %d lookups, %d ns, %d bytes", answered, c.lookups.Load(), c.cost.Load(), c.footprint())
	}
	q, err := s.acquire(context.Background(), f.at(addrs[0]))
	if err != nil {
		t.Fatal(err)
	}
	before := q.m.lookups
	q.judge()
	if q.m.lookups < before+answered {
		t.Errorf("the module counts %d lookups, of which %d were before, and %d of readers", q.m.lookups, before, answered)
	}
	s.cache.account(e)
	held := e.heap
	s.cache.shrinkTo(e, 0)
	if c := e.crew.Load(); c.footprint() != 0 || e.heap >= held {
		t.Errorf("readers hold %d bytes, the file %d of %d before", c.footprint(), e.heap, held)
	}
	q.end(nil)
}

// Once the lookups of a crew have cost too much, the crew must retire. At most two lookups may have
// had answers.
func TestAFileThatCostsTooMuchHasOneReader(t *testing.T) {
	f := build(t, "dear", dear, "-g0", "-nostdlib")
	s := open(t, Options{Jobs: 2}, oneFile{f, "here"})
	first := f.symbols(t)["first"].Value
	if got := code(s, f.at(first+1)); !strings.Contains(got, "dear.c") {
		t.Fatalf("got %q", got)
	}
	answered := 0
	for i := range uint64(199) {
		if _, ok := s.besideCode(nil, f.at(first+16*i+17)); ok {
			answered++
		}
	}
	if answered > 2 { // each answer takes a million steps
		t.Errorf("%d answers", answered)
	}
}
