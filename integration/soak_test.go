//go:build linux

package integration

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Ordinary, broken and marked-up input through one process for as long as TEST_SOAK says (make soak): its memory stays
// where it was when everything had been seen once.
func TestSoak(t *testing.T) {
	asked := os.Getenv("TEST_SOAK")
	if asked == "" {
		t.Skip("make soak runs it")
	}
	duration, err := time.ParseDuration(asked)
	if err != nil {
		t.Fatal(err)
	}
	var input []byte
	for _, name := range []string{"crash.log", "clang-crash.log"} {
		log, err := os.ReadFile(filepath.Join("..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		input = append(input, log...)
	}
	input = append(append(input, oddities(1<<20)...), '\n')

	p := start(t, "--debug-file-directory="+filepath.Join("..", "testdata", "debug"))
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, p.out)
		read <- err
	}()
	const margin = 16 << 20 // bytes: the collector's own ups and downs
	var begin int64
	rounds := 0
	for end := time.Now().Add(duration); time.Now().Before(end); rounds++ {
		if _, err := io.Copy(p.in, bytes.NewReader(input)); err != nil {
			t.Fatalf("%v\n%s", err, p.stderr.Bytes())
		}
		if rounds == 20 {
			begin = p.peak(t)
		}
	}
	end := p.peak(t)
	p.in.Close()
	if err := <-read; err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.stderr.Bytes())
	}
	t.Logf("%d rounds of %d bytes, peak memory %d KiB, %d KiB at the end", rounds, len(input), begin>>10, end>>10)
	if rounds <= 20 {
		t.Fatalf("only %d rounds: ask for a longer time", rounds)
	}
	if end > begin+margin {
		t.Errorf("memory grew from %d to %d KiB", begin>>10, end>>10)
	}
}
