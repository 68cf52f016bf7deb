package dialect_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// Random lines without backtraces must have no frames. They resemble lines of servers and kernels,
// traces of system calls, hexdumps and source code. There are 16 MiB of them, or 1 GiB with
// TEST_LONG=1.
func TestOrdinaryLogsHaveNoFrames(t *testing.T) {
	size := fuzztest.LongOr(1<<30, 16<<20)
	r := rand.New(rand.NewPCG(14, 1))
	reader := dialect.NewReader(nil)
	var number int64
	var past []byte
	reader.Past = func(n int64) []byte {
		at := len(past)
		for ; n > 0 && at > 0; n-- {
			at = bytes.LastIndexByte(past[:at-1], '\n') + 1
		}
		return past[at:]
	}
	found := 0
	for n := 0; n < size; {
		line := ordinaryLine(r)
		n += len(line) + 1
		number++
		if l := reader.Line([]byte(line), number); l != nil && len(l.Frames) > 0 {
			if found++; found <= 20 {
				t.Errorf("a frame of %s in %q", l.Frames[0].Dialect.Name, line)
			}
		}
		if past = append(append(past, line...), '\n'); len(past) > 32<<10 {
			past = append(past[:0], past[16<<10:]...)
		}
	}
}

func TestLogsOfThisMachineHaveNoFrames(t *testing.T) {
	var files []string
	for _, pattern := range []string{"/var/log/*.log", "/var/log/apt/*", "/var/log/dmesg", "/usr/share/doc/*/README*", "/usr/include/*.h", "/usr/include/x86_64-linux-gnu/asm/*.h"} {
		found, _ := filepath.Glob(pattern)
		files = append(files, found...)
	}
	lines := 0
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		reader := dialect.NewReader(nil)
		scan := bufio.NewScanner(file)
		scan.Buffer(nil, 1<<20)
		for number := int64(1); scan.Scan(); number++ {
			lines++
			if l := reader.Line(scan.Bytes(), number); l != nil && len(l.Frames) > 0 {
				t.Errorf("%s:%d: a frame of %s in %q", path, number, l.Frames[0].Dialect.Name, scan.Text())
			}
		}
		file.Close()
	}
	if lines == 0 {
		testenv.OnlyOn(t, "linux")
		t.Fatalf("no lines in %d files", len(files))
	}
	t.Logf("%d lines of %d files", lines, len(files))
}

