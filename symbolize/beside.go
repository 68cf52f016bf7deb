package symbolize

import "runtime"

// beside calls run, which is part of a lookup. With several processors, it calls run in another
// goroutine, which then also looks up the symbol, unless begin has started a goroutine for that.
// wait waits for the end of run and of that lookup.
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

// apart calls run in another goroutine and returns a function that waits for it.
func apart(run func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	return func() { <-done }
}

// An earlySymbol looks up the symbol at an address while debug information is searched for the same
// address.
type earlySymbol struct {
	names *names // demangles the symbol's name; nil if no symbol is wanted
	addr  uint64
	wait  func() // waits for the goroutine that looks up the symbol; nil if there is none
	found *symbol
}

// begin prepares the lookup of the symbol at addr. If the lookup is slow and there are several
// processors, begin starts it in a goroutine, except for the first question to a file: starting a
// thread takes as long as the lookup. begin does nothing if the symbol is in another file, or if
// the file has compressed sections.
func (y *earlySymbol) begin(m *module, n *names, addr uint64) {
	y.names, y.addr, y.wait, y.found = nil, addr, nil, nil
	// compressed sections may be inflated and released meanwhile
	if n == nil || m.file != nil || m.table != nil {
		return
	}
	y.names = n
	if m.obj.LoadSymbols() && m.questions > 0 && runtime.GOMAXPROCS(0) > 1 {
		y.wait = apart(func() { y.find(m) })
	}
}

// find looks up the symbol. If it finds none, or reading fails, the question repeats the lookup.
func (y *earlySymbol) find(m *module) {
	if y.names == nil {
		return
	}
	err := guard(func() error {
		sym, ok := m.obj.ReadySymbol(y.addr)
		if ok {
			v := named(&m.symbols, y.names, sym)
			y.found = &v
		}
		return nil
	})
	if err != nil {
		y.found = nil
	}
}

func (y *earlySymbol) end() {
	if y.wait != nil {
		y.wait()
		y.wait = nil
	}
}
