package collector

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/mapped"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	// maxAdded bounds the bytes added to the dictionary of a batch. A hostile profile may have
	// millions of addresses of one function with many inlined calls.
	maxAdded = 64 << 20
	// maxModules bounds the used mappings of a batch, which take 20 MiB. By default, a Linux
	// process has at most 65,530 mappings.
	maxModules = 1 << 16
	// maxIndexed bounds the functions and the strings of the dictionary that are indexed for reuse,
	// which takes 30 MiB. Further functions and strings may be added twice.
	maxIndexed = 1 << 18
	// sortedAtOnce is the number of locations without a kept answer that are looked up together:
	// 6 MiB.
	sortedAtOnce = 1 << 16
	// maxBatch bounds the memory for naming a batch. Afterwards, at most maxAdded of these bytes
	// remain in use.
	maxBatch = maxAdded + 56<<20
	// maxName bounds the paths that are used: Linux's PATH_MAX.
	maxName = 4096
	// maxPaths bounds the files opened for a batch's mappings without a build ID.
	maxPaths = 1024
	// namelessFor is the lifetime of the answer that an address has no function.
	namelessFor = time.Minute
)

// Approximate bytes of an added line, function and string, including their entries in slices and
// maps.
const (
	lineBytes     = 48
	functionBytes = 160
	stringBytes   = 96
)

// Attributes of mappings and locations, named by the semantic conventions.
const (
	buildIDAttribute   = "process.executable.build_id.gnu"
	frameTypeAttribute = "profile.frame.type"
)

// A locationResult is the result of naming a location: success, or the reason for the missing name.
type locationResult uint8

const (
	locationNamed   locationResult = iota
	locationOther                  // code of an interpreter, which no ELF file names
	locationModule                 // no mapping
	locationBuildID                // a mapping without a build ID
	locationMapping                // a mapping that does not determine the address in the file
	locationMissing                // no debug file was found
	locationPending                // the debug file did not arrive in time
	locationSymbol                 // the debug file has no function at the address
	locationFault                  // the debug file is damaged
	locationDamaged                // an index in the profile is out of range
	locationLimit                  // the batch has too many new lines, or mappings
	locationResults
)

var locationResultNames = [locationResults]string{
	"named", "other", "no_module", "no_build_id", "no_mapping", "no_file", "pending", "no_symbol", "fault", "damaged", "limit",
}

// A naming names the locations of one dictionary. Only its code uses the data model of
// profiles.
type naming struct {
	s       *shared
	w       *waiting
	dict    pprofile.ProfilesDictionary
	results [locationResults]int64

	modules    map[int32]*module   // used modules, by the index of the mapping
	noMore     module              // stands for mappings beyond maxModules
	numbers    map[image]int       // number of each file
	paths      *report.Objects     // files of mappings without a build ID; nil: none yet
	references map[int32]int32     // indexes of strings, by attribute
	functions  map[*function]int32 // indexes in the function table
	indexes    map[functionKey]int32
	strings    map[string]int32
	pending    []pendingLocation
	added      int
	frames     []symbolize.Frame // scratch memory
}

// A functionKey identifies a function in the function table by the indexes of its strings, and by
// its first line.
type functionKey struct {
	name, system, file int32
	line               int64
}

// A pendingLocation is a location without a kept answer.
type pendingLocation struct {
	at     spot
	module *module
	index  int
}

// A module is the file of a mapping.
type module struct {
	image
	name   string // name for the Symbolizer
	is     mapped.Range
	number int            // number of the image, by its first mapping
	result locationResult // reason for missing names; locationNamed if there may be names
	file   mapped.File
	known  bool // file is set
}

func newNaming(s *shared, dict pprofile.ProfilesDictionary, w *waiting) *naming {
	return &naming{
		s: s, w: w, dict: dict, modules: make(map[int32]*module), numbers: make(map[image]int), noMore: module{result: locationLimit},
	}
}

