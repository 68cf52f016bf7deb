package input

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// binaryField returns a field in the binary form of the export format.
func binaryField(name, value string) string {
	return name + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(value)))) + value + "\n"
}

func entryOf(machine, boot, pid, message string) string {
	return "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1700000000123456\n_BOOT_ID=" + boot + "\n_MACHINE_ID=" + machine +
		"\n_PID=" + pid + "\n_HOSTNAME=host\nSYSLOG_IDENTIFIER=app\nPRIORITY=6\n_SYSTEMD_UNIT=app.service\n" + message + "\n"
}

// journalLines returns the output of NewJournalLines for an upload in chunks of this size.
func journalLines(t testing.TB, upload string, chunk int, o filter.Options) (string, error) {
	var out bytes.Buffer
	e := NewJournalLines(o, &out)
	var cut JournalEntries
	var failed error
	for len(upload) > 0 && failed == nil {
		n := min(chunk, len(upload))
		var entries []byte
		entries, failed = cut.Append(nil, []byte(upload[:n]))
		if len(entries) > 0 && !bytes.HasSuffix(entries, []byte("\n\n")) {
			t.Errorf("%q is not whole entries", entries)
		}
		e.Write(entries)
		upload = upload[n:]
	}
	if cut.Unfinished() && failed == nil {
		failed = io.ErrUnexpectedEOF
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return out.String(), failed
}

const (
	moduleEntry = "{{{module:0:one.so:elf:aabb}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}"
	frameEntry  = "at {{{pc:0x1234:pc}}}"
)

func TestJournalsAreLines(t *testing.T) {
	const prefix = "2023-11-14T22:13:20.123456Z host app[7]: "
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL("../../filter/log.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, upload string
		o            filter.Options
		want         string
	}{
		{"a message", entryOf("m", "b", "7", "MESSAGE=hello\n"), filter.Options{}, prefix + "hello\n"},
		{"a binary message has a prefix on each line", entryOf("m", "b", "7", binaryField("MESSAGE", "one\n\x1b[1mtwo")), filter.Options{}, prefix + "one\n" + prefix + "\x1b[1mtwo\n"},
		{"no message", entryOf("m", "b", "7", "CODE_LINE=3\n"), filter.Options{}, ""},
		{"an empty message", entryOf("m", "b", "7", "MESSAGE=\n"), filter.Options{}, prefix + "\n"},
		{"no other field", "__CURSOR=1\nMESSAGE=hello\n\n", filter.Options{}, "hello\n"},
		{"a name that would make another line", "SYSLOG_IDENTIFIER\n\x03\x00\x00\x00\x00\x00\x00\x00a\nb\n_HOSTNAME=\x1b[2J\nMESSAGE=hello\n\n", filter.Options{}, "_[2J a_b: hello\n"},
		{"a large field that is not printed", entryOf("m", "b", "7", binaryField("COREDUMP", strings.Repeat("\x00\n", 2<<20))+"MESSAGE=hello\n"), filter.Options{}, prefix + "hello\n"},
		{
			"processes of several boots and machines",
			entryOf("m", "b", "7", "MESSAGE="+moduleEntry+"\n") + entryOf("m", "c", "7", "MESSAGE="+frameEntry+"\n") +
				entryOf("n", "b", "7", "MESSAGE="+frameEntry+"\n") + entryOf("m", "b", "8", "MESSAGE="+frameEntry+"\n") + entryOf("m", "b", "7", "MESSAGE="+frameEntry+"\n"),
			filter.Options{ModuleLines: filter.ModuleLinesNone},
			prefix + "at [[[pc:0x1234:pc]]]\n" + prefix + "at [[[pc:0x1234:pc]]]\n" + strings.ReplaceAll(prefix, "7", "8") + "at [[[pc:0x1234:pc]]]\n" +
				prefix + "at one.so+0x234 (BuildId: aabb)\n",
		},
		{
			"objects", entryOf("m", "b", "7", "MESSAGE=one\n") + "MESSAGE=two\n\n", filter.Options{Output: filter.JSON},
			`{"v":1,"time":"2023-11-14T22:13:20.123456Z","journal":{"host":"host","program":"app","pid":"7","unit":"app.service","priority":"6","machine_id":"m","boot_id":"b"},"process":"m b 7","text":"one"}` + "\n" +
				`{"v":1,"journal":{},"text":"two"}` + "\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, chunk := range []int{1 << 30, 1000, 7, 1} {
				if chunk < 1000 && len(tt.upload) > 1<<20 {
					continue
				}
				got, err := journalLines(t, tt.upload, chunk, tt.o)
				if diff := gocmp.Diff(tt.want, got); diff != "" || err != nil {
					t.Fatalf("in chunks of %d: %v (-want +got)\n%s", chunk, err, diff)
				}
				for line := range strings.Lines(got) {
					if object, err := jsonschema.UnmarshalJSON(strings.NewReader(line)); tt.o.Output == filter.JSON {
						if err = cmp.Or(err, schema.Validate(object)); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
}

func TestDamagedUploadsAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, upload, want string }{
		{"text", "hello\n", `"hello" is not a field name in journald's export format`},
		{"no name", "=hello\n", "a field of an entry has no name"},
		{"a long name", strings.Repeat("A", 300), `"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" is not a field name in journald's export format`},
		{"a length that is not true", "MESSAGE\n\x01\x00\x00\x00\x00\x00\x00\x00ab\n", `the binary field "MESSAGE" does not have the length that it states`},
		{"a name that is cut", "MESS", "unexpected EOF"},
		{"a value that is cut", "MESSAGE=he", "unexpected EOF"},
		{"a length that is cut", "MESSAGE\n\x01\x00", "unexpected EOF"},
		{"an entry without its end", "MESSAGE=hello\n", "unexpected EOF"},
		{"a huge length", "MESSAGE\n\xff\xff\xff\xff\xff\xff\xff\xffa", "unexpected EOF"},
	} {
		for _, chunk := range []int{1 << 30, 1} {
			// if the bytes arrive one by one, the error quotes less of the field
			if got, err := journalLines(t, tt.upload, chunk, filter.Options{}); err == nil || chunk > 1 && err.Error() != tt.want || got != "" {
				t.Errorf("%s in chunks of %d: got %q, %v, want %s", tt.name, chunk, got, err, tt.want)
			}
		}
	}
}

func TestLongMessagesOfUploadsAreCut(t *testing.T) {
	var cut JournalEntries
	upload := []byte("MESSAGE=" + strings.Repeat("a", 3<<20) + "\nMESSAGE=" + strings.Repeat("b", 1<<20) + "\n\n")
	got, err := cut.Append(nil, upload)
	if len(got) > maxEntry || err != nil {
		t.Errorf("got %d bytes, %v, at most %d wanted", len(got), err, maxEntry)
	}
	kept := int64(bytes.Count(got, []byte("a")) + bytes.Count(got, []byte("b")))
	if want := int64(4<<20) - kept; cut.Cut != want || kept < maxMessage {
		t.Errorf("%d bytes are counted as left out, want %d", cut.Cut, want)
	}
}

// Any upload must be read within bounds, whatever the chunks. If the kept part of an entry is read
// again, it must not change.
func FuzzJournalUpload(f *testing.F) {
	f.Add([]byte(entryOf("m", "b", "7", binaryField("MESSAGE", "one\ntwo")+"COREDUMP_EXE=/a\n")), 3)
	f.Add([]byte("MESSAGE\n\x01\x00\x00\x00\x00\x00\x00\x00ab\n"), 1)
	f.Add([]byte(entryOf("m", "b", "7", "MESSAGE="+moduleEntry+"\n")+entryOf("m", "b", "7", "MESSAGE="+frameEntry+"\n")), 5)
	f.Fuzz(func(t *testing.T, upload []byte, chunk int) {
		defer fuzztest.Watch(t, upload)()
		var whole, parts JournalEntries
		want, wantErr := whole.Append(nil, upload)
		var got []byte
		var err error
		for rest := upload; len(rest) > 0 && err == nil; {
			n := min(max(1, chunk), len(rest))
			got, err = parts.Append(got, rest[:n])
			rest = rest[n:]
		}
		if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) || parts.Cut != whole.Cut {
			t.Fatalf("in chunks of %d: got %q, %v, want %q, %v", chunk, got, err, want, wantErr)
		}
		var again JournalEntries
		if same, err := again.Append(nil, want); !bytes.Equal(same, want) || err != nil || again.Unfinished() {
			t.Fatalf("what is kept, %q, is read as %q, %v", want, same, err)
		}
		NewJournalLines(filter.Options{}, io.Discard).Write(want)
	})
}
