//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Suffixes of two files beside a log: the GSYM file of the log's binary, and llvm-gsymutil's input
// with the addresses in the log.
const (
	gsymSuffix    = ".gsym"
	lookupsSuffix = ".lookups"
)

// peers returns the rows that compare symfilter with llvm-gsymutil, which reads an index like
// symfilter's own, and with gdb. symfilter does not replace these programs under their names.
func peers(bin, name string) (rows []workload) {
	gsym := func(what string, n int) {
		row := what + ", " + name + ", index and GSYM"
		rows = append(rows, workload{name: row, log: gsymFrames(bin, n), indexed: bin, against: "llvm-gsymutil-19", goals: "wall 1, peak 1",
			commands: func(b *binaries, command, _ string) (other, mine *contender) {
				other = contend("llvm-gsymutil-19", "--addresses-from-stdin")
				other.log = b.logPath(row) + lookupsSuffix
				return other, filtering(b, command)
			}})
	}
	gdb := func(what string, n int) {
		row := what + ", " + name + ", gdb"
		rows = append(rows, workload{name: row, log: addresses(bin, n), goals: "wall 1, peak 1",
			commands: func(b *binaries, command, _ string) (other, mine *contender) {
				// if the file is missing, the later read fails
				questions, _ := os.ReadFile(b.logPath(row))
				argv := []string{"gdb", "-nx", "-batch"}
				for address := range strings.FieldsSeq(string(questions)) {
					argv = append(argv, "-ex", "info line *"+address)
				}
				return contend(append(argv, b.bin(bin))...), contend(command, "as", "llvm-symbolizer", "-e", b.bin(bin))
			}})
	}
	gsym("first frame", 1)
	gsym("100 k random frames", 100_000)
	gdb("an address", 1)
	gdb("16 addresses", 16)
	return rows
}

// gsymFrames returns a function that writes n frames as elements, llvm-gsymutil's input with their
// addresses, and the GSYM file.
func gsymFrames(bin string, n int) func(b *binaries, path string) error {
	return func(b *binaries, path string) error {
		c, err := b.code(bin, 0)
		if err != nil {
			return err
		}
		out, err := exec.Command("llvm-gsymutil-19", "--quiet", "--convert="+b.bin(bin), "--out-file="+path+gsymSuffix).CombinedOutput()
		if err != nil {
			return fmt.Errorf("llvm-gsymutil-19: %w\n%s", err, out)
		}
		addrs := make([]uint64, n)
		err = create(path+lookupsSuffix, func(w *logWriter) {
			for i := range addrs {
				addrs[i] = c.fresh() - 1 // within the call
				w.printf("%#x %s\n", addrs[i]-c.base, path+gsymSuffix)
			}
		})
		if err != nil {
			return err
		}
		return c.elements(path, addrs)
	}
}