// locations names the locations without function names. Kept answers come first. Other locations
// are looked up by address, since neighbours are in the same unit of debug information.
func (n *naming) locations() {
	table := n.dict.LocationTable()
	for i := range table.Len() {
		l := table.At(i)
		if i == 0 && l.Address() == 0 || n.hasName(l) {
			continue // location 0 means no location
		}
		if n.otherCode(l) {
			n.results[locationOther]++
			continue
		}
		m := n.module(l.MappingIndex())
		at, result := n.spot(m, l.Address())
		if result != locationNamed {
			n.results[result]++
			continue
		}
		if a, ok := n.s.named.get(at); ok {
			n.results[n.setLines(l, a)]++
			continue
		}
		if n.pending = append(n.pending, pendingLocation{at, m, i}); len(n.pending) == sortedAtOnce {
			n.ask()
		}
	}
	n.ask()
}

// hasName reports whether a location has lines with a function.
func (n *naming) hasName(l pprofile.Location) bool {
	for _, line := range l.Lines().All() {
		f := n.dict.FunctionTable()
		if i := line.FunctionIndex(); i > 0 && int(i) < f.Len() && n.str(f.At(int(i)).NameStrindex()) != "" {
			return true
		}
	}
	return false
}

// str returns a string of the table, or "" for an index out of range.
func (n *naming) str(i int32) string {
	if i < 0 || int(i) >= n.dict.StringTable().Len() {
		return ""
	}
	return n.dict.StringTable().At(int(i))
}

// attribute returns the text of an attribute.
func (n *naming) attribute(of pcommon.Int32Slice, name string) string {
	table := n.dict.AttributeTable()
	for i := range of.Len() {
		if at := of.At(i); at > 0 && int(at) < table.Len() {
			if a := table.At(int(at)); n.str(a.KeyStrindex()) == name {
				if a.Value().Type() == pcommon.ValueTypeEmpty {
					return n.reference(at)
				}
				return a.Value().Str()
			}
		}
	}
	return ""
}

// reference returns the text of an attribute whose value is an index in the string table. The API
// of pdata v0.160.0 shows this value as empty; only its marshalers write the index.
func (n *naming) reference(attribute int32) string {
	i, ok := n.references[attribute]
	if !ok {
		alone := pprofile.NewProfiles()
		n.dict.AttributeTable().At(int(attribute)).CopyTo(alone.Dictionary().AttributeTable().AppendEmpty())
		var parsed struct {
			Dictionary struct {
				AttributeTable []struct {
					Value struct{ StringValueStrindex int32 }
				}
			}
		}
		text, err := new(pprofile.JSONMarshaler).MarshalProfiles(alone)
		if err == nil && json.Unmarshal(text, &parsed) == nil && len(parsed.Dictionary.AttributeTable) == 1 {
			i = parsed.Dictionary.AttributeTable[0].Value.StringValueStrindex
		}
		if n.references == nil || len(n.references) == maxModules {
			n.references = make(map[int32]int32)
		}
		n.references[attribute] = i
	}
	return n.str(i)
}

// otherCode reports whether a location is code of an interpreter, by the type of its frame.
func (n *naming) otherCode(l pprofile.Location) bool {
	switch n.attribute(l.AttributeIndices(), frameTypeAttribute) {
	case "", "native", "kernel", "go", "rust":
		return false
	}
	return true
}

func (n *naming) module(index int32) *module {
	m := n.modules[index]
	if m == nil {
		if len(n.modules) == maxModules {
			return &n.noMore
		}
		m = n.newModule(index)
		n.modules[index] = m
	}
	return m
}

func (n *naming) newModule(index int32) *module {
	table := n.dict.MappingTable()
	switch {
	case index == 0:
		return &module{result: locationModule}
	case index < 0 || int(index) >= table.Len():
		return &module{result: locationDamaged}
	}
	mapping := table.At(int(index))
	m := &module{is: mapped.Range{Start: mapping.MemoryStart(), Limit: mapping.MemoryLimit(), Offset: mapping.FileOffset()}}
	text, path := n.attribute(mapping.AttributeIndices(), buildIDAttribute), n.str(mapping.FilenameStrindex())
	if len(path) > maxName {
		path = ""
	}
	if text == "" {
		n.atPath(m, path)
	} else if id, err := buildid.Parse([]byte(text)); err != nil || id.IsZero() {
		m.result = locationBuildID
	} else {
		m.id, m.name = id, cmp.Or(path, id.String())
	}
	if m.result != locationNamed {
		return m
	}
	number, ok := n.numbers[m.image]
	if !ok {
		number = len(n.numbers)
		n.numbers[m.image] = number
	}
	m.number = number
	n.s.symbols.Symbolizer.Prefetch(m.id, m.name)
	return m
}

