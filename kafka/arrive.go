package kafka

import (
	"context"
	"io"
	"time"

	"golang.org/x/sync/semaphore"
)

// A request counts as what it says only once it is there. While it arrives it
// counts as a few times what has come of it, and not at all as long as that fits
// the connection's read buffer: so who announces much and sends little keeps
// nobody else's requests waiting.
const (
	arriveFirst = 32 << 10 // the first buffer of a frame that does not come at once
	arriveTimes = 8        // how much larger the next one is

	arrivalShare = 8 // arrivals have so many times less memory than requests
)

// arrivals is the memory of frames that are arriving.
type arrivals struct {
	memory *semaphore.Weighted
	// last is for the one that goes on where memory is used up, whatever its
	// size; so all get through in the end, one after the other.
	last *semaphore.Weighted
}

func newArrivals(bytes int) arrivals {
	return arrivals{memory: semaphore.NewWeighted(int64(bytes)), last: semaphore.NewWeighted(1)}
}

// arrival is one frame that is arriving.
type arrival struct {
	reader *frameReader
	size   int
	held   int64 // of the memory for arrivals
	isLast bool
}

// read reads a frame whose first bytes are there.
func (a *arrival) read(ctx context.Context) (*buffer, error) {
	frame, have := &buffer{}, 0
	for have < a.size {
		next, err := a.room(ctx, min(max(arriveFirst, have*arriveTimes), a.size))
		if err != nil {
			frame.free()
			return nil, err
		}
		larger := newBuffer(next)
		copy(larger.b, frame.b[:have])
		frame.free()
		frame = larger
		if _, err := io.ReadFull(a.reader.in, frame.b[have:]); err != nil {
			frame.free()
			return nil, slowOrGone(err)
		}
		have = next
	}
	return frame, nil
}

// room is how large the next buffer may be: as asked, or as the whole frame for
// the last one, which then has its time anew.
func (a *arrival) room(ctx context.Context, next int) (int, error) {
	of := &a.reader.server.arrivals
	if a.isLast {
		return a.size, nil
	}
	if more := int64(next) - a.held; of.memory.TryAcquire(more) {
		a.held += more
		return next, nil
	}
	if err := of.last.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	a.isLast = true
	return a.size, a.reader.deadline(time.Now().Add(a.reader.server.limits.Frame))
}

// end gives back what the frame held while it arrived.
func (a *arrival) end() {
	of := &a.reader.server.arrivals
	of.memory.Release(a.held)
	if a.isLast {
		of.last.Release(1)
	}
}

// isThere waits for as much of a frame as the read buffer takes, and says
// whether that is all of it.
func (f *frameReader) isThere(size int) (bool, error) {
	if f.in.Buffered() >= size {
		return true, nil
	}
	if err := f.deadline(time.Now().Add(f.server.limits.Frame)); err != nil {
		return false, gone(err)
	}
	if _, err := f.in.Peek(min(size, f.in.Size())); err != nil {
		return false, slowOrGone(err)
	}
	return size <= f.in.Size(), nil
}
