//go:build linux

// Bench compares symfilter with llvm-symbolizer-19 on big real binaries. It prints ratios of time
// and memory, each the median of interleaved runs. It is not a test: it fails only if something
// cannot be measured.
//
//	go run ./bench [-n 5] [-only REGEXP] [-list]
//	go run ./bench -base COMMAND [-n 5] [-only REGEXP]
//	go run ./bench -agree 100000 [FILE...]
//
// The second form compares with another build of symfilter, for example that of an older commit.
// The third form compares answers instead, for a number of random code addresses in each FILE, or
// in the big binaries.
//
// The binaries (a kernel and radosgw, from Debian's packages) and the logs made from them, about 4
// GB, are kept in $BENCH_DIR, by default symfilter-bench in the user's cache directory. Needs
// apt-get, dpkg-deb, llvm-19.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// workload is a log and the commands that are compared on it.
type workload struct {
	name  string
	log   func(b *binaries, path string) error // writes the log; nil for empty input
	debug string                               // the folder of debug trees
	// piped is set if the command runs between two cats, and is compared with a cat in its place.
	piped bool
	// indexed is the file in bins whose index is made beforehand; empty for none.
	indexed string
	// commands returns the commands to compare, which write to out; nil for the two filters.
	commands func(b *binaries, command, out string) (other, mine []string)
	other    []string // the command to compare with instead of the other filter
	bar      string   // the goal, as the largest ratio or peak; empty without a goal
	// served is set if the debug files come from a server and are not in a cache.
	served bool
	// free is set if symfilter is compared with itself without a sandbox.
	free bool
}

const reference = "llvm-symbolizer-19"

// alone is the flag for which symfilter searches no other folder than the named one, as
// llvm-symbolizer does. Older builds have no such flag, and search no other.
const alone = "--no-default-debug-directories"

// freely is the flag that turns off the sandbox.
const freely = "--no-sandbox"

