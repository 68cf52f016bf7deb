package buildid

import (
	"errors"
	"os"
	"testing"
)

// Opening a device can have an effect, even if nothing is read from it.
func TestDevicesAreNotOpened(t *testing.T) {
	opened := false
	_, _, err := openRegularBy("/dev/null", os.Stat, func(string, int, os.FileMode) (*os.File, error) {
		opened = true
		return nil, os.ErrPermission
	})
	if opened || !errors.Is(err, errNotRegular) {
		t.Errorf("opened: %v, %v; want %v", opened, err, errNotRegular)
	}
}
