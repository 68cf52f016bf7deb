// Package demangle is github.com/ianlancetaylor/demangle with a budget of steps, so that it ends on
// any name.
//
// The library has no bound on its work, and no place where a caller could count it. A name of 240
// bytes with nested conversion operators takes it 20 s, and twice as long for each 10 bytes more.
// Packs take cubic time, 1.7 s for 1 KiB and more than 17 s for 4 KiB. The files zcopy_*.go are its
// source, with the patches in gen, each explained for the library's maintainers, and without the
// functions that print syntax trees for developers. After a new version of the library, or a change
// of a patch:
//
//	go generate ./internal/demangle
//
// A name is parsed three times at most, with and without what follows its dots, and printed once:
// that takes 5 ms at most.
package demangle

//go:generate go run ./gen
