package bundle

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxName       = 64 // bytes of a module's base name; a longer one is masked
	minHex        = 2  // digits of a number without 0x that may be an address
	maxHex        = 16 // digits of a 64-bit number
	minIDDigits   = 8  // minimum digits of a build ID's beginning in a line
	maxOffset     = 7  // digits of an offset from a symbol: functions are smaller than 256 MiB
	maxDecOffset  = 6  // decimal digits of such an offset, as bcc prints it
	maxFrameDigit = 4  // digits of a frame's number
	nearBits      = 28 // numbers that differ only in these low bits may be in one module
)

// fixedWords are words of markup and of the frames that dialects print. They are printed unmasked,
// since they are not private.
var fixedWords = sync.OnceValue(func() map[string]bool {
	words := make(map[string]bool)
	for _, w := range strings.Fields(`
		pc lr ra ip sp fp bt mmap module load elf reset data symbol hexdict dumpfile r rx rw rwx
		in at by from frame function unknown null backtrace deleted offset inlined segfault error
		BuildId BuildID build_id build_id_offset buildId file_name address Backtrace Object Binary
		file Host Frame Call Trace somap processInfo path vdso vsyscall RIP EIP PC SP XEN EE EL3
		LD TA C J V n a ERROR SUMMARY AddressSanitizer HWAddressSanitizer LeakSanitizer
		MemorySanitizer ThreadSanitizer UndefinedBehaviorSanitizer BUG KASAN no`) {
		words[w] = true
	}
	return words
})

// A known holds numbers and names of the unnamed frames in a line. They may be printed unmasked.
type known struct {
	numbers []uint64 // addresses and offsets
	frames  []uint64 // numbers of frames
	ids     []string // build IDs, as hexadecimal digits
	names   []string // base names of modules
}

// addNumber adds an address or offset. It ignores 0, and numbers whose upper 16 bits are
// neither all 0 nor all 1. Such numbers are keys or tagged addresses.
func (k *known) addNumber(n uint64) {
	if n != 0 && (n>>48 == 0 || n>>48 == 0xffff) {
		k.numbers = append(k.numbers, n)
	}
}

// firstKnown returns the offset of the first number, build ID or name of k in a line. It returns 0
// if the line has none.
func (k *known) firstKnown(line string) int {
	for i := 0; i < len(line); {
		n := max(1, wordLen(line[i:]))
		if word := line[i : i+n]; k.nameAt(line, i) != "" || k.isID(word) || k.isNumber(word) {
			return i
		}
		i += n
	}
	return 0
}

// appendShape appends a line with masked text. The names and numbers of k, fixed words and
// offsets stay. Other letters become x, and digits 0.
func (k *known) appendShape(dst []byte, line string) []byte {
	for i := 0; i < len(line); {
		if name := k.nameAt(line, i); name != "" {
			dst = append(dst, name...)
			i += len(name)
			continue
		}
		n := wordLen(line[i:])
		if n == 0 {
			r, size := utf8.DecodeRuneInString(line[i:])
			dst = append(dst, maskOther(r))
			i += size
			continue
		}
		dst = k.appendWord(dst, line, i, i+n)
		i += n
	}
	return dst
}

// nameAt returns a module's name that is a whole word at the start of line[i:], or "".
func (k *known) nameAt(line string, i int) string {
	if i > 0 && isNameByte(line[i-1]) {
		return ""
	}
	for _, name := range k.names {
		if rest, ok := strings.CutPrefix(line[i:], name); ok && endsName(rest) {
			return name
		}
	}
	return ""
}

// endsName reports whether a name may end before rest, which may begin with an offset.
func endsName(rest string) bool {
	if rest == "" || !isNameByte(rest[0]) {
		return true
	}
	if isWordByte(rest[0]) {
		return false
	}
	if rest[0] == '+' {
		return len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9'
	}
	return len(rest) == 1 || !isNameByte(rest[1])
}

// appendWord appends the word line[from:to], masked unless it may be kept.
func (k *known) appendWord(dst []byte, line string, from, to int) []byte {
	word := line[from:to]
	switch {
	case fixedWords()[word], k.isID(word), k.isNumber(word), k.isFrame(word), isOffset(line, from, to):
		return append(dst, word...)
	case isPrefixed(word): // an unknown address: only its length is shown
		dst, word = append(dst, "0x"...), word[2:]
		for range word {
			dst = append(dst, '0')
		}
		return dst
	}
	return appendMask(dst, word)
}

