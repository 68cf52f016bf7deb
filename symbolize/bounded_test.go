package symbolize

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/object"
)

// A Bounded has the answers of its Symbolizer. While another question about the file takes long, its
// questions end with its context, and their answers are known later.
func TestBoundedQuestionsEndWithTheirContext(t *testing.T) {
	f := build(t, "shop", source)
	code, data := f.at(f.symbols(t)["entry"].Value), f.at(f.symbols(t)["table"].Value+4)
	type answer struct {
		Text any
		Err  error
	}
	questions := map[string]struct {
		ask   func(b Bounded) answer
		later func(s *Symbolizer) answer // what is known at once later on
	}{
		"code": {
			func(b Bounded) answer { v, err := b.Code(context.Background(), nil, code); return answer{v, err} },
			func(s *Symbolizer) answer { v, err := s.AtOnce(nil, code); return answer{v, err} },
		},
		"data": {
			func(b Bounded) answer { v, err := b.Data(context.Background(), data); return answer{v, err} },
			func(s *Symbolizer) answer { v, err := s.DataAtOnce(data); return answer{v, err} },
		},
		"layout": {
			func(b Bounded) answer {
				v, err := b.Layout(context.Background(), code.ID, "")
				return answer{v, err}
			}, nil,
		},
		"examination": {
			func(b Bounded) answer {
				var of string
				err := b.Examine(context.Background(), code.ID, "", func(obj *object.File) { of = obj.Machine.String() })
				return answer{of, err}
			}, nil,
		},
	}
	for name, q := range questions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{Finders: []Finder{oneFile{fixture: f}}})
				defer s.Close()
				want := q.ask(Bounded{S: s})
				if want.Err != nil {
					t.Fatal(want.Err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				if diff := cmp.Diff(want, q.ask(Bounded{s, ctx})); diff != "" {
					t.Errorf("(-unbounded +bounded):\n%s", diff)
				}
				e, err := s.cache.entry(f.id, "")
				if err != nil {
					t.Fatal(err)
				}
				e.mu.Lock() // as a question does that parses
				go cancel()
				if got := q.ask(Bounded{s, ctx}); !errors.Is(got.Err, ErrPending) {
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

// A wait for the search on this machine ends with its context, also while a question holds the file.
func TestAwaitLocalEndsWithItsContext(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{fixture: f})
	at := f.at(f.symbols(t)["entry"].Value)
	if _, err := s.Code(context.Background(), nil, at); err != nil {
		t.Fatal(err)
	}
	e := s.cache.existing(f.id, "")
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	s.AwaitLocal(ctx, at)
}

// No more than maxBeside questions run at a time: a server that hangs must not be able to take all
// memory.
func TestBoundedQuestionsAreBounded(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{fixture: f})
	at := f.at(f.symbols(t)["entry"].Value)
	for range maxBeside {
		s.warmer.beside <- struct{}{}
	}
	b := Bounded{s, context.Background()}
	if _, err := b.Code(context.Background(), nil, at); err != ErrPending {
		t.Errorf("got %v, want ErrPending", err)
	}
	<-s.warmer.beside
	if frames, err := b.Code(context.Background(), nil, at); err != nil || len(frames) == 0 {
		t.Errorf("with room: %v, %v", frames, err)
	}
	if n := len(s.warmer.beside); n != maxBeside-1 {
		t.Errorf("%d questions run after the last has ended, want %d", n, maxBeside-1)
	}
}

// A panic of an examination is that of its caller, who may ask again; an unreadable file is an error.
func TestExaminationsThatPanic(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{fixture: f})
	if _, err := s.Code(context.Background(), nil, f.at(0x1000)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []Bounded{{S: s}, {s, context.Background()}} {
		var recovered any
		func() {
			defer func() { recovered = recover() }()
			b.Examine(context.Background(), f.id, "", func(*object.File) { panic("x") })
		}()
		if recovered != "x" {
			t.Errorf("recovered %v, want x", recovered)
		}
		err := b.Examine(context.Background(), f.id, "", func(*object.File) { panic(unreadable{}) })
		if !errors.Is(err, object.ErrFault) {
			t.Errorf("unreadable: %v, want %v", err, object.ErrFault)
		}
	}
}
