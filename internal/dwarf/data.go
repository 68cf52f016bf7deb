package dwarf

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/symfilter/symfilter/internal/object"
)

// ErrNoDebugInfo reports that a file has no .debug_info, or an empty one.
var ErrNoDebugInfo = errors.New("no debug information")

// ErrDamaged reports debug information that contradicts itself, points outside its section, or
// breaks a limit.
var ErrDamaged = errors.New("damaged debug information")

// A Frame is a function or an inlined call that covers an address.
type Frame struct {
	// Name is the linkage (mangled) name if there is one, otherwise the plain name; nil if unknown.
	// UseNames changes this. Name aliases a file, and is valid until the next Lookup or Shrink,
	// which may close the file of a split unit.
	Name       []byte
	HasLinkage bool // Name is a linkage name
	// Ref is the number of the name, for [Data.Name]; 0 if unknown. After LazyNames it replaces
	// Name, except in split units. Equal numbers mean equal names.
	Ref uint64

	File    string // as recorded: joined with its directories, not cleaned; "" if unknown
	CompDir int    // bytes of File that are the compilation directory and its separator
	// bytes of File before the recorded name of the file; that name may itself begin with
	// directories
	Dir int

	PlainFile bool // File is printable ASCII

	Line   uint32 // 1-based; 0: unknown
	Column uint32 // 1-based; 0: unknown

	Inlined bool // inlined into the function of the next frame

	Details *Details // nil unless WithDetails was called
}

// Data is the debug information of one file. One goroutine at a time may use it.
type Data struct {
	sec sections
	budget
	unitTable
	addressIndex
	sharing
	links *links     // files to which this one refers; nil if no file may be opened
	vars  *variables // nil before the first lookup of a variable or a type

	big       bool // byte order
	names     Naming
	lazyNames bool                // see LazyNames
	detailed  bool                // see WithDetails
	beside    func(func()) func() // see Beside; nil: a lookup runs in one goroutine
	scratch   *scratch            // set during a lookup: see space
}

// New finds the debug sections of f, and follows references to other files with l. It parses
// nothing. It returns ErrNoDebugInfo if .debug_info is missing or empty. f must stay open as long
// as the Data and names from it are used.
func New(f *object.File, l Links) (*Data, error) {
	if s, ok := f.Section(sectionNames[secInfo]); !ok || s.Size == 0 {
		return nil, ErrNoDebugInfo
	}
	d := newData(sections{
		big:      f.Order == binary.BigEndian,
		zeroCode: f.ExecCovers(0),
		vars:     varSectionsOf(f),
		load:     f.Data,
	})
	if f.Type == elf.ET_REL {
		d.chooseInfo(f)
		d.sec.placed = f.Placed()
	}
	d.link(l)
	return d, nil
}

// A Naming selects the names that Lookup returns.
type Naming uint8

const (
	Linkage         Naming = iota // linkage names, plain names if there are none
	AllDeclared                   // the names in declarations (DW_AT_name)
	InlinedDeclared               // declared names for inlined calls, linkage names for functions
)

// UseNames selects the names that Lookup returns. It must come before the first Lookup.
func (d *Data) UseNames(n Naming) {
	d.names = n
	if alt := d.links.supplementary(); alt != nil {
		alt.names = n
	}
}

func newData(s sections) *Data {
	d := &Data{sec: s, big: s.big, budget: budget{meter: new(meter)}}
	d.connect()
	return d
}

func (d *Data) connect() {
	d.unitTable.d, d.addressIndex.d, d.sharing.d = d, d, d
}

// Lookup appends the functions that contain the code at addr, a link-time address: innermost first,
// the function with the machine code last. If only the line is known, it appends one frame without
// a name. If nothing is known, it appends nothing. In parsed units it allocates only dst and new
// paths.
//
// An error wraps ErrDamaged, or is the reason why a section could not be loaded. Frames that are
// returned with an error can be used.
func (d *Data) Lookup(dst []Frame, addr uint64) ([]Frame, error) {
	d.begin()
	if d.shelf != nil {
		d.tick = d.shelf.clock.Add(1)
		frames, err := d.lookupShared(dst, addr)
		d.trim()
		return frames, err
	}
	u := d.unitFor(addr)
	if u != nil {
		u.used = d.tick
		d.work = maxWork // tables of the whole file do not use up the unit's budget
		hu := d.links.enterSplit(u)
		dst = u.lookup(hu, dst, addr)
		d.count(u)
		d.links.leaveSplit(u, hu)
	}
	d.trim()
	return dst, d.firstErr(u)
}

