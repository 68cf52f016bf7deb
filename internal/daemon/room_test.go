package daemon

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A visit is one step of a test: a new connection, or an event of an earlier connection.
type visit struct {
	do   string // come PEER, enter PEER, begin N, end N, leave N, wait DURATION
	want string // for come and enter: the result, and the number of the connection that is closed in exchange
}

func TestSeatsOfARoom(t *testing.T) {
	for _, tt := range []struct {
		name   string
		most   int
		visits []visit
	}{
		{"a peer has three quarters, and others the rest", 8, []visit{
			{"come a", "seat"}, {"come a", "seat"}, {"come a", "seat"}, {"come a", "seat"}, {"come a", "seat"}, {"come a", "seat"},
			{"come a", "refused"}, {"come b", "seat"}, {"come c", "seat"}, {"come d", "refused"},
			{"leave 7", ""}, {"come a", "refused"}, {"come d", "seat"},
		}},
		{"lines have the same bounds", 4, []visit{
			{"enter a", "seat"}, {"enter a", "seat"}, {"come a", "seat"}, {"enter a", "none"}, {"come a", "refused"}, {"enter b", "seat"}, {"enter c", "none"},
			{"leave 0", ""}, {"enter a", "seat"},
		}},
		{"the slowest is closed for another peer", 4, []visit{
			{"come a", "seat"}, {"wait 300ms", ""}, {"come b", "seat"}, {"come c", "seat"}, {"enter d", "seat"},
			{"wait 600ms", ""}, {"come e", "refused"}, {"wait 200ms", ""},
			{"come e", "seat, 0 closed"}, {"come f", "refused"}, {"wait 300ms", ""}, {"come f", "seat, 1 closed"}, {"come g", "seat, 2 closed"},
		}},
		{"a peer at its bound loses its own", 4, []visit{
			{"come b", "seat"}, {"come a", "seat"}, {"come a", "seat"}, {"come a", "seat"}, {"wait 2s", ""}, {"come a", "seat, 1 closed"},
		}},
		{"a request that is served keeps its seat", 3, []visit{
			{"come a", "seat"}, {"come a", "seat"}, {"come a", "seat"}, {"begin 0", ""}, {"begin 1", ""}, {"begin 1", ""}, {"begin 2", ""}, {"wait 1h", ""},
			{"come b", "refused"}, {"end 1", ""}, {"wait 2s", ""}, {"come b", "refused"},
			{"end 1", ""}, {"end 0", ""}, {"wait 500ms", ""}, {"come b", "refused"}, {"wait 500ms", ""}, {"come b", "seat, 1 closed"}, {"come c", "seat, 0 closed"},
			{"begin 0", "closed"},
		}},
		{"those beyond the limit are answered, the oldest are closed", 1, slices.Concat([]visit{{"enter a", "seat"}}, slices.Repeat([]visit{{"come b", "refused"}}, refusedAtOnce),
			[]visit{{"come c", "refused, 1 closed"}, {"come d", "refused, 2 closed"}, {"leave 3", ""}, {"come e", "refused"}})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &room{most: func() int { return tt.most }}
				var seats []*seat
				var conns []net.Conn
				for i, v := range tt.visits {
					what, arg, _ := strings.Cut(v.do, " ")
					got, n := "", 0
					fmt.Sscan(arg, &n)
					switch what {
					case "come":
						ours, theirs := net.Pipe()
						defer theirs.Close()
						s := r.take(ours, arg)
						if got = "seat"; s.refused {
							got = "refused"
						}
						for j, c := range conns {
							if c != nil && isClosed(c) {
								got += fmt.Sprintf(", %d closed", j)
								conns[j] = nil
							}
						}
						seats, conns = append(seats, s), append(conns, ours)
					case "enter":
						s := r.enter(arg)
						if got = "seat"; s == nil {
							got = "none"
						}
						seats, conns = append(seats, s), append(conns, nil)
					case "begin":
						if !seats[n].begin() {
							got = "closed"
						}
					case "end":
						seats[n].end()
					case "leave":
						seats[n].leave()
						// the server also reports the end of a connection that was closed for
						// another connection
						seats[n].leave()
					case "wait":
						d, err := time.ParseDuration(arg)
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(d)
					}
					if got != v.want {
						t.Fatalf("step %d, %s: got %q, want %q", i, v.do, got, v.want)
					}
				}
				for _, s := range seats {
					if s != nil {
						s.leave()
					}
				}
				if r.open() != 0 || len(r.peers) != 0 || r.waiting.Len() != 0 || r.refused.Len() != 0 {
					t.Errorf("left are %d seats, peers %v, %d waiting, %d refused", r.open(), r.peers, r.waiting.Len(), r.refused.Len())
				}
			})
		})
	}
}

func isClosed(c net.Conn) bool { return c.SetDeadline(time.Time{}) != nil }

func (r *room) open() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(r.used)
}
