package valgrind

import "slices"

// document is the name of the element that holds the report of a process.
const document = "valgrindoutput"

// A kind classifies elements by their content.
type kind uint8

const (
	unknown   kind = iota // text or other elements, depending on the first '<'
	leaf                  // text; a '<' in it is not escaped
	rawLeaf               // text that Valgrind does not escape
	container             // other elements
	topLevel              // other elements; begins a record even if the last one has no end
)

// isLoss reports whether name is a kind of lost memory in a leak_summary, such as
// "still_reachable".
func isLoss(name string) bool {
	return slices.ContainsFunc(lossKinds[:], func(k lossKind) bool { return k.element == name })
}

type element struct {
	name string
	kind kind
}

// elements lists all elements of reports, sorted by key. Unlike a map, an array needs no code
// when the program starts.
var elements = [...]element{
	{"arg", leaf},
	{"args", topLevel},
	{"argv", container},
	{"address", leaf},
	{"auxwhat", leaf},
	{"announcethread", topLevel},
	{"count", leaf},
	{"clientmsg", topLevel},
	{"dir", leaf},
	{"exe", leaf},
	{"error", topLevel},
	{"event", leaf},
	{"errorcounts", topLevel},
	{"error_summary", topLevel},
	{"fd", leaf},
	{"fn", leaf},
	{"fun", leaf},
	{"file", leaf},
	{"frame", container},
	{"fatal_signal", topLevel},
	{"hthreadid", leaf},
	{"heap_summary", topLevel},
	{"ip", leaf},
	{"kind", leaf},
	{"line", leaf},
	{"leakedbytes", leaf},
	{"leak_summary", topLevel},
	{"leakedblocks", leaf},
	{"name", leaf},
	{"obj", leaf},
	{"origin", container},
	{"pid", leaf},
	{"pair", container},
	{"path", leaf},
	{"ppid", leaf},
	{"preamble", topLevel},
	{"protocoltool", leaf},
	{"protocolversion", leaf},
	{"rawtext", rawLeaf},
	{"signo", leaf},
	{"skaux", leaf},
	{"skind", leaf},
	{"sname", rawLeaf},
	{"stack", container},
	{"state", leaf},
	{"sframe", container},
	{"siaddr", leaf},
	{"sicode", leaf},
	{"status", topLevel},
	{"signame", leaf},
	{"suppcounts", topLevel},
	{"suppression", container},
	{"tid", leaf},
	{"text", leaf},
	{"time", leaf},
	{"tool", leaf},
	{"trace", topLevel},
	{"threadname", rawLeaf},
	{"unique", leaf},
	{"usercomment", rawLeaf},
	{"var", leaf},
	{"value", leaf},
	{"vargv", container},
	{document, topLevel},
	{"what", leaf},
	{"xwhat", container},
	{"xauxwhat", container},
}

// key returns a number that sorts elements. Most names have different keys, and numbers compare
// faster than names.
func key(first byte, length int) int { return int(first)<<8 | length }

func elementNamed(name []byte) (string, kind) {
	if len(name) == 0 {
		return "", unknown
	}
	wanted, low, high := key(name[0], len(name)), 0, len(elements)
	for low < high {
		if middle := (low + high) / 2; key(elements[middle].name[0], len(elements[middle].name)) < wanted {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for ; low < len(elements) && elements[low].name[0] == name[0] && len(elements[low].name) == len(name); low++ {
		if elements[low].name == string(name) {
			return elements[low].name, elements[low].kind
		}
	}
	return string(name), unknown
}
