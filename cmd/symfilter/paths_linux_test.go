package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// watchOpens returns a function that reports whether any process has opened the file at path since
// the previous call.
func watchOpens(t *testing.T, path string) func() bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip("files cannot be watched here: ", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	return func() (opened bool) {
		buf := make([]byte, 4096)
		for {
			n, err := unix.Read(fd, buf)
			if n <= 0 || err != nil {
				return opened
			}
			opened = true
		}
	}
}

// A log or report must not make symfilter open other files than this table allows, nor any file
// that a flag forbids. SECURITY.md has the same table.
func TestFilesOpenedAtALogsWord(t *testing.T) {
	elf, err := os.ReadFile(filepath.FromSlash("../../symbolize/testdata/arch/x86_64.elf"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, secret := filepath.Join(dir, "prog.so"), filepath.Join(dir, "secret.txt")
	for path, text := range map[string][]byte{program: elf, secret: []byte("canary\n")} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const id = "a8ad899b7ded442f"
	const report = `<?xml version="1.0"?>
<valgrindoutput><protocolversion>4</protocolversion><protocoltool>memcheck</protocoltool><pid>7</pid><ppid>1</ppid><tool>memcheck</tool>
<status><state>RUNNING</state><time>00:00:00:00.1</time></status>
<error><unique>0x0</unique><tid>1</tid><kind>InvalidRead</kind><what>Invalid read of size 4</what><stack>
<frame><ip>0x48533B6</ip><obj>FILE</obj></frame><frame><ip>0x4853376</ip><obj>FILE</obj></frame></stack></error>
</valgrindoutput>
`
	logs := map[string]string{
		"log":                    "{{{module:0:FILE:elf:" + id + "}}}{{{mmap:0x1000:0x5000:load:0:rx:0x1000}}}\n{{{pc:0x1376}}}\n",
		"log without build ID":   "{{{module:0:FILE:elf:}}}{{{mmap:0x1000:0x5000:load:0:rx:0x1000}}}\n{{{pc:0x1376}}}\n",
		"log of another build":   "{{{module:0:FILE:elf:aabbccdd}}}{{{mmap:0x1000:0x5000:load:0:rx:0x1000}}}\n{{{pc:0x1376}}}\n",
		"profile":                "# callgrind format\nevents: Ir\npositions: instr\nob=FILE\nfn=0x1370\n0x1370 1\n",
		"source of a profile":    "# callgrind format\nevents: Ir\nfl=FILE\nfn=f\n1 10\n",
		"rtrace report":          "version=2.2, arch=x86_64, timestamp=2010.1.1 1:1:1, process=/bin/x, pid=1\n: FILE => 0x1000-0x6000\n1. [100.1] malloc(10) = 0x4000\n\t0x1376\n\n",
		"Valgrind's report":      report,
		"name with dots":         "{{{module:0:" + filepath.Join(dir, "x") + "/../prog.so:elf:aabbccdd}}}{{{mmap:0x1000:0x5000:load:0:rx:0x1000}}}\n{{{pc:0x1376}}}\n",
		"heap profile":           "heap profile: 1: 1 [1: 1] @ heapprofile\n1: 1 [1: 1] @ 0x1377\nMAPPED_LIBRARIES:\n00001000-00002000 r-xp 00000000 fe:00 1 FILE\n",
		"relative heap profile":  "heap profile: 1: 1 [1: 1] @ heapprofile\n1: 1 [1: 1] @ 0x1377\nMAPPED_LIBRARIES:\n00001000-00002000 r-xp 00000000 fe:00 1 prog.so\n",
		"relative name":          "{{{module:0:prog.so:elf:" + id + "}}}{{{mmap:0x1000:0x5000:load:0:rx:0x1000}}}\n{{{pc:0x1376}}}\n",
		"relative object":        "# callgrind format\nevents: Ir\npositions: instr\nob=prog.so\nfn=0x1370\n0x1370 1\n",
		"relative rtrace":        "version=2.2, arch=x86_64, timestamp=2010.1.1 1:1:1, process=/bin/x, pid=1\n: prog.so => 0x1000-0x6000\n1. [100.1] malloc(10) = 0x4000\n\t0x1376\n\n",
		"relative backtrace":     "./prog.so(outer+0x6)[0x7f31c2a01376]\n",
		"backtrace from above":   "./x/../../" + filepath.Base(dir) + "/prog.so(outer+0x6)[0x7f31c2a01376]\n",
		"relative of Valgrind's": strings.ReplaceAll(report, "FILE", "prog.so"),
	}
	opened := map[string]func() bool{program: watchOpens(t, program), secret: watchOpens(t, secret)}
	for _, tt := range []struct {
		log, args string
		file      string
		want      bool
	}{
		{"log", "", program, true},
		{"log", "", secret, true}, // closed again, since the build ID differs
		{"log", "--no-paths", program, false},
		{"log without build ID", "", program, false},
		{"log of another build", "", program, true},
		{"log of another build", "--no-paths", program, false},
		{"relative name", "", program, false},
		{"profile", "", program, true},
		{"profile", "--output=json", program, true},
		{"profile", "--no-paths", program, false},
		{"profile", "--no-paths --output=json", program, false},
		{"profile", "--no-paths --output=callgrind", program, false},
		{"profile", "--no-paths --output=markup", program, false},
		{"relative object", "", program, false},
		{"source of a profile", "--input=callgrind", secret, false},
		{"rtrace report", "", program, true},
		{"rtrace report", "--output=rtrace", program, true},
		{"rtrace report", "--no-paths", program, false},
		{"rtrace report", "--no-paths --output=rtrace", program, false},
		{"rtrace report", "--no-paths --output=json", program, false},
		{"relative rtrace", "", program, false},
		{"Valgrind's report", "", program, true},
		{"Valgrind's report", "--no-paths", program, false},
		{"Valgrind's report", "--no-paths --output=json", program, false},
		{"Valgrind's report", "--no-paths --output=markup", program, false},
		{"relative of Valgrind's", "", program, false},
		{"relative backtrace", "", program, true},
		{"relative backtrace", "--no-paths", program, false},
		{"backtrace from above", "", program, false},
		{"heap profile", "profile -", program, true},
		{"heap profile", "profile -", secret, true}, // closed again: not a program
		{"heap profile", "profile - --no-paths", program, false},
		{"heap profile", "profile - --no-paths --output=folded", program, false},
		{"relative heap profile", "profile -", program, false},
		// unlike the command profile, this command prints lines of source files
		{"source of a profile", "callgrind", secret, false},
		{"source of a profile", "callgrind --source", secret, false},
		{"source of a profile", "callgrind --source-root=" + os.TempDir() + "/none", secret, false},
		{"source of a profile", "callgrind --source-root=" + dir, secret, true},
	} {
		cmd := exec.Command(os.Args[0], append(strings.Fields(tt.args), "--debug-file-directory=nowhere", "-q")...)
		cmd.Stdin = strings.NewReader(strings.ReplaceAll(logs[tt.log], "FILE", tt.file))
		cmd.Env = append(os.Environ(), asCommand+"=1", "DEBUGINFOD_URLS=", "XDG_CACHE_HOME="+t.TempDir())
		cmd.Dir = t.TempDir()
		if strings.HasPrefix(tt.log, "relative") || tt.log == "backtrace from above" {
			cmd.Dir = dir
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s, %s: %v: %s", tt.log, tt.args, err, stderr.Bytes())
		}
		if got := opened[tt.file](); got != tt.want {
			t.Errorf("%s, %s: %s opened: %v, want %v\n%s", tt.log, tt.args, filepath.Base(tt.file), got, tt.want, out)
		}
		if shown := bytes.Contains(out, []byte("canary")); shown != (tt.file == secret && tt.want && strings.Contains(tt.args, "--source-root")) {
			t.Errorf("%s, %s: shows the canary: %v\n%s", tt.log, tt.args, shown, out)
		}
	}
}
