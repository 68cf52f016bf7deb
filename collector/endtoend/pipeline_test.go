//go:build linux

package endtoend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/testenv"
)

// agent returns the configuration of a Collector that reads files and sends OTLP. receiver and
// options are further lines of the sections file_log and symfilter; exporter is the section of the
// exporter.
func agent(logs, state, receiver, options, exporter string) string {
	storage := ""
	if state != "" {
		storage = "    storage: file_storage\n"
	}
	config := `receivers:
  file_log:
    include:
      - ` + logs + `
    include_file_path: true
    include_file_name: false
    start_at: beginning
    preserve_leading_whitespaces: true
    preserve_trailing_whitespaces: true
    poll_interval: 50ms
` + storage + receiver + `processors:
  symfilter:
    patience:
      local: 20s
` + storage + options + `    symbols:
      debug_file_directories:
        - ` + checkout + `/testdata/debug
` + exporter + `service:
  pipelines:
    logs:
      receivers:
        - file_log
      processors:
        - symfilter
      exporters:
        - out
`
	config = strings.ReplaceAll(config, "        - out\n", "        - "+regexp.MustCompile(`(?m)^  (\w+):$`).FindStringSubmatch(exporter)[1]+"\n")
	if state == "" {
		return config
	}
	return "extensions:\n  file_storage:\n    directory: " + state + "\n" + strings.Replace(config, "service:\n", "service:\n  extensions:\n    - file_storage\n", 1)
}

func toOTLP(address string) string {
	return "exporters:\n  otlp_grpc:\n    endpoint: " + address + "\n    tls:\n      insecure: true\n    sending_queue:\n      num_consumers: 1\n      block_on_overflow: true\n"
}

func toFile(name string) string {
	return "exporters:\n  file:\n    path: " + name + "\n    append: true\n    flush_interval: 50ms\n"
}

// backend is the configuration of a second Collector, which writes the records that it receives to
// a file.
func backend(listen, out string) string {
	return "receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: " + listen + "\n" + toFile(out) +
		"service:\n  pipelines:\n    logs:\n      receivers:\n        - otlp\n      exporters:\n        - file\n"
}

// One Collector reads and resolves logs with markup and all dialects. The text that a second
// Collector receives from it must equal the output of the command.
func TestTextIsThatOfTheCommand(t *testing.T) {
	dir := t.TempDir()
	names := []string{"testdata/crash.log", "testdata/asan.log", "testdata/clang-crash.log"}
	dialects, err := filepath.Glob(filepath.Join(checkout, "internal", "dialect", "testdata", "*.txtar"))
	if err != nil || len(dialects) < 10 {
		t.Fatal(err, dialects)
	}
	for _, d := range dialects {
		names = append(names, "internal/dialect/testdata/"+filepath.Base(d))
	}
	want := make(map[string]string)
	lines := 0
	for i, name := range names {
		file := filepath.Join(dir, "logs", filepath.Base(name)+".log")
		var text []string
		for _, line := range linesOf(t, name) {
			if strings.TrimSpace(line) != "" { // file_log drops empty lines
				text = append(text, strings.TrimSuffix(line, "\r"))
			}
		}
		// each file begins with another line: file_log treats files with the same beginning as one
		// file
		appendTo(t, file, append([]string{fmt.Sprint("log ", i)}, text...)...)
		want[file] = commandOn(t, file)
		lines += len(text) + 1
	}
	address, out := testenv.FreeAddress(t), filepath.Join(dir, "out.json")
	second := startCollector(t, backend(address, out))
	startCollector(t, agent(filepath.Join(dir, "logs", "*.log"), "", "", "", toOTLP(address)))
	eventually(t, "all records have come", func() bool { return len(recordsIn(t, out)) >= lines }, second.log)
	got := textsOf(recordsIn(t, out))
	for file, text := range want {
		if diff := cmp.Diff(text, got[file]); diff != "" {
			t.Errorf("%s (-command +Collector):\n%s", filepath.Base(file), diff)
		}
	}
	if crash := got[filepath.Join(dir, "logs", "crash.log.log")]; !strings.Contains(crash, "ledger.cc:27:16") {
		t.Errorf("nothing is resolved:\n%s", crash)
	}
}