// atPath sets the image of a mapping without a build ID to the file at its path. The configuration
// must allow this, and the mapping must fit the file's code.
func (n *naming) atPath(m *module, path string) {
	m.result = locationBuildID
	if path == "" || !n.s.cfg.Symbols.ModulePaths {
		return
	}
	if n.w.local.Err() != nil {
		m.result = locationPending
		return
	}
	if n.paths == nil {
		n.paths = report.NewObjects(&report.Options{}, maxPaths, false)
	}
	f := n.paths.Named(path)
	layout := mapped.NewFile(f.Loads, true)
	if f.Err != nil || !layout.Fits(m.is, true) {
		return
	}
	m.result, m.file, m.known = locationNamed, layout, true
	if m.id, m.name = f.ID, f.Path; f.ID.IsZero() {
		m.name = report.NameOf(f.Path, f.State)
		m.path = m.name
	}
}

// spot converts addr to an address in the file of m. An addr outside of the mapping is already an
// address in the file, as OpenTelemetry's eBPF profiler sends it.
func (n *naming) spot(m *module, addr uint64) (spot, locationResult) {
	if m.result != locationNamed || m.is.Start == 0 || !m.is.Has(addr) {
		return spot{m.image, addr}, m.result
	}
	if !m.known {
		n.findLayout(m)
		if m.result != locationNamed {
			return spot{}, m.result
		}
	}
	rel, err := m.file.Relative(m.is, addr)
	if err != nil {
		return spot{}, locationMapping
	}
	return spot{m.image, rel}, locationNamed
}

// layouts is implemented by the Symbolizer. Layout returns the segments of a module's file.
type layouts interface {
	Layout(ctx, within context.Context, id buildid.ID, name string) (segments []object.Segment, fixed bool, err error)
}

// findLayout sets the segments of a module's debug file, or the reason why they are unknown.
func (n *naming) findLayout(m *module) {
	ctx, policy := n.w.now()
	l := symbolize.Location{ID: m.id, Name: m.name}
	// this lookup waits for the debug file, at most for the patience
	if _, err := n.s.symbols.Symbolizer.Ask(ctx, nil, l, policy); err != nil {
		m.result = resultOf(err)
		return
	}
	segments, _, err := access.Symbolizer(n.s.symbols.Symbolizer).(layouts).Layout(ctx, nil, m.id, m.name)
	if err != nil {
		m.result = resultOf(err)
		return
	}
	m.file, m.known = mapped.NewFile(segments, false), true
}

// resultOf returns the result for an error of the Symbolizer.
func resultOf(err error) locationResult {
	if errors.Is(err, symbolize.ErrPending) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return locationPending
	}
	if _, ok := errors.AsType[*symbolize.NotFoundError](err); ok {
		return locationMissing
	}
	return locationFault
}

// ask looks up the pending locations.
func (n *naming) ask() {
	slices.SortFunc(n.pending, func(a, b pendingLocation) int {
		if a.module.number != b.module.number {
			return cmp.Compare(a.module.number, b.module.number)
		}
		return cmp.Compare(a.at.addr, b.at.addr)
	})
	for i := range n.pending {
		p := &n.pending[i]
		a, result := n.answer(p)
		switch result {
		case locationNamed:
			n.s.named.put(p.at, a)
			result = n.setLines(n.dict.LocationTable().At(p.index), a)
		case locationSymbol:
			n.s.named.put(p.at, answer{until: time.Now().Add(namelessFor)})
		}
		n.results[result]++
	}
	n.pending = n.pending[:0]
}

