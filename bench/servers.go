//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	served    = "served"               // folder with the files of the libraries
	libraries = 12                     // number of libraries in a log
	delay     = 100 * time.Millisecond // before each answer of the server
)

// serve starts a debuginfod server for the folder served, and returns its URL. The server sends
// each answer after delay, and runs until the process ends.
func (b *binaries) serve() (string, error) {
	files := map[string]string{}
	all, err := filepath.Glob(filepath.Join(b.tree(served), "*.so.debug"))
	if err != nil {
		return "", err
	}
	for _, file := range all {
		id, _, err := library(file)
		if err != nil {
			return "", err
		}
		files["/buildid/"+id+"/debuginfo"] = file
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(delay)
		if file, ok := files[r.URL.Path]; ok {
			http.ServeFile(w, r, file)
			return
		}
		http.NotFound(w, r)
	}))
	return "http://" + l.Addr().String(), nil
}

// library returns the build ID of a library, and the address of the function work in it.
func library(file string) (id string, work uint64, err error) {
	if id, err = buildID(file); err != nil {
		return "", 0, err
	}
	f, err := elf.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return "", 0, err
	}
	for _, s := range symbols {
		if s.Name == "work" {
			return id, s.Value, nil
		}
	}
	return "", 0, fmt.Errorf("%s has no function work", file)
}

// librariesLog builds the libraries and writes a log with one frame in each.
func librariesLog(b *binaries, path string) error {
	dir := b.tree(served)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var log bytes.Buffer
	var frames strings.Builder
	for i := range libraries {
		cmd := exec.Command("sh", "-ec", `gcc -g -O1 -fPIC -shared -Wl,--build-id -x c - -o lib.so && objcopy --only-keep-debug lib.so lib$0.so.debug && rm lib.so`, fmt.Sprint(i))
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(fmt.Sprintf("int work(int n) {\n  return n * %d;\n}\n", i+3))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("gcc: %w\n%s", err, out)
		}
		id, work, err := library(filepath.Join(dir, fmt.Sprintf("lib%d.so.debug", i)))
		if err != nil {
			return err
		}
		base := uint64(i+1) << 32
		fmt.Fprintf(&log, "{{{module:%d:lib%d.so:elf:%s}}}\n{{{mmap:%#x:0x10000:load:%d:rx:0x0}}}\n", i, i, id, base, i)
		fmt.Fprintf(&frames, "{{{bt:%d:%#x:pc}}}\n", i, base+work)
	}
	log.WriteString(frames.String())
	return os.WriteFile(path, log.Bytes(), 0o600)
}
