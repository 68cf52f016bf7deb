package dialect

import "slices"

// A window is a set of kinds of traces, one bit for each. The window of a kind is open for
// WindowLines lines after a header or a frame, or for as many lines as the header needs.
type window uint32

// windowTrace is open after each frame that other lines may help to resolve, and after each map.
// While windowTrace is open, every line is read: any line may have maps or modules.
const windowTrace window = 1

// Windows of single dialects.
const (
	windowJVM window = windowTrace << (iota + 1)
	windowEnvoy
	windowSeastar
	windowCpptrace
	windowLLVM
	windowGo
	windowHeap
	windowFortran
	windowBreakpad
	windowCuda
	windowCoredump
	windowABRT
	windowEuStack
	windowGDB // opened for one line by the start of a wrapped frame
	windowESPRust
	windowFirmware // always open if [Reader.Firmware] is set and OnX86 is not
	windowX86      // always open if Reader.Firmware and OnX86 are set
	windowSwift
)

const (
	WindowLines = 256   // lines for which a window stays open
	maxWindow   = 16384 // maximum lines for which a header can keep a window open
	maxWindows  = 32
)

// windows holds the extent of each window, in line numbers.
type windows struct {
	until      [maxWindows]int64 // last line of each window; -1 if never opened
	latest     int64             // largest of until
	holdsUntil int64             // frames up to this line must wait for maps

	// sought has a line number for each window: the lines before it were already searched for the
	// window's headers.
	sought [maxWindows]int64
}

func (w *windows) reset() {
	w.latest, w.holdsUntil = -1, -1
	for i := range w.until {
		w.until[i], w.sought[i] = -1, -1
	}
}

// open opens some windows at the line with this number.
func (w *windows) open(some window, number int64) { w.openUntil(some, number+WindowLines) }

// openUntil opens some windows up to the given line.
func (w *windows) openUntil(some window, last int64) {
	for i := range w.until {
		if some&(1<<i) != 0 {
			w.until[i] = max(w.until[i], last)
			w.latest = max(w.latest, w.until[i])
		}
	}
}

// openAt returns the windows that are open at the line with this number.
func (w *windows) openAt(number int64) (all window) {
	if number > w.latest {
		return 0
	}
	for i, until := range w.until {
		if number <= until {
			all |= 1 << i
		}
	}
	return all
}

// saved returns the last line of each window, except for unused windows at the end.
func (w *windows) saved() []int64 {
	n := len(w.until)
	for n > 0 && w.until[n-1] < 0 {
		n--
	}
	return slices.Clone(w.until[:n])
}

// restore sets the last line of each window from a result of saved. No window stays open for more
// than maxWindow lines after the current line, which has the given number. restore ignores unknown
// windows.
func (w *windows) restore(until []int64, number int64) {
	w.latest = -1
	for i := range w.until {
		w.until[i] = -1
		if i < len(until) {
			w.until[i] = min(until[i], number+maxWindow)
		}
		w.latest = max(w.latest, w.until[i])
	}
}
