package object

import (
	"debug/elf"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/symfilter/symfilter/internal/unpack"
)

// An Unpacking inflates compressed sections of a file. [File.Unpack] begins it and Keep or Drop
// ends it, in the goroutine that uses the file. Another goroutine may call Run meanwhile; the file
// must stay open.
type Unpacking struct {
	d     *sectionData
	jobs  []*unpacked
	size  uint64 // bytes of the arena
	extra uint64 // bytes that the decoders take in addition
	arena *arena
	err   error // error of Run, or nil
}

// An unpacked holds a compressed section and, after Run, its inflated bytes or the error.
type unpacked struct {
	name string
	unpack.Stream
	kept
	at uint64 // bytes from the start of the arena
}

const sectionAlign = 64 // bytes of a cache line, at which sections begin

// Unpack returns an Unpacking of the named sections, except sections that are not compressed,
// already in memory, or relocated. It reads only their headers.
func (d *sectionData) Unpack(names ...string) *Unpacking {
	u := &Unpacking{d: d}
	for _, name := range names {
		s := d.section(name)
		if d.closed || s == nil || s.Type == elf.SHT_NOBITS || !within(s.Offset, s.Size, d.size) {
			continue
		}
		if _, ok := d.kept[name]; ok || d.relocates(name, s) || slices.ContainsFunc(u.jobs, func(j *unpacked) bool { return j.name == name }) {
			continue
		}
		legacy := isLegacy(name, s)
		if !legacy && s.Flags&elf.SHF_COMPRESSED == 0 {
			continue
		}
		j := &unpacked{name: name}
		if j.Stream, j.err = d.stream(s, legacy); j.err == nil {
			d.claims.add(s, &j.Stream)
		}
		u.jobs = append(u.jobs, j)
	}
	var windows []uint64
	for _, j := range u.jobs {
		if j.err == nil {
			j.err = d.claims.refuse(&j.Stream)
		}
		if j.err != nil {
			continue
		}
		j.at = u.size
		u.size += (j.Size + unpack.Slack + sectionAlign - 1) &^ (sectionAlign - 1)
		windows = append(windows, j.Window())
	}
	slices.Sort(windows)
	for _, n := range windows[max(0, len(windows)-runtime.GOMAXPROCS(0)):] {
		u.extra += n
	}
	return u
}

// Size returns the bytes of memory that Run takes.
func (u *Unpacking) Size() int64 { return int64(u.size + u.extra) }

// Run inflates sections, as many at a time as there are CPUs. take and must, unless nil, replace
// Options.Take, and may wait: take for the sections, and must for the decoders' own memory, which
// cannot go to a file. Run returns after its goroutines have ended.
func (u *Unpacking) Run(take, must func(int64) error) {
	o := &u.d.room.Options
	if take == nil {
		take = o.Take
	}
	if must == nil {
		must = o.Take
	}
	switch {
	case u.size == 0:
		return
	case take == nil:
		u.arena = &arena{bytes: make([]byte, u.size), onHeap: true}
	default:
		if u.extra > 0 { // first: without this memory, a spill file would be useless
			if u.err = must(int64(u.extra)); u.err != nil {
				return
			}
			defer o.Give(int64(u.extra))
		}
		if u.arena, u.err = o.newArena(u.size, take); u.err != nil {
			u.arena, u.err = o.spill(u.size, u.err)
		}
		if u.err != nil {
			return
		}
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, j := range u.jobs {
		if j.err != nil {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if !u.arena.spilled() {
				j.data, j.err = j.Into(u.arena.bytes[j.at:j.at+j.Size+unpack.Slack], populate)
			} else if j.err = u.arena.fill(j.Stream, j.at); j.err == nil {
				j.data = u.arena.bytes[j.at : j.at+j.Size : j.at+j.Size]
			}
		})
	}
	all.Wait()
	if err := u.arena.written(); err != nil {
		u.err = fmt.Errorf("%w: %w", ErrMemory, err)
		u.Drop()
	}
}

// Err returns the error of Run, which wraps [ErrMemory], or nil.
func (u *Unpacking) Err() error { return u.err }

// Keep makes Data return the sections that Run inflated. Its error wraps [ErrMemory]; Data returns
// the other errors.
func (u *Unpacking) Keep() error {
	if u.err != nil {
		return u.err
	}
	if u.d.closed {
		u.Drop()
		return nil
	}
	if !slices.ContainsFunc(u.jobs, func(j *unpacked) bool { return j.err == nil }) {
		u.Drop() // no section was inflated
	}
	if u.arena != nil {
		u.d.room.add(u.arena)
	}
	for _, j := range u.jobs {
		j.offHeap = u.arena != nil && !u.arena.onHeap
		u.d.keep(j.name, j.kept)
	}
	return nil
}

// Drop ends the Unpacking in place of Keep, and frees its memory.
func (u *Unpacking) Drop() {
	if u.arena != nil {
		u.arena.free(&u.d.room.Options)
		u.arena = nil
	}
}

// Spilled returns the number of bytes in the spill file; 0 if there is none.
func (u *Unpacking) Spilled() int64 {
	if u.arena == nil || !u.arena.spilled() {
		return 0
	}
	return int64(len(u.arena.bytes))
}

// Inflate inflates the named sections and keeps them: it calls Unpack, Run and Keep.
func (d *sectionData) Inflate(names ...string) error {
	u := d.Unpack(names...)
	u.Run(nil, nil)
	return u.Keep()
}