var workloads = []workload{
	{name: "empty input", debug: plainTree, bar: "wall 0.25"},
	{name: "empty input, sandbox", debug: plainTree, free: true},
	{name: "first frame, vmlinux", log: frames(vmlinux, 1, 0), debug: plainTree, bar: "wall 0.085, 30 MiB"},
	{name: "first frame, radosgw", log: frames(radosgw, 1, 0), debug: plainTree, bar: "wall 0.13, 40 MiB"},
	{name: "first frame, radosgw, zlib", log: frames(radosgw, 1, 0), debug: zlibTree, bar: "wall 0.65"},
	{name: "first frame, vmlinux, indexed", log: frames(vmlinux, 1, 0), debug: plainTree, indexed: vmlinux, bar: "wall 0.085"},
	{name: "first frame, radosgw, indexed", log: frames(radosgw, 1, 0), debug: plainTree, indexed: radosgw, bar: "wall 0.065"},
	{name: "first frame, radosgw, zlib, indexed", log: frames(radosgw, 1, 0), debug: zlibTree, indexed: zlibbed, bar: "wall 0.006"},
	{name: "16 cold frames, vmlinux", log: frames(vmlinux, 16, 0), debug: plainTree, bar: "wall 0.15"},
	{name: "16 cold frames, radosgw", log: frames(radosgw, 16, 0), debug: plainTree, bar: "wall 0.12, peak 0.35"},
	{name: "100 k random frames, vmlinux", log: frames(vmlinux, 100_000, 0), debug: plainTree, bar: "peak 0.35"},
	{name: "100 k random frames, radosgw", log: frames(radosgw, 100_000, 0), debug: plainTree, bar: "peak 0.35"},
	{name: "1 M random frames, vmlinux", log: frames(vmlinux, 1_000_000, 0), debug: plainTree, bar: "wall 0.22, peak 0.35"},
	{name: "1 M random frames, radosgw", log: frames(radosgw, 1_000_000, 0), debug: plainTree, bar: "wall 0.20, peak 0.35"},
	{name: "1 M random frames, vmlinux, indexed", log: frames(vmlinux, 1_000_000, 0), debug: plainTree, indexed: vmlinux, bar: "wall 0.12, peak 0.35"},
	{name: "1 M random frames, radosgw, indexed", log: frames(radosgw, 1_000_000, 0), debug: plainTree, indexed: radosgw, bar: "wall 0.12, peak 0.35"},
	{name: "1 M hot frames, vmlinux", log: frames(vmlinux, 1_000_000, 64), debug: plainTree, bar: "wall 0.045"},
	{name: "1 M hot frames, radosgw", log: frames(radosgw, 1_000_000, 64), debug: plainTree, bar: "wall 0.028, peak 0.35"},
	{name: "5 % frames, 256 MiB, radosgw", log: mixed(radosgw, 256<<20, 5, 2000), debug: plainTree, bar: "wall 0.05, peak 0.35"},
	{name: crashesAsPage, log: crashes(radosgw, 100<<20, 40), commands: pageAgainstText, bar: "wall 1.5"},
	{name: asPage, log: mixed(radosgw, 100<<20, 5, 2000), commands: pageAgainstText, bar: "wall 1.5"},
	{name: "10,000 modules, 100 k frames", log: manyModules(10_000, 100_000), debug: modulesTree, bar: "wall 0.25, peak 0.35"},
	{name: "index, vmlinux", commands: indexing(vmlinux), bar: "wall 0.6, 600 MiB, file 2.0"},
	{name: "index, radosgw", commands: indexing(radosgw), bar: "wall 0.5, 600 MiB, file 3.0"},
	{name: "12 modules of a server that takes 100 ms", log: librariesLog, debug: "no tree", served: true},
	{name: hotReports, log: sanitizerFrames(radosgw, 1_000_000, 64), commands: againstMarkup, bar: "CPU 1.5"},
	{name: hotOopses, log: oopses(100_000, 64), commands: oopsAgainstMarkup(hotOopses), bar: "CPU 1.5"},
	{name: oneOops, log: oopses(1, 1), commands: oopsAgainstMarkup(oneOops), bar: "wall 1.3"},
	{name: quietKernel, log: kernelLog(1 << 30), commands: againstPlain(""), bar: "CPU 1.2"},
	{name: quietKernelImage, log: kernelLog(1 << 30), commands: againstPlain(vmlinux)},
	{name: tenReports, log: sanitizerFrames(radosgw, 10_000, 64), commands: againstScript, bar: "wall 0.05"},
	{name: "0x in every line, 256 MiB", log: values(256 << 20), debug: plainTree, bar: "wall 0.10"},
	{name: "Valgrind report, 100 MiB", log: report(100<<20, 64), debug: plainTree, other: elementTree, bar: "wall 0.1, 96 MiB"},
	{name: "different errors, 100 MiB, `--output=codequality`", log: differentLeaks(100<<20, 64), commands: findingsAgainstText("codequality"), bar: "CPU 1.3"},
	{name: "different errors, 100 MiB, `--output=junit`", log: differentLeaks(100<<20, 64), commands: findingsAgainstText("junit"), bar: "CPU 1.3"},
	{name: "different errors, 100 MiB, `--output=sarif`", log: differentLeaks(100<<20, 64), commands: findingsAgainstText("sarif"), bar: "CPU 1.3"},
	{name: "different errors, 100 MiB, `--output=suppressions`", log: differentLeaks(100<<20, 64), commands: findingsAgainstText("suppressions"), bar: "CPU 1.3"},
	{name: "Callgrind profile, 256 MiB", log: profile(256 << 20), debug: plainTree, other: annotate, bar: "wall 0.1"},
	{name: "sp-rtrace report, 256 MiB", log: trace(256<<20, 64), debug: plainTree, other: countAddresses, bar: "64 MiB"},
	{name: plainText, log: plain(1 << 30), debug: plainTree},
	{name: "plain text, 1 GiB, pipes", log: plain(1 << 30), debug: plainTree, piped: true},
}

// indexing compares the time to index a file.
func indexing(name string) func(b *binaries, command, out string) (other, mine []string) {
	return func(b *binaries, command, out string) (other, mine []string) {
		return []string{"llvm-gsymutil-19", "--quiet", "--num-threads=2", "--convert=" + b.bin(name), "--out-file=" + filepath.Join(out, "other")},
			[]string{"XDG_CACHE_HOME=" + filepath.Join(out, "mine"), command, "index", "--again", "--quiet", b.bin(name)}
	}
}

