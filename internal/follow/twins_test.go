//go:build unix

package follow

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// twin replaces path.1 by the archive path.2.gz, like a program that shifts the names before it
// compresses.
func twin(t *testing.T, path string, keepsTime bool) {
	t.Helper()
	compress(t, path+".1", keepsTime)
	rename(t, path+".1.gz", path+".2.gz")
}

// The lines of a new file beside its archive must be read once, even if the file is removed during
// the search.
func TestNewFilesBesideTheirArchivesAreReadOnce(t *testing.T) {
	for _, rotation := range []string{"renamed", "copied"} {
		for _, keepsTime := range []bool{true, false} {
			for _, removed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/keepsTime=%v/removed=%v", rotation, keepsTime, removed), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "app.log")
					armed := false
					x := newStepper(t, path, Options{Unpack: func(r io.Reader) (io.Reader, func(), error) {
						if armed {
							armed = false
							os.Remove(path + ".1")
						}
						return unpackGzip(r)
					}})
					d := &day{t: t, path: path}
					d.write(3)
					x.read(d.all.String())
					if rotation == "renamed" {
						rename(t, path, path+".3")
						d.write(20)
						rename(t, path, path+".1")
					} else {
						d.write(20)
						copyTruncate(t, path, path+".1")
						x.read(d.all.String())
						d.write(20)
						copyTruncate(t, path, path+".0")
						rename(t, path+".1", path+".3")
						rename(t, path+".0", path+".1")
					}
					if err := os.Link(path+".1", path+".kept"); err != nil {
						t.Fatal(err)
					}
					twin(t, path, keepsTime)
					rename(t, path+".kept", path+".1")
					d.write(4)
					armed = removed
					x.read(d.all.String())
					if armed {
						t.Error("no archive was unpacked")
					}
					os.Remove(path + ".1")
					shift(t, path, 3)
					d.write(2)
					x.read(d.all.String())
					x.expectMessages(t, "")
				})
			}
		}
	}
}
