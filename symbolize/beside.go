package symbolize

import "runtime"

// beside runs run, a part of a lookup, in another goroutine, if there is a processor for it, and looks
// the symbol up there, too. It returns a function that waits for the end of both.
func (m *module) beside(run func()) (wait func()) {
	if runtime.GOMAXPROCS(0) < 2 {
		run()
		return func() {}
	}
	return apart(func() {
		run()
		if m.early.wait == nil {
			m.early.find(m)
		}
	})
}

// apart runs run in another goroutine, and returns a function that waits for its end.
func apart(run func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	return func() { <-done }
}

// An earlySymbol is the symbol at the address of a lookup of debug information, found while that
// still reads.
type earlySymbol struct {
	names *names // for its name; nil: no symbol is wanted
	addr  uint64
	wait  func() // waits for a goroutine that only looks the symbol up; nil: there is none
	found bool
	symbol
}

// begin prepares to look the symbol at addr up, if no other goroutine can change what is read for it,
// and begins if it takes some time. For the first lookup in a file it does not: starting a thread
// takes as long, and the log may have no other.
func (y *earlySymbol) begin(m *module, n *names, addr uint64) {
	y.names, y.addr, y.wait, y.found = nil, addr, nil, false
	if n == nil || m.file != nil || m.table != nil { // compressed sections come and go
		return
	}
	y.names = n
	if m.obj.LoadSymbols() && m.lookups > 0 && runtime.GOMAXPROCS(0) > 1 {
		y.wait = apart(func() { y.find(m) })
	}
}

// find looks the symbol up. If it is not found, or reading it fails, the question looks it up again.
func (y *earlySymbol) find(m *module) {
	if y.names == nil {
		return
	}
	err := guard(func() error {
		sym, ok := m.obj.ReadySymbol(y.addr)
		if ok {
			y.symbol = named(&m.symbols, y.names, sym)
			y.found = true
		}
		return nil
	})
	if err != nil {
		y.found = false
	}
}

// end waits until the symbol was looked up.
func (y *earlySymbol) end() {
	if y.wait != nil {
		y.wait()
		y.wait = nil
	}
}
