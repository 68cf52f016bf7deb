//go:build linux

package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// workload is a log, and the commands compared on it.
type workload struct {
	name  string
	log   func(b *binaries, path string) error // writes the log; nil for empty input
	of    string                               // workload whose log is read if log is nil
	debug string                               // debug tree
	// piped is set if the command runs in a pipeline between two cats. It is compared with a third
	// cat in the command's place.
	piped bool
	// indexed is the file in bins that is indexed beforehand, or "".
	indexed string
	// commands returns the contenders, which write to the folder out; nil selects the two
	// filters.
	commands func(b *binaries, command, out string) (other, mine *contender)
	// daemon is set for a row of symfilterd. It returns the contenders.
	daemon  func(d *daemon) (other, mine *contender, err error)
	other   []string // compared with symfilter instead of llvm-symbolizer
	against string   // the other side's name in the table; empty for its program
	goals   string   // input of parseGoals
	// like is the workload whose ratios, times slack, are the goals.
	like string
	// served is set if a server has the debug files, and no cache does.
	served bool
	// minimal is set if symfilter is compared with an empty Go program.
	minimal bool
	// free is set if symfilter is compared with itself without a sandbox.
	free bool
}

// logName returns the name of the workload whose log is read, or "" for empty input.
func (w workload) logName() string {
	if w.log == nil {
		return w.of
	}
	return w.name
}

const reference = "llvm-symbolizer-19"

// alone makes symfilter search only the named folder, as llvm-symbolizer does. Older builds lack
// this flag, and always search only this folder.
const alone = "--no-default-debug-directories"

// freely turns off symfilter's sandbox.
const freely = "--no-sandbox"

// Names in the table for the other side of rows that compare symfilter with itself.
const (
	onMarkup = "symfilter on as many `bt`"
	onPlain  = "symfilter on plain text"
	asText   = "symfilter's text"
)

