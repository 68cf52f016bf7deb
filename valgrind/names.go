package valgrind

// document is the element that holds a process's report.
const document = "valgrindoutput"

// A kind says what is in an element.
type kind uint8

const (
	unknown   kind = iota // what its first '<' says: text, or other elements
	leaf                  // text; a '<' in it was not escaped
	rawLeaf               // text that Valgrind does not escape
	container             // other elements
	topLevel              // likewise; it begins a record even where another has not ended
)

// isLoss reports whether this is one of the kinds of memory that a leak_summary
// holds side by side.
func isLoss(name string) bool {
	switch name {
	case "definitely_lost", "indirectly_lost", "possibly_lost", "still_reachable", "suppressed":
		return true
	}
	return false
}

// elements are those that reports have, by kind.
var elements = [...][]string{
	leaf: {
		"ip", "obj", "fn", "dir", "file", "line", "unique", "tid", "kind", "what", "text", "leakedbytes",
		"leakedblocks", "hthreadid", "auxwhat", "skind", "skaux", "fun", "count", "name", "address", "siaddr",
		"signo", "signame", "sicode", "event", "arg", "exe", "state", "time", "var", "value", "fd", "path", "pid",
		"ppid", "tool", "protocolversion", "protocoltool",
	},
	rawLeaf: {
		"threadname", "sname", "rawtext", "usercomment",
	},
	container: {
		"frame", "stack", "xwhat", "xauxwhat", "origin", "suppression", "sframe", "pair", "argv", "vargv",
	},
	topLevel: {
		"error", "announcethread", "clientmsg", "fatal_signal", "trace", "preamble", "args", "status",
		"errorcounts", "suppcounts", "heap_summary", "leak_summary", "error_summary", document,
	},
}

// An element is one of a known name.
type element struct {
	name string
	kind kind
}

// byName are all of them.
var byName = func() map[string]element {
	all := make(map[string]element)
	for k, names := range elements {
		for _, name := range names {
			all[name] = element{name, kind(k)}
		}
	}
	return all
}()

// known returns the kind and the name of an element.
func known(name []byte) (string, kind) {
	if e, ok := byName[string(name)]; ok {
		return e.name, e.kind
	}
	return string(name), unknown
}
