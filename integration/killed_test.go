//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/buildid"
)

// If symfilter is killed while a server sends a file, its caches must hold only complete files.
func TestKilledWhileAFileComes(t *testing.T) {
	kills := 8
	if long() {
		kills = 60
	}
	f, err := buildid.OpenRegular(command, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := buildid.Read(f, f.Size())
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(command)
	if err != nil {
		t.Fatal(err)
	}
	var midway atomic.Int64
	sent := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		for rest := body; len(rest) > 0; rest = rest[min(len(rest), 256<<10):] {
			if _, err := w.Write(rest[:min(len(rest), 256<<10)]); err != nil {
				midway.Add(1)
				return
			}
			w.(http.Flusher).Flush()
			if len(rest) == len(body) {
				sent <- struct{}{}
			}
			select {
			case <-r.Context().Done():
				midway.Add(1)
				return
			case <-time.After(time.Millisecond):
			}
		}
	}))
	defer server.Close()

	dir := t.TempDir()
	log := fmt.Sprintf("{{{module:0:m:elf:%s}}}{{{mmap:0x1000:0x100000:load:0:rx:0}}}\n{{{bt:0:0x2000}}}\n", id)
	for range kills {
		cmd := exec.Command(command, "--debug-file-directory", t.TempDir())
		cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+server.URL, "DEBUGINFOD_CACHE_PATH="+filepath.Join(dir, "fetched"), "XDG_CACHE_HOME="+dir)
		cmd.Stdin = strings.NewReader(log)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-sent:
		case <-time.After(time.Minute):
			cmd.Process.Kill()
			t.Fatal("the server is not asked")
		}
		time.Sleep(rand.N(50 * time.Millisecond))
		cmd.Process.Kill()
		cmd.Wait()
		// a file that was received whole: the next run must fetch it again
		os.RemoveAll(filepath.Join(dir, "fetched", id.String(), "debuginfo"))
	}
	server.CloseClientConnections()
	if midway.Load() == 0 {
		t.Errorf("none of %d kills came while the file did", kills)
	}
	tmp, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err != nil {
		t.Skip("the file system has no files without a name: ", err)
	}
	tmp.Close()
	err = filepath.WalkDir(filepath.Join(dir, "fetched"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(path, id.String()) {
			return err
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, body) {
			t.Errorf("left behind: %s, %d of %d bytes, %v", path, len(got), len(body), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
