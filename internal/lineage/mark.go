package lineage

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// A Mark identifies a file and an offset in the file, for a checkpoint. It has hashes of the file's
// first bytes and of the bytes before the offset, and never log text.
type Mark struct {
	Dev        uint64    `json:"dev"`
	Ino        uint64    `json:"ino"`
	Head       string    `json:"head"` // hash of the first bytes
	Len        int       `json:"len"`  // number of bytes hashed for Head
	Off        int64     `json:"off"`
	RecentHash string    `json:"before"` // hash of up to RecentSize bytes before Off
	Time       time.Time `json:"time"`   // last change of the file
}

// MarkAt returns the mark of the offset off in the file with the state s. recent are the bytes
// before off.
func MarkAt(s State, off int64, recent []byte) Mark {
	return Mark{s.ID.Dev, s.ID.Ino, Hash(s.Head), len(s.Head), off, Hash(recent), s.ModTime}
}

// Hash returns a hash of b, which identifies bytes of a log without disclosing them.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

// ID returns the file's ID at the time of the mark.
func (m Mark) ID() ID { return ID{m.Dev, m.Ino} }

// sameBeginning reports whether the file with the state s begins like the file of m.
func (m Mark) sameBeginning(s State) bool {
	return m.Len >= 0 && len(s.Head) >= m.Len && m.Off >= 0 && Hash(s.Head[:m.Len]) == m.Head
}

// holds reports whether c has all bytes up to m.Off of the file of m, judged by the hashes in m.
func (m Mark) holds(c Content) bool {
	_, held := m.stepIn(c)
	return held
}

// stepIn returns the step that continues in c at m.Off. held reports whether c has all bytes of the
// file of m up to m.Off: see holds.
func (m Mark) stepIn(c Content) (s Step, held bool) {
	state := c.State()
	if !state.Packed && state.Size < m.Off || !m.sameBeginning(state) {
		return s, false
	}
	s, err := stepAt(c, m.Off)
	return s, err == nil && Hash(s.Recent) == m.RecentHash
}

// isOf reports whether c, which has the inode of m's file, is that file. c must have all bytes up
// to m.Off. If m.Off is 0, any file has these bytes, so c must also be empty.
func (m Mark) isOf(c Content) bool { return m.holds(c) && (m.Off > 0 || c.State().Size == 0) }

// wasArchive reports whether the mark m is from an archive. c is the file found for m, or nil.
// m.Time may then be the time of the compression, which may be later than the changes of younger
// files.
func (m Mark) wasArchive(c Content) bool {
	return c != nil && c.State().Packed && c.State().ID.Ino == m.Ino
}
