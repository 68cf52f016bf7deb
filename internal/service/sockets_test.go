package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheEnvironmentNamesTheSockets(t *testing.T) {
	for _, tt := range []struct {
		name, pid, fds, names string
		want                  []string
		err                   string
	}{
		{"none", "", "", "", nil, ""},
		{"one", "7", "1", "app", []string{"app"}, ""},
		{"two of one unit", "7", "2", "app:app", []string{"app", "app"}, ""},
		{"without names", "7", "2", "", []string{"unknown", "unknown"}, ""},
		{"of another process", "8", "2", "a:b", nil, ""},
		{"of no process", "", "2", "a:b", nil, ""},
		{"fewer names", "7", "2", "a", nil, "LISTEN_FDNAMES=a: 1 names for 2 sockets"},
		{"too many", "7", "257", "", nil, "LISTEN_FDS=257: not a number of sockets from 0 to 256"},
		{"negative", "7", "-1", "", nil, "LISTEN_FDS=-1: not a number of sockets from 0 to 256"},
		{"no number", "7", "x", "", nil, "LISTEN_FDS=x: not a number of sockets from 0 to 256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"LISTEN_PID": tt.pid, "LISTEN_FDS": tt.fds, "LISTEN_FDNAMES": tt.names}
			got, err := inheritedNames(func(name string) string { return env[name] }, 7)
			if diff := cmp.Diff(tt.want, got); diff != "" || text(err) != tt.err {
				t.Errorf("got error %q, want %q; names (-want +got)\n%s", text(err), tt.err, diff)
			}
		})
	}
}

func TestASocketThatWasNotPassedIsNamed(t *testing.T) {
	s, err := Inherited()
	if err != nil {
		t.Fatal(err)
	}
	const want = `no socket "app": the service manager has passed none; start the service with a socket unit that has FileDescriptorName=app`
	if _, err := s.Listeners("app"); text(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := s.PacketConns("app"); text(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
