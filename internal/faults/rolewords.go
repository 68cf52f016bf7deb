package faults

import (
	"math/bits"
	"sync"

	"github.com/symfilter/symfilter/internal/findings"
)

// A roleWord is a set of meanings of the words that introduce a stack, with a bit for each meaning.
type roleWord uint8

const (
	freedBy roleWord = 1 << iota
	allocatedBy
	leakOf
	valgrindFreed
	valgrindAllocated
	accessOf
	previousOne
	createdBy
)

// roleWords are words that introduce a stack, with their meanings.
var roleWords = []struct {
	text string
	word roleWord
}{
	{"freed by ", freedBy}, {"deallocated by ", freedBy},
	{"allocated by ", allocatedBy}, {"allocated at", allocatedBy}, {"allocated from", allocatedBy},
	{"was created by a", allocatedBy}, {"allocated here", allocatedBy},
	{" leak of ", leakOf},
	{" free'd ", valgrindFreed}, {" alloc'd ", valgrindAllocated},
	{"read of size ", accessOf}, {"write of size ", accessOf}, {"previous ", previousOne},
	{" created by ", createdBy}, {" created at:", createdBy},
}

// rolePhrases has the texts of roleWords, with the same indexes.
var rolePhrases = sync.OnceValue(func() *phrases {
	var texts []string
	for i := range roleWords {
		texts = append(texts, roleWords[i].text)
	}
	return newPhrases(texts)
})

// wordsIn returns the meanings of all roleWords in said, the text of the line before a stack.
func wordsIn(said []byte) (words roleWord) {
	p := rolePhrases()
	for at, set := p.next(said, 0); set != 0; at, set = p.next(said, at+1) {
		for ; set != 0; set &= set - 1 {
			words |= roleWords[bits.TrailingZeros64(set)].word
		}
	}
	return words
}

// roleOf returns the role of a stack, from the line before it.
func roleOf(said []byte) findings.Role {
	switch words := wordsIn(said); {
	case words&freedBy != 0:
		return findings.RoleFreed
	case words&allocatedBy != 0:
		return findings.RoleAllocated
	}
	return findings.RoleOther
}
