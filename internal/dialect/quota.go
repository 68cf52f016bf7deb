package dialect

// Limits of the work for the traces in a log. A step takes about 50 ns.
const (
	MaxLogSteps = 1 << 22 // 0.2 s, for a log that consists only of traces
	// steps added for each byte of the log, 0.4 s for a MiB; programs log 25 kB between two traces
	StepsPerByte = 8
)

// Costs, in steps, of work with files that is not counted step by step.
const (
	stepsPerOpen = 1000 // opening a file
	stepsPerStat = 50   // checking whether a file was replaced
)

// A Quota bounds the work for all traces of a log. Many short traces may take as much work as long
// ones, so the limit grows with the bytes read from the log. At the limit, no file is searched for
// load biases or names. At twice the limit, no trace is judged. The zero Quota is for a new log.
type Quota struct {
	used  int   // steps, minus the steps that bytes of the log have added
	total int64 // all steps so far
}

// Add grants the steps for n further bytes of the log.
func (q *Quota) Add(n int) { q.used = max(0, q.used-n*StepsPerByte) }

// Spend deducts n steps, even if fewer are left.
func (q *Quota) Spend(n int) {
	q.used = min(q.used+n, 4*MaxLogSteps)
	q.total += int64(n)
}

// Opened deducts the steps for opened files, and for checks whether files were replaced.
func (q *Quota) Opened(opened, looked int) { q.Spend(opened*stepsPerOpen + looked*stepsPerStat) }

// Steps returns the number of steps spent so far.
func (q *Quota) Steps() int64 { return q.total }

// Left returns the steps left for searches, which may be negative.
func (q *Quota) Left() int { return MaxLogSteps - q.used }

// Exhausted reports whether no more traces may be judged.
func (q *Quota) Exhausted() bool { return q.used >= 2*MaxLogSteps }