// answer looks up a location.
func (n *naming) answer(p *pendingLocation) (a answer, result locationResult) {
	if p.module.result != locationNamed {
		return a, p.module.result
	}
	ctx, policy := n.w.now()
	frames, err := n.s.symbols.Symbolizer.Ask(ctx, n.frames[:0], symbolize.Location{ID: p.at.id, Name: p.module.name, Addr: p.at.addr}, policy)
	n.frames = frames
	if err != nil {
		if result = resultOf(err); result == locationMissing {
			p.module.result = result
		}
		return a, result
	}
	if !slices.ContainsFunc(frames, func(f symbolize.Frame) bool { return f.Func != "" }) {
		return a, locationSymbol
	}
	for i := range frames {
		f := &frames[i]
		l := line{function: &function{cmp.Or(f.Func, "??"), report.LinkName(f), f.File}}
		if f.HasLine {
			l.line, l.column = int64(f.Line), int64(f.Column)
		}
		a.lines = append(a.lines, l)
		if !f.Until.IsZero() {
			a.until = f.Until
		}
	}
	return a, locationNamed
}

// setLines gives a location the lines of an answer.
func (n *naming) setLines(l pprofile.Location, a answer) locationResult {
	if len(a.lines) == 0 {
		return locationSymbol
	}
	if n.added > maxAdded || n.dict.FunctionTable().Len() > math.MaxInt32-len(a.lines) || n.dict.StringTable().Len() > math.MaxInt32-3*len(a.lines) {
		return locationLimit
	}
	lines := l.Lines()
	lines.RemoveIf(func(pprofile.Line) bool { return true }) // the previous lines had no function
	for i := range a.lines {
		to := lines.AppendEmpty()
		to.SetFunctionIndex(n.functionIndex(a.lines[i].function))
		to.SetLine(a.lines[i].line)
		to.SetColumn(a.lines[i].column)
		n.added += lineBytes
	}
	return locationNamed
}

// functionIndex returns the index of a function in the table, added if new.
func (n *naming) functionIndex(f *function) int32 {
	if i, ok := n.functions[f]; ok {
		return i
	}
	n.readTables()
	key := functionKey{name: n.stringIndex(f.name), system: n.stringIndex(f.system), file: n.stringIndex(f.file)}
	i, ok := n.indexes[key]
	if !ok {
		table := n.dict.FunctionTable()
		i = int32(table.Len())
		to := table.AppendEmpty()
		to.SetNameStrindex(key.name)
		to.SetSystemNameStrindex(key.system)
		to.SetFilenameStrindex(key.file)
		n.indexes[key] = i
		n.added += functionBytes
	}
	if len(n.functions) == maxIndexed {
		clear(n.functions) // indexes of functions that are no longer kept
	}
	n.functions[f] = i
	return i
}

func (n *naming) stringIndex(s string) int32 {
	i, ok := n.strings[s]
	if !ok {
		i = int32(n.dict.StringTable().Len())
		n.dict.StringTable().Append(s)
		n.strings[s] = i
		n.added += stringBytes + len(s)
	}
	return i
}

// readTables indexes the first maxIndexed functions and strings of the dictionary, so that they are
// not added twice. An empty table gets the empty first entry that the specification requires.
func (n *naming) readTables() {
	if n.functions != nil {
		return
	}
	functions, strings := n.dict.FunctionTable(), n.dict.StringTable()
	if strings.Len() == 0 {
		strings.Append("")
	}
	if functions.Len() == 0 {
		functions.AppendEmpty()
	}
	n.functions = make(map[*function]int32)
	n.strings = make(map[string]int32, min(strings.Len(), maxIndexed))
	for i := range min(strings.Len(), maxIndexed) {
		if s := strings.At(i); i == 0 || s != "" {
			if _, ok := n.strings[s]; !ok {
				n.strings[s] = int32(i)
			}
		}
	}
	n.indexes = make(map[functionKey]int32, min(functions.Len(), maxIndexed))
	for i := range min(functions.Len(), maxIndexed) {
		f := functions.At(i)
		key := functionKey{f.NameStrindex(), f.SystemNameStrindex(), f.FilenameStrindex(), f.StartLine()}
		if _, ok := n.indexes[key]; !ok {
			n.indexes[key] = int32(i)
		}
	}
}
