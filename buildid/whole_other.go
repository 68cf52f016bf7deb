//go:build !linux

package buildid

// A whole is a small file in memory. On this system no file is read whole.
type whole struct {
	data  []byte
	state state
}

func (w *whole) free() {}

func readWhole(string, int64) (w whole, ok bool, err error) { return w, false, nil }
