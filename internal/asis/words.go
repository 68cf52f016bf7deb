package asis

import (
	"os"
	"strings"
)

// Expand replaces each word @FILE by the words of the file, recursively. It keeps the word if the
// file cannot be read, is more than 16 files deep, or exceeds the 1 MiB for all files.
func Expand(words []string) []string {
	room := int64(maxResponse)
	return expand(words, 0, &room)
}

// expand is Expand for words in depth nested files. room is the number of bytes that may still be
// read.
func expand(words []string, depth int, room *int64) []string {
	var all []string
	for _, word := range words {
		if strings.HasPrefix(word, "@") && depth < maxResponseDepth {
			if info, err := os.Stat(word[1:]); err == nil && info.Mode().IsRegular() && info.Size() <= *room {
				if data, err := os.ReadFile(word[1:]); err == nil {
					*room -= max(1, int64(len(data)))
					all = append(all, expand(ShellWords(string(data)), depth+1, room)...)
					continue
				}
			}
		}
		all = append(all, word)
	}
	return all
}

// ShellWords splits s at blanks as LLVM's tools do. Quotes of both kinds keep blanks, a backslash
// keeps any byte, and empty words are dropped.
func ShellWords(s string) (words []string) {
	var word []byte
	quote := byte(0)
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s), quote == 0 && strings.IndexByte(" \t\r\n", s[i]) >= 0:
			if len(word) > 0 {
				words = append(words, string(word))
			}
			word = word[:0]
		case s[i] == '\\' && i+1 < len(s):
			i++
			word = append(word, s[i])
		case quote == 0 && (s[i] == '"' || s[i] == '\''):
			quote = s[i]
		case s[i] == quote:
			quote = 0
		default:
			word = append(word, s[i])
		}
	}
	return words
}
