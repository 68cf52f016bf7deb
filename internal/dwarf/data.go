package dwarf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/symfilter/symfilter/internal/object"
)

// ErrNoDebugInfo says that a file has no .debug_info, or an empty one.
var ErrNoDebugInfo = errors.New("no debug information")

// ErrDamaged says that a part of the debug information contradicts itself, points outside its section, or breaks a limit.
var ErrDamaged = errors.New("damaged debug information")

// A Frame is one function that an address is in.
type Frame struct {
	// Name is the linkage (mangled) name, or the plain name where there is no other; nil when unknown. It aliases
	// the file, and is valid until the object is closed.
	Name       []byte
	HasLinkage bool // Name is a linkage name

	File    string // as recorded: joined with its directories, not cleaned; "" when unknown
	CompDir int    // bytes of File that are the compilation directory and what separates it from the rest
	Dir     int    // bytes of File before the name of the file, which may begin with directories, too

	Line   uint32 // from 1; 0 when unknown
	Column uint32 // from 1; 0 when unknown

	Inlined bool // the function was inlined into that of the next frame
}

// Data is the debug information of one file. It is used by one goroutine at a time.
type Data struct {
	sec sections
	big bool

	units   map[uint64]*unit
	abbrevs map[abbrevKey]*abbrevTable
	held    int64 // bytes of heap of units and abbrevs
	walked  bool  // offsets is set
	offsets []uint64

	// The units' ranges. Each kind is looked at linearly at first, and swept once lookups are many.
	listed      rangeSet    // those in .debug_aranges
	roots       []unitRange // those of units that are not mentioned there, before the sweep
	unlisted    rangeSet    // and after it
	listedLooks int
	tooMany     bool // ranges in .debug_aranges to keep
	rootLooks   int

	short bool // names are DW_AT_name, see UseShortNames

	tick  uint64 // lookups so far
	work  int    // steps left for the present lookup
	err   error  // the first damage that the present lookup found outside of units
	spans []span // scratch space, as are the next two
	rows  []lineRow
	table abbrevTable
}

// New finds the debug sections of f. It parses nothing, and returns ErrNoDebugInfo when there is nothing to parse. f must stay open as long as the Data
// and the names from it are in use.
func New(f *object.File) (*Data, error) {
	if s, ok := f.Section(sectionNames[secInfo]); !ok || s.Size == 0 {
		return nil, ErrNoDebugInfo
	}
	return newData(sections{
		big:      f.Order == binary.BigEndian,
		zeroCode: f.ExecCovers(0),
		load:     f.Data,
	}), nil
}

// UseShortNames makes Lookup give the names that functions are declared with, DW_AT_name, in place of linkage names. It must come
// before the first Lookup.
func (d *Data) UseShortNames() { d.short = true }

func newData(s sections) *Data { return &Data{sec: s, big: s.big} }

// Lookup appends the functions that the code at addr, a link-time address, is in: innermost first, the function whose machine
// code it is last. Where only the line is known, it appends one frame without a name; where nothing is known, nothing. It allocates
// nothing for units that it has seen, but for dst and paths not asked for before.
//
// An error wraps ErrDamaged, or tells why a section could not be loaded. Frames found nevertheless come with it and may be used.
func (d *Data) Lookup(dst []Frame, addr uint64) ([]Frame, error) {
	d.tick++
	d.work, d.err = maxWork, nil
	u := d.unitFor(addr)
	if u != nil {
		u.used = d.tick
		d.work = maxWork // tables of the whole file must not cost a unit its own
		dst = d.lookupIn(u, dst, addr)
		d.count(u)
	}
	d.trim()
	return dst, d.firstErr(u)
}

// lookupIn is Lookup in the unit that describes addr.
func (d *Data) lookupIn(u *unit, dst []Frame, addr uint64) []Frame {
	var frame Frame
	if row := d.lineAt(u, addr); row.ok {
		if frame = inFile(d.path(u, uint32(row.file))); frame.File != "" {
			frame.Line, frame.Column = row.line, uint32(row.column)
		}
	}
	at, calls := -1, []call(nil)
	if fn := d.functionAt(u, addr); fn >= 0 {
		at, calls = d.callAt(u, fn, addr)
	}
	if at < 0 {
		if frame.File != "" {
			dst = append(dst, frame)
		}
		return dst
	}
	for n := 1; ; n++ {
		c := &calls[at]
		d.nameCall(u, c)
		frame.Name, frame.HasLinkage, frame.Inlined = d.text(c.name), c.linkage, !c.function
		dst = append(dst, frame)
		if c.function || c.parent == noParent {
			return dst
		}
		frame = inFile(d.path(u, c.file))
		frame.Line, frame.Column = c.line, c.column
		at = int(c.parent)
		if n == maxFrames-1 {
			at = 0 // the function itself is shown however deep the calls are
		}
	}
}

// inFile returns a frame in a source file.
func inFile(p path) Frame { return Frame{File: p.text, CompDir: int(p.comp), Dir: int(p.dir)} }

// unitFor returns the unit that describes addr, or nil.
func (d *Data) unitFor(addr uint64) *unit {
	off := d.listedUnit(addr)
	if off == noUnit {
		off = d.unlistedUnit(addr)
	}
	if off == noUnit {
		return nil
	}
	return d.unitAt(off)
}

// spend takes n steps off the budget of the present lookup, and reports whether it lasts.
func (d *Data) spend(n int) bool {
	d.work -= n
	if d.work >= 0 {
		return true
	}
	d.work = 0
	d.damaged("more than %d steps for one address", maxWork)
	return false
}

func (d *Data) damaged(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("dwarf: %s: %w", fmt.Sprintf(format, args...), ErrDamaged)
	}
}

func (d *Data) firstErr(u *unit) error {
	switch {
	case d.sec.err != nil:
		return d.sec.err
	case u != nil && u.err != nil:
		return u.err
	}
	return d.err
}

// trim lets go of scratch space that an unusual lookup made large.
func (d *Data) trim() {
	if sizeOf(d.spans) > maxScratchKept {
		d.spans = nil
	}
	if sizeOf(d.rows) > maxScratchKept {
		d.rows = nil
	}
	if d.table.footprint() > maxScratchKept {
		d.table = abbrevTable{}
	}
}

// Footprint returns the bytes of heap held by what was parsed; asking costs nothing. Sections are not counted: see [object.File.Footprint].
func (d *Data) Footprint() int64 {
	return d.held + sizeOf(d.listed) + sizeOf(d.roots) + sizeOf(d.unlisted) + sizeOf(d.offsets) +
		sizeOf(d.spans) + sizeOf(d.rows) + d.table.footprint() - int64(unsafe.Sizeof(d.table))
}

// Shrink drops parsed units, those first whose last lookup is longest ago, until the footprint is at most target bytes; then, if that is not
// enough, all else that can be parsed again.
func (d *Data) Shrink(target int64) {
	held := d.Footprint()
	if held <= target {
		return
	}
	units := slices.SortedFunc(maps.Values(d.units), func(a, b *unit) int { return cmp.Compare(a.used, b.used) })
	for _, u := range units {
		held -= u.held
		d.held -= u.held
		delete(d.units, u.off)
		if held <= target {
			return
		}
	}
	// No unit is left that refers to the tables.
	*d = Data{sec: d.sec, big: d.big, short: d.short, tick: d.tick}
}
