package judge

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// runningCode returns pairs of code of a kernel: from its file, and from its memory.
func runningCode(t *testing.T) (pairs [][2][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/kernelcode.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		var pair [2][]byte
		for i := range pair {
			if pair[i], err = hex.DecodeString(words[1+i]); err != nil {
				t.Fatal(err)
			}
		}
		pairs = append(pairs, pair)
	}
	return pairs
}

// A running kernel has patched its code. Nevertheless, the code in its file at the same address
// must never be refuted, and must often be proved. Code at other addresses must never be proved,
// and must mostly be refuted.
func TestCodeOfARunningKernelIsThatOfItsFile(t *testing.T) {
	pairs := runningCode(t)
	if len(pairs) != 48 {
		t.Fatalf("%d pairs", len(pairs))
	}
	proved, refuted := 0, 0
	for i, p := range pairs {
		same, other := compareX86(p[0], p[1], false)
		if other {
			t.Errorf("pair %d is refuted", i)
		}
		if same {
			proved++
		}
		for j, q := range pairs {
			if j == i {
				continue
			}
			same, other := compareX86(p[0], q[1], false)
			if same && string(p[0]) != string(q[0]) {
				t.Errorf("file %d has the code of memory %d", i, j)
			}
			if other {
				refuted++
			}
		}
	}
	if proved < 20 || refuted < len(pairs)*len(pairs)/2 {
		t.Errorf("%d pairs are proved, %d of different places refuted", proved, refuted)
	}
}

// AArch64 code must be compared by instructions, since a report lists only five.
func TestCodeOfArm64IsCompared(t *testing.T) {
	words := func(text string) (b []byte) {
		for word := range strings.FieldsSeq(strings.Trim(text, "()")) {
			u, err := hex.DecodeString(strings.Trim(word, "()"))
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, u[3], u[2], u[1], u[0])
		}
		return b
	}
	const file = "d503201f a9be7bfd 910003fd f9000bf3 (f9400013)"
	for _, tc := range []struct {
		name, file, log string
		same, other     bool
	}{
		{"the same", file, file, true, false},
		{"traced", file, "97fffffe a9be7bfd 910003fd f9000bf3 (f9400013)", true, false},
		{"an alternative", file, "d503201f a9be7bfd aa1e03e9 d50323bf (f9400013)", false, false},
		{"other code", file, "d503201f 52800021 b9000001 f9400a60 (b9400014)", false, true},
		{"branches only", "d503201f 94000001 94000002 14000003 (d503201f)", "52800021 b9000001 f9400a60 aa0003f3 (b9400014)", false, false},
		{"padding", "d503201f d503201f d503201f d503201f (d503201f)", file, false, false},
	} {
		if same, other := compareArm64(words(tc.file), words(tc.log)); same != tc.same || other != tc.other {
			t.Errorf("%s: same %v, other %v", tc.name, same, other)
		}
	}
}
