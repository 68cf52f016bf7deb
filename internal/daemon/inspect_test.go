package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilesAndFoldersAreInspected(t *testing.T) {
	dir := t.TempDir()
	files, _ := certificate(t, dir, "own")
	certificate, key := files.Certificate, files.Key
	for name, text := range map[string]string{"text": "no certificate\n", "logs/a.log": "a line\n", "ids/.build-id/ab/cd.debug": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair := "tls: {certificate: " + certificate + ", key: " + key
	for _, tt := range []struct{ name, before, in, out, notes, faults string }{
		{name: "good", before: "state: DIR/state", in: "files: [DIR/logs/*.log]", out: "file: DIR/logs/out"},
		{name: "certificates", in: "listen: 'tcp:127.0.0.1:1', " + pair + ", client_ca: " + certificate + "}", out: "stdout: text"},
		{name: "no authority", in: "listen: 'tcp:127.0.0.1:1', " + pair + ", client_ca: DIR/text}", out: "stdout: text", faults: "pipelines.app.input.tls.client_ca: DIR/text contains no PEM certificate"},
		{name: "halves exchanged", in: "listen: 'tcp:127.0.0.1:1', tls: {certificate: " + key + ", key: " + certificate + "}", out: "stdout: text",
			faults: "pipelines.app.input.tls: tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched: certificate and key must be PEM files of one pair"},
		{name: "folder of an output", in: "stdin: true", out: "file: DIR/none/out", faults: "pipelines.app.output.file: the folder DIR/none does not exist: create it"},
		{name: "folder of peers", in: "listen: 'unix:DIR/a'", out: "file: 'DIR/none/{peer}.log'", faults: "pipelines.app.output.file: the folder DIR/none does not exist: create it"},
		{name: "output that is a folder", in: "stdin: true", out: "file: DIR/logs", faults: "pipelines.app.output.file: DIR/logs is a folder: append the name of a file"},
		{name: "state that is a file", before: "state: DIR/text", in: "stdin: true", out: "stdout: text", faults: "state: DIR/text is not a folder: name a folder"},
		{name: "no debug files", before: "symbols: {symbol_paths: [DIR/none]}", in: "stdin: true", out: "stdout: text", notes: "symbols.symbol_paths: DIR/none does not exist"},
		{name: "programs without a tree", before: "symbols: {debug_file_directories: [DIR/logs], symbol_paths: [DIR/logs]}", in: "stdin: true", out: "stdout: text",
			notes: "symbols.debug_file_directories: DIR/logs has no .build-id folder; if it holds programs or debug files, list it in symbol_paths instead"},
		{name: "tree", before: "symbols: {build_id_directories: [DIR/ids/.build-id], debug_file_directories: [DIR/ids]}", in: "stdin: true", out: "stdout: text"},
		{name: "folder of a socket", in: "listen: 'unix:DIR/none/a'", out: "stdout: text", notes: "pipelines.app.input.listen: the folder DIR/none does not exist: create it"},
		{name: "no state", in: "files: [DIR/logs/*.log], start_at: end", out: "stdout: text", notes: "pipelines.app.input.files: state is not set, so no checkpoint is kept: a restart reads files from their end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			notes, faults := configuration(t, dir, tt.before+"\n"+pipe(tt.in, tt.out)).Inspect()
			here := strings.NewReplacer("DIR", dir)
			if diff := cmp.Diff(here.Replace(tt.notes), strings.Join(notes, "\n")); diff != "" {
				t.Errorf("notes: %s", diff)
			}
			if diff := cmp.Diff(here.Replace(tt.faults), faults.Error()); diff != "" {
				t.Errorf("faults: %s", diff)
			}
		})
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 5 {
		t.Errorf("files after it: %q, %v", names, err)
	}
}
