package judge

import "github.com/symfilter/symfilter/internal/dialect"

// A run is a file as loaded by one process. If the log does not identify the process, the load bias
// identifies the run; without a bias, its trace does. If a stack refutes the file, the whole run is
// refuted, including later traces: frames in parts of the file that have not moved would still
// agree.
type run struct {
	file    sum
	process uint64 // 0 if the log does not show it
	bias    uint64 // page at which the module was loaded, minus its page in the file
	trace   int    // number of the trace if process and bias are 0; 0 if not
}

// A usage records what stacks have shown about a run.
type usage struct {
	named   bool // frames were located in the file
	refuted bool
}

const maxRuns = 1 << 10 // runs in a Memory; up to twice as many may be kept

// runOf returns the run of f, whose check is c. ok is false without an open file, or if the file
// needs no proof: its build ID is in the log, the operator gave it, or f is a kernel frame.
func (t *Trace) runOf(f *Frame, c *check) (r run, ok bool) {
	v := c.of
	if v == nil || v.image.Err != nil || v.image.File == nil || v.image.Given || f.Kernel != nil || v.identifies(f) {
		return r, false
	}
	r = run{file: v.file, process: f.process()}
	switch {
	case v.image.Fixed:
	case f.Kind == dialect.Runtime:
		r.bias = v.bias
	case f.Addr != 0:
		r.bias = (f.Addr - c.addr) &^ (pageSize - 1)
	}
	if r.process == 0 && r.bias == 0 {
		r.trace = t.serial
	}
	return r, true
}

// refuteRuns records the runs that a stack refutes, and sets refuted in their checks. It calls
// Doubt if frames were located in the file before.
func (t *Trace) refuteRuns(frames []*Frame, checks []check) {
	m := t.remembered()
	if t.serial == 0 {
		m.traces++
		t.serial = m.traces
	}
	for i, f := range frames {
		c := &checks[i]
		if c.run, c.runs = t.runOf(f, c); !c.runs || !c.here.refutes(c.of.image) {
			continue
		}
		if used, _ := m.runs.get(c.run, maxRuns); !used.refuted {
			m.runs.put(c.run, usage{used.named, true}, maxRuns)
			if used.named && t.Doubt != nil {
				t.Doubt(c.of.image)
			}
		}
	}
	for i := range checks {
		if c := &checks[i]; c.runs {
			used, _ := m.runs.get(c.run, maxRuns)
			c.refuted = used.refuted
		}
	}
}

// useRun records that c's frame was located in the file of c.run.
func (t *Trace) useRun(c *check) {
	if used, _ := t.Memory.runs.get(c.run, maxRuns); !used.named {
		t.Memory.runs.put(c.run, usage{true, used.refuted}, maxRuns)
	}
}

// ForgetRuns drops the facts about processes. It is called before lines of another log.
func (m *Memory) ForgetRuns() { m.runs, m.bases = recent[run, usage]{}, recent[sum, uint64]{} }
