package buildid

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, digits, want string // want "" means an error
	}{
		{"sha1", "93ac61ec5a8a1234567890abcdef0123456789ab", "93ac61ec5a8a1234567890abcdef0123456789ab"},
		{"upper case", "ABCDEF", "abcdef"},
		{"mixed case", "aBcD", "abcd"},
		{"odd count is padded on the left", "abc", "0abc"},
		{"one digit", "7", "07"},
		{"one byte", "00", "00"},
		{"leading zeros count", "0000ab", "0000ab"},
		{"longest", strings.Repeat("5a", 64), strings.Repeat("5a", 64)},
		{"longest odd", strings.Repeat("a", 127), "0" + strings.Repeat("a", 127)},
		{"too long", strings.Repeat("a", 129), ""},
		{"far too long", strings.Repeat("a", 1<<20), ""},
		{"empty", "", ""},
		{"not hex", "0g", ""},
		{"not hex, odd", "0xa", ""},
		{"path", "../../etc/passwd", ""},
		{"NUL", "ab\x00c", ""},
		{"space", "ab cd", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, err := Parse([]byte(tt.digits))
			if tt.want == "" {
				if !errors.Is(err, ErrInvalidID) {
					t.Fatalf("Parse(%q) = %q, %v; want ErrInvalidID", tt.digits, id, err)
				}
				if !id.IsZero() {
					t.Errorf("Parse(%q) = %q beside its error, want the zero ID", tt.digits, id)
				}
				return
			}
			if err != nil {
				t.Fatalf("Parse(%q): %v", tt.digits, err)
			}
			if id.String() != tt.want || id.Len() != len(tt.want)/2 || id.IsZero() {
				t.Errorf("Parse(%q) = %q, length %d; want %q", tt.digits, id, id.Len(), tt.want)
			}
		})
	}
}

func TestFromBytesIsTheInverseOfBytes(t *testing.T) {
	for n := range 66 {
		raw := bytes.Repeat([]byte{0xa5}, n)
		id, err := FromBytes(raw)
		if ok := err == nil; ok != (1 <= n && n <= 64) {
			t.Errorf("FromBytes(%d bytes): error %v", n, err)
			continue
		}
		if err != nil {
			continue
		}
		raw[0] = 0 // the ID must hold a copy
		if got, want := id.Bytes(), bytes.Repeat([]byte{0xa5}, n); !bytes.Equal(got, want) {
			t.Errorf("FromBytes(%d bytes).Bytes() = %x, want %x", n, got, want)
		}
	}
}

func TestEqualIDsAreOneMapKey(t *testing.T) {
	a, _ := Parse([]byte("ABC"))
	b, _ := FromBytes([]byte{0x0a, 0xbc})
	m := map[ID]int{a: 1}
	m[b]++
	if len(m) != 1 || m[a] != 2 {
		t.Errorf("map %v, want one key of value 2", m)
	}
}

func TestAppendHexAllocatesNothingInAFittingBuffer(t *testing.T) {
	id, _ := FromBytes(bytes.Repeat([]byte{0xfe}, 20))
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { buf = id.AppendHex(buf[:0]) }); n != 0 {
		t.Errorf("AppendHex: %v allocations, want 0", n)
	}
	if got, want := string(buf), strings.Repeat("fe", 20); got != want {
		t.Errorf("AppendHex = %s, want %s", got, want)
	}
}

func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"", "a", "abc", "ABCD", "93ac61ec", "0x12", "../..", "ab\x00", strings.Repeat("f", 129)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, digits []byte) {
		id, err := Parse(digits)
		if err != nil {
			if !errors.Is(err, ErrInvalidID) || !id.IsZero() {
				t.Fatalf("Parse(%q) = %q, %v; want the zero ID and ErrInvalidID", digits, id, err)
			}
			return
		}
		got := id.String()
		if want := strings.ToLower(string(digits)); got != want && got != "0"+want {
			t.Errorf("Parse(%q) = %q", digits, got)
		}
		if again, err := Parse([]byte(got)); err != nil || again != id {
			t.Errorf("Parse(%q) = %q, %v; want the same again", got, again, err)
		}
	})
}
