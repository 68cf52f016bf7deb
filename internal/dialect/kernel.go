package dialect

import (
	"bytes"
	"hash/maphash"

	"github.com/symfilter/symfilter/buildid"
)

// The functions in messages of Linux: of an oops, a warning, a report of KASAN, KCSAN or lockdep, a
// hung task, a stalled processor, of /proc/PID/stack, and of ftrace:
//
//	RIP: 0010:ledger_settle+0x15/0x40 [ledger]
//	 ? ledger_audit+0x2a/0x60 [ledger 5eda1a9afb2ba22d02ba6bd57a8ee6ed17b3a1e5]
//	 vfs_write+0xc7/0x3f0
//	[<c010f3a4>] (do_one_initcall) from [<c0e00f2c>] (kernel_init+0x1c/0x110)
//
// The first number is the distance from the beginning of the function, the second the distance from
// there to the next function. Both together identify the function in a file. The address is a
// return address, unless the line is about the instruction itself.
var kernel = Dialect{
	Name: "kernel", Who: "Linux: an oops, a warning, the stack of a task, reports of KASAN and lockdep",
	Needs:  "the build ID or the release of the kernel in the log and its files, or --image vmlinux, --image MODULE=FILE.ko",
	Sample: " vfs_write+0xc7/0x3f0",
}

// KernelImage is the module of functions of the kernel itself, for which the log names none.
const KernelImage = "vmlinux"

// A Kernel is the kernel that has logged a frame. Later lines of the log add to it, so it belongs
// to the Reader of the frame.
type Kernel struct {
	Release string     // "6.1.0-56-amd64"; empty if it is not known
	ID      buildid.ID // of vmlinux; zero if it is not known

	digits string  // of ID; empty if it is not known
	before *Kernel // the kernel of earlier lines, which is meant if the log has not named this one
}

const maxRelease = 64 // bytes: __NEW_UTS_LEN of Linux

// Named returns k, or the kernel of earlier lines if the log has not named k.
func (k *Kernel) Named() *Kernel {
	if k.Release == "" && k.before != nil {
		return k.before
	}
	return k
}

// exactBefore are the texts before a function whose distance is that of an instruction, not of a
// return address.
var exactBefore = [][]byte{
	[]byte("pc : "), []byte("PC is at "), []byte("IP is at "), []byte("EIP: "), []byte("rip: "), []byte("IP: "),
}

// titles are the beginnings of the first line of a report. The line that names the kernel follows.
var titles = [][]byte{[]byte("WARNING: "), []byte("BUG: ")}

// matchKernel matches the functions of a line. The distance of the first one is at at.
func matchKernel(r *Reader, l *Line, at int) bool {
	b := l.Text
	for range maxAnchors {
		end, ok := r.kernelFrame(l, at)
		if !ok {
			break
		}
		next := bytes.Index(b[end:], []byte("+0x"))
		if next < 0 {
			break
		}
		at = end + next + 1
	}
	return len(l.Frames) > 0
}

// kernelFrame adds the frame whose distance begins at at, and returns its end.
func (r *Reader) kernelFrame(l *Line, at int) (end int, ok bool) {
	b := l.Text
	from := symbolBefore(b, at-1)
	if from == at-1 || isDigit(b[from]) || !mayPrecede(b, from) {
		return at, false
	}
	k := r.kernelText(b, from, at)
	if k == nil {
		return at, false
	}
	end = from + len(k.text)
	if !mayFollow(b, end) {
		return at, false
	}
	if isEntry(b, from, k.text) {
		r.entryAt = r.number
	}
	call, key := Return, k.key
	instruction := isInstruction(b, from, end)
	warning := instruction && isWarning(b[:from])
	registers := instruction && !warning && !hasAt(b, end, " <-")
	if warning {
		call, key = Either, key|1
	} else if instruction || r.isFault(k.text) && !isLink(b[:from]) {
		call, key = Exact, key|1
		r.fault, r.faultAt = string(k.text), r.number
	} else if r.isStopped(b, from, end) {
		call, key = Exact, key|1
	} else if k.symbol.Offset == 0 {
		return end, true // the address of a function, which nothing has called there
	}
	f := l.frame()
	f.Kind, f.Value, f.Call = InSymbol, uint64(k.symbol.Offset), call
	f.Symbol, f.Module, f.ID = k.symbol, k.module, k.id
	if f.Kernel = r.kernelOf(b[:from]); f.Kernel.Release != "" {
		f.Key = key
	}
	if k.module == KernelImage {
		if f.KernelAddr = addressBefore(b, from); f.KernelAddr != 0 {
			f.Load = r.kernelLoad()
		}
	}
	if registers && !k.awaited {
		k.awaited = f.Key != 0
		r.awaitCode(f)
	}
	f.Awaits = f.ID.IsZero() && f.Module != KernelImage && !r.kernelID.IsZero()
	f.Start = from
	f.Inline = InlineMarked
	l.edit(f, Edit{Span{end, end}, " ", AtLine, ""})
	return end, true
}