func main() {
	runs := flag.Int("n", 5, "measured runs of each command; one more warms up")
	only := flag.String("only", "", "run the workloads whose name matches this regular `expression`")
	list := flag.Bool("list", false, "list the workloads")
	// used by logOf: writes one workload's log in another process
	generate := flag.String("generate", "", "")
	base := flag.String("base", "", "compare with this `command`, another build of symfilter, in every row")
	addresses := flag.Int("agree", 0, "compare the answers for `N` random addresses of each file")
	flag.Parse()
	if err := bench(*runs, *only, *list, *generate, *base, *addresses, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(runs int, only string, list bool, generate, base string, addresses int, files []string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if list {
		for _, w := range workloads {
			fmt.Println(w.name)
		}
		return nil
	}
	b, err := openBinaries()
	if err != nil {
		return err
	}
	if generate != "" {
		i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == generate })
		if i < 0 {
			return fmt.Errorf("no workload %q", generate)
		}
		return workloads[i].log(b, b.logPath(workloads[i]))
	}
	if err := b.fetch(); err != nil {
		return err
	}
	command := filepath.Join(b.dir, "symfilter")
	build := exec.Command("go", "build", "-o", command, "github.com/symfilter/symfilter/cmd/symfilter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // like the shipped command
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	describe(command)
	if addresses > 0 {
		if len(files) == 0 {
			files = []string{b.bin(vmlinux), b.bin(radosgw)}
		}
		return agree(command, files, addresses)
	}

	out := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(out, "| workload\t| against\t| wall\t| CPU\t| peak memory\t| bar\t| of\t|")
	fmt.Fprintln(out, "|---\t|---\t|---:\t|---:\t|---:\t|---\t|---\t|")
	made, err := os.MkdirTemp("", "symfilter-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	for _, w := range workloads {
		if !match.MatchString(w.name) {
			continue
		}
		log, err := b.logOf(w)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "running:", w.name)
		dirs := "--debug-file-directory=" + b.tree(w.debug)
		mine := contender{argv: []string{command, dirs, alone}}
		other := contender{argv: []string{reference, "--filter-markup", dirs}}
		if w.piped {
			other = contender{argv: []string{"cat"}}
		}
		if w.free {
			other.argv = append(mine.argv, freely)
		}
		if w.served {
			url, err := b.serve()
			if err != nil {
				return err
			}
			for _, c := range []*contender{&mine, &other} {
				c.argv = append([]string{"DEBUGINFOD_URLS=" + url}, c.argv...)
			}
		}
		if w.indexed != "" {
			cache := "XDG_CACHE_HOME=" + filepath.Join(made, w.indexed)
			if _, err := once([]string{cache, command, "index", "--quiet", b.bin(w.indexed)}, os.DevNull); err != nil {
				return err
			}
			mine.argv = append([]string{cache}, mine.argv...)
		}
		if w.other != nil {
			other.argv = w.other
		}
		if w.commands != nil {
			other.argv, mine.argv = w.commands(b, command, made)
		}
		if base != "" {
			if other.argv, err = asBase(base, mine.argv, w, b, made); err != nil {
				return err
			}
		}
		measure := once
		if w.piped {
			measure = betweenPipes
		}
		if err := interleave(runs, log, measure, &other, &mine); err != nil {
			return err
		}
		ref, got := other.median(), mine.median()
		size := ""
		if mine := filepath.Join(made, "mine"); bytesBelow(mine) > 0 {
			size = ", file " + ratio(bytesBelow(mine), bytesBelow(filepath.Join(made, "other")))
			os.RemoveAll(mine)
		}
		fmt.Fprintf(out, "| %s\t| %s\t| %s\t| %s\t| %s, %d MiB%s\t| %s\t| %s, %s, %d MiB\t|\n", w.name, against(other.argv),
			ratio(got.wall.Seconds(), ref.wall.Seconds()), ratio(got.cpu.Seconds(), ref.cpu.Seconds()),
			ratio(float64(got.peak), float64(ref.peak)), got.peak>>20, size, w.bar, seconds(ref.wall), seconds(ref.cpu), ref.peak>>20)
	}
	return out.Flush()
}

// asBase returns the command line mine for another build. It has a separate cache, since builds may
// differ in the format of indexes.
func asBase(base string, mine []string, w workload, b *binaries, made string) ([]string, error) {
	env, argv := assignments(mine)
	env, argv = slices.Clone(env), append([]string{base}, argv[1:]...)
	if _, err := once([]string{base, alone}, os.DevNull); err != nil {
		argv = slices.DeleteFunc(argv, func(arg string) bool { return arg == alone })
	}
	for i, e := range env {
		if strings.HasPrefix(e, "XDG_CACHE_HOME=") {
			env[i] = "XDG_CACHE_HOME=" + filepath.Join(made, "base")
		}
	}
	if w.indexed != "" {
		index := append(slices.Clone(env), base, "index", "--again", "--quiet", b.bin(w.indexed))
		if _, err := once(index, os.DevNull); err != nil {
			return nil, err
		}
	}
	return append(env, argv...), nil
}

// against returns the name of a contender for the table.
func against(argv []string) string {
	_, argv = assignments(argv)
	if slices.Contains(argv, freely) {
		return filepath.Base(argv[0]) + " " + freely
	}
	return argv[0]
}

// bytesBelow returns the size in bytes of a file, or of all files in a folder.
func bytesBelow(path string) float64 {
	sum := int64(0)
	filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return float64(sum)
}

// describe prints the versions of the commands on standard error.
func describe(command string) {
	first := func(name string, args ...string) string {
		out, _ := exec.Command(name, args...).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.ContainsAny(line, "0123456789") {
				return strings.TrimSpace(line)
			}
		}
		return ""
	}
	fmt.Fprintf(os.Stderr, "%s\n%s\n", first(command, "--version"), first(reference, "--version"))
}
