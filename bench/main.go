//go:build linux

// Bench compares symfilter with llvm-symbolizer-19 on big real binaries. It prints ratios of time
// and memory, from medians of interleaved runs. It is not a test: it fails only if something cannot
// be measured, or if two outputs that must be equal differ.
//
//	go run ./bench [-n 5] [-only REGEXP] [-json FILE]
//	go run ./bench -list
//	go run ./bench -base COMMAND [-n 5] [-only REGEXP] [-json FILE]
//	go run ./bench -compare OLD NEW
//	go run ./bench -agree 100000 [FILE...]
//
// With -json, bench also writes the table to FILE after each row. FILE includes the figures of each
// run and the versions of the programs. With -base, it compares symfilter with another build of
// itself, for example of an older commit. With -compare, it compares two files of -json, and
// measures nothing. With -agree, it compares the answers for a number of random code addresses in
// each FILE, or in the big binaries.
//
// The binaries are a kernel, radosgw and libjvm, from Debian's packages. They and the logs made
// from them, about 8 GB, are kept in $BENCH_DIR, by default symfilter-bench in the user's cache
// directory. Bench needs apt-get, dpkg-deb and llvm-19.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// options are the flags and arguments of bench.
type options struct {
	runs      int
	only      *regexp.Regexp
	list      bool
	generate  string // workload whose log is written
	base      string
	agree     int
	json      string
	compare   bool
	arguments []string
}

