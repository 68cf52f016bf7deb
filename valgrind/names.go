package valgrind

import (
	"slices"
	"sync"
)

// document is the name of the element that holds the report of a process.
const document = "valgrindoutput"

// A kind tells what elements of one name may contain.
type kind uint8

const (
	unknown   kind = iota // text, or other elements, depending on the first '<' in it
	leaf                  // text; a '<' in it was not escaped
	rawLeaf               // text that Valgrind does not escape
	container             // other elements
	topLevel              // other elements; it begins a record even if the one before has not ended
)

// isLoss reports whether this is the name of a kind of lost memory, which a leak_summary lists side
// by side.
func isLoss(name string) bool {
	return slices.ContainsFunc(lossKinds[:], func(k lossKind) bool { return k.element == name })
}

// An element is the name and the kind of an element that reports have.
type element struct {
	name string
	kind kind
}

// elements returns all elements that reports have, by name. The map is made for the first report: other
// runs need none.
var elements = sync.OnceValue(func() map[string]element {
	all := make(map[string]element)
	for kind, names := range map[kind][]string{
		leaf: {
			"ip", "obj", "fn", "dir", "file", "line",
			"unique", "tid", "kind", "what", "text", "leakedbytes", "leakedblocks", "hthreadid", "auxwhat",
			"skind", "skaux", "fun", "count", "name", "address",
			"siaddr", "signo", "signame", "sicode", "event",
			"arg", "exe", "state", "time", "var", "value", "fd", "path",
			"pid", "ppid", "tool", "protocolversion", "protocoltool",
		},
		rawLeaf:   {"threadname", "sname", "rawtext", "usercomment"},
		container: {"frame", "stack", "xwhat", "xauxwhat", "origin", "suppression", "sframe", "pair", "argv", "vargv"},
		topLevel: {
			"error", "announcethread", "clientmsg", "fatal_signal", "trace",
			"preamble", "args", "status", "errorcounts", "suppcounts",
			"heap_summary", "leak_summary", "error_summary", document,
		},
	} {
		for _, name := range names {
			all[name] = element{name, kind}
		}
	}
	return all
})

// elementNamed returns the name of an element as a string, and its kind.
func elementNamed(name []byte) (string, kind) {
	if e, ok := elements()[string(name)]; ok {
		return e.name, e.kind
	}
	return string(name), unknown
}