// A Collector is killed after the maps of 60 processes, and started again before their frames. With
// a storage, all frames must have names. Without a storage, no frame can have a name.
func TestKilledBetweenMapsAndFrames(t *testing.T) {
	const streams = 60
	lines := linesOf(t, "testdata/crash.log")
	head, frames := lines[4:32], lines[33:38]
	for name, want := range map[string]int{"with a storage": streams, "without": 0} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			state, storage := filepath.Join(dir, "state"), ""
			if err := os.Mkdir(state, 0o700); err != nil {
				t.Fatal(err)
			}
			if want == 0 { // only the offsets of file_log are stored
				storage = "without"
			}
			out := filepath.Join(dir, "out.json")
			config := agent(filepath.Join(dir, "logs", "*.log"), state, "", "", toFile(out))
			if storage != "" {
				config = strings.Replace(config, "      local: 20s\n    storage: file_storage\n", "      local: 20s\n", 1)
			}
			each := func(lines []string, first bool) {
				for i := range streams {
					text := lines
					if first {
						text = append([]string{fmt.Sprint("process ", i)}, lines...)
					}
					appendTo(t, filepath.Join(dir, "logs", fmt.Sprintf("%d.log", i)), text...)
				}
			}
			each(head, true)
			first := startCollector(t, config)
			eventually(t, "all maps have come", func() bool { return len(recordsIn(t, out)) >= streams*(len(head)+1) }, first.log)
			first.kill()
			each(frames, false)
			second := startCollector(t, config)
			last := regexp.MustCompile(`#4 .*0x0*7ffff7df324`)
			eventually(t, "all frames have come", func() bool {
				seen := make(map[string]bool)
				for _, r := range recordsIn(t, out) {
					if last.MatchString(r.body) {
						seen[r.file] = true
					}
				}
				return len(seen) == streams
			}, second.log)
			named := make(map[string]bool)
			for _, r := range recordsIn(t, out) {
				if strings.Contains(r.body, "ledger.cc:27:16") {
					named[r.file] = true
				}
			}
			if len(named) != want {
				t.Errorf("%d of %d processes have names, want %d", len(named), streams, want)
			}
		})
	}
}

// Eight pods, each with a restarted container, have logs in the CRI format, with long lines in
// parts. The text of these logs must equal the output of the command for the same files.
func TestLogsOfContainers(t *testing.T) {
	dir := t.TempDir()
	lines := linesOf(t, "testdata/crash.log")
	const pods, restarts = 8, 2
	want := make(map[string]string)
	n := 0
	for pod := range pods {
		for restart := range restarts {
			file := filepath.Join(dir, "pods", fmt.Sprintf("shop_pod-%d_00000000-0000-0000-0000-00000000000%d", pod, pod), "app", fmt.Sprintf("%d.log", restart))
			var all []string
			for i, line := range append([]string{fmt.Sprint("pod ", pod, " restart ", restart)}, lines...) {
				stamp := fmt.Sprintf("2026-03-01T10:00:%02d.%09dZ stdout ", i, pod)
				if half := len(line) / 2; i%3 == 2 {
					all = append(all, stamp+"P "+line[:half])
					line = line[half:]
				}
				all = append(all, stamp+"F "+line)
				n++
			}
			appendTo(t, file, all...)
			want[file] = messagesOf(t, commandOn(t, file))
		}
	}
	out := filepath.Join(dir, "out.json")
	c := startCollector(t, agent(filepath.Join(dir, "pods", "*", "*", "*.log"), "", "    operators:\n      - type: container\n", "", toFile(out)))
	eventually(t, "all records have come", func() bool { return len(recordsIn(t, out)) >= n }, c.log)
	got := textsOf(recordsIn(t, out))
	for file, text := range want {
		if diff := cmp.Diff(text, got[file]); diff != "" {
			t.Errorf("%s (-command +Collector):\n%s", file, diff)
		}
		if !strings.Contains(text, "ledger.cc:27:16") {
			t.Errorf("%s: the command resolves nothing:\n%s", file, text)
		}
	}
}

// commandOn returns the output of the command for a file, with the options of the processor.
func commandOn(t *testing.T, file string) string {
	t.Helper()
	cmd := exec.Command(symfilter, "--module-lines=raw", "--no-paths", "--no-default-debug-directories", "--debug-file-directory", filepath.Join(checkout, "testdata", "debug"), file)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() > 3) {
		t.Fatal(err)
	}
	return strings.ToValidUTF8(string(out), "\uFFFD")
}

// messagesOf returns the messages of a log in the CRI format, one a line, with their parts joined.
func messagesOf(t *testing.T, log string) string {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(log) {
		field := strings.SplitN(line, " ", 4)
		if len(field) != 4 || field[2] != "F" && field[2] != "P" {
			t.Fatalf("%q is not of CRI", line)
		}
		if field[2] == "P" {
			field[3] = strings.TrimSuffix(field[3], "\n")
		}
		all.WriteString(field[3])
	}
	return all.String()
}
