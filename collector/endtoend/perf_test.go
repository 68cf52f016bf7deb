//go:build linux

package endtoend

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/internal/idtest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// A spinner is a program that computes for some tenths of a second.
type spinner struct {
	program string // stripped
	whole   string // the same build with symbols and debug information
	id      string // build ID in hex
}

// newSpinner compiles a program of testdata/perf in dir. Its debug file goes into the tree
// dir/debug.
func newSpinner(t *testing.T, dir, source string) spinner {
	t.Helper()
	compilers := map[string][]string{
		".c":  {"gcc", "-O2", "-fno-omit-frame-pointer"},
		".cc": {"g++", "-O2", "-fno-omit-frame-pointer"},
		".rs": {"rustc", "-O", "-C", "force-frame-pointers=yes", "-C", "link-arg=-Wl,--build-id"},
	}
	compiler := compilers[filepath.Ext(source)]
	testenv.Need(t, compiler[0], "objcopy")
	// The compiler may be installed without working, such as rustup's rustc without a toolchain.
	if out, err := exec.Command(compiler[0], "--version").CombinedOutput(); err != nil {
		testenv.Missing(t, fmt.Sprintf("a %s that works: %v\n%s", compiler[0], err, out))
	}
	s := spinner{program: filepath.Join(dir, "spin"+filepath.Ext(source)[1:])}
	s.whole = s.program + ".whole"
	outputOf(t, append(compiler, "-g", filepath.Join("testdata", "perf", source), "-o", s.whole)...)
	s.id = idtest.Of(t, s.whole).String()
	debug := filepath.Join(dir, "debug", ".build-id", s.id[:2], s.id[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(debug), 0o700); err != nil {
		t.Fatal(err)
	}
	outputOf(t, "objcopy", "--only-keep-debug", s.whole, debug)
	outputOf(t, "objcopy", "--strip-all", s.whole, s.program)
	return s
}

// outputOf returns the standard output of a program, which must succeed.
func outputOf(t *testing.T, argv ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return string(out)
}

// A recording holds the data that perf has recorded of a process: the executable parts of mapped
// files, and the samples.
type recording struct {
	data   string // file of perf
	maps   []perfMap
	chains [][]uint64 // addresses of each sample: the instruction, then the return addresses
	// for each address in chains, its symbol as perf prints it, not demangled; "[unknown]" without
	// a symbol
	names [][]string
}

type perfMap struct {
	start, size, offset uint64
	id, file            string
}

// perfPeriod is the time between two samples in nanoseconds, for a frequency of 1,000 Hz.
const perfPeriod = 1_000_000

// recorded runs a program under perf, and returns the recording.
func recorded(t *testing.T, program string) *recording {
	t.Helper()
	r := &recording{data: program + ".data"}
	out, err := exec.Command("perf", "record", "-q", "-N", "--buildid-mmap", "-e", "cpu-clock:u", "-F", "1000", "-g", "-o", r.data, program).CombinedOutput()
	if strings.Contains(string(out), "perf_event_paranoid") {
		testenv.Forbidden(t, "to record with perf", string(out))
	}
	if err != nil {
		t.Fatalf("perf record: %v\n%s", err, out)
	}
	r.read(t)
	return r
}

var (
	perfMapping = regexp.MustCompile(`PERF_RECORD_MMAP2 .*: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (?:0x)?([0-9a-f]+) <([0-9a-f]+)>\]: r-xp (/.*)\n`)
	perfAddress = regexp.MustCompile(`^\.{5} +\d+: ([0-9a-f]{16})\n`)
	perfFrame   = regexp.MustCompile(`^\t *[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \(.*\)\n`)
)

// read sets the fields of r from the output of perf script. The output has the mappings and
// addresses of the process, and the frames of each sample as text. perf finds symbols in the files
// that are now at the recorded paths, if they have the recorded build IDs.
func (r *recording) read(t *testing.T) {
	t.Helper()
	*r = recording{data: r.data}
	for line := range strings.Lines(outputOf(t, "perf", "script", "-D", "--no-inline", "--no-demangle", "-i", r.data)) {
		if m := perfMapping.FindStringSubmatch(line); m != nil {
			r.maps = append(r.maps, perfMap{hexOf(t, m[1]), hexOf(t, m[2]), hexOf(t, m[3]), m[4], m[5]})
		} else if strings.Contains(line, "PERF_RECORD_SAMPLE") {
			r.chains, r.names = append(r.chains, nil), append(r.names, nil)
		} else if m := perfAddress.FindStringSubmatch(line); m != nil {
			// The largest numbers mark whether the next addresses are of the kernel or of the
			// process.
			if a := hexOf(t, m[1]); a < ^uint64(0)-4095 {
				r.chains[len(r.chains)-1] = append(r.chains[len(r.chains)-1], a)
			}
		} else if m := perfFrame.FindStringSubmatch(line); m != nil {
			r.names[len(r.names)-1] = append(r.names[len(r.names)-1], m[1])
		}
	}
	if len(r.chains) < 50 || len(r.maps) == 0 {
		t.Fatalf("perf has recorded %d samples and %d mappings", len(r.chains), len(r.maps))
	}
	for i := range r.chains {
		if len(r.chains[i]) != len(r.names[i]) {
			t.Fatalf("sample %d: %d addresses, but %d frames: %v", i, len(r.chains[i]), len(r.names[i]), r.names[i])
		}
	}
}

func hexOf(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// mapped returns the mapping of an address, or nil.
func (r *recording) mapped(addr uint64) *perfMap {
	for i := range r.maps {
		if m := &r.maps[i]; addr-m.start < m.size {
			return m
		}
	}
	return nil
}

// linked converts an address in the mapping to the link-time address in the mapped file. It uses
// the file's segments.
func (m *perfMap) linked(t *testing.T, addr uint64) uint64 {
	t.Helper()
	f, err := elf.Open(m.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := addr - m.start + m.offset
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && at-p.Off < p.Filesz {
			return at - p.Off + p.Vaddr
		}
	}
	t.Fatalf("%s: no segment of code has offset %#x", m.file, at)
	return 0
}

// profiles returns the recording as a batch of one profile, without names. Each return address is
// replaced by the address of the byte before it, which is in the call.
func (r *recording) profiles(service string) pprofile.Profiles {
	p := pprofile.NewProfiles()
	b := tables{p.Dictionary()}
	b.begin()
	resource := p.ResourceProfiles().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	profile := resource.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	profile.SampleType().SetTypeStrindex(b.str("samples"))
	profile.SampleType().SetUnitStrindex(b.str("count"))
	profile.PeriodType().SetTypeStrindex(b.str("cpu"))
	profile.PeriodType().SetUnitStrindex(b.str("nanoseconds"))
	profile.SetPeriod(perfPeriod)
	samples := make(map[int32]pprofile.Sample)
	for _, chain := range r.chains {
		stack := pprofile.NewStack()
		for i, addr := range chain {
			if i > 0 {
				addr--
			}
			mapping := int32(0)
			if m := r.mapped(addr); m != nil {
				mapping = b.mapping(m.file, m.id, m.start, m.start+m.size, m.offset)
			}
			stack.LocationIndices().Append(b.location(mapping, addr))
		}
		index := b.stack(stack)
		s, ok := samples[index]
		if !ok {
			s = pprofile.NewSample()
			s.SetStackIndex(index)
			s.Values().Append(0)
		}
		s.Values().SetAt(0, s.Values().At(0)+1)
		samples[index] = s
	}
	for i := range b.dict.StackTable().Len() {
		if s, ok := samples[int32(i)]; ok {
			s.MoveTo(profile.Samples().AppendEmpty())
		}
	}
	return p
}

// tables adds entries to the tables of a dictionary, and reuses equal entries.
type tables struct{ dict pprofile.ProfilesDictionary }

// begin adds the empty first entries: index 0 means no entry.
func (b tables) begin() {
	b.dict.StringTable().Append("")
	b.dict.MappingTable().AppendEmpty()
	b.dict.LocationTable().AppendEmpty()
	b.dict.FunctionTable().AppendEmpty()
	b.dict.LinkTable().AppendEmpty()
	b.dict.AttributeTable().AppendEmpty()
	b.dict.StackTable().AppendEmpty()
}

// entry returns index if err is nil, and panics otherwise: a table is full after 2³¹ entries.
func entry(index int32, err error) int32 {
	if err != nil {
		panic(err)
	}
	return index
}

func (b tables) str(text string) int32 { return entry(pprofile.SetString(b.dict.StringTable(), text)) }

func (b tables) mapping(file, id string, start, limit, offset uint64) int32 {
	a := pprofile.NewKeyValueAndUnit()
	a.SetKeyStrindex(b.str("process.executable.build_id.gnu"))
	a.Value().SetStr(id)
	m := pprofile.NewMapping()
	m.SetFilenameStrindex(b.str(file))
	m.SetMemoryStart(start)
	m.SetMemoryLimit(limit)
	m.SetFileOffset(offset)
	m.AttributeIndices().Append(entry(pprofile.SetAttribute(b.dict.AttributeTable(), a)))
	return entry(pprofile.SetMapping(b.dict.MappingTable(), m))
}

func (b tables) location(mapping int32, addr uint64) int32 {
	l := pprofile.NewLocation()
	l.SetMappingIndex(mapping)
	l.SetAddress(addr)
	return entry(pprofile.SetLocation(b.dict.LocationTable(), l))
}

func (b tables) stack(s pprofile.Stack) int32 {
	return entry(pprofile.SetStack(b.dict.StackTable(), s))
}
