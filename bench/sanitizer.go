//go:build linux

package main

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
)

// Names of rows with reports of sanitizers.
const (
	hotReports = "1 M hot frames of sanitizers, radosgw"
	tenReports = "10,000 frames of sanitizers, radosgw"
)

// sanitizerFrames returns a function that writes n frames of AddressSanitizer, and a log with
// the same addresses as elements. distinct bounds the number of different addresses.
func sanitizerFrames(name string, n, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		c, err := b.code(name, distinct)
		if err != nil {
			return err
		}
		addrs := make([]uint64, n)
		for i := range addrs {
			addrs[i] = c.chosen[c.rand.IntN(len(c.chosen))] - 1 // within the call
		}
		if err := c.elements(path+markupSuffix, addrs); err != nil {
			return err
		}
		return create(path, func(w *logWriter) {
			for i, addr := range addrs {
				w.printf("    #%d %#x  (%s+%#x) (BuildId: %s)\n", i%depth, addr, b.bin(name), addr-c.base, c.id)
			}
		})
	}
}

// againstScript compares with LLVM's script asan_symbolize, which starts llvm-symbolizer.
func againstScript(b *binaries, command, _ string) (other, mine *contender) {
	return contend("LLVM_SYMBOLIZER_PATH="+filepath.Join("/usr/bin", reference), "asan_symbolize-19", "--demangle"), filtering(b, command)
}

// values returns a function that writes about size bytes of lines with hexadecimal values, but
// without frames.
func values(size int64) func(b *binaries, path string) error {
	return func(_ *binaries, path string) error {
		r := rand.New(rand.NewPCG(3, 3))
		return create(path, func(w *logWriter) {
			for w.size < size {
				w.printf("Nov 20 10:%02d:%02d node%02d kernel: %s 0x%x: irq %d, status=0x%04x at 0x%016x (flags 0x%x)\n", r.IntN(60), r.IntN(60),
					r.IntN(40), nouns[r.IntN(len(nouns))], r.Uint32(), r.IntN(40), r.IntN(1<<16), r.Uint64(), r.IntN(64))
			}
		})
	}
}

// likeFrames are formats of words that begin or end frames in the dialects, each with up to three
// numbers. None of them is a complete frame.
var likeFrames = []string{
	"#%d", "#%d %#x", "#%d %#016x (see", "#%02d pc %x", "frame #%d: %#x", "%d: %#x", "(#%d) at %#x,", "#%d  %#x in the",
	"%d pc", "%d nip", "ip %x", "ip:%x sp:%x", "pc %#x", "rip:%#x", "PC=%#x m=%d", "epc %x", "pc : %x lr : %x",
	"%d@ %#x", "@ %#x", "@     %#x", "at %#x:", "by %#x:", "by %#x", "in f%d (%x)", "from lib%d.so.%d", "%d [clone]",
	"[%#x]", "[<%016x>]", "[<%x>]", "<%#x>", "(%#x)", "(+%#x)", "()+%#x", "x+%#x/%#x", "%d.so+%#x", "lib%d.so(+%#x)", "[unknown%d] (%x",
	"+%#x", "+%#x]", "(%d+%#x", "%d>+%#x", "C  [lib%d.so+%#x]x", "(BuildId: %x", "(/lib%d/%x", " (/%d", "%d: (in /opt/%x",
	`"o":"%x"`, `"build_id_offset": %d`, "d_o%d", "wn] %x", "CPU:%d PC:%#x:%#x", "|%#x [", "%d %#x - ", "%x@%x", "%#x", "%#016x", "ffffffff%08x",
}

// frameLike returns a function that writes about size bytes of lines. Every third word looks like
// the beginning or end of a frame, but no frame is complete.
func frameLike(size int64) func(b *binaries, path string) error {
	return func(_ *binaries, path string) error {
		r := rand.New(rand.NewPCG(4, 4))
		return create(path, func(w *logWriter) {
			for w.size < size {
				w.printf("2026-11-20T10:%02d:%02dZ node%02d shop[%d]:", r.IntN(60), r.IntN(60), r.IntN(40), 1000+r.IntN(9000))
				for range 4 + r.IntN(6) {
					format := likeFrames[r.IntN(len(likeFrames))]
					numbers := [...]any{r.IntN(64), r.Uint32(), r.Uint32()}
					w.printf(" %s %s "+format, append([]any{nouns[r.IntN(len(nouns))], verbs[r.IntN(len(verbs))]}, numbers[:strings.Count(format, "%")]...)...)
				}
				w.printf(" of %s\n", nouns[r.IntN(len(nouns))])
			}
		})
	}
}
