package filter

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/internal/report"
)

const (
	maxImages = 1024 // files that a trace may refer to
	// files tried for frames without a module; the operator's files may exceed this limit
	maxUnnamed = 64
	// files of a trace that are checked for changes before another stack is judged
	maxChanged = 16
	// files that stay open after a trace, because making their symbol tables takes longer than
	// using them
	maxOpenFiles = 32
)

// traceFiles holds the files of the modules in the current trace. Some of them stay open for the
// next trace. The zero value holds no file.
type traceFiles struct {
	objects *report.Objects // files at paths in the log
	// the operator's files, to which Sysroot and NoPaths do not apply
	images     *report.Objects
	givenFiles map[string]givenFile // facts about the operator's files, by path
	candidates []candidateFile      // files of Dialects.Candidates and in its folders
	listed     bool                 // candidates is set

	// numbers of files opened and examined in all traces, as of the last call of charge
	opened, looked int
	checked        int64 // start time of the block for which changed has last checked the files
}

// charge deducts from the log's Quota the files that were opened and examined since the last call.
func (fs *traceFiles) charge(q *dialect.Quota) {
	opened, looked := 0, 0
	for _, all := range []*report.Objects{fs.objects, fs.images} {
		o, l := all.Work()
		opened, looked = opened+o, looked+l
	}
	q.Opened(opened-fs.opened, looked-fs.looked)
	fs.opened, fs.looked = opened, looked
}

// open prepares fs for a trace. Files that stay open from earlier traces are checked before they
// are used again.
func (fs *traceFiles) open(o *Dialects) {
	if fs.objects != nil {
		fs.objects.Renew(maxOpenFiles)
		fs.images.Renew(maxOpenFiles)
		return
	}
	fs.objects = report.NewObjects(&report.Options{Sysroot: o.Sysroot, PrefixMap: o.PrefixMap, NoPaths: o.NoPaths}, maxImages, true)
	fs.images = report.NewObjects(&report.Options{}, maxImages, true)
}

func (fs *traceFiles) close() {
	if fs.objects != nil {
		fs.objects.Close()
		fs.images.Close()
	}
	fs.objects, fs.images, fs.opened, fs.looked = nil, nil, 0, 0
}

// changed reports whether a file was replaced since it was opened. It checks the files once for
// each block: a check before each stack would take 5 % of the time. The parameter now is the time
// at which the block began.
func (fs *traceFiles) changed(now int64) bool {
	if fs.checked == now {
		return false
	}
	fs.checked = now
	return fs.objects.Changed(maxChanged) || fs.images.Changed(maxChanged)
}

// open finds the file of a frame's module. It uses the build ID, the operator's choice, the path,
// the mapping around the frame's address, or the name.
func (t *tracer) open(f *dialect.Frame) *judge.Image {
	name := f.Module
	if !f.ID.IsZero() {
		return t.imageByID(f)
	}
	for i := range t.opt.Images {
		g := &t.opt.Images[i]
		if !g.isFor(name) {
			continue
		}
		return t.imageOfOperator(g)
	}
	entry, mapped := t.reader.Facts().Around(f)
	switch {
	case name == "" && !mapped:
		return &judge.Image{Err: judge.ErrNoModule}
	case f.Deleted:
		return &judge.Image{Path: name, Err: report.ErrDeleted}
	case mapped && entry.Deleted:
		return &judge.Image{Path: entry.Path, Err: report.ErrDeleted}
	case strings.HasPrefix(name, "/"):
		return t.imageAtTitle(name)
	case mapped:
		m := t.imageAt(entry.Path)
		// if the names differ, the mapping may be of another process, or the frame's name may be a
		// link to the library
		m.Guessed = name != "" && judge.Stem(path.Base(entry.Path)) != judge.Stem(judge.ProgramName(name))
		return m
	}
	return t.imageNamed(name)
}

