package dialect

import "bytes"

// Functions in messages of Linux: an oops, a warning, a report of KASAN, KCSAN or lockdep, a hung
// task, a stalled processor, /proc/PID/stack, and ftrace:
//
//	RIP: 0010:ledger_settle+0x15/0x40 [ledger]
//	 ? ledger_audit+0x2a/0x60 [ledger 5eda1a9afb2ba22d02ba6bd57a8ee6ed17b3a1e5]
//	 vfs_write+0xc7/0x3f0
//	[<c010f3a4>] (do_one_initcall) from [<c0e00f2c>] (kernel_init+0x1c/0x110)
//
// The first number is the offset in the function, the second the distance from the function's start
// to the next function. The name and the distance identify the function in a file. The address is a
// return address, unless the line is about the instruction itself.
var kernel = Dialect{
	Name: "kernel", Who: "Linux: an oops, a warning, the stack of a task, reports of KASAN and lockdep",
	Needs:  "the kernel's build ID or release in the log, and its files on this machine; or --image vmlinux and --image MODULE=FILE.ko",
	Sample: " vfs_write+0xc7/0x3f0",
}

// KernelImage is the module of functions in the kernel itself, for which the log names no module.
const KernelImage = "vmlinux"

// exactBefore are the texts before an exact address, or before a function with an exact offset: the
// instruction's, not a return address.
var exactBefore = [][]byte{
	[]byte("pc : "), []byte("PC is at "), []byte("IP is at "), []byte("EIP: "), []byte("rip: "), []byte("IP: "),
}

// matchKernel matches the functions in a line. The offset in the first function begins at the given
// index of the line.
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

// kernelFrame adds the frame whose offset in a symbol begins at b[at], and returns the end of the
// frame's text. ok is false if the text is not a frame.
func (r *Reader) kernelFrame(l *Line, at int) (end int, ok bool) {
	b := l.Text
	from := symbolBefore(b, at-1)
	if from == at-1 || isDigit(b[from]) || !mayPrecede(b, from) {
		return at, false
	}
	k := r.kernel.texts.find(b, from, at, &r.modules)
	if k == nil {
		return at, false
	}
	end = from + len(k.text)
	if !mayFollow(b, end) {
		return at, false
	}
	if isEntry(b, from, k.text) {
		r.kernel.entryAt = r.number
	}
	call, key := Return, k.key
	instruction := isInstruction(b, from, end)
	warning := instruction && isWarning(b[:from])
	registers := instruction && !warning && !hasAt(b, end, " <-")
	if warning {
		call, key = Either, key|1
	} else if instruction || r.kernel.isFault(k.text, r.number) && !isLink(b[:from]) {
		call, key = Exact, key|1
		r.kernel.fault, r.kernel.faultAt = string(k.text), r.number
	} else if r.kernel.isStopped(b, from, end, r.number) {
		call, key = Exact, key|1
	} else if k.symbol.Offset == 0 {
		return end, true // the address of a function, not of code after a call
	}
	f := l.frame()
	f.Kind, f.Value, f.Call = InSymbol, uint64(k.symbol.Offset), call
	f.Symbol, f.Module, f.ID = k.symbol, k.module, k.id
	if f.Kernel = r.kernelOf(b[:from]); f.Kernel.Release != "" {
		f.Key = key
	}
	if k.module == KernelImage {
		if f.KernelAddr = addressBefore(b, from); f.KernelAddr != 0 {
			f.Load = r.kernel.loadOf(r.number)
		}
	}
	if registers && !k.awaited {
		k.awaited = f.Key != 0
		r.awaitCode(f)
	}
	f.Awaits = f.ID.IsZero() && f.Module != KernelImage && !r.kernel.texts.id.IsZero()
	f.Start = from
	f.Inline = InlineMarked
	l.edit(f, Edit{Span{end, end}, " ", AtLine, ""})
	return end, true
}

// symbolBefore returns the start of the name of a function at the end of b[:end].
func symbolBefore(b []byte, end int) (start int) {
	for start = end; start > 0 && inSymbol[b[start-1]]; start-- {
	}
	return start
}