// lookup is Lookup in u, the unit that describes addr. The functions are in hu, which is u itself
// unless u is split.
func (u *unit) lookup(hu *unit, dst []Frame, addr uint64) []Frame {
	var frame Frame
	var at int
	var calls []call
	row, cold := u.beginLine(addr)
	if cold != nil {
		at, calls, row = u.innermostAndRow(hu, cold)
	} else {
		at, calls = hu.innermost(addr)
	}
	file := uint32(noFile)
	if row.ok {
		file = uint32(row.file)
		if frame = inFile(u.path(file)); frame.File != "" {
			frame.Line, frame.Column = row.line, uint32(row.column)
		}
	}
	if at < 0 {
		if frame.File != "" {
			if u.d.detailed {
				frame.Details = &Details{Discriminator: u.discriminator(row, addr), Within: u.within(file)}
			}
			dst = append(dst, frame)
		}
		return dst
	}
	var discriminator uint32
	if u.d.detailed {
		discriminator = u.discriminator(row, addr)
	}
	for n := 1; ; n++ {
		c := &calls[at]
		name := hu.nameCall(c)
		if u.d.lazyNames && hu == u {
			frame.Ref = name.number()
		} else {
			frame.Name = hu.d.text(name)
		}
		frame.HasLinkage, frame.Inlined = c.state == linkageName, !c.function
		if u.d.detailed {
			frame.Details, discriminator = u.details(hu, c.entry, discriminator)
			frame.Details.Within, frame.Details.Split = u.within(file), hu != u
			frame.Details.Linker = frame.HasLinkage || hu.isLinkerName(c.entry)
		}
		dst = append(dst, frame)
		if c.function || c.parent == noParent {
			return dst
		}
		file = c.file
		frame = inFile(u.path(file))
		frame.Line, frame.Column = c.line, c.column
		at = int(c.parent)
		if n == maxFrames-1 {
			at = 0 // the function itself is returned however deep the calls are
		}
	}
}

func inFile(p path) Frame {
	return Frame{File: p.text, CompDir: int(p.comp), Dir: int(p.dir), PlainFile: p.plain}
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

// Beside lets long lookups do a part of their work in another goroutine. They call start with this
// part as the function run, which reads nothing that the rest of the lookup writes. start calls
// run, in this or in another goroutine, and returns a function that waits for the end of run.
// Beside must come before the first Lookup.
func (d *Data) Beside(start func(run func()) (wait func())) { d.beside = start }

// Footprint returns the bytes of heap held by parsed units and tables. It only adds up counters. It
// does not include sections: see [object.File.Footprint].
func (d *Data) Footprint() int64 {
	tables := d.shelf.footprint()
	if d.shelf == nil {
		tables = sizeOf(d.listed) + sizeOf(d.roots) + sizeOf(d.unlisted) + sizeOf(d.offsets)
	} else if d.besideOther {
		tables = 0
	}
	return d.held + d.links.footprint() + tables + d.vars.footprint()
}

// Shrink drops parsed units, the least recently used first, until the footprint is at most target
// bytes. If that is not enough, it also drops everything else that can be parsed again.
func (d *Data) Shrink(target int64) {
	excess := d.Footprint() - target
	if excess <= 0 {
		return
	}
	type parsed struct {
		used uint64
		in   *Data      // nil: the shelf has the unit
		unit *unit      // nil: the whole file is dropped
		file *splitFile // the file with split units that in describes; nil for d
	}
	var all []parsed
	for u := range d.units.all() {
		all = append(all, parsed{u.used, d, u, nil})
	}
	if !d.besideOther {
		for u, used := range d.shelf.idle() {
			all = append(all, parsed{used, nil, u, nil})
		}
	}
	for _, f := range d.links.all() {
		if f.data == nil {
			continue
		}
		if !f.data.packaged {
			all = append(all, parsed{f.used, f.data, nil, f})
			continue
		}
		for u := range f.data.units.all() {
			all = append(all, parsed{u.used, f.data, u, f})
		}
	}
	slices.SortFunc(all, func(a, b parsed) int { return cmp.Compare(a.used, b.used) })
	for _, p := range all {
		switch {
		case p.unit == nil:
			excess -= p.file.held
			d.links.close(p.file)
		case p.in == nil:
			excess -= d.shelf.dropIdle(p.unit)
		default:
			excess -= p.unit.held
			p.in.held -= p.unit.held
			p.in.units.drop(p.unit.off)
			if p.file != nil {
				d.links.count(p.file)
			}
		}
		if excess <= 0 {
			return
		}
	}
	if !d.besideOther {
		d.shelf.dropTables()
	}
	// no unit refers to the tables any longer
	for _, f := range d.links.all() {
		d.links.close(f)
	}
	d.links.shrink()
	*d = Data{
		sec: d.sec, big: d.big, links: d.links, names: d.names, lazyNames: d.lazyNames, detailed: d.detailed, beside: d.beside,
		budget:    budget{tick: d.tick, meter: d.meter, afford: d.afford},
		unitTable: unitTable{packaged: d.packaged},
		sharing:   sharing{shelf: d.shelf, epoch: d.epoch, besideOther: d.besideOther, leftOff: d.leftOff},
	}
	d.connect()
}
