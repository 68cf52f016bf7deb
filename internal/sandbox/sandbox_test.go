package sandbox

import (
	"testing"
)

func TestStateIsOneLine(t *testing.T) {
	tests := []struct {
		state State
		want  string
	}{
		{State{NoNewPrivs: true, Landlock: 7, Seccomp: true}, "no new privileges, Landlock ABI 7, seccomp"},
		{State{NoNewPrivs: true, Seccomp: true, Missing: []string{"no Landlock: function not implemented"}},
			"no new privileges, seccomp; no Landlock: function not implemented"},
		{State{Missing: []string{"no sandbox: not on plan9"}}, "none; no sandbox: not on plan9"},
		{State{}, "none"},
	}
	for _, tt := range tests {
		if got := tt.state.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
