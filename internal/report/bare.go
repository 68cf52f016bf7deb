package report

import "strings"

// BareName returns the name of a function as in its declaration, from the demangled name: with
// template arguments, but without scopes, parameters and result type.
//
//	std::vector<int>::size() const    size
//	int ns::most<int>(int, int)       most<int>
func BareName(demangled string) string {
	name := demangled
	begin, end, depth := 0, len(name), 0
scan:
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case depth == 0 && strings.HasPrefix(name[i:], "operator") && (i == 0 || !IsWordByte(name[i-1])) && !(i+8 < len(name) && IsWordByte(name[i+8])):
			return withoutSuffixes(operatorName(name[i:]))
		case c == '<', c == '{': // {lambda(int)#1}
			depth++
		case c == '>', c == '}':
			depth--
		case c == '(' && strings.HasPrefix(name[i:], anonymous):
			i += len(anonymous) - 1
		case c == '(' && depth > 0:
			depth++
		case c == '(', c == '[' && depth == 0 && i > begin: // parameters, an ABI tag: f[abi:cxx11]
			end = i
			break scan
		case c == ')':
			depth--
		case (c == ' ' || c == ':') && depth == 0:
			begin = i + 1
		}
	}
	if begin >= end {
		return demangled
	}
	return withoutSuffixes(name[begin:end])
}

const anonymous = "(anonymous namespace)"

// operatorName returns the name of an operator without its parameters.
func operatorName(name string) string {
	const call = "operator()"
	if strings.HasPrefix(name, call) {
		return call
	}
	if i := strings.IndexByte(name, '('); i > 0 {
		return name[:i]
	}
	return name
}

// withoutSuffixes removes the suffixes of numbers in template arguments: most<0, 1> for most<0ul,
// 1ul>. Demanglers print these suffixes, but GCC does not.
func withoutSuffixes(name string) string {
	if strings.IndexByte(name, '<') < 0 {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); {
		c := name[i]
		b = append(b, c)
		i++
		if c < '0' || c > '9' {
			continue
		}
		if n := len(b); n > 1 && IsWordByte(b[n-2]) && (b[n-2] < '0' || b[n-2] > '9') {
			continue // a digit of a name
		}
		if i < len(name) && '0' <= name[i] && name[i] <= '9' {
			continue
		}
		for end := i; end < len(name); end++ {
			if c := name[end]; c != 'u' && c != 'l' {
				if c == ',' || c == '>' {
					i = end
				}
				break
			}
		}
	}
	return string(b)
}

// IsWordByte reports whether c may be in the middle of a word: a letter, a digit or an underscore.
func IsWordByte(c byte) bool {
	return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}
