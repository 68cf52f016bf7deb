// Package demangle is github.com/ianlancetaylor/demangle with a budget of steps: it ends on any
// name.
//
// The library does not bound its work, and its callers cannot. A name of 240 bytes with nested
// conversion operators takes 20 s, and each 10 bytes more double the time. Packs take cubic time:
// 1.7 s for 1 KiB and more than 17 s for 4 KiB. The files zcopy_*.go are the library's source with
// the patches in gen, without functions that print syntax trees for developers. gen/upstream.md
// explains each patch to the library's maintainers. After a new version of the library, or a change
// of a patch:
//
//	go generate ./internal/demangle
//
// A name is parsed at most three times, with and without the text after its dots, and printed once.
// That takes at most 5 ms.
package demangle

//go:generate go run ./gen