// A kernelText is the text of a frame, and what it means. Its text is never empty.
type kernelText struct {
	text   []byte // from the function's name to the end of its module
	symbol Symbol
	module string
	id     buildid.ID
	key    uint64 // a hash, so that a text which comes back has the same one; its lowest bit is 0

	awaited bool // a frame with this text as the place of an instruction has had the code after it
}

const (
	kernelKeys     = 1 << 63 // the keys of other dialects are smaller
	kernelTextBits = 10      // 1,024 texts that are remembered, 130 KiB: most reports have few functions
	maxKernelText  = 512
)

// kernelText returns the meaning of the text that begins at from, and in which the distance begins at
// at; nil if it is not a frame. It is valid until the next call.
func (r *Reader) kernelText(b []byte, from, at int) *kernelText {
	slash := hexDigits(b, at+2)
	if !hasAt(b, slash, "/0x") {
		return nil
	}
	end := hexDigits(b, slash+3)
	if hasAt(b, end, " [") {
		n := bytes.IndexByte(b[end:min(len(b), end+maxKernelText)], ']')
		if n < 0 {
			return nil // the module is cut off; the function is not one of the kernel itself
		}
		end += n + 1
	}
	text := b[from:end]
	if len(text) > maxKernelText {
		return nil
	}
	if r.kernelTexts == nil {
		r.kernelSeed, r.kernelTexts = maphash.MakeSeed(), new([1 << kernelTextBits]kernelText)
	}
	hash := maphash.Bytes(r.kernelSeed, text)
	slot := &r.kernelTexts[hash>>(64-kernelTextBits)]
	if bytes.Equal(slot.text, text) {
		return slot
	}
	offset, _, ok1 := prefixedHex(b, at)
	size, end, ok2 := prefixedHex(b, slash+1)
	if !ok1 || !ok2 || size == 0 || offset > size || offset>>62 != 0 {
		return nil
	}
	module, id, end, ok := r.kernelModule(b, end)
	if !ok {
		return nil
	}
	*slot = kernelText{
		text: append(slot.text[:0], b[from:end]...), module: module, id: id, key: kernelKeys | hash<<1,
		symbol: Symbol{Name: string(b[from : at-1]), Offset: int64(offset), Size: size},
	}
	return slot
}

// isFault reports whether text, a function with its module, is the place of the instruction that
// the report is about. The trace may begin with it, or have it as a value on the stack.
func (r *Reader) isFault(text []byte) bool {
	return len(r.fault) > 0 && r.number-r.faultAt <= WindowLines && r.fault == string(text)
}

// symbolBefore returns the start of the name of a function that ends at end.
func symbolBefore(b []byte, end int) (start int) {
	for start = end; start > 0 && inSymbol[b[start-1]]; start-- {
	}
	return start
}

// inSymbol has the bytes of the names of functions.
var inSymbol = func() (set [256]bool) {
	for c := range set {
		set[c] = isWord(byte(c)) || c == '.' || c == '$'
	}
	return set
}()

// mayPrecede reports whether the text before from may be before a function of the kernel.
func mayPrecede(b []byte, from int) bool {
	if from == 0 {
		return true
	}
	switch b[from-1] {
	case ' ', '\t', '(', '>', '-', '*', '|':
	case ':':
		return segment(b, from) != ""
	default:
		return false
	}
	// The kernel prints addresses in brackets without 0x, NuttX prints them with it.
	return !bytes.HasSuffix(b[:from], []byte(">] ")) || !bytes.Contains(b[max(0, from-24):from], []byte("[<0x"))
}

// segment returns the code segment of "RIP: 0010:", which ends at end; empty if there is none.
func segment(b []byte, end int) string {
	start := hexBefore(b, end-1)
	if !endsWith(b, start, "IP: ") || end-1-start != 4 {
		return ""
	}
	return string(b[start : end-1])
}

