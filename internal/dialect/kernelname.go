package dialect

import (
	"bytes"

	"github.com/symfilter/symfilter/buildid"
)

// A Kernel is the kernel that has logged a frame. Later lines of the log add to it, so the frame's
// Reader owns it.
type Kernel struct {
	Release string     // for example "6.1.0-56-amd64"; empty if unknown
	ID      buildid.ID // build ID of vmlinux; zero if unknown

	digits string  // digits of ID, in lower case; empty if unknown
	before *Kernel // kernel of earlier lines, which applies if the log has not named this one
}

const maxRelease = 64 // bytes: __NEW_UTS_LEN of Linux

// Named returns k if the log has named k's release. Otherwise it returns the kernel of earlier
// lines, or k if there is none.
func (k *Kernel) Named() *Kernel {
	if k.Release == "" && k.before != nil {
		return k.before
	}
	return k
}

// titles begin the first line of a report. The line that names the kernel follows.
var titles = [][]byte{[]byte("WARNING: "), []byte("BUG: ")}

// A kernelLog holds facts from the lines so far about the kernel that logs them. Lines are
// identified by their numbers.
type kernelLog struct {
	named *Kernel // kernel of the last frames; nil if unknown
	at    int64   // line that named the kernel, or its first frame

	fault   string // last function named as the location of an instruction
	faultAt int64  // line of fault
	entryAt int64  // last line with a function that saves the registers of stopped code; 0: none

	// relocation of the last kernel that started or logged; nil if no frame needs it
	load   *KernelLoad
	loadAt int64 // last line with a frame or a distance for load

	code   *Code // listing of the last frame that awaits code; nil if no frame does
	codeAt int64 // line of that frame

	texts kernelTexts
}

// forget resets n, but keeps the cached texts.
func (n *kernelLog) forget() { *n = kernelLog{texts: n.texts} }

// of returns the Kernel of a frame in the line with this number. before is the text before the
// frame. If before has the title of a report, the frame gets a new Kernel: a later line of the
// report names this kernel.
func (n *kernelLog) of(before []byte, line int64) *Kernel {
	if n.named != nil && line-n.at > FactLines {
		n.named = nil
	}
	title := false
	if bytes.IndexByte(before, 'G') >= 0 {
		for _, text := range titles {
			title = title || bytes.Contains(before, text)
		}
	}
	if n.named == nil || title && n.named.Release != "" {
		n.named, n.at = &Kernel{before: n.named}, line
	}
	return n.named
}

func (r *Reader) kernelOf(before []byte) *Kernel {
	// after a restart, windows may be open although the earlier lines have not been read
	if !r.Wants(r.number) || r.kernel.named == nil {
		r.readPast()
	}
	return r.kernel.of(before, r.number)
}

// isFault reports whether text, a function with its module, is the location of the fault. The trace
// may begin with this function, or contain it as a value on the stack.
func (n *kernelLog) isFault(text []byte, line int64) bool {
	return len(n.fault) > 0 && line-n.faultAt <= WindowLines && n.fault == string(text)
}

// kernelNamed reads the kernel of a report from "6.1.0-56-amd64 #1", before or after "Not tainted"
// or "Tainted: G", and the build ID at the end of the line.
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
		if r.kernel.namedAfter(r.facts.at) {
			return
		}
		trimmed := bytes.TrimRight(b, " \t\r")
		last := trimmed[wordStart(trimmed, len(trimmed)):]
		identified := len(last) >= 2*minKernelID && hexDigits(last, 0) == len(last)
		if !identified && r.kernel.isNamed(b[from:end]) {
			r.kernel.at = r.facts.at
			return
		}
		k := Kernel{Release: string(b[from:end])}
		if identified {
			k.ID, _ = r.modules.id(last)
			k.digits = k.ID.String()
		}
		r.kernel.setName(&k, r.facts.at)
		return
	}
}

const minKernelID = 16 // bytes, as in an MD5; kernel IDs are SHA-1 sums of 20 bytes

// kernelBoots reads the kernel in "Linux version 6.1.0-56-amd64 (…) …".
func kernelBoots(r *Reader, b []byte, at int) {
	if r.kernel.loadAt < r.facts.at {
		r.kernel.load = nil
	}
	from := at + len("Linux version ")
	end := from
	for end < len(b) && b[end] != ' ' {
		end++
	}
	if isRelease(b[from:end]) && !r.kernel.namedAfter(r.facts.at) {
		r.kernel.named = nil
		r.kernel.setName(&Kernel{Release: string(b[from:end])}, r.facts.at)
	}
}

// namedAfter reports whether a line after the given one has named the kernel. This is possible
// because past lines are not read in order.
func (n *kernelLog) namedAfter(line int64) bool {
	return n.named != nil && n.named.Release != "" && line < n.at
}

// isNamed reports whether a line that has this release, and no build ID, adds nothing to what is
// known about the kernel. Many reports repeat the release in this way.
func (n *kernelLog) isNamed(release []byte) bool {
	k := n.named
	return k != nil && k.before == nil && k.Release == string(release) && k.Release == n.texts.release && k.ID == n.texts.id
}

// setName sets the kernel that a line names. Earlier frames without a kernel get it, too.
func (n *kernelLog) setName(k *Kernel, line int64) {
	n.at = line
	if k.ID.IsZero() && n.named != nil && n.texts.release == k.Release {
		k.ID = n.texts.id // reports of hung tasks and lockdep name only the release
		k.digits = k.ID.String()
	}
	n.texts.setKernel(k)
	switch known := n.named; {
	case known == nil, known.Release != "" && (known.Release != k.Release || known.ID != k.ID && !known.ID.IsZero()):
		n.named = k
	case known.Release == "" || known.ID.IsZero():
		*known = *k
	}
}

// isRelease reports whether b is the release of a kernel, and safe as a part of a path.
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
