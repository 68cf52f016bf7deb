package dialect

// The work that the traces of a log may take, in steps of about 50 ns.
const (
	MaxLogSteps  = 1 << 22 // 0.2 s, in a log that is no longer than its traces
	StepsPerByte = 8       // that a byte of the log adds: 0.4 s for a MiB; programs log 25 kB between two traces
)

// The steps of work with files that is not counted one by one.
const (
	stepsPerOpen = 1000 // to open a file
	stepsPerStat = 50   // to see whether a file was replaced
)

// A Quota bounds the work for all traces of a log. The log may have many short traces, each of
// which could take the time that one may take; so the work depends on the bytes of the log that
// were read. If the Quota is spent, no file is searched for load biases or names. If it is spent
// twice, no trace is judged. The zero Quota is that of a new log.
type Quota struct {
	used  int   // steps, less those that the bytes of the log have added
	total int64 // all steps so far
}

// Add adds the steps for n further bytes of the log.
func (q *Quota) Add(n int) { q.used = max(0, q.used-n*StepsPerByte) }

// Spend takes n steps, which may be more than are left.
func (q *Quota) Spend(n int) {
	q.used = min(q.used+n, 4*MaxLogSteps)
	q.total += int64(n)
}

// Opened takes the steps for files that were opened, and for files of which it was looked at
// whether they were replaced.
func (q *Quota) Opened(opened, looked int) { q.Spend(opened*stepsPerOpen + looked*stepsPerStat) }

// Steps returns all steps so far.
func (q *Quota) Steps() int64 { return q.total }

// Left returns the number of steps that are left for searches, which may be negative.
func (q *Quota) Left() int { return MaxLogSteps - q.used }

// Exhausted reports whether no trace may be judged.
func (q *Quota) Exhausted() bool { return q.used >= 2*MaxLogSteps }
