//go:build !linux

package buildid

// A whole is a small file in memory, on systems where that is known to pay.
type whole struct {
	data  []byte
	state state
}

func (w *whole) free() {}

func readWhole(string, int64) (w whole, ok bool, err error) { return w, false, nil }
