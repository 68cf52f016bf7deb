package valgrind

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/report"
)

// A process is one process of a report, with one address space.
type process struct {
	files     *files
	number    int // number of its document, from 1; 0 before the first document
	pid, ppid string
	tool      string
	exe       string // the name by which the program was called
	args      []string
	objects   map[string]*loaded
	order     []*loaded // values of objects, in order of appearance
	last      *loaded   // the last object looked up
	data      []dataFact
	kept      int      // bytes charged for facts
	places    []*epoch // located epochs

	settings
	summary  summary             // summary of the current document
	errors   map[string]*errorAt // errors for later error counts, by number
	errorsAt map[string]*errorAt // the same errors, by errorKey
	errorKey []byte              // key of the last error: its kind and innermost frames
}

// settings holds the options of Valgrind for a process that change Valgrind's output.
type settings struct {
	mangled    bool   // --demangle=no
	belowMain  bool   // --show-below-main=yes
	quiet      bool   // --quiet
	leakErrors string // the kinds of --errors-for-leak-kinds, if it was given
}

// A loaded is an object file that a process has loaded, perhaps at several addresses in turn.
type loaded struct {
	name   string // as in the report
	file   *file
	proc   *process
	epochs []*epoch // periods at different load addresses, in order of appearance
}

// An epoch is a period in which an object was loaded at one address, with the facts about its load
// bias.
type epoch struct {
	of *loaded
	facts
	search

	located bool
	bias    uint64
	by      string // source of the bias: byMap, byFile, …
	stale   bool   // the file is another build than the one that ran
	doubted bool   // stale, unless an object not yet located has the signal trampoline
	kept    int    // bytes of the facts and candidates

	returns [64]returns // cached results of isTrampoline, by address

	shown  bool   // the sink has its maps
	number uint64 // number of its module at the sink
}

// facts are the addresses and names that the report has for an object during an epoch. The epoch's
// bias is inferred from them.
type facts struct {
	windows []window // biases that put every address into code; nil means any
	ips     []ipFact
	seen    map[factKey]struct{} // all of ips
	recent  [64]factKey          // keys recently found in seen, by address
	names   []nameFact
	named   map[nameKey]struct{} // all of names
}

// A search holds the state of the search for an epoch's bias, between two tries.
type search struct {
	left      []candidate // remaining candidates, best first
	counted   int         // facts of ips included in the candidates' scores
	asked     int         // facts of names included in the candidates' scores by lines
	tried     int         // facts at the last try
	triedWith int         // located objects at the last try
}

// A window is an interval of biases, both ends included.
type window struct{ from, to uint64 }

// An ipFact is a code address in a stack. The address of a caller is one byte before the return
// address. Signal trampolines and interrupted code look like callers in a report: only the code of
// the trampoline shows the difference.
type ipFact struct {
	ip      uint64
	caller  bool    // the frame is not the first of its stack
	inner   uint64  // address of the next inner frame, in the function that a caller calls
	innerOf *loaded // object of that frame; nil if the report has none
}

// A factKey identifies a fact about an object, to find repeated facts. It omits the inner frame's
// address if that frame is in another object.
type factKey struct {
	ip, inner uint64 // inner is 0 if it is in another object
	caller    bool
}

func (f *ipFact) key(o *loaded) factKey {
	if f.innerOf != o {
		return factKey{ip: f.ip, caller: f.caller}
	}
	return factKey{f.ip, f.inner, f.caller}
}

// A nameFact is the function and the line that the report has for an address.
type nameFact struct {
	ip   uint64
	fn   string
	file string
	line uint64
}

type nameKey struct {
	ip uint64
	fn string
}

// A dataFact is an address that the report places in a variable.
type dataFact struct {
	addr, offset uint64 // offset is the distance from the variable's beginning
	name         string
}

func newProcess(fs *files, number int) *process {
	return &process{files: fs, number: number, objects: make(map[string]*loaded)}
}

// knownObject returns the object of this name, or nil.
func (p *process) knownObject(name []byte) *loaded {
	if p.last == nil || p.last.name != string(name) {
		o := p.objects[string(name)]
		if o == nil {
			return nil
		}
		p.last = o
	}
	return p.last
}

// object returns the object of this name, and adds it if it is new. It returns nil if there is no
// room for it.
func (p *process) object(name []byte) *loaded {
	if o := p.knownObject(name); o != nil {
		return o
	}
	if len(p.objects) >= maxObjects || len(name) > maxPath || !p.keepBytes(4*factSize+len(name)) {
		return nil
	}
	o := &loaded{name: string(name), file: p.files.named(string(name)), proc: p}
	p.objects[o.name] = o
	p.order = append(p.order, o)
	return o
}

// isMain reports whether o is the program itself.
func (p *process) isMain(o *loaded) bool {
	return p.exe != "" && (o.name == p.exe || baseName(o.name) == baseName(p.exe))
}

