package symbolize

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/object"
)

// Questions with a time limit have the same answers as questions without one. While another
// question holds the file, they end with their context, and their answers are known later.
func TestBoundedQuestionsEndWithTheirContext(t *testing.T) {
	f := build(t, "shop", source)
	code, data := f.at(f.symbols(t)["entry"].Value), f.at(f.symbols(t)["table"].Value+4)
	type answer struct {
		Text any
		Err  error
	}
	questions := map[string]struct {
		ask   func(s *Symbolizer, within context.Context) answer
		later func(s *Symbolizer) answer // answer to a later question that does not wait; nil: none is kept
	}{
		"code": {
			func(s *Symbolizer, within context.Context) answer {
				v, err := s.codeWithin(context.Background(), within, nil, code)
				return answer{v, err}
			},
			func(s *Symbolizer) answer { v, err := s.known(nil, code); return answer{v, err} },
		},
		"data": {
			func(s *Symbolizer, within context.Context) answer {
				v, err := s.dataWithin(context.Background(), within, data)
				return answer{v, err}
			},
			func(s *Symbolizer) answer { v, err := s.knownData(data); return answer{v, err} },
		},
		"layout": {
			func(s *Symbolizer, within context.Context) answer {
				v, fixed, err := s.layoutWithin(context.Background(), within, code.ID, "")
				return answer{[]any{v, fixed}, err}
			}, nil,
		},
		"examination": {
			func(s *Symbolizer, within context.Context) answer {
				var of string
				err := s.examineWithin(context.Background(), within, code.ID, "", func(obj *object.File) { of = obj.Machine.String() })
				return answer{of, err}
			}, nil,
		},
	}
	for name, q := range questions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{Finders: []Finder{oneFile{fixture: f}}})
				defer s.Close()
				want := q.ask(s, nil)
				if want.Err != nil {
					t.Fatal(want.Err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				if diff := cmp.Diff(want, q.ask(s, ctx)); diff != "" {
					t.Errorf("(-unbounded +bounded):\n%s", diff)
				}
				e, err := s.cache.entry(f.id, "")
				if err != nil {
					t.Fatal(err)
				}
				e.mu.Lock() // as a question that parses does
				go cancel()
				if got := q.ask(s, ctx); !errors.Is(got.Err, ErrPending) {
					t.Errorf("while the file is in use: %v, want ErrPending", got)
				}
				e.mu.Unlock()
				synctest.Wait()
				if q.later == nil {
					return
				}
				if diff := cmp.Diff(want, q.later(s)); diff != "" {
					t.Errorf("later (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// AwaitLocal ends with its context, even while a question holds the file.
func TestAwaitLocalEndsWithItsContext(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{fixture: f})
	at := f.at(f.symbols(t)["entry"].Value)
	if _, err := s.Ask(context.Background(), nil, at, Policy{}); err != nil {
		t.Fatal(err)
	}
	e := s.cache.existing(f.id, "")
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	s.awaitLocal(ctx, at)
}

// At most maxBeside questions run at a time, so a server that hangs cannot take all memory.
func TestBoundedQuestionsAreBounded(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{fixture: f})
	at := f.at(f.symbols(t)["entry"].Value)
	for range maxBeside {
		s.warmer.beside <- struct{}{}
	}
	if _, err := s.codeWithin(context.Background(), context.Background(), nil, at); err != ErrPending {
		t.Errorf("got %v, want ErrPending", err)
	}
	<-s.warmer.beside
	if frames, err := s.codeWithin(context.Background(), context.Background(), nil, at); err != nil || len(frames) == 0 {
		t.Errorf("with room: %v, %v", frames, err)
	}
	if n := len(s.warmer.beside); n != maxBeside-1 {
		t.Errorf("%d questions run after the last has ended, want %d", n, maxBeside-1)
	}
}

// If do panics in an examination, examineWithin must panic in its caller, and later calls must
// succeed. If a file cannot be read, examineWithin must return an error.
func TestExaminationsThatPanic(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{fixture: f})
	if _, err := s.Ask(context.Background(), nil, f.at(0x1000), Policy{}); err != nil {
		t.Fatal(err)
	}
	for _, within := range []context.Context{nil, context.Background()} {
		var recovered any
		func() {
			defer func() { recovered = recover() }()
			s.examineWithin(context.Background(), within, f.id, "", func(*object.File) { panic("x") })
		}()
		if recovered != "x" {
			t.Errorf("recovered %v, want x", recovered)
		}
		err := s.examineWithin(context.Background(), within, f.id, "", func(*object.File) { panic(unreadable{}) })
		if !errors.Is(err, object.ErrFault) {
			t.Errorf("unreadable: %v, want %v", err, object.ErrFault)
		}
	}
}
