//go:build linux

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recorded are logs of kernels with errors of each kind under QEMU, in testdata/kernel/reports.
// Each has its kernel's file, reduced to what the log needs.
var recorded = []struct {
	kind    string
	module  bool   // the functions of reports.c are in a module
	byID    bool   // the log has build IDs
	marks   string // reports with lines marked in the source
	titles  []string
	answers int // resolved frames
	raw     int // unresolved frames
}{
	{
		kind: "kasan", module: true, byID: true,
		marks: "sleep rcu hung irq stack sched gate shift digits overflow stale spill list null",
		titles: []string{
			"BUG: KASAN: slab-out-of-bounds", "BUG: KASAN: use-after-free", "BUG: KASAN: stack-out-of-bounds", "Allocated by task", "Freed by task",
			"UBSAN: shift-out-of-bounds", "UBSAN: array-index-out-of-bounds", "WARNING: inconsistent lock state", "WARNING: suspicious RCU usage",
			"BUG: sleeping function called from invalid context", "BUG: scheduling while atomic", "kernel BUG at", "NULL pointer dereference",
			"blocked for more than", "rcu: INFO: rcu_preempt self-detected stall", "Show backtrace of all active CPUs", "Showing all locks held in",
		},
		answers: 683, raw: 244,
	},
	{
		kind:    "kcsan",
		marks:   "race hung stall irq stack warn list bug null",
		titles:  []string{"BUG: KCSAN: data-race in", "read-write to", "kernel BUG at", "NULL pointer dereference", "blocked for more than", "soft lockup"},
		answers: 432, raw: 56,
	},
	{
		kind: "arm64", byID: true,
		marks:   "sleep rcu hung irq stack warn lock sched list bug null",
		titles:  []string{"WARNING: possible circular locking dependency", "kernel BUG at", "NULL pointer dereference", "blocked for more than"},
		answers: 480, raw: 2,
	},
	{
		kind:    "arm",
		marks:   "sleep hung stall irq stack warn sched list bug null",
		titles:  []string{"BUG: sleeping function", "kernel BUG at", "NULL pointer dereference", "blocked for more than", "soft lockup"},
		answers: 287, raw: 0,
	},
	{
		kind:    "riscv",
		marks:   "sleep hung stall irq stack warn sched list bug null",
		titles:  []string{"BUG: sleeping function", "kernel BUG at", "NULL pointer dereference", "blocked for more than", "soft lockup"},
		answers: 284, raw: 52,
	},
}

// Patterns of the text before an address, and of the address's function. They distinguish addresses
// of instructions from return addresses.
var (
	instructionBefore = regexp.MustCompile(`(RIP: [0-9a-f]+:|WARNING: .* |\bpc : |\bepc : |PC is at )$`)
	stoppedBefore     = regexp.MustCompile(`(_svc from |_svc\) from \[<[0-9a-f]+>\] \()$`)
	linkBefore        = regexp.MustCompile(`(lr : |ra : |LR is at )$`)
	notOfAStack       = regexp.MustCompile(`(\): (\[<[0-9a-f]+>\] )?|at: | : )$`)
	entryFunction     = regexp.MustCompile(`^(el1[ht]_64_|asm_exc_|asm_sysvec_|asm_common_interrupt|ret_from_exception|handle_exception)`)
)

// addressLines match lines that symfilter adds for registers on arm and riscv.
var addressLines = regexp.MustCompile(`(?m)^(--- 0x[0-9a-f]+: |  \(inlined by\) ).*\n`)

// recordedLogOf returns the places in a kernel's log, for any processor.
func recordedLogOf(t *testing.T, text string) *kernelLog {
	l := &kernelLog{text: text}
	arm := strings.Contains(text, ": ARMv7 Processor")
	fault, faultAt, entryAt := "", 0, -1
	for i, line := range strings.Split(text, "\n") {
		at := kernelFunction.FindStringSubmatchIndex(line)
		if at == nil {
			continue
		}
		m := kernelFunction.FindStringSubmatch(line)
		p := &kernelPlace{name: m[1], offset: number(t, m[2]), size: number(t, m[3]), module: m[4]}
		before, doubt := line[:at[0]], strings.HasSuffix(line[:at[0]], "? ")
		switch {
		case arm && strings.Contains(before, "WARNING: "): // the return address of the call that prints the warning
			p.offset = p.offset&^1 - 1
		case instructionBefore.MatchString(before):
			fault, faultAt = m[0], i
		case m[0] == fault && i-faultAt <= 256 && !linkBefore.MatchString(before):
			faultAt = i
		case stoppedBefore.MatchString(before), entryAt == i-1 && !doubt && !notOfAStack.MatchString(before):
		case arm: // return addresses in Thumb code have their lowest bit set
			p.offset = p.offset&^1 - 1
		default:
			p.offset--
		}
		if entryFunction.MatchString(p.name) && !doubt && !notOfAStack.MatchString(before) {
			entryAt = i
		}
		l.places = append(l.places, p)
	}
	return l
}

