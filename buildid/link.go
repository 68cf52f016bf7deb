package buildid

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A link is the content of .gnu_debuglink in a program: the name and checksum of its debug file.
type link struct {
	Name string // name of the file, without a folder; untrusted
	CRC  uint32 // checksum of all bytes of the file: the CRC-32 of IEEE 802.3
}

// findLink returns the debug file of the program at the path near. Like GDB, it looks in the
// program's folder, in .debug in that folder, and at the folder's path below each of dirs. It looks
// in the real folder, too, if symbolic links lead there. The file must have the link's checksum. It
// must also have the build ID id, unless id is zero or the file has none.
//
// Names that lead out of these folders are rejected. If note is not nil, it is called for each
// place without the file. The error wraps [fs.ErrNotExist] if no place has the file.
func findLink(ctx context.Context, l link, near string, dirs []string, id ID, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "debug link", query: Query{ID: id, Kind: Debug, Name: l.Name}, note: note}
	if said := notBase(l.Name); said != "" {
		s.noteMiss(l.Name, said)
		return nil, s.miss()
	}
	places := linkPlaces(l.Name, near, dirs)
	if len(places) == 0 {
		s.noteMiss(l.Name, "the program with the debug link has no path, so its folder is unknown")
	}
	for _, place := range places {
		if f := s.tryLink(place, l.CRC, near); f != nil {
			return f, nil
		}
	}
	return nil, s.miss()
}

