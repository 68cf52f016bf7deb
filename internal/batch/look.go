package batch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/symfilter/symfilter/symbolize"
)

// MaxModules bounds the modules of a request. Each module that is waited for takes a goroutine.
const MaxModules = 1000

// memory that a request takes from its room, in bytes
const (
	moduleBytes  = 8 << 10 // stack of a goroutine that waits for a module
	addressBytes = 160     // a location, an answer, and places in slices
	frameBytes   = 160     // a frame without its strings
)

// imagePage is the alignment of images in memory, in bytes. No system has smaller pages.
const imagePage = 4 << 10

// A Room grants memory for one request. After the request, the code that made the Room releases all
// memory.
type Room interface {
	// Take reports whether n more bytes are granted. Many goroutines may call it.
	Take(n int64) bool
}

// ErrNoRoom reports that no memory for a request is available now.
var ErrNoRoom = errors.New("no memory for this request now")

// A Reason explains why an address has no frames, or why its frames may lack detail. The metric
// symfilter_elements_total uses the same words.
type Reason string

// The zero Reason means that the file was found and read: the frames are final.
const (
	NoFile   Reason = "no_file"   // the module's file was not found
	NoSymbol Reason = "no_symbol" // no function covers the address
	Pending  Reason = "pending"   // the file is still searched for, fetched or unpacked
	Fault    Reason = "fault"     // the file was found and cannot be used
	NoRoom   Reason = "no_room"   // the answers of the request have taken its memory
)

// An Answer has the frames at an address, innermost first. Answers to equal locations share frames.
type Answer struct {
	Frames []symbolize.Frame
	Reason Reason // may be Pending beside frames of a file without debug information

	// Start is the address of the function, relative to the image. If no symbol covers the address,
	// Start is the address itself. Only LookInImages sets Start, in answers with frames.
	Start uint64
}

// Look looks up all locations. It waits for missing files until ctx is done. Answers are in the
// order of the locations. Look fails if the room does not grant memory for the questions, or if the
// locations have more than MaxModules modules.
func (s *Symbols) Look(ctx context.Context, locations []symbolize.Location) ([]Answer, error) {
	return s.look(ctx, locations, false)
}

// LookInImages is Look for addresses relative to the first byte of an image in memory. These differ
// from module-relative addresses if a program is linked for a fixed address.
func (s *Symbols) LookInImages(ctx context.Context, locations []symbolize.Location) ([]Answer, error) {
	return s.look(ctx, locations, true)
}

func (s *Symbols) look(ctx context.Context, locations []symbolize.Location, images bool) ([]Answer, error) {
	l := &lookup{symbolizer: s.Symbolizer, room: s.Room, locations: locations, images: images}
	room := s.Room
	if !room.Take(addressBytes * int64(len(locations))) {
		return nil, ErrNoRoom
	}
	l.answers = make([]Answer, len(locations))
	order := make([]int, len(locations))
	for i := range order {
		order[i] = i
	}
	// sorted by build ID and address, so that each unit of the debug information is read once
	slices.SortFunc(order, func(i, j int) int {
		a, b := &locations[i], &locations[j]
		return cmp.Or(strings.Compare(string(a.ID.Bytes()), string(b.ID.Bytes())), cmp.Compare(a.Addr, b.Addr))
	})
	var modules [][]int
	for len(order) > 0 {
		id, n := locations[order[0]].ID, 1
		for n < len(order) && locations[order[n]].ID == id {
			n++
		}
		modules = append(modules, order[:n])
		order = order[n:]
	}
	if len(modules) > MaxModules {
		return nil, TooLargef("the request has %d modules; at most %d are allowed", len(modules), MaxModules)
	}
	if !room.Take(moduleBytes * int64(len(modules))) {
		return nil, ErrNoRoom
	}
	var later [][]int
	for _, m := range modules {
		if !l.module(ctx, m, symbolize.Local) {
			later = append(later, m)
		}
	}
	var waiting sync.WaitGroup
	for _, m := range later {
		waiting.Go(func() { l.module(ctx, m, symbolize.Servers) })
	}
	waiting.Wait()
	return l.answers, nil
}

// A lookup has the parameters of one call of Look, and the answers so far.
type lookup struct {
	symbolizer *symbolize.Symbolizer
	room       Room
	locations  []symbolize.Location
	images     bool // addresses are relative to images
	answers    []Answer
}

// module looks up the locations of one module, in the given order. If wait is Local and servers may
// have the module's file, module returns false: it must be called again with Servers.
func (l *lookup) module(ctx context.Context, order []int, wait symbolize.Wait) bool {
	base, known := uint64(0), !l.images
	for n, i := range order {
		if n > 0 && l.locations[i].Addr == l.locations[order[n-1]].Addr {
			l.answers[i] = l.answers[order[n-1]]
			continue
		}
		where := l.locations[i]
		where.Addr += base
		frames, err := l.symbolizer.Ask(ctx, nil, where, symbolize.Policy{Wait: wait})
		if !known && (err == nil || len(frames) > 0) { // the question has opened the file
			r := l.symbolizer.Report(where.ID, where.Name)
			if known = r.Path != ""; !known { // the file was closed meanwhile
				frames, err = nil, symbolize.ErrPending
			}
			if base = r.Low &^ (imagePage - 1); base != 0 && err == nil {
				where.Addr += base
				frames, err = l.symbolizer.Ask(ctx, nil, where, symbolize.Policy{Wait: wait})
			}
		}
		if wait == symbolize.Local && errors.Is(err, symbolize.ErrPending) && ctx.Err() == nil {
			return false
		}
		l.answers[i] = l.grant(frames, reasonOf(frames, err))
		if l.images && len(frames) > 0 {
			l.answers[i].Start = l.start(ctx, where) - base
		}
		if r := l.answers[i].Reason; r == NoFile {
			for _, j := range order[n:] {
				l.answers[j].Reason = r
			}
			break
		}
	}
	return true
}

// start returns the address of the symbol that covers a location. If no symbol covers it, start
// returns the location's own address.
func (l *lookup) start(ctx context.Context, where symbolize.Location) uint64 {
	v, err := l.symbolizer.AskData(ctx, where, symbolize.Policy{Wait: symbolize.Local})
	if err != nil || v.Offset > where.Addr {
		return where.Addr
	}
	return where.Addr - v.Offset
}

// grant returns an Answer with the frames. If the room does not grant their memory, the Answer has
// no frames and the reason NoRoom.
func (l *lookup) grant(frames []symbolize.Frame, why Reason) Answer {
	var n int64
	for i := range frames {
		n += frameBytes + int64(len(frames[i].Func)+len(frames[i].Linkage)+len(frames[i].File))
	}
	if !l.room.Take(n) {
		return Answer{Reason: NoRoom}
	}
	return Answer{Frames: frames, Reason: why}
}

func reasonOf(frames []symbolize.Frame, err error) Reason {
	miss, fault := (*symbolize.NotFoundError)(nil), (*symbolize.FaultError)(nil)
	switch {
	case errors.As(err, &miss):
		return NoFile
	case errors.As(err, &fault):
		return Fault
	case err != nil: // ErrPending, ErrClosed
		return Pending
	case len(frames) == 0:
		return NoSymbol
	}
	return ""
}
