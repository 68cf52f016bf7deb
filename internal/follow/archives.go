package follow

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// A cutArchive is an archive that ends too soon.
type cutArchive struct {
	size  int64
	since time.Time // first seen with that size
}

// mayGrow reports whether the archive g ends too soon, but may still be written: it has changed
// within linger, by its size and by its modification time.
func (s *search) mayGrow(g *generation) bool {
	d, cut := errors.AsType[damage](g.contents.err)
	info, err := g.Stat()
	if err != nil || !cut || !d.cut {
		return false
	}
	known, ok := s.cut[g.id]
	if !ok || known.size != info.Size() {
		if known = (cutArchive{info.Size(), time.Now()}); s.cut == nil {
			s.cut = make(map[lineage.ID]cutArchive)
		}
		s.cut[g.id] = known
	}
	grows := time.Since(known.since) < linger && time.Since(info.ModTime()) < linger
	switch {
	case !grows:
		delete(s.cut, g.id)
	case info.Size() != g.contents.packedSize:
		g.contents.release()
	}
	s.attention = s.attention || grows
	return grows
}

// damaged notifies the user that unpacking the archive g has failed with err, and how many bytes
// are lost. The contents of g then end at the damage.
func (s *search) damaged(g *generation, err error) {
	at := g.contents.at
	name := filepath.Base(g.name)
	size, known := g.damagedSize(err)
	g.contents.size, g.contents.err = at, nil
	g.size = at
	s.dirty = true
	switch {
	case errors.Is(err, errBomb):
		s.lose(Event{Message: fmt.Sprintf("%s unpacks to more than %d bytes, over %d times its size, which no log does: the rest is left out", name, at, unpackRatio)})
	case known && size == at:
		s.notify(Event{Message: fmt.Sprintf("%s is damaged (%v): all of its %d bytes are read, but some of them may be wrong", name, err, at)})
	case known && size > at:
		s.lose(Event{Message: fmt.Sprintf("%s is damaged after %d bytes of its contents (%v): the other %d bytes are lost", name, at, err, size-at), Lost: size - at})
	default:
		s.lose(Event{Message: fmt.Sprintf("%s is damaged after %d bytes of its contents (%v): the rest is lost", name, at, err)})
	}
}

// reportGone reports that a file in the checkpoint is gone, and which lines are lost. The message
// begins with what, a description of the file. broken is the file's damaged archive, or nil.
func (s *search) reportGone(what string, last savedReading, broken *generation) {
	since := last.Time.Format(time.DateTime)
	lost := max(0, last.Size-last.Off)
	var message strings.Builder
	fmt.Fprintf(&message, "%s that was read up to byte %d is gone", what, last.Off)
	if broken != nil {
		size, known := broken.damagedSize(broken.contents.err)
		message.Reset()
		fmt.Fprintf(&message, "%s that was read up to byte %d is in %s, which is damaged after %d bytes of its contents", what, last.Off, filepath.Base(broken.name), broken.contents.at)
		if known && size >= last.Off {
			fmt.Fprintf(&message, "; its last %d bytes are lost", size-last.Off)
			s.lose(Event{Message: message.String(), Lost: size - last.Off})
			return
		}
	} else if s.foreign != "" {
		fmt.Fprintf(&message, ", and %s is %v", s.foreign, errForeignPacking)
	}
	fmt.Fprintf(&message, "; lines written since %s are lost", since)
	if lost > 0 {
		fmt.Fprintf(&message, ", at least %d bytes", lost)
	}
	s.lose(Event{Message: message.String(), Lost: lost})
}