// ordinaryLine returns a line of a log without backtraces.
func ordinaryLine(r *rand.Rand) string {
	word := func(words ...string) string { return words[r.IntN(len(words))] }
	path := func() string {
		return word("/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/shop/inventory", "/srv/www/index.html", "/proc/self/maps", "/home/u/a (copy).txt")
	}
	h := func() uint64 { return r.Uint64() >> r.IntN(60) }
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	stamp := fmt.Sprintf("Nov %2d %02d:%02d:%02d", 1+r.IntN(30), r.IntN(24), r.IntN(60), r.IntN(60))
	switch r.IntN(22) {
	case 0:
		return fmt.Sprintf("%s host-07 svc[%d]: request %#x of worker %d ended: status 0x%02x in %d ms", stamp, r.IntN(9999), h(), r.IntN(64), r.IntN(256), r.IntN(900))
	case 1:
		return fmt.Sprintf(`{"time":"2026-11-20T10:00:00.%06dZ","level":"info","msg":"handle 0x%x at @0x%x","o":"%X","b":"%X","addr":"0x%x"}`, r.IntN(1e6), h(), h(), h(), h(), h())
	case 2:
		return fmt.Sprintf(`10.0.%d.%d - - [20/Nov/2026:10:00:00 +0000] "GET /a?p=0x%x&q=%%28+0x%x%%29 HTTP/1.1" 200 %d "-" "curl/7.88 (x)"`, r.IntN(256), r.IntN(256), h(), h(), r.IntN(1e6))
	case 3:
		return hex.Dump(random(16))[:78]
	case 4:
		return fmt.Sprintf("%08x: %x %x %x %x  ................", r.Uint32(), random(2), random(2), random(2), random(2))
	case 5:
		return base64.StdEncoding.EncodeToString(random(57))
	case 6:
		return fmt.Sprintf(`openat(AT_FDCWD, "%s", O_RDONLY|O_CLOEXEC) = %d`, path(), r.IntN(20))
	case 7:
		return fmt.Sprintf(`mmap(NULL, %d, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED|MAP_DENYWRITE, %d, 0x%x) = 0x%x`, r.IntN(1<<20), r.IntN(9), h(), h())
	case 8:
		return fmt.Sprintf("ioctl(%d, _IOC(_IOC_READ, 0x54, 0x%x, 0x%x), 0x%x) = -1 ENOTTY (%s)", r.IntN(9), r.IntN(255), r.IntN(255), h(), "Inappropriate ioctl")
	case 9:
		return fmt.Sprintf("[%5d.%06d] pci 0000:%02x:1f.%d: [8086:%04x] type 00 class 0x%06x", r.IntN(99999), r.IntN(1e6), r.IntN(255), r.IntN(8), r.IntN(65536), r.IntN(1<<24))
	case 10:
		return fmt.Sprintf("[%5d.%06d] BIOS-e820: [mem 0x%016x-0x%016x] usable", r.IntN(99999), r.IntN(1e6), h(), h())
	case 11:
		return fmt.Sprintf("#define REG_%X (0x%x + 0x%x) /* see [0x%x] */", r.IntN(99), h(), h(), h())
	case 12:
		return fmt.Sprintf("    if (p[0x%x] == 0x%x && f(+0x%x)) return (T *)(base+0x%x);", h(), h(), h(), h())
	case 13:
		return fmt.Sprintf("%x-%x r-xp %08x fe:01 %d    %s", r.Uint32(), uint64(r.Uint32())+1<<32, r.IntN(1<<20)&^4095, r.IntN(1e6), path())
	case 14:
		return fmt.Sprintf("%s host-07 kernel: usb 1-%d: new device number %d flags 0x%x pc 0%d ip 10.0.0.%d sp", stamp, r.IntN(9), r.IntN(99), h(), r.IntN(99), r.IntN(255))
	case 15:
		return fmt.Sprintf("commit %x (tag: v%d, 0x%x) #%d fixes #%d in %s", random(20), r.IntN(9), h(), r.IntN(99), r.IntN(999), path())
	case 16:
		return fmt.Sprintf("  %4x:\t48 8b 05 %02x 0f 00 00 \tmov    0x%x(%%rip),%%rax        # %x <_DYNAMIC+0x%x>", r.IntN(65536), r.IntN(256), h(), h(), r.IntN(4096))
	case 17:
		return fmt.Sprintf("WARN  [%s] %d: connection @ 0%d lost (code=0x%x, PC=0, C=0): retry in %d s", word("main", "io-1"), r.IntN(99), r.IntN(9), h(), r.IntN(60))
	case 18:
		return fmt.Sprintf("%d: 0x%x = malloc(%d) [unknown] values [0x%x] (0x%x) <0x%x>", r.IntN(99), h(), r.IntN(4096), h(), h(), h())
	case 19:
		return fmt.Sprintf("#%d 0x%x is a colour; see %s+0x%x for its place", r.IntN(99), r.IntN(1<<24), path(), r.IntN(4096))
	case 20:
		return strings.Repeat(word("the ", "etc ", " pc ", " ip ", "wn] ", "0x ", "@ 0 "), 1+r.IntN(12))
	default:
		return fmt.Sprintf("%s %s: loaded %s (%d bytes), sha256 %x", stamp, word("cron", "sshd", "loader"), path(), r.IntN(1e7), random(32))
	}
}

// A line that ends like a frame of systemd-coredump, but lacks the name of a module, must not be
// read as a frame.
func TestFramesOfCoredumpsHaveModules(t *testing.T) {
	for _, line := range []string{"#0 0x12 (deleted) + 0x12)", "#0 0x12 + 0x12)", "#0 0x12  (deleted) + 0x12)", "#0 0x12 (/ (deleted) + 0x12", "#0 0x12 (+ 0x12)"} {
		if l := dialect.NewReader(nil).Line([]byte(line), 1); l != nil {
			t.Errorf("%q has %d frames", line, len(l.Frames))
		}
	}
}
