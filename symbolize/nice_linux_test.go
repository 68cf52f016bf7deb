package symbolize

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPriorityOfOneThreadIsLowered(t *testing.T) {
	priority := func(who int) int {
		p, err := unix.Getpriority(unix.PRIO_PROCESS, who)
		if err != nil {
			t.Error(err)
		}
		return 20 - p // the kernel returns 20 minus the nice value
	}
	main := unix.Getpid() // also the ID of the first thread
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		if unix.Gettid() == main {
			return // a lower priority of the first thread would stay
		}
		own, first := priority(0), priority(main)
		lowerPriority(own + 3)
		if got := priority(0); got != min(own+3, 19) {
			t.Errorf("the thread has nice value %d, want %d", got, own+3)
		}
		if got := priority(main); got != first {
			t.Errorf("the first thread had nice value %d, now %d", first, got)
		}
	}()
	<-done
}
