package lineage

import (
	"testing"
	"time"
)

// The run ends before it has listed the files. Its checkpoint must list the files of the last
// checkpoint, and the archives left out since.
func TestArchivesThatAreLeftOutAtTheBeginningAreListed(t *testing.T) {
	listed, left := File{ID: ID{Ino: 1}, ModTime: time.Unix(1, 0)}, File{ID: ID{Ino: 2}, ModTime: time.Unix(2, 0)}
	l := NewLog("app.log", NewRecords())
	l.Unpacks = true
	l.savedBeside, l.listsArchives = encodeFingerprints([]string{listed.fingerprint()}), true
	l.LeaveOut(listed)
	l.LeaveOut(left)
	beside, archives := l.knownFiles(nil)
	if want := encodeFingerprints([]string{listed.fingerprint(), left.fingerprint()}); !archives || *beside != *want {
		t.Errorf("got %s, %v, want %s, true", *beside, archives, *want)
	}
}
