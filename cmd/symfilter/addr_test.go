package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/internal/testenv"
)

// Each answer must fit the schema. Answers with inlined calls, frames from a symbol alone,
// variables and reasons must occur.
func TestAnswersForAddressesFitTheirSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL("addr.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, args := range []string{
		"../../testdata/debug/.build-id/ee/cd138796b4297ca7ee7bb08854e1173fee4bff.debug 1a25 999999",
		"779e1ed32e11627838c3d1658cabab0af2a008bd 4158 1df8",
		"../../internal/object/testdata/big.elf 18",
		"../../internal/object/testdata/stripped.elf 28c 2000 ffffffffffffffff",
		"0102030405 0",
		"../../testdata/debug/.build-id/ee/cd138796b4297ca7ee7bb08854e1173fee4bff.debug _ZN6ledger4Book5closeEv+0x15/0x30 nobody 0x1a20-0x1a3c offset:0x1",
		"nowhere+0x10",
	} {
		cmd := exec.Command(os.Args[0], append([]string{"addr", "--output=json", "-s", "../../testdata/debug"}, strings.Fields(args)...)...)
		cmd.Env = append(os.Environ(), asCommand+"=1", "XDG_CACHE_HOME="+t.TempDir())
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("symfilter addr %s: %v", args, err)
		}
		for line := range strings.Lines(string(out)) {
			object, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			if err == nil {
				err = schema.Validate(object)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			for _, kind := range []string{"frames", "variable", "reason"} {
				if _, ok := object.(map[string]any)[kind]; ok {
					seen[kind]++
				}
			}
		}
	}
	if seen["frames"] != 8 || seen["variable"] != 1 || seen["reason"] != 7 {
		t.Errorf("got %v, want 8 objects with frames, 1 with a variable, 7 with reasons", seen)
	}
}
