//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// The command in docs/releasing.md must verify the signature written by make sign. It must reject
// other sums, and sums signed with another key.
func TestTheSumsAreSigned(t *testing.T) {
	testenv.Need(t, "ssh-keygen", "make")
	verify := regexp.MustCompile(`(?m)^ssh-keygen .*<SHA256SUMS$`).FindString(readFile(t, filepath.Join("..", "docs", "releasing.md")))
	if verify == "" {
		t.Fatal("docs/releasing.md has no command that verifies the signature")
	}
	for _, test := range []struct {
		name, signer, after string
		ok                  bool
	}{
		{"as signed", "release", "", true},
		{"other sums", "release", "more\n", false},
		{"another key", "stranger", "", false},
	} {
		dir := t.TempDir()
		sums := filepath.Join(dir, "SHA256SUMS")
		if err := os.WriteFile(sums, []byte("sums\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"release", "stranger"} {
			run(t, nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(dir, key))
		}
		allowed := `releases namespaces="symfilter-release" ` + readFile(t, filepath.Join(dir, "release.pub"))
		if err := os.WriteFile(filepath.Join(dir, "allowed_signers"), []byte(allowed), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "make", "-s", "-C", "..", "sign", "SIGNING_KEY="+filepath.Join(dir, test.signer), "OUTPUT="+dir)
		if err := os.WriteFile(sums, []byte("sums\n"+test.after), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", verify)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); (err == nil) != test.ok {
			t.Errorf("%s: %v\n%s", test.name, err, out)
		}
	}
}