// notBase returns the reason why name is not a file name without a folder, or "".
func notBase(name string) string {
	switch {
	case name == "":
		return "an empty name"
	case len(name) > maxFileName:
		return fmt.Sprintf("a name of %d bytes is too long for a file", len(name))
	case strings.ContainsRune(name, 0):
		return "a name with a NUL byte is not a file name"
	case strings.ContainsAny(name, `/\`) || name != filepath.Base(name) || !filepath.IsLocal(name) || name == ".":
		return "a debug link must be a file name without a folder"
	}
	return ""
}

// linkPlaces returns the possible paths of a debug file. near is the path of the program.
func linkPlaces(name, near string, dirs []string) []string {
	var places []string
	for _, folder := range foldersOf(near) {
		places = append(places, filepath.Join(folder, name), filepath.Join(folder, ".debug", name))
		for _, dir := range dirs {
			places = append(places, filepath.Join(dir, folder[len(filepath.VolumeName(folder)):], name))
		}
	}
	return places
}

// foldersOf returns the folder of the path near, and the real folder of its file if links lead
// elsewhere.
func foldersOf(near string) []string {
	if near == "" {
		return nil
	}
	abs, err := filepath.Abs(near)
	if err != nil {
		return nil
	}
	folders := []string{filepath.Dir(abs)}
	if real, err := filepath.EvalSymlinks(abs); err == nil && !slices.Contains(folders, filepath.Dir(real)) {
		folders = append(folders, filepath.Dir(real))
	}
	return folders
}

// tryLink opens the file at path if it has the checksum crc, and either the ID of the query or no
// ID. Otherwise it notes the reason and returns nil.
func (s *search) tryLink(path string, crc uint32, near string) *File {
	if s.ctx.Err() != nil {
		return nil
	}
	f, err := openLinked(path, s.where, s.query.ID)
	if err == nil {
		err = s.checkSum(f, crc, near)
	}
	if err == nil {
		return f
	}
	if f != nil {
		f.Close()
	}
	s.failed(path, err)
	return nil
}

// openLinked is like open, but accepts any ID if id is zero.
func openLinked(path, where string, id ID) (*File, error) {
	if !id.IsZero() {
		return open(path, where, id, 0)
	}
	f, err := OpenRegular(path, where)
	if err != nil {
		return nil, err
	}
	if _, err := Read(f, f.size); err != nil && !errors.Is(err, ErrNoID) {
		f.Close()
		return nil, err
	}
	f.unverified = true
	return f, nil
}

// checkSum fails if f does not have the checksum crc. It also fails, without reading f, if f is the
// program at near: a hostile link may name the program.
func (s *search) checkSum(f *File, crc uint32, near string) error {
	if program, err := os.Stat(near); err == nil {
		if info, err := f.os.Stat(); err == nil && os.SameFile(program, info) {
			return errors.New("the program itself, not its debug file")
		}
	}
	got, err := sum(s.ctx, f, f.size)
	if err == nil && got != crc {
		err = fmt.Errorf("the file's checksum is %08x, but the debug link has %08x: the file is from another build", got, crc)
	}
	if err == nil {
		f.unverified = false // the checksum is stronger evidence than a note
	}
	return err
}

func sum(ctx context.Context, r io.ReaderAt, size int64) (uint32, error) {
	if size > maxSummed {
		return 0, fmt.Errorf("too large for a checksum: the file has %d bytes, and the limit is %d", size, int64(maxSummed))
	}
	buf := make([]byte, min(size, sumChunk))
	crc := uint32(0)
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := r.ReadAt(buf[:min(size-off, sumChunk)], off)
		crc = crc32.Update(crc, crc32.IEEETable, buf[:n])
		off += int64(n)
		if err != nil && off < size {
			return 0, err
		}
	}
	return crc, nil
}

// findAlt returns the supplementary file for the debug file at near. id and name are from
// .gnu_debugaltlink; name is untrusted. It first tries name as a path, relative to near's folder,
// then a file of that name in .dwz below each of dirs. Last, it tries the path of id in each of
// dirs, as in a [Tree]. The note of the file must hold id.
//
// If note is not nil, it is called for each place without the file. The error wraps
// [fs.ErrNotExist] if no place has the file.
func findAlt(ctx context.Context, id ID, name, near string, dirs []string, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "supplementary file", query: Query{ID: id, Kind: Alt, Name: name}, note: note}
	if id.IsZero() {
		s.noteMiss(name, "without a build ID no file can be checked")
		return nil, s.miss()
	}
	var places []string
	if said := notPath(name); said != "" {
		s.noteMiss(name[:min(len(name), maxFileName)], said)
	} else {
		places = altPlaces(name, near, dirs)
	}
	if id.Len() >= minPathID {
		for _, dir := range dirs {
			for _, place := range NewTree(dir).places(id) {
				places = append(places, place+".debug")
			}
		}
	}
	for i, place := range places {
		if slices.Contains(places[:i], place) {
			continue
		}
		if f := s.tryVerified(place); f != nil {
			return f, nil
		}
	}
	return nil, s.miss()
}

// notPath returns the reason why name is not a usable path, or "".
func notPath(name string) string {
	switch {
	case name == "":
		return "an empty name"
	case len(name) > maxPath:
		return fmt.Sprintf("a name of %d bytes is too long for a path", len(name))
	case strings.ContainsRune(name, 0):
		return "a name with a NUL byte is not a path"
	case elsewhere(filepath.FromSlash(name)):
		return "a path to another machine or a device is not opened"
	}
	return ""
}

// altPlaces returns the possible paths of a supplementary file. near is the path of the debug file.
func altPlaces(name, near string, dirs []string) []string {
	name = filepath.FromSlash(name)
	var places []string
	if filepath.IsAbs(name) {
		places = append(places, name)
	} else {
		// the real folder first: dwz writes the path relative to it
		for _, folder := range slices.Backward(foldersOf(near)) {
			places = append(places, filepath.Join(folder, name))
		}
	}
	// Distributions have a folder for each architecture below .dwz.
	const dwz = ".dwz" + string(filepath.Separator)
	base := filepath.Base(name)
	below := base
	if i := strings.LastIndex(name, dwz); i >= 0 {
		below = filepath.Clean(name[i+len(dwz):])
	}
	for _, dir := range dirs {
		for _, tail := range []string{below, base} {
			if filepath.IsLocal(tail) {
				places = append(places, filepath.Join(dir, ".dwz", tail))
			}
		}
	}
	return places
}