func baseName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func base(name []byte) []byte { return name[bytes.LastIndexByte(name, '/')+1:] }

// learnHeader takes properties of the process from a record. It reports whether the record
// contains only such properties.
func (p *process) learnHeader(r *Record) bool {
	switch r.Name {
	case "pid":
		p.pid = p.keepText(r.Text)
	case "ppid":
		p.ppid = p.keepText(r.Text)
	case "tool":
		p.tool = p.keepText(r.Text)
	case "protocoltool":
		if p.tool == "" {
			p.tool = p.keepText(r.Text)
		}
	case "protocolversion":
	case "args":
		in := ""
		for _, it := range r.Items {
			switch {
			case it.Depth == 0:
				in = it.Name
			case in == "vargv":
				p.learnOption(it.Text)
			case in != "argv":
			case it.Name == "exe":
				p.exe, p.args = p.keepText(it.Text), nil
			case it.Name == "arg" && len(p.args) < maxNames:
				p.args = append(p.args, p.keepText(it.Text))
			}
		}
	default:
		return false
	}
	return true
}

// keepBytes charges size bytes for a fact to p. It returns false if they would exceed a limit.
func (p *process) keepBytes(size int) bool {
	ok := p.files.keepBytes(size)
	if ok {
		p.kept += size
	}
	return ok
}

// keepText copies a text of the header, cut to maxPath. It returns "" if there is no room.
func (p *process) keepText(b []byte) string {
	b = b[:min(len(b), maxPath)]
	if !p.keepBytes(factSize + len(b)) {
		return ""
	}
	return string(b)
}

func (p *process) learn(r *Record) {
	for i := range r.Items {
		it := &r.Items[i]
		switch {
		case it.Name == "stack" && !it.Leaf:
			p.learnStack(r.Frames[it.First:it.Last])
		case it.Leaf && (it.Name == "auxwhat" || it.Name == "what" || it.Name == "text"):
			if f, ok := parseData(it.Text); ok && len(p.data) < maxNames && p.keepBytes(factSize+len(f.name)) {
				p.data = append(p.data, f)
			}
		}
	}
}

func (p *process) learnStack(frames []Frame) {
	for i := range frames {
		f := &frames[i]
		if f.Obj == nil || f.RawIP != nil || i+1 < len(frames) && haveSameAddress(&frames[i+1], f) {
			continue // the last of several frames at one address is the physical function
		}
		first := i
		for first > 0 && haveSameAddress(&frames[first-1], f) {
			first--
		}
		if first == 0 {
			p.learnFrame(f, false, nil)
		} else {
			p.learnFrame(f, true, &frames[first-1])
		}
	}
}

// learnFrame takes the facts about a frame's object. If the frame is a caller, inner is the
// frame that it called, or nil if unknown.
func (p *process) learnFrame(f *Frame, caller bool, inner *Frame) {
	o := p.object(f.Obj)
	if o == nil {
		return
	}
	fact := ipFact{ip: f.IP, caller: caller}
	if inner != nil && inner.RawIP == nil && inner.Obj != nil {
		fact.inner, fact.innerOf = inner.IP, p.knownObject(inner.Obj)
	}
	if e := o.addFact(fact); e != nil && f.Fn != nil {
		e.learnName(f)
	}
}

// addFact returns the epoch to which a fact belongs. It adds the fact unless the epoch is located.
// It returns nil if the object has no usable file, if the address is in data, or if there is no
// room for another epoch.
func (o *loaded) addFact(fact ipFact) *epoch {
	f := o.file
	if f.Err != nil {
		return nil
	}
	for i := len(o.epochs) - 1; i >= 0; i-- {
		e := o.epochs[i]
		if e.stale && len(e.ips) == 0 {
			return e
		}
		if e.located {
			if report.Covers(f.Code, fact.ip-e.bias) {
				return e
			}
			continue
		}
		if e.addFact(fact, f) {
			return e
		}
	}
	if f.Image.Type == elf.ET_EXEC && !report.Covers(f.Code, fact.ip) && report.Covers(f.Loads, fact.ip) {
		return nil // the address is in data
	}
	if len(o.epochs) >= maxEpochs || !o.proc.keepBytes(epochSize) {
		return nil
	}
	e := &epoch{of: o, facts: facts{seen: make(map[factKey]struct{}), named: make(map[nameKey]struct{})}}
	o.epochs = append(o.epochs, e)
	e.stale = !e.addFact(fact, f) // no bias puts all addresses into code
	return e
}

