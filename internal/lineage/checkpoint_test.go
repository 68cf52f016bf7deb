package lineage

import (
	"testing"
	"time"
)

// A run that ends before it lists the files must keep the files of the last checkpoint, and add the
// archives left out since.
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
