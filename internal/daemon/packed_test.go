package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// Standard input must be unpacked if it begins like a compressed file. A followed file must be
// unpacked only if it also has the name of a compressed file. Bytes after the compressed data must
// be read as text.
func TestPackedBytesSilenceNoLog(t *testing.T) {
	packed := gzipped("packed\n").String()
	log := strings.Repeat("a line that is not packed\n", 1000)
	for _, test := range []struct {
		name, in, out string
		losses, lost  float64
	}{
		{"app.log", packed + log, packed + log, 0, 0},
		{"app.log.gz", packed + log, "packed\n" + log, 0, 0},
		{"stdin", packed + log, "packed\n" + log, 0, 0},
		{"stdin", packed + packed[:len(packed)-8] + "\x00\x01" + log, "packed\npacked\n" + log, 1, 16},
		// lost bytes are counted when the file is closed
		{"app.log.gz", packed + packed[:len(packed)-8] + "\x00\x01" + log, "packed\npacked\n" + log, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			input := "{files: [DIR/" + test.name + "]}"
			if test.name == "stdin" {
				input = "{stdin: true}"
			} else if err := os.WriteFile(filepath.Join(dir, test.name), []byte(test.in), 0o666); err != nil {
				t.Fatal(err)
			}
			c := configuration(t, dir, "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\n"+
				"pipelines:\n  all: {input: "+input+", output: {file: DIR/out.log}}\n")
			d, _ := started(t, c, Options{Stdin: strings.NewReader(test.in)})
			await(t, filepath.Join(dir, "out.log"), test.out)
			const losses, lost = "input_losses_total{input=all}", "input_lost_bytes_total{input=all}"
			if !testenv.Wait(func() bool { m := metrics(t, d); return m[losses] == test.losses && m[lost] == test.lost }) {
				m := metrics(t, d)
				t.Errorf("%v losses of %v bytes are counted, want %v of %v", m[losses], m[lost], test.losses, test.lost)
			}
		})
	}
}