// workloads returns the rows in the order of the table.
func workloads() []workload {
	return slices.Concat([]workload{
		{name: "empty input", debug: plainTree, goals: "wall 0.17"},
		{name: "empty input, an empty Go program", debug: plainTree, against: "an empty Go program", minimal: true, goals: "wall 1.4"},
		{name: "empty input, sandbox", debug: plainTree, free: true},
	}, filters(vmlinux, "vmlinux", perBinary{
		first: "wall 0.05, 30 MiB", firstIndexed: "wall 0.03", cold: "wall 0.07", hundred: "peak 0.25", million: "wall 0.16, peak 0.25",
		millionIndexed: "wall 0.07, peak 0.12", hot: "wall 0.028", index: "wall 0.25, 600 MiB, file 2.0",
	}), filters(radosgw, "radosgw", perBinary{
		first: "wall 0.075, 40 MiB", firstIndexed: "wall 0.03", cold: "wall 0.05", hundred: "peak 0.25", million: "wall 0.10, peak 0.25",
		millionIndexed: "wall 0.045, peak 0.12", hot: "wall 0.015, peak 0.35", index: "wall 0.3, 600 MiB, file 3.0",
	}), compressed(radosgw, zlibbed, "radosgw", "wall 0.35", "wall 0.006"), []workload{
		{name: "5 % frames, 256 MiB, radosgw", log: mixed(radosgw, 256<<20, 5, 2000), debug: plainTree, goals: "wall 0.045, peak 0.35"},
	}, untuned(slices.Concat(filters(libjvm, "libjvm", perBinary{}), compressed(libjvm, zlibbedLibjvm, "libjvm", "", "")), "libjvm", "radosgw"), []workload{
		{name: "10,000 modules, 100 k frames", log: manyModules(10_000, 100_000), debug: modulesTree, goals: "wall 0.3, peak 0.3"},
		{name: "12 modules of a server that takes 100 ms", log: librariesLog, debug: "no tree", served: true},

		{name: hotReports, log: sanitizerFrames(radosgw, 1_000_000, 64), commands: onMarkupOf(hotReports), against: onMarkup, goals: "CPU 1.5"},
		{name: tenReports, log: sanitizerFrames(radosgw, 10_000, 64), commands: againstScript, goals: "wall 0.05"},
		{name: hotCrashes, log: crashFrames(1_000_000, 4), commands: onMarkupOf(hotCrashes, tree(libraryTree)), against: onMarkup, goals: "wall 2"},
		{name: mixedCrashes, log: crashLog(100<<20, 40), commands: onMarkupOf(mixedCrashes, tree(libraryTree)), against: onMarkup, goals: "wall 2"},
		{name: hotOopses, log: oopses(100_000, 64), commands: onMarkupOf(hotOopses, image(vmlinux)), against: onMarkup, goals: "CPU 1.5"},
		{name: oneOops, log: oopses(1, 1), commands: onMarkupOf(oneOops, image(vmlinux)), against: "symfilter on a `bt`", goals: "wall 1.3"},
		{name: quietKernel, log: kernelLog(1 << 30), commands: onPlainText(""), against: onPlain, goals: "CPU 1.2"},
		{name: quietKernel + ", `--image vmlinux`", of: quietKernel, commands: onPlainText(vmlinux), against: onPlain},
		{name: "0x in every line, 256 MiB", log: values(256 << 20), debug: plainTree, goals: "wall 0.10"},
		{name: "words like frames, 256 MiB", log: frameLike(256 << 20), debug: plainTree, goals: "wall 0.15"},

		{name: "crashes of 16 frames, 100 MiB, radosgw, `--output=html`", log: crashes(radosgw, 100<<20, 40), commands: outputAgainstText("html"), against: asText, goals: "wall 1.8"},
		{name: "5 % frames, 100 MiB, radosgw, `--output=html`", log: mixed(radosgw, 100<<20, 5, 2000), commands: outputAgainstText("html"), against: asText, goals: "wall 1.8"},
		{name: "Valgrind report, 100 MiB", log: valgrindReport(100<<20, 64), debug: plainTree, other: elementTree, goals: "wall 0.07, 96 MiB"},
		{name: differentErrors + "codequality`", log: differentLeaks(100<<20, 64), commands: outputAgainstText("codequality"), against: asText, goals: "CPU 1.3"},
		{name: differentErrors + "junit`", of: differentErrors + "codequality`", commands: outputAgainstText("junit"), against: asText, goals: "CPU 1.3"},
		{name: differentErrors + "sarif`", of: differentErrors + "codequality`", commands: outputAgainstText("sarif"), against: asText, goals: "CPU 1.3"},
		{name: differentErrors + "suppressions`", of: differentErrors + "codequality`", commands: outputAgainstText("suppressions"), against: asText, goals: "CPU 1.3"},
		{name: "Callgrind profile, 256 MiB", log: profile(256 << 20), debug: plainTree, other: annotate, goals: "wall 0.1"},
		{name: "sp-rtrace report, 256 MiB", log: trace(256<<20, 64), debug: plainTree, other: countAddresses, goals: "64 MiB"},

		{name: plainText, log: plain(1 << 30), debug: plainTree, goals: "wall 0.017"},
		{name: plainText + ", pipes", of: plainText, debug: plainTree, piped: true, goals: "wall 1.08"},
	}, standIns(radosgw, "radosgw"), standIns(vmlinux, "vmlinux"), peers(radosgw, "radosgw"), peers(vmlinux, "vmlinux"), []workload{
		// last, because bench reads the HTTP answers: measured commands inherit the peak memory
		// of the process that starts them
		{name: "5 % frames, 256 MiB, radosgw, symfilterd from file to file", of: "5 % frames, 256 MiB, radosgw", daemon: fileToFile, against: "symfilter --follow"},
		{name: "plain text, 256 MiB, symfilterd from file to file", log: plain(256 << 20), daemon: fileToFile, against: "symfilter --follow"},
		{name: "5 % frames, 256 MiB, radosgw, symfilterd over HTTP", of: "5 % frames, 256 MiB, radosgw", daemon: overHTTP, against: "symfilter between pipes"},
		{name: "plain text, 256 MiB, symfilterd over HTTP", of: "plain text, 256 MiB, symfilterd from file to file", daemon: overHTTP, against: "symfilter between pipes"},
	})
}

const differentErrors = "different errors, 100 MiB, `--output="

// perBinary holds goals for the rows that filters returns. An empty text sets no goal.
type perBinary struct{ first, firstIndexed, cold, hundred, million, millionIndexed, hot, index string }