var inSymbol = func() (set [256]bool) {
	for c := range set {
		set[c] = isWord(byte(c)) || c == '.' || c == '$'
	}
	return set
}()

// mayPrecede reports whether the text in b[:from] may precede a kernel function.
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
	// the kernel prints addresses in brackets without 0x, NuttX with 0x
	return !bytes.HasSuffix(b[:from], []byte(">] ")) || !bytes.Contains(b[max(0, from-24):from], []byte("[<0x"))
}

// segment returns the code segment in a text such as "RIP: 0010:" at the end of b[:end], or "".
func segment(b []byte, end int) string {
	start := hexBefore(b, end-1)
	if !endsWith(b, start, "IP: ") || end-1-start != 4 {
		return ""
	}
	return string(b[start : end-1])
}

// mayFollow reports whether the text from the given offset may follow a frame. It returns false for
// text that ends with a file and a line: symfilter's answer from an earlier run.
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

// isInstruction reports whether the line names the function b[from:end] as the location of an
// instruction, not of a call.
func isInstruction(b []byte, from, end int) bool {
	if from > 0 && b[from-1] == ':' || hasAt(b, end, " <-") { // RIP: 0010:, or a traced function
		return true
	}
	last := blanksBefore(b, from)
	if last == 0 {
		return false
	}
	switch c := b[last-1]; { // most frames follow a time in brackets, or "?"
	case c == '?':
		return false
	case c == ':' || c == 't':
		return endsWithAny(b[:from], exactBefore) || endsWith(b, last, " at") && isWarning(b[:last])
	case last < from && (c == ']' || c == '>' || isHex(c)):
		if start, ok := addressStart(b, last); ok {
			return pcBefore(b[:start])
		}
		return isDigit(c) && isWarning(b[:from]) && isFileLine(b[wordStart(b, last):last])
	case b[from-1] == '(': // rIP: 0xffffffff81061234 (native_read_msr+0x4/0x10)
		i := blanksBefore(b, from-1)
		word := wordStart(b, i)
		return i < from-1 && isAddress(bytes.TrimPrefix(b[word:i], []byte("0x"))) && pcBefore(b[:word])
	}
	return false
}

// addressStart returns the start of the address at the end of b[:end], with or without brackets.
func addressStart(b []byte, end int) (start int, ok bool) {
	for end > 0 && (b[end-1] == ']' || b[end-1] == '>') {
		end--
	}
	start = hexBefore(b, end)
	if n := end - start; n < 8 || n > 16 {
		return start, false
	}
	for start > 0 && (b[start-1] == '[' || b[start-1] == '<') {
		start--
	}
	return start, true
}

// counters are the names of the program counter in register dumps of all architectures, each with
// the text before its value.
var counters = [][]byte{
	[]byte("NIP "), []byte("NIP: "), []byte("epc : "), []byte("epc   : "), []byte("ERA: "), []byte("rIP: "), []byte("RIP: "),
	[]byte("PC: "), []byte("pc : "), []byte("IP: "),
}

// pcBefore reports whether b ends with a name of the program counter, or has the name of s390's
// status word.
func pcBefore(b []byte) bool {
	for _, mark := range counters {
		if bytes.HasSuffix(b, mark) {
			return true
		}
	}
	return bytes.Contains(b, []byte("Krnl PSW : "))
}

func wordStart(b []byte, end int) (start int) {
	for start = end; start > 0 && b[start-1] != ' ' && b[start-1] != '\t'; start-- {
	}
	return start
}

// isAddress reports whether b is a 32-bit or 64-bit address without a prefix.
func isAddress(b []byte) bool { return len(b) >= 8 && len(b) <= 16 && hexDigits(b, 0) == len(b) }

// isFileLine reports whether b ends with ":" and a line number, after other text.
func isFileLine(b []byte) bool {
	_, start, ok := decimalBefore(b, len(b))
	return ok && start > 1 && b[start-1] == ':'
}