// kernelModule parses " [MODULE]" or " [MODULE BUILDID]" in b from at on, and returns its end.
func (r *Reader) kernelModule(b []byte, at int) (module string, id buildid.ID, end int, ok bool) {
	if !hasAt(b, at, " [") {
		return KernelImage, id, at, true
	}
	from := at + 2
	for end = from; end < len(b) && (isWord(b[end]) || b[end] == '-'); end++ {
	}
	if end == from || end-from > maxRelease {
		return "", id, at, false
	}
	name := b[from:end]
	if hasAt(b, end, " ") {
		to := hexDigits(b, end+1)
		if id, ok = r.parseID(b[end+1 : to]); !ok {
			return "", id, at, false
		}
		end = to
	}
	if !hasAt(b, end, "]") {
		return "", id, at, false
	}
	return r.name(name), id, end + 1, true
}

// mayFollow reports whether the text from at on may follow a frame. A file and a line may not, nor may
// text with them at its end: they are the answer of an earlier run.
func mayFollow(b []byte, at int) bool {
	if onlyBlanks(b, at) {
		return true
	}
	switch b[at] {
	case ')', ',', '"', '\\', '\r', ';', ']':
		return true
	case ' ', '\t':
	default:
		return false
	}
	word := b[blanksAfter(b, at):]
	if n := bytes.IndexAny(word, " \t"); n >= 0 {
		last := bytes.TrimRight(word, " \t\r")
		last = last[wordStart(last, len(last)):]
		if colon := bytes.IndexByte(last, ':'); colon > 0 && bytes.ContainsAny(last[:colon], "./") && colon+1 < len(last) && isDigit(last[colon+1]) {
			return false
		}
		word = word[:n]
	}
	colon := bytes.LastIndexByte(word, ':')
	return colon < 1 || colon+1 == len(word) || !isDigit(word[colon+1])
}

// isInstruction reports whether the line names the function from from to end as the place of an
// instruction, not of a call.
func isInstruction(b []byte, from, end int) bool {
	before := b[:from]
	if from > 0 && b[from-1] == ':' || hasAt(b, end, " <-") { // RIP: 0010:, or a traced function
		return true
	}
	last := blanksBefore(b, from)
	if last == 0 {
		return false
	}
	switch c := b[last-1]; { // most frames are after a time in brackets, or after "?"
	case c == '?':
		return false
	case c == ':' || c == 't':
		for _, mark := range exactBefore {
			if bytes.HasSuffix(before, mark) {
				return true
			}
		}
		return endsWith(b, last, " at") && bytes.Contains(b[:last], []byte("WARNING: "))
	case last < from && (c == ']' || c == '>' || isHex(c)): // after an address, or after file:line
		end := last
		for end > 0 && (b[end-1] == ']' || b[end-1] == '>') {
			end--
		}
		start := hexBefore(b, end)
		if n := end - start; n >= 8 && n <= 16 {
			for start > 0 && (b[start-1] == '[' || b[start-1] == '<') {
				start--
			}
			return pcBefore(b[:start])
		}
		return isDigit(c) && bytes.Contains(before, []byte("WARNING: ")) && isFileLine(b[wordStart(b, last):last])
	}
	if from > 0 && b[from-1] == '(' { // rIP: 0xffffffff81061234 (native_read_msr+0x4/0x10)
		i := blanksBefore(b, from-1)
		word := wordStart(b, i)
		return i < from-1 && isAddress(bytes.TrimPrefix(b[word:i], []byte("0x"))) && pcBefore(b[:word])
	}
	return false
}

// counters are the texts before the address of an instruction.
var counters = [][]byte{
	[]byte("NIP "), []byte("NIP: "), []byte("epc : "), []byte("epc   : "), []byte("ERA: "), []byte("rIP: "), []byte("RIP: "),
	[]byte("PC: "), []byte("pc : "), []byte("IP: "),
}

// pcBefore reports whether b ends with the name of the program counter, or with the other half of
// the status of s390.
func pcBefore(b []byte) bool {
	for _, mark := range counters {
		if bytes.HasSuffix(b, mark) {
			return true
		}
	}
	return bytes.Contains(b, []byte("Krnl PSW : "))
}

// wordStart returns the start of the word that ends at end.
func wordStart(b []byte, end int) (start int) {
	for start = end; start > 0 && b[start-1] != ' ' && b[start-1] != '\t'; start-- {
	}
	return start
}

// isAddress reports whether b is an address of 32 or 64 bits without a prefix.
func isAddress(b []byte) bool { return len(b) >= 8 && len(b) <= 16 && hexDigits(b, 0) == len(b) }