// filters returns the rows of a binary without compressed sections.
func filters(bin, name string, g perBinary) []workload {
	return []workload{
		{name: "first frame, " + name, log: frames(bin, 1, 0), debug: plainTree, goals: g.first},
		{name: "first frame, " + name + ", indexed", of: "first frame, " + name, debug: plainTree, indexed: bin, goals: g.firstIndexed},
		{name: "16 cold frames, " + name, log: frames(bin, 16, 0), debug: plainTree, goals: g.cold},
		{name: "100 k random frames, " + name, log: frames(bin, 100_000, 0), debug: plainTree, goals: g.hundred},
		{name: "1 M random frames, " + name, log: frames(bin, 1_000_000, 0), debug: plainTree, goals: g.million},
		{name: "1 M random frames, " + name + ", indexed", of: "1 M random frames, " + name, debug: plainTree, indexed: bin, goals: g.millionIndexed},
		{name: "1 M hot frames, " + name, log: frames(bin, 1_000_000, 64), debug: plainTree, goals: g.hot},
		{name: "index, " + name, commands: indexing(bin), goals: g.index},
	}
}

// compressed returns the rows of a binary with sections compressed by zlib.
func compressed(bin, zlib, name, goals, indexedGoals string) []workload {
	return []workload{
		{name: "first frame, " + name + ", zlib", of: "first frame, " + name, debug: zlibTree, goals: goals},
		{name: "first frame, " + name + ", zlib, indexed", of: "first frame, " + name, debug: zlibTree, indexed: zlib, goals: indexedGoals},
	}
}

// untuned sets the field like of each row to the same row of another binary, whose name is tuned.
// The ratios of that row, times slack, are the goals. name is the name of the row's own binary.
func untuned(rows []workload, name, tuned string) []workload {
	for i := range rows {
		rows[i].like = strings.Replace(rows[i].name, name, tuned, 1)
	}
	return rows
}

// indexing compares the time to index the binary name.
func indexing(name string) func(b *binaries, command, out string) (other, mine *contender) {
	return func(b *binaries, command, out string) (other, mine *contender) {
		return contend("llvm-gsymutil-19", "--quiet", "--num-threads=2", "--convert="+b.bin(name), "--out-file="+filepath.Join(out, "other")),
			contend("XDG_CACHE_HOME="+filepath.Join(out, "mine"), command, "index", "--again", "--quiet", b.bin(name))
	}
}

// filtering returns symfilter as a filter, with the debug files of plainTree and more flags.
func filtering(b *binaries, command string, flags ...string) *contender {
	return contend(append([]string{command, "--debug-file-directory=" + b.tree(plainTree), alone}, flags...)...)
}

// outputAgainstText compares an output with the text output of the same command.
func outputAgainstText(form string) func(b *binaries, command, out string) (other, mine *contender) {
	return func(b *binaries, command, _ string) (other, mine *contender) {
		return filtering(b, command), filtering(b, command, "--output="+form)
	}
}

// markupSuffix is the suffix of the log with the same frames as elements.
const markupSuffix = ".bt"

// onMarkupOf compares two runs of symfilter with the same flags: on the log of the row called name,
// and on the markup form of this log, in which each frame is an element.
func onMarkupOf(name string, flags ...func(b *binaries) string) func(b *binaries, command, out string) (other, mine *contender) {
	return func(b *binaries, command, _ string) (other, mine *contender) {
		other, mine = filtering(b, command), filtering(b, command)
		for _, flag := range flags {
			other.argv, mine.argv = append(other.argv, flag(b)), append(mine.argv, flag(b))
		}
		other.log = b.logPath(name) + markupSuffix
		return other, mine
	}
}

// image returns the flag for a file in the folder bins.
func image(name string) func(b *binaries) string {
	return func(b *binaries) string { return "--image=" + b.bin(name) }
}

// tree returns the flag for another debug tree.
func tree(name string) func(b *binaries) string {
	return func(b *binaries) string { return "--debug-file-directory=" + b.tree(name) }
}

// onPlainText compares symfilter on the row's log with symfilter on the log of the row plainText.
// If image is not empty, only the first of these commands loads it.
func onPlainText(image string) func(b *binaries, command, out string) (other, mine *contender) {
	return func(b *binaries, command, _ string) (other, mine *contender) {
		other, mine = filtering(b, command), filtering(b, command)
		if image != "" {
			mine = filtering(b, command, "--image="+b.bin(image))
		}
		other.log = b.logPath(plainText)
		return other, mine
	}
}
