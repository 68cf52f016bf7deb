package filter

import (
	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
)

type savedLate struct {
	Frames     checkpoint.List[savedFrame] `json:"frames"`
	Unresolved int                         `json:"unresolved"`
	Passed     bool                        `json:"passed,omitempty"`
	Tries      int                         `json:"tries,omitempty"`
}

// A savedFrame is a frame that waits for maps, with the fields needed to locate it and to print its
// footnote.
type savedFrame struct {
	Dialect  string          `json:"dialect"`
	Number   int             `json:"number"`
	Module   checkpoint.Text `json:"module,omitempty"`
	BuildID  string          `json:"build_id,omitempty"`
	Program  bool            `json:"program,omitempty"`
	Deleted  bool            `json:"deleted,omitempty"`
	Kind     dialect.Number  `json:"kind,omitempty"`
	Value    uint64          `json:"value,omitempty"`
	Addr     uint64          `json:"addr,omitempty"`
	Call     dialect.Call    `json:"call,omitempty"`
	Symbol   checkpoint.Text `json:"symbol,omitempty"`
	Offset   int64           `json:"offset,omitempty"`
	Size     uint64          `json:"size,omitempty"`
	Inside   bool            `json:"inside,omitempty"`
	Less     uint64          `json:"less,omitempty"`
	Process  uint64          `json:"process,omitempty"`
	PID      uint64          `json:"pid,omitempty"`
	Usual    uint64          `json:"usual,omitempty"`
	Footnote bool            `json:"footnote,omitempty"`
	Located  bool            `json:"located,omitempty"`
}

// saved returns m for a checkpoint, or nil if no frame waits for maps. It leaves out the map in the
// held line: the line is read again after a restart.
func (m *lateMaps) saved() *savedLate {
	if m.unresolved == 0 {
		return nil
	}
	s := &savedLate{Unresolved: m.unresolved, Passed: m.complete, Tries: m.tries}
	for i := range m.frames {
		f := &m.frames[i]
		s.Frames = append(s.Frames, savedFrame{
			f.Dialect.Name, f.Number, checkpoint.Text(f.Module), f.ID.String(), f.Program, f.Deleted, f.Kind, f.Value, f.Addr, f.Call,
			checkpoint.Text(f.Symbol.Name), f.Symbol.Offset, f.Symbol.Size, f.Symbol.Inside, f.Less, f.Process, f.PID, f.Usual, f.Footnote, f.Place.Err == nil,
		})
	}
	return s
}

// restore sets m, which must be empty, from the result of saved.
func (m *lateMaps) restore(s *savedLate) error {
	if s == nil {
		return nil
	}
	dialects := make(map[string]*dialect.Dialect)
	for _, d := range dialect.All() {
		dialects[d.Name] = d
	}
	for i := range s.Frames {
		from := &s.Frames[i]
		id, err := savedID(from.BuildID)
		if err != nil {
			return err
		}
		f := judge.Frame{Frame: &dialect.Frame{
			Dialect: dialects[from.Dialect], Number: from.Number,
			LoggedPlace: dialect.LoggedPlace{
				Module: string(from.Module), ID: id, Program: from.Program, Deleted: from.Deleted,
				Kind: from.Kind, Value: from.Value, Addr: from.Addr, Call: from.Call,
				Symbol: dialect.Symbol{Name: string(from.Symbol), Offset: from.Offset, Size: from.Size, Inside: from.Inside},
				Less:   from.Less, Usual: from.Usual,
			},
			Proof:   dialect.Proof{Process: from.Process, PID: from.PID},
			Rewrite: dialect.Rewrite{Footnote: from.Footnote},
		}}
		if f.Dialect == nil || f.Kind > dialect.FileOrRuntime || f.Call > dialect.System {
			return checkpoint.Damaged("a frame that waits for maps is not valid")
		}
		if !from.Located {
			f.Place.Err = judge.ErrNoBias
		}
		if f.Footnote {
			m.note(f.Addr)
		}
		m.keep([]judge.Frame{f})
	}
	m.unresolved, m.complete, m.tries = min(m.unresolved, s.Unresolved), s.Passed, max(s.Tries, 0)
	return nil
}