// isFileLine reports whether b is a path, ":" and a line.
func isFileLine(b []byte) bool {
	_, start, ok := decimalBefore(b, len(b))
	return ok && start > 1 && b[start-1] == ':'
}

// kernelOf returns the kernel of a frame that has this text before it.
func (r *Reader) kernelOf(before []byte) *Kernel {
	if !r.Wants(r.number) || r.kernel == nil { // after a restart windows are open, but the past is unread
		r.readPast()
	}
	if r.kernel != nil && r.number-r.kernelAt > FactLines {
		r.kernel = nil
	}
	title := false
	if bytes.IndexByte(before, 'G') >= 0 {
		for _, text := range titles {
			title = title || bytes.Contains(before, text)
		}
	}
	if r.kernel == nil || title && r.kernel.Release != "" {
		r.kernel, r.kernelAt = &Kernel{before: r.kernel}, r.number
	}
	return r.kernel
}

// kernelNamed takes the kernel of a report from "6.1.0-56-amd64 #1", which is before or after "Not
// tainted" or "Tainted: G", and the build ID at the end of the line.
func kernelNamed(r *Reader, b []byte, _ int) {
	for at := 0; ; {
		n := bytes.Index(b[at:], []byte(" #"))
		if n < 0 {
			return
		}
		at += n + 2
		if at == len(b) || !isDigit(b[at]) {
			continue
		}
		end := at - 2
		from := wordStart(b, end)
		if from == end || !isRelease(b[from:end]) {
			continue
		}
		if r.namedAfter() {
			return
		}
		trimmed := bytes.TrimRight(b, " \t\r")
		last := trimmed[wordStart(trimmed, len(trimmed)):]
		identified := len(last) >= 2*minKernelID && hexDigits(last, 0) == len(last)
		if !identified && r.isNamed(b[from:end]) {
			r.kernelAt = r.headerAt
			return
		}
		k := Kernel{Release: string(b[from:end])}
		if identified {
			k.ID, _ = r.parseID(last)
			k.digits = k.ID.String()
		}
		r.nameKernel(&k)
		return
	}
}

const minKernelID = 16 // bytes, as an MD5 has; the IDs of kernels are SHA-1 sums of 20 bytes

// kernelBoots takes the kernel from "Linux version 6.1.0-56-amd64 (…) …".
func kernelBoots(r *Reader, b []byte, at int) {
	if r.loadedAt < r.headerAt {
		r.loaded = nil
	}
	from := at + len("Linux version ")
	end := from
	for end < len(b) && b[end] != ' ' {
		end++
	}
	if isRelease(b[from:end]) && !r.namedAfter() {
		r.kernel = nil
		r.nameKernel(&Kernel{Release: string(b[from:end])})
	}
}

// namedAfter reports whether a line after that of the current header has named the kernel: lines of
// the past are not read in their order.
func (r *Reader) namedAfter() bool {
	return r.kernel != nil && r.kernel.Release != "" && r.headerAt < r.kernelAt
}

// isNamed reports whether nothing changes if the current line names the kernel by its release alone, as it
// is in each of many reports.
func (r *Reader) isNamed(release []byte) bool {
	k := r.kernel
	return k != nil && k.before == nil && k.Release == string(release) && k.Release == r.kernelName && k.ID == r.kernelID
}

// nameKernel sets the kernel that the current line names, also for the frames before the line that
// have no kernel yet.
func (r *Reader) nameKernel(k *Kernel) {
	r.kernelAt = r.headerAt
	if k.ID.IsZero() && r.kernel != nil && r.kernelName == k.Release {
		k.ID = r.kernelID // lines of hung tasks and of lockdep name the release alone
		k.digits = k.ID.String()
	}
	if r.kernelName != k.Release || r.kernelID != k.ID {
		r.kernelName, r.kernelID, r.kernelTexts = k.Release, k.ID, nil // keys are of one kernel
	}
	switch known := r.kernel; {
	case known == nil, known.Release != "" && (known.Release != k.Release || known.ID != k.ID && !known.ID.IsZero()):
		r.kernel = k
	case known.Release == "" || known.ID.IsZero():
		*known = *k
	}
}

// isRelease reports whether b is the release of a kernel, and may be part of a path.
func isRelease(b []byte) bool {
	if len(b) == 0 || len(b) > maxRelease || !isDigit(b[0]) || bytes.IndexByte(b, '.') < 0 || bytes.Contains(b, []byte("..")) {
		return false
	}
	for _, c := range b {
		if !isWord(c) && bytes.IndexByte([]byte(".+-~"), c) < 0 {
			return false
		}
	}
	return true
}
