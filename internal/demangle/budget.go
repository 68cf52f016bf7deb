// Package demangle is github.com/ianlancetaylor/demangle with a budget of steps: it ends on any
// name.
//
// The library has no bound on its work, and no place where a caller could count it. A name of 240
// bytes with nested conversion operators takes it 20 s, and twice as long for each 10 bytes more;
// packs take cubic time, 1.7 s for 1 KiB and more than 17 s for 4 KiB. The files zcopy_*.go are its source with calls of the budget woven in,
// and without what prints syntax trees for developers. copy_test.go makes them, and says where the
// calls are; after a new version of the library:
//
//	go test ./internal/demangle -run TestCopy -update
package demangle

// maxSteps bounds each pass over a name: it is parsed three times at most, with and without what
// follows its dots, and printed once. A step takes about 2 ns, so a name takes 5 ms at most. Of the 337,000 names of LLVM, Clang, Boost, the GNU and
// the Rust compilers, none takes more than an eighth; a function of 110 types takes all, because
// the library takes quadratic time for packs.
const maxSteps = 600_000

// Steps of what the budget is taken for.
const (
	retryStep = 10_000 // a part of the name that may be parsed twice, and so may be its parts
	parseStep = 20     // a token of a C++ name: some allocations
	rustStep  = 2      // a token of a Rust name, which is printed at once
	visitStep = 40     // a node of the tree that is visited: an entry of a map
	printStep = 8      // a node that is printed; and 1 for each node around it, which are compared
)

// TooManySteps is the value of the panic that ends the work on a name that takes too much of it.
const TooManySteps = tooManySteps("demangle: too many steps")

type tooManySteps string

func (t tooManySteps) Error() string { return string(t) }

// A budget is what is left for one name. Its zero value is a full one.
type budget struct{ spent int }

// take spends n steps. It panics with TooManySteps if the budget does not have them.
func (b *budget) take(n int) {
	if b.spent += n; b.spent > maxSteps {
		panic(TooManySteps)
	}
}