// imageAtTitle returns the file at name: a path, which may contain blanks, or a process title that
// begins with a path.
func (t *tracer) imageAtTitle(name string) *judge.Image {
	m := t.imageAt(name)
	if word, _, blank := strings.Cut(name, " "); m.Err != nil && blank {
		if program := t.imageAt(word); program.Err == nil {
			return program
		}
	}
	return m
}

// programs are the folders that are searched for a program without a path in the log.
var programs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"}

// imageNamed returns a library by its name, or a program by its name or its process's title.
func (t *tracer) imageNamed(title string) *judge.Image {
	name := judge.ProgramName(title)
	main := t.reader.Facts().Main().Name
	if strings.HasPrefix(main, "/") && path.Base(main) == name {
		return t.imageAt(main)
	}
	if mapped := t.reader.Facts().PathOf(name); mapped != "" {
		return t.imageAt(mapped)
	}
	if m, ok := t.reader.Facts().Module(name); ok && strings.HasPrefix(m.Name, "/") {
		if file := t.imageAt(m.Name); file.Err == nil {
			return file
		}
	}
	if m := relative(t, title); m != nil {
		return m
	}
	if strings.Contains(name, ".so") {
		return t.library(name, path.Dir(main))
	}
	if len(name) > 1 && !strings.HasPrefix(title, ".") {
		if m := firstIn(t, name, t.opt.Folders, programs); m != nil {
			m.Guessed = true
			return m
		}
	}
	return &judge.Image{Path: title, Err: judge.ErrTitle}
}

// relative returns the file at the relative path at the start of a process title, or nil if the
// working folder has none.
func relative(t *tracer, title string) *judge.Image {
	word, _, _ := strings.Cut(title, " ")
	for _, name := range []string{title, word} {
		if !strings.Contains(name, "/") || !filepath.IsLocal(name) {
			continue
		}
		if m := firstIn(t, name, []string{t.opt.WorkingFolder}); m != nil {
			return m
		}
	}
	return nil
}

// libraries are the folders in which distributions' dynamic linkers search for libraries.
var libraries = []string{
	"/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/lib64", "/usr/local/lib",
}

// library returns the file of a library without a path. It searches folder, the folder of the
// program, before the other folders.
func (t *tracer) library(name, folder string) *judge.Image {
	if m := firstIn(t, name, []string{folder}, t.opt.Folders, libraries); m != nil {
		m.ByName = true
		return m
	}
	return &judge.Image{Path: name, Err: judge.ErrNoLib}
}

// firstIn returns the first file of this name in the folders, or nil.
func firstIn(t *tracer, name string, lists ...[]string) *judge.Image {
	for _, folders := range lists {
		for _, folder := range folders[:min(len(folders), maxFolders)] {
			if !strings.HasPrefix(folder, "/") {
				continue
			}
			place := path.Join(folder, name)
			if t.opt.NoPaths || !isFile(t, place) {
				// skipped without a call of imageAt, which would count the missing file towards
				// maxImages
				continue
			}
			if m := t.imageAt(place); m.Err == nil {
				return m
			}
		}
	}
	return nil
}

// isFor reports whether the operator's file g is for a module with this name. If g has no name, its
// file's name decides, with or without ".elf".
func (g *Image) isFor(module string) bool {
	name := g.Name
	if name == "" {
		name = path.Base(g.Path)
	}
	return name == module || path.Base(module) == name || strings.TrimSuffix(name, ".elf") == module || judge.ProgramName(module) == name
}

func (t *tracer) imageOfOperator(g *Image) *judge.Image {
	m := imageOf(t.files.images.Named(g.Path))
	m.Given, m.Base, m.HasBase, m.Forced = true, g.Base, g.HasBase, t.opt.ForceImages
	m.Hash = func() string { return hashOf(t, g.Path) }
	return m
}

// special are the folders of files that differ between processes, or are not program files.
var special = []string{"/proc/", "/dev/", "/sys/"}

