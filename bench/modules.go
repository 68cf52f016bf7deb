//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"math/rand/v2"
)

// modulesTree is the debug tree of the log with many modules.
const modulesTree = "dbgm"

// moduleSource is the source of each module.
const moduleSource = `
static int twice(int x) { return x * 2; }
static inline __attribute__((always_inline)) int inner(int x) { return twice(x) + 1; }
__attribute__((noinline)) int outer(int x) { volatile int y = inner(x); return y; }
int entry(int x) { return outer(x) + outer(x + 1); }
`

// manyModules returns a function that makes n shared libraries that differ only in their build IDs,
// and writes a log of frames in them.
func manyModules(n, frames int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		dir, err := os.MkdirTemp(b.dir, "new-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		source, built := filepath.Join(dir, "m.c"), filepath.Join(dir, "m.so")
		if err := os.WriteFile(source, []byte(moduleSource), 0o644); err != nil {
			return err
		}
		if out, err := exec.Command("gcc", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o", built, source).CombinedOutput(); err != nil {
			return fmt.Errorf("gcc: %w\n%s", err, out)
		}
		id, err := buildID(built)
		if err != nil {
			return err
		}
		f, err := elf.Open(built)
		if err != nil {
			return err
		}
		defer f.Close()
		text := f.Section(".text")
		data, err := os.ReadFile(built)
		if err != nil {
			return err
		}
		raw, _ := hex.DecodeString(id)
		at := bytes.Index(data, raw)
		idOf := func(i int) string {
			binary.BigEndian.PutUint64(raw, uint64(i)*0x9e3779b97f4a7c15)
			return hex.EncodeToString(raw)
		}
		for i := range n {
			name, err := inTree(b.tree(modulesTree), idOf(i))
			if err != nil {
				return err
			}
			copy(data[at:], raw)
			if err := os.WriteFile(name, data, 0o644); err != nil {
				return err
			}
		}
		return create(path, func(w *logWriter) {
			r := rand.New(rand.NewPCG(9, 9))
			base := func(i int) uint64 { return loadedAt + uint64(i)<<20 }
			for i := range n {
				w.printf("{{{module:%d:lib%d.so:elf:%s}}}\n{{{mmap:%#x:0x10000:load:%d:rx:0}}}\n", i, i, idOf(i), base(i), i)
			}
			for i := range frames {
				w.printf("{{{bt:%d:%#x:pc}}}\n", i%depth, base(r.IntN(n))+text.Addr+r.Uint64N(text.Size))
			}
		})
	}
}
