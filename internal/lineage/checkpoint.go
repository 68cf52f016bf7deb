package lineage

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// A Place is the reader's position in a file at a checkpoint.
type Place struct {
	Mark
	Size int64 // size of the file; 0 if it was read to its end
}

// An Entry is the part of a checkpoint that lets the next run find the files of one log.
type Entry struct {
	Reading []Place // oldest first
	// the last file of Reading had the log's name, or was to be read before the file with that name
	Current bool
	Read    []Mark // files that must not be read again
	// Beside has the fingerprints of rotated files that must not be read. It is nil in a checkpoint
	// of an earlier version. ListsArchives is set if Beside includes archives.
	Beside        *string
	ListsArchives bool
}

// MaxKnown bounds the files that a checkpoint lists as read. If archives are read, the checkpoint
// also lists up to MaxKnown files that no longer exist. After a burst of rotations, each of the two
// lists may be longer: see MaxBurst.
const MaxKnown = 8

// Entry returns the log's part of a checkpoint, without Reading and Current. held are the open
// files.
func (l *Log) Entry(held []Content) Entry {
	e := Entry{Read: l.read[max(0, len(l.read)-MaxKnown):]}
	e.Beside, e.ListsArchives = l.knownFiles(held)
	if l.Unpacks { // existing files may be compressed before the next run
		e.Read = slices.Concat(l.lastGone(MaxKnown), lastMarks(l.read, MaxKnown, l.LastChange))
	}
	return e
}

// knownFiles returns Beside and ListsArchives for a checkpoint. Before the first listing, it
// returns the last checkpoint's Beside, extended by the files read and the archives left out in
// this run. Without a last Beside, the result is nil.
func (l *Log) knownFiles(held []Content) (beside *string, archives bool) {
	if l.family == nil {
		if l.savedBeside == nil || len(l.read)+len(l.leftOut) == 0 {
			return l.savedBeside, l.listsArchives
		}
		all := Entry{Beside: l.savedBeside}.fingerprints()
		for _, m := range l.read {
			all = append(all, File{ID: ID{Ino: m.Ino}, ModTime: m.Time}.fingerprint())
		}
		for id, at := range l.leftOut {
			all = append(all, File{ID: id, ModTime: at}.fingerprint())
		}
		return encodeFingerprints(all), l.listsArchives
	}
	var all []string
	for _, c := range l.family.Files {
		if at, known := l.records.timeOf(c.ID); known {
			c.ModTime = at
			all = append(all, c.fingerprint())
		}
	}
	for _, c := range l.family.Archives {
		if slices.ContainsFunc(held, func(o Content) bool { return l.archiveOf[o.State().ID].ID == c.ID }) {
			continue // after a kill, the next run may have to continue in this archive
		}
		if l.isLeftOut(c) || l.records.hasRead(c) {
			all = append(all, c.fingerprint())
		}
	}
	return encodeFingerprints(all), l.Unpacks
}

// fingerprintSize is the size of a file's fingerprint in a checkpoint, in bytes.
const fingerprintSize = 6

// fingerprint returns a hash of the inode and last change of f. The hash stays the same until the
// file is written to, even if its device gets another number.
func (f File) fingerprint() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", f.ID.Ino, f.ModTime.UnixNano()))
	return string(sum[:fingerprintSize])
}

// encodeFingerprints encodes fingerprints as the text of Entry.Beside.
func encodeFingerprints(all []string) *string {
	slices.Sort(all)
	text := base64.RawStdEncoding.EncodeToString([]byte(strings.Join(slices.Compact(all), "")))
	return &text
}

func (e Entry) fingerprints() (all []string) {
	if e.Beside != nil {
		prints, _ := base64.RawStdEncoding.DecodeString(*e.Beside)
		for p := range slices.Chunk(prints, fingerprintSize) {
			all = append(all, string(p))
		}
	}
	return all
}
