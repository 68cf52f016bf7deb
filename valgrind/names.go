package valgrind

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
	switch name {
	case "definitely_lost", "indirectly_lost", "possibly_lost", "still_reachable", "suppressed":
		return true
	}
	return false
}

// elementNamed returns the name of an element as a string, and its kind. It knows all elements that
// reports have.
func elementNamed(name []byte) (string, kind) {
	switch string(name) {
	case "ip":
		return "ip", leaf
	case "obj":
		return "obj", leaf
	case "fn":
		return "fn", leaf
	case "dir":
		return "dir", leaf
	case "file":
		return "file", leaf
	case "line":
		return "line", leaf
	case "unique":
		return "unique", leaf
	case "tid":
		return "tid", leaf
	case "kind":
		return "kind", leaf
	case "what":
		return "what", leaf
	case "text":
		return "text", leaf
	case "leakedbytes":
		return "leakedbytes", leaf
	case "leakedblocks":
		return "leakedblocks", leaf
	case "hthreadid":
		return "hthreadid", leaf
	case "auxwhat":
		return "auxwhat", leaf
	case "skind":
		return "skind", leaf
	case "skaux":
		return "skaux", leaf
	case "fun":
		return "fun", leaf
	case "count":
		return "count", leaf
	case "name":
		return "name", leaf
	case "address":
		return "address", leaf
	case "siaddr":
		return "siaddr", leaf
	case "signo":
		return "signo", leaf
	case "signame":
		return "signame", leaf
	case "sicode":
		return "sicode", leaf
	case "event":
		return "event", leaf
	case "arg":
		return "arg", leaf
	case "exe":
		return "exe", leaf
	case "state":
		return "state", leaf
	case "time":
		return "time", leaf
	case "var":
		return "var", leaf
	case "value":
		return "value", leaf
	case "fd":
		return "fd", leaf
	case "path":
		return "path", leaf
	case "pid":
		return "pid", leaf
	case "ppid":
		return "ppid", leaf
	case "tool":
		return "tool", leaf
	case "protocolversion":
		return "protocolversion", leaf
	case "protocoltool":
		return "protocoltool", leaf
	case "threadname":
		return "threadname", rawLeaf
	case "sname":
		return "sname", rawLeaf
	case "rawtext":
		return "rawtext", rawLeaf
	case "usercomment":
		return "usercomment", rawLeaf
	case "frame":
		return "frame", container
	case "stack":
		return "stack", container
	case "xwhat":
		return "xwhat", container
	case "xauxwhat":
		return "xauxwhat", container
	case "origin":
		return "origin", container
	case "suppression":
		return "suppression", container
	case "sframe":
		return "sframe", container
	case "pair":
		return "pair", container
	case "argv":
		return "argv", container
	case "vargv":
		return "vargv", container
	case "error":
		return "error", topLevel
	case "announcethread":
		return "announcethread", topLevel
	case "clientmsg":
		return "clientmsg", topLevel
	case "fatal_signal":
		return "fatal_signal", topLevel
	case "trace":
		return "trace", topLevel
	case "preamble":
		return "preamble", topLevel
	case "args":
		return "args", topLevel
	case "status":
		return "status", topLevel
	case "errorcounts":
		return "errorcounts", topLevel
	case "suppcounts":
		return "suppcounts", topLevel
	case "heap_summary":
		return "heap_summary", topLevel
	case "leak_summary":
		return "leak_summary", topLevel
	case "error_summary":
		return "error_summary", topLevel
	case document:
		return document, topLevel
	}
	return string(name), unknown
}