// addFact narrows e.windows to the biases that put the fact's address into code. It keeps the fact
// if it is new and there is room. If no bias is left, addFact changes nothing and returns false.
func (e *epoch) addFact(fact ipFact, f *file) bool {
	key := fact.key(e.of)
	slot := &e.recent[fact.ip%uint64(len(e.recent))]
	if *slot == key {
		return true
	}
	if _, ok := e.seen[key]; ok {
		*slot = key
		return true
	}
	windows := windowsOf(f, f.Code, fact.ip)
	if e.windows != nil {
		windows = intersect(e.windows, windows)
	}
	if len(windows) == 0 {
		return false
	}
	e.windows = windows
	if len(e.ips) < maxAddresses && e.keepBytes(factSize) {
		e.ips = append(e.ips, fact)
		e.seen[key] = struct{}{}
	}
	return true
}

// isData reports whether all addresses of an epoch are in the object at the bias of another,
// located epoch. They are then addresses of data: a program may jump to data, and a broken stack
// may lead to such an address.
func (e *epoch) isData(f *file) bool {
	return slices.ContainsFunc(e.of.epochs, func(other *epoch) bool { return other.located && e.loadedAt(f, other.bias) })
}

// mayBeData reports whether the addresses of an epoch may be in data. This is so if they are in the
// object at its usual bias, or at a possible bias of another epoch with more callers.
func (e *epoch) mayBeData(f *file) bool {
	if usual := e.of.usualBias(); usual%page == 0 && !isInAny(e.windows, usual) && e.loadedAt(f, usual) || e.isData(f) {
		return true
	}
	for _, other := range e.of.epochs {
		if other == e || other.located || other.countCallers() <= e.countCallers() {
			continue
		}
		windows := other.windows
		for _, fact := range e.ips {
			windows = intersect(windows, windowsOf(f, f.Loads, fact.ip))
		}
		if len(windows) > 0 {
			return true
		}
	}
	return false
}

// loadedAt reports whether all addresses of an epoch are in its object at this bias.
func (e *epoch) loadedAt(f *file, bias uint64) bool {
	return len(e.ips) > 0 && !slices.ContainsFunc(e.ips, func(fact ipFact) bool { return !report.Covers(f.Loads, fact.ip-bias) })
}

func (e *epoch) countCallers() (n int) {
	for i := range e.ips {
		if e.ips[i].caller {
			n++
		}
	}
	return n
}

func (e *epoch) learnName(f *Frame) {
	if e.located || len(e.names) >= maxNames || bytes.Equal(f.Fn, []byte("???")) {
		return
	}
	if _, ok := e.named[nameKey{f.IP, string(f.Fn)}]; ok {
		return
	}
	if len(f.Fn)+len(f.File) > maxPath || !e.keepBytes(factSize+len(f.Fn)+len(f.File)) {
		return
	}
	n := nameFact{f.IP, string(f.Fn), string(base(f.File)), f.Line}
	e.named[nameKey{n.ip, n.fn}] = struct{}{}
	e.names = append(e.names, n)
}

// windowsOf returns the biases that put ip into these segments of f.
func windowsOf(f *file, segments []object.Segment, ip uint64) (all []window) {
	if f.Image.Type == elf.ET_EXEC { // loaded at its link addresses
		if report.Covers(segments, ip) {
			all = append(all, window{})
		}
		return all
	}
	for i := range segments {
		s := &segments[i]
		if ip < s.Addr {
			continue
		}
		to := (ip - s.Addr) &^ (page - 1)
		from := uint64(0)
		if end := s.Addr + s.MemSize - 1; ip > end {
			from = (ip - end + page - 1) &^ (page - 1)
		}
		if from <= to {
			all = append(all, window{from, to})
		}
	}
	return all
}

func intersect(a, b []window) (all []window) {
	for _, x := range a {
		for _, y := range b {
			if w := (window{max(x.from, y.from), min(x.to, y.to)}); w.from <= w.to && len(all) < 64 {
				all = append(all, w)
			}
		}
	}
	return all
}

// parseData reads Valgrind's text about an address in a variable:
//
//	Address 0x10c0c3 is 3 bytes inside data symbol "gbuf"
//	Location 0x10c0c0 is 0 bytes inside global var "plain"
func parseData(text []byte) (f dataFact, ok bool) {
	_, rest, ok := bytes.Cut(text, []byte(" 0x"))
	if !ok {
		return f, false
	}
	addr, rest, _ := bytes.Cut(rest, []byte(" is "))
	offset, rest, _ := bytes.Cut(rest, []byte(" bytes inside "))
	kind, name, _ := bytes.Cut(rest, []byte(" \""))
	if string(kind) != "data symbol" && string(kind) != "global var" && string(kind) != "a global var" {
		return f, false
	}
	end := bytes.LastIndexByte(name, '"')
	if end <= 0 || end > maxPath {
		return f, false
	}
	var okAddr, okOffset bool
	f.addr, okAddr = report.Hex(addr)
	f.offset, okOffset = parseNumber(offset)
	f.name = string(name[:end])
	return f, okAddr && okOffset
}
