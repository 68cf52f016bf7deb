package valgrind

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// reportWith returns a report with one stack of addresses in /lib/prog.so.
func reportWith(ips ...uint64) []byte {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\"?>\n<valgrindoutput>\n<tool>memcheck</tool>\n<args><vargv><exe>valgrind</exe></vargv><argv><exe>/bin/a</exe></argv></args>\n<error>\n<what>x</what>\n<stack>\n")
	for _, ip := range ips {
		fmt.Fprintf(&b, "<frame>\n<ip>%#X</ip>\n<obj>/lib/prog.so</obj>\n</frame>\n", ip)
	}
	b.WriteString("</stack>\n</error>\n</valgrindoutput>\n")
	return b.Bytes()
}

var bias = regexp.MustCompile(`"bias":"(0x[0-9a-f]+)","by":"(\w+)"`)

// The bias must be taken from the Maps, or inferred from the addresses. If no bias fits, a
// diagnostic must report that. In prog.so, the function outer begins at 0x1370, its calls end at
// 0x1376 and 0x1384, and the function local begins at 0x13b0.
func TestBiasIsInferredOrNotKnown(t *testing.T) {
	mustRead := func(text string) []Map {
		m, err := ReadMap(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return []Map{m}
	}
	const at = 0x4852000
	tests := []struct {
		name string
		ips  []uint64
		maps []Map
		want string // the bias and its source, or the diagnostic
	}{
		{"one page of code", []uint64{at + 0x13b6}, nil, "0x4852000 segments"},
		{"a caller after a call", []uint64{at + 0x13b6, at + 0x1375}, nil, "0x4852000 segments"},
		{"callers that follow no call", []uint64{at + 0x13b6, at + 0x1377, at + 0x1379, at + 0x137b}, nil, "/lib/prog.so: not the file that ran: the code does not fit the addresses in the report"},
		{"an address where the file has no code", []uint64{at + 0x136f}, nil, "/lib/prog.so: not the file that ran: the code does not fit the addresses in the report"},
		{"given", []uint64{at + 0x13b6}, []Map{Bias("/lib/prog.so", at)}, "0x4852000 map"},
		{"given by the last part of its name", []uint64{at + 0x13b6}, []Map{Bias("prog.so", at)}, "0x4852000 map"},
		{"given, and it cannot be", []uint64{at + 0x13b6}, []Map{Bias("prog.so", at+0x1000)}, "0x4852000 segments"},
		{"given for another", []uint64{at + 0x13b6}, []Map{Bias("other.so", 0)}, "0x4852000 segments"},
		{"a log of valgrind -v -v", []uint64{at + 0x13b6}, mustRead("==7== x\n--7-- Reading syms from /lib/prog.so\n--7--    svma 0x0000001370, avma 0x0004853370\n"), "0x4852000 map"},
		{"/proc/PID/maps", []uint64{at + 0x13b6}, mustRead("04852000-04853000 r--p 00000000 08:01 17   /lib/prog.so\n04853000-04854000 r-xp 00000000 08:01 17   /lib/prog.so\n"), "0x4852000 map"},
	}
	for _, tt := range tests {
		var diagnostics []string
		o := Options{ReportOptions: symbolize.ReportOptions{PrefixMap: fixtures(t), Diagnose: func(s string) { diagnostics = append(diagnostics, s) }}, Maps: tt.maps}
		out := reportOf(t, reportWith(tt.ips...), o)
		got := strings.Join(diagnostics, "\n")
		for _, m := range o.PrefixMap {
			got = strings.ReplaceAll(got, m.New, m.Old)
		}
		if m := bias.FindStringSubmatch(out); m != nil {
			got = m[1] + " " + m[2]
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestReadMapRefusesOtherFiles(t *testing.T) {
	for _, text := range []string{"", "a log\n", "Reading syms from /a\n", "1-2 r-xp 0 0:0 0 [vdso]\n"} {
		if _, err := ReadMap(strings.NewReader(text)); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

// period must return the length of the shortest sequence that repeats. Successive frames at one
// address are a function with its inlined calls. If they repeat, the function calls itself.
func TestPeriodOfRepeatedFrames(t *testing.T) {
	for text, want := range map[string]int{"a": 1, "aa": 1, "aaaa": 1, "ab": 2, "abab": 2, "abc": 3, "abcabc": 3, "aab": 3, "aabaab": 3, "abababa": 7} {
		var frames []Frame
		for i := range text {
			frames = append(frames, Frame{IP: 1, Fn: []byte(text[i : i+1])})
		}
		if got := period(frames); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestEveryFrameIsInASite(t *testing.T) {
	tr := newTracker(&Options{})
	for _, n := range []int{1, maxInline, maxInline + 1, 2*maxInline - 1, 3 * maxInline} {
		var frames []Frame
		for i := range n {
			frames = append(frames, Frame{IP: 1, Line: uint64(i)})
		}
		frames = append(frames, slices.Repeat([]Frame{{IP: 2}}, n)...)
		var got []Frame
		for _, s := range tr.appendSites(nil, frames) {
			got = append(got, s.frames...)
		}
		if diff := cmp.Diff(frames, got); diff != "" {
			t.Errorf("%d frames (-want +got):\n%s", n, diff)
		}
	}
}

// replacedName must decode the names of Valgrind's replacements as in pub_tool_redir.h.
func TestReplacementsHaveTheNameOfWhatTheyReplace(t *testing.T) {
	for name, want := range map[string]string{
		"_vgr10010ZU_libcZdsoZa_malloc":                     "malloc",
		"_vgr10010ZU_VgSoSynsomalloc__Znwm":                 "_Znwm",
		"_vgr00000ZZ_libpthreadZdsoZd0_pthreadZucreateZAZa": "pthread_create@*",
		"_vgw00000ZZ_libcZdsoZa_sigZa":                      "sig*",
		"_vgrmalloc":                                        "",
		"malloc":                                            "",
		"_vgr1Z":                                            "",
	} {
		if got, ok := replacedName(name); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", name, got, ok, want)
		}
	}
}

func TestIdentifierOfAFunction(t *testing.T) {
	for fn, want := range map[string]string{
		"main":                          "main",
		"ns::inner(int)":                "inner",
		"void app::W::run<int>(int)":    "run",
		"(anonymous namespace)::f(int)": "f",
		"std::vector<int, std::allocator<int> >::push_back(int const&)": "push_back",
		"ns::A::~A()":                "A",
		"ns::operator<(int, int)":    "",
		"_ZN2ns5innerEi":             "_ZN2ns5innerEi",
		"pthread_create@@GLIBC_2.34": "pthread_create",
	} {
		if got := identifier(fn); got != want {
			t.Errorf("%q: got %q, want %q", fn, got, want)
		}
	}
}

func TestWindowsAreTheBiasesThatPutAnAddressIntoCode(t *testing.T) {
	fs := files{objects: report.NewObjects(&report.Options{PrefixMap: fixtures(t)}, maxOpen, true)}
	defer fs.close()
	f := fs.named("/lib/prog.so")
	if f.Err != nil {
		t.Fatal(f.Err)
	}
	all := windowsOf(f, f.Code, 0x4853376)
	if want := []window{{0x4852000, 0x4852000}}; !slices.Equal(all, want) {
		t.Error(cmp.Diff(want, all, cmp.AllowUnexported(window{})))
	}
	if all := windowsOf(f, f.Code, 0x4853376+0x800); len(all) != 0 {
		t.Errorf("got %v for an address that no page can hold", all)
	}
}

// writeELF writes an ELF file with one executable segment: code at address 120, and zeros after the
// code up to size.
func writeELF(t *testing.T, name string, machine elf.Machine, code string, size uint64) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	var b bytes.Buffer
	err := errors.Join(
		binary.Write(&b, binary.LittleEndian, elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		}),
		binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 5, Filesz: size, Memsz: size, Align: page}),
		os.WriteFile(name, append(b.Bytes(), code...), 0o644),
		os.Truncate(name, int64(size)),
	)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// endsHandler must recognize the ends of signal handlers, and endsRequest the ends of client
// requests. The bytes are from glibc's sigaction and the kernel's vDSO (sigreturn), and from
// valgrind.h (client requests).
func TestSpecialCodeIsKnown(t *testing.T) {
	const at = 120
	for _, tt := range []struct {
		machine          elf.Machine
		file             string
		code             string
		handler, request bool
	}{
		{elf.EM_X86_64, "libc.so.6", "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", true, false},
		{elf.EM_X86_64, "libc.so.6", "\x48\xc7\xc0\x0f\x00\x00\x00\x90\x90", false, false},
		{elf.EM_386, "libc.so.6", "\xb8\xad\x00\x00\x00\xcd\x80", true, false},
		{elf.EM_386, "libc.so.6", "\x58\xb8\x77\x00\x00\x00\xcd\x80", true, false},
		{elf.EM_AARCH64, "libc.so.6", "\x68\x11\x80\xd2\x01\x00\x00\xd4", true, false},
		{elf.EM_X86_64, "vgpreload_memcheck.so", "\x48\xc1\xc7\x33\x48\x87\xdb", false, true},
		{elf.EM_X86_64, "libc.so.6", "\x48\xc1\xc7\x33\x48\x87\xdb", false, false},
		{elf.EM_386, "vgpreload_memcheck.so", "\xc1\xc7\x13\x87\xdb", false, true},
		{elf.EM_AARCH64, "vgpreload_memcheck.so", "\x4a\x01\x0a\xaa", false, true},
		{elf.EM_RISCV, "vgpreload_memcheck.so", "\x00\x00\x00\x00", false, false},
	} {
		fs := files{objects: report.NewObjects(&report.Options{}, maxOpen, true)}
		f := fs.named(writeELF(t, tt.file, tt.machine, tt.code, page))
		if f.Err != nil {
			t.Fatal(f.Err)
		}
		handler, request := f.endsHandler(at), f.endsRequest(at+uint64(len(tt.code)))
		if handler != tt.handler || request != tt.request {
			t.Errorf("%v, %s, % x: got handler %v, request %v", tt.machine, tt.file, tt.code, handler, request)
		}
		fs.close()
	}
}

// Each process may have 100,000 candidates, but the work must grow with the report, not with the
// candidates of all processes.
func TestWorkOnPlacesGrowsAsTheReport(t *testing.T) {
	large := writeELF(t, "large.so", elf.EM_X86_64, "", 256<<20)
	const processes = 500
	o := Options{ReportOptions: symbolize.ReportOptions{PrefixMap: []buildid.PrefixMap{{Old: "/lib/prog.so", New: large}}}}
	tr := newTracker(&o)
	tr.solver.allowed = maxWork >> 4
	r := NewReader(func(rec *Record) error {
		if tr.changeProcess(rec) == same && !tr.cur.learnHeader(rec) {
			tr.learn(rec)
		}
		return nil
	})
	for i := range uint64(processes) {
		r.Write(reportWith(0x5000_0000+i, 0x5100_0000+i*7, 0x5200_0000+i*13))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if most := maxWork>>4 + 3*processes*frameWork + maxBiases*stageSize; tr.solver.work > most {
		t.Errorf("facts were held against candidates %d times, want %d at most", tr.solver.work, most)
	}
	if tr.files.kept > maxFacts {
		t.Errorf("%d bytes are kept", tr.files.kept)
	}
	tr.files.close()
}
