package judge

import (
	"bytes"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

const (
	maxDemangled = 1 << 12 // symbols of a file that a trace demangles for lookups, 2 µs each
	maxSameName  = 64      // symbols with one demangled name
)

// A names finds the symbols of a file by name, within the log's Quota. The zero value has no limit.
type names struct {
	demangle  func(string) string
	memory    *Memory
	quota     *dialect.Quota
	demangled int  // symbols demangled so far
	over      bool // symbols were not searched, because the Quota is spent
}

// spend subtracts n steps from the Quota. It returns false, and subtracts nothing, if no steps were
// left. Without a Quota, it returns true.
func (n *names) spend(steps int) bool {
	if n.quota == nil {
		return true
	}
	if n.quota.Left() <= 0 {
		n.over = true
		return false
	}
	n.quota.Spend(steps)
	return true
}

// shownSymbols returns the symbols of f, the file of m, that programs show as name: demangled, with
// or without parameters. It returns nil for more than maxSameName symbols, or if a limit of the
// work is reached.
func (m *Image) shownSymbols(f *object.File, name string) []object.Symbol {
	n := &m.names
	word := []byte(lastWord(name))
	if n.demangle == nil || len(word) == 0 {
		return nil
	}
	key := about(m).text(name).sum()
	if all, ok := n.memory.shown.get(key, maxShown); ok {
		return all
	}
	if n.demangled > maxDemangled || !n.spend(0) {
		return nil
	}
	all, complete := n.shown(f, name, word)
	if complete {
		n.memory.shown.put(key, all, maxShown)
	}
	return all
}

// shown finds the symbols of f that programs show as name, whose last word is word. complete is
// false if a limit of the work is reached.
func (n *names) shown(f *object.File, name string, word []byte) (all []object.Symbol, complete bool) {
	name = withoutCrateIDs(name)
	hash := rustHash(name)
	want, cut := closed(name), !strings.HasSuffix(name, ")") && !strings.HasSuffix(name, "const")
	plainWanted := "" // glog shows "()" for all parameters, and "<>" for all template arguments
	if strings.HasSuffix(name, "()") || strings.Contains(name, "<>") {
		plainWanted = plainName(name)
	}
	symbols, steps := f.SymbolsWithWord(string(word))
	n.quota.Spend(steps)
	for s := range symbols {
		if !bytes.HasPrefix(s.Name, []byte("_")) || !bytes.Contains(s.Name, word) {
			continue
		}
		if len(all) >= maxSameName {
			return nil, true
		}
		if n.demangled++; n.demangled > maxDemangled {
			return nil, false
		}
		n.quota.Spend(stepsPerDemangle)
		plain, _, _ := strings.Cut(string(s.Name), "@")
		shown := closed(n.demangle(plain))
		if hash != "" || shown == want || cut && strings.HasPrefix(shown, want+"(") || plainWanted != "" && plainName(shown) == plainWanted {
			// a symbol may be in both symbol tables
			if !slices.ContainsFunc(all, func(o object.Symbol) bool { return o.Addr == s.Addr }) {
				s.Name = nil // the name is invalid after the file is closed
				all = append(all, s)
			}
		}
	}
	return all, true
}

// rustHash returns the hash at the end of a Rust name, such as hb4f9496a9a3f4b05 in
// ledger::settle::hb4f9496a9a3f4b05, or "". The hash is unique among symbols.
func rustHash(name string) string {
	const digits = 16
	at := len(name) - digits
	if at < 3 || name[at-3:at] != "::h" || afterHex(name[at:]) != "" {
		return ""
	}
	return name[at-1:]
}

// afterHex returns s without its leading hexadecimal digits.
func afterHex(s string) string { return strings.TrimLeft(s, "0123456789abcdefABCDEF") }

// withoutCrateIDs returns name without the crate hashes in Rust's full backtraces: core::fmt::write
// for core[c1f1a4ba060b9bfa]::fmt::write.
func withoutCrateIDs(name string) string {
	from := 0
	for {
		i := strings.IndexByte(name[from:], '[')
		if i < 0 {
			return name
		}
		from += i + 1
		if rest := afterHex(name[from:]); len(rest) < len(name)-from && strings.HasPrefix(rest, "]::") {
			name = name[:from-1] + rest[1:]
			from--
		}
	}
}

// closed returns a demangled name with >> for > >, as newer demanglers write it.
func closed(name string) string {
	for strings.Contains(name, "> >") {
		name = strings.ReplaceAll(name, "> >", ">>")
	}
	return name
}

// lastWord returns the identifier of the function in a demangled name, which also occurs in the
// mangled name. It returns "" without one, as for operators.
func lastWord(name string) string {
	if strings.Contains(name, "operator") {
		return ""
	}
	name = strings.ReplaceAll(name, "(anonymous namespace)::", "")
	depth, from, to := 0, 0, len(name)
	for i := range len(name) {
		switch c := name[i]; {
		case c == '<':
			if depth == 0 {
				to = min(to, i)
			}
			depth++
		case c == '>':
			depth--
		case depth > 0:
		case c == '(' || c == '[':
			return name[from:min(to, i)]
		case c == ' ' || c == ':' || c == '~': // a type or a scope ends
			from, to = i+1, len(name)
		}
	}
	return name[from:to]
}
