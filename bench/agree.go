//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// maxShown is the number of differences printed for each file.
const maxShown = 5

// agree looks up n random code addresses of each file with symfilter and with llvm-symbolizer-19.
// Neither program demangles names. For each file, agree prints the number of addresses with
// different answers, and both answers for up to maxShown of these addresses.
func agree(command string, files []string, n int) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(out, "| file\t| addresses\t| lines\t| differ\t| share\t|")
	fmt.Fprintln(out, "|---\t|---:\t|---:\t|---:\t|---:\t|")
	for _, file := range files {
		if err := agreeOn(out, command, file, n); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return out.Flush()
}

func agreeOn(out *tabwriter.Writer, command, file string, n int) error {
	dir, err := os.MkdirTemp("", "symfilter-agree-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log, err := randomLog(dir, file, n)
	if err != nil {
		return err
	}
	filter := func(argv ...string) (map[string]string, int, error) {
		cmd := exec.Command(argv[0], append(argv[1:], "--no-demangle", "--no-debuginfod", "--debug-file-directory="+dir)...)
		cmd.Stdin = bytes.NewReader(log)
		text, err := cmd.Output()
		return frameGroups(text), bytes.Count(text, []byte("\n")), err
	}
	theirs, lines, err := filter(reference, "--filter-markup")
	if err != nil {
		return err
	}
	ours, _, err := filter(command, "--style=llvm")
	if err != nil {
		return err
	}
	var differ []string
	for number, want := range theirs {
		if ours[number] != want {
			differ = append(differ, number)
		}
	}
	slices.Sort(differ)
	fmt.Fprintf(out, "| %s\t| %d\t| %d\t| %d\t| %.4f %%\t|\n", filepath.Base(file), n, lines, len(differ), 100*float64(len(differ))/float64(n))
	for _, number := range differ[:min(len(differ), maxShown)] {
		fmt.Fprintf(os.Stderr, "%s frame %s\n  ours\n%s  LLVM's\n%s", filepath.Base(file), number, ours[number], theirs[number])
	}
	return nil
}

// frameNumber matches the number of a frame at the beginning of its line.
var frameNumber = regexp.MustCompile(`^\s*(?:#|\[\[\[bt:)(\d+)`)

// frameGroups returns the lines of each frame, by number. Lines of inlined calls (#N.M) belong
// to frame N.
func frameGroups(text []byte) map[string]string {
	groups := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if m := frameNumber.FindStringSubmatch(line); m != nil {
			groups[m[1]] += line
		}
	}
	return groups
}

// randomLog adds file to the debug tree dir. It returns markup with n addresses drawn evenly from
// the code of file.
func randomLog(dir, file string, n int) ([]byte, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	id, err := buildID(file)
	if err != nil {
		return nil, err
	}
	target, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if err := link(dir, target); err != nil {
		return nil, err
	}

	var code []*elf.Section
	var size uint64
	low, high := ^uint64(0), uint64(0)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 {
			code = append(code, s)
			size += s.Size
			low, high = min(low, s.Addr), max(high, s.Addr+s.Size)
		}
	}
	if code == nil {
		return nil, errors.New("it has no code")
	}
	var log bytes.Buffer
	fmt.Fprintf(&log, "{{{module:0:m:elf:%s}}}\n{{{mmap:%#x:%#x:load:0:rx:%#x}}}\n", id, low, high-low, low)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		at := random.Uint64N(size)
		for _, s := range code {
			if at < s.Size {
				fmt.Fprintf(&log, "{{{bt:%d:%#x:pc}}}\n", i, s.Addr+at)
				break
			}
			at -= s.Size
		}
	}
	return log.Bytes(), nil
}
