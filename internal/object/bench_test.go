package object

import (
	"os"
	"testing"
)

// benchFile is an environment variable with the path of the benchmarks' file. Without it the
// benchmarks are skipped.
const benchFile = "SYMFILTER_BENCH_ELF"

func benchmarkPath(b *testing.B) string {
	path := os.Getenv(benchFile)
	if path == "" {
		b.Skip(benchFile + " names no file")
	}
	return path
}

func BenchmarkOpenAndFirstSymbol(b *testing.B) {
	path := benchmarkPath(b)
	for b.Loop() {
		f := openBench(b, path)
		f.Symbol(f.someAddress())
		f.close()
	}
}

func BenchmarkOpen(b *testing.B) {
	path := benchmarkPath(b)
	for b.Loop() {
		openBench(b, path).close()
	}
}

func BenchmarkSymbolByPass(b *testing.B) {
	f := openBench(b, benchmarkPath(b))
	defer f.close()
	addr := f.someAddress()
	for b.Loop() {
		f.symbols.lookups, f.symbols.passed = 0, 0
		f.Symbol(addr)
	}
}

func BenchmarkSymbolTable(b *testing.B) {
	f := openBench(b, benchmarkPath(b))
	defer f.close()
	f.Symbol(0)
	b.ReportMetric(float64(uint64(len(f.symbols.raw))/f.symbols.entry), "symbols")
	for b.Loop() {
		f.symbols.sorted = nil
		f.symbols.sort()
	}
}

func BenchmarkSymbolByTable(b *testing.B) {
	f := openBench(b, benchmarkPath(b))
	defer f.close()
	addr := f.someAddress()
	f.Symbol(addr)
	f.symbols.sort()
	for b.Loop() {
		f.Symbol(addr)
	}
}

func BenchmarkBuildID(b *testing.B) {
	f := openBench(b, benchmarkPath(b))
	defer f.close()
	for b.Loop() {
		if _, err := BuildID(f.osFile, int64(f.size)); err != nil {
			b.Fatal(err)
		}
	}
}

// A benchFileOpen is an open file and its descriptor.
type benchFileOpen struct {
	*File
	osFile *os.File
}

func openBench(b *testing.B, path string) benchFileOpen {
	osFile, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	info, err := osFile.Stat()
	if err != nil {
		b.Fatal(err)
	}
	f, err := Open(osFile, info.Size(), osFile)
	if err != nil {
		b.Fatal(err)
	}
	return benchFileOpen{f, osFile}
}

func (f benchFileOpen) close() {
	f.File.Close()
	f.osFile.Close()
}

// someAddress returns the address in the middle of the code.
func (f benchFileOpen) someAddress() uint64 {
	s, _ := f.Section(".text")
	return s.Addr + s.Size/2
}

func BenchmarkNextSymbol(b *testing.B) {
	f := openBench(b, benchmarkPath(b))
	defer f.close()
	sym, _ := f.Symbol(f.someAddress())
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			f.symbols.rarely().next.searches = 0
			f.NextSymbol(&sym, sym.Addr)
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			f.symbols.rarely().next = nextTable{searches: linearNext}
			f.NextSymbol(&sym, sym.Addr)
		}
	})
}

func BenchmarkSymbolsNamed(b *testing.B) {
	f := openBench(b, benchmarkPath(b))
	defer f.close()
	sym, _ := f.Symbol(f.someAddress())
	name := string(sym.Name)
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			f.symbols.rarely().names.searches = 0
			f.SymbolsNamed(name)
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			f.symbols.rarely().names = nameTable{searches: linearNames}
			f.SymbolsNamed(name)
		}
	})
}
