//go:build linux

package main

import (
	"bufio"
	"cmp"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// loadedAt is the load address of position-independent binaries. A kernel runs where it was linked.
const loadedAt = 0x7f00_0000_0000

// depth is the number of frames in a backtrace.
const depth = 16

// logWriter writes a log, and counts its bytes. Flush returns the first error.
type logWriter struct {
	*bufio.Writer
	size int64
	err  error // set while the log is written, if it must not be kept
}

func (w *logWriter) printf(format string, args ...any) {
	n, _ := fmt.Fprintf(w, format, args...)
	w.size += int64(n)
}

// create calls f to write a log to a temporary file. It renames the file to path only if the log is
// complete.
func create(path string, f func(w *logWriter)) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	w := &logWriter{Writer: bufio.NewWriterSize(tmp, 1<<20)}
	f(w)
	if err := cmp.Or(w.err, w.Flush()); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// frames returns a function that writes n frames at random addresses in functions of the binary.
// distinct bounds the number of different addresses; 0 means no bound.
func frames(name string, n, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		c, err := b.code(name, distinct)
		if err != nil {
			return err
		}
		return create(path, func(w *logWriter) {
			c.context(w)
			for i := range n {
				c.frame(w, i)
			}
		})
	}
}

// mixed returns a function that writes a log of about size bytes. On average, percent % of its
// lines are frames; the others are plain.
func mixed(name string, size int64, percent, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		c, err := b.code(name, distinct)
		if err != nil {
			return err
		}
		return create(path, func(w *logWriter) {
			c.context(w)
			for i := 0; w.size < size; {
				if c.rand.IntN(100) < percent {
					c.frame(w, i)
					i++
				} else {
					w.printf("%s", plainLine(c.rand))
				}
			}
		})
	}
}

// crashes returns a function that writes about size bytes: plain lines, and a backtrace of depth
// frames before one line in 200. distinct is the number of different backtraces.
func crashes(name string, size int64, distinct int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		c, err := b.code(name, 0)
		if err != nil {
			return err
		}
		stacks := make([][]uint64, distinct)
		for i := range stacks {
			for range depth {
				stacks[i] = append(stacks[i], c.fresh())
			}
		}
		return create(path, func(w *logWriter) {
			c.context(w)
			for w.size < size {
				if c.rand.IntN(200) == 0 {
					for i, addr := range stacks[c.rand.IntN(distinct)] {
						c.frameAt(w, i, addr)
					}
				}
				w.printf("%s", plainLine(c.rand))
			}
		})
	}
}

// plain returns a function that writes about size bytes without markup.
func plain(size int64) func(b *binaries, path string) error {
	return func(_ *binaries, path string) error {
		r := rand.New(rand.NewPCG(1, 1))
		return create(path, func(w *logWriter) {
			for w.size < size {
				w.printf("%s", plainLine(r))
			}
		})
	}
}

var nouns = []string{"request", "session", "shard", "lease", "replica", "upload", "segment", "token", "snapshot", "watcher"}
var verbs = []string{"accepted", "expired", "retried", "moved to", "rejected by", "waiting for", "merged into", "dropped from"}

// plainLine returns a random line without frames and elements.
func plainLine(r *rand.Rand) string {
	var s strings.Builder
	fmt.Fprintf(&s, "2026-11-20T10:%02d:%02d.%06dZ node%02d shop[%d]: %s %08x %s %s %d", r.IntN(60), r.IntN(60), r.IntN(1e6),
		r.IntN(40), 1000+r.IntN(9000), nouns[r.IntN(len(nouns))], r.Uint32(), verbs[r.IntN(len(verbs))], nouns[r.IntN(len(nouns))], r.IntN(100))
	for range r.IntN(4) {
		fmt.Fprintf(&s, ", %s {\"ms\":%d,\"try\":%d}", nouns[r.IntN(len(nouns))], r.IntN(5000), r.IntN(9))
	}
	s.WriteByte('\n')
	return s.String()
}

// code holds the functions of a binary, and draws the same addresses in them in every run.
type code struct {
	module, id string
	base       uint64 // load bias
	low, high  uint64
	functions  []elf.Symbol
	chosen     []uint64 // distinct addresses to draw from; empty for all
	rand       *rand.Rand
}

func readCode(path string, distinct int) (*code, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	id, err := buildID(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := &code{module: filepath.Base(path), id: id, low: 1<<64 - 1, rand: rand.New(rand.NewPCG(7, 7))}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Size == 0 || int(s.Section) >= len(f.Sections) || f.Sections[s.Section].Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		c.functions = append(c.functions, s)
		c.low, c.high = min(c.low, s.Value&^0xfff), max(c.high, (s.Value+s.Size+0xfff)&^0xfff)
	}
	if len(c.functions) == 0 {
		return nil, fmt.Errorf("%s: no functions", path)
	}
	if f.Type == elf.ET_DYN {
		c.base = loadedAt
	}
	for range distinct {
		c.chosen = append(c.chosen, c.fresh())
	}
	return c, nil
}

// fresh returns a random return address: one past a random byte of a random function. All
// functions are equally likely.
func (c *code) fresh() uint64 {
	s := c.functions[c.rand.IntN(len(c.functions))]
	return c.base + s.Value + 1 + c.rand.Uint64N(s.Size)
}

func (c *code) context(w *logWriter) {
	w.printf("{{{reset}}}\n{{{module:0:%s:elf:%s}}}\n{{{mmap:%#x:%#x:load:0:rx:%#x}}}\n", c.module, c.id, c.base+c.low, c.high-c.low, c.low)
}

// elements writes a log with a bt element for each address.
func (c *code) elements(path string, addrs []uint64) error {
	return create(path, func(w *logWriter) {
		c.context(w)
		for i, addr := range addrs {
			w.printf("{{{bt:%d:%#x:pc}}}\n", i%depth, addr)
		}
	})
}

func (c *code) frame(w *logWriter, i int) {
	var addr uint64
	if len(c.chosen) > 0 {
		addr = c.chosen[c.rand.IntN(len(c.chosen))]
	} else {
		addr = c.fresh()
	}
	c.frameAt(w, i, addr)
}

func (c *code) frameAt(w *logWriter, i int, addr uint64) {
	kind := "ra"
	if i%depth == 0 {
		kind = "pc"
	}
	w.printf("{{{bt:%d:%#x:%s}}}\n", i%depth, addr, kind)
}
