package local

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// setDirect makes reads and writes go past the page cache, or through it
// again; it says whether the file system can.
func setDirect(f *os.File, direct bool) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return false
	}
	flags &^= unix.O_DIRECT
	if direct {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err == nil
}

// reserve takes the space for a file of a size, so that a full disk is known
// at once, and writes need not each look for some.
func reserve(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil
		default:
			return err
		}
	}
}