// The files are named by the operator, or found by build ID. Each frame must have llvm-symbolizer's
// functions and lines.
func TestRecordedReportsOfKernelsAreResolved(t *testing.T) {
	t.Parallel()
	need(t, "xz", "ld", "llvm-symbolizer-19", "llvm-readelf-19")
	source := strings.Split(readText(t, filepath.Join("testdata", "kernel", "reports", "reports.c")), "\n")
	for _, c := range recorded {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			unpack := func(packed, name string) string {
				file := filepath.Join(dir, name)
				if err := os.WriteFile(file, []byte(run(t, nil, "xz", "-dc", filepath.Join("testdata", "kernel", "reports", packed))), 0o600); err != nil {
					t.Fatal(err)
				}
				return file
			}
			files := map[string]string{"": unpack(c.kind+".vmlinux.xz", c.kind+".vmlinux")}
			args := []string{"-q", "--image", files[""]}
			if c.module {
				module := unpack(c.kind+".reports.ko.xz", "reports.ko")
				args = append(args, "--image", module)
				files["reports"] = filepath.Join(t.TempDir(), "reports.elf")
				run(t, nil, "ld", "-e", "0", "--unresolved-symbols=ignore-all", "--noinhibit-exec", "-z", "noexecstack", "-o", files["reports"], module)
			}
			log := readText(t, filepath.Join("testdata", "kernel", "reports", c.kind+".log"))
			for _, title := range c.titles {
				if !strings.Contains(log, title) {
					t.Errorf("no %q in the log", title)
				}
			}
			l := recordedLogOf(t, log)
			want, answers := l.asLLVM(t, files)
			if raw := len(l.places) - answers; answers != c.answers || raw != c.raw {
				t.Errorf("%d frames with an answer and %d without one, want %d and %d", answers, raw, c.answers, c.raw)
			}
			resolved := func(how, text, want string, args ...string) {
				t.Helper()
				if got := addressLines.ReplaceAllString(run(t, []byte(text), command, args...), ""); got != want {
					t.Errorf("%s:\n%s", how, otherLine(got, want))
				}
			}
			resolved("by --image", log, want, args...)
			resolved("filtered twice", want, want, args...)
			kept := append(slices.Clone(args), "--keep-raw")
			once := run(t, []byte(log), command, kept...)
			if twice := run(t, []byte(once), command, kept...); twice != once {
				t.Errorf("filtered twice with --keep-raw: %s", otherLine(twice, once))
			}
			if c.module { // the file's name has the suffix of its compression
				packed := filepath.Join(t.TempDir(), "reports.ko.xz")
				run(t, nil, "cp", filepath.Join("testdata", "kernel", "reports", c.kind+".reports.ko.xz"), packed)
				resolved("by a compressed module", log, want, "-q", "--image", files[""], "--image", packed)
			}
			if c.byID { // the stacks of all tasks have more lines than a held trace may have
				const middle = "the report is: warn"
				before, after, _ := strings.Cut(log, middle)
				wantBefore, wantAfter, _ := strings.Cut(want, middle)
				resolved("by build ID", before, wantBefore, "-q", "--symbol-path", dir)
				resolved("by build ID", after, wantAfter, "-q", "--symbol-path", dir)
			}
			for _, report := range strings.Fields(c.marks) {
				for i, line := range source {
					mark := regexp.MustCompile(`// ` + report + `(:.*)?$`)
					if m := mark.FindString(line); m != "" && !strings.Contains(want, fmt.Sprintf("/reports.c:%d\n", i+1)) && !strings.Contains(want, fmt.Sprintf("/reports.c:%d ", i+1)) {
						t.Errorf("no frame at line %d, %s", i+1, m)
					}
				}
			}
		})
	}
}
