package valgrind

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/symfilter/symfilter/internal/report"
)

// A Map holds load addresses of objects in a process. The zero Map has no objects. Several
// readers may use one Map at once.
type Map struct {
	biases map[string]uint64 // by name
	starts []start
}

// A start is the beginning of a mapping, from a line of /proc/PID/maps.
type start struct {
	name         string
	addr, offset uint64
}

// Bias returns a Map of one object. object is its path, or the path's last part. An address in
// the process is bias plus the address in the file.
func Bias(object string, bias uint64) Map {
	return Map{biases: map[string]uint64{object: bias}}
}

// ReadMap reads /proc/PID/maps, or a log that Valgrind made with -v -v or -d -d. It reads at
// most 16 MiB. It fails if r fails, if a line is longer than 64 KiB, or if no line is of either
// kind.
func ReadMap(r io.Reader) (Map, error) {
	m := Map{biases: make(map[string]uint64)}
	var reading string
	scan := bufio.NewScanner(io.LimitReader(r, maxMapFile))
	scan.Buffer(nil, 64<<10)
	for scan.Scan() {
		line := scan.Text()
		if _, name, ok := strings.Cut(line, "Reading syms from "); ok {
			reading = strings.TrimSpace(name)
			if i := strings.Index(reading, " (0x"); i > 0 {
				reading = reading[:i]
			}
			continue
		}
		if _, rest, ok := strings.Cut(line, " svma 0x"); ok && reading != "" {
			svma, rest, _ := strings.Cut(rest, ", avma 0x")
			avma, _, _ := strings.Cut(rest, " ")
			link, ok1 := report.Hex([]byte(svma))
			run, ok2 := report.Hex([]byte(avma))
			if ok1 && ok2 {
				m.biases[reading] = run - link
			}
			reading = ""
			continue
		}
		if s, ok := parseStart(line); ok {
			m.starts = append(m.starts, s)
		}
	}
	if err := scan.Err(); err != nil {
		return Map{}, fmt.Errorf("read map: %w", err)
	}
	if len(m.biases)+len(m.starts) == 0 {
		return Map{}, fmt.Errorf("read map: no lines of /proc/PID/maps or of a valgrind -v -v log")
	}
	return m, nil
}

// parseStart reads a line of /proc/PID/maps:
//
//	00109000-0010a000 r-xp 00001000 08:01 1234   /bin/a
func parseStart(line string) (s start, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") {
		return s, false
	}
	from, _, ok := strings.Cut(fields[0], "-")
	if !ok {
		return s, false
	}
	var ok1, ok2 bool
	s.addr, ok1 = report.Hex([]byte(from))
	s.offset, ok2 = report.Hex([]byte(fields[2]))
	s.name = strings.TrimSuffix(line[strings.IndexByte(line, '/'):], " (deleted)")
	return s, ok1 && ok2
}

// bias returns the bias of an object, if the map has it.
func (m *Map) bias(name string, f *file) (uint64, bool) {
	for _, n := range []string{name, baseName(name)} {
		if b, ok := m.biases[n]; ok {
			return b, true
		}
	}
	for i := range m.starts {
		s := &m.starts[i]
		if s.name != name {
			continue
		}
		for j := range f.Loads {
			if p := &f.Loads[j]; p.Offset&^(page-1) == s.offset {
				return s.addr - p.Addr&^(page-1), true
			}
		}
	}
	return 0, false
}
