package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// file is a file of an archive or a layer.
type file struct {
	name string // slash-separated, relative
	mode int64
	data []byte
	link string // target of a symbolic link, or ""
}

// archives writes an archive for each target, with the commands, their pages and licenses.
func (r *material) archives() error {
	for i := 0; i < len(r.products); {
		target := r.products[i]
		top := fmt.Sprintf("symfilter_%s_%s_%s", r.plain(), target.os, target.arch)
		license, err := os.ReadFile(filepath.Join(r.checkout, "LICENSE"))
		if err != nil {
			return err
		}
		all := []file{{name: "LICENSE", mode: 0o644, data: license}, {name: "third-party-licenses", mode: 0o644, data: r.licenses[target.target()]}}
		var commands []string
		for ; i < len(r.products) && r.products[i].os == target.os && r.products[i].arch == target.arch; i++ {
			data, err := os.ReadFile(r.products[i].path)
			if err != nil {
				return err
			}
			all = append(all, file{name: r.products[i].name(), mode: 0o755, data: data})
			commands = append(commands, r.products[i].command)
		}
		for _, page := range r.pages {
			of, _, _ := strings.Cut(strings.TrimPrefix(path.Base(page.name), "_"), ".")
			if slices.Contains(commands, of) {
				all = append(all, page)
			}
		}
		for i := range all {
			all[i].name = top + "/" + all[i].name
		}
		data, err := tarOf(all, r.date)
		if err == nil {
			data, err = zipped(data, gzip.DefaultCompression)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(r.output, top+".tar.gz"), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tarOf returns a tar archive of the files, sorted by name. The folders of a file precede it. All
// entries belong to root.
func tarOf(all []file, date time.Time) ([]byte, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b file) int { return strings.Compare(a.name, b.name) })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := make(map[string]bool)
	for _, f := range all {
		for i, c := range f.name {
			if dir := f.name[:i]; c == '/' && !made[dir] {
				made[dir] = true
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: date, Format: tar.FormatUSTAR}); err != nil {
					return nil, err
				}
			}
		}
		h := tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: date, Format: tar.FormatUSTAR}
		if f.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// zipped compresses data by gzip, without a name and a time. gzip.BestCompression, which lintian
// requires for pages, takes ten times as long and saves 1.4 % of a program.
func zipped(data []byte, level int) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	w.ModTime = time.Unix(0, 0) // written as 0, which means no time; the zero Time is not written as 0
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
