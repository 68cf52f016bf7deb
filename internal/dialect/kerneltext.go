package dialect

import (
	"bytes"
	"hash/maphash"

	"github.com/symfilter/symfilter/buildid"
)

// A kernelText is the text of a kernel frame, with the fields parsed from it.
type kernelText struct {
	text   []byte // from the function's name to the end of its module
	symbol Symbol
	module string
	id     buildid.ID
	key    uint64 // hash of the text, the same whenever the text occurs again; its lowest bit is 0

	awaited bool // a frame with this text at an instruction has awaited its code
}

const (
	kernelKeys     = 1 << 63 // keys of other dialects are smaller
	kernelTextBits = 10      // 1,024 cached texts, 130 KiB: most reports have few functions
	maxKernelText  = 512
)

// kernelTexts caches the texts of frames in one kernel.
type kernelTexts struct {
	slots   *[1 << kernelTextBits]kernelText // nil until the first frame
	seed    maphash.Seed
	release string     // release of the kernel
	id      buildid.ID // build ID of the kernel
}

// setKernel drops the cached texts if they are of a kernel other than k, since their keys are
// unique only in one kernel.
func (t *kernelTexts) setKernel(k *Kernel) {
	if t.release != k.Release || t.id != k.ID {
		t.release, t.id, t.slots = k.Release, k.ID, nil
	}
}

// find returns the meaning of the text that begins at b[from] and has its distance at b[at], or nil
// if the text is not a frame. The result is valid until the next call.
func (t *kernelTexts) find(b []byte, from, at int, c *modules) *kernelText {
	slash := hexDigits(b, at+2)
	if !hasAt(b, slash, "/0x") {
		return nil
	}
	end := hexDigits(b, slash+3)
	if hasAt(b, end, " [") {
		n := bytes.IndexByte(b[end:min(len(b), end+maxKernelText)], ']')
		if n < 0 {
			return nil // the module is cut off, so the function is not in the kernel itself
		}
		end += n + 1
	}
	text := b[from:end]
	if len(text) > maxKernelText {
		return nil
	}
	if t.slots == nil {
		t.seed, t.slots = maphash.MakeSeed(), new([1 << kernelTextBits]kernelText)
	}
	hash := maphash.Bytes(t.seed, text)
	slot := &t.slots[hash>>(64-kernelTextBits)]
	if bytes.Equal(slot.text, text) {
		return slot
	}
	offset, _, ok1 := prefixedHex(b, at)
	size, end, ok2 := prefixedHex(b, slash+1)
	if !ok1 || !ok2 || size == 0 || offset > size || offset>>62 != 0 {
		return nil
	}
	module, id, end, ok := c.ofKernel(b, end)
	if !ok {
		return nil
	}
	*slot = kernelText{
		text: append(slot.text[:0], b[from:end]...), module: module, id: id, key: kernelKeys | hash<<1,
		symbol: Symbol{Name: string(b[from : at-1]), Offset: int64(offset), Size: size},
	}
	return slot
}

// ofKernel parses " [MODULE]" or " [MODULE BUILDID]" at the given offset of b, and returns its end.
func (c *modules) ofKernel(b []byte, at int) (module string, id buildid.ID, end int, ok bool) {
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
		if id, ok = c.id(b[end+1 : to]); !ok {
			return "", id, at, false
		}
		end = to
	}
	if !hasAt(b, end, "]") {
		return "", id, at, false
	}
	return c.name(name), id, end + 1, true
}