// Reasons why files in special are not opened.
var (
	errProc   = errors.New("the path in /proc leads to another file on this machine; --image NAME=FILE names the right one")
	errDevice = errors.New("not opened: the path is in /proc, /dev or /sys, or a link into them; --image NAME=FILE names another file")
)

// imageAt returns the file at a path in the log, as translated by PrefixMap and Sysroot.
func (t *tracer) imageAt(name string) *judge.Image {
	clean := path.Clean(name)
	place := prefixmap.Maps(t.opt.PrefixMap).Place(name, t.opt.Sysroot)
	switch there := path.Clean(place); {
	case isSpecial(clean):
		if !strings.HasSuffix(there, clean) { // PrefixMap or Sysroot translates the path
			break
		}
		if strings.HasPrefix(clean, "/proc/") || strings.HasPrefix(clean, "/dev/fd/") {
			return &judge.Image{Path: name, Err: errProc}
		}
		return &judge.Image{Path: name, Err: errDevice}
	case t.opt.NoPaths, isSpecial(there): // for example --sysroot=/proc/PID/root
	case leadsToSpecial(there):
		return &judge.Image{Path: name, Err: errDevice}
	}
	m := imageOf(t.files.objects.Named(name))
	if m.Err == nil && !m.ID.IsZero() {
		m.Debug = func(do judge.Examination) {
			module := t.locator.module(cacheModule{id: m.ID, name: name})
			if _, _, err := t.f.askLayout(module); err == nil {
				t.f.examine(module, do)
			}
		}
	}
	m.Younger = m.Err == nil && path.Clean(place) == clean && !t.logged.IsZero() && changedAt(clean).After(t.logged)
	return m
}

func isSpecial(clean string) bool {
	return slices.ContainsFunc(special, func(folder string) bool { return strings.HasPrefix(clean, folder) })
}

const maxLinks = 40 // symbolic links that Linux follows in one path

// leadsToSpecial reports whether a clean path is in a folder of special, or leads into or through
// one by symbolic links.
func leadsToSpecial(clean string) bool {
	if !strings.HasPrefix(clean, "/") {
		return false
	}
	at, rest, links := "", strings.Split(clean, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		next := path.Join("/", at, part) // also correct for "..", since at has no links
		if isSpecial(next + "/") {
			return true
		}
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return false // the system does not open a path with more links
		}
		if strings.HasPrefix(target, "/") {
			at = ""
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return false
}

// imageOf returns o as the file of a module.
func imageOf(o *report.Object) *judge.Image {
	m := &judge.Image{Path: o.Path, ID: o.ID, State: o.State, File: o.Image, Err: o.Err}
	if o.Err == nil {
		m.Segments, m.Fixed = o.Image.Segments(), o.Fixed
	}
	return m
}

// imageByID returns the file of a module with a known build ID, wherever the symbolizer finds it.
func (t *tracer) imageByID(f *dialect.Frame) *judge.Image {
	if strings.HasPrefix(f.Module, "/") && !f.Deleted {
		if m := t.imageAt(f.Module); m.Err == nil && m.ID == f.ID {
			return m // unlike a debug file it has code, in which signal trampolines can be found
		}
	}
	m := t.locator.module(cacheModule{id: f.ID, name: f.Module})
	segments, fixed, err := t.f.askLayout(m)
	return &judge.Image{
		Path: f.Module, ID: f.ID, Err: err, Segments: segments, Fixed: fixed,
		Visit: func(do judge.Examination) { t.f.examine(m, do) },
	}
}

// isFile reports whether this machine has a regular file at a path in the log.
func isFile(t *tracer, path string) bool {
	t.files.looked-- // counted as if Objects had examined it
	info, err := os.Stat(prefixmap.Maps(t.opt.PrefixMap).Place(path, t.opt.Sysroot))
	return err == nil && info.Mode().IsRegular()
}