func (k *known) isID(word string) bool {
	return len(word) >= minIDDigits && slices.ContainsFunc(k.ids, func(id string) bool {
		return strings.HasPrefix(id, strings.ToLower(word))
	})
}

// isNumber reports whether a word is one of k's numbers, or an address near one of them.
func (k *known) isNumber(word string) bool {
	digits := strings.TrimPrefix(strings.TrimPrefix(word, "0x"), "0X")
	if len(digits) > maxHex || len(word) < minHex {
		return false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return false
	}
	for _, m := range k.numbers {
		if n == m || n>>nearBits != 0 && n>>nearBits == m>>nearBits || word == strconv.FormatUint(m, 10) {
			return true
		}
	}
	return false
}

func (k *known) isFrame(word string) bool {
	n, err := strconv.ParseUint(word, 10, 64)
	return err == nil && len(word) <= maxFrameDigit && slices.Contains(k.frames, n)
}

// isOffset reports whether the word line[from:to] is an offset from a symbol, as in +0x1a/0x40 and
// +22.
func isOffset(line string, from, to int) bool {
	before := strings.TrimRight(line[:from], " ")
	if before == "" || to < len(line) && !strings.ContainsRune(" )]>/,;:}\t\"", rune(line[to])) {
		return false
	}
	word, sign := line[from:to], before[len(before)-1]
	if isPrefixed(word) {
		return len(word) <= 2+maxOffset && (sign == '+' || sign == '/')
	}
	_, err := strconv.ParseUint(word, 10, 64)
	return err == nil && sign == '+' && len(before) == from && len(word) <= maxDecOffset
}

// isPrefixed reports whether a word is a hexadecimal number with 0x, of at most 64 bits.
func isPrefixed(word string) bool {
	if len(word) < 3 || len(word) > 2+maxHex || word[0] != '0' || word[1]|0x20 != 'x' {
		return false
	}
	_, err := strconv.ParseUint(word[2:], 16, 64)
	return err == nil
}

// appendMask appends word with x for each letter and 0 for each digit.
func appendMask(dst []byte, word string) []byte {
	for _, r := range word {
		dst = append(dst, maskOther(r))
	}
	return dst
}

// maskOther returns the byte that masks a character: x for letters and characters beyond ASCII,
// 0 for digits, and a dot for control characters. TABs and other characters stay.
func maskOther(r rune) byte {
	switch {
	case r >= '0' && r <= '9':
		return '0'
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= utf8.RuneSelf:
		return 'x'
	case r == '\t', r >= ' ' && r < 0x7f:
		return byte(r)
	}
	return '.'
}

// wordLen returns the length of the ASCII letters, digits and underscores at the start of s.
func wordLen(s string) int {
	n := 0
	for n < len(s) && isWordByte(s[n]) {
		n++
	}
	return n
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// isNameByte reports whether c may be within a plain name.
func isNameByte(c byte) bool { return isWordByte(c) || c == '.' || c == '-' || c == '+' }

func baseName(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// isPlain reports whether name looks like the base name of a file. A dialect may have mistaken
// other text for a module.
func isPlain(name string) bool {
	if name == "" || len(name) > maxName || !isWordByte(name[0]) {
		return false
	}
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return false
		}
	}
	return true
}

// isFile reports whether name looks like a file's, in folders with usual names. A list of files, a
// URL, a process title or a long hexadecimal number does not.
func isFile(name string) bool {
	base := baseName(name)
	isKey := len(base) >= maxHex && strings.Trim(strings.TrimPrefix(base, "0x"), "0123456789abcdefABCDEF") == ""
	return isPlain(base) && !isKey && !strings.ContainsAny(name, ",;:|?&@%\"'<>")
}

// shownName returns the base name of a module, masked unless the name looks like a file's.
func shownName(name string) string {
	base := baseName(name)
	if isFile(name) {
		return base
	}
	if len(base) > maxName {
		base = base[:maxName]
	}
	return string(appendMask(nil, base))
}