func main() {
	var o options
	flag.IntVar(&o.runs, "n", 5, "measured runs of each command; one more warms up")
	only := flag.String("only", "", "run the workloads whose name matches this regular `expression`")
	flag.BoolVar(&o.list, "list", false, "list the workloads")
	// used by logOf: writes one workload's log in another process
	flag.StringVar(&o.generate, "generate", "", "")
	flag.StringVar(&o.base, "base", "", "compare with this `command`, another build of symfilter, in every row")
	flag.IntVar(&o.agree, "agree", 0, "compare the answers for `N` random addresses of each file")
	flag.StringVar(&o.json, "json", "", "also write the table to this `file`, as JSON")
	flag.BoolVar(&o.compare, "compare", false, "compare two files of -json, OLD and NEW")
	flag.Parse()
	o.arguments = flag.Args()
	var err error
	if o.only, err = regexp.Compile(*only); err == nil {
		// a signal kills the commands and removes their output folders
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = bench(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, o options) (err error) {
	switch {
	case o.list:
		for _, w := range workloads() {
			fmt.Println(w.name)
		}
		return nil
	case o.compare:
		return compareFiles(os.Stdout, o.arguments)
	case o.runs < 1:
		return fmt.Errorf("-n %d: want at least one run", o.runs)
	}
	b, err := openBinaries()
	if err != nil {
		return err
	}
	if o.generate != "" {
		return generate(b, o.generate)
	}
	if err := b.fetch(ctx); err != nil {
		return err
	}
	made, err := os.MkdirTemp("", "symfilter-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	p := &programs{symfilter: filepath.Join(made, "symfilter"), versions: map[string]string{}}
	if err := build(ctx, p.symfilter, "symfilter"); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s\n%s\n", p.version(p.symfilter), p.version(reference))
	if o.agree > 0 {
		if len(o.arguments) == 0 {
			o.arguments = []string{b.bin(vmlinux), b.bin(radosgw), b.bin(libjvm)}
		}
		return agree(p.symfilter, o.arguments, o.agree)
	}

	r := newReport()
	defer func() { err = cmp.Or(err, r.print(os.Stdout)) }() // even rows before a failed one
	for _, w := range workloads() {
		if !o.only.MatchString(w.name) || o.base != "" && w.daemon != nil {
			continue
		}
		if err := r.measure(ctx, w, b, p, o, made); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if o.json != "" {
			if err := r.save(o.json); err != nil {
				return err
			}
		}
	}
	return nil
}

func generate(b *binaries, name string) error {
	for _, w := range workloads() {
		if w.name == name && w.log != nil {
			return w.log(b, b.logPath(name))
		}
	}
	return fmt.Errorf("no workload %q with a log", name)
}

// daemonDir is the name of the folder for the files of a symfilterd row. It is inside the folder
// for all outputs.
const daemonDir = "daemon"

// measure runs the commands of a workload, and adds a row to the report. The commands write to
// files inside the folder made. measure removes these files at the end.
func (r *report) measure(ctx context.Context, w workload, b *binaries, p *programs, o options, made string) error {
	log := os.DevNull
	if name := w.logName(); name != "" {
		var err error
		if log, err = b.logOf(ctx, name); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "running:", w.name)
	defer func() {
		for _, name := range []string{"other", "mine", daemonDir} {
			os.RemoveAll(filepath.Join(made, name))
		}
	}()
	other, mine, err := contendersOf(ctx, w, b, p, log, made)
	if err != nil {
		return err
	}
	label := cmp.Or(w.against, against(other.argv))
	if o.base != "" {
		if other.argv, err = asBase(ctx, o.base, mine.argv, w, b, made); err != nil {
			return err
		}
		other.log, label = mine.log, o.base
		w.goals, w.like = "", "" // the goals are for other programs
	}
	if err := interleave(ctx, o.runs, log, other, mine); err != nil {
		return err
	}
	sides := [2]side{p.side(other), p.side(mine)}
	for i, name := range []string{"other", "mine"} {
		sides[i].FileBytes = bytesBelow(filepath.Join(made, name))
	}
	return r.add(w, label, sides[0], sides[1])
}

// contendersOf returns the commands that a workload compares.
func contendersOf(ctx context.Context, w workload, b *binaries, p *programs, log, made string) (other, mine *contender, err error) {
	dirs := "--debug-file-directory=" + b.tree(w.debug)
	mine = contend(p.symfilter, dirs, alone)
	other = contend(reference, "--filter-markup", dirs)
	switch {
	case w.commands != nil:
		other, mine = w.commands(b, p.symfilter, made)
	case w.daemon != nil:
		d, err := newDaemon(ctx, b, p, log, filepath.Join(made, daemonDir))
		if err != nil {
			return nil, nil, err
		}
		return w.daemon(d)
	case w.other != nil:
		other = contend(w.other...)
	case w.piped:
		other = contend("cat")
		other.measure, mine.measure = betweenPipes, betweenPipes
	case w.minimal:
		other = contend(filepath.Join(made, "minimal"))
		if err := buildMinimal(ctx, other.argv[0]); err != nil {
			return nil, nil, err
		}
	case w.free:
		other.argv = append(slices.Clone(mine.argv), freely)
	}
	if w.served {
		url, err := b.serve()
		if err != nil {
			return nil, nil, err
		}
		for _, c := range []*contender{mine, other} {
			c.argv = append([]string{"DEBUGINFOD_URLS=" + url}, c.argv...)
		}
	}
	if w.indexed != "" {
		cache := "XDG_CACHE_HOME=" + filepath.Join(made, w.indexed)
		if _, err := once(ctx, []string{cache, p.symfilter, "index", "--quiet", b.bin(w.indexed)}, os.DevNull); err != nil {
			return nil, nil, err
		}
		mine.argv = append([]string{cache}, mine.argv...)
	}
	return other, mine, nil
}

// asBase returns mine, a command line of symfilter, with base as the program. base is another build
// with a separate cache, since the format of its indexes may differ. asBase makes the index that w
// needs.
func asBase(ctx context.Context, base string, mine []string, w workload, b *binaries, made string) ([]string, error) {
	env, argv := assignments(mine)
	env, argv = slices.Clone(env), append([]string{base}, argv[1:]...)
	if _, err := once(ctx, []string{base, alone}, os.DevNull); err != nil {
		argv = slices.DeleteFunc(argv, func(arg string) bool { return arg == alone })
	}
	for i, e := range env {
		if strings.HasPrefix(e, "XDG_CACHE_HOME=") {
			env[i] = "XDG_CACHE_HOME=" + filepath.Join(made, "base")
			if w.indexed == "" {
				env[i] = "XDG_CACHE_HOME=" + filepath.Join(made, "other") // compare the indexes
			}
		}
	}
	if w.indexed != "" {
		index := append(slices.Clone(env), base, "index", "--again", "--quiet", b.bin(w.indexed))
		if _, err := once(ctx, index, os.DevNull); err != nil {
			return nil, err
		}
	}
	return append(env, argv...), nil
}

// against returns the default name of the other side in the table: the program, and --no-sandbox if
// argv has that flag.
func against(argv []string) string {
	_, argv = assignments(argv)
	if slices.Contains(argv, freely) {
		return filepath.Base(argv[0]) + " " + freely
	}
	return argv[0]
}

// bytesBelow returns the size in bytes of a file, or of all files in a folder.
func bytesBelow(path string) int64 {
	sum := int64(0)
	filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// programs are the commands of this checkout, with the versions of all compared programs.
type programs struct {
	symfilter string
	versions  map[string]string // by program
}

// build builds a command of this checkout as it is shipped, and installs it at output. Each run of
// bench has its own output, since a concurrent run could replace the file.
func build(ctx context.Context, output, command string) error {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	script := filepath.Join(strings.TrimSpace(string(dir)), "scripts", "build-static")
	if out, err := exec.CommandContext(ctx, script, output, command).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", script, err, out)
	}
	return install(output)
}

// buildMinimal builds a program that does nothing, with the flags of scripts/build-static.
func buildMinimal(ctx context.Context, output string) error {
	source := output + ".go"
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", output, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("empty Go program: %w\n%s", err, out)
	}
	return install(output)
}

// install replaces the linker's output with a copy, as in packages and archives. The linker
// writes through a memory map, which leaves single pages in the page cache. Such a file takes
// 1.15 times as long to start.
func install(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := os.Remove(path); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// hasVersion matches a line with a version number, such as 19.1.
var hasVersion = regexp.MustCompile(`\d+\.\d+`)

// version returns the line with the version in a program's output, or "" if no flag prints one.
func (p *programs) version(program string) string {
	if v, ok := p.versions[program]; ok {
		return v
	}
	version := ""
	out, err := exec.Command(program, "--version").Output()
	if err == nil {
		for line := range strings.Lines(string(out)) {
			if hasVersion.MatchString(line) {
				version = strings.TrimSpace(line)
				break
			}
		}
	}
	p.versions[program] = version
	return version
}

func (p *programs) side(c *contender) side {
	_, argv := assignments(c.argv)
	return side{Program: filepath.Base(argv[0]), Version: p.version(argv[0]), Median: median(c.runs), All: c.runs}
}
